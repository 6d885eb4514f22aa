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
        size, shape = x.shape[axis], list(x.shape)
        parts = [x]
        if begin:
            first = b.slice(x, [0] * len(shape), [begin if i == axis else n for i, n in enumerate(shape)])
            parts.insert(0, b.reverse(first, axes=[axis]))
        if end:
            starts = [size - end if i == axis else 0 for i in range(len(shape))]
            last = b.slice(x, starts, [end if i == axis else n for i, n in enumerate(shape)])
            parts.append(b.reverse(last, axes=[axis]))
        x = b.concat(parts, axis) if len(parts) > 1 else x
    return [x if x is not c.operand() else b.identity(x)]
