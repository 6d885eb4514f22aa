"""Layers that pool."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce

import numpy as np

from webnn_wgpu import MLOperand

from ..windows import padded, pooled
from ._call import LayerCall, layer
from .convolution import same_or_valid


@layer(*(f"{kind}Pooling{n}D" for kind in ("Max", "Average") for n in (1, 2, 3)))
def pooling(call: LayerCall) -> MLOperand:
    """The maxima or means of windows."""
    spatial = int(call.kind[-2])
    x = call.ranked(spatial + 2)
    first = spatial > 1 and call.channels_first()
    x = call.last(x) if first else x
    taps = call.integers("pool_size", spatial, 2)
    strides = taps if call.config.get("strides") is None else call.integers("strides", spatial)
    kind = "max" if call.kind.startswith("Max") else "average"
    padding = same_or_valid(call)
    y = pooled(call, x, kind, taps, strides, padding)
    if call.training is not None and kind == "average" and padding == "same":
        y = _with_share(call, x, y, taps, strides)
    return call.first(y) if first else y


def _with_share(call: LayerCall, x: MLOperand, y: MLOperand, taps: Sequence[int], strides: Sequence[int]) -> MLOperand:
    """Return means whose gradient is TensorFlow.js's: windows over the border pass on the share of whole ones."""
    shares: list[np.ndarray[tuple[int, ...], np.dtype[np.float32]]] = []
    for axis, (size, tap, stride) in enumerate(zip(x.shape[1:-1], taps, strides, strict=True)):
        before, _, count = padded(size, tap, stride, 1, "same", axis)
        starts = np.arange(count) * stride - before
        inside = np.minimum(starts + tap, size) - np.maximum(starts, 0)
        shares.append((inside / tap).astype(np.float32))
    share = reduce(np.multiply.outer, shares)[None, ..., None]
    if (share == 1).all():
        return y
    passed = call.build.mul(y, call.constant(share, "float32"))
    rest = call.scope.builder.stop_gradient(call.build.sub(y, passed))
    return call.build.add(passed, rest)


@layer(*(f"Global{kind}Pooling{n}D" for kind in ("Max", "Average") for n in (1, 2)))
def global_pooling(call: LayerCall) -> MLOperand:
    """The maxima or means over all places."""
    spatial = int(call.kind[-2])
    call.ranked(spatial + 2)
    first = spatial > 1 and call.channels_first()
    axes = list(range(2, spatial + 2) if first else range(1, spatial + 1))
    reduce_all = call.build.reduce_max if "Max" in call.kind else call.build.reduce_mean
    return reduce_all(call.x, axes=axes)
