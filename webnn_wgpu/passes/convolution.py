"""Folds the neighbors of a convolution into it: factors and addends of channels behind it, zeros around its input."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from ..core.data_types import Array
from ..ir.graph import Graph, Node
from . import channels
from .matching import Match
from .narrow_weights import byte_zero_point
from .patterns import Apply, Operator, Variable
from .rules import Computed, Conditions, Rule, apply_rules

x, w = Variable("x"), Variable("w")

# ------------------------------------------------------------------------------------------------ factors and addends

bias, c = Variable("bias", constant=True, optional=True), Variable("c", constant=True)

# float16 weights would be rounded once more than the results are.
convolution = Operator("conv2d", "convTranspose2d", text="convolution")(x, w, bias).of("float32")
normalized = channels.normalization_of(convolution)


def _axis(m: Match) -> int:
    """Return the dimension of channels."""
    return m[convolution].attrs["input_layout"].index("c")


def _by_channel(m: Match) -> Array | None:
    """Return c in float64, if it varies along the channels alone."""
    return channels.per_channel(m.r, m[c], _axis(m), m.r.shape(m.value(convolution)))


def _fold(m: Match, node: Node, factor: Array | None, addend: Array | None) -> bool:
    """Fold a factor and an addend of every channel, in float64, into the filter and the bias of a convolution."""
    r, made = m.r, m[convolution]
    weights, own = m[w], m.get(bias)
    total: Any = np.float64(0) if own is None else r.constants[own].astype(np.float64)
    with np.errstate(all="ignore"):
        total = total if factor is None else total * factor
        total = (total if addend is None else total + addend).astype(np.float32)
    if factor is not None:
        array = r.constants.get(weights)
        # The device holds such a filter as bytes, and its kernel multiplies the sums by the factors.
        if array is not None and byte_zero_point(array) is not None:
            return False
        axis = made.attrs["filter_layout"].index("o")
        # Filters of transposed convolutions number the channels of a group only.
        if array is None or array.shape[axis] != factor.size:
            return False
        shape = [factor.size if d == axis else 1 for d in range(4)]
        with np.errstate(all="ignore"):
            scaled: Any = (array * factor.reshape(shape)).astype(np.float32)
        # Scaling must not make a weight infinite, or so small that a device takes it for zero.
        ordinary = np.isfinite(scaled) & ((np.abs(scaled) >= np.finfo(np.float32).tiny) | (array == 0))
        if not np.all(ordinary):
            return False
        weights = r.constant(scaled, weights)
    if not np.all(np.isfinite(total)):
        return False
    if total.shape or addend is not None:
        count = r.shape(node.outputs[0])[_axis(m)]
        own = r.constant(np.broadcast_to(total, (count,)), weights if own is None else own)
    r.add(made.op, (m[x], weights, own), made.attrs, m.nodes, node.outputs[0])
    return True


def _folding(factors: Callable[[Array], tuple[Array | None, Array | None]]) -> Callable[[Match, Node], bool]:
    """Return a function that builds the result of a rule from the factors and the addends of c."""

    def build(m: Match, node: Node) -> bool:
        array = _by_channel(m)
        assert array is not None
        with np.errstate(all="ignore"):
            return _fold(m, node, *factors(array))

    return build


BY_CHANNEL: Conditions = {"c varies along the channels alone": lambda m: _by_channel(m) is not None}

RULES = (
    Rule(
        name="factor of channels",
        pattern=convolution * c,
        result=convolution.on(x, w * c, bias * c),
        where=BY_CHANNEL,
        build=_folding(lambda array: (array, None)),
    ),
    Rule(
        name="divisor of channels",
        pattern=convolution / c,
        result=convolution.on(x, w / c, bias / c),
        where=BY_CHANNEL,
        build=_folding(lambda array: (1 / array, None)),
    ),
    Rule(
        name="addend of channels",
        pattern=convolution + c,
        result=convolution.on(x, w, bias + c),
        where=BY_CHANNEL,
        build=_folding(lambda array: (None, array)),
    ),
    Rule(
        name="subtrahend of channels",
        pattern=convolution - c,
        result=convolution.on(x, w, bias - c),
        where=BY_CHANNEL,
        build=_folding(lambda array: (None, -array)),
    ),
    Rule(
        name="batch normalization of a convolution",
        pattern=normalized,
        result=convolution.on(x, w * channels.factor, bias * channels.factor + channels.addend),
        where={"it normalizes the channels": lambda m: m[normalized].attrs["axis"] == _axis(m)},
        build=lambda m, node: _fold(m, node, *channels.factor_and_addend(m, node)),
    ),
)


def fold_into_convolutions(graph: Graph) -> Graph:
    """Fold batch normalization, factors and addends of channels that follow a convolution into filter and bias."""
    return apply_rules(graph, *RULES)


# ------------------------------------------------------------------------------------------------------------- padding


def _rows_and_columns(m: Match, padded: Apply, layout: str) -> tuple[int, int, int, int] | None:
    """Return the added rows above and below, and columns left and right. None if the padding adds channels or batches."""
    before, after = m[padded].attrs["beginning_padding"], m[padded].attrs["ending_padding"]
    h, w = layout.index("h"), layout.index("w")
    if any(before[d] or after[d] for d in range(4) if d not in (h, w)):
        return None
    return before[h], after[h], before[w], after[w]


def _padding_rule(name: str, op: str, value: float) -> Rule:
    """Return the rule that lets an operator pad its input itself, which takes the elements around it for a number."""
    padded = Operator("pad")(x, mode="constant", value=value)
    reading = Operator(op)(padded, ...)

    def added(m: Match) -> tuple[int, int, int, int] | None:
        return _rows_and_columns(m, padded, m[reading].attrs["input_layout" if op == "conv2d" else "layout"])

    def in_all(m: Match) -> tuple[int, ...]:
        more = added(m)
        assert more is not None
        return tuple(a + b for a, b in zip(m[reading].attrs["padding"], more, strict=True))

    def sees_x(m: Match) -> bool:
        above, below, before, behind = added(m) or (0, 0, 0, 0)
        height, width = m[reading].attrs["window_dimensions"]
        return max(above, below) < height and max(before, behind) < width

    where: Conditions = {"x is padded by rows and columns alone": lambda m: added(m) is not None}
    if op == "maxPool2d":
        # A window of padding alone has no -infinity in it.
        where = {**where, "every window sees some of x": sees_x}
    return Rule(name=name, pattern=reading, result=reading.on(x, ..., padding=Computed("both paddings", in_all)), where=where)


PADDING_RULES = (
    _padding_rule("padding of a convolution", "conv2d", 0.0),
    _padding_rule("padding of an L2 pool", "l2Pool2d", 0.0),
    _padding_rule("padding of a maximum pool", "maxPool2d", -math.inf),
)


def fold_padding(graph: Graph) -> Graph:
    """Let convolutions and pools pad their input themselves."""
    return apply_rules(graph, *PADDING_RULES)
