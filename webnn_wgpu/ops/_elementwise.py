"""Lowering of element-wise formulas, single or fused: the way of reading each input, and the kernel call."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ..costs import Target
from ..ir.types import TensorType
from ..kernels.element import QUAD, element_of, padded_bytes
from ..kernels.expression import Expression
from ..kernels.spec import Binding, Interval, KernelCall, KernelTemplate, Operand, Temp, UniformType
from ..kernels.windows import repeated, strided_span
from ._quads import quad_launch, quad_work, reads_octets
from ._shapes import broadcast_strides, merge_dimensions, strides_of
from ._strided_copy import strided_call

ELEMENTWISE = KernelTemplate("elementwise", ("expression", "rank", "reads", "whole_quads", "octets"))

_MANY = 1 << 16
"""Elements from which on a kernel for pairs of quads saves more time than it takes to compile."""


@dataclass(frozen=True)
class Source:
    """One input of an element-wise kernel: its value, type, and strides over the output's dimensions (None: broadcast)."""

    value: Operand
    type: TensorType
    strides: tuple[int, ...] | None = None


def elementwise_call(
    expression: Expression,
    expression_uniforms: Sequence[tuple[str, UniformType, int | float]],
    sources: Sequence[Source],
    output: Operand,
    output_type: TensorType,
    target: Target,
    reason: str = "",
    others: Sequence[tuple[Operand, TensorType]] = (),
) -> list[KernelCall]:
    """Return the kernel calls that compute `expression` of `sources` for every element of the output.

    There is one call, unless a source must first be repeated in memory (see `_spread`). `others` are the results, of the shape
    of the output, that the other values of the expression are.
    """
    shape = output_type.shape
    strides = [s.strides or broadcast_strides(s.type.shape, shape) for s in sources]
    simple = [_simple_read(s, own, output_type) for s, own in zip(sources, strides, strict=True)]
    dims, merged = merge_dimensions(shape, [strides_of(shape), *strides])
    # The output's own strides take part in the merge, so that merged dimensions still number its elements in order.
    merged = merged[1:]
    whole_quads = any(r == "" for r in simple) and dims[-1] % QUAD == 0
    reads = [r or _strided_read(own, whole_quads) for r, own in zip(simple, merged, strict=True)]
    caps = target.caps
    limit = caps.limit("max-storage-buffer-binding-size")
    for i, (source, read) in enumerate(zip(sources, reads, strict=True)):
        if read == "strided" and not whole_quads and padded_bytes(source.type.size_bytes) > limit:
            spread, call = _spread(i, source, strides[i], shape, target)
            rest = [*sources[:i], spread, *sources[i + 1 :]]
            return [call, *elementwise_call(expression, expression_uniforms, rest, output, output_type, target, reason, others)]
    types = [
        output_type,
        *(type_ for _, type_ in others),
        *(s.type for s, read in zip(sources, reads, strict=True) if read != "scalar"),
    ]
    octets = set(reads) <= {"same", "own", "scalar"} and reads_octets(types, target) and output_type.num_elements >= _MANY
    words = 4 if octets else 0
    fields: list[tuple[str, UniformType, int | float]] = []
    bindings: list[Binding] = []
    indexed = any(r in ("quad", "repeat", "strided") for r in reads)
    if indexed:
        fields.extend((f"dim_{d}", "u32", n) for d, n in enumerate(dims))
        if whole_quads:
            fields.append(("row_quads", "u32", dims[-1] // QUAD))
    for i, (source, read, own) in enumerate(zip(sources, reads, merged, strict=True)):
        name = f"input{i}"
        bindings.append(
            Binding(
                name=name,
                access="read",
                element=element_of(source.type.data_type, caps),
                quad=read in ("same", "suffix", "quad"),
                words=words if read == "same" else 0,
            )
        )
        if read == "suffix":
            fields.append((f"{name}_quads", "u32", source.type.num_elements // QUAD))
        elif read in ("quad", "repeat", "strided"):
            fields.extend((f"{name}_stride_{d}", "u32", n) for d, n in enumerate(own))
    results = [*((f"output{i}", type_) for i, (_, type_) in enumerate(others, 1)), ("output", output_type)]
    bindings += [
        Binding(name=name, access="write", element=element_of(type_.data_type, caps), quad=True, words=words)
        for name, type_ in results
    ]
    fields += expression_uniforms
    launch, grid = quad_launch(output_type.num_elements // (2 if octets else 1), target)
    fields = [*launch, *fields]
    spec = ELEMENTWISE.spec(
        bindings,
        [(name, type_) for name, type_, _ in fields],
        features=expression.features,
        expression=expression,
        rank=len(dims) if indexed else 0,
        reads=tuple(reads),
        whole_quads=whole_quads,
        octets=octets,
    )
    operands = (*(s.value for s in sources), *(value for value, _ in others), output)

    def reach(first: int, end: int) -> list[Interval | None]:
        found = zip(sources, reads, merged, strict=True)
        return [*(_touched(r, s.type, dims, own, first, end) for s, r, own in found), *[(first, end)] * len(results)]

    work = None if octets else quad_work(output_type.num_elements, target, reach)
    return [
        KernelCall(spec=spec, operands=operands, uniforms=tuple(v for _, _, v in fields), grid=grid, reason=reason, work=work)
    ]


def _spread(
    index: int, source: Source, strides: Sequence[int], shape: tuple[int, ...], target: Target
) -> tuple[Source, KernelCall]:
    """Return a source repeated to the output's shape, and the call that repeats it.

    The kernel binds windows of a source larger than a binding, but a quad across the end of a row may touch both ends of it.
    """
    type_ = TensorType(source.type.data_type, shape)
    temp = Temp(f"source {index}", type_.size_bytes)
    return Source(temp, type_), strided_call(source.value, type_.data_type, 0, shape, strides, temp, target, "spread out")


def _touched(
    read: str, type_: TensorType, dims: Sequence[int], strides: Sequence[int], first: int, end: int
) -> Interval | None:
    """Return the elements of a source that the output elements first..end-1 touch. `read` is the way of reading."""
    if read in ("same", "scalar"):
        return (first, end) if read == "same" else None
    return repeated(type_.num_elements, first, end) if read == "suffix" else strided_span(dims, strides, first, end)


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
