"""Running kernels as they were installed in a graph, without the graph: over arrays, uniforms and workgroups that are given."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from webnn_wgpu.api.backend import DeviceBackend, no_device
from webnn_wgpu.api.context import MLContext
from webnn_wgpu.api.graph import MLGraph
from webnn_wgpu.api.internals import internals
from webnn_wgpu.core.data_types import Array, tensor_bytes
from webnn_wgpu.ir.graph import Graph
from webnn_wgpu.ir.types import TensorType
from webnn_wgpu.kernels.spec import TEXTURES, Binding, Grid, KernelSpec, Packing
from webnn_wgpu.plan.execution_plan import ConstantUse, ExecutionPlan, PlannedDispatch, Resource, Slot
from webnn_wgpu.runtime.program import Program


@dataclass(frozen=True)
class Bound:
    """The resource of a kernel's binding.

    Attributes:
        access: "read", "write" (and read), "texture", or "sampled" (a texture that is not bound as storage).
        name: the name of an array of the data, of an output, or else of scratch memory.
        offset, size: the bound range in bytes. Textures are bound whole.
    """

    access: str
    name: str
    offset: int = 0
    size: int = 0


@dataclass(frozen=True)
class Launch:
    """One dispatch of a kernel.

    Attributes:
        source: the file of its WGSL, whose entry point is `main`.
        bindings: the resource of each binding, in order. The uniforms follow them.
        uniforms: the uniform buffer in hexadecimal, or "" if there is none.
        grid: the number of workgroups in x, y, z.
    """

    source: str | os.PathLike[str]
    bindings: Sequence[Bound]
    uniforms: str
    grid: Grid


@dataclass(frozen=True)
class _Texture(Packing):
    """An array that is a texture already: [height, width, 4] float32."""

    def packed_shape(self, shape: Sequence[int]) -> tuple[int, ...]:
        """Return the array's own shape."""
        return tuple(shape)

    def pack(self, array: Any) -> Any:
        """Return the array."""
        return array

    @property
    def texture(self) -> bool:
        """It is one."""
        return True


