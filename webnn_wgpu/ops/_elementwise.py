"""Lowering of element-wise formulas, single or fused: how each input is read, and the kernel that does it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ..core.caps import Caps
from ..core.data_types import CONSTANT_TYPES, byte_length
from ..ir.types import TensorType
from ..kernels.element import QUAD, element_of, padded_bytes
from ..kernels.expression import Expression
from ..kernels.spec import Binding, KernelCall, KernelTemplate, UniformType, Window, grid_1d
from ._shapes import broadcast_strides, merge_dimensions, strides_of

ELEMENTWISE = KernelTemplate("elementwise", ("expression", "rank", "reads", "whole_quads"))

WORKGROUP = 64
"""Invocations per workgroup of kernels that write quads; `quad_main` in `shaders/lib/tensor.wgsl.j2` agrees."""


@dataclass(frozen=True)
class Source:
    """One input of an element-wise kernel: its value, type, and strides over the output's dimensions (None: broadcast)."""

    value: int
    type: TensorType
    strides: tuple[int, ...] | None = None


def quad_launch(num_elements: int, caps: Caps) -> tuple[tuple[tuple[str, UniformType, int], ...], tuple[int, int, int]]:
    """Return the uniforms `quads` and `rounds` and the grid of a kernel that writes `num_elements` in quads."""
    quads = -(-num_elements // QUAD)
    # On a CPU adapter a workgroup costs 0.1 us to start: large tensors take eight quads per invocation (measured 10.6
    # against 8.9 GB/s). Hardware hides latency with more workgroups instead.
    rounds = min(8, -(-quads // (WORKGROUP * 16))) if caps.is_cpu else 1
    return (("quads", "u32", quads), ("rounds", "u32", rounds)), grid_1d(-(-quads // (WORKGROUP * rounds)), caps)


def elementwise_call(
    expression: Expression,
    expression_uniforms: Sequence[tuple[str, UniformType, int | float]],
    sources: Sequence[Source],
    output: int,
    output_type: TensorType,
    caps: Caps,
    reason: str = "",
) -> list[KernelCall]:
    """Return the kernel calls that compute `expression` of `sources` for every element of the output.

    There is one, unless a tensor is larger than the device can bind: then each call covers a window of the output.
    """
    shape = output_type.shape
    strides = [s.strides or broadcast_strides(s.type.shape, shape) for s in sources]
    simple = [_simple_read(s, own, output_type) for s, own in zip(sources, strides, strict=True)]
    dims, merged = merge_dimensions(shape, [strides_of(shape), *strides])
    # The output's own strides take part so that merged dimensions still number its elements in order.
    merged = merged[1:]
    whole_quads = any(r == "" for r in simple) and dims[-1] % QUAD == 0
    reads = [r or _strided_read(own, whole_quads) for r, own in zip(simple, merged, strict=True)]
    fields: list[tuple[str, UniformType, int | float]] = []
    bindings: list[Binding] = []
    indexed = any(r in ("quad", "repeat", "strided") for r in reads)
    if indexed:
        fields.extend((f"dim_{d}", "u32", n) for d, n in enumerate(dims))
        if whole_quads:
            fields.append(("row_quads", "u32", dims[-1] // QUAD))
    for i, (source, read, own) in enumerate(zip(sources, reads, merged, strict=True)):
        name = f"input{i}"
        bindings.append(Binding(name, "read", element_of(source.type.data_type, caps), quad=read in ("same", "suffix", "quad")))
        if read == "suffix":
            fields.append((f"{name}_quads", "u32", source.type.num_elements // QUAD))
        elif read in ("quad", "repeat", "strided"):
            fields.extend((f"{name}_stride_{d}", "u32", n) for d, n in enumerate(own))
    bindings.append(Binding("output", "write", element_of(output_type.data_type, caps), quad=True))
    fields += expression_uniforms
    placed = any(r not in ("same", "scalar") for r in reads)
    first: tuple[tuple[str, UniformType], ...] = (("first_quad", "u32"),) if placed else ()
    spec = ELEMENTWISE.spec(
        bindings,
        [("quads", "u32"), ("rounds", "u32"), *first, *((name, type_) for name, type_, _ in fields)],
        features=expression.features,
        expression=expression,
        rank=len(dims) if indexed else 0,
        reads=tuple(reads),
        whole_quads=whole_quads,
    )
    operands = [(s.value, s.type, read == "same") for s, read in zip(sources, reads, strict=True)]
    operands.append((output, output_type, True))
    calls: list[KernelCall] = []
    for start, count in _windows(output_type.num_elements, [t for _, t, moving in operands if moving], caps):
        launch, grid = quad_launch(count, caps)
        bound = tuple(
            _window(value, type_, start, count) if moving and count < output_type.num_elements else value
            for value, type_, moving in operands
        )
        values = (*(v for _, _, v in launch), *(start // QUAD for _ in first), *(v for _, _, v in fields))
        calls.append(KernelCall(spec, bound, values, grid, reason))
    return calls


def _windows(num_elements: int, moving: Sequence[TensorType], caps: Caps) -> list[tuple[int, int]]:
    """Return the (start, count) ranges of output elements that fit the binding limit; one range where all do.

    `moving` are the types of the tensors that are read or written at the output's own index.
    """
    limit = caps.limit("max-storage-buffer-binding-size")
    if all(padded_bytes(t.size_bytes) <= limit for t in moving):
        return [(0, num_elements)]
    widest = max(CONSTANT_TYPES[t.data_type].bits for t in moving)
    # Twice the offset alignment in elements, so that every type's window starts aligned, those of half a byte too.
    step = 2 * caps.limit("min-storage-buffer-offset-alignment")
    span = limit * 8 // widest // step * step
    return [(start, min(span, num_elements - start)) for start in range(0, num_elements, span)]


def _window(value: int, type_: TensorType, start: int, count: int) -> Window:
    offset, size = (byte_length(type_.data_type, n) for n in (start, count))
    return Window(value, offset, padded_bytes(size))


def _simple_read(source: Source, strides: tuple[int, ...], output: TensorType) -> str:
    if source.type.num_elements == 1:
        return "scalar"
    if strides == strides_of(output.shape) or (source.strides is None and source.type.num_elements == output.num_elements):
        return "same"
    suffix = source.type.shape
    while suffix and suffix[0] == 1:
        suffix = suffix[1:]
    is_suffix = source.strides is None and suffix == output.shape[len(output.shape) - len(suffix) :]
    return "suffix" if is_suffix and source.type.num_elements % QUAD == 0 else ""


def _strided_read(strides: tuple[int, ...], whole_quads: bool) -> str:
    if whole_quads and strides[-1] == 1 and all(s % QUAD == 0 for s in strides[:-1]):
        return "quad"
    return "repeat" if whole_quads and strides[-1] == 0 else "strided"
