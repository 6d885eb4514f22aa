"""`check_kernel` passes kernels that are right, and finds faults that are planted in them."""

from __future__ import annotations

from functools import partial
from itertools import count
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import webnn_wgpu as wn
from tests.support import open_profile
from webnn_wgpu import debug
from webnn_wgpu.testing import KernelCase, KernelFault, check_kernel
from webnn_wgpu.testing.kernel_runs import KernelOnDevice
from webnn_wgpu.testing.kernels import UNPROVEN

if TYPE_CHECKING:
    from collections.abc import Iterator

HEAD = """
@group(0) @binding(0) var<storage, read> x: array<T>;
@group(0) @binding(1) var<storage, read_write> y: array<T>;
"""

SQUARE = (
    HEAD
    + """
@compute @workgroup_size(SIZE) fn main(@builtin(global_invocation_id) id: vec3<u32>) {
    if (id.x < arrayLength(&x)) { y[id.x] = x[id.x] * x[id.x]; }
}"""
)

# The sum of each row, by a tree in workgroup memory.
SUM = (
    HEAD
    + """
var<workgroup> sums: array<T, SIZE>;
@compute @workgroup_size(SIZE)
fn main(@builtin(workgroup_id) wg: vec3<u32>, @builtin(local_invocation_index) i: u32) {
    var sum = T(0);
    for (var c = i; c < COLUMNS; c += SIZE) { sum += x[wg.x * COLUMNS + c]; }
    sums[i] = sum;
    workgroupBarrier();
    for (var half = SIZE / 2u; half > 0u; half /= 2u) {
        if (i < half) { sums[i] += sums[i + half]; }
        workgroupBarrier();
    }
    if (i == 0u) { y[wg.x] = sums[0]; }
}"""
)

SUMS: dict[str, Any] = {
    "shapes": [(3, 100), (5, 64)],
    "constants": lambda case: {"SIZE": np.uint32(32), "COLUMNS": np.uint32(case.shapes[0][1])},
    "workgroups": lambda case: case.shapes[0][0],
}


def row_sums(x: Any) -> Any:
    return x.astype(np.float64).sum(axis=1) if x.dtype.kind == "f" else x.sum(axis=1, dtype=x.dtype)


