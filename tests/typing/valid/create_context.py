"""Contexts from options as keywords, as a dictionary and under their camelCase names."""

from typing import assert_type

import webnn_wgpu as wn
from webnn_wgpu.typing import MLContextOptions


def program(context: wn.MLContext) -> None:
    options: MLContextOptions = {"powerPreference": "low-power", "backend": "reference"}
    with wn.ml.createContext(options) as first:
        assert_type(first, wn.MLContext)
        assert first.power_preference == "low-power"
    with wn.ML().create_context(power_preference="default", backend="reference") as second:
        assert second.device_type == "cpu"
    with wn.ml.create_context("high-performance", powerPreference="high-performance", backend="reference") as third:
        assert third.powerPreference == "high-performance"
    promise = wn.ml.create_context_async(backend="reference")
    assert_type(promise, wn.MLPromise[wn.MLContext])
    promise.result().destroy()
