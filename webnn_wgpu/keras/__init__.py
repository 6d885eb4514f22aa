"""Keras 3 on the backend "webnn": models train and predict on any GPU through WebGPU.

The library is Keras; the backend is this package's. All names of `keras` are here, and `import keras` gives the same library
after this module is imported. Install Keras with the extra `keras`.

Example:
    >>> import webnn_wgpu.keras as keras  # doctest: +SKIP
    >>> keras.backend.backend()  # doctest: +SKIP
    'webnn'
"""

from typing import TYPE_CHECKING, Any

from .installation import install
from .engine import Compilation, compilation, context, use

_keras = install()

if not TYPE_CHECKING:  # of which type checkers would conclude that the module has any name

    def __getattr__(name: str) -> Any:
        return getattr(_keras, name)


def __dir__() -> list[str]:
    return sorted({*globals(), *dir(_keras)})


__all__ = ["Compilation", "compilation", "context", "use"]
