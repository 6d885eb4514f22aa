"""Fourier transforms and tables of signals against numpy and onnx's reference implementation."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import webnn_wgpu as wn

from .agreement import agree, values


def pairs(x: np.ndarray) -> np.ndarray:
    """Complex numbers as real and imaginary parts."""
    return np.stack([x.real, x.imag], -1).astype(np.float32)


@pytest.mark.parametrize("opset", [17, 20])
@pytest.mark.parametrize("parts", [1, 2])
@pytest.mark.parametrize("inverse", [0, 1])
@pytest.mark.parametrize("length", [None, 5, 12])
@pytest.mark.parametrize("axis", [1, 2])
def test_transform(context: wn.MLContext, opset: int, parts: int, inverse: int, length: int | None, axis: int) -> None:
    x = values("float32", (2, 9, 7, parts))
    signal = x[..., 0] + (1j * x[..., 1] if parts == 2 else 0)
    expected = pairs((np.fft.ifft if inverse else np.fft.fft)(signal, n=length, axis=axis))
    attributes: dict[str, Any] = {"inverse": inverse}
    constants: dict[str, Any] = {} if length is None else {"length": np.array(length)}
    order = ["x", "length" if length else ""]
    if opset == 17:
        attributes["axis"] = axis
    else:
        constants["axis"] = np.array(axis - 4)
        order.append("axis")
    order = order if opset == 20 or length else ["x"]
    agree(context, "DFT", {"x": x}, attributes, opset=opset, constants=constants, order=order, expected=[expected])


@pytest.mark.parametrize("length", [None, 7, 12])
def test_real_transforms(context: wn.MLContext, length: int | None) -> None:
    x = values("float32", (2, 9, 1))
    constants = {} if length is None else {"length": np.array(length)}
    expected = [pairs(np.fft.rfft(x[..., 0], n=length, axis=1))]
    agree(context, "DFT", {"x": x}, {"onesided": 1}, opset=20, constants=constants, expected=expected)
    x = values("float32", (2, 5, 2))
    expected = [np.fft.irfft(x[..., 0] + 1j * x[..., 1], n=length, axis=1)[..., np.newaxis].astype(np.float32)]
    attributes = {"onesided": 1, "inverse": 1}
    agree(context, "DFT", {"x": x}, attributes, opset=20, constants=constants, expected=expected)


@pytest.mark.parametrize("length", [12, 30, 49, 13])
@pytest.mark.parametrize("parts", [1, 2])
def test_long_transforms(context: wn.MLContext, monkeypatch: pytest.MonkeyPatch, length: int, parts: int) -> None:
    monkeypatch.setattr("webnn_wgpu.frontends.onnx.operators.signal.LONGEST", 4)
    x = values("float32", (3, length, parts))
    signal = x[..., 0] + (1j * x[..., 1] if parts == 2 else 0)
    for inverse, onesided in ((0, 0), (1, 0), (0, 1)):
        expected = (np.fft.ifft if inverse else np.fft.fft)(signal, axis=1)
        expected = pairs(expected[:, : length // 2 + 1] if onesided else expected)
        attributes = {"inverse": inverse, "onesided": onesided}
        agree(context, "DFT", {"x": x}, attributes, opset=20, expected=[expected])
    if parts == 2:
        expected = np.fft.irfft(signal, n=2 * length - 1, axis=1)[..., np.newaxis].astype(np.float32)
        constants = {"length": np.array(2 * length - 1)}
        attributes = {"onesided": 1, "inverse": 1}
        agree(context, "DFT", {"x": x}, attributes, opset=20, constants=constants, expected=[expected])


@pytest.mark.parametrize("onesided", [0, 1])
@pytest.mark.parametrize("window", [False, True])
def test_frames(context: wn.MLContext, onesided: int, window: bool) -> None:
    inputs = {"x": values("float32", (2, 30, 1))}
    constants = {"step": np.array(4), "length": np.array(9)}
    if window:
        inputs["window"] = np.hanning(9).astype(np.float32)
    order = ["x", "step", "window" if window else "", "length"]
    agree(context, "STFT", inputs, {"onesided": onesided}, opset=17, constants=constants, order=order, oracle="reference")


@pytest.mark.parametrize("op", ["HannWindow", "HammingWindow", "BlackmanWindow"])
@pytest.mark.parametrize("periodic", [0, 1])
def test_windows(context: wn.MLContext, op: str, periodic: int) -> None:
    agree(context, op, {"size": np.array(10)}, {"periodic": periodic, "output_datatype": 1}, opset=17)


def test_mel_weights(context: wn.MLContext) -> None:
    numbers = {
        "bins": np.array(8),
        "length": np.array(16),
        "rate": np.array(8192),
        "low": np.array(0, np.float32),
        "high": np.array(4096, np.float32),
    }
    agree(context, "MelWeightMatrix", numbers, opset=17, oracle="reference")
