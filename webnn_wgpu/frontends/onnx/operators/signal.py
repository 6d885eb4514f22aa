"""Fourier transforms as matrix products, and tables for signals."""

from __future__ import annotations

import math

import numpy as np

from webnn_wgpu import MLOperand

from .. import host
from ..call import NodeCall
from ..tensors import OnnxTensor
from ..types import Array
from ._registry import Result, lowers
from ._windows import extended

LONGEST = 1024
"""The maximum length of a transform in one matrix product, if its length has factors."""


def transform(length: int, parts: int, inverse: bool, bins: int) -> Array:
    """Return the matrix of a discrete Fourier transform.

    Args:
        length: the number of samples of the signal and of the transform.
        parts: 2 for complex samples, 1 for real ones.
        inverse: whether the transform converts frequencies to samples.
        bins: the number of kept results.

    Returns:
        [length * parts, bins * 2], with complex numbers as real and imaginary part.
    """
    angles = 2 * np.pi / length * (np.outer(np.arange(length), np.arange(bins)) % length)
    cosines, sines = np.cos(angles), np.sin(angles) * (1 if inverse else -1)
    # (a + bi) (cos + i sin): the real part's row, then the imaginary part's.
    rows = [np.stack([cosines, sines], -1), np.stack([-sines, cosines], -1)][:parts]
    matrix = np.stack(rows, 1).reshape(length * parts, bins * 2)
    return matrix / length if inverse else matrix


def real_inverse(length: int) -> Array:
    """Return the matrix of the inverse transform to real samples: [(length // 2 + 1) * 2, length].

    The operand contains the frequencies up to half the length. The others are their conjugates.
    """
    bins = length // 2 + 1
    angles = 2 * np.pi / length * (np.outer(np.arange(bins), np.arange(length)) % length)
    twice = np.full((bins, 1), 2.0)
    twice[0] = 1
    if length % 2 == 0:
        twice[-1] = 1
    return np.stack([twice * np.cos(angles), -twice * np.sin(angles)], 1).reshape(bins * 2, length) / length


def transformed(call: NodeCall, x: MLOperand, matrix: Array) -> MLOperand:
    """Return [..., results * parts] of samples [..., samples, parts]."""
    flat = call.reshape(x, [math.prod(int(d) for d in x.shape[:-2]), int(x.shape[-2]) * int(x.shape[-1])])
    y = call.build.matmul(flat, call.constant(matrix, "float32"))
    return call.reshape(y, [*x.shape[:-2], matrix.shape[1]])


def halves(length: int) -> tuple[int, int]:
    """Return the two factors of a length that are nearest to each other.

    >>> halves(12)
    (3, 4)
    """
    less = next(d for d in range(math.isqrt(length), 0, -1) if length % d == 0)
    return less, length // less


def spectrum(call: NodeCall, x: MLOperand, inverse: bool, bins: int) -> MLOperand:
    """Return the first `bins` results [..., bins, 2] of the transform of samples [..., samples, parts].

    A long transform consists of the short transforms of its two factors (Cooley and Tukey, 1965), with a rotation between them.
    """
    *heads, length, parts = (int(d) for d in x.shape)
    p, q = halves(length)
    if length <= LONGEST or p == 1:
        return call.reshape(transformed(call, x, transform(length, parts, inverse, bins)), [*heads, bins, 2])
    count = math.prod(heads)
    inner = call.transpose(call.reshape(x, [count, p, q, parts]), [0, 2, 1, 3])
    columns = spectrum(call, inner, inverse, p)
    angles = 2 * np.pi / length * np.outer(np.arange(q), np.arange(p)) * (1 if inverse else -1)
    turned = np.stack([np.cos(angles), np.sin(angles)], -1)[np.newaxis]
    real, imaginary = call.build.split(columns, 2, axis=3)
    cosines, sines = (call.constant(turned[..., i : i + 1], "float32") for i in (0, 1))
    build = call.build
    moved = build.concat(
        [
            build.sub(build.mul(real, cosines), build.mul(imaginary, sines)),
            build.add(build.mul(real, sines), build.mul(imaginary, cosines)),
        ],
        3,
    )
    rows = spectrum(call, call.transpose(moved, [0, 2, 1, 3]), inverse, q)
    whole = call.reshape(call.transpose(rows, [0, 2, 1, 3]), [count, length, 2])
    return call.reshape(extended(call, whole, 1, 0, bins - length), [*heads, bins, 2])


