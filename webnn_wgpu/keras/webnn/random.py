"""`keras.random` on the backend: numbers of a key and the place of each element, equal on all devices."""

from __future__ import annotations

from typing import Any

import numpy as np
from keras.src.backend.common import standardize_dtype
from keras.src.backend.config import floatx
from keras.src.random.seed_generator import SeedGenerator, draw_seed, make_default_seed

from . import core, host
from .creation import zeros_like
from .dtypes import canonical, is_float
from .elementwise import chosen
from .math import erfinv
from .movement import argsort, broadcast_to, expand_dims, take
from .reductions import argmax
from .tensor import Tensor, call, cast, several


def _key(seed: Any) -> Tensor:
    return seed if isinstance(seed, Tensor) else core.convert_to_tensor(draw_seed(seed), "uint32")


def _sizes(shape: Any) -> tuple[int, ...]:
    return tuple(int(size) for size in shape)


def _named(dtype: Any) -> str:
    return canonical(standardize_dtype(dtype or floatx()))


def _drawn(method: str, key: Tensor, shape: Any) -> Tensor:
    """Return random numbers as float32, or words as uint32."""
    sizes = _sizes(shape)
    dtype = "uint32" if method == "random_bits" else "float32"
    if 0 in sizes:
        return core.convert_to_tensor(np.zeros(sizes), dtype)
    return Tensor(several(f"ext.{method}", key, shape=sizes)[0], dtype)


def normal(shape: Any, mean: Any = 0.0, stddev: Any = 1.0, dtype: Any = None, seed: Any = None) -> Tensor:
    """Numbers of a normal distribution."""
    return cast(_drawn("random_normal", _key(seed), shape) * stddev + mean, _named(dtype))


def uniform(shape: Any, minval: Any = 0.0, maxval: Any = 1.0, dtype: Any = None, seed: Any = None) -> Tensor:
    """Numbers of equal probability."""
    low, high = (cast(core.convert_to_tensor(each), "float32") for each in (minval, maxval))
    return cast(_drawn("random_uniform", _key(seed), shape) * (high - low) + low, _named(dtype))


def truncated_normal(shape: Any, mean: Any = 0.0, stddev: Any = 1.0, dtype: Any = None, seed: Any = None) -> Tensor:
    """Numbers of a normal distribution within two standard deviations."""
    within = 0.9544997361036416  # erf(sqrt(2)), the share of numbers within two deviations
    shares = _drawn("random_uniform", _key(seed), shape) * (2 * within) - within
    limit = 2.0
    numbers = erfinv(shares) * (2**0.5)
    if numbers.value is not None:
        numbers = call("clamp", numbers, min_value=-limit, max_value=limit)
    return cast(numbers * stddev + mean, _named(dtype))


def categorical(logits: Any, num_samples: int, dtype: Any = "int32", seed: Any = None) -> Tensor:
    """Classes by the logarithms of their probabilities: the largest after noise of Gumbel's distribution."""
    found = core.convert_to_tensor(logits)
    found = expand_dims(found if is_float(found.dtype) else cast(found, "float32"), -2)
    key = _key(seed)
    shares = _drawn("random_uniform", key, (*found.shape[:-2], int(num_samples), found.shape[-1]))
    tiny = float(np.finfo(np.float32).tiny)
    noise = -call("log", -call("log", call("clamp", shares, min_value=tiny, max_value=1.0 - 2**-24)))
    return core.cast(argmax(cast(found, "float32") + noise, -1), dtype)


def randint(shape: Any, minval: Any, maxval: Any, dtype: Any = "int32", seed: Any = None) -> Tensor:
    """Integers of equal probability."""
    words = _drawn("random_bits", _key(seed), shape)
    low, high = (core.cast(core.convert_to_tensor(each), "int32") for each in (minval, maxval))
    rest = call("ext.mod", words, cast(high - low, "uint32")) if words.value is not None else words
    return core.cast(cast(rest, "int32") + low, dtype)


def dropout(inputs: Any, rate: float, noise_shape: Any = None, seed: Any = None) -> Tensor:
    """Elements that become 0 at random. The others grow."""
    x = core.convert_to_tensor(inputs)
    if rate == 1.0:
        return zeros_like(x)
    if rate == 0.0:
        return x
    key = _key(seed)
    sizes = (
        x.shape
        if noise_shape is None
        else tuple(given if size is None else int(size) for size, given in zip(noise_shape, x.shape, strict=True))
    )
    if sizes == x.shape and x.dtype in ("float32", "float16"):
        return Tensor(several("ext.dropout", x, key, rate=float(rate))[0], x.dtype)
    kept = broadcast_to(_drawn("random_uniform", key, sizes) >= float(rate), x.shape)
    return chosen(kept, x / (1.0 - rate), zeros_like(x))


def shuffle(x: Any, axis: int = 0, seed: Any = None) -> Tensor:
    """The slices of a dimension in a random order."""
    found = core.convert_to_tensor(x)
    return take(found, argsort(_drawn("random_bits", _key(seed), (found.shape[axis],))), axis)


def _of_host(name: str, shape: Any, dtype: Any, seed: Any, *parameters: Any) -> Tensor:
    return host.drawn(name, _key(seed), _sizes(shape), _named(dtype), *(core.convert_to_tensor(each) for each in parameters))


def gamma(shape: Any, alpha: Any, dtype: Any = None, seed: Any = None) -> Tensor:
    """Numbers of the gamma distribution, drawn on the host."""
    return _of_host("standard_gamma", shape, dtype, seed, alpha)


def beta(shape: Any, alpha: Any, beta: Any, dtype: Any = None, seed: Any = None) -> Tensor:
    """Numbers of the beta distribution, drawn on the host."""
    return _of_host("beta", shape, dtype, seed, alpha, beta)


def binomial(shape: Any, counts: Any, probabilities: Any, dtype: Any = None, seed: Any = None) -> Tensor:
    """Numbers of the binomial distribution, drawn on the host."""
    return _of_host("binomial", shape, dtype, seed, counts, probabilities)


__all__ = [
    "SeedGenerator",
    "beta",
    "binomial",
    "categorical",
    "draw_seed",
    "dropout",
    "gamma",
    "make_default_seed",
    "normal",
    "randint",
    "shuffle",
    "truncated_normal",
    "uniform",
]
"""Keras reads the generators of seeds from here, too."""
