"""Layers that pool."""

from __future__ import annotations

from webnn_wgpu import MLOperand

from ..windows import pooled
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
    y = pooled(call, x, kind, taps, strides, same_or_valid(call))
    return call.first(y) if first else y


@layer(*(f"Global{kind}Pooling{n}D" for kind in ("Max", "Average") for n in (1, 2)))
def global_pooling(call: LayerCall) -> MLOperand:
    """The maxima or means over all places."""
    spatial = int(call.kind[-2])
    call.ranked(spatial + 2)
    first = spatial > 1 and call.channels_first()
    axes = list(range(2, spatial + 2) if first else range(1, spatial + 1))
    reduce = call.build.reduce_max if "Max" in call.kind else call.build.reduce_mean
    return reduce(call.x, axes=axes)
