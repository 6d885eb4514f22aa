"""Extension operators: the remainders of divisions, element by element.

The result of `mod` has the sign of the divisor, like Python's %. The result of `fmod` has the sign of the dividend, like C's %.
Float results are exact for any ratio of dividend and divisor, except for the one addition that changes the sign. Integers
return 0 for divisor 0.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..ir.graph import Array
from ._def import OpDef
from ._row_documentation import Text
from ._rows import NumpyFunction, binary
from .gradients import elementwise as elementwise_gradients
from .interfaces.documentation import REMAINDER_EXTENSIONS


def _fmod(a: Array, b: Array) -> Any:
    if a.dtype.kind == "f":
        return np.fmod(a, b)
    # Not numpy's for integers: the lowest of them divided by -1 ends the process on some processors.
    rest: Array = np.mod(a, b)
    return np.where((rest != 0) & ((rest < 0) != (a < 0)), rest - b, rest)


def _remainder(name: str, function: NumpyFunction, tolerance: float, summary: str, numerics: str) -> OpDef:
    own = name.removeprefix("x.")
    return binary(
        name,
        f"{own}_f32(a, b)",
        function,
        Text(
            summary=summary,
            numerics=numerics,
            group=REMAINDER_EXTENSIONS,
            arguments={"b": "The divisor, with the data type of `a` and a shape that broadcasts with that of `a`."},
        ),
        integer=f"{own}_T(a, b)",
        pairs=f"{own}_T(a, b)",
        spec="",
        tolerance=tolerance,
        gradient=elementwise_gradients.REMAINDER,
    )


OPS = (
    _remainder(
        "x.fmod",
        _fmod,
        0,
        "The remainder of a / b with the quotient truncated, as C's fmod and C's integer % compute it.",
        "The result is exact and has the sign of `a`. Floats: NaN if `b` is 0 or `a` is infinite, and `a` itself if `b` "
        "is infinite. Integers: 0 if `b` is 0.",
    ),
    _remainder(
        "x.mod",
        np.mod,
        1,
        "The remainder of a / b with the quotient rounded down, as Python's % computes it.",
        "The result has the sign of `b`, as that of `numpy.mod`. It is exact for integers and rounded once for floats. "
        "Floats: NaN if `b` is 0 or `a` is infinite. Integers: 0 if `b` is 0.",
    ),
)
