"""Imports wgpu's native binding without a parse of its C header, if the application allows that.

On import, wgpu passes the C header of its native library to cffi. cffi's parser is written in Python and takes 0.15 to 0.2 s in
every process, and more for each new type name. cffi can also store the parsed declarations as tables, which load in a
millisecond and contain every name. Its documentation calls that the out-of-line ABI mode. The package contains the tables of
one version of the header. The tables of other versions are generated once and cached on disk.

All users of wgpu in the process then use the tables too, so the package does this only after `optimize_process`. Otherwise wgpu
imports its binding in its own way, and `native_types` supplies the names of types.
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
                # wgpu's own way remains. It takes longer, or it raises the proper error.
                logger.info("wgpu's C header is parsed, for its tables do not serve: %s", error)
        with uncollected():
            binding = import_module(_BINDING)
        enter_types(binding.ffi)


@contextmanager
def _cffi_takes_tables() -> Generator[None]:
    """Give an FFI object made of tables to a module that this thread imports and that declares a header."""
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
    # cffi's type of such objects. Its stubs declare it as a type without subclasses.
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
    """Return the tables that cffi's FFI objects use for a C header: from the package, from the cache on disk, or generated."""
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
    """Write the tables of a header to the package."""
    digest = hashlib.sha256(header.encode()).hexdigest()
    text = json.dumps({"header": digest, "tables": _encoded(make_tables(header))}, indent=0)
    _SHIPPED.write_text(text + "\n", encoding="ascii")


if __name__ == "__main__":
    from wgpu.backends.wgpu_native._ffi import get_wgpu_header

    ship(get_wgpu_header())
