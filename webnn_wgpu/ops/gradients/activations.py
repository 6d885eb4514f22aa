"""Gradients of activations. At a corner, the gradient is that of the side for smaller elements, except for clamp and prelu."""

from __future__ import annotations

import math
from collections.abc import Sequence

from ..interfaces.gradient import GradientCall, GradientRule, GradientTerm
from .elementwise import in_float32, of_one, of_two


def _clamp(call: GradientCall) -> Sequence[GradientTerm]:
    """Pass the gradient between the bounds and at both of them."""
    g, x = call.gradient, call.x
    low, high = call.attrs["min_value"], call.attrs["max_value"]
    if low is not None:
        g = g.where(x.compared("greaterOrEqual", low))
    if high is not None:
        g = g.where(x.compared("lesserOrEqual", high))
    return (g,)


def _above_zero(call: GradientCall) -> GradientTerm:
    """Return where the operand of a rectifier is above 0, by its result: the operand then need not be kept."""
    known = call.y if call.attrs["alpha"] >= 0 else call.x
    return known.compared("greater", 0.0)


def _elu(call: GradientCall) -> Sequence[GradientTerm]:
    g = call.gradient
    return (g.where(_above_zero(call), g * (call.y + call.attrs["alpha"])),)


def _gelu(g: GradientTerm, x: GradientTerm, y: GradientTerm) -> GradientTerm:
    # Far below 0, 1 + erf(x / sqrt(2)) has no digits left, but gelu(x) / x has.
    below = x.compared("lesser", -1.0)
    cumulated = (y / x.where(below, -1.0)).where(below, 0.5 * (1 + (math.sqrt(0.5) * x).apply("erf")))
    density = 1 / math.sqrt(2 * math.pi) * (-0.5 * x.square()).apply("exp")
    return g * (cumulated + x * density)


def _hard_sigmoid(call: GradientCall) -> Sequence[GradientTerm]:
    y = call.y
    inside = y.compared("greater", 0.0).apply("logicalAnd", y.compared("lesser", 1.0))
    return ((call.attrs["alpha"] * call.gradient).where(inside),)


def _hard_swish(g: GradientTerm, x: GradientTerm, y: GradientTerm) -> GradientTerm:
    middle = g * ((x + 1.5) / 3.0)
    return g.where(x.compared("greater", 3.0), middle.where(x.compared("greater", -3.0)))


def _leaky_relu(call: GradientCall) -> Sequence[GradientTerm]:
    g = call.gradient
    return (g.where(_above_zero(call), call.attrs["alpha"] * g),)


def _softplus(call: GradientCall) -> Sequence[GradientTerm]:
    return (call.gradient * (call.attrs["steepness"] * call.x).apply("sigmoid"),)


def _softsign(g: GradientTerm, x: GradientTerm, y: GradientTerm) -> GradientTerm:
    return g / (1 + x.apply("abs")).square()


def _prelu(g: GradientTerm, x: GradientTerm, slope: GradientTerm, y: GradientTerm) -> Sequence[GradientTerm]:
    unchanged = x.compared("greaterOrEqual", 0.0)
    return g.where(unchanged, g * slope), g.number(0.0).where(unchanged, g * x)


CLAMP: GradientRule = _clamp
ELU: GradientRule = _elu
GELU = of_one(in_float32(_gelu))
HARD_SIGMOID: GradientRule = _hard_sigmoid
HARD_SWISH = of_one(_hard_swish)
LEAKY_RELU: GradientRule = _leaky_relu
LINEAR: GradientRule = lambda call: (call.attrs["alpha"] * call.gradient,)  # noqa: E731 - one of a table of rules
PRELU = of_two(_prelu)
RELU = of_one(lambda g, x, y: g.where(y.compared("greater", 0.0)))
SIGMOID = of_one(lambda g, x, y: g * (y * (1 - y)))
SOFTPLUS: GradientRule = _softplus
SOFTSIGN = of_one(_softsign)
TANH = of_one(lambda g, x, y: g * (1 - y.square()))
