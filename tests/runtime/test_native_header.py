"""wgpu's binding is the same whether its header is parsed or, where the program allows that, comes from tables."""

from __future__ import annotations

import hashlib
import json
import re
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import cffi
import pytest
from wgpu.backends.wgpu_native import _ffi

from webnn_wgpu.core import cache
from webnn_wgpu.runtime import native_header
from webnn_wgpu.runtime.native_header import make_tables, tables_of
from webnn_wgpu.runtime.native_types import TYPES

HEADER = _ffi.get_wgpu_header()

OTHER = (
    "typedef struct { int64_t size; double *values; } Other; enum Kind { Kind_First = 3 }; int count(Other const *, enum Kind);"
)

PROGRAM = """
import sys
{before}
import webnn_wgpu as wn
from webnn_wgpu.runtime import native_header
wn.optimize_process(header_tables={allowed})
{between}
native_header.import_native()
import cffi, wgpu
from wgpu.backends.wgpu_native import ffi

context = wn.ml.create_context()
x = context.create_tensor([1], "uint32", readable=True)
source = "@group(0) @binding(0) var<storage, read_write> x: u32; @compute @workgroup_size(1) fn main() {{ x = 7; }}"
wn.run_wgsl(source, x, workgroups=1)
assert context.read_tensor(x) == [7]
print(isinstance(ffi, cffi.FFI), "pycparser" in sys.modules)
"""


def run(before: str = "", between: str = "", *, allowed: bool = True) -> str:
    program = PROGRAM.format(before=before, between=between, allowed=allowed)
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", program], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


@pytest.fixture(scope="module")
def parsed() -> Any:
    made: Any = cffi.FFI()
    made.cdef(HEADER)
    return made


@pytest.fixture(scope="module")
def tabled() -> Any:
    made = native_header._ffi_of_tables()
    made.cdef(HEADER)
    return made


SHIPPED = json.loads(native_header._SHIPPED.read_text(encoding="ascii"))

needs_shipped_tables = pytest.mark.skipif(
    SHIPPED["header"] != hashlib.sha256(HEADER.encode()).hexdigest(),
    reason="native_header.json is of another wgpu than is installed: python -m webnn_wgpu.runtime.native_header writes it anew",
)


@needs_shipped_tables
def test_the_tables_in_the_package_are_what_cffi_makes_of_the_header() -> None:
    assert native_header._decoded(SHIPPED["tables"]) == make_tables(HEADER)


@needs_shipped_tables
def test_a_program_that_opens_no_device_itself_parses_nothing() -> None:
    assert run() == "False False"


def test_without_leave_wgpu_imports_its_binding_in_its_own_way() -> None:
    assert run(allowed=False) == "True True"


def test_a_program_that_has_imported_the_binding_keeps_it() -> None:
    assert run("import wgpu.backends.wgpu_native") == "True True"


def test_where_tables_do_not_serve_the_header_is_parsed() -> None:
    """A later cffi may refuse them."""
    assert run(between="native_header.tables_of = lambda header: {'_version': 1}") == "True True"


def test_other_threads_get_what_cffi_has_for_everyone() -> None:
    made: list[Any] = []
    with native_header._cffi_takes_tables():
        thread = threading.Thread(target=lambda: made.append(cffi.FFI()))
        thread.start()
        thread.join()
        ours = cffi.FFI()
    assert isinstance(made[0], cffi.FFI)
    assert not isinstance(ours, cffi.FFI)


@pytest.mark.parametrize("name", [name for name in TYPES if "(" not in name])
def test_types_are_laid_out_alike(parsed: Any, tabled: Any, name: str) -> None:
    assert describe(tabled, tabled.typeof(name)) == describe(parsed, parsed.typeof(name))


def describe(ffi: Any, kind: Any, depth: int = 3) -> Any:
    """What there is to a C type: kind, size, fields with their places, what it points to, names of an enumeration."""
    if kind.kind in ("pointer", "array"):
        return kind.kind, depth and describe(ffi, kind.item, depth - 1)
    if kind.kind == "struct":
        name = kind.cname.removeprefix("struct ")
        try:
            size = ffi.sizeof(kind)
        except Exception:  # of a type that cffi's two kinds of objects do not share
            assert name.endswith("Impl"), name  # a handle: the header says no more of it
            return name, "nothing known"
        return name, size, [(name, f.offset, depth and describe(ffi, f.type, depth - 1)) for name, f in kind.fields]
    return kind.kind, kind.elements if kind.kind == "enum" else signature(kind)


def test_constants_and_functions_are_the_same(parsed: Any, tabled: Any) -> None:
    ours, theirs = tabled.dlopen(_ffi.lib_path), parsed.dlopen(_ffi.lib_path)
    assert len(dir(theirs)) > 500
    assert dir(ours) == dir(theirs)
    for name in dir(theirs):
        try:
            other = getattr(theirs, name)
        except NotImplementedError:
            # The header's `static const`, which no library exports: cffi cannot give them either way.
            assert re.search(rf"static const \w+ {name} =", HEADER), name
            # An FFI object made of tables raises an error of its own for them, one that has parsed the header Python's.
            with pytest.raises(tabled.error):
                getattr(ours, name)
            continue
        mine = getattr(ours, name)
        if isinstance(other, int):
            assert mine == other, name
        else:
            assert signature(tabled.typeof(mine)) == signature(parsed.typeof(other)), name


def signature(function: Any) -> str:
    return re.sub(r"\b(struct|enum) ", "", function.cname)  # the two say it of different ones


def test_tables_of_other_headers_are_made_once(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(cache, "cache_folder", lambda: tmp_path)
    made = tables_of(OTHER)
    assert [path.suffix for path in tmp_path.rglob("*") if path.is_file()] == [".json"]
    monkeypatch.setattr(native_header, "make_tables", lambda header: pytest.fail("made twice"))
    assert tables_of(OTHER) == made
    ffi = native_header._ffi_of_tables()
    ffi.cdef(OTHER)
    assert ffi.sizeof("Other") == ffi.sizeof("int64_t") + ffi.sizeof("void *")
    assert ffi.new("Other *", {"size": 5}).size == 5


def test_damaged_tables_are_made_anew(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(cache, "cache_folder", lambda: tmp_path)
    made = tables_of(OTHER)
    (file,) = (path for path in tmp_path.rglob("*") if path.is_file())
    file.write_bytes(file.read_bytes()[:-20])
    assert tables_of(OTHER) == made
