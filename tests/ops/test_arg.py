from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.ops.movers import TYPES, refusal, typed
from tests.ops.rows import VARIANTS, as_hardware, plan_of, run_plan, runs, variants_of
from tests.support import check_op
from tests.targets import SOFTWARE
from webnn_wgpu.core.caps import Caps
from webnn_wgpu.core.errors import OperationError

if TYPE_CHECKING:
    from webnn_wgpu.ir.graph import Array
    from webnn_wgpu.runtime.device import Device

NAMES = ("argMax", "argMin")

# Ragged rows, rows of quads, columns, dimensions that do not merge, a long row.
CASES: tuple[tuple[tuple[int, ...], dict[str, Any]], ...] = (
    ((3, 37), {"axis": 1}),
    ((5, 136), {"axis": 1, "output_data_type": "int64"}),
    ((2, 35, 3), {"axis": 1, "keep_dimensions": True}),
    ((2, 3, 5, 12), {"axes": [3, 1]}),
    ((70_000,), {}),
)


def with_ties(data_type: str, shape: tuple[int, ...]) -> Array:
    """Return numbers from a handful, so that every row has ties."""
    low = 0 if data_type.startswith("u") else -4
    return np.asarray(np.random.default_rng(1).integers(low, 5, shape)).astype(data_type)


@pytest.mark.parametrize("last", [False, True])
@pytest.mark.parametrize(("data_type", "variant"), [(t, v) for t in TYPES for v in VARIANTS if runs(v, t)])
@pytest.mark.parametrize("name", NAMES)
def test_variants(device: Device, name: str, data_type: str, variant: str, last: bool) -> None:
    for shape, attrs in CASES if data_type == "float32" else CASES[:1]:
        check_op(device, name, [with_ties(data_type, shape)], {**attrs, "select_last_index": last}, forced={"arg": variant})


@pytest.mark.parametrize("name", NAMES)
def test_profiles(profile_device: Device, name: str) -> None:
    for data_type in TYPES:
        # int64 results need no 64-bit arithmetic on the device.
        for output in ("int32", "int64"):
            x = with_ties(data_type, (4, 50))
            check_op(profile_device, name, [x], {"axis": 1, "output_data_type": output})


@pytest.mark.parametrize("last", [False, True])
@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("data_type", ["float32", "float16"])
@pytest.mark.parametrize("name", NAMES)
def test_nan_infinity_and_zeros(device: Device, name: str, data_type: str, variant: str, last: bool) -> None:
    x = with_ties(data_type, (7, 37))
    nan, inf = math.nan, math.inf
    x[0, [3, 30]] = nan
    x[1, [5, 20, 29]] = [np.copysign(nan, -1.0), nan, inf]
    x[2], x[3], x[4] = inf, -inf, nan
    x[5] = np.where(np.arange(37) % 2, 0.0, -0.0)
    x[6, [8, 9]] = [inf, -inf]
    attrs = {"axis": 1, "select_last_index": last}
    (index,) = check_op(device, name, [x], attrs, forced={"arg": variant})
    assert index[[0, 1, 4]].tolist() == [3, 5, 0]
    assert index[5] == (36 if last else 0)


@pytest.mark.parametrize("data_type", ["int32", "uint32", "int64", "uint64", "int8", "uint8"])
def test_extreme_integers(device: Device, data_type: str) -> None:
    low, high = np.iinfo(data_type).min, np.iinfo(data_type).max
    x = np.array([[low, high, low, high], [low] * 4, [high] * 4, [high, high - 1, low + 1, low]], data_type)
    for name in NAMES:
        for last in (False, True):
            check_op(device, name, [x], {"axis": 1, "select_last_index": last})