def launch(
    context: MLContext, launches: Sequence[Launch], data: Mapping[str, Array], outputs: Mapping[str, tuple[str, Sequence[int]]]
) -> dict[str, Array]:
    """Run kernels one after the other, and return the outputs.

    Args:
        context: the context of the run.
        launches: the dispatches in order.
        data: the arrays by name, as large as their bound ranges or smaller.
        outputs: name -> data type and shape of each output. An output that is among the data too is updated in place.

    Returns:
        The outputs by name.

    Raises:
        NotSupportedError: the context has no device.
        OperationError: a source does not compile, or does not fit its bindings.

    Example:
        >>> from pathlib import Path
        >>> from webnn_wgpu.debug import Bound, Launch
        >>> (kernel,) = b.build({"y": b.neg(x)}).kernels.values()
        >>> _ = Path("neg.wgsl").write_text(kernel.wgsl)
        >>> bindings = [Bound("read", "x", size=32), Bound("write", "y", size=32)]
        >>> dispatch = Launch("neg.wgsl", bindings, "02000000" + "01000000", (1, 1, 1))  # quads, rounds
        >>> launch(context, [dispatch], {"x": np.ones((2, 3), np.float32)}, {"y": ("float32", [2, 3])})["y"][0]
        array([-1., -1., -1.], dtype=float32)
    """
    backend = internals(context).backend
    if not isinstance(backend, DeviceBackend):
        raise no_device()
    types = {name: TensorType(str(a.dtype), a.shape) for name, a in data.items()}
    bound = [b for each in launches for b in each.bindings]
    textures = list(dict.fromkeys(b.name for b in bound if b.access in TEXTURES))
    inputs = {b.name: types[b.name] for b in bound if b.access not in TEXTURES and b.name in types}
    made = {name: TensorType(data_type, tuple(shape)) for name, (data_type, shape) in outputs.items()}
    scratch = list(dict.fromkeys(b.name for b in bound if b.name not in types and b.name not in made))
    sizes = [max(b.offset + b.size for b in bound if b.name == name) for name in scratch]

    def resource(b: Bound) -> Resource:
        if b.access in TEXTURES:
            return Resource("constant", textures.index(b.name), 0, 0)
        if b.name in scratch:
            return Resource("slot", scratch.index(b.name), b.offset, b.size)
        return Resource("input" if b.name in inputs else "output", b.name, b.offset, b.size)

    alignment = context.caps.limit("min-uniform-buffer-offset-alignment")
    uniforms = bytearray()
    dispatches: list[PlannedDispatch] = []
    for i, each in enumerate(launches):
        block = bytes.fromhex(each.uniforms)
        uniforms.extend(bytes(-len(uniforms) % alignment))
        offset = len(uniforms)
        uniforms.extend(block)
        name, text = Path(each.source).name, Path(each.source).read_text(encoding="utf-8")
        bindings: Any = tuple(Binding(name=f"binding{n}", access=b.access) for n, b in enumerate(each.bindings))  # pyright: ignore[reportArgumentType] - the accesses are those of a plan
        spec = KernelSpec(
            template=name, params=(), bindings=bindings, uniforms=(("uniforms", "u32"),) if block else (), source=text
        )
        resources = tuple(map(resource, each.bindings))
        dispatches.append(
            PlannedDispatch(
                spec=spec,
                bindings=resources,
                uniform_offset=offset,
                uniform_size=len(block),
                grid=each.grid,
                label=f"{i} {name}",
                reason="",
                origins=(),
                node=None,
            )
        )
    plan = ExecutionPlan(
        inputs=inputs,
        outputs=made,
        slots=tuple(map(Slot, sizes)),
        constants=tuple(ConstantUse(i, types[name], _Texture()) for i, name in enumerate(textures)),
        dispatches=tuple(dispatches),
        uniforms=bytes(uniforms),
        unshared_bytes=sum(sizes),
        arrays={i: data[name] for i, name in enumerate(textures)},
        aliases={name: name for name in made if name in inputs},
        graph=Graph(values={}, inputs={}, constants={}, nodes=(), outputs={}),
        places={},
    )
    with internals(context).guarded("launch"):
        program = Program(backend.device, plan)
        try:
            return program.start({name: np.ascontiguousarray(data[name]) for name in inputs}, list(made)).result()
        finally:
            program.destroy()


@dataclass(frozen=True)
class Installed:
    """Installed kernels with their resources, except operands and results.

    Attributes:
        launches: the dispatches. Their `source` is the name of a kernel.
        constants: the packed constants by name.
    """

    launches: tuple[Launch, ...]
    constants: Mapping[str, Array]


def installed(graph: MLGraph, dispatches: Sequence[PlannedDispatch], values: Mapping[str, Resource]) -> Installed:
    """Return some kernels of a graph.

    Args:
        graph: the graph.
        dispatches: the kernels.
        values: the names of their other resources -> the resource. Constants and scratch memory are not among them.
    """
    plan = graph.plan
    assert plan is not None
    constants: dict[str, Array] = {}

    def bound(binding: Binding, resource: Resource) -> Bound:
        if resource.kind == "constant":
            use = plan.constants[int(resource.key)]
            name, array = f"constant{resource.key}", plan.arrays[use.value]
            constants[name] = np.ascontiguousarray(tensor_bytes(array) if use.packing is None else use.packing.pack(array))
            return Bound(binding.access, name, resource.offset_bytes, resource.size_bytes)
        for name, place in values.items():
            within = resource.offset_bytes - place.offset_bytes
            if (resource.kind, resource.key) == (place.kind, place.key) and 0 <= within < place.size_bytes:
                return Bound(binding.access, name, within, resource.size_bytes)
        return Bound(binding.access, str(resource), resource.offset_bytes, resource.size_bytes)

    launches = tuple(
        Launch(
            d.label,
            tuple(bound(b, r) for b, r in zip(d.spec.bindings, d.bindings, strict=True)),
            plan.uniforms[d.uniform_offset : d.uniform_offset + d.uniform_size].hex(),
            d.grid,
        )
        for d in dispatches
    )
    return Installed(launches, constants)
