"""Windows of convolutions and poolings, which slide over the spatial dimensions of an image."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from webnn_wgpu import MLOperand

from ..call import NodeCall


@dataclass(frozen=True, kw_only=True)
class WindowAxis:
    """Windows along one dimension.

    Attributes:
        taps: the number of elements of a window.
        stride: the distance from one window to the next, in elements.
        dilation: the distance from one element of a window to the next, in elements.
        begin: the padding before the input, in elements.
        end: the padding behind the input, in elements.
    """

    taps: int
    stride: int
    dilation: int
    begin: int
    end: int

    @property
    def span(self) -> int:
        """The number of elements from a window's first to its last."""
        return (self.taps - 1) * self.dilation + 1

    def count(self, size: int) -> int:
        """Return the number of windows that fit into the padded input."""
        return (size + self.begin + self.end - self.span) // self.stride + 1


def strides_of(call: NodeCall, count: int) -> tuple[list[int], list[int], list[int]]:
    """Return a node's strides and dilations, one for each spatial dimension, and its pads: all begins, then all ends."""
    strides = call.integers("strides") or [1] * count
    dilations = call.integers("dilations") or [1] * count
    pads = call.integers("pads") or [0] * (2 * count)
    if (len(strides), len(dilations), len(pads)) != (count, count, 2 * count):
        call.fail(f"strides, dilations or pads do not fit {count} spatial dimensions")
    if min([*strides, *dilations], default=1) < 1:
        call.fail(f"strides {strides} and dilations {dilations} must be positive")
    return strides, dilations, pads


def windows_of(call: NodeCall, sizes: Sequence[int], kernel: Sequence[int]) -> list[WindowAxis]:
    """Return the windows that a node's attributes define along each spatial dimension.

    Args:
        call: a node with the attributes auto_pad, dilations, pads and strides.
        sizes: the spatial sizes of the input.
        kernel: the taps of the window along each dimension.
    """
    count = len(sizes)
    if len(kernel) != count:
        call.fail(f"a kernel of {len(kernel)} dimensions for {count} spatial dimensions")
    strides, dilations, pads = strides_of(call, count)
    automatic = call.attribute("auto_pad", "NOTSET")
    if automatic not in ("NOTSET", "VALID", "SAME_UPPER", "SAME_LOWER"):
        call.fail(f"auto_pad '{automatic}' is not one of NOTSET, VALID, SAME_UPPER, SAME_LOWER")
    if min(kernel, default=1) < 1:
        call.fail(f"a kernel of {list(kernel)}")
    windows: list[WindowAxis] = []
    for i, size in enumerate(sizes):
        begin, end = pads[i], pads[i + count]
        span = (kernel[i] - 1) * dilations[i] + 1
        if automatic == "VALID":
            begin = end = 0
        elif automatic != "NOTSET":
            total = max(0, (-(-size // strides[i]) - 1) * strides[i] + span - size)
            begin, end = shared_padding(automatic, total)
        windows.append(WindowAxis(taps=kernel[i], stride=strides[i], dilation=dilations[i], begin=begin, end=end))
    return windows


def shared_padding(automatic: str, total: int) -> tuple[int, int]:
    """Return the padding before and behind. SAME_UPPER adds an odd element behind, SAME_LOWER before."""
    less = total // 2
    return (less, total - less) if automatic == "SAME_UPPER" else (total - less, less)


def extended(call: NodeCall, operand: MLOperand, axis: int, begin: int, end: int, value: float = 0) -> MLOperand:
    """Return an operand with elements added before and behind along a dimension, or removed if a number is negative."""
    rank, size = len(operand.shape), int(operand.shape[axis])
    low, high = max(0, -begin), size - max(0, -end)
    if high <= low:
        call.on_host("negative padding leaves no elements")
    if (low, high) != (0, size):
        starts, sizes = [0] * rank, list(operand.shape)
        starts[axis], sizes[axis] = low, high - low
        operand = call.build.slice(operand, starts, sizes)
    if begin <= 0 and end <= 0:
        return operand
    before, behind = [0] * rank, [0] * rank
    before[axis], behind[axis] = max(begin, 0), max(end, 0)
    return call.build.pad(operand, before, behind, value=value)


def tap(call: NodeCall, operand: MLOperand, axis: int, window: WindowAxis, index: int, count: int) -> MLOperand:
    """Return the elements at one tap of `count` windows, along a dimension that is padded already."""
    starts, sizes, strides = [0] * len(operand.shape), list(operand.shape), [1] * len(operand.shape)
    starts[axis], sizes[axis] = index * window.dilation, (count - 1) * window.stride + 1
    strides[axis] = window.stride if count > 1 else 1
    return call.build.slice(operand, starts, sizes, strides=strides)
