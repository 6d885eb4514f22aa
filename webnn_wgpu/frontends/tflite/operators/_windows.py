"""Sizes of windows that move over pictures."""

from __future__ import annotations

from ..call import TfliteCall

SAME = 0


def padded(size: int, taps: int, stride: int, dilation: int, same: bool) -> tuple[int, int, int]:
    """Return the padding before and behind a dimension, and the number of windows.

    Example:
        >>> padded(6, 3, 2, 1, True), padded(6, 3, 2, 1, False)
        ((0, 1, 3), (0, 0, 2))
    """
    reach = (taps - 1) * dilation + 1
    if not same:
        return 0, 0, (size - reach) // stride + 1
    count = -(-size // stride)
    total = max((count - 1) * stride + reach - size, 0)
    return total // 2, total - total // 2, count


def window_padding(
    call: TfliteCall,
    sizes: tuple[int, int],
    taps: tuple[int, int],
    strides: tuple[int, int],
    dilations: tuple[int, int] = (1, 1),
) -> list[int]:
    """Return WebNN's padding [top, bottom, left, right] for a node's option.

    Raises:
        NotSupportedError: a stride, a dilation or a window is empty, or a window does not fit.
    """
    if min(*taps, *strides, *dilations) < 1:
        call.fail(f"windows of {list(taps)} with strides {list(strides)} and dilations {list(dilations)}")
    same = int(call.option("Padding")) == SAME
    found: list[int] = []
    for size, tap, stride, dilation in zip(sizes, taps, strides, dilations, strict=True):
        before, after, count = padded(size, tap, stride, dilation, same)
        if count < 1:
            call.fail(f"a window of {(tap - 1) * dilation + 1} does not fit {size} elements")
        found += [before, after]
    return found
