"""Types found without cffi's C parser are those that it finds."""

from __future__ import annotations

from typing import Any

import cffi
import pytest
from wgpu.backends.wgpu_native import _ffi

from webnn_wgpu.runtime.native_types import speed_up_type_lookup

NAMES = [
    "WGPUStringView *",
    "WGPUBufferDescriptor *",
    "WGPUChainedStruct * ",
    "WGPUBindGroupEntry[]",
    "WGPUAdapter[]",
    "WGPUFeatureName[]",
    "WGPUDevice",
    "WGPUDevice *",
    "WGPUInstanceDescriptor",
    "uint8_t []",
    "char []",
    "uint32_t *",
    "uintptr_t",
    "void *",
    "WGPUBindGroupEntry[3]",
    "WGPUStringView const *",
    "void(WGPURequestDeviceStatus, WGPUDevice, WGPUStringView, void *, void *)",
    "void(WGPUDevice const *, WGPUErrorType, WGPUStringView, void *, void *)",
    "int(WGPUBindGroupEntry[3], int)",
]


@pytest.fixture(scope="module")
def ffi() -> Any:
    """What a program has that imported wgpu's binding itself."""
    made: Any = cffi.FFI()
    made.cdef(_ffi.get_wgpu_header())
    assert speed_up_type_lookup(made)
    return made


@pytest.mark.parametrize("name", NAMES)
def test_types_are_those_of_the_parser(ffi: Any, name: str) -> None:
    quick, slow = ffi._parser.parse_type(name), type(ffi._parser).parse_type(ffi._parser, name)
    if "(" in name:
        quick, slow = quick.as_function_pointer(), slow.as_function_pointer()
    with ffi._lock:
        assert ffi._get_cached_btype(quick) is ffi._get_cached_btype(slow)


def test_unknown_types_are_refused_as_before(ffi: Any) -> None:
    with pytest.raises(cffi.CDefError, match="Nonsense"):
        ffi.typeof("Nonsense *")


def test_what_has_no_parser_is_left_as_it_is() -> None:
    assert not speed_up_type_lookup(object())
