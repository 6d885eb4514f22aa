"""Loops longer than Mesa's llvmpipe lets an invocation make, which ends all of them in silence after 65535 iterations."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from tests.support import check_op, op_graph, open_profile
from tests.targets import SOFTWARE
from webnn_wgpu.core.errors import OperationError
from webnn_wgpu.costs import Target
from webnn_wgpu.plan import make_plan

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from webnn_wgpu.ir.graph import Array

PROFILES = ("full", "default-limits")
RNG = np.random.default_rng(0)


def numbers(*shape: int) -> Array:
    """Multiples of 1/8 whose sums are exact in float32, in whatever order they are added."""
    return (RNG.integers(-4, 5, shape) / 8).astype(np.float32)


def integers(*shape: int) -> Array:
    return (RNG.integers(0, 3, shape) * 2 - 1).astype(np.int64)


LARGE_KERNEL = {"padding": [299, 298, 299, 299]}

CALLS: Sequence[tuple[str, Sequence[tuple[int, ...] | None], Mapping[str, Any]]] = [
    ("conv2d", [(1, 300_001, 2, 1), (3, 300_001, 1, 1), None], {"strides": [2, 1]}),
    (
        "conv2d",
        [(1, 2, 1, 300_004), (4, 1, 1, 300_004), (4,)],
        {"input_layout": "nhwc", "filter_layout": "ohwi", "strides": [2, 1]},
    ),
    ("conv2d", [(1, 300_000, 1, 1), (3, 300_000, 1, 1), (3,)], {}),
    ("conv2d", [(1, 1, 300, 302), (2, 1, 300, 300), (2,)], {}),
    ("conv2d", [(1, 2, 300, 301), (2, 1, 300, 300), None], {"groups": 2}),
    ("conv2d", [(1, 1, 70_000, 1), (1, 1, 70_000, 1), None], {}),
    ("convTranspose2d", [(1, 300_000, 1, 2), (300_000, 2, 1, 1), (2,)], {"strides": [1, 2]}),
    ("convTranspose2d", [(1, 1, 2, 3), (1, 2, 300, 300), None], {"padding": [150, 150, 150, 150]}),
    ("averagePool2d", [(1, 2, 305, 303)], {"window_dimensions": [300, 300]}),
    ("maxPool2d", [(1, 303, 302, 4)], {"window_dimensions": [300, 300], "layout": "nhwc"}),
    ("l2Pool2d", [(1, 2, 305, 303)], {"window_dimensions": [300, 300]}),
    ("matmul", [(2, 300_001), (300_001, 3)], {}),
    ("matmul", [(2, 2, 300_000), (2, 300_000, 4)], {}),
    ("gemm", [(300_000, 2), (4, 300_000), (4,)], {"a_transpose": True, "b_transpose": True, "alpha": 0.5}),
    ("reduceSum", [(400_000, 4)], {"axes": [0]}),
    ("reduceMax", [(400_000, 3)], {"axes": [0]}),
    ("argMax", [(200_000, 3)], {"axis": 0}),
    ("argMin", [(3, 500_000)], {"axis": 1}),
    ("triangular", [(3, 300_000)], {"diagonal": 5}),
    ("resample2d", [(1, 1, 2, 70_000)], {"sizes": [3, 140_001]}),
]


@pytest.mark.repeats
@pytest.mark.parametrize("profile", PROFILES)
@pytest.mark.parametrize(("name", "shapes", "attrs"), CALLS)
def test_long_loops(name: str, shapes: Sequence[tuple[int, ...] | None], attrs: Mapping[str, Any], profile: str) -> None:
    inputs = [None if shape is None else numbers(*shape) for shape in shapes]
    check_op(open_profile(profile), name, inputs, attrs, tolerance=4)


@pytest.mark.parametrize("profile", PROFILES)
def test_long_loops_over_integers(profile: str) -> None:
    device = open_profile(profile)
    for shape in ((200_000,), (200_000, 3), (2, 200_000)):
        axis = int(np.argmax(shape))
        check_op(device, "cumulativeSum", [integers(*shape)], {"axis": axis})
        check_op(device, "reduceProduct", [integers(*shape)], {"axes": [axis]})


@pytest.mark.parametrize("profile", PROFILES)
def test_long_rows(profile: str) -> None:
    device = open_profile(profile)
    for shape in ((200_000, 3), (2, 400_001)):
        axis = int(np.argmax(shape))
        x = numbers(*shape)
        check_op(device, "softmax", [x], {"axis": axis}, atol=1e-6)
        check_op(device, "layerNormalization", [x, None, None], {"axes": [axis]}, atol=1e-4)
        check_op(device, "reduceLogSumExp", [x], {"axes": [axis]}, atol=1e-4)
    check_op(device, "instanceNormalization", [numbers(1, 2, 500, 501), None, None], atol=1e-4)


@pytest.mark.parametrize("profile", PROFILES)
def test_a_long_input_of_a_recurrent_cell(profile: str) -> None:
    inputs = [numbers(1, 300_000), numbers(6, 300_000) / 64, numbers(6, 2), numbers(1, 2), None, None]
    check_op(open_profile(profile), "gruCell", inputs, {"hidden_size": 2}, atol=1e-5)


@pytest.mark.repeats
@pytest.mark.parametrize("variant", ["subgroup", "tiled", "plain", "gemv"])
@pytest.mark.parametrize("constants", [(), (1,)])
def test_variants_of_products(variant: str, constants: tuple[int, ...]) -> None:
    inputs = [numbers(3, 1_000_003), numbers(1_000_003, 2)]
    check_op(open_profile("full"), "matmul", inputs, constants=constants, forced={"matmul": variant}, tolerance=4)


@pytest.mark.repeats
@pytest.mark.parametrize("variant", ["implicit", "tiled", "plain"])
@pytest.mark.parametrize("constants", [(), (1,)])
def test_variants_of_convolutions(variant: str, constants: tuple[int, ...]) -> None:
    device, forced = open_profile("full"), {"conv2d": variant}
    inputs = [numbers(2, 400_002, 2, 1), numbers(2, 400_002, 1, 1), numbers(2)]
    check_op(device, "conv2d", inputs, {"strides": [2, 1]}, constants=constants, forced=forced, tolerance=4)
    inputs = [numbers(1, 5, 150, 151), numbers(2, 5, 150, 150), numbers(2)]
    check_op(device, "conv2d", inputs, constants=constants, forced=forced, tolerance=4)


def test_a_sequence_of_more_steps_than_one_dispatch_can_take_is_refused() -> None:
    inputs = [np.zeros(shape, np.float32) for shape in ((20_000, 1, 1), (1, 96, 1), (1, 96, 32))]
    graph = op_graph("gru", [*inputs, None, None, None], {"steps": 20_000, "hidden_size": 32})
    with pytest.raises(OperationError, match="100005 iterations of 60000; allowed: steps"):
        make_plan(graph, Target.of(SOFTWARE), {"gru": "sequence"})