def real_samples(call: NodeCall, x: MLOperand, length: int) -> MLOperand:
    """Return the real samples [..., length, 1] of the frequencies [..., length // 2 + 1, 2]."""
    if length <= LONGEST:
        return call.reshape(transformed(call, x, real_inverse(length)), [*x.shape[:-2], length, 1])
    *heads, bins, _ = (int(d) for d in x.shape)
    flat = call.reshape(x, [math.prod(heads), bins, 2])
    # The conjugates follow behind half the length, in reverse order.
    others = length - bins
    behind = call.build.reverse(call.build.slice(flat, [0, 1, 0], [int(flat.shape[0]), others, 2]), axes=[1])
    behind = call.build.mul(behind, call.constant([[[1.0, -1.0]]], "float32"))
    y = spectrum(call, call.build.concat([flat, behind], 1), True, length)
    return call.reshape(extended(call, y, 2, 0, -1), [*heads, length, 1])


@lowers("DFT", ranks={0: range(2, 65)})
def dft(call: NodeCall) -> Result:
    """Discrete Fourier transform along an axis. The last axis contains real and imaginary parts."""
    x = call.cast(call.operand(0), "float32")
    rank = len(x.shape)
    if call.version >= 20:
        axis = call.axis(call.integer(2, -2), rank)
    else:
        axis = call.axis(call.attribute("axis", 1), rank)
    inverse, onesided = bool(call.attribute("inverse", 0)), bool(call.attribute("onesided", 0))
    if axis == rank - 1 or x.shape[-1] not in (1, 2):
        call.fail("the last axis holds real and imaginary parts")
    size = int(x.shape[axis])
    length = call.integer(1, 2 * (size - 1) if inverse and onesided else size)
    if length < 1:
        call.fail(f"a transform of length {length}")
    real = inverse and onesided
    if real and x.shape[-1] == 1:
        x = extended(call, x, rank - 1, 0, 1)
    samples = length // 2 + 1 if real else length
    x = extended(call, x, axis, 0, samples - size)
    order = [i for i in range(rank) if i not in (axis, rank - 1)] + [axis, rank - 1]
    moved = call.transpose(x, order)
    if real:
        y = real_samples(call, moved, length)
    else:
        y = spectrum(call, moved, inverse, length // 2 + 1 if onesided else length)
    return call.transpose(y, [order.index(i) for i in range(rank)])


@lowers("STFT", ranks={0: (2, 3), 2: (1,)})
def stft(call: NodeCall) -> Result:
    """Fourier transforms of a signal's frames, each multiplied by a window."""
    x = call.cast(call.operand(0), "float32")
    x = call.reshape(x, [*x.shape, 1]) if len(x.shape) == 2 else x
    samples = int(x.shape[1])
    if x.shape[-1] not in (1, 2):
        call.fail("the last axis holds real and imaginary parts")
    step = call.integer(1)
    default = call.tensor(2).shape[0] if call.has(2) else samples
    length = call.integer(3, default)
    frames = 1 + (samples - length) // step if step > 0 and length > 0 else 0
    if frames < 1:
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
    return spectrum(call, framed, False, bins)


@lowers("HannWindow", "HammingWindow", "BlackmanWindow", "MelWeightMatrix")
def table(call: NodeCall) -> Result:
    """A table of a few parameters. The host computes it when the graph is compiled."""
    arrays = [call.value(i) for i in range(len(call))]
    return [OnnxTensor.known(a) for a in host.evaluate(call.node, arrays, call.version)]
