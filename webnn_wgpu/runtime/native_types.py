"""Enters wgpu's C types in the memo in which cffi looks them up.

wgpu names a C type, such as "WGPUBufferDescriptor *", for every struct that it passes to the native library. For a new name,
cffi has a C parser read all type names of webgpu.h. That takes 15 ms on a fast machine, for each of the fifty names of a first
graph. Then cffi remembers the type. The types of these names follow from the declarations that cffi has parsed already, so the
package enters them itself. The memo then has the content that cffi would have stored, at the same calls of wgpu. The package
replaces nothing of wgpu or cffi.
"""

from __future__ import annotations

import re
from typing import Any

TYPES = (
    "WGPUAdapter[]",
    "WGPUAdapterInfo *",
    "WGPUBindGroupDescriptor *",
    "WGPUBindGroupEntry *",
    "WGPUBindGroupEntry[]",
    "WGPUBindGroupLayoutDescriptor *",
    "WGPUBindGroupLayoutEntry *",
    "WGPUBindGroupLayoutEntry[]",
    "WGPUBindGroupLayout[]",
    "WGPUBufferBindingLayout *",
    "WGPUBufferDescriptor *",
    "WGPUBufferMapCallbackInfo *",
    "WGPUChainedStruct *",
    "WGPUChainedStruct * ",
    "WGPUCommandBufferDescriptor *",
    "WGPUCommandBuffer[]",
    "WGPUCommandEncoderDescriptor *",
    "WGPUComputePassDescriptor *",
    "WGPUComputePipelineDescriptor *",
    "WGPUComputeState *",
    "WGPUDeviceDescriptor *",
    "WGPUDeviceExtras *",
    "WGPUDeviceLostCallbackInfo *",
    "WGPUExtent3D *",
    "WGPUFeatureName[]",
    "WGPUGlobalReport *",
    "WGPUInstanceDescriptor *",
    "WGPUInstanceExtras *",
    "WGPULimits *",
    "WGPUNativeLimits *",
    "WGPUOrigin3D *",
    "WGPUPassTimestampWrites *",
    "WGPUPipelineLayoutDescriptor *",
    "WGPUQuerySetDescriptor *",
    "WGPUQueueDescriptor *",
    "WGPURequestAdapterCallbackInfo *",
    "WGPURequestAdapterOptions *",
    "WGPURequestDeviceCallbackInfo *",
    "WGPUShaderModuleDescriptor *",
    "WGPUShaderSourceWGSL *",
    "WGPUStorageTextureBindingLayout *",
    "WGPUStringView *",
    "WGPUTexelCopyBufferLayout *",
    "WGPUTexelCopyTextureInfo *",
    "WGPUTextureDescriptor *",
    "WGPUTextureViewDescriptor *",
    "WGPUUncapturedErrorCallbackInfo *",
    "char []",
    "intptr_t",
    "uint32_t []",
    "uint8_t *",
    "uint8_t []",
    "uintptr_t",
    "void *",
    "void(WGPUDevice const *, WGPUDeviceLostReason, WGPUStringView, void *, void *)",
    "void(WGPUDevice const *, WGPUErrorType, WGPUStringView, void *, void *)",
    "void(WGPUMapAsyncStatus, WGPUStringView, void *, void *)",
    "void(WGPURequestAdapterStatus, WGPUAdapter, WGPUStringView, void *, void *)",
    "void(WGPURequestDeviceStatus, WGPUDevice, WGPUStringView, void *, void *)",
)
"""The names, as wgpu spells them, that contexts, graphs, runs and textures need. A name that is missing here costs time."""

_SIMPLE = re.compile(r"(?P<name>\w+)(?P<const> const)? ?(?P<suffix>\*|\[\])? ?")
_FUNCTION = re.compile(r"(?P<result>\w+)\((?P<arguments>[\w* ]+(, [\w* ]+)*)\)")
_CONST = 1
"""cffi's qualifier of constants."""


def enter_types(ffi: Any) -> int:
    """Enter the types of `TYPES` in a cffi object's memo, and return the number of new ones.

    An object without such a memo gives 0. Names that the object has not declared are skipped.
    """
    entered = 0
    try:
        from cffi import model

        with ffi._lock:
            declared = _Declared(ffi._parser, model)
            for name in TYPES:
                found = None if name in ffi._parsed_types else declared.type_of(name)
                if found is not None:
                    type_ = found.as_function_pointer() if found.is_raw_function else found
                    ffi._parsed_types[name] = ffi._get_cached_btype(type_), found.is_raw_function
                    entered += 1
    except (ImportError, AttributeError):  # another version of cffi, or its compiled kind, which knows every name
        return entered
    return entered


class _Declared:
    """Finds types among those that cffi has parsed.

    Args:
        parser: the parser of a cffi object.
        model: cffi's classes of types.
    """

    def __init__(self, parser: Any, model: Any) -> None:
        self._declarations, self._pointer_to, self._model = parser._declarations, parser._get_type_pointer, model

    def type_of(self, text: str) -> Any:
        """Return cffi's model of a type, or None if the type does not follow from the declarations."""
        return self._simple(text) or self._function(text)

    def _simple(self, text: str) -> Any:
        """Return a named type, a pointer to one or an array of one. Other texts give None."""
        match = _SIMPLE.fullmatch(text)
        found = match and self._named(match["name"])
        if not match or not found:
            return None
        type_, qualifiers = found
        if match["suffix"] == "*":
            return self._pointer_to(type_, qualifiers | _CONST if match["const"] else qualifiers)
        if match["const"]:
            return None
        return self._model.ArrayType(type_, None) if match["suffix"] else type_

    def _function(self, text: str) -> Any:
        """Return the type of a function of simple types. Other texts give None."""
        match = _FUNCTION.fullmatch(text)
        if not match:
            return None
        result = self._named(match["result"])
        arguments = [self._simple(each) for each in match["arguments"].split(", ")]
        if not result or None in arguments:
            return None
        return self._model.RawFunctionType(tuple(arguments), result[0], False)

    def _named(self, name: str) -> Any:
        """Return a primitive or declared type and its qualifiers. Other names give None."""
        if name == "void":
            return self._model.void_type, 0
        if name in self._model.PrimitiveType.ALL_PRIMITIVE_TYPES:
            return self._model.PrimitiveType(name), 0
        return self._declarations.get(f"typedef {name}")
