"""Products of quantized numbers: integers that floats hold as well are not stored as integers on their way."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TypeAlias

import numpy as np

from ..core.data_types import DATA_TYPES
from ..ir.graph import Array, Graph, Node
from ..ops.cast import CAST
from ..ops.conv2d import CONV2D
from ..ops.elementwise import ADD, MUL, SUB
from ..ops.matmul import MATMUL
from ..ops.pad import PAD
from ..ops.quantization import DEQUANTIZE_LINEAR, QUANTIZE_CENTERED, QUANTIZE_DEQUANTIZE, QUANTIZE_LINEAR
from ..ops.views import IDENTITY, RESHAPE
from .cleanup import drop_identities
from .rewriting import Rewriter, given, rewrite
from .views import MOVEMENTS

_Range: TypeAlias = tuple[float, float]
"""The least and the greatest of some whole numbers."""

_NARROW = ("int8", "uint8")

_MOST = 2.0**24
"""The limit below which float32 represents all integers exactly."""

_AT_ONCE = 64
"""The number of columns of weights that are examined together, so that no copy of all of them is needed."""


def keep_integers_as_floats(graph: Graph) -> Graph:
    """Keep centered quantized values, and the sums of their products, as the floats in which they are computed."""
    centered = rewrite(graph, _centered, _for_all, _from_zero, at=(CAST.name, SUB.name, DEQUANTIZE_LINEAR.name))
    found = rewrite(centered, _sums, at=(CAST.name,))
    return graph if found is graph else drop_identities(found)


def _centered(r: Rewriter, node: Node) -> bool:
    """Subtract the zero point in the quantization, if the quantized value has no other consumer."""
    if r.type(node.outputs[0]).data_type != "float32" or node.op not in (CAST.name, SUB.name):
        return False
    cast = node if node.op == CAST.name else r.made_for_one(node.operands[0], CAST.name)
    quantize = None if cast is None else r.made_for_one(cast.operands[0], QUANTIZE_LINEAR.name)
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
        r.add(QUANTIZE_CENTERED.name, (x, scale, zero), {}, nodes, node.outputs[0])
        return True
    attrs = {"scale": numbers[0], "zero_point": int(numbers[1]), "scaled": False}
    attrs |= {"data_type": r.type(cast.operands[0]).data_type}
    r.add(QUANTIZE_DEQUANTIZE.name, (x,), attrs, nodes, node.outputs[0])
    return True


def _for_all(r: Rewriter, node: Node) -> bool:
    """Subtract the zero point in the quantization, if all consumers of the quantized value subtract it."""
    if node.op not in (CAST.name, SUB.name, DEQUANTIZE_LINEAR.name) or r.type(node.outputs[0]).data_type != "float32":
        return False
    cast = r.made(node.operands[0], CAST.name) if node.op == SUB.name else None
    quantize = r.made(cast.operands[0] if cast is not None else node.operands[0], QUANTIZE_LINEAR.name)
    if quantize is None or not _is_read_centered(r, quantize):
        return False
    scale, zero = (r.number(value) for value in quantize.operands[1:])
    assert zero is not None
    if node.op == CAST.name and zero:
        return False  # The subtractions that read it are replaced.
    nodes = (quantize, node) if cast is None else (quantize, cast, node)
    key = QUANTIZE_DEQUANTIZE.name, quantize.outputs[0]
    if key not in r.remembered:
        attrs = {"scale": scale, "zero_point": int(zero), "scaled": False, "data_type": r.type(quantize.outputs[0]).data_type}
        r.remembered[key] = r.add(QUANTIZE_DEQUANTIZE.name, quantize.operands[:1], attrs, nodes[:1])
    if node.op == DEQUANTIZE_LINEAR.name:
        r.add(MUL.name, (r.remembered[key], node.operands[1]), {}, nodes, node.outputs[0])
    else:
        r.add(IDENTITY.name, (r.remembered[key],), {}, nodes, node.outputs[0])
    return True


def _is_read_centered(r: Rewriter, quantize: Node) -> bool:
    """Return whether all nodes that read a quantized value subtract the zero point and compute in float32."""
    x, scale, zero = quantize.operands
    value = quantize.outputs[0]
    numbers, readers = (r.number(scale), r.number(zero)), r.readers(value)
    if numbers[0] is None or numbers[1] is None or not math.isfinite(numbers[0]) or r.type(x).data_type != "float32":
        return False
    inner = r.type(value).data_type in _NARROW and r.inner(value, len(readers))
    return inner and all(_subtracts(r, reader, numbers[1]) for reader in readers)


def _subtracts(r: Rewriter, reader: Node, zero: float) -> bool:
    """Return whether a node subtracts a zero point, or casts integers for nodes that do."""
    output = reader.outputs[0]
    if r.type(output).data_type != "float32":
        return False
    if reader.op == DEQUANTIZE_LINEAR.name:
        return r.type(reader.operands[1]).num_elements == 1 and r.number(reader.operands[2]) == zero
    differences = r.readers(output)
    same = r.inner(output, len(differences)) and all(
        d.op == SUB.name
        and d.operands[0] == output
        and r.number(d.operands[1]) == zero
        and r.type(d.outputs[0]) == r.type(output)
        for d in differences
    )
    return reader.op == CAST.name and (same or not zero)


def _from_zero(r: Rewriter, node: Node) -> bool:
    """Replace the subtraction of a zero point of 0 from floats by its operand."""
    same = node.op == SUB.name and r.type(node.operands[0]) == r.type(node.outputs[0])
    if not same or r.number(node.operands[1]) != 0 or r.made(node.operands[0], QUANTIZE_DEQUANTIZE.name, CAST.name) is None:
        return False
    r.add(IDENTITY.name, (node.operands[0],), {}, (node,), node.outputs[0])
    return True


def _as_float(r: Rewriter, value: int, zero: int) -> tuple[Node, ...] | None:
    """Return the nodes that turn a zero point into the float value. None if the value is another one."""
    if (number := r.number(value)) is not None:
        return () if number == r.number(zero) else None
    source, views = _unviewed(r, value)
    cast = r.made(source, CAST.name)
    if cast is None:
        return None
    integer, before = _unviewed(r, cast.operands[0])
    return (*before, cast, *views) if integer == _unviewed(r, zero)[0] else None


def _unviewed(r: Rewriter, value: int) -> tuple[int, tuple[Node, ...]]:
    """Return the source of a chain of views and the views, the first one first."""
    views: list[Node] = []
    while (view := r.made(value, RESHAPE.name)) is not None:
        value = view.operands[0]
        views.insert(0, view)
    return value, tuple(views)


def _sums(r: Rewriter, node: Node) -> bool:
    """Keep exact sums of products as floats, without casts to integers and back."""
    if node.op != CAST.name or r.type(node.outputs[0]).data_type != "float32" or r.type(node.operands[0]).data_type != "int32":
        return False
    value, addends, nodes = _taken_apart(r, node.operands[0])
    cast = r.made(value, CAST.name)
    numbers = None if cast is None else _range_of_sums(r, cast.operands[0])
    if cast is None or numbers is None or not _fits(numbers):
        return False
    for array in (r.constants[addend] for addend in addends):
        least, greatest = float(array.min()), float(array.max())
        numbers = numbers[0] + least, numbers[1] + greatest
        if not _fits(numbers) or not _fits((least, greatest)):
            return False
    (value,), nodes = cast.operands, (cast, *nodes, node)
    for addend in addends:
        value = r.add(ADD.name, (value, r.constant(r.constants[addend].astype(np.float32), addend, "float32")), {}, nodes)
    r.add(IDENTITY.name, (value,), {}, nodes, node.outputs[0])
    return True


def _taken_apart(r: Rewriter, value: int) -> tuple[int, list[int], tuple[Node, ...]]:
    """Return the value before constants were added to it, these constants, and the additions, the first one first."""
    addends: list[int] = []
    nodes: list[Node] = []
    while (made := r.made(value, ADD.name)) is not None:
        found = next(((x, c) for x, c in (made.operands, made.operands[::-1]) if c in r.constants), None)
        if found is None or r.shape(found[0]) != r.shape(value):
            break
        value, addend = found
        addends.insert(0, addend)
        nodes.insert(0, made)
    return value, addends, tuple(nodes)


def _fits(numbers: _Range) -> bool:
    return -_MOST < numbers[0] and numbers[1] < _MOST


def sums_are_exact(r: Rewriter, product: Node) -> bool:
    """Return whether a product is one of whole numbers, and float32 holds each of its sums exactly."""
    numbers = _range_of_product(r, product)
    return numbers is not None and _fits(numbers)


def _range_of_sums(r: Rewriter, value: int) -> _Range | None:
    """Return the range of sums of products of whole numbers. None for other values, and for an unknown range."""
    value, _ = _unmoved(r, value)
    node = r.made(value, MATMUL.name, CONV2D.name)
    return None if node is None else _range_of_product(r, node)


def _range_of_product(r: Rewriter, node: Node) -> _Range | None:
    if r.type(node.outputs[0]).data_type != "float32" or given(node, 2) is not None:
        return None
    x, weights = node.operands
    numbers, shape = _range(r, x), r.shape(weights)
    if numbers is None:
        return None
    kept = len(shape) - 1 if node.op == MATMUL.name else int(node.attrs["filter_layout"].index("o"))
    reduced = (kept - 1,) if node.op == MATMUL.name else tuple(d for d in range(len(shape)) if d != kept)
    if (array := r.constants.get(weights)) is not None:
        most = _most(array, kept, reduced)
    else:
        other = _range(r, weights)
        most = math.inf if other is None else math.prod(shape[d] for d in reduced) * max(map(abs, other))
    most *= max(map(abs, numbers))
    return (-most, most) if math.isfinite(most) else None


def _range(r: Rewriter, value: int) -> _Range | None:
    """Return the range of whole numbers that are quantized, and may have lost a zero point and been moved."""
    value, padded = _unmoved(r, value)
    difference = r.made(value, SUB.name)
    if difference is None:
        found = _range_of_quantized(r, value)
    else:
        a, b = (_range_of_quantized(r, _unmoved(r, operand)[0]) for operand in difference.operands)
        found = None if a is None or b is None else (a[0] - b[1], a[1] - b[0])
    return (min(found[0], 0.0), max(found[1], 0.0)) if found is not None and padded else found


def _unmoved(r: Rewriter, value: int) -> tuple[int, bool]:
    """Return the value before its movements, and whether it was padded with zeros since then."""
    padded = False
    while (node := r.made(value, *MOVEMENTS, IDENTITY.name, PAD.name)) is not None:
        if node.op == PAD.name:
            if node.attrs["mode"] == "constant" and node.attrs["value"] != 0:
                break
            padded = True
        value = node.operands[0]
    return value, padded


def _range_of_quantized(r: Rewriter, value: int) -> _Range | None:
    if (array := r.constants.get(value)) is not None:
        whole = bool(np.all(np.isfinite(array)) and np.all(array == np.rint(array)))
        return (float(array.min()), float(array.max())) if whole else None
    node = r.made(value, CAST.name, QUANTIZE_CENTERED.name, QUANTIZE_DEQUANTIZE.name)
    if node is None:
        return None
    if node.op == QUANTIZE_CENTERED.name:
        low, high = DATA_TYPES[r.type(node.operands[2]).data_type].limits
        return float(low - high), float(high - low)
    if node.op == QUANTIZE_DEQUANTIZE.name:
        (low, high), zero = DATA_TYPES[node.attrs["data_type"]].limits, node.attrs["zero_point"]
        return None if node.attrs["scaled"] else (float(low - zero), float(high - zero))
    data_type = r.type(node.operands[0]).data_type
    if data_type not in _NARROW:
        return None
    low, high = DATA_TYPES[data_type].limits
    return float(low), float(high)


def _most(array: Array, kept: int, reduced: tuple[int, ...]) -> float:
    """Return the largest sum of magnitudes of whole numbers along dimensions. Infinity if the numbers are not whole."""
    most = 0.0
    for columns in _columns(array, kept):
        if not np.array_equal(columns, np.rint(columns)):
            return math.inf
        most = max(most, float(np.abs(columns).sum(reduced).max()))
    return most


def _columns(array: Array, kept: int) -> Iterator[Array]:
    for first in range(0, array.shape[kept], _AT_ONCE):
        yield array[(*(slice(None) for _ in range(kept)), slice(first, first + _AT_ONCE))]
