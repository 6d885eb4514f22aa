"""The share of a model's work in dispatches that fill a GPU."""

from __future__ import annotations

import pytest

from tests.hardware.collecting import Dispatch
from tests.hardware.occupancy import filling_share, narrow_dispatches
from tests.hardware.report import Row


def row(node: int, operations: int, workgroups: int, invocations: int = 64) -> Row:
    dispatch = Dispatch(
        model="model",
        label=f"node {node}",
        kernel="kernel",
        wgsl="",
        workgroups=workgroups,
        invocations=invocations,
        node=(0, node),
        operations=operations,
    )
    return Row(dispatch=dispatch, compiled=None)


def test_dispatches_with_enough_subgroups_count() -> None:
    assert filling_share([row(0, 300, 80), row(1, 100, 79)]) == pytest.approx(0.75)
    assert filling_share([row(0, 300, 20, 256), row(1, 100, 160, 8)]) == 1


def test_dispatches_of_little_work_are_left_aside() -> None:
    assert filling_share([row(0, 1000, 80), row(1, 9, 1)]) == 1
    assert filling_share([row(0, 1000, 80), row(1, 11, 1)]) < 1
    assert filling_share([]) == 1


def test_dispatches_of_one_node_share_its_work() -> None:
    assert filling_share([row(0, 100, 80), row(0, 100, 1), row(1, 100, 80)]) == pytest.approx(0.75)


def test_narrow_dispatches_are_listed_by_their_work() -> None:
    lines = narrow_dispatches([row(0, 100, 80), row(1, 100, 1), row(2, 200, 2), row(3, 1, 1)])
    assert [line.split()[2] for line in lines] == ["2", "1"]
    assert "4 subgroups" in lines[0]
