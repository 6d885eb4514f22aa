"""Transposes of several tensors: bit by bit, in one kernel where they move quads, also of parts of larger tensors. Refusals."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest

from tests.ops.movers import SIZES, TYPES, check_moves, kernels, random_bits, refusal, run_moves, typed
from tests.support import Sketch
from tests.targets import DEFAULT_TARGET
from webnn_wgpu.ops.transposes import transposed_together
from webnn_wgpu.plan import make_plan

if TYPE_CHECKING:
    from collections.abc import Sequence

    from webnn_wgpu.ir.graph import Array
    from webnn_wgpu.runtime.device import Device

NAME = "transposes"
SHAPES = (
    ((3, 5, 8), (1, 0, 2)),
    ((1, 7, 12, 64), (0, 2, 1, 3)),
    ((2, 5, 3, 4, 2, 8), (3, 1, 0, 2, 4, 5)),
    ((3, 5, 6), (1, 0, 2)),
    ((3, 8, 4), (0, 2, 1)),
    ((5, 7), None),
    ((1, 8), (1, 0)),
    ((), ()),
)
"""Shapes and permutations: quads of neighbors in rows of one quad and of several, other rows, and other neighbors."""


def arrays(data_type: str, shape: Sequence[int], count: int) -> list[Array]:
    return [random_bits(np.random.default_rng(i), data_type, shape) for i in range(count)]


@pytest.mark.parametrize("data_type", SIZES)
@pytest.mark.parametrize(("shape", "permutation"), SHAPES)
def test_shapes(device: Device, data_type: str, shape: tuple[int, ...], permutation: tuple[int, ...] | None) -> None:
    for count in (1, 2, 3, 4):
        check_moves(device, NAME, arrays(data_type, shape, count), {"permutation": permutation})


@pytest.mark.parametrize("data_type", TYPES)
def test_every_type_on_every_device(profile_device: Device, data_type: str) -> None:
    check_moves(profile_device, NAME, arrays(data_type, (5, 2, 8), 2), {"permutation": [1, 0, 2]})


def test_more_workgroups_than_a_grid_dimension_holds(device: Device) -> None:
    rows = np.resize(random_bits(np.random.default_rng(3), "uint8", (4096,)), (2049, 2, 2048))
    check_moves(device, NAME, [rows, rows + 1], {"permutation": [1, 0, 2]}, folded=True)


def test_tensors_that_no_binding_holds_are_transposed_in_parts(device: Device) -> None:
    attrs = {"permutation": [1, 0, 2]}
    check_moves(device, NAME, arrays("float32", (64, 8, 64), 2), attrs, binding_bytes=64 << 10)


def test_only_whole_quads_move_together() -> None:
    for shape, permutation, together in (
        ((3, 5, 8), (1, 0, 2), True),
        ((3, 5, 6), (1, 0, 2), False),
        ((3, 5, 8), (0, 2, 1), False),
        # No element moves.
        ((1, 5, 8), (1, 0, 2), False),
    ):
        type_ = typed("float32", *shape)
        assert transposed_together(type_, permutation, DEFAULT_TARGET) == together
        chosen = kernels(NAME, [type_, type_], {"permutation": permutation})
        assert len(chosen) == (1 if together else 2)
        assert all(name.startswith("transposes") == together for name in chosen)


@pytest.mark.parametrize(("columns", "transposed", "count"), [((4, 8, 8), (1, 2), 1), ((8, 8), (0, 2), 2)])
def test_parts_of_a_concatenation_are_read_where_they_are(
    device: Device, columns: Sequence[int], transposed: Sequence[int], count: int
) -> None:
    """Parts of one tensor are transposed in one kernel, and a part and a whole tensor one by one: their rows differ."""
    s, rng = Sketch(), np.random.default_rng(0)
    # Sums of whole numbers are exact.
    inputs = [rng.integers(-8, 8, shape).astype(np.float32) for n in columns for shape in ((3, 5, 4), (3, 4, n))]
    inputs.append(rng.integers(-8, 8, (3, 5, 8)).astype(np.float32))
    given = [s.input(array) for array in inputs]
    products = [s.apply("matmul", given[2 * i], given[2 * i + 1]) for i in range(len(columns))]
    joint = s.apply("concat", *products, axis=2)
    several = [*products, given[-1]]
    results = s.apply_all(NAME, [several[i] for i in transposed], permutation=[1, 0, 2])
    graph = s.graph(joint, *results)
    plan = make_plan(graph, device.target)
    assert set(plan.parts) == set(products)
    assert len(plan.dispatches) == len(columns) + count
    run_moves(device, graph, inputs)


def test_refusals() -> None:
    x = typed("float32", 2, 3, 4)
    assert "one data type and shape" in refusal(NAME, [x, typed("float32", 2, 3, 8)], {"permutation": [1, 0, 2]})
    assert "permutation" in refusal(NAME, [x, x], {"permutation": [0, 1]})
