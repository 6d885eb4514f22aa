from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from webnn_wgpu.testing import check_kernel
from webnn_wgpu.testing.rewriting import reordered, unfenced, without_comments

ALL = """
@group(0) @binding(0) var<storage, read_write> y: array<u32>; // fn main(@builtin(workgroup_id) no: vec3<u32>) {
const SIDE = 2;
@compute /* @workgroup_size(1) */ @workgroup_size(SIDE, 3, (SIDE + 2))
fn main(
    @builtin(workgroup_id) wg: vec3<u32>, // the ( group
    @builtin(local_invocation_id) at: vec3u,
    @builtin(local_invocation_index) index: u32,
    @builtin( global_invocation_id ) id: vec3<u32>,
    @builtin(num_workgroups) grid: vec3<u32>,
) {
    let group = wg.x + grid.x * (wg.y + grid.y * wg.z);
    y[group * 24u + index] = id.x + 100u * id.y + 10000u * id.z + 1000000u * (at.x + 10u * at.y + 100u * at.z);
}"""


def numbered() -> Any:
    """What `ALL` writes, for a grid of 3 x 2 x 2 workgroups."""
    found = np.zeros((2, 2, 3, 4, 3, 2), np.uint32)
    for k, j, i, z, y, x in np.ndindex(*found.shape):
        found[k, j, i, z, y, x] = i * 2 + x + 100 * (j * 3 + y) + 10000 * (k * 4 + z) + 1000000 * (x + 10 * y + 100 * z)
    return found.reshape(-1)


def test_whatever_the_order_the_numbers_are_those_of_the_specification() -> None:
    report = check_kernel(ALL, numbered, shapes=[[]], dtypes=[[]], workgroups=(3, 2, 2), label="all")
    assert all(not c.notes for c in report.checked)  # it was run in both orders


def test_lines_stay_where_they_are() -> None:
    for options in ({"workgroups": True, "invocations": False}, {"workgroups": False, "invocations": True}):
        changed = reordered(ALL, **options)
        assert changed is not None
        lines = zip(ALL.splitlines(), changed.splitlines(), strict=True)
        assert [i for i, (was, now) in enumerate(lines) if was != now] == [5, 6, 7, 8, 10]


@pytest.mark.parametrize(
    "main",
    [
        "@compute @workgroup_size(64) fn main(input: Input) {}",
        "fn main(@builtin(workgroup_id) wg: vec3<u32>) {}",
        "@compute @workgroup_size(64) fn other(@builtin(workgroup_id) wg: vec3<u32>) {}",
    ],
)
def test_what_cannot_be_reordered(main: str) -> None:
    assert reordered(main, workgroups=True, invocations=False) is None


def test_subgroups_keep_their_invocations() -> None:
    source = "@compute @workgroup_size(64) fn main(@builtin(workgroup_id) wg: vec3<u32>) { y[wg.x] = subgroupAdd(1u); }"
    assert reordered(source, workgroups=False, invocations=True) is None
    assert reordered(source, workgroups=True, invocations=False) is not None


@pytest.mark.parametrize(
    ("item", "count"),
    [
        ("f32", 16),
        ("f16", 32),
        ("u64", 8),
        ("vec2<f32>", 8),
        ("vec3f", 4),
        ("vec4h", 8),
        ("atomic<u32>", 16),
        ("Item", 8),
        ("vec3<Word>", 4),
    ],
)
def test_items_are_counted_in_their_size(item: str, count: int) -> None:
    source = (
        f"alias Word = i32; alias Item = vec2<Word>; @group(0) @binding(0) var<storage, read_write> x : array< {item} >;\n"
        "fn main() { let n = arrayLength( & x ) + arrayLength(&(x)); /* arrayLength(&x) */ }"
    )
    changed, free = unfenced(source, {"x": 64})
    assert free == {"x"}
    assert changed.count(f" - {count}u)") == 2
    assert "/* arrayLength(&x) */" in changed


def test_buffers_whose_lengths_are_taken_otherwise_stay_fenced() -> None:
    head = "var<storage> x: array<f32>; var<storage> y: array<Pair>; var<storage> z: array<f32, 4>; "
    assert unfenced(head + "arrayLength(&x); arrayLength(&y);", {"x": 64, "y": 64, "z": 64})[1] == {"x", "z"}
    for other in ("let p = &x; arrayLength(p);", "arrayLength(&w.items);"):
        assert unfenced(head + other, {"x": 64, "y": 64, "z": 64}) == (head + other, frozenset())


def test_comments_of_both_kinds() -> None:
    assert without_comments("a // b\nc /* d\n e */ f") == "a     \nc     \n      f"
