"""Extension operators: inverse trigonometric functions, hyperbolic functions and their inverses. One row each."""

from __future__ import annotations

import numpy as np

from ._def import OpDef
from ._row_documentation import Text
from ._rows import NumpyFunction, unary
from .interfaces.documentation import HYPERBOLIC_EXTENSIONS


def _function(name: str, function: NumpyFunction, tolerance: int, summary: str, numerics: str = "") -> OpDef:
    own = name.removeprefix("x.")
    text = Text(summary=summary, numerics=f"Within {tolerance} ULP. {numerics}".rstrip(), group=HYPERBOLIC_EXTENSIONS)
    return unary(name, f"{own}_f32(x)", function, text, spec="", tolerance=tolerance)


OPS = (
    _function("x.acos", np.arccos, 2, "Arc cosine of each element, in radians.", "NaN outside -1..1."),
    _function("x.acosh", np.arccosh, 2, "Inverse hyperbolic cosine of each element.", "NaN below 1."),
    _function("x.asin", np.arcsin, 3, "Arc sine of each element, in radians.", "NaN outside -1..1."),
    _function("x.asinh", np.arcsinh, 2, "Inverse hyperbolic sine of each element."),
    _function("x.atan", np.arctan, 3, "Arc tangent of each element, in radians.", "Infinities give pi/2 and -pi/2."),
    _function(
        "x.atanh", np.arctanh, 2, "Inverse hyperbolic tangent of each element.", "Infinite at -1 and 1, NaN beyond them."
    ),
    _function("x.cosh", np.cosh, 2, "Hyperbolic cosine of each element.", "Results are infinity from about 89.4 on."),
    _function("x.sinh", np.sinh, 2, "Hyperbolic sine of each element.", "Results are infinite from about 89.4 on."),
)
