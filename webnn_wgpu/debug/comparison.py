"""The deviation of an array from the expected one: numbers, the worst elements, and a picture of their positions."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from html import escape
from typing import Any

import numpy as np

from webnn_wgpu.accuracy.distance import absolute_distance, ulp_distance
from webnn_wgpu.core.data_types import Array

MOST_ELEMENTS = 5
"""The number of worst elements that a comparison keeps."""

ROWS, COLUMNS = 12, 64
"""Largest size of a picture."""

SHADES = " .+#@"
"""The characters of a picture by worst element: equal, within its bound, beyond it, beyond 100 and 10000 times its bound."""

_COLORS = ("#f4f4f4", "#b7d9b7", "#f2c14e", "#e0662b", "#9b1c1c")


@dataclass(frozen=True)
class Element:
    """One element of a comparison.

    Attributes:
        index: the index of the element.
        actual: its value.
        expected: its expected value.
        allowed: the maximum permitted error.
    """

    index: tuple[int, ...]
    actual: float
    expected: float
    allowed: float

    def __str__(self) -> str:
        return f"{list(self.index)}: {self.actual:.9g}, expected {self.expected:.9g} within {self.allowed:.3g}"


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """The deviation of an array from the expected one. `print` shows it with a picture.

    The object is true if all elements are within their bounds.

    Attributes:
        type: the data type and shape, as `float32[2, 3]`.
        elements: the number of elements.
        wrong: the number of elements beyond their bounds.
        max_abs_error, mean_abs_error: the errors over all elements. Infinite if a NaN or infinity has no counterpart.
        max_ulp: the largest distance in representable numbers of the data type.
        share: the largest error relative to the bound of its element. It exceeds 1 if an element is wrong.
        worst: the elements with the largest errors relative to their bounds, the worst first.
        picture: lines of characters, one for each part of the array: blank for equal parts, `.` within bounds, and `+`, `#` and
            `@` beyond the bounds, 100 and 10000 times beyond.
    """

    type: str
    elements: int
    wrong: int
    max_abs_error: float
    mean_abs_error: float
    max_ulp: float
    share: float
    worst: tuple[Element, ...] = field(repr=False)
    picture: tuple[str, ...] = field(repr=False)

    def __bool__(self) -> bool:
        return not self.wrong

    @property
    def verdict(self) -> str:
        """One line: the number of wrong elements and the largest error."""
        if not self.wrong:
            return f"{self.type} agrees: off by {self.max_abs_error:.3g} at most, {self.max_ulp:.7g} ULP"
        return (
            f"{self.wrong} of {self.elements} elements of {self.type} are wrong: off by {self.max_abs_error:.3g} at most "
            f"({self.mean_abs_error:.3g} on average), {self.max_ulp:.7g} ULP"
        )

    def __str__(self) -> str:
        lines = [self.verdict]
        if self.wrong:
            lines += [f"  {element}" for element in self.worst]
            lines += [f"  |{line}|" for line in self.picture]
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        rows = "".join(f"<li><code>{escape(str(element))}</code></li>" for element in self.worst)
        return f"<p>{escape(self.verdict)}</p>{self.svg()}<ul>{rows}</ul>"

    def svg(self) -> str:
        """Return the picture as an SVG element."""
        cell = 8
        width, height = cell * max(map(len, self.picture), default=0), cell * len(self.picture)
        spots = "".join(
            f'<rect x="{x * cell}" y="{y * cell}" width="{cell}" height="{cell}" fill="{_COLORS[SHADES.index(shade)]}"/>'
            for y, line in enumerate(self.picture)
            for x, shade in enumerate(line)
        )
        return f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}">{spots}</svg>'


def compare(actual: Any, expected: Any, allowed: Any, wrong: Any = None) -> Comparison:
    """Compare an array with the expected one.

    Args:
        actual: the array.
        expected: the expected array, of the same data type and shape.
        allowed: the bound of each element: a number, or an array of the same shape.
        wrong: whether each element is beyond its bound, if that is already known.

    Returns:
        The comparison, which is true if no element is wrong. `print` shows the worst elements.

    Raises:
        TypeError: the data types differ.
        ValueError: the shapes differ.

    Example:
        >>> from webnn_wgpu import debug
        >>> print(debug.compare(np.float32([1, 2, 4]), np.float32([1, 2, 3]), 0.25))
        1 of 3 elements of float32[3] are wrong: off by 1 at most (0.333 on average), 4194304 ULP
          [2]: 4, expected 3 within 0.25
          |  +|
    """
    a, e = np.asarray(actual), np.asarray(expected)
    apart = absolute_distance(a, e)
    bound = np.broadcast_to(np.asarray(allowed, np.float64), apart.shape)
    beyond = apart > bound if wrong is None else np.asarray(wrong, np.bool_)
    shares = _shares(apart, bound, beyond)
    order = np.lexsort((-apart.reshape(-1), -shares.reshape(-1)))[:MOST_ELEMENTS]
    worst = [
        Element(
            tuple(int(i) for i in np.unravel_index(int(at), a.shape)),
            float(a.reshape(-1)[at]),
            float(e.reshape(-1)[at]),
            float(bound.reshape(-1)[at]),
        )
        for at in order
        if shares.reshape(-1)[at] > 0
    ]
    return Comparison(
        type=f"{a.dtype}{list(a.shape)}",
        elements=a.size,
        wrong=int(np.count_nonzero(beyond)),
        max_abs_error=float(apart.max(initial=0)),
        mean_abs_error=float(apart.mean()) if a.size else 0.0,
        max_ulp=float(ulp_distance(a, e).max(initial=0)),
        share=float(shares.max(initial=0)),
        worst=tuple(worst),
        picture=_picture(shares),
    )


def _shares(apart: Array, bound: Array, beyond: Array) -> Array:
    """Return each error in terms of its bound: above 1 for those that are wrong, and for no others."""
    with np.errstate(all="ignore"):
        shares = np.where(bound > 0, apart / bound, np.where(beyond, np.inf, 0))
    shares = np.nan_to_num(shares, nan=math.inf if beyond.any() else 0.0, posinf=math.inf)
    return np.where(beyond, np.maximum(shares, np.nextafter(1, 2)), np.minimum(shares, 1))


def _picture(shares: Array) -> tuple[str, ...]:
    """Draw an array's rows under each other, each spot the worst of those it stands for."""
    flat = shares.reshape(-1, shares.shape[-1]) if shares.ndim > 1 else shares.reshape(1, -1)
    for axis, most in ((0, ROWS), (1, COLUMNS)):
        size = flat.shape[axis]
        if size > most:
            flat = np.maximum.reduceat(flat, np.arange(most) * size // most, axis=axis)
    shades = np.digitize(flat, [np.finfo(np.float64).tiny, np.nextafter(1, 2), 100, 10000])
    return tuple("".join(SHADES[i] for i in row) for row in shades)
