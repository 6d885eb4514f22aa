"""The table of models and families."""

from __future__ import annotations

from dataclasses import replace

from tests.hardware.compiler import Compiled
from tests.hardware.summary import faults, summary
from tests.hardware.test_occupancy import row

SOUND = Compiled(registers=8, spills=0, scratch_bytes=0, local_bytes=0, subgroup=64, waves=16, loop=None, text="")


def test_each_kernel_counts_once() -> None:
    spilling = replace(row(0, 100, 80), compiled=replace(SOUND, spills=3, scratch_bytes=16))
    refused = replace(row(1, 100, 80), compiled=None, error="made up")
    refused = replace(refused, dispatch=replace(refused.dispatch, wgsl="another"))
    assert faults([spilling, spilling, refused]) == ["1 refused", "3 registers spilled", "16 bytes of scratch memory"]
    assert faults([replace(row(0, 100, 80), compiled=SOUND)]) == []


def test_the_table_has_models_families_and_drivers() -> None:
    sound = [replace(row(0, 100, 80), compiled=SOUND), replace(row(1, 100, 1), compiled=SOUND)]
    sound[1] = replace(sound[1], dispatch=replace(sound[1].dispatch, wgsl="another"))
    spilling = [replace(each, compiled=replace(SOUND, spills=2)) for each in sound[:1]]
    drivers = {"vega20": "Mesa 22", "navi21": "Mesa 22", "navi31": "Mesa 25"}
    head, _, *table = summary({"vega20": sound, "navi21": sound, "navi31": spilling}, drivers, "2026-01-02").splitlines()
    assert head.startswith("2026-01-02, Mesa 22 (vega20, navi21), Mesa 25 (navi31): 2 registers spilled.")
    assert table[0] == "| Model | vega20 | navi21 | navi31 | work in dispatches that fill a GPU |"
    assert table[2:] == ["| model | 2 | 2 | 1, 2 registers spilled | 50% |", "| all, each text once | 2 | 2 | 1 |  |"]
    head, _, *table = summary({"navi31": [sound[0]]}, drivers, "2026-01-02").splitlines()
    assert "no kernel refused, no register spilled, no scratch memory" in head
    assert table[0] == "| Model | navi31 |"
