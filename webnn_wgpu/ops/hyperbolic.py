"""Extension operators: inverse trigonometric functions, hyperbolic functions and their inverses. One row each."""

from __future__ import annotations

import numpy as np

from ._def import OpDef
from ._rows import NumpyFunction, unary


def _function(name: str, function: NumpyFunction, tolerance: float) -> OpDef:
    own = name.removeprefix("x.")
    return unary(name, f"{own}_f32(x)", function, spec="", tolerance=tolerance)


OPS = (
    _function("x.acos", np.arccos, 2),
    _function("x.acosh", np.arccosh, 2),
    _function("x.asin", np.arcsin, 3),
    _function("x.asinh", np.arcsinh, 2),
    _function("x.atan", np.arctan, 3),
    _function("x.atanh", np.arctanh, 2),
    _function("x.cosh", np.cosh, 2),
    _function("x.sinh", np.sinh, 2),
)
