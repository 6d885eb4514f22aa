"""The functions of the host: those without a WebNN form, computed with numpy by Keras's own numpy backend.

`FUNCTIONS` is their list. A function of the list cannot be part of a compiled training step, and has no gradient. Functions
with a form on the device come here as well for arrays that no device holds: complex numbers, strings and empty arrays.
"""

from __future__ import annotations

import contextlib
import sys
import warnings
from collections.abc import Callable, Generator
from importlib import import_module
from types import ModuleType
from typing import Any

import numpy as np
from keras.src import tree
from keras.src.backend.common import KerasVariable, standardize_dtype

from webnn_wgpu.eager import UnknownValueError

from .dtypes import canonical
from .tensor import Tensor, of_array, unknown

FUNCTIONS: dict[str, tuple[str, ...]] = {
    "numpy": (
        "angle",
        "argpartition",
        "bartlett",
        "bincount",
        "blackman",
        "corrcoef",
        "correlate",
        "digitize",
        "gcd",
        "geomspace",
        "hamming",
        "hanning",
        "histogram",
        "i0",
        "isin",
        "kaiser",
        "lcm",
        "ldexp",
        "logspace",
        "median",
        "nanargmax",
        "nanargmin",
        "nanmedian",
        "nanpercentile",
        "nanquantile",
        "nextafter",
        "nonzero",
        "percentile",
        "quantile",
        "searchsorted",
        "signbit",
        "slogdet",
        "trapezoid",
        "unique",
        "unravel_index",
        "vander",
        "vectorize",
        "view",
    ),
    "nn": (
        "ctc_decode",
        "ctc_loss",
        "fold",
        "unfold",
    ),
    "math": (
        "_get_complex_tensor_from_tuple",
        "erfc",
        "fft",
        "fft2",
        "ifft2",
        "irfft",
        "istft",
        "logdet",
        "rfft",
        "stft",
    ),
    "linalg": (
        "cholesky",
        "cholesky_inverse",
        "det",
        "eig",
        "eigh",
        "inv",
        "lstsq",
        "lu_factor",
        "matrix_rank",
        "pinv",
        "qr",
        "solve",
        "solve_triangular",
        "svd",
    ),
    "image": (
        "affine_transform",
        "compute_homography_matrix",
        "elastic_transform",
        "gaussian_blur",
        "hsv_to_rgb",
        "map_coordinates",
        "perspective_transform",
        "rgb_to_hsv",
        "scale_and_translate",
        "sobel_edges",
    ),
}
"""The functions of each module that always run on the host."""

_shapes: list[bool] = []


@contextlib.contextmanager
def shapes_only() -> Generator[None]:
    """Within, functions of the host give tensors without numbers for tensors without numbers."""
    _shapes.append(True)
    try:
        yield
    finally:
        _shapes.pop()


