"""Padding: a constant, the nearest edge element, or the tensor mirrored."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ..core.data_types import DATA_TYPES, cast_number
from ..kernels.element import QUAD, bits_of
from ..kernels.spec import Binding, Interval, KernelCall, KernelTemplate, UniformType
from ..kernels.windows import span
from ._attrs import Attr
from ._def import Lowering, OpCall, OpDef, Operand
from ._quads import quad_launch, quad_work
from ._shapes import strides_of
from ._strided_copy import STRIDED, copy_call
from ._units import units_of
from .gradients import movement as movement_gradients
from .interfaces.bounds import EXACT
from .interfaces.cost import MOVED
from .interfaces.documentation import MOVEMENT, Documentation, Method, Parameter
from .interfaces.family import Family
from .interfaces.layout import dimensions
from .interfaces.movement import MOVES

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..ir.graph import Array, Attrs
    from ..ir.types import TensorType

PADDING = KernelTemplate("pad", ("mode", "rank", "read"))

MODES = ("constant", "edge", "reflection", "symmetric")


def _infer(call: OpCall) -> tuple[TensorType, ...]:
    x, mode = call.input(), call.attrs["mode"]
    begins, ends = call.attrs["beginning_padding"], call.attrs["ending_padding"]
    for name, items in (("beginning_padding", begins), ("ending_padding", ends)):
        call.require(
            len(items) == x.rank,
            f"{name} must have one item per dimension",
            got=f"{name}={list(items)}, input {x}",
            allowed=f"{x.rank} items",
        )
        if mode != "reflection":
            continue
        for d, (n, dim) in enumerate(zip(items, x.shape, strict=True)):
            call.require(
                n < dim,
                f"{name}[{d}] must be < input.shape[{d}] in reflection mode",
                got=f"{name}={list(items)}, input {x}",
                allowed=f"0..{dim - 1}",
            )
    call.attrs["value"] = cast_number(call.attrs["value"], x.data_type)
    return (call.output(x.data_type, [b + n + e for b, n, e in zip(begins, x.shape, ends, strict=True)]),)


def _source_indices(begin: int, size: int, end: int, mode: str) -> Array:
    i = np.arange(-begin, size + end)
    if mode == "edge":
        return np.clip(i, 0, size - 1)
    if mode == "reflection":
        return np.abs((size - 1) - np.abs((size - 1) - i))
    i = i % (2 * size)
    return np.minimum(i, 2 * size - 1 - i)


def _reference(arrays: Sequence[Array | None], attrs: Attrs, out: tuple[TensorType, ...]) -> list[Array]:
    x, mode = arrays[0], attrs["mode"]
    assert x is not None
    begins, ends = attrs["beginning_padding"], attrs["ending_padding"]
    if mode == "constant":
        padded = np.full(out[0].shape, attrs["value"], out[0].numpy)
        padded[tuple(slice(b, b + n) for b, n in zip(begins, x.shape, strict=True))] = x
        return [padded]
    for d, (b, n, e) in enumerate(zip(begins, x.shape, ends, strict=True)):
        x = np.take(x, _source_indices(b, n, e, mode), axis=d)
    return [x]


def _merge(begins: Sequence[int], shape: Sequence[int], ends: Sequence[int], mode: str) -> list[tuple[int, int, int]]:
    """Return the dimensions as (begin, size, end), without those that have one element before and after.

    A dimension without padding merges into its outer neighbor if that has no padding either. In mode "constant" the neighbor
    may have padding, because the constant is the same at every position.
    """
    dims: list[tuple[int, int, int]] = []
    for b, n, e in zip(begins, shape, ends, strict=True):
        if b + n + e == 1:
            continue
        if dims and b == e == 0 and (mode == "constant" or dims[-1][0] == dims[-1][2] == 0):
            outer = dims[-1]
            dims[-1] = (outer[0] * n, outer[1] * n, outer[2] * n)
        else:
            dims.append((b, n, e))
    return dims


def _lower(low: Lowering) -> list[KernelCall]:
    x, mode = low.input(), low.attrs["mode"]
    dims = _merge(low.attrs["beginning_padding"], x.shape, low.attrs["ending_padding"], mode)
    if all(b == e == 0 for b, _, e in dims):
        return [copy_call(low.value(0), x, low.node.outputs[0], low.target)]
    begin, size, end = dims[-1]
    element, read = bits_of(x.data_type), "strided"
    # Runs along the innermost dimension stay whole if it is not mirrored within.
    if mode == "constant" or begin == end == 0:
        units = units_of(x.data_type, dims[-1])
        if units.quad:
            begin, size, end = units.lengths
            element, read = units.element, "quad"
            dims[-1] = begin, size, end
    if read == "strided" and (begin + size + end) % QUAD == 0:
        read = "row"
    rank = len(dims)
    strides = strides_of([n for _, n, _ in dims])
    outputs = [b + n + e for b, n, e in dims]
    num_units = outputs[0] * strides_of(outputs)[0]
    launch, grid = quad_launch(num_units * (QUAD if read == "quad" else 1), low.target)
    fields: list[tuple[str, UniformType, int]] = [*launch]
    if mode == "constant":
        fields.extend((f"value_{i}", "u32", word) for i, word in enumerate(_pattern(low.attrs["value"], x)))
    for d, (b, n, _) in enumerate(dims):
        fields.extend(((f"begin_{d}", "u32", b), (f"input_{d}", "u32", n)))
        fields.extend(((f"output_{d}", "u32", outputs[d]), (f"stride_{d}", "u32", strides[d])))
    spec = PADDING.spec(
        [
            Binding(name="input", access="read", element=element, quad=read == "quad"),
            Binding(name="output", access="write", element=element, quad=True),
        ],
        [(name, type_) for name, type_, _ in fields],
        mode=mode,
        rank=rank,
        read=read,
    )
    operands = (low.value(0), low.node.outputs[0])
    # Elements of the output per position of `dims`.
    width = QUAD if read == "quad" else 1

    def reach(first: int, end: int) -> list[Interval]:
        least, past = span(outputs, lambda d, a, b: _extent(dims[d], strides[d], mode, a, b), first // width, -(-end // width))
        return [(least * width, past * width), (first, end)]

    num_elements = num_units * width
    work = quad_work(num_elements, low.target, reach, moved=[0])
    return [
        KernelCall(
            spec=spec,
            operands=operands,
            uniforms=tuple(v for _, _, v in fields),
            grid=grid,
            reason=f"{mode} padding, read {read}",
            work=work,
        )
    ]


def _extent(dim: tuple[int, int, int], stride: int, mode: str, low: int, high: int) -> Interval:
    """Return the least and greatest offset in the input that coordinates low..high of a padded dimension lead to."""
    begin, size, _ = dim
    if low < begin or high >= begin + size:
        if mode not in ("constant", "edge"):
            return 0, (size - 1) * stride
    low, high = (max(0, min(size - 1, i - begin)) for i in (low, high))
    return low * stride, high * stride


def _pattern(value: float | int, type_: TensorType) -> tuple[int, int]:
    """Return two words filled with the bits of `value`."""
    one = np.array(value, DATA_TYPES[type_.data_type].numpy).tobytes()
    words = np.frombuffer(one * (8 // len(one)), np.uint32)
    return int(words[0]), int(words[1])


PAD = OpDef(
    name="pad",
    operands=(Operand(name="input"),),
    infer=_infer,
    reference=_reference,
    lower=_lower,
    attrs=(
        Attr("beginning_padding", "uints"),
        Attr("ending_padding", "uints"),
        Attr("mode", "enum", "constant", MODES),
        Attr("value", "number", 0),
    ),
    templates=(PADDING, STRIDED),
    spec="#api-mlgraphbuilder-pad",
    family=Family.MOVEMENT,
    without=("elementwise", "epilogue", "precision"),
    movement=MOVES,
    layout=dimensions(items=("beginning_padding", "ending_padding")),
    cost=MOVED,
    bounds=EXACT,
    copies=True,
    documentation=Documentation(
        group=MOVEMENT,
        summary="Add elements before and after the input along each dimension.",
        arguments={
            "input": "{types}, with any shape.",
            "beginning_padding": (
                "Number of elements to add before the input, for each dimension. Without `ending_padding`, the numbers for "
                "the end follow in the same list, which may then be given as `padding=`."
            ),
            "ending_padding": (
                "Number of elements to add after the input, for each dimension. A string here is the mode, as in pywebnn."
            ),
            "mode": (
                '"constant", "edge" (repeats the last element), "reflection" (mirrors without the last element) or '
                '"symmetric" (mirrors with the last element, a mode of the 2024 text).'
            ),
            "value": 'The added element for "constant". It is cast to the input\'s data type.',
        },
        returns="An operand with the input's data type and the larger shape.",
        raises=(
            "A list does not have one item per dimension, there is more padding than reflection allows, the mode is unknown"
        ),
        example="""
            >>> b.pad(x, [0, 1], [0, 2], value=-1).shape
            (2, 6)
            >>> b.pad(x, padding=[0, 1, 0, 2]).shape
            (2, 6)
        """,
        method=Method(
            parameters=(
                Parameter(
                    "ending_padding", 'Sequence[int] | Literal["constant", "edge", "reflection", "symmetric"] | None', "None"
                ),
            ),
            optional=("ending_padding",),
            aliases={"padding": "beginning_padding"},
            pywebnn=("value",),
            through="_pad",
        ),
    ),
    gradient=movement_gradients.pad,
)

OPS = (PAD,)
