"""The number of cores of a GPU, by the name that its adapter reports. WebGPU does not state it.

Cores are those of `architectures.py`. Sources: the vendors' product pages and architecture white papers. A name may be part of
a longer one, so longer names come first. Some names cover several devices, which count as a usual one of them.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ..core.caps import Caps

_USUAL = {"DiscreteGPU": 40, "IntegratedGPU": 10}
"""Cores of a GPU in the middle of the range, by the type of its adapter. Other types count as discrete."""

_NVIDIA = {
    r"rtx 5090": 170,
    r"rtx 5080": 84,
    r"rtx 5070 ti": 70,
    r"rtx 5070": 48,
    r"rtx 5060 ti": 36,
    r"rtx 5060": 30,
    r"rtx 4090 laptop": 76,
    r"rtx 4090": 128,
    r"rtx 4080 laptop": 58,
    r"rtx 4080 super": 80,
    r"rtx 4080": 76,
    r"rtx 4070 laptop": 36,
    r"rtx 4070 ti super": 66,
    r"rtx 4070 ti": 60,
    r"rtx 4070 super": 56,
    r"rtx 4070": 46,
    r"rtx 4060 laptop": 24,
    r"rtx 4060 ti": 34,
    r"rtx 4060": 24,
    r"rtx 3090 ti": 84,
    r"rtx 3090": 82,
    r"rtx 3080 ti": 80,
    r"rtx 3080 laptop": 48,
    r"rtx 3080": 68,
    r"rtx 3070 laptop": 40,
    r"rtx 3070 ti": 48,
    r"rtx 3070": 46,
    r"rtx 3060 laptop": 30,
    r"rtx 3060 ti": 38,
    r"rtx 3060": 28,
    r"rtx 2080 ti": 68,
    r"rtx 2080 super": 48,
    r"rtx 2080": 46,
    r"rtx 2070 super": 40,
    r"rtx 2070": 36,
    r"rtx 2060": 30,
    r"gtx 1660 ti": 24,
    r"gtx 1660": 22,
    r"gtx 1080 ti": 28,
    r"gtx 1080": 20,
    r"gtx 1070": 15,
    r"gtx 1060": 10,
    r"rtx 6000 ada": 142,
    r"rtx a6000": 84,
    r"\bh200\b": 132,
    r"h100 pcie": 114,
    r"\bh100\b": 132,
    r"\ba100\b": 108,
    r"\bl40s?\b": 142,
    r"\bl4\b": 58,
    r"\ba10g?\b": 72,
    r"\bt4\b": 40,
    r"\bv100\b": 80,
}

_AMD = {
    r"rx 9070 xt": 64,
    r"rx 9070": 56,
    r"rx 9060 xt": 32,
    r"rx 7900 xtx": 96,
    r"rx 7900 xt": 84,
    r"rx 7900 gre": 80,
    r"rx 7800 xt": 60,
    r"rx 7700 xt": 54,
    r"rx 7600": 32,
    r"rx 69[05]0 xt": 80,
    r"rx 6800 xt": 72,
    r"rx 6800": 60,
    r"rx 67[05]0 xt": 40,
    r"rx 66[05]0 xt": 32,
    r"rx 6600": 28,
    r"rx 5700 xt": 40,
    r"rx 5700": 36,
    r"rx 5600": 36,
    r"radeon vii": 60,
    r"rx vega 64": 64,
    r"rx vega 56": 56,
    r"rx [45]80\b": 36,
    r"rx [45]70\b": 32,
    r"\b8060s\b": 40,
    r"\b890m\b": 16,
    r"\b780m\b": 12,
    r"\b760m\b": 8,
    r"\b680m\b": 12,
    r"\b660m\b": 6,
}

_INTEL = {
    r"arc(?:\(tm\))? b580": 20,
    r"arc(?:\(tm\))? b570": 18,
    r"arc(?:\(tm\))? a770": 32,
    r"arc(?:\(tm\))? a750": 28,
    r"arc(?:\(tm\))? a580": 24,
    r"arc(?:\(tm\))? a380": 8,
}

_APPLE = {
    r"apple m[12] ultra": 64,
    r"apple m[1234] max": 32,
    r"apple m[1234] pro": 16,
    r"apple m1\b": 8,
    r"apple m[234]\b": 10,
}

_CORES = {**_NVIDIA, **_AMD, **_INTEL, **_APPLE}


def cores_of(caps: Caps) -> int:
    """Return the number of cores of a GPU, or that of a usual one if its name is unknown.

    Args:
        caps: the device.

    Example:
        >>> from webnn_wgpu.core.caps import Caps
        >>> cores_of(Caps(device="NVIDIA GeForce RTX 4070 Ti"))
        60
        >>> cores_of(Caps(device="AMD Radeon RX 6800 XT (RADV NAVI21)"))
        72
        >>> cores_of(Caps(adapter_type="IntegratedGPU", device="Intel(R) UHD Graphics 630"))
        10
    """
    name = caps.device.lower()
    return next(
        (cores for pattern, cores in _CORES.items() if re.search(pattern, name)),
        _USUAL.get(caps.adapter_type, _USUAL["DiscreteGPU"]),
    )
