"""Extension operators: what divisions leave, element by element.

`mod` has the sign of the divisor, as Python's %, `fmod` that of the dividend, as C's. Floats are exact however far apart
dividend and divisor are, but for the one addition that turns the sign. Integers give 0 for divisor 0.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..ir.graph import Array
from ._def import OpDef
from ._rows import NumpyFunction, binary


def _fmod(a: Array, b: Array) -> Any:
    if a.dtype.kind == "f":
        return np.fmod(a, b)
    # Not numpy's for integers: the lowest of them divided by -1 ends the process on some processors.
    rest: Array = np.mod(a, b)
    return np.where((rest != 0) & ((rest < 0) != (a < 0)), rest - b, rest)


def _remainder(name: str, function: NumpyFunction, tolerance: float) -> OpDef:
    own = name.removeprefix("x.")
    return binary(
        name,
        f"{own}_f32(a, b)",
        function,
        integer=f"{own}_T(a, b)",
        pairs=f"{own}_T(a, b)",
        spec="",
        tolerance=tolerance,
    )


OPS = (
    _remainder("x.fmod", _fmod, 0),
    _remainder("x.mod", np.mod, 1),
)
