"""Gradients of pooling: transposed convolutions with ones, or the place of the largest element of each window."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from ..interfaces.gradient import GradientCall, GradientTerm


@dataclass(frozen=True)
class _Windows:
    """The windows of a pooling, as pairs for height and width."""

    call: GradientCall

    def last(self, term: GradientTerm) -> GradientTerm:
        """Return a tensor with channels last: neighboring elements are of one window, and kernels read four at once."""
        return term if self.call.attrs["layout"] == "nhwc" else term.permuted((0, 2, 3, 1))

    def back(self, term: GradientTerm) -> GradientTerm:
        """Return a tensor in the layout of the operator."""
        return term if self.call.attrs["layout"] == "nhwc" else term.permuted((0, 3, 1, 2))

    def _pair(self, name: str) -> tuple[int, int]:
        return self.call.attrs[name]

    def _sizes(self, term: GradientTerm) -> tuple[int, int]:
        layout: str = self.call.attrs["layout"]
        return term.shape[layout.index("h")], term.shape[layout.index("w")]

    @property
    def inputs(self) -> tuple[int, int]:
        """Height and width of the input."""
        return self._sizes(self.call.x)

    @property
    def outputs(self) -> tuple[int, int]:
        """Height and width of the result."""
        return self._sizes(self.call.y)

    @property
    def taps(self) -> tuple[int, int]:
        """Height and width of a window, in elements."""
        return self._pair("window_dimensions")

    @property
    def before(self) -> tuple[int, int]:
        """The padding before the first element."""
        top, _, left, _ = self.call.attrs["padding"]
        return top, left

    @property
    def reaches(self) -> tuple[int, int]:
        """The distance from the first element of the first window to the last one of the last window, plus 1."""
        tall, wide = (
            (count - 1) * stride + (taps - 1) * dilation + 1
            for count, stride, taps, dilation in zip(
                self.outputs, self._pair("strides"), self.taps, self._pair("dilations"), strict=True
            )
        )
        return tall, wide

    @property
    def whole(self) -> bool:
        """Whether the only window is the input."""
        return self.outputs == (1, 1) and self.taps == self.inputs and not any(self.call.attrs["padding"])

    def positions(self, axis: int) -> np.ndarray[tuple[int, int], np.dtype[np.int32]]:
        """Return the indices, which may be negative, of the elements of windows: [windows, elements] along a dimension."""
        starts = np.arange(self.outputs[axis]) * self._pair("strides")[axis] - self.before[axis]
        return (starts[:, None] + np.arange(self.taps[axis]) * self._pair("dilations")[axis]).astype(np.int32)

    def spread(self, values: GradientTerm) -> GradientTerm:
        """Return for each element of the input the sum of the values of its windows."""
        if self.whole:
            return values.expanded(self.call.x.shape)
        layout: str = self.call.attrs["layout"]
        channels = self.call.x.shape[layout.index("c")]
        ones = values.number(1.0).expanded((channels, 1, *self.taps))
        padding = [
            pad
            for before, size, reach in zip(self.before, self.inputs, self.reaches, strict=True)
            for pad in (before, max(0, reach - before - size))
        ]
        return values.apply(
            "convTranspose2d",
            ones,
            padding=padding,
            strides=self._pair("strides"),
            dilations=self._pair("dilations"),
            output_sizes=self.inputs,
            groups=channels,
            input_layout=layout,
        )


def average(call: GradientCall) -> Sequence[GradientTerm]:
    """Return the gradient of an average pooling. Padding does not count."""
    windows = _Windows(call)
    rows, columns = (((places := windows.positions(axis)) >= 0) & (places < windows.inputs[axis]) for axis in (0, 1))
    counts = rows.sum(1)[:, None] * columns.sum(1)
    shape = (1, 1, *counts.shape) if call.attrs["layout"] == "nchw" else (1, *counts.shape, 1)
    shares = call.constant((1 / np.maximum(counts, 1)).astype(np.float32).reshape(shape))
    return (windows.spread((call.gradient.cast("float32") * shares).cast(call.x.type.data_type)),)


def l2(call: GradientCall) -> Sequence[GradientTerm]:
    """Return the gradient of a pooling by the square root of the sum of squares."""
    y = call.y
    # The quotient is multiplied by 0 where the result is 0.
    return (call.x * _Windows(call).spread(call.gradient / y.where(y.compared("notEqual", 0.0), 1.0)),)


def maximum(call: GradientCall) -> Sequence[GradientTerm]:
    """Return the gradient of a maximum pooling: the first largest element of a window takes it."""
    windows = _Windows(call)
    x, y, g = (windows.last(term) for term in (call.x, call.y, call.gradient))
    images, height, width, channels = x.shape
    flat = (images, height * width, channels)
    if windows.whole:
        largest = x.reshaped(flat).apply("argMax", axis=1, keep_dimensions=True, output_data_type="int32")
        own = largest.apply("equal", call.constant(np.arange(height * width, dtype=np.int32)[:, None]))
        return (windows.back(g.reshaped(largest.shape).where(own).reshaped(x.shape)),)
    if call.attrs["dilations"] == (1, 1):
        return (windows.back(_in_blocks(windows, _largest(windows, x, y, _tap_numbers(windows)), g)),)
    rows, columns = windows.positions(0), windows.positions(1)
    places = _largest(windows, x, y, lambda i, j: (rows[:, i, None] * width + columns[:, j])[..., None])
    given = (images, y.shape[1] * y.shape[2], channels)
    sums = x.filled(0.0, flat).apply("x.scatter_elements", places.reshaped(given), g.reshaped(given), axis=1, reduction="add")
    return (windows.back(sums.reshaped(x.shape)),)


_Names: TypeAlias = Callable[[int, int], Any]
"""The numbers by which the windows know one of their elements, from its row and column in a window."""


def _tap_numbers(windows: _Windows) -> _Names:
    """Return the numbers of elements within a window, from 1."""
    return lambda i, j: np.int32(i * windows.taps[1] + j + 1)


def _largest(windows: _Windows, x: GradientTerm, y: GradientTerm, names: _Names) -> GradientTerm:
    """Return the number of the first largest element of each window."""
    attrs, height, width = windows.call.attrs, x.shape[1], x.shape[2]
    (top, left), (tall, wide) = windows.before, windows.reaches
    padded = x.apply(
        "pad",
        beginning_padding=(0, top, left, 0),
        ending_padding=(0, max(0, tall - height - top), max(0, wide - width - left), 0),
        value=-np.inf,
    )
    chosen: GradientTerm | None = None
    # From the last element to the first, so that the first one that equals the result remains.
    for i in reversed(range(windows.taps[0])):
        for j in reversed(range(windows.taps[1])):
            named = windows.call.constant(names(i, j))
            if chosen is None:
                chosen = named.expanded(y.shape)
                continue
            part = padded.apply(
                "slice",
                starts=(0, i * attrs["dilations"][0], j * attrs["dilations"][1], 0),
                sizes=(y.shape[0], *((n - 1) * s + 1 for n, s in zip(y.shape[1:3], attrs["strides"], strict=True)), y.shape[3]),
                strides=(1, *attrs["strides"], 1),
            )
            chosen = named.where(part.apply("equal", y), chosen)
    assert chosen is not None
    return chosen


def _in_blocks(windows: _Windows, chosen: GradientTerm, g: GradientTerm) -> GradientTerm:
    """Return the gradients at the chosen elements of windows, and 0 elsewhere.

    Blocks of the size of a stride cover the input. An element of a block belongs to the window that begins there, and to some
    before it. Each of them needs one element-wise operator, where a scatter would sort all places.
    """
    strides: tuple[int, int] = windows.call.attrs["strides"]
    overlaps = tuple(-(-taps // stride) for taps, stride in zip(windows.taps, strides, strict=True))
    blocks = tuple(count + overlap - 1 for count, overlap in zip(windows.outputs, overlaps, strict=True))
    images, *_, channels = g.shape
    for axis, overlap in zip((1, 2), overlaps, strict=True):
        chosen, g = (term.padded(axis, overlap - 1, overlap - 1) for term in (chosen, g))

    def of_blocks(term: GradientTerm, back: tuple[int, int]) -> GradientTerm:
        """Return for each block the window that begins some blocks before it."""
        for axis, count, overlap, distance in zip((1, 2), blocks, overlaps, back, strict=True):
            term = term.sliced(axis, overlap - 1 - distance, count)
        return term.reshaped((images, blocks[0], 1, blocks[1], 1, channels))

    sums: GradientTerm | None = None
    for back in np.ndindex(*overlaps):
        rows, columns = (np.arange(stride) + distance * stride for stride, distance in zip(strides, back, strict=True))
        numbers = rows[:, None] * windows.taps[1] + columns + 1
        # Beyond the window, -1 equals no number.
        numbers = np.where((rows[:, None] < windows.taps[0]) & (columns < windows.taps[1]), numbers, -1)
        own = windows.call.constant(numbers.astype(np.int32).reshape(1, 1, strides[0], 1, strides[1], 1))
        part = of_blocks(g, back).where(of_blocks(chosen, back).apply("equal", own))
        sums = part if sums is None else sums + part
    assert sums is not None
    found = sums.reshaped((images, blocks[0] * strides[0], blocks[1] * strides[1], channels))
    for axis, before, size in zip((1, 2), windows.before, windows.inputs, strict=True):
        found = found.padded(axis, 0, max(0, before + size - found.shape[axis])).sliced(axis, before, size)
    return found
