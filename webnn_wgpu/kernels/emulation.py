"""Kernels written for float16, on devices that do not have it.

Arithmetic is done in float32 in any case: the emulation changes only the storage of elements. Two elements share a word, which
`shaders/lib/tensor.wgsl.j2` packs and unpacks by their bits (`shaders/lib/math/half.wgsl`), so that results are the same to the
last bit.
"""

from __future__ import annotations

from dataclasses import replace

from ..core.caps import Caps
from .element import ELEMENTS
from .spec import KernelSpec

_FEATURE = ELEMENTS["float16"].feature


def emulated(spec: KernelSpec, caps: Caps) -> KernelSpec:
    """Return the kernel as the device can run it: itself, or with `half` in place of float16."""
    if _FEATURE in caps.features or _FEATURE not in spec.features:
        return spec
    bindings = tuple(replace(b, element="half") if b.element == "float16" else b for b in spec.bindings)
    return replace(spec, bindings=bindings, features=tuple(f for f in spec.features if f != _FEATURE))
