"""Keras 3 on the backend "webnn": models train and predict on any GPU through WebGPU.

The library is Keras. The backend is this package's. All names of `keras` are here, and `import keras` gives the same library
after this module is imported. The extra `keras` installs Keras.
"""

from typing import TYPE_CHECKING, Any

from .contexts import context, use
from .installation import install

_keras = install()

# These modules need Keras with the backend.
from .webnn.core import gradients  # noqa: E402
from .webnn.graphs import graph  # noqa: E402

if not TYPE_CHECKING:  # of which type checkers would conclude that the module has any name

    def __getattr__(name: str) -> Any:
        return getattr(_keras, name)


def __dir__() -> list[str]:
    return sorted({*globals(), *dir(_keras)})


__all__ = ["context", "gradients", "graph", "use"]
