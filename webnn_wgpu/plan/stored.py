"""Execution plans as the plain data of a folder for browsers, and back.

Stored kernels are WGSL. A plan that was read needs neither templates nor passes, and its graph has no nodes.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

import numpy as np

from ..core.caps import Caps
from ..core.data_types import Array
from ..core.errors import NotSupportedError
from ..formats.web.model import (
    DEFAULT_LIMITS,
    OFFSET_ALIGNMENT,
    FileRange,
    Requirements,
    WebBinding,
    WebConstant,
    WebDispatch,
    WebKernel,
    WebModel,
    WebResource,
    WebTensor,
    padded,
)
from ..ir.graph import Graph, Origin, Value
from ..ir.types import TensorType
from ..kernels.packing import packed_array
from ..kernels.spec import Access, Binding, KernelSpec, Packing, UniformType
from ..kernels.templates import render
from .execution_plan import ConstantUse, ExecutionPlan, PlannedDispatch, Resource, Slot

WEB_FEATURES: Mapping[str, str] = {"shader-f16": "shader-f16", "subgroup": "subgroups"}
"""The features of browsers' devices that kernels use: wgpu's names -> WebGPU's names."""

LANGUAGE_FEATURES: Mapping[str, str] = {
    r"\bdot4[IU]8Packed\b": "packed_4x8_integer_dot_product",
    r"texture_storage_2d<\w+,\s*read>": "readonly_and_readwrite_storage_textures",
}
"""Patterns of WGSL -> the features of the shader language that they need."""

ENABLE_SUBGROUPS = "enable subgroups;\n"
"""The first line of kernels with subgroups. Browsers require it, and wgpu refuses it."""

DASHED: Mapping[str, str] = {
    name: re.sub(r"(?<=[a-z])(?=[A-Z0-9])", "-", name).lower().replace("-2-d", "-2d") for name in DEFAULT_LIMITS
}
"""Limits by JavaScript's names -> their names with dashes, as `Caps` has them."""

PIECE_BYTES = 256 * 1024 * 1024
"""The maximum size of a file of weights with several constants: browsers fetch and hold a file as a whole."""


def web_caps(caps: Caps) -> Caps:
    """Return the capabilities of a device as a browser shows them, without the features that wgpu alone has."""
    features = caps.features & WEB_FEATURES.keys()
    return Caps(
        features=features,
        limits=caps.limits,
        subgroup_size=caps.subgroup_size if "subgroup" in features else 0,
        adapter_type=caps.adapter_type,
        vendor=caps.vendor,
        device=caps.device,
    )


@dataclass(frozen=True)
class StoredPlan:
    """A plan as plain data.

    Attributes:
        model: the content of `model.json`, without a sample.
        sources: the WGSL of each kernel, in the model's order.
        files: the contents of the files of bytes, by name, in parts.
    """

    model: WebModel
    sources: tuple[str, ...]
    files: Mapping[str, Sequence[bytes | Array]]


def store_plan(plan: ExecutionPlan, caps: Caps, name: str, labels: Mapping[int, str]) -> StoredPlan:
    """Return a plan as plain data.

    Args:
        plan: the plan, made for `caps`.
        caps: the capabilities of the devices that it is for, as browsers show them.
        name: the name of the model.
        labels: the labels of the operators of the source graph, by the numbers of their nodes.
    """
    specs = list(dict.fromkeys(d.spec for d in plan.dispatches))
    numbers = {spec: i for i, spec in enumerate(specs)}
    sources = tuple(_browser_source(spec) for spec in specs)
    files = _Files()
    constants = tuple(files.constant(plan.arrays[use.value], use.packing) for use in plan.constants)
    uniforms = files.add("uniforms.bin", plan.uniforms) if plan.uniforms else None
    model = WebModel(
        name=name,
        requires=_requirements(plan, caps, sources, constants),
        inputs={n: WebTensor(t.data_type, t.shape) for n, t in plan.inputs.items()},
        outputs={n: WebTensor(t.data_type, t.shape, plan.aliases.get(n, "")) for n, t in plan.outputs.items()},
        files=files.sizes,
        slots=tuple(slot.size_bytes for slot in plan.slots),
        constants=constants,
        uniforms=uniforms,
        kernels=tuple(_kernel(i, spec) for i, spec in enumerate(specs)),
        dispatches=tuple(_dispatch(d, numbers[d.spec], labels) for d in plan.dispatches),
    )
    return StoredPlan(model, sources, files.parts)


