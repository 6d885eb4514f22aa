"""Fourier transforms as matrix products, and tables for signals."""

from __future__ import annotations

import math

import numpy as np

from webnn_wgpu import MLOperand

from .. import host
from ..call import Call
from ..tensors import Tensor
from ..types import Array
from ._registry import Result, lowers
from ._windows import extended


def transform(length: int, parts: int, inverse: bool, bins: int) -> Array:
    """Return the matrix of a discrete Fourier transform.

    Args:
        length: samples of the signal, and length of the transform.
        parts: 2 for complex samples, 1 for real ones.
        inverse: whether frequencies are turned into samples.
        bins: how many results are kept.

    Returns:
        [length * parts, bins * 2]; complex numbers lie as real and imaginary part.
    """
    angles = 2 * np.pi / length * (np.outer(np.arange(length), np.arange(bins)) % length)
    cosines, sines = np.cos(angles), np.sin(angles) * (1 if inverse else -1)
    # (a + bi) (cos + i sin): the real part's row, then the imaginary part's.
    rows = [np.stack([cosines, sines], -1), np.stack([-sines, cosines], -1)][:parts]
    matrix = np.stack(rows, 1).reshape(length * parts, bins * 2)
    return matrix / length if inverse else matrix


def real_inverse(length: int) -> Array:
    """Return the matrix of the inverse transform whose samples are real: [(length // 2 + 1) * 2, length].

    It takes the frequencies up to half the length; the others are their conjugates.
    """
    bins = length // 2 + 1
    angles = 2 * np.pi / length * (np.outer(np.arange(bins), np.arange(length)) % length)
    twice = np.full((bins, 1), 2.0)
    twice[0] = 1
    if length % 2 == 0:
        twice[-1] = 1
    return np.stack([twice * np.cos(angles), -twice * np.sin(angles)], 1).reshape(bins * 2, length) / length


def transformed(call: Call, x: MLOperand, matrix: Array) -> MLOperand:
    """Return [..., results * parts] of samples [..., samples, parts]."""
    flat = call.reshape(x, [math.prod(int(d) for d in x.shape[:-2]), int(x.shape[-2]) * int(x.shape[-1])])
    y = call.build.matmul(flat, call.constant(matrix, "float32"))
    return call.reshape(y, [*x.shape[:-2], matrix.shape[1]])


@lowers("DFT")
def dft(call: Call) -> Result:
    """Discrete Fourier transform along an axis; the last one holds real and imaginary parts."""
    x = call.cast(call.operand(0), "float32")
    rank = len(x.shape)
    if call.version >= 20:
        axis = call.axis(int(call.number(2, -2)), rank)
    else:
        axis = call.axis(call.attribute("axis", 1), rank)
    inverse, onesided = bool(call.attribute("inverse", 0)), bool(call.attribute("onesided", 0))
    if axis == rank - 1:
        call.fail("the last axis holds real and imaginary parts")
    size = int(x.shape[axis])
    length = int(call.number(1, 2 * (size - 1) if inverse and onesided else size))
    if length < 1:
        call.fail(f"a transform of length {length}")
    real = inverse and onesided
    if real and x.shape[-1] == 1:
        x = extended(call, x, rank - 1, 0, 1)
    samples = length // 2 + 1 if real else length
    x = extended(call, x, axis, 0, samples - size)
    order = [i for i in range(rank) if i not in (axis, rank - 1)] + [axis, rank - 1]
    if real:
        matrix, last = real_inverse(length), 1
    else:
        bins = length // 2 + 1 if onesided else length
        matrix, last = transform(length, int(x.shape[-1]), inverse, bins), 2
    moved = call.transpose(x, order)
    y = transformed(call, moved, matrix)
    y = call.reshape(y, [*moved.shape[:-2], matrix.shape[1] // last, last])
    return call.transpose(y, [order.index(i) for i in range(rank)])


@lowers("STFT")
def stft(call: Call) -> Result:
    """Fourier transforms of a signal's frames, each multiplied by a window."""
    x = call.cast(call.operand(0), "float32")
    x = call.reshape(x, [*x.shape, 1]) if len(x.shape) == 2 else x
    batch, samples, parts = (int(d) for d in x.shape)
    step = int(call.number(1))
    default = call.tensor(2).shape[0] if call.has(2) else samples
    length = int(call.number(3, default))
    frames = 1 + (samples - length) // step
    if frames < 1 or step < 1:
        call.fail(f"frames of {length}, {step} apart, do not fit {samples} samples")
    at = np.arange(frames)[:, np.newaxis] * step + np.arange(length)
    framed = call.build.gather(x, call.constant(at, "int32"), axis=1)
    if call.has(2):
        window = call.cast(call.operand(2), "float32")
        if int(window.shape[0]) > length:
            call.fail(f"a window of {window.shape[0]} is longer than frames of {length}")
        window = extended(call, window, 0, 0, length - int(window.shape[0]))
        framed = call.build.mul(framed, call.reshape(window, [1, 1, length, 1]))
    bins = length // 2 + 1 if call.attribute("onesided", 1) else length
    y = transformed(call, framed, transform(length, parts, False, bins))
    return call.reshape(y, [batch, frames, bins, 2])


@lowers("HannWindow", "HammingWindow", "BlackmanWindow", "MelWeightMatrix")
def table(call: Call) -> Result:
    """A table that a few numbers describe: the host makes it when the graph is compiled."""
    arrays = [call.value(i) for i in range(len(call))]
    return [Tensor.known(a) for a in host.evaluate(call.node, arrays, call.version)]
