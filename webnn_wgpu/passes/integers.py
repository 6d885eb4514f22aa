"""Products of quantized numbers: integers that floats hold as well are not stored as integers on their way."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TypeAlias

import numpy as np

from ..core.data_types import DATA_TYPES
from ..ir.graph import Array, Graph, Node
from ..ops.quantization import QUANTIZE_CENTRED, QUANTIZE_DEQUANTIZE
from .cleanup import drop_identities
from .rewriting import Rewriter, given, rewrite
from .views import MOVEMENTS

_Range: TypeAlias = tuple[float, float]
"""The least and the greatest of some whole numbers."""

_NARROW = ("int8", "uint8")

_MOST = 2.0**24
"""float32 tells all integers up to this apart."""

_AT_ONCE = 64
"""Columns of weights that are looked at together: that takes no copy of all of them."""


def keep_integers_as_floats(graph: Graph) -> Graph:
    """Take what was quantized less its zero point, and sums of its products, as the floats that they are computed in."""
    found = rewrite(rewrite(graph, _centred, _from_zero), _sums)
    return graph if found is graph else drop_identities(found)


def _centred(r: Rewriter, node: Node) -> bool:
    """Subtract the zero point where a value is quantized, of which nothing else is read."""
    if r.type(node.outputs[0]).data_type != "float32" or node.op not in ("cast", "sub"):
        return False
    cast = node if node.op == "cast" else r.made_for_one(node.operands[0], "cast")
    quantize = None if cast is None else r.made_for_one(cast.operands[0], "quantizeLinear")
    if cast is None or quantize is None or r.type(cast.operands[0]).data_type not in _NARROW:
        return False
    x, scale, zero = quantize.operands
    numbers = r.number(scale), r.number(zero)
    if r.type(scale).num_elements != 1 or r.type(x) != r.type(node.outputs[0]):
        return False
    if node is cast:
        subtracting = () if numbers[1] == 0 else None
    else:
        subtracting = _as_float(r, node.operands[1], zero)
    if subtracting is None:
        return False
    nodes = (quantize, cast, *subtracting, node)
    if numbers[0] is None or numbers[1] is None or not math.isfinite(numbers[0]):
        r.add(QUANTIZE_CENTRED, (x, scale, zero), {}, nodes, node.outputs[0])
        return True
    attrs = {"scale": numbers[0], "zero_point": int(numbers[1]), "scaled": False}
    attrs |= {"data_type": r.type(cast.operands[0]).data_type}
    r.add(QUANTIZE_DEQUANTIZE, (x,), attrs, nodes, node.outputs[0])
    return True


def _from_zero(r: Rewriter, node: Node) -> bool:
    """Leave floats out of which a zero point of 0 is taken as they are."""
    same = node.op == "sub" and r.type(node.operands[0]) == r.type(node.outputs[0])
    if not same or r.number(node.operands[1]) != 0 or r.made(node.operands[0], QUANTIZE_DEQUANTIZE, "cast") is None:
        return False
    r.add("identity", (node.operands[0],), {}, (node,), node.outputs[0])
    return True


def _as_float(r: Rewriter, value: int, zero: int) -> tuple[Node, ...] | None:
    """Return what makes a float of a zero point, which a value is; None if it is something else."""
    if (number := r.number(value)) is not None:
        return () if number == r.number(zero) else None
    source, views = _unviewed(r, value)
    cast = r.made(source, "cast")
    if cast is None:
        return None
    integer, before = _unviewed(r, cast.operands[0])
    return (*before, cast, *views) if integer == _unviewed(r, zero)[0] else None


def _unviewed(r: Rewriter, value: int) -> tuple[int, tuple[Node, ...]]:
    """Return what a value is a view of, and its views, the first first."""
    views: list[Node] = []
    while (view := r.made(value, "reshape")) is not None:
        value = view.operands[0]
        views.insert(0, view)
    return value, tuple(views)


def _sums(r: Rewriter, node: Node) -> bool:
    """Leave sums of products that are exact as they are, instead of making them integers, and floats again."""
    if node.op != "cast" or r.type(node.outputs[0]).data_type != "float32" or r.type(node.operands[0]).data_type != "int32":
        return False
    found = _as_floats(r, node.operands[0])
    if found is None:
        return False
    value, _, nodes = found
    r.add("identity", (value,), {}, (*nodes, node), node.outputs[0])
    return True


def _as_floats(r: Rewriter, value: int) -> tuple[int, _Range, tuple[Node, ...]] | None:
    """Return floats that are the same numbers as integers, their range, and what makes integers of them."""
    made = r.made(value, "cast", "add")
    if made is None:
        return None
    if made.op == "cast":
        (x,) = made.operands
        numbers = _range(r, x) if r.type(x).data_type == "float32" else None
        return (x, numbers, (made,)) if numbers is not None and _fits(numbers) else None
    for sums, addend in (made.operands, made.operands[::-1]):
        array = r.constants.get(addend)
        found = None if array is None or r.shape(sums) != r.shape(value) else _as_floats(r, sums)
        if array is None or found is None:
            continue
        x, (low, high), nodes = found
        numbers = low + float(array.min()), high + float(array.max())
        if _fits(numbers) and _fits((float(array.min()), float(array.max()))):
            nodes = (*nodes, made)
            return r.add("add", (x, r.constant(array.astype(np.float32), addend, "float32")), {}, nodes), numbers, nodes
    return None


def _fits(numbers: _Range) -> bool:
    return -_MOST < numbers[0] and numbers[1] < _MOST


def _range(r: Rewriter, value: int) -> _Range | None:
    """Return the range of floats that are whole numbers; None if they are not known to be, or may be anything."""
    if (array := r.constants.get(value)) is not None:
        whole = array.size > 0 and bool(np.all(np.isfinite(array)) and np.all(array == np.rint(array)))
        return (float(array.min()), float(array.max())) if whole else None
    node = r.made(value, *MOVEMENTS, "pad", "cast", "sub", QUANTIZE_CENTRED, QUANTIZE_DEQUANTIZE, "matmul", "conv2d")
    if node is None:
        return None
    match node.op:
        case "cast":
            type_ = r.type(node.operands[0]).data_type
            limits = DATA_TYPES[type_].limits if type_ in _NARROW else None
            return None if limits is None else (float(limits[0]), float(limits[1]))
        case "sub":
            a, b = (_range(r, operand) for operand in node.operands)
            return None if a is None or b is None else (a[0] - b[1], a[1] - b[0])
        case "pad":
            padding = node.attrs["mode"] != "constant" or node.attrs["value"] == 0
            return _with_zero(_range(r, node.operands[0])) if padding else None
        case "matmul" | "conv2d":
            return _range_of_sums(r, node)
        case _ if node.op == QUANTIZE_CENTRED:
            low, high = DATA_TYPES[r.type(node.operands[2]).data_type].limits
            return float(low - high), float(high - low)
        case _ if node.op == QUANTIZE_DEQUANTIZE:
            low, high = DATA_TYPES[node.attrs["data_type"]].limits
            zero = node.attrs["zero_point"]
            return None if node.attrs["scaled"] else (float(low - zero), float(high - zero))
        case _:
            return _range(r, node.operands[0])


def _with_zero(numbers: _Range | None) -> _Range | None:
    return None if numbers is None else (min(numbers[0], 0.0), max(numbers[1], 0.0))


def _range_of_sums(r: Rewriter, node: Node) -> _Range | None:
    """Return the range of sums of products of whole numbers, all of which are exact if it is small enough."""
    x, weights = node.operands[:2]
    numbers, shape = _range(r, x), r.shape(weights)
    if numbers is None or given(node, 2) is not None or len(shape) < 2:
        return None
    kept = len(shape) - 1 if node.op == "matmul" else int(node.attrs["filter_layout"].index("o"))
    reduced = (kept - 1,) if node.op == "matmul" else tuple(d for d in range(len(shape)) if d != kept)
    if (array := r.constants.get(weights)) is not None:
        most = _most(array, kept, reduced)
    else:
        other = _range(r, weights)
        most = math.inf if other is None else math.prod(shape[d] for d in reduced) * max(map(abs, other))
    most *= max(map(abs, numbers))
    return (-most, most) if math.isfinite(most) else None


def _most(array: Array, kept: int, reduced: tuple[int, ...]) -> float:
    """Return the most that magnitudes of whole numbers add up to along dimensions; infinity if they are not whole."""
    most = 0.0
    for columns in _columns(array, kept):
        if not np.array_equal(columns, np.rint(columns)):
            return math.inf
        most = max(most, float(np.abs(columns).sum(reduced).max()))
    return most


def _columns(array: Array, kept: int) -> Iterator[Array]:
    for first in range(0, array.shape[kept], _AT_ONCE):
        yield array[(*(slice(None) for _ in range(kept)), slice(first, first + _AT_ONCE))]