def _browser_source(spec: KernelSpec) -> str:
    # A page loads its kernels over a network. Lines of comments and blank ones are a tenth of them.
    source = re.sub(r"^\s*(//.*)?\n", "", render(spec), flags=re.MULTILINE)
    return ENABLE_SUBGROUPS + source if "subgroup" in spec.features else source


class _Files:
    """Files of bytes, in which equal constants are stored once."""

    def __init__(self) -> None:
        self.parts: dict[str, list[bytes | Array]] = {}
        self.sizes: dict[str, int] = {}
        self._known: dict[bytes, FileRange] = {}
        self._pieces = 0

    def add(self, file: str, data: bytes | Array) -> FileRange:
        """Append bytes to a file at an aligned offset."""
        parts, end = self.parts.setdefault(file, []), self.sizes.get(file, 0)
        offset, size = -(-end // OFFSET_ALIGNMENT) * OFFSET_ALIGNMENT, len(data)
        parts += [bytes(offset - end), data] if offset > end else [data]
        self.sizes[file] = offset + size
        return FileRange(file, offset, size)

    def constant(self, array: Array, packing: Packing | None) -> WebConstant:
        packed = packed_array(array, packing)
        data: Array = packed.reshape(-1).view(np.uint8)
        key = hashlib.blake2b(data.data, digest_size=16).digest()
        if key not in self._known:
            held = self.sizes.get(f"weights-{self._pieces}.bin", 0)
            self._pieces += bool(held) and held + data.nbytes > PIECE_BYTES
            self._known[key] = self.add(f"weights-{self._pieces}.bin", data)
        texture = packing is not None and packing.texture
        return WebConstant(self._known[key], (packed.shape[1], packed.shape[0]) if texture else None)


def _kernel(number: int, spec: KernelSpec) -> WebKernel:
    name = (
        spec.template if not spec.variant or spec.template.endswith(f".{spec.variant}") else f"{spec.template}.{spec.variant}"
    )
    stem = re.sub(r"[^A-Za-z0-9_.-]", "_", name)[:60]
    return WebKernel(
        name=name,
        file=f"kernels/{number}-{stem}.wgsl",
        bindings=tuple(
            WebBinding(name=b.name, access=b.access, element=b.element, quad=b.quad, exact=b.exact) for b in spec.bindings
        ),
        uniforms=spec.uniforms,
    )


def _dispatch(planned: PlannedDispatch, kernel: int, labels: Mapping[int, str]) -> WebDispatch:
    return WebDispatch(
        label=planned.label,
        kernel=kernel,
        grid=planned.grid,
        bindings=tuple(WebResource(r.kind, r.key, r.offset_bytes, r.size_bytes) for r in planned.bindings),
        uniform=planned.uniform_offset,
        operations=planned.operations or 0,
        operators=tuple(dict.fromkeys(labels[o.node] for o in planned.origins)),
    )


def _requirements(plan: ExecutionPlan, caps: Caps, sources: Sequence[str], constants: Sequence[WebConstant]) -> Requirements:
    """Return the requirements for a device. Of the limits that the caps raise, they contain those that the plan may use."""
    bindings = [(b, r) for d in plan.dispatches for b, r in zip(d.spec.bindings, d.bindings, strict=True)]
    ends = [t.size_bytes for t in (*plan.inputs.values(), *plan.outputs.values())]
    buffers = [s.size_bytes for s in plan.slots] + [c.place.size_bytes for c in constants if c.texture is None] + ends
    used = {
        "maxBufferSize": max(map(padded, buffers), default=0),
        "maxStorageBufferBindingSize": max((r.size_bytes for b, r in bindings if not b.is_texture), default=0),
        "maxStorageBuffersPerShaderStage": max(sum(not b.is_texture for b in d.spec.bindings) for d in plan.dispatches),
        "maxStorageTexturesPerShaderStage": max(sum(b.access == "texture" for b in d.spec.bindings) for d in plan.dispatches),
        "maxTextureDimension2D": max((side for c in constants if c.texture for side in c.texture), default=0),
        "maxComputeWorkgroupsPerDimension": max(size for d in plan.dispatches for size in d.grid),
    }
    limits = {name: used.get(name, caps.limit(DASHED[name])) for name in DEFAULT_LIMITS}
    features = sorted({WEB_FEATURES[f] for d in plan.dispatches for f in d.spec.features})
    return Requirements(
        features=tuple(features),
        limits={name: needed for name, needed in limits.items() if needed > DEFAULT_LIMITS[name]},
        alignment=min(
            OFFSET_ALIGNMENT,
            caps.limit("min-storage-buffer-offset-alignment"),
            caps.limit("min-uniform-buffer-offset-alignment"),
        ),
        subgroup_size=caps.subgroup_size if "subgroups" in features else 0,
        language=tuple(sorted(f for p, f in LANGUAGE_FEATURES.items() if any(re.search(p, s) for s in sources))),
    )


# ---------------------------------------------------------------------------------------------------------------- back


@dataclass(frozen=True)
class StoredTexture(Packing):
    """The texels of a texture, which were packed when they were stored."""

    width: int
    height: int
    texel_bytes: int

    @property
    def texture(self) -> bool:
        """Whether the packed form is a texture: yes."""
        return True

    def packed_shape(self, shape: Sequence[int]) -> tuple[int, ...]:
        """Return the shape of the texels, [height, width, 4]."""
        return self.height, self.width, 4

    def pack(self, array: Any) -> Any:
        """Return the texels."""
        return array.view(np.float32 if self.texel_bytes == 16 else np.int8).reshape(self.height, self.width, 4)


def missing_of(requires: Requirements, caps: Caps) -> Iterator[tuple[str, str, str]]:
    """Yield the unmet requirements: the name, the allowed values, and the device's value."""
    names = {web: name for name, web in WEB_FEATURES.items()}
    for feature in requires.features:
        if names.get(feature) not in caps.features:
            yield f"the feature '{feature}'", "", ", ".join(sorted(caps.features)) or "no features"
    for name, needed in requires.limits.items():
        held = dict(caps.limits).get(DASHED.get(name, ""), 0)
        if held < needed:
            yield f"the limit {name}", f"at least {needed}", str(held)
    alignment = max(caps.limit("min-storage-buffer-offset-alignment"), caps.limit("min-uniform-buffer-offset-alignment"))
    if alignment > requires.alignment:
        yield "the alignment of offsets", f"at most {requires.alignment}", str(alignment)
    if requires.subgroup_size and caps.subgroup_size != requires.subgroup_size:
        yield "the size of subgroups", str(requires.subgroup_size), str(caps.subgroup_size)


def restore_plan(model: WebModel, sources: Sequence[str], read: Callable[[FileRange], Array], caps: Caps) -> ExecutionPlan:
    """Return the plan of a stored model.

    Args:
        model: the model, checked by `read_web_model`.
        sources: the WGSL of each kernel.
        read: returns the bytes of a range of a file.
        caps: the capabilities of the device that will run it.

    Raises:
        NotSupportedError: the device lacks something that the model requires, or an offset has an alignment that the device
            does not accept.
    """
    for what, allowed, got in missing_of(model.requires, caps):
        raise NotSupportedError(f"the device lacks {what} that the model requires", operator="load", got=got, allowed=allowed)
    specs = [_spec(kernel, source) for kernel, source in zip(model.kernels, sources, strict=True)]
    inputs = {name: TensorType(t.data_type, t.shape) for name, t in model.inputs.items()}
    outputs = {name: TensorType(t.data_type, t.shape) for name, t in model.outputs.items()}
    uses = tuple(_use(i, constant) for i, constant in enumerate(model.constants))
    ends = [*inputs.values(), *outputs.values()]
    graph = Graph(
        values={i: Value(i, type_) for i, type_ in enumerate(ends)},
        inputs={name: i for i, name in enumerate(inputs)},
        constants={},
        nodes=(),
        outputs={name: len(inputs) + i for i, name in enumerate(outputs)},
        aliases={name: t.alias for name, t in model.outputs.items() if t.alias},
    )
    return ExecutionPlan(
        inputs=inputs,
        outputs=outputs,
        slots=tuple(Slot(size) for size in model.slots),
        constants=uses,
        dispatches=tuple(_planned(d, specs[d.kernel], caps) for d in model.dispatches),
        uniforms=b"" if model.uniforms is None else read(model.uniforms).tobytes(),
        unshared_bytes=sum(model.slots),
        arrays={i: read(constant.place) for i, constant in enumerate(model.constants)},
        aliases=graph.aliases,
        graph=graph,
        places={},
    )


def _use(number: int, constant: WebConstant) -> ConstantUse:
    type_ = TensorType("uint8", (constant.place.size_bytes,))
    if constant.texture is None:
        return ConstantUse(number, type_, None)
    return ConstantUse(number, type_, StoredTexture(*constant.texture, constant.texel_bytes))


def _spec(kernel: WebKernel, source: str) -> KernelSpec:
    bindings = [
        Binding(name=b.name, access=cast("Access", b.access), element=b.element, quad=b.quad, exact=b.exact)
        for b in kernel.bindings
    ]
    return KernelSpec(
        template=kernel.name,
        params=(),
        bindings=tuple(bindings),
        uniforms=tuple((name, cast("UniformType", type_)) for name, type_ in kernel.uniforms),
        source=source.removeprefix(ENABLE_SUBGROUPS),
    )


def _planned(dispatch: WebDispatch, spec: KernelSpec, caps: Caps) -> PlannedDispatch:
    storage, uniform = (caps.limit(f"min-{kind}-buffer-offset-alignment") for kind in ("storage", "uniform"))
    offsets = [(r.offset, storage) for r, b in zip(dispatch.bindings, spec.bindings, strict=True) if not b.is_texture]
    for offset, alignment in [*offsets, (dispatch.uniform, uniform)]:
        if offset % alignment:
            raise NotSupportedError(
                "an offset must be a multiple of the alignment that the device asks for",
                operator="load",
                label=dispatch.label,
                got=str(offset),
                allowed=f"multiples of {alignment}",
            )
    limit = caps.limit("max-compute-workgroups-per-dimension")
    if max(dispatch.grid) > limit:
        raise NotSupportedError(
            "a grid must not exceed the device's limit",
            operator="load",
            label=dispatch.label,
            got=str(dispatch.grid),
            allowed=f"up to {limit}",
        )
    resources = [Resource(r.kind, r.key, r.offset, r.size_bytes) for r in dispatch.bindings]
    return PlannedDispatch(
        spec=spec,
        bindings=tuple(resources),
        uniform_offset=dispatch.uniform,
        uniform_size=spec.uniform_bytes,
        grid=dispatch.grid,
        label=dispatch.label,
        reason="stored",
        origins=tuple(Origin(-1, label) for label in dispatch.operators),
        node=None,
        operations=dispatch.operations,
        touched_bytes=sum(r.size_bytes for r in resources),
    )
