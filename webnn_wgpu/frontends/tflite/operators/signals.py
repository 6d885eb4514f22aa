"""Spectra: Fourier transforms as products with constant matrices, and features of sounds."""

from __future__ import annotations

import math

import numpy as np

from webnn_wgpu import MLOperand

from ...common.held import Array
from ..call import TfliteCall
from ._registry import Result, lowers

MOST_TRANSFORMED = 1 << 12
"""The maximum length of a Fourier transform, whose matrices have its square of elements."""


def _waves(rows: int, columns: int, length: int) -> tuple[Array, Array]:
    """Return cosines and sines of 2 pi row * column / length."""
    angles = 2 * np.pi / length * (np.arange(rows)[:, None] * np.arange(columns)[None, :] % length)
    return np.cos(angles), np.sin(angles)


@lowers(RFFT2D=1, note="products with constant matrices; complex numbers are pairs of floats")
def rfft2d(call: TfliteCall) -> Result:
    """The two-dimensional Fourier transform of the last two dimensions, the half of the last one that is not redundant."""
    height, width = call.ints(1)
    if not 1 <= height <= MOST_TRANSFORMED or not 1 <= width <= MOST_TRANSFORMED:
        call.fail(f"transforms of {height} x {width}; at most {MOST_TRANSFORMED} are allowed")
    b, x, shape = call.build, call.floats(0), list(call.shape(0))
    cut = [*shape[:-2], min(shape[-2], height), min(shape[-1], width)]
    if cut != shape:
        x = b.slice(x, [0] * len(shape), cut)
    # Zeros behind the input add nothing: the matrices lack the rows that would be multiplied with them.
    cosines, sines = (call.constant(m, "float32") for m in _waves(cut[-1], width // 2 + 1, width))
    real, imaginary = b.matmul(x, cosines), b.neg(b.matmul(x, sines))
    cosines, sines = (call.constant(m, "float32") for m in _waves(height, cut[-2], height))
    parts = (
        b.add(b.matmul(cosines, real), b.matmul(sines, imaginary)),
        b.sub(b.matmul(cosines, imaginary), b.matmul(sines, real)),
    )
    return b.concat([call.reshape(p, [*p.shape, 1]) for p in parts], len(shape))


def _part(call: TfliteCall, index: int) -> MLOperand:
    """Return the real or the imaginary part of input 0."""
    shape = call.shape(0)
    if call.tensor(0).dtype.kind != "c":
        call.fail("the input must be complex")
    part = call.build.slice(call.operand(0), [0] * len(shape) + [index], [*shape, 1])
    return call.reshape(part, shape)


@lowers(REAL=1, IMAG=1, COMPLEX_ABS=1)
def complex_parts(call: TfliteCall) -> Result:
    """The real parts, the imaginary parts or the magnitudes of complex numbers."""
    name = call.node.record.name
    if name != "COMPLEX_ABS":
        return _part(call, 0 if name == "REAL" else 1)
    b = call.build
    real, imaginary = _part(call, 0), _part(call, 1)
    return b.sqrt(b.add(b.mul(real, real), b.mul(imaginary, imaginary)))


@lowers({"AudioSpectrogram": 1}, custom=True, ranks={0: (2, 2)})
def audio_spectrogram(call: TfliteCall) -> Result:
    """The spectra of windows of a sound [samples, channels]: [channels, windows, frequencies]."""
    window, stride = (int(call.attributes.get(name, 0)) for name in ("window_size", "stride"))
    samples, channels = call.shape(0)
    if not 2 <= window <= MOST_TRANSFORMED or stride < 1 or samples < window:
        call.fail(f"windows of {window} samples every {stride} of {samples}")
    length = 1 << (window - 1).bit_length()
    count = 1 + (samples - window) // stride
    places = (np.arange(count)[:, None] * stride + np.arange(window)[None, :]).reshape(-1)
    b = call.build
    x = call.reshape(call.transpose(call.floats(0), [1, 0]), [channels, samples])
    x = call.reshape(b.gather(x, call.constant(places, "int32"), axis=1), [channels, count, window])
    hann = (0.5 - 0.5 * np.cos(2 * np.pi * np.arange(window) / window))[:, None]
    cosines, sines = _waves(window, length // 2 + 1, length)
    real, imaginary = (b.matmul(x, call.constant(hann * m, "float32")) for m in (cosines, sines))
    power = b.add(b.mul(real, real), b.mul(imaginary, imaginary))
    return power if bool(call.attributes.get("magnitude_squared", False)) else b.sqrt(power)


def mel_filters(count: int, rate: float, channels: int, low: float, high: float) -> Array:
    """Return the matrix [frequencies, channels] that sums magnitudes of frequencies in triangles of the mel scale."""

    def mel(frequency: float) -> float:
        return 1127.0 * math.log1p(frequency / 700.0)

    spacing = (mel(high) - mel(low)) / (channels + 1)
    centers = [mel(low) + spacing * (i + 1) for i in range(channels + 1)]
    step = 0.5 * rate / (count - 1)
    result = np.zeros((count, channels))
    channel = 0
    for i in range(int(1.5 + low / step), min(int(high / step), count - 1) + 1):
        place = mel(i * step)
        while channel < channels and centers[channel] < place:
            channel += 1
        before = channel - 1
        left = centers[before] if before >= 0 else mel(low)
        weight = (centers[before + 1] - place) / (centers[before + 1] - left)
        if before >= 0:
            result[i, before] += weight
        if channel < channels:
            result[i, channel] += 1 - weight
    return result


@lowers({"Mfcc": 1}, custom=True, ranks={0: (3, 3)})
def mfcc(call: TfliteCall) -> Result:
    """Mel-frequency cepstral coefficients of spectrograms of squared magnitudes."""
    options = {"upper_frequency_limit": 4000, "lower_frequency_limit": 20, "filterbank_channel_count": 40}
    high, low, channels = (call.attributes.get(name, default) for name, default in options.items())
    coefficients = int(call.attributes.get("dct_coefficient_count", 13))
    rate, count = float(call.value(1).reshape(-1)[0]), call.shape(0)[2]
    if (
        not 1 <= channels <= MOST_TRANSFORMED
        or not 1 <= coefficients <= channels
        or count < 2
        or rate <= 0
        or not 0 <= low < high
    ):
        call.fail(f"{coefficients} coefficients of {channels} channels from {low} to {high} Hz")
    b = call.build
    filters = mel_filters(count, rate, int(channels), float(low), float(high))
    bands = b.matmul(b.sqrt(call.floats(0)), call.constant(filters, "float32"))
    logs = b.log(b.clamp(bands, min_value=1e-12))
    rows, columns = np.arange(int(channels))[:, None] + 0.5, np.arange(coefficients)[None, :]
    cosines = math.sqrt(2 / channels) * np.cos(columns * np.pi / channels * rows)
    return b.matmul(logs, call.constant(cosines, "float32"))
