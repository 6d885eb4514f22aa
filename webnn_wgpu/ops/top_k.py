"""Extension operator: the largest or smallest elements along a dimension, in order, and their indices.

Kernels sort indices in the row instead of elements. They first sort blocks of `BLOCK` indices, in which each index counts those
before it, and drop the indices that cannot be among the k. They repeat this while several of the runs fit a block. They merge
longer runs two by two, which takes n log(n)^2 steps for a whole row.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from ..core.caps import Caps
from ..core.data_types import ANY
from ..ir.graph import Array, Attrs
from ..ir.types import TensorType
from ..kernels.element import bits_of, element_of
from ..kernels.spec import Binding, KernelCall, KernelTemplate, Temp, UniformType, grid_1d
from ..kernels.spec import Operand as Resource
from ._attrs import Attr
from ._def import Lowering, OpCall, OpDef, Operand
from ._quads import WORKGROUP, quad_launch
from .gradients import indexing as indexing_gradients
from .interfaces.bounds import EXACT
from .interfaces.cost import per_element
from .interfaces.documentation import SORTING_EXTENSIONS, Documentation
from .interfaces.family import Family

TOP_K = KernelTemplate("top_k", ("step", "largest"))

BLOCK = 256
"""Most places that are sorted by counting: about as many steps as the merges of a million places take."""


def signed_axis(call: OpCall, rank: int) -> int:
    """Return the option `axis`, counted from the end where it is negative, and make it canonical."""
    axis: int = call.attrs["axis"]
    if axis < -rank:
        raise call.fail("axis must be a dimension of input", got=f"axis={axis}", allowed=f"{-rank}..{rank - 1}")
    axis = call.attrs["axis"] = call.axis(axis + rank if axis < 0 else axis, rank)
    return axis


def _infer(call: OpCall) -> tuple[TensorType, ...]:
    x = call.input()
    axis = signed_axis(call, x.rank)
    k: int = call.attrs["k"]
    call.require(
        1 <= k <= x.shape[axis], "k must be a number of elements along axis", got=f"k={k}", allowed=f"1..{x.shape[axis]}"
    )
    shape = (*x.shape[:axis], k, *x.shape[axis + 1 :])
    return (call.output(x.data_type, shape), call.output(call.attrs["indices_data_type"], shape))


def _keys(x: Array) -> Array:
    """Return integers of the order of the elements: NaN is the largest float, and both zeros are one."""
    if x.dtype.kind != "f":
        return x
    bits = (x.astype(np.float64) + 0.0).view(np.int64)
    return np.where(np.isnan(x), np.iinfo(np.int64).max, bits ^ ((bits >> 63) & np.iinfo(np.int64).max))


def _reference(arrays: Sequence[Array | None], attrs: Attrs, out: tuple[TensorType, ...]) -> list[Array]:
    x = arrays[0]
    assert x is not None
    axis = attrs["axis"]
    keys = _keys(x)
    order = np.argsort(~keys if attrs["largest"] else keys, axis, kind="stable").take(range(attrs["k"]), axis)
    return [np.take_along_axis(x, order, axis), order.astype(out[1].numpy)]


@dataclass(frozen=True, kw_only=True)
class SortedRows:
    """The rows that kernels sort.

    Attributes:
        source: the operand that holds the rows.
        element: the name of its element kind.
        count: the number of rows.
        length: the number of elements in a row.
        inner: the stride from one element of a row to the next.
    """

    source: Resource
    element: str
    count: int
    length: int
    inner: int = 1


def sorting_calls(rows: SortedRows, k: int, largest: bool, caps: Caps) -> tuple[list[KernelCall], Temp]:
    """Return calls that sort rows, and where they leave the places of the first k elements of each row: uint32[count, k].

    Args:
        rows: the rows.
        k: how many elements of each are wanted.
        largest: whether the largest come first.
        caps: the device.
    """
    calls: list[KernelCall] = []
    run = min(k, BLOCK)
    length, order = _step(calls, rows, rows.length, None, ("count", BLOCK, run), {"block": BLOCK}, largest, caps)
    while length > run:
        # Runs are shorter than a block only where k is: they keep their length then.
        together = BLOCK // run
        if together > 1:
            how, own = ("count", together * run, run), {"block": together * run}
        else:
            how, own = ("merge", 2 * run, min(k, 2 * run)), {"run": run}
        run = how[2]
        length, order = _step(calls, rows, length, order, how, own, largest, caps)
    return calls, order


def _step(
    calls: list[KernelCall],
    rows: SortedRows,
    length: int,
    order: Temp | None,
    how: tuple[str, int, int],
    own: Mapping[str, int],
    largest: bool,
    caps: Caps,
) -> tuple[int, Temp]:
    """Add a step that reduces every block to a run of its first places. Return the places left in a row, and their memory."""
    step, block, kept = how
    blocks = -(-length // block)
    left = (blocks - 1) * kept + min(kept, length - (blocks - 1) * block)
    result = Temp(f"order {len(calls)}", 4 * rows.count * left)
    bindings: list[tuple[Binding, Resource]] = [(Binding(name="input", access="read", element=rows.element), rows.source)]
    if order is not None:
        bindings.append((Binding(name="order", access="read", element="uint32"), order))
    bindings.append((Binding(name="result", access="write", element="uint32"), result))
    count = rows.count * length
    sizes = {"count": count, "inner": rows.inner, "row": rows.length, "length": length, "kept": kept, "left": left, **own}
    types: list[tuple[str, UniformType]] = [(name, "u32") for name in sizes]
    spec = TOP_K.spec([b for b, _ in bindings], types, step=step, largest=largest)
    grid = grid_1d(-(-count // WORKGROUP), caps)
    reason = f"{length} places into runs of {kept}"
    calls.append(
        KernelCall(spec=spec, operands=tuple(r for _, r in bindings), uniforms=tuple(sizes.values()), grid=grid, reason=reason)
    )
    return left, result


def _lower(low: Lowering) -> list[KernelCall]:
    x, values = low.input(), low.output()
    axis: int = low.attrs["axis"]
    k: int = low.attrs["k"]
    length, inner = x.shape[axis], math.prod(x.shape[axis + 1 :])
    rows = SortedRows(
        source=low.value(0),
        element=element_of(x.data_type, low.caps),
        count=x.num_elements // length,
        length=length,
        inner=inner,
    )
    calls, order = sorting_calls(rows, k, low.attrs["largest"], low.caps)
    launch, grid = quad_launch(values.num_elements, low.target)
    fields = [*launch, ("inner", "u32", inner), ("kept", "u32", k), ("length", "u32", length)]
    bindings = [
        Binding(name="input", access="read", element=bits_of(values.data_type)),
        Binding(name="order", access="read", element="uint32"),
        Binding(name="values", access="write", element=bits_of(values.data_type), quad=True),
        Binding(name="indices", access="write", element=bits_of(low.output(1).data_type), quad=True),
    ]
    operands = (low.value(0), order, *low.node.outputs)
    spec = TOP_K.spec(bindings, [(name, "u32") for name, *_ in fields], step="take", largest=True)
    return [
        *calls,
        KernelCall(spec=spec, operands=operands, uniforms=tuple(v for *_, v in fields), grid=grid, reason=f"{k} of {length}"),
    ]


OPS = (
    OpDef(
        name="x.top_k",
        operands=(Operand(name="input", min_rank=1),),
        infer=_infer,
        reference=_reference,
        lower=_lower,
        attrs=(
            Attr("k", "uint"),
            Attr("axis", "int", -1),
            Attr("largest", "bool", True),
            Attr("sorted", "bool", True),
            Attr("indices_data_type", "data_type", "int64", ("int32", "int64")),
        ),
        templates=(TOP_K,),
        outputs=("values", "indices"),
        family=Family.REDUCTION,
        without=("elementwise", "epilogue", "movement", "layout", "precision"),
        cost=per_element(),
        bounds=EXACT,
        output_types=ANY,
        documentation=Documentation(
            group=SORTING_EXTENSIONS,
            summary="The k largest or smallest elements along a dimension, and their positions.",
            details="If k is the size of the dimension, this sorts it.",
            arguments={
                "input": "{types}, with rank 1 to 8.",
                "k": "Number of elements, 1 to the size of the dimension.",
                "axis": "The dimension. Negative numbers count from the last.",
                "largest": "Whether the largest elements are taken instead of the smallest.",
                "sorted": "Whether the results must be in order, the largest or the smallest first. They are in any case.",
                "indices_data_type": '"int64" or "int32".',
            },
            returns=(
                "The values, with the input's data type, and their indices along `axis`. Both have the input's shape with "
                "k in place of the dimension's size."
            ),
            raises="k or the axis is out of range, a data type is not allowed",
            numerics=(
                "The order is that of numpy's stable sort. Of equal elements, the one with the lowest index comes first. "
                "Both zeros are equal, and NaN counts as larger than all numbers."
            ),
            example="""
                >>> values, indices = b.ext.top_k(x, 2)
                >>> values, indices
                (MLOperand(float32[2, 2]), MLOperand(int64[2, 2]))
            """,
        ),
        gradient=indexing_gradients.top_k,
    ),
)
