"""wgpu-native's C functions, in objects that take others in their places. The binding's own object takes none."""

from __future__ import annotations

from typing import Any

from wgpu.backends import wgpu_native
from wgpu.backends.wgpu_native import _api

from webnn_wgpu.runtime import recorder


class _Functions:
    def __init__(self) -> None:
        names = (name for name in dir(wgpu_native.lib) if name.startswith("wgpu"))
        vars(self).update({name: getattr(wgpu_native.lib, name) for name in names})

    def __getattr__(self, name: str) -> Any:
        return getattr(wgpu_native.lib, name)


lib: Any = _Functions()
"""The functions, as wgpu and the raw recorder call them where others collect the errors."""

libf: Any = _api.libf
"""The same functions, which raise wgpu's errors."""

_binding: Any = _api  # for type checkers it has no such attribute
_binding.lib = lib
recorder._native().lib = lib
