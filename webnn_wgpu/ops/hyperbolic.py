"""Extension operators: inverse trigonometric functions, hyperbolic functions and their inverses. One row each."""

from __future__ import annotations

import numpy as np

from ._def import OpDef
from ._row_documentation import Text
from ._rows import NumpyFunction, unary
from .gradients import elementwise as elementwise_gradients
from .interfaces.documentation import HYPERBOLIC_EXTENSIONS
from .interfaces.gradient import GradientRule


def _function(
    name: str, function: NumpyFunction, tolerance: int, summary: str, gradient: GradientRule, numerics: str = ""
) -> OpDef:
    own = name.removeprefix("x.")
    text = Text(summary=summary, numerics=f"Within {tolerance} ULP. {numerics}".rstrip(), group=HYPERBOLIC_EXTENSIONS)
    return unary(name, f"{own}_f32(x)", function, text, spec="", tolerance=tolerance, gradient=gradient)


OPS = (
    _function(
        "x.acos", np.arccos, 2, "Arc cosine of each element, in radians.", elementwise_gradients.ACOS, "NaN outside -1..1."
    ),
    _function(
        "x.acosh", np.arccosh, 2, "Inverse hyperbolic cosine of each element.", elementwise_gradients.ACOSH, "NaN below 1."
    ),
    _function(
        "x.asin", np.arcsin, 3, "Arc sine of each element, in radians.", elementwise_gradients.ASIN, "NaN outside -1..1."
    ),
    _function("x.asinh", np.arcsinh, 2, "Inverse hyperbolic sine of each element.", elementwise_gradients.ASINH),
    _function(
        "x.atan",
        np.arctan,
        3,
        "Arc tangent of each element, in radians.",
        elementwise_gradients.ATAN,
        "Infinities give pi/2 and -pi/2.",
    ),
    _function(
        "x.atanh",
        np.arctanh,
        2,
        "Inverse hyperbolic tangent of each element.",
        elementwise_gradients.ATANH,
        "Infinite at -1 and 1, NaN beyond them.",
    ),
    _function(
        "x.cosh",
        np.cosh,
        2,
        "Hyperbolic cosine of each element.",
        elementwise_gradients.COSH,
        "Results are infinity from about 89.4 on.",
    ),
    _function(
        "x.sinh",
        np.sinh,
        2,
        "Hyperbolic sine of each element.",
        elementwise_gradients.SINH,
        "Results are infinite from about 89.4 on.",
    ),
)
