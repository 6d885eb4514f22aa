"""Layer and RMS normalization as exporters write them: means, differences, squares, a root and a quotient."""

from __future__ import annotations

from typing import cast

from ..ir.graph import Graph, Node
from .heads import HEADS_LAST
from .matching import Match
from .patterns import AnyNumber, Apply, OneOf, Operator, Option, Pattern, Variable
from .rewriting import Rewriter
from .rules import Computed, Rule, apply_rules


def recognize_normalization(graph: Graph) -> Graph:
    """Replace normalizations along dimensions by the operator, and give it the scale and bias that follow."""
    return apply_rules(apply_rules(graph, LAYER, RMS, SCALE, BIAS), ROWS)


# ------------------------------------------------------------------------------------------------------------- formulas


def _all_axes(r: Rewriter, reduction: Node) -> tuple[int, ...]:
    axes = reduction.attrs["axes"]
    return tuple(range(len(r.shape(reduction.operands[0])))) if axes is None else tuple(sorted(axes))


sqrt, reciprocal, mean, transpose = (Operator(name) for name in ("sqrt", "reciprocal", "reduceMean", "transpose"))
layer, rms = Operator("layerNormalization"), Operator("x.rms_normalization")
either = Operator("layerNormalization", "x.rms_normalization", text="normalization")

x, epsilon, axes = Variable("x"), AnyNumber("epsilon"), Option("axes", _all_axes)


def _normalized(x: Pattern) -> OneOf:
    """Return the pattern of x / sqrt(mean(x ** 2) + epsilon)."""
    size = sqrt(mean(x**2 | x * x, axes=axes, keep_dimensions=True) + epsilon).named("size")
    return x / size | x * (1 / size) | x * reciprocal(size)


LAYER = Rule(
    name="layer normalization",
    pattern=_normalized((x - mean(x, axes=axes, keep_dimensions=True)).named("d")),
    result=layer(x, axes=axes, epsilon=epsilon),
    where={"epsilon >= 0": lambda m: m[epsilon] >= 0},
)

RMS = Rule(
    name="rms normalization",
    pattern=_normalized(x),
    result=rms(x, axes=axes, epsilon=epsilon),
    where={"epsilon >= 0": lambda m: m[epsilon] >= 0},
)

# ------------------------------------------------------------------------------------------------------ scales and biases


def _has_normalized_dimensions(m: Match, made: Apply, parameter: Variable) -> bool:
    """Return whether a factor or addend has all the normalized dimensions and no other."""
    whole, given = m.r.shape(m[x]), m.r.shape(m[parameter])
    normalized = cast("tuple[int, ...]", m[made].attrs["axes"])
    given = (1,) * (len(whole) - len(given)) + given
    wanted = tuple(size if d in normalized else 1 for d, size in enumerate(whole))
    return given == wanted and bool(normalized) and list(normalized) == sorted(normalized)


def _parameter(made: Apply, parameter: Variable) -> Computed:
    """Return the scale or bias that a factor or addend is: it has the normalized dimensions alone."""

    def make(m: Match) -> int:
        shape, normalized = m.r.shape(m[x]), cast("tuple[int, ...]", m[made].attrs["axes"])
        return m.r.reshaped(m[parameter], [shape[d] for d in normalized], m.nodes[-1:])

    return Computed(parameter.name, make)


# A view of something that is computed would be made after the normalization that it replaces: constants alone are certain.
scale, bias = Variable("scale", constant=True), Variable("bias", constant=True)
given_scale = Variable("scale", optional=True)
plain, scaled = either(x), layer(x, given_scale)

SCALE = Rule(
    name="scale of a normalization",
    pattern=plain * scale,
    result=plain.on(x, _parameter(plain, scale)),
    where={"scale has all normalized dimensions and no other": lambda m: _has_normalized_dimensions(m, plain, scale)},
)

BIAS = Rule(
    name="bias of a normalization",
    pattern=scaled + bias,
    result=scaled.on(x, given_scale, _parameter(scaled, bias)),
    where={"bias has all normalized dimensions and no other": lambda m: _has_normalized_dimensions(m, scaled, bias)},
)

# ----------------------------------------------------------------------------------------------------------------- heads

by_head = either(transpose(x, permutation=HEADS_LAST), ..., axes=(3,))

ROWS = Rule(
    name="normalization of heads",
    pattern=by_head,
    result=transpose(by_head.on(x, ...), permutation=HEADS_LAST),
)
"""Consumers of rows of heads then need no transpose to separate the heads."""

RULES = (LAYER, RMS, SCALE, BIAS, ROWS)