def squares(case: KernelCase) -> int:
    return -(-int(np.prod(case.shapes[0])) // int(case.constants["SIZE"]))


@pytest.fixture(scope="module", params=("full", "default-limits"))
def on(request: pytest.FixtureRequest) -> Iterator[list[wn.MLContext]]:
    with wn.ml.create_context(open_profile(request.param).gpu) as context:
        yield [context]


def test_a_kernel_for_all_its_types(on: list[wn.MLContext]) -> None:
    types = ["float32", "float16", "int32", "uint32"]
    report = check_kernel(
        SQUARE, np.square, shapes=[7, (3, 50)], dtypes=types, constants={"SIZE": 64}, workgroups=squares, on=on, label="square"
    )
    assert report.distance == 0
    assert [str(c.case) for c in report.checked][:2] == ["float32[7], SIZE=64", "float32[3, 50], SIZE=64"]
    halves = [c for c in report.checked if c.case.dtypes == ("float16",)]
    has_half = "shader-f16" in on[0].caps.features
    assert {c.skipped for c in halves} == {"" if has_half else "the device lacks shader-f16"}
    lines = str(report).splitlines()
    assert lines[0] == "kernel square"
    assert lines[1].split() == ["case", "ULP", "adapter"]
    assert lines[2].startswith("float32[7], SIZE=64")
    assert lines[2].endswith("ok")
    assert len(lines) == 10


def test_a_kernel_with_workgroup_memory_and_barriers(on: list[wn.MLContext]) -> None:
    report = check_kernel(
        SUM,
        row_sums,
        dtypes=["float32", "int32"],
        tolerance=8,
        variations=[{"SIZE": np.uint32(8)}, {"SIZE": np.uint32(256)}],
        on=on,
        inputs=lambda rng, case: [rng.integers(1, 100, case.shapes[0]).astype(case.dtypes[0])],
        **SUMS,
    )
    assert not report.faults
    assert str(report).startswith("kernel\n")
    assert {note for c in report.checked for note in c.notes} == {UNPROVEN, "each case also ran with SIZE=8; with SIZE=256"}


def faults(on: list[wn.MLContext], source: str, reference: Any = np.square, **options: Any) -> str:
    """What is found in a kernel, one fault to a line."""
    given: dict[str, Any] = {"shapes": [(4, 25)], "constants": {"SIZE": 64}, "workgroups": squares, **options}
    with pytest.raises(KernelFault) as raised:
        check_kernel(source, reference, on=on, label="faulty", **given)
    assert str(raised.value) == str(raised.value.report)
    assert "FAULT" in str(raised.value)
    constants = ", constants=constants" if given["constants"] else ""
    assert f"debug.interpret(source, buffers, grid=workgroups{constants}) names" in str(raised.value)
    assert f"debug.trace_wgsl(source, *arrays, workgroups=workgroups{constants}) shows" in str(raised.value)
    return "\n".join(raised.value.report.faults)


def test_wrong_numbers(on: list[wn.MLContext]) -> None:
    found = faults(on, SQUARE.replace("x[id.x] * x[id.x]", "select(x[id.x] * x[id.x], 7.0, id.x == 30u)"))
    assert found.startswith(
        "y: 1 of 100 elements are further than 0 ULP from the reference, the worst at [1, 5]: 7.0 instead of "
    )
    assert "\n" not in found


@pytest.mark.parametrize("behind", [0, 1, 255])
def test_a_write_out_of_bounds(on: list[wn.MLContext], behind: int) -> None:
    found = faults(on, SQUARE.replace("if (id.x <", f"if (id.x == 100u) {{ y[{100 + behind}] = 1.0; }} else if (id.x <"))
    assert found == f"4 bytes outside y were written, the first {4 * behind} bytes behind its end"


def test_a_race_is_not_taken_for_a_read_out_of_bounds(on: list[wn.MLContext]) -> None:
    source = """
    @group(0) @binding(0) var<storage, read> x: array<T>;
    @group(0) @binding(1) var<storage, read_write> y: array<T>;
    var<workgroup> tile: array<T, 64>;
    @compute @workgroup_size(64) fn main(@builtin(local_invocation_index) i: u32) { tile[i] = x[i]; y[i] = tile[63u - i]; }"""
    with pytest.raises(KernelFault) as raised:
        check_kernel(source, np.flip, shapes=[64], workgroups=1, on=on)
    assert "out of bounds" not in "\n".join(raised.value.report.faults)
    note = "note: not looked for: reads out of bounds and of elements before they are written, because results depend on "
    assert note in str(raised.value)
    assert "; repair the race and check again" in str(raised.value)


def test_equal_results_of_all_orders_do_not_exclude_a_race(on: list[wn.MLContext]) -> None:
    source = """
    @group(0) @binding(0) var<storage, read> x: array<T>;
    @group(0) @binding(1) var<storage, read_write> y: array<T>;
    var<workgroup> tile: array<T, 8>;
    @compute @workgroup_size(8) fn main(@builtin(local_invocation_index) i: u32) { tile[i] = x[i]; y[i] = tile[i]; }"""
    report = check_kernel(source, np.copy, shapes=[8], workgroups=1, on=on)
    assert f"note: {UNPROVEN}" in str(report)
    with pytest.raises(KernelFault) as raised:
        check_kernel(source.replace("= tile[i];", "= tile[7u - i];"), np.copy, shapes=[8], workgroups=1, on=on)
    assert UNPROVEN not in str(raised.value)
    # One of two cases shows the race: the invocations of the other read what they wrote.
    halves = source.replace("= tile[i];", "= tile[select(i, 7u - i, arrayLength(&x) > 8u)];")
    with pytest.raises(KernelFault) as raised:
        check_kernel(halves, lambda x: x[:8].copy(), shapes=[8, 16], workgroups=1, on=on)
    assert [bool(c.faults) for c in raised.value.report.checked] == [False, True] * len(on)
    assert UNPROVEN not in str(raised.value)


def test_a_reference_of_another_shape(on: list[wn.MLContext]) -> None:
    with pytest.raises(KernelFault, match=r"note: outputs have the shapes of the reference's results: y \[3\]"):
        check_kernel(SQUARE, lambda x: np.square(x)[:3], shapes=[8], constants={"SIZE": 8}, workgroups=1, on=on)


def test_a_read_out_of_bounds(on: list[wn.MLContext]) -> None:
    # The sum of neighbors: the last has none.
    source = SQUARE.replace("x[id.x] * x[id.x]", "x[id.x] + x[id.x + 1u]")

    def neighbors(x: Any) -> Any:
        return x + np.append(x.reshape(-1)[1:], np.float32(0)).reshape(x.shape)

    found = faults(on, source, neighbors)
    # Whether there is a 0 to be read, or the last element once more, is up to the driver.
    assert "y: elements depend on what lies outside of a buffer: read out of bounds; 1 of 100, the first at [3, 24]" in found
    assert "before" not in found


def test_an_element_that_is_never_written(on: list[wn.MLContext]) -> None:
    found = faults(on, SQUARE.replace("id.x < arrayLength(&x)", "id.x < 98u"))
    assert ", the fill pattern of elements that are never written, instead of " in found
    assert "y: elements are never written; 2 of 100, the first at [3, 23]" in found
    assert "before" not in found


def test_a_read_before_the_write(on: list[wn.MLContext]) -> None:
    found = faults(on, SQUARE.replace("y[id.x] = x[id.x] * x[id.x];", "y[id.x] += x[id.x] * x[id.x];"))
    assert (
        "y: elements depend on what was in an output before: read before it was written, and not `updated`; 100 of 100" in found
    )
    report = check_kernel(
        HEAD + "@compute @workgroup_size(1) fn main(@builtin(workgroup_id) id: vec3<u32>) { y[id.x] += x[id.x]; }",
        np.add,
        shapes=[[(4,), (4,)]],
        workgroups=4,
        updated=["y"],
        on=on,
    )  # what has a content before may be read
    assert not report.faults


def test_a_missing_barrier(on: list[wn.MLContext]) -> None:
    source = (
        HEAD
        + """
var<workgroup> tile: array<T, 64>;
@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3<u32>, @builtin(local_invocation_id) at: vec3<u32>) {
    tile[at.x] = x[id.x];
    workgroupBarrier();
    y[id.x] = x[id.x] + select(T(0), tile[max(at.x, 8u) - 8u], at.x >= 8u);
}"""
    )

    def lagged(x: Any) -> Any:
        return x + np.concatenate([np.zeros((x.shape[0], 8), x.dtype), x[:, :-8]], axis=1)

    given: dict[str, Any] = {"shapes": [(2, 64)], "workgroups": 2, "constants": {}}
    assert not check_kernel(source, lagged, on=on, **given).faults
    for _ in range(20):  # also where a run finds in workgroup memory what another one has left there
        found = faults(on, source.replace("    workgroupBarrier();\n", ""), lagged, **given)
        assert "y: elements depend on the order of invocations: a race, seen when the invocations of a workgroup run" in found


LATE = """
    for (var k = 0u; k < 4096u && i >= 128u; k++) { late ^= late << 13u; late ^= late >> 17u; late ^= late << 5u; }
"""
"""Work of half of the invocations that no compiler can leave out. Subgroups have 128 invocations at most: none waits for it."""

MAXIMUM = (
    HEAD
    + """
var<workgroup> tile: array<T, 256>;
@compute @workgroup_size(256)
fn main(@builtin(workgroup_id) wg: vec3<u32>, @builtin(local_invocation_index) i: u32) {
    var late = i + 1u;
    LATE
    tile[i] = select(T(0), x[256u * wg.x + i], late != 0u);
    for (var half = 128u; half > 0u; half /= 2u) {
        workgroupBarrier();
        if (i < half) { tile[i] = CHOSEN(tile[i], tile[i + half]); }
    }
    if (i == 0u) { y[wg.x] = tile[0]; }
}"""
)


@pytest.mark.parametrize("chosen", ["max", "min"])
@pytest.mark.parametrize("rows", [1, 2, 3, 8])
def test_a_race_in_a_maximum(on: list[wn.MLContext], chosen: str, rows: int) -> None:
    source = MAXIMUM.replace("CHOSEN", chosen).replace("LATE", "")
    reference = partial(getattr(np, chosen), axis=1)
    given: dict[str, Any] = {"shapes": [(rows, 256)], "dtypes": ["float32", "int32"], "workgroups": rows, "constants": {}}
    assert not check_kernel(source, reference, on=on, **given).faults
    racing = source.replace("        workgroupBarrier();\n", "")
    if on[0].caps.is_software:
        # Subgroups run one after the other, so that the order of invocations decides.
        assert "a race" in faults(on, racing, reference, **given)
    # Whatever runs at the same time: the second half of the row comes late, in any order of invocations.
    racing = MAXIMUM.replace("CHOSEN", chosen).replace("LATE", LATE).replace("        workgroupBarrier();\n", "")
    assert "further than 0 ULP from the reference" in faults(on, racing, reference, **given)


def test_sets_of_elements_differ(on: list[wn.MLContext]) -> None:
    seen: list[Any] = []

    def squared(x: Any) -> Any:
        seen.append(x)
        return np.square(x)

    options: dict[str, Any] = {"shapes": [(2, 9)], "dtypes": ["int32"], "workgroups": squares, "constants": {"SIZE": 8}}
    check_kernel(SQUARE, squared, on=on, **options)
    assert len(seen) == 4
    assert len({x.tobytes() for x in seen}) == 4
    assert (seen[1][:, -1] == seen[1].max(axis=1)).all()
    assert (seen[2][:, -1] == seen[2].min(axis=1)).all()
    seen.clear()
    check_kernel(SQUARE, squared, on=on, inputs=lambda rng, case: [np.ones((2, 9), np.int32)], **options)
    assert len(seen) == 1


@pytest.mark.parametrize("dtype", ["int32", "uint32"])
def test_a_reference_may_compute_in_64_bits(on: list[wn.MLContext], dtype: str) -> None:
    source = (
        HEAD
        + """
@compute @workgroup_size(1) fn main() {
    var sum = x[0];
    for (var i = 1u; i < 9u; i++) { sum += x[i]; }
    y[0] = sum;
}"""
    )
    assert not check_kernel(source, np.sum, shapes=[9], dtypes=[dtype], workgroups=1, on=on).faults
    assert "1 of 1 elements" in faults(on, source, lambda x: x.sum() + 1, shapes=[9], dtypes=[dtype], workgroups=1)


def test_integers_of_a_reference_take_the_declared_type(on: list[wn.MLContext]) -> None:
    source = """@group(0) @binding(0) var<storage, read> x: array<T>;
@group(0) @binding(1) var<storage, read_write> y: array<T>;
@group(0) @binding(2) var<storage, read_write> places: array<u32>;
@compute @workgroup_size(1) fn main() {
    var least = 0u;
    for (var i = 1u; i < 9u; i++) { if (x[i] < x[least]) { least = i; } }
    y[0] = x[least];
    places[0] = least;
}"""
    options: dict[str, Any] = {"shapes": [9], "dtypes": ["float32", "int64"], "workgroups": 1}
    assert not check_kernel(source, lambda x: [x.min(), x.argmin()], on=on, **options).faults
    found = faults(on, source, lambda x: [x.min(), x.argmin() + 1], **options)
    assert "places: 1 of 1 elements" in found
    assert "never written" not in found


def test_a_number_is_a_shape_among_others(on: list[wn.MLContext]) -> None:
    source = """
@group(0) @binding(0) var<storage, read> x: array<T>;
@group(0) @binding(1) var<storage, read> factor: T;
@group(0) @binding(2) var<storage, read_write> y: array<T>;
@compute @workgroup_size(4) fn main(@builtin(local_invocation_index) i: u32) { y[i] = x[i] * factor; }"""
    report = check_kernel(source, np.multiply, shapes=[[4, ()]], workgroups=1, on=on)
    assert [str(c.case) for c in report.checked] == ["float32[4], float32[]"]


def test_a_kernel_without_inputs(on: list[wn.MLContext]) -> None:
    source = """@group(0) @binding(0) var<storage, read_write> y: array<u32>;
@compute @workgroup_size(8) fn main(@builtin(local_invocation_index) i: u32) { y[i] = i; }"""
    assert not check_kernel(source, lambda: np.arange(8), shapes=[[]], dtypes=[[]], workgroups=1, on=on).faults


def test_a_later_set_of_elements_is_named(on: list[wn.MLContext]) -> None:
    drawn: list[Any] = []

    def wrong_later(x: Any) -> Any:
        drawn.append(x)
        return np.square(x) + (len(drawn) == 3)

    found = faults(on, SQUARE, wrong_later, shapes=[5], dtypes=["int32"], workgroups=squares, constants={"SIZE": 8})
    assert found.endswith("by 1 ULP, with set 3 of 4 of elements")
    assert len(drawn) == 4


def test_the_elements_of_a_fault_are_in_the_report(on: list[wn.MLContext]) -> None:
    case: dict[str, Any] = {"dtypes": ["int32"], "workgroups": squares, "constants": {"SIZE": 8}, "on": on}
    with pytest.raises(KernelFault) as raised:
        check_kernel(SQUARE, lambda x: x**2 + (len(x) > 5 and x[-1] == x.max()), shapes=[5, 6], **case)
    report = raised.value.report
    right, wrong = report.checked
    assert right.inputs == ()
    (x,) = wrong.inputs
    assert (x.dtype, x.shape, x[-1]) == (np.int32, (6,), x.max())
    assert "next: error.report.checked[1].inputs are the arrays of the first case with faults" in str(report)
    found = debug.interpret(SQUARE, [*wrong.inputs, x.nbytes], grid=1, constants={"SIZE": 8})
    assert np.array_equal(found.outputs["y"].view(np.int32), x**2)


def test_a_tolerance_of_the_reported_distance_suits_all_sets(on: list[wn.MLContext]) -> None:
    drawn: list[Any] = []

    def wrong_by(x: Any) -> Any:
        drawn.append(x)
        return np.square(x) + (0, 3, 5, 2)[(len(drawn) - 1) % 4]

    given = dict(shapes=[5], dtypes=["int32"], workgroups=squares, constants={"SIZE": 8}, variations=[{"SIZE": 4}])
    with pytest.raises(KernelFault) as raised:
        check_kernel(SQUARE, wrong_by, on=on, **given)
    first, varied = raised.value.report.faults
    assert first.endswith("by 5 ULP, with set 3 of 4 of elements")
    assert varied.endswith("by 5 ULP, with SIZE=4 instead, with set 3 of 4 of elements")
    assert check_kernel(SQUARE, wrong_by, on=on, tolerance=raised.value.report.distance, **given).distance == 5


def test_the_distance_of_a_report_is_that_of_variations_too(on: list[wn.MLContext]) -> None:
    source = SQUARE.replace("= x[id.x] * x[id.x]", "= x[id.x] * x[id.x] + T(SIZE - 8)")
    given = dict(shapes=[5], dtypes=["int32"], workgroups=squares, constants={"SIZE": 8}, variations=[{"SIZE": 11}])
    assert check_kernel(source, np.square, on=on, tolerance=3, **given).distance == 3


def test_a_race_of_workgroups(on: list[wn.MLContext]) -> None:
    source = (
        HEAD
        + """
@compute @workgroup_size(1) fn main(@builtin(workgroup_id) wg: vec3<u32>) {
    y[wg.x / 8u] = x[wg.x];
}"""
    )
    found = faults(on, source, lambda x: x[7::8], shapes=[(64,)], workgroups=64, constants={})
    assert "a race" in found


def test_what_chance_decides_is_put_down_to_nothing_else(on: list[wn.MLContext], monkeypatch: pytest.MonkeyPatch) -> None:
    run, calls = KernelOnDevice.run, count()

    def by_chance(self: KernelOnDevice, *args: Any, **options: Any) -> tuple[dict[str, Any], list[str]]:
        outputs, damage = run(self, *args, **options)
        outputs["y"][0] += next(calls)
        return outputs, damage

    monkeypatch.setattr(KernelOnDevice, "run", by_chance)
    found = faults(on, SQUARE, np.square, shapes=[5], workgroups=squares, constants={"SIZE": 8}, permute=False, tolerance=1e9)
    assert found == "y: elements depend on chance: a race; 1 of 5, the first at [0]"


def test_a_size_of_workgroups_that_it_cannot_have(on: list[wn.MLContext]) -> None:
    # A tree that takes it for granted that there are 32.
    source = SUM.replace("half = SIZE / 2u", "half = 16u")
    options: dict[str, Any] = {**SUMS, "tolerance": 8, "inputs": lambda rng, case: [np.ones(case.shapes[0], np.float32)]}
    assert not check_kernel(source, row_sums, on=on, **options).faults
    found = faults(on, source, row_sums, variations=[{"SIZE": np.uint32(64)}], **options)
    assert ", with SIZE=64 instead" in found
    assert "race" not in found


def test_a_template(on: list[wn.MLContext]) -> None:
    source = """{{ lib("exp") }}
{% for name in "xy" %}
@group(0) @binding({{ loop.index0 }}) var<storage, {{ "read" if name == "x" else "read_write" }}> {{ name }}: array<f32>;
{% endfor %}
@compute @workgroup_size({{ size }}) fn main(@builtin(global_invocation_id) id: vec3<u32>) {
    if (id.x < {{ shapes[0][0] }}u) { y[id.x] = exp_f32(x[id.x]); }
}"""
    report = check_kernel(
        source,
        lambda x: np.exp(x.astype(np.float64)),
        shapes=[1000],
        parameters={"size": 64},
        workgroups=16,
        tolerance=2,
        on=on,
    )
    assert 0 < report.distance <= 2


def test_atomic_operations_that_hand_out_places(on: list[wn.MLContext]) -> None:
    source = """
@group(0) @binding(0) var<storage, read> x: array<u32>;
@group(0) @binding(1) var<storage, read_write> places: array<atomic<u32>>;
@group(0) @binding(2) var<storage, read_write> y: array<u32>;
@compute @workgroup_size(8) fn main(@builtin(global_invocation_id) id: vec3<u32>) {
    let place = atomicAdd(&places[0], 1u);
    if (id.x < arrayLength(&x)) { y[place] = 1u; }
}"""
    report = check_kernel(
        source,
        lambda x, places: [places + np.uint32(32), np.ones_like(x)],
        shapes=[[(32,), (1,)]],
        dtypes=["uint32"],
        inputs=lambda rng, case: [np.zeros(32, np.uint32), np.zeros(1, np.uint32)],
        updated=["places"],
        workgroups=4,
        on=on,
    )
    assert not report.faults


def test_what_cannot_be_looked_for_is_said(on: list[wn.MLContext]) -> None:
    source = (
        HEAD.replace("array<T>", "array<Pair>")
        + """
struct Pair { a: f32, b: f32 }
struct Input { @builtin(global_invocation_id) id: vec3<u32> }
@compute @workgroup_size(1) fn main(input: Input) {
    if (input.id.x < arrayLength(&x)) { y[input.id.x] = Pair(x[input.id.x].b, x[input.id.x].a); }
}"""
    )
    report = check_kernel(source, lambda x: x[:, ::-1], shapes=[(5, 2)], workgroups=5, on=on)
    notes = [line for line in str(report).splitlines() if line.startswith("note: ")]
    assert notes[0].startswith("note: not looked for: what happens when workgroups run from the last to the first (main takes")
    assert notes[2] == "note: bound without canaries, because their lengths are taken indirectly: x"
    assert len(notes) == 3


def test_what_is_refused(on: list[wn.MLContext], reference: wn.MLContext) -> None:
    given: dict[str, Any] = {"shapes": [4], "workgroups": 1, "constants": {"SIZE": 4}, "on": on}
    with pytest.raises(wn.MLTypeError, match=r"check_kernel: the source must declare a buffer for every input"):
        check_kernel(SQUARE, np.add, **{**given, "shapes": [[(4,), (4,)]]})
    with pytest.raises(wn.MLTypeError, match=r"inputs must be of the case's shapes and types; got float32\[3\], SIZE"):
        check_kernel(SQUARE, np.square, **given, inputs=lambda rng, case: [np.ones(3, np.float32)])
    with pytest.raises(wn.MLTypeError, match="the reference must return an array for every output; got 2; allowed: 1"):
        check_kernel(SQUARE, lambda x: [x, x], **given)
    with pytest.raises(wn.MLTypeError, match="there must be a data type for each input"):
        check_kernel(SQUARE, np.square, **given, dtypes=[["float32", "int32"]])
    with pytest.raises(wn.MLTypeError, match="unknown data type; got float64; allowed: float32, "):
        check_kernel(SQUARE, np.square, **given, dtypes=["float64"])
    with pytest.raises(wn.MLTypeError, match="there must be at least one shape and one data type"):
        check_kernel(SQUARE, np.square, **{**given, "shapes": []})
    rule = "a case must be the shape of an input, or a list of the inputs' shapes"
    for shapes in ("n", [[(2,), "n"]], [(2.0,)]):
        with pytest.raises(wn.MLTypeError, match=f"{rule}; got .* The shapes of several inputs are one case"):
            check_kernel(SQUARE, np.square, **{**given, "shapes": shapes})
    floats = SQUARE.replace("array<T>", "array<f32>")
    for source, reference_function, changed, message in (
        (SQUARE, np.square, {"shapes": 64}, r"shapes must be a list .*; got 64; allowed: shapes=\[64\]"),
        (SQUARE, np.square, {"dtypes": "float32"}, r"dtypes must be a list .*; got 'float32'; allowed: dtypes=\['float32'\]"),
        (SQUARE, np.square, {"dtypes": ["f32"]}, "unknown data type; got 'f32'; allowed: float32, "),
        (SQUARE, np.square, {"on": on[0]}, r"on must be a list of contexts; got MLContext.*; allowed: on=\[context\]"),
        (SQUARE, np.square, {"on": "llvmpipe"}, "on must be a list of contexts; got 'llvmpipe'"),
        (SQUARE, lambda x: None, {}, "the reference must return arrays of numbers; got None"),
        (floats, np.square, {"dtypes": ["int32"]}, r"got x: int32; allowed: float32, for array<f32>. Change `dtypes`"),
        (SQUARE, np.square, {"variations": [{"SIZ": 8}]}, "variations must name constants .*; got SIZ; allowed: SIZE"),
        ("kernel.wgsl", np.square, {}, r"must have an entry point main; got 'kernel.wgsl.*A file is read by Path\(file\)"),
    ):
        with pytest.raises(wn.MLTypeError, match=message):
            check_kernel(source, reference_function, **{**given, **changed})
    with pytest.raises(wn.MLTypeError, match="draws must be positive; got 0"):
        check_kernel(SQUARE, np.square, **given, draws=0)
    with pytest.raises(wn.MLTypeError, match="workgroups must be one to three positive integers"):
        check_kernel(SQUARE, np.square, **{**given, "workgroups": 0})
    with pytest.raises(wn.OperationError, match=r"check_kernel\('mine'\): .*no definition in scope for identifier: `wrong`"):
        check_kernel(SQUARE.replace("* x[id.x]", "* wrong"), np.square, **given, label="mine")
    with pytest.raises(
        wn.OperationError, match=r"`SCALE` in .*\. `constants=\{'SCALE': \.\.\.\}` defines a constant\. Its source"
    ):
        check_kernel(SQUARE.replace("* x[id.x]", "* SCALE"), np.square, **given)
    with pytest.raises(
        wn.OperationError, match=r"Pass an int for a constant that is a size or an index: `N = 4\.0` is a float\. Its"
    ):
        check_kernel(SQUARE.replace("y[id.x] =", "y[id.x % N] ="), np.square, **{**given, "constants": {"SIZE": 4, "N": 4.0}})
    with pytest.raises(wn.OperationError) as raised:
        check_kernel(SQUARE.replace("* x[id.x]", "* wrong * N"), np.square, **{**given, "constants": {"SIZE": 4, "N": 4.0}})
    assert "Pass an int" not in str(raised.value)
    with pytest.raises(wn.NotSupportedError, match="the context has no WebGPU device"):
        check_kernel(SQUARE, np.square, **{**given, "on": [reference]})


@pytest.fixture(scope="module")
def reference() -> Iterator[wn.MLContext]:
    with wn.ml.create_context(backend="reference") as context:
        yield context