def _transform(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a Fourier transform of pairs of real and imaginary parts."""

    def run(x: Any) -> Any:
        found = function(x[0] + 1j * x[1]).astype(np.complex64)
        return found.real, found.imag

    return run


def _stand_ins() -> dict[str, ModuleType]:
    """Return modules in place of jax, which Keras's numpy backend takes for convolutions and two Fourier transforms.

    The backend has its own convolutions. The transforms are numpy's.
    """
    names = ("jax", "jax.lax", "keras.src.backend.jax", "keras.src.backend.jax.math")
    found: dict[str, Any] = {name: ModuleType(name) for name in names if name not in sys.modules}
    if "jax" in found:
        found["jax"].lax = found.get("jax.lax")
    if names[3] in found:
        found[names[3]].fft, found[names[3]].fft2 = _transform(np.fft.fft), _transform(np.fft.fft2)
    return found


def _module(name: str) -> Any:
    """Return a module of Keras's numpy backend. Its import must not replace Keras's present backend."""
    full = f"keras.src.backend.numpy.{name}"
    if full not in sys.modules:
        backend: Any = sys.modules["keras.src.backend"]
        ours, others = backend.numpy, _stand_ins()
        sys.modules.update(others)
        try:
            import_module(full)
        finally:
            backend.numpy = ours
            for other in others:
                del sys.modules[other]
        image: Any = sys.modules["keras.src.backend.numpy.image"]  # which the package imports with any of its modules
        image.draw_seed = _seed(image.draw_seed)
    return sys.modules[full]


def _seed(draw: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Return a function that draws the seed of numpy's generator, which takes no tensors."""

    def drawn(seed: Any) -> Any:
        found = draw(seed)
        return found.numpy() if isinstance(found, Tensor) else found

    return drawn


def fall_back(module: str, name: str, *args: Any, **kwargs: Any) -> Any:
    """Run a function of Keras's numpy backend on the elements of tensors."""
    missing = False

    def given(x: Any) -> Any:
        nonlocal missing
        if isinstance(x, KerasVariable):
            x = x.value
        if not isinstance(x, Tensor):
            return x
        if not x.unknown:
            return x.numpy()
        if not _shapes:
            raise UnknownValueError(f"ops.{name} runs on the host, and a compiled step has no values for it")
        missing = True
        return np.ones(x.shape, np.dtype(x.dtype) if x.dtype != "bfloat16" else np.float32)

    def result(x: Any) -> Any:
        if not isinstance(x, (np.ndarray, np.generic)):
            return x
        dtype = canonical(standardize_dtype(x.dtype))
        return unknown(x.shape, dtype) if missing else of_array(x, dtype)

    found_args, found_kwargs = tree.map_structure(given, (args, kwargs))
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        found = getattr(_module(module), name)(*found_args, **found_kwargs)
    return tree.map_structure(result, found)


def drawn(name: str, key: Tensor, shape: tuple[int, ...], dtype: str, *parameters: Tensor) -> Tensor:
    """Draw numbers of a distribution of numpy's generator, whose seed is the key."""
    if key.unknown or any(each.unknown for each in parameters):
        if not _shapes:
            raise UnknownValueError(f"random.{name} runs on the host, and a compiled step has no values for it")
        return unknown(shape, dtype)
    generator = np.random.default_rng(key.numpy())
    given = [each.numpy().astype(np.int64 if each.dtype.startswith("int") else np.float64) for each in parameters]
    if name == "binomial":
        given[0] = given[0].astype(np.int64)
    return of_array(np.asarray(getattr(generator, name)(*given, size=shape)), dtype)


def functions(module: str) -> dict[str, Callable[..., Any]]:
    """Return the functions of a module that always run on the host."""

    def function(name: str) -> Callable[..., Any]:
        def run(*args: Any, **kwargs: Any) -> Any:
            return fall_back(module, name, *args, **kwargs)

        run.__name__, run.__doc__ = name, f"`{name}`, on the host."
        return run

    return {name: function(name) for name in FUNCTIONS[module]}


def unless_held(module: str, name: str | None = None) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Send calls with arrays that no device holds to the host."""

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        def run(*args: Any, **kwargs: Any) -> Any:
            if any(_of_host(x) for x in args):
                return fall_back(module, name or function.__name__.rstrip("_"), *args, **kwargs)
            return function(*args, **kwargs)

        run.__name__, run.__doc__ = function.__name__, function.__doc__
        return run

    return decorate


def _of_host(x: Any) -> bool:
    """Return whether an argument is an array that no device holds, or a list of arrays with one."""
    if isinstance(x, Tensor):
        return x.value is None
    if isinstance(x, KerasVariable):
        x = x._value
        return isinstance(x, Tensor) and x.value is None
    if isinstance(x, (list, tuple)):
        return any(_of_host(each) for each in x)
    if isinstance(x, np.ndarray):
        return x.size == 0 or x.dtype.kind in "cUSO"
    return isinstance(x, complex)
