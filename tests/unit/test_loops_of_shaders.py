"""Loops of a compiled kernel get the lines of the loops that they come from, where no other match is possible."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from webnn_wgpu.debug.translation.loops import SourceLoop, lines_of_loops, source_loops

if TYPE_CHECKING:
    from collections.abc import Sequence

SHADER = """
@group(0) @binding(0) var<storage, read_write> y: array<f32>;
fn total(first: u32) -> f32 {
    var sum = 0.0;
    for (var i = first; i < 9u; i++) {
        sum += y[i * 2u];
    }
    return sum;
}
fn product(x: f32) -> f32 {
    return x * x;
}
@compute @workgroup_size(64)
fn main(@builtin(local_invocation_index) lane: u32) {
    var i = lane;
    while (i < 100u) {
        y[i] = total(0u) + total(i);
        i += 1u;
    }
    loop {
        y[lane] = product(y[lane]);
        continuing {
            i += 1u;
            break if i > 200u;
        }
    }
    for (; i < 300u; i++) { y[lane] = fma(y[lane], 2.0, 1.0); }
}
"""


def shape(loops: Sequence[SourceLoop]) -> list[Any]:
    return [(loop.first, loop.last, loop.multiplies, shape(loop.inner)) for loop in loops]


def compiled(label: str, *inner: Any, multiply_adds: int = 0) -> dict[str, Any]:
    return {"label": label, "figures": {"multiply-adds": multiply_adds}, "inner": [*inner]}


def matched(loops: Sequence[Any]) -> dict[str, str]:
    return {label: str(loop) for label, loop in lines_of_loops(loops, source_loops(SHADER)).items()}


def test_loops_stand_where_the_entry_point_runs_them() -> None:
    # The multiplication in an index makes no float.
    sums = (5, 6, False, [])
    assert shape(source_loops(SHADER)) == [(16, 18, False, [sums, sums]), (20, 24, True, []), (27, 27, True, [])]


@pytest.mark.parametrize("shader", ["fn main() {", "fn other() { loop { break; } }", ""])
def test_shaders_without_a_readable_entry_point_have_no_loops(shader: str) -> None:
    assert source_loops(shader) == ()


def test_loops_of_the_same_shape_are_matched() -> None:
    loops = [compiled("BB1", compiled("BB2"), compiled("BB4")), compiled("BB7"), compiled("BB9", multiply_adds=1)]
    assert matched(loops) == {
        "BB1": "lines 16-18",
        "BB2": "lines 5-6",
        "BB4": "lines 5-6",
        "BB7": "lines 20-24",
        "BB9": "lines 27-27",
    }


def test_a_loop_that_was_removed_leaves_the_others_their_lines() -> None:
    # One of two calls of a function was unrolled. Both have the same lines.
    assert matched([compiled("BB1", compiled("BB2")), compiled("BB7"), compiled("BB9")]) == {
        "BB1": "lines 16-18",
        "BB2": "lines 5-6",
        "BB7": "lines 20-24",
        "BB9": "lines 27-27",
    }
    # Of the two loops that are left, the first has an inner loop, and so only one place.
    assert matched([compiled("BB1", compiled("BB2"), compiled("BB4")), compiled("BB9", multiply_adds=1)]) == {
        "BB1": "lines 16-18",
        "BB2": "lines 5-6",
        "BB4": "lines 5-6",
    }
    # Two loops that multiply are the last two.
    assert matched([compiled("BB1", multiply_adds=1), compiled("BB2", multiply_adds=1)]) == {
        "BB1": "lines 20-24",
        "BB2": "lines 27-27",
    }


def test_loops_that_the_compiler_added_get_no_lines() -> None:
    assert matched([compiled(f"BB{i}") for i in range(4)]) == {}
