"""Imports wgpu's native binding, where the program allows it without having its C header parsed.

As it is imported, wgpu hands the C header of its native library to cffi, whose parser is Python: that takes 0.15 to 0.2 s in
every process, and some more for each name of a type that is met for the first time. cffi can also write down what it parsed, as
tables that load in a millisecond and that know every name; its documentation calls that the out-of-line ABI mode. The tables of
one version of the header lie beside this module; those of others are made once and kept on disk.

Others who use wgpu in the process then use the tables too, so this is done only after `optimize_process`. Otherwise wgpu
imports its binding in its own way, and `native_types` spares it the names of types.
"""

from __future__ import annotations

import ast
import hashlib
import io
import json
import logging
import sys
import threading
from collections.abc import Generator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any

from ..core import cache
from ..core.imports import uncollected
from ..core.process import process_options
from .native_types import enter_types

logger = logging.getLogger("webnn_wgpu")

_BINDING = "wgpu.backends.wgpu_native"

_importing = threading.Lock()


def import_native() -> None:
    """Import wgpu's native binding and enter the C types that it will need.

    Raises:
        ImportError: the installed wgpu has none.
        OSError: its library does not load.
    """
    with _importing:
        if _BINDING not in sys.modules and process_options().header_tables:
            try:
                with uncollected(), _cffi_takes_tables():
                    import_module(_BINDING)
            except Exception as error:
                # wgpu's own way is left. It takes longer, or raises what is to be raised.
                logger.info("wgpu's C header is parsed, for its tables do not serve: %s", error)
        with uncollected():
            binding = import_module(_BINDING)
        enter_types(binding.ffi)


@contextmanager
def _cffi_takes_tables() -> Generator[None]:
    """Let a module that this thread imports, and that makes an FFI object and declares a header, get one made of tables."""
    import cffi

    original, importer = cffi.FFI, threading.get_ident()

    class Importing(original):
        def __new__(cls, backend: Any = None) -> Any:
            return _ffi_of_tables() if threading.get_ident() == importer else original(backend)

    cffi.FFI = Importing
    try:
        yield
    finally:
        cffi.FFI = original


def _ffi_of_tables() -> Any:
    """Return an FFI object that takes a header's tables when it is given the header."""
    # cffi's type of such objects; its stubs take it for one that cannot be derived from.
    tables_ffi: Any = import_module("_cffi_backend").FFI

    class HeaderFFI(tables_ffi):
        def __init__(self) -> None:
            pass

        def cdef(self, header: str) -> None:
            super().__init__("webnn_wgpu", **tables_of(header))

        def set_source(self, *_arguments: Any) -> None:
            pass

    return HeaderFFI()


def tables_of(header: str) -> dict[str, Any]:
    """Return what cffi's FFI objects take for a C header: the tables shipped with the package, kept on disk, or made now."""
    digest = hashlib.sha256(header.encode()).hexdigest()
    shipped = json.loads(_SHIPPED.read_text(encoding="ascii"))
    if shipped["header"] == digest:
        return _decoded(shipped["tables"])
    name = f"headers/{digest[:32]}.json"
    kept = cache.read(name)
    if kept is not None:
        return _decoded(json.loads(kept))
    tables = make_tables(header)
    cache.write(name, json.dumps(_encoded(tables)))
    return tables


_SHIPPED = Path(__file__).with_suffix(".json")


def make_tables(header: str) -> dict[str, Any]:
    """Have cffi parse a C header, and return its tables."""
    from cffi import FFI, recompiler

    ffi: Any = FFI()
    ffi.cdef(header)
    ffi.set_source("webnn_wgpu", None)
    module = io.StringIO()
    recompiler.make_py_source(ffi, "webnn_wgpu", module)
    # The module is one call of literals: ffi = _cffi_backend.FFI("webnn_wgpu", _version=..., _types=..., ...)
    (call,) = (node for node in ast.walk(ast.parse(module.getvalue())) if isinstance(node, ast.Call))
    return {str(keyword.arg): ast.literal_eval(keyword.value) for keyword in call.keywords}


def _encoded(value: Any) -> Any:
    """Return tables as JSON has them: bytes as texts of equal numbers, and lists."""
    if isinstance(value, bytes):
        return value.decode("latin-1")
    if isinstance(value, tuple):
        return [_encoded(each) for each in value]
    return {name: _encoded(each) for name, each in value.items()} if isinstance(value, dict) else value


def _decoded(value: Any) -> Any:
    """Return tables as cffi takes them."""
    if isinstance(value, str):
        return value.encode("latin-1")
    if isinstance(value, list):
        return tuple(_decoded(each) for each in value)
    return {name: _decoded(each) for name, each in value.items()} if isinstance(value, dict) else value


def ship(header: str) -> None:
    """Write the tables of a header to where they lie in the package."""
    digest = hashlib.sha256(header.encode()).hexdigest()
    text = json.dumps({"header": digest, "tables": _encoded(make_tables(header))}, indent=0)
    _SHIPPED.write_text(text + "\n", encoding="ascii")


if __name__ == "__main__":
    from wgpu.backends.wgpu_native._ffi import get_wgpu_header

    ship(get_wgpu_header())
