"""Models are loaded by functions of the package, whose types are known before their packages are imported."""

from collections.abc import Mapping
from contextlib import suppress
from typing import assert_type

import webnn_wgpu as wn


def load(path: str, context: wn.MLContext) -> wn.Model:
    model = wn.load_onnx(path, context, fallback="error", override_dims={"batch": 1})
    assert_type(model, wn.Model)
    return model


def load_any(path: str, context: wn.MLContext) -> list[str]:
    model = wn.load(path, context, override_dims={"batch": 1})
    assert_type(model, wn.Model | wn.TfliteModel | wn.TfjsModel | wn.WebNNModel | wn.StoredModel)
    return sorted(model.run({"x": [1.0]}))


def names(model: wn.Model) -> list[str]:
    return [value.name for value in (*model.inputs, *model.outputs)]


def run(model: wn.Model, feeds: Mapping[str, object]) -> list[str]:
    return sorted(model.run(feeds))


def program(context: wn.MLContext) -> None:
    with suppress(wn.NotSupportedError):
        load_any("model.pt", context)
