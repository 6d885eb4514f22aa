"""The maximum errors of a device relative to the reference for one node, from the bounds that its operator states.

Every bound is for one operator whose operands are those that the device had, so no errors accumulate.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from webnn_wgpu.core.data_types import FLOATS
from webnn_wgpu.ir.graph import Array, Graph, Node
from webnn_wgpu.ops import OPS
from webnn_wgpu.ops.interfaces.bounds import ReferenceResults, spacing
from webnn_wgpu.reference.interpreter import evaluate

if TYPE_CHECKING:
    from collections.abc import Sequence

ORDINARY = 1e18
"""The limit below which sums of products of finite numbers cannot overflow, in any order of summation."""


def bounds(
    graph: Graph, node: Node, operands: Sequence[Array | None], expected: Sequence[Array], *, patches: bool = False
) -> list[Array] | None:
    """Return the bound of each element for every output, or None if the operands have no promised accuracy.

    Args:
        graph: the graph of the node.
        node: the node.
        operands: the operands of the node.
        expected: the results of the reference for these operands.
        patches: whether a convolution uses Winograd's transforms, in which each element of a patch affects all others. Its
            bound is that of the largest element, times the sizes of the transforms.
    """
    with np.errstate(all="ignore"):
        body = node.attrs.get("body")
        if isinstance(body, Graph):
            return _of_body(body, operands, patches=patches)
        found = _bounds(graph, node, operands, expected)
        return [np.full(b.shape, 9 * np.max(b)) for b in found] if patches and found else found


def _bounds(graph: Graph, node: Node, operands: Sequence[Array | None], expected: Sequence[Array]) -> list[Array] | None:
    stated = OPS[node.op].bounds
    assert stated is not None
    # Shapes and indices have no effect on bounds, and only floats have roundings.
    if str(expected[0].dtype) not in FLOATS:
        return [np.full(e.shape, stated.integers(node.attrs)) for e in expected]
    if stated.allowed is None:
        assert stated.tolerance is not None
        return [_units(e, stated.tolerance) for e in expected]
    finite = [a[np.isfinite(a)] for a in operands if a is not None]
    if not stated.any_size and any(np.any(np.abs(a.astype(np.float64)) > ORDINARY) for a in finite):
        return None
    found = stated.allowed(computed(graph, node, operands, expected))
    if found is None:
        return None
    return [_rounded(e, np.asarray(b, np.float64)) for e, b in zip(expected, found, strict=True)]


def sign_unsure(graph: Graph, node: Node, operands: Sequence[Array | None], expected: Sequence[Array]) -> Array | None:
    """Return whether each element of a node's result may be NaN or not, by roundings. None if no element may."""
    stated = OPS[node.op].bounds
    if stated is None or stated.unsure is None:
        return None
    return stated.unsure(computed(graph, node, operands, expected, wide=False))


def computed(
    graph: Graph, node: Node, operands: Sequence[Array | None], expected: Sequence[Array], *, wide: bool = True
) -> ReferenceResults:
    """Return the facts that bounds depend on: a node's operands, results and output types, as float32 if `wide`."""
    reference = OPS[node.op].reference
    assert reference is not None
    types = [graph.type(o).with_data_type("float32") if wide else graph.type(o) for o in node.outputs]
    return ReferenceResults(node=node, operands=operands, expected=expected, types=types, reference=reference)


def _of_body(body: Graph, operands: Sequence[Array | None], *, patches: bool) -> list[Array] | None:
    """Return the bounds of a fused node: each operator's own bound, and the propagated bounds of its operands."""
    values: dict[int, Array] = {v: a for name, v in body.inputs.items() if (a := operands[int(name)]) is not None}
    off: dict[int, Array] = {}
    for i, node in enumerate(body.nodes):
        given = [None if v is None else values[v] for v in node.inputs]
        made = evaluate(body, node, given)
        own = bounds(body, node, given, made, patches=patches and i == 0)
        if own is None:
            return None
        moved = {at: off[value] for at, value in enumerate(node.inputs) if value is not None and value in off}
        for at, by in moved.items():
            own = [b + r for b, r in zip(own, _reached(body, node, given, made, at, by), strict=True)]
        stated = OPS[node.op].bounds
        if moved or (stated is not None and stated.contracted):
            # Elements with errors may be rounded the other way, and a driver may keep a product exact for a sum behind it.
            own = [b + spacing(m) if m.dtype.kind == "f" else b for b, m in zip(own, made, strict=True)]
        values.update(zip(node.outputs, made, strict=True))
        off.update(zip(node.outputs, own, strict=True))
    return [off[value] for value in body.outputs.values()]


def _reached(
    body: Graph, node: Node, operands: Sequence[Array | None], made: Sequence[Array], at: int, off: Array
) -> list[Array]:
    """Return the change of an operator's results if one operand has an error of `off`, up or down."""
    stated = OPS[node.op].bounds
    if stated is not None and stated.reached is not None:
        return stated.reached(computed(body, node, operands, made), off)
    reached = [np.zeros(m.shape) for m in made]
    x = operands[at]
    assert x is not None
    for sign in (-1, 1):
        moved = list(operands)
        moved[at] = np.asarray(x.astype(np.float64) + sign * off, x.dtype)
        for i, (m, e) in enumerate(zip(evaluate(body, node, moved), made, strict=True)):
            same = (m == e) | (np.isnan(m) & np.isnan(e))
            distance = np.where(same, 0, np.abs(m.astype(np.float64) - e.astype(np.float64)))
            reached[i] = np.maximum(reached[i], np.where(np.isnan(distance), np.inf, distance))
    return reached


def _units(expected: Array, tolerance: float) -> Array:
    # float16 results are float32 results that are rounded once: an earlier error changes them by one step at most.
    return spacing(expected) * (min(tolerance, 1) if expected.dtype == np.float16 else tolerance)


def _rounded(expected: Array, bound: Array) -> Array:
    """Add the rounding to the output's type to the error of a result before it."""
    return bound + spacing(expected) * (bound > 0)
