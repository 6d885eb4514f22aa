"""Runs one operator on the device and compares it with whichever oracle knows it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import ml_dtypes
import numpy as np
from onnx import helper

import webnn_wgpu as wn

from .models import check, node_model, with_onnxruntime, with_reference


def agree(
    context: wn.MLContext,
    op: str,
    inputs: Mapping[str, Any],
    attributes: Mapping[str, Any] | None = None,
    opset: int = 21,
    *,
    oracle: str = "onnxruntime",
    expected: Sequence[Any] | None = None,
    rtol: float | None = None,
    atol: float | None = None,
    device_only: bool = True,
    **model: Any,
) -> list[np.ndarray]:
    """Check one operator against onnxruntime or, where that cannot run it, against onnx's reference implementation.

    Args:
        context: where it runs.
        op: the operator.
        inputs: arrays by name.
        attributes: its attributes.
        opset: version of ai.onnx.
        oracle: "reference" to ask that one alone.
        expected: what it should give, instead of asking an oracle.
        rtol: see `check`.
        atol: see `check`.
        device_only: see `check`.
        **model: more arguments of `node_model`.
    """
    made = node_model(op, inputs, attributes, opset, **model)
    if expected is None and oracle == "onnxruntime":
        try:
            expected = with_onnxruntime(made, inputs)
        except Exception:  # a type or version that it does not have, or cannot be fed
            pass
    if expected is None:
        expected = with_reference(made, inputs)
    for output, array in zip(made.graph.output, expected, strict=True):
        output.type.tensor_type.elem_type = helper.np_dtype_to_tensor_dtype(np.asarray(array).dtype)
    return check(made, inputs, context, expected=expected, rtol=rtol, atol=atol, device_only=device_only)


def dtype(name: str) -> np.dtype[Any]:
    """Return the type of a name, ml_dtypes' included."""
    return np.dtype(getattr(ml_dtypes, name, name))


def values(name: str, shape: tuple[int, ...], seed: int = 0) -> np.ndarray:
    """Return elements of a type: integers from its whole range, floats around 0."""
    generator = np.random.default_rng(seed)
    if name == "bool":
        return generator.random(shape) < 0.5
    if "int" in name:
        info = np.iinfo(name)
        return generator.integers(info.min, info.max, shape, dtype(name), endpoint=True)
    return (generator.standard_normal(shape) * 3).astype(dtype(name))
