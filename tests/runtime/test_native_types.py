"""The types that are entered in the memo of wgpu's cffi object are those that cffi finds by itself."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import cffi
import pytest
from wgpu.backends.wgpu_native import _ffi

from webnn_wgpu.runtime.native_types import TYPES, enter_types

PROGRAM = """
import cffi.cparser
import wgpu.backends.wgpu_native

parsed = []
parse = cffi.cparser.Parser.parse_type

def noted(self, text):
    parsed.append(text)
    return parse(self, text)

import webnn_wgpu as wn
cffi.cparser.Parser.parse_type = noted
context = wn.ml.create_context()
builder = wn.MLGraphBuilder(context)
x = builder.input("x", {"dataType": "float32", "shape": [2, 2]})
graph = builder.build({"y": builder.softmax(builder.matmul(x, x), 1)})
context.compute(graph, {"x": [[1, 2], [3, 4]]})
graph.profile({"x": [[1, 2], [3, 4]]})
print(parsed)
"""


def made() -> Any:
    """What a program has that imported wgpu's binding."""
    ffi: Any = cffi.FFI()
    ffi.cdef(_ffi.get_wgpu_header())
    return ffi


@pytest.fixture(scope="module")
def ffi() -> Any:
    entered = made()
    assert enter_types(entered) == len(TYPES)
    return entered


@pytest.mark.parametrize("name", TYPES)
def test_a_type_is_that_of_the_parser(ffi: Any, name: str) -> None:
    entered = ffi._parsed_types.pop(name)
    with ffi._lock:
        assert ffi._typeof_locked(name) == entered


def test_what_the_memo_has_stays(ffi: Any) -> None:
    assert enter_types(ffi) == 0


def test_unknown_types_are_refused_as_before(ffi: Any) -> None:
    with pytest.raises(cffi.CDefError, match="Nonsense"):
        ffi.typeof("Nonsense *")


def test_types_that_are_not_declared_are_left_out() -> None:
    other: Any = cffi.FFI()
    other.cdef("typedef struct { int size; } WGPUExtent3D;")
    enter_types(other)
    assert "WGPUExtent3D *" in other._parsed_types
    assert "WGPULimits *" not in other._parsed_types
    assert other.new("WGPUExtent3D *", {"size": 3}).size == 3


def test_what_has_no_memo_is_left_as_it_is() -> None:
    assert enter_types(object()) == 0


def test_a_graph_needs_no_type_that_is_not_entered() -> None:
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", PROGRAM], capture_output=True, text=True, check=False)
    assert done.stdout.strip() == "[]", done.stderr
