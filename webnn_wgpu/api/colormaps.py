"""Colormaps, which map numbers from 0 to 1 to colors."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..core.data_types import Array
from ..core.errors import quoted
from .arrays import Fail

_STOPS = {
    "gray": "000000 ffffff",
    # Ten colors each, evenly spaced, of matplotlib's colormaps of the same names (in the public domain, CC0).
    "viridis": "440154 482878 3e4989 31688e 26828e 1f9e89 35b779 6ece58 b5de2b fde725",
    "inferno": "000004 1b0c41 4a0c6b 781c6d a52c60 cf4446 ed6925 fb9b06 f7d13d fcffa4",
    "magma": "000004 180f3d 440f76 721f81 9e2f7f cd4071 f1605d fd9668 feca8d fcfdbf",
}

_ALLOWED = "[n, 3] or [n, 4], n >= 2"

COLORMAPS = tuple(_STOPS)
"""Names of the colormaps."""


def colors_of(colormap: Any, fail: Fail) -> Array:
    """Return the evenly spaced colors of a colormap, [n, 4] of float32. None has one color and means shades of gray.

    Args:
        colormap: a name, or an array [n, 3] or [n, 4] of numbers from 0 to 1.
        fail: returns the error to raise.
    """
    if colormap is None:
        return np.ones((1, 4), np.float32)
    if isinstance(colormap, str):
        if colormap not in _STOPS:
            raise fail("colormap must be a name or an array of colors", got=repr(colormap), allowed=", ".join(COLORMAPS))
        table = np.frombuffer(bytes.fromhex(_STOPS[colormap]), np.uint8).reshape(-1, 3) / 255
    else:
        try:
            table = np.asarray(colormap)
        except (TypeError, ValueError) as error:
            raise fail(f"a colormap's colors must be an array: {error}", got=quoted(colormap), allowed=_ALLOWED) from None
    if table.ndim != 2 or len(table) < 2 or table.shape[1] not in (3, 4) or table.dtype.kind != "f":
        got = f"{table.dtype}{list(table.shape)}"
        raise fail("a colormap's colors must be floats from 0 to 1", got=got, allowed=_ALLOWED)
    if not np.all(inside := (table >= 0) & (table <= 1)):
        raise fail("a colormap's colors must be floats from 0 to 1", got=quoted(float(table[~inside][0])), allowed="0..1")
    opaque = np.ones((len(table), 4), np.float32)
    opaque[:, : table.shape[1]] = table
    return opaque
