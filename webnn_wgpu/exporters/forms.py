"""Forms of the 2024 specification as compositions of the operators of 2026."""

from __future__ import annotations

import math

from webnn_wgpu.api.operand import MLOperand

from .compositions import Composing, composes


@composes("argMax", "argMin")
def _arg(c: Composing) -> list[MLOperand]:
    b, x, attrs = c.builder, c.operand(), c.attrs
    axes: list[int] = sorted(attrs["axes"])
    if not axes:
        return [b.cast(b.mul(x, c.number(0, x)), attrs["output_data_type"])]
    rest = [i for i in range(len(x.shape)) if i not in axes]
    moved = b.transpose(x, permutation=[*rest, *axes])
    count = math.prod(x.shape[i] for i in axes)
    flat = b.reshape(moved, [*(x.shape[i] for i in rest), count])
    axis = len(rest)
    find = b.arg_max if c.operator == "argMax" else b.arg_min
    if attrs["select_last_index"]:
        back = find(b.reverse(flat, axes=[axis]), axis, output_data_type=attrs["output_data_type"])
        found = b.sub(c.number(count - 1, back), back)
    else:
        found = find(flat, axis, output_data_type=attrs["output_data_type"])
    if not attrs["keep_dimensions"]:
        return [found]
    return [b.reshape(found, [1 if i in axes else n for i, n in enumerate(x.shape)])]


@composes("softplus")
def _softplus(c: Composing) -> list[MLOperand]:
    b, x = c.builder, c.operand()
    steepness = c.number(c.attrs["steepness"], x)
    return [b.div(b.softplus(b.mul(x, steepness)), steepness)]


@composes("pad")
def _symmetric_pad(c: Composing) -> list[MLOperand]:
    b, x = c.builder, c.operand()
    for axis, (begin, end) in enumerate(zip(c.attrs["beginning_padding"], c.attrs["ending_padding"], strict=True)):
        parts = [*_mirrored(c, x, axis, begin, before=True)[::-1], x, *_mirrored(c, x, axis, end, before=False)]
        x = b.concat(parts, axis) if len(parts) > 1 else x
    return [x if x is not c.operand() else b.identity(x)]


def _mirrored(c: Composing, x: MLOperand, axis: int, amount: int, *, before: bool) -> list[MLOperand]:
    """Return the parts beside an end of an axis, the nearest first: the operand reversed and as it is in turn."""
    b, size = c.builder, x.shape[axis]
    parts: list[MLOperand] = []
    while amount:
        count = min(amount, size)
        block = x if len(parts) % 2 else b.reverse(x, axes=[axis])
        if count < size:
            starts = [size - count if before and i == axis else 0 for i in range(len(x.shape))]
            block = b.slice(block, starts, [count if i == axis else n for i, n in enumerate(x.shape)])
        parts.append(block)
        amount -= count
    return parts
