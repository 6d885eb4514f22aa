from __future__ import annotations

import re

import pytest

from tests.golden.records import record
from webnn_wgpu.core.caps import Caps
from webnn_wgpu.costs.architectures import ARCHITECTURES, UNKNOWN, architecture_of, summary_of

NAMES = {
    "AMD Radeon RX 580 (RADV POLARIS10)": "AMD GCN",
    "AMD Radeon RX Vega (RADV VEGA10)": "AMD GCN",
    "AMD Radeon Graphics (RADV RENOIR)": "AMD GCN",
    "AMD Radeon RX 6800 XT": "AMD RDNA",
    "AMD Radeon(TM) Graphics": "AMD RDNA",
    "NVIDIA GeForce RTX 4070": "NVIDIA Turing or later",
    "NVIDIA GeForce GTX 1660 Ti": "NVIDIA Turing or later",
    "NVIDIA H100 PCIe": "NVIDIA Turing or later",
    "NVIDIA GeForce GTX 1080": "NVIDIA before Turing",
    "Intel(R) Arc(TM) A770 Graphics": "Intel Xe",
    "Intel(R) Iris(R) Xe Graphics (TGL GT2)": "Intel Xe",
    "Intel(R) UHD Graphics 630": "Intel Gen9 or Gen11",
    "Apple M2": "Apple",
    "Adreno (TM) 740": "Qualcomm Adreno",
    "Mali-G78": "unknown",
    "": "unknown",
}


@pytest.mark.parametrize("device", NAMES)
def test_the_names_of_adapters_tell_their_architectures(device: str) -> None:
    assert architecture_of(Caps(device=device)).name == NAMES[device]


def test_recorded_devices_have_architectures_of_their_own() -> None:
    records = ("amd", "nvidia", "intel", "apple", "qualcomm")
    found = [architecture_of(Caps.from_json(record(name))) for name in records]
    assert UNKNOWN not in found
    assert len(set(found)) == len(records)


def test_an_unknown_adapter_is_in_the_middle() -> None:
    for figure in ("multiply_adds", "local_rate_bytes", "most_results", "register_bytes", "local_bytes"):
        values = [getattr(each, figure) for each in ARCHITECTURES]
        assert min(values) <= getattr(UNKNOWN, figure) <= max(values)


def test_the_summary_is_that_of_the_device() -> None:
    found = summary_of(Caps(device="AMD Radeon RX 6800 XT"))
    assert found.startswith("AMD RDNA: subgroups of 32 or 64; per core and clock 128 multiply-adds, 2 times as many of float16")
    assert summary_of(Caps(adapter_type="CPU", device="AMD Radeon RX 6800 XT")) == "a processor"


def test_patterns_are_in_lower_case_as_names_are_compared() -> None:
    for each in ARCHITECTURES:
        assert re.sub(r"\\.", "", each.pattern) == re.sub(r"\\.", "", each.pattern).lower()
