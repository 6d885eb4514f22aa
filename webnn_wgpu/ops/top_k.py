"""Extension operator: the largest or smallest elements along a dimension, in order, and where they are.

Places in the row are sorted instead of elements. Blocks of some hundred are sorted first, each place counting those before it,
and lose what cannot be among the k; so long as several of the runs that are left fit a block they are sorted so again. Longer
runs are merged two by two: n log(n)^2 steps for all of a row.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np

from ..core.data_types import ANY
from ..ir.graph import Array, Attrs
from ..ir.types import TensorType
from ..kernels.element import bits_of, element_of
from ..kernels.spec import Binding, KernelCall, KernelTemplate, Temp, UniformType, grid_1d
from ..kernels.spec import Operand as Resource
from ._attrs import Attr
from ._def import Call, Lowering, OpDef, Operand
from ._quads import WORKGROUP, quad_launch

TOP_K = KernelTemplate("top_k", ("step", "largest"))

BLOCK = 256
"""Most places that are sorted by counting: about as many steps as the merges of a million places take."""


def signed_axis(call: Call, rank: int) -> int:
    """Return the option `axis`, counted from the end where it is negative, and make it canonical."""
    axis: int = call.attrs["axis"]
    if axis < -rank:
        raise call.fail("axis must be a dimension of input", got=f"axis={axis}", allowed=f"{-rank}..{rank - 1}")
    axis = call.attrs["axis"] = call.axis(axis + rank if axis < 0 else axis, rank)
    return axis


def _infer(call: Call) -> tuple[TensorType, ...]:
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


class _Sorting:
    """The calls that sort the rows of one node, while they are made."""

    def __init__(self, low: Lowering) -> None:
        self.low = low
        x = low.input()
        axis: int = low.attrs["axis"]
        self.k: int = low.attrs["k"]
        self.row = self.length = x.shape[axis]
        self.inner = math.prod(x.shape[axis + 1 :])
        self.rows = x.num_elements // self.row
        self.order: Temp | None = None
        self.calls: list[KernelCall] = []

    def sort(self) -> Temp:
        """Add all steps and return the places of the first k elements of every row, in order."""
        self._step("count", BLOCK, min(self.k, BLOCK), {"block": BLOCK})
        run = min(self.k, BLOCK)
        while self.length > run:
            # Runs are shorter than a block only where k is: they keep their length then.
            together = BLOCK // run
            if together > 1:
                self._step("count", together * run, run, {"block": together * run})
            else:
                kept = min(self.k, 2 * run)
                self._step("merge", 2 * run, kept, {"run": run})
                run = kept
        assert self.order is not None
        return self.order

    def take(self) -> KernelCall:
        """Return the call that moves the elements that were found."""
        low, values = self.low, self.low.output()
        launch, grid = quad_launch(values.num_elements, low.caps)
        fields = [*launch, ("inner", "u32", self.inner), ("kept", "u32", self.k), ("length", "u32", self.row)]
        assert self.order is not None
        bindings = [
            Binding("input", "read", bits_of(values.data_type)),
            Binding("order", "read", "uint32"),
            Binding("values", "write", bits_of(values.data_type), quad=True),
            Binding("indices", "write", bits_of(low.output(1).data_type), quad=True),
        ]
        operands = (low.value(0), self.order, *low.node.outputs)
        spec = TOP_K.spec(bindings, [(name, "u32") for name, *_ in fields], step="take", largest=True)
        return KernelCall(spec, operands, tuple(v for *_, v in fields), grid, f"{self.k} of {self.row}")

    def _step(self, step: str, block: int, kept: int, own: Mapping[str, int]) -> None:
        """Add a step that makes a run of `kept` places of every block."""
        low = self.low
        blocks = -(-self.length // block)
        left = (blocks - 1) * kept + min(kept, self.length - (blocks - 1) * block)
        count = self.rows * self.length
        result = Temp(f"order {len(self.calls)}", 4 * self.rows * left)
        bindings: list[tuple[Binding, Resource]] = [
            (Binding("input", "read", element_of(low.input().data_type, low.caps)), low.value(0))
        ]
        if self.order is not None:
            bindings.append((Binding("order", "read", "uint32"), self.order))
        bindings.append((Binding("result", "write", "uint32"), result))
        fields: dict[str, int] = {
            "count": count,
            "inner": self.inner,
            "row": self.row,
            "length": self.length,
            "kept": kept,
            "left": left,
            **own,
        }
        types: list[tuple[str, UniformType]] = [(name, "u32") for name in fields]
        spec = TOP_K.spec([b for b, _ in bindings], types, step=step, largest=low.attrs["largest"])
        grid = grid_1d(-(-count // WORKGROUP), low.caps)
        reason = f"{self.length} places into runs of {kept}"
        self.calls.append(KernelCall(spec, tuple(r for _, r in bindings), tuple(fields.values()), grid, reason))
        self.order, self.length = result, left


def _lower(low: Lowering) -> list[KernelCall]:
    sorting = _Sorting(low)
    sorting.sort()
    return [*sorting.calls, sorting.take()]


OPS = (
    OpDef(
        "x.top_k",
        (Operand("input", min_rank=1),),
        _infer,
        _reference,
        _lower,
        attrs=(
            Attr("k", "uint"),
            Attr("axis", "int", -1),
            Attr("largest", "bool", True),
            Attr("sorted", "bool", True),
            Attr("indices_data_type", "data_type", "int64", ("int32", "int64")),
        ),
        templates=(TOP_K,),
        outputs=("values", "indices"),
        output_types=ANY,
        tolerance=0,
    ),
)
