"""Puts the backend into Keras. It is the only place that knows how Keras chooses one.

Keras imports a backend from a fixed list of names while it is loaded, and asks for the name of the backend afterwards. So Keras
loads under the name of a backend of its list, whose modules are this package's, and gets the name "webnn" when it has loaded.
"""

from __future__ import annotations

import os
import sys
from importlib import import_module
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

import webnn_wgpu as wn

NAME = "webnn"
"""The name of the backend."""

_PLACE = "openvino"
"""The backend of Keras's list whose place this one takes. It is the one that no other module of Keras treats apart."""

_THEIRS, _OURS = f"keras.src.backend.{_PLACE}", f"{__package__}.webnn"


class _Finder:
    """Finds the modules of the backend under the names that Keras imports."""

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        if name == _THEIRS or name.startswith(f"{_THEIRS}."):
            return ModuleSpec(name, self, is_package=name == _THEIRS)  # pyright: ignore[reportArgumentType] - loads below
        return None

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        module = import_module(_OURS + spec.name.removeprefix(_THEIRS))
        spec.loader_state = module.__spec__
        return module

    def exec_module(self, module: ModuleType) -> None:
        """Give the module its own specification again: it has run under its own name."""
        spec = module.__spec__
        assert spec is not None
        module.__spec__ = spec.loader_state


def install() -> ModuleType:
    """Import Keras with the backend "webnn", or return it if it is there already.

    Raises:
        NotSupportedError: Keras is not installed.
        InvalidStateError: Keras was imported before, with another backend.
    """
    if "keras" in sys.modules:
        keras: Any = sys.modules["keras"]
        if keras.backend.backend() != NAME:
            raise wn.InvalidStateError(
                "Keras must be imported after webnn_wgpu.keras",
                operator="keras",
                got=f"Keras with the backend {keras.backend.backend()}",
                hint="Import webnn_wgpu.keras first",
            )
        return keras
    before = os.environ.get("KERAS_BACKEND")
    finder = _Finder()
    sys.meta_path.insert(0, finder)  # pyright: ignore[reportArgumentType] - it finds and loads
    os.environ["KERAS_BACKEND"] = _PLACE
    try:
        keras = import_module("keras")
    except ModuleNotFoundError as error:
        if error.name != "keras":
            raise
        raise wn.NotSupportedError(
            "Keras is not installed", operator="keras", hint='Install it: pip install "webnn-wgpu[keras]"'
        ) from None
    finally:
        sys.meta_path.remove(finder)  # pyright: ignore[reportArgumentType] - as above
        if before is None:
            del os.environ["KERAS_BACKEND"]
        else:
            os.environ["KERAS_BACKEND"] = before
    import_module("keras.src.backend.config")._BACKEND = NAME
    _let_layers_find_the_backend()
    for name in [name for name in sys.modules if name == _THEIRS or name.startswith(f"{_THEIRS}.")]:
        del sys.modules[name]
    return keras


def _let_layers_find_the_backend() -> None:
    """Let the object by which layers of preprocessing ask for functions of a backend know this one."""
    kind: Any = import_module("keras.src.utils.backend_utils").DynamicBackend
    theirs = kind.__getattr__

    def found(self: Any, name: str) -> Any:
        return getattr(import_module(_OURS), name) if self._backend == NAME else theirs(self, name)

    kind.__getattr__ = found