def test_forms(device: Device) -> None:
    x = np.array([[3, 1, 3], [0, 9, 9]], np.float32)

    def index(name: str, array: Array = x, **attrs: Any) -> Any:
        (found,) = check_op(device, name, [array], attrs)
        return str(found.dtype), found.tolist()

    assert index("argMax", axis=1) == ("int32", [0, 1])
    assert index("argMax", axis=1, keep_dimensions=True) == ("int32", [[0], [1]])
    assert index("argMin", axis=0, output_data_type="int64") == ("int64", [1, 0, 0])
    assert index("argMax") == ("int64", 4)
    assert index("argMax", axes=[0, 1], keep_dimensions=True) == ("int64", [[4]])
    assert index("argMax", axes=[1, 0], select_last_index=True) == ("int64", 5)
    assert index("argMin", axes=[]) == ("int64", [[0, 0, 0], [0, 0, 0]])
    assert index("argMin", array=np.float32(5).reshape(())) == ("int64", 0)
    assert index("argMin", axes=[1], output_data_type="int32") == ("int32", [1, 0])


@pytest.mark.parametrize("variant", VARIANTS)
def test_more_rows_than_a_grid_dimension(device: Device, variant: str) -> None:
    x = with_ties("float32", (70_001, 4))
    plan = plan_of(as_hardware(device.caps), "argMax", [x], {"axis": 1}, {"arg": variant})
    assert variant == "plain" or plan.dispatches[0].grid[1] > 1
    assert np.array_equal(run_plan(device, plan, [x]), x.argmax(axis=1))


@given(st.lists(st.integers(1, 6), min_size=0, max_size=4), st.data())
def test_any_shape_and_axes(device: Device, shape: list[int], data: st.DataObject) -> None:
    axes = data.draw(st.lists(st.sampled_from(range(len(shape))), unique=True) if shape else st.just([]))
    variant = data.draw(st.sampled_from([*VARIANTS, None]))
    attrs = {"axes": axes, "select_last_index": data.draw(st.booleans()), "keep_dimensions": data.draw(st.booleans())}
    x = with_ties("float32", tuple(shape))
    check_op(device, data.draw(st.sampled_from(NAMES)), [x], attrs, forced={"arg": variant} if variant else None)


def test_choice_of_variant() -> None:
    x = np.zeros((8, 1000), np.float32)
    assert variants_of(plan_of(SOFTWARE, "argMax", [x], {"axis": 1})) == ["subgroup"]
    assert variants_of(plan_of(as_hardware(SOFTWARE), "argMax", [x], {"axis": 1})) == ["workgroup"]
    assert variants_of(plan_of(SOFTWARE, "argMax", [x], {"axis": 0})) == ["plain"]
    with pytest.raises(OperationError, match="argMin=subgroup; allowed: plain, workgroup"):
        plan_of(Caps(), "argMin", [x], {"axis": 1}, {"arg": "subgroup"})


def test_refusals() -> None:
    x = typed("float32", 2, 3)
    assert refusal("argMax", [x], {"axis": 1, "axes": [1]}) == (
        "arg_max('here'): only one of axis and axes may be given; got axis=1, axes=[1]. "
        "See https://www.w3.org/TR/webnn/#api-mlgraphbuilder-argminmax"
    )
    assert "axis must be < rank(input): Axis 2 out of bounds for rank 2" in refusal("argMin", [x], {"axis": 2})
    assert "Axis 0 out of bounds for rank 0" in refusal("argMin", [typed("float32")], {"axis": 0})
    assert "Axis 5 out of bounds for rank 2" in refusal("argMin", [x], {"axes": [0, 5]})
    assert "Duplicate axis 0" in refusal("argMin", [x], {"axes": [0, 0]})
    refused = refusal("argMax", [x], {"axis": 0, "output_data_type": "uint32"})
    assert "output_data_type must be a data type; got 'uint32'; allowed: int32, int64" in refused


def test_rows_that_no_invocation_can_read(device: Device) -> None:
    # Mesa's software driver ends the loops of an invocation after 65535 iterations: very long rows need many invocations.
    x = np.random.default_rng(9).permutation(1_500_001).astype(np.int32)
    for data_type in ("int32", "int64"):
        check_op(device, "argMax", [x.astype(data_type)], {"axis": 0})
        check_op(device, "argMin", [x[:1_500_000].astype(data_type)], {"axis": 0})
