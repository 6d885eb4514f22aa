from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.ops.movers import refusal, typed
from tests.ops.products import Chain, assert_signed, check_fused, in_tiles, whole_numbers
from tests.rotation import first_of
from tests.support import check_op, op_graph, open_profile, random_array, run_graph
from tests.targets import DEFAULT_TARGET
from webnn_wgpu.core.errors import OperationError
from webnn_wgpu.kernels.select import VARIANTS, supports
from webnn_wgpu.plan import make_plan

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    from webnn_wgpu.ir.types import TensorType
    from webnn_wgpu.runtime.device import Device

VARIANT = pytest.mark.parametrize("variant", VARIANTS)

TRANSPOSES = tuple(itertools.product((False, True), repeat=2))


def factors(rng: np.random.Generator, data_type: str, M: int, N: int, K: int, transposed: Sequence[bool]) -> list[np.ndarray]:
    """Return a and b as they are passed."""
    a, b = ((K, M) if transposed[0] else (M, K)), ((N, K) if transposed[1] else (K, N))
    return [whole_numbers(rng, data_type, *a), whole_numbers(rng, data_type, *b)]


@VARIANT
@pytest.mark.parametrize("constants", [(), (0,), (1,)], ids=["dynamic", "constant a", "constant b"])
def test_transposed(device: Device, variant: str, constants: Sequence[int]) -> None:
    rng = np.random.default_rng(0)
    for data_type, transposed in itertools.product(("float32", "float16"), TRANSPOSES):
        for M, N, K in ((9, 12, 8), (10, 7, 9)):
            inputs = [*factors(rng, data_type, M, N, K, transposed), None]
            attrs = {"a_transpose": transposed[0], "b_transpose": transposed[1]}
            check_op(device, "gemm", inputs, attrs, constants=constants, forced={"gemm": variant})


@VARIANT
@pytest.mark.parametrize("data_type", first_of(["float32", "float16"]))
def test_addend_of_any_shape(device: Device, variant: str, data_type: str) -> None:
    rng = np.random.default_rng(1)
    for M, N in ((5, 8), (8, 8), (6, 7), (1, 7), (5, 1)):
        for shape in ((), (1,), (N,), (1, N), (M, 1), (M, N)):
            inputs = [*factors(rng, data_type, M, N, 8, (False, False)), whole_numbers(rng, data_type, *shape)]
            check_op(device, "gemm", inputs, forced={"gemm": variant})


@VARIANT
def test_scalars(device: Device, variant: str) -> None:
    rng = np.random.default_rng(2)
    for data_type, alpha, beta in itertools.product(("float32", "float16"), (1.0, 0.75), (1.0, -2.5)):
        inputs = [*factors(rng, data_type, 6, 8, 4, (False, False)), whole_numbers(rng, data_type, 8)]
        check_op(device, "gemm", inputs, {"alpha": alpha, "beta": beta}, forced={"gemm": variant})


@VARIANT
def test_zero_scalars_skip_nothing(device: Device, variant: str) -> None:
    a = np.array([[np.nan, 1, 2], [1, 2, 3], [np.inf, 1, 1]], np.float32)
    b = np.ones((3, 4), np.float32)
    c = np.array([0, np.inf, np.nan, 1], np.float32)
    (result,) = check_op(device, "gemm", [a, b, c], {"alpha": 0.0, "beta": 0.0}, forced={"gemm": variant})
    assert np.isnan(result).tolist() == [[True] * 4, [False, True, True, False], [True] * 4]


def test_float16_is_rounded_once(device: Device) -> None:
    # 300 * 300 is past float16's largest number; scaled, it is not.
    a = np.full((2, 4), 300, np.float16)
    (result,) = check_op(device, "gemm", [a, a.T.copy(), None], {"alpha": 0.125}, tolerance=1)
    assert np.all(result == 45000)


def test_scalars_are_cast_first(device: Device) -> None:
    # The float16 nearest to 0.1 is 0.0999755859375.
    a, b, c = (np.full((1, 1), n, np.float16) for n in (10000, 1, -1000))
    (result,) = check_op(device, "gemm", [a, b, c], {"alpha": 0.1})
    assert result.item() == -0.244140625


def test_signed(device: Device) -> None:
    rng = np.random.default_rng(3)
    a, b = random_array(rng, "float32", (200, 40), 1), random_array(rng, "float32", (72, 200), 1)
    graph = op_graph("gemm", [a, b, None], {"a_transpose": True, "b_transpose": True}, constants={1})
    assert_signed(run_graph(device, graph, {"0": a})["0"], a, b, True, True)


@pytest.mark.repeats
@VARIANT
def test_epilogue_changes_no_number(device: Device, variant: str) -> None:
    rng = np.random.default_rng(4)
    for data_type, N in itertools.product(("float32", "float16"), (8, 5)):
        chain = Chain()
        a, b = (chain.input(random_array(rng, data_type, shape, 1)) for shape in ((6, 8), (8, N)))
        c, bias = (chain.constant(random_array(rng, data_type, (count, 1))) for count in (6, 1))
        product = chain.apply("gemm", [a, b, c], alpha=0.7, beta=0.3)
        biased = chain.apply("add", [bias, product])
        # The epilogue has an alpha and a beta of its own.
        output = chain.apply("linear", [biased], alpha=1.5, beta=-0.25)
        check_fused(device, chain, output, {"gemm": variant})


@pytest.mark.parametrize("profile", ["full", "subgroup-only"])
def test_sums_in_parts_change_no_epilogue(profile: str, monkeypatch: pytest.MonkeyPatch) -> None:
    in_tiles(monkeypatch, (32, 32), 4)
    device, rng = open_profile(profile), np.random.default_rng(4)
    for data_type, N in itertools.product(("float32", "float16"), (8, 5)):
        chain = Chain()
        a, b = (chain.input(random_array(rng, data_type, shape, 1)) for shape in ((6, 88), (88, N)))
        c, bias = (chain.constant(random_array(rng, data_type, (count, 1))) for count in (6, 1))
        biased = chain.apply("add", [bias, chain.apply("gemm", [a, b, c], alpha=0.7, beta=0.3)])
        check_fused(device, chain, chain.apply("linear", [biased], alpha=1.5, beta=-0.25), {"gemm": "tiled"})


def test_shares_the_kernel_of_matmul(device: Device) -> None:
    inputs = [np.ones((8, 8), np.float32)] * 2
    plain = make_plan(op_graph("matmul", inputs), device.target)
    scaled = make_plan(op_graph("gemm", [*inputs, None]), device.target)
    assert plain.dispatches[0].spec == scaled.dispatches[0].spec


sizes = st.integers(1, 30)


@settings(max_examples=25)
@given(
    variant=st.sampled_from(VARIANTS),
    M=sizes,
    N=sizes,
    K=sizes,
    transposed=st.sampled_from(TRANSPOSES),
    constants=st.sampled_from(((), (0,), (1,))),
    seed=st.integers(0, 2**32 - 1),
)
def test_any_size(
    variant: str, M: int, N: int, K: int, transposed: Sequence[bool], constants: Sequence[int], seed: int
) -> None:
    inputs = [*factors(np.random.default_rng(seed), "float32", M, N, K, transposed), None]
    attrs = {"a_transpose": transposed[0], "b_transpose": transposed[1]}
    device = open_profile("full")
    forced = variant if supports(device.caps, variant) else "plain"
    check_op(device, "gemm", inputs, attrs, constants=constants, forced={"gemm": forced})


def test_variant_is_forced_under_the_name_of_either_operator(device: Device) -> None:
    graph = op_graph("gemm", [np.zeros((2, 2), np.float32), np.zeros((2, 2), np.float32), None])
    for name in ("gemm", "matmul"):
        assert make_plan(graph, device.target, {name: "tiled"}).dispatches[0].spec.template == "matmul.tiled"
    with pytest.raises(OperationError, match=r"gemm\('test'\): the forced kernel variant cannot be had; got subgroup"):
        make_plan(graph, DEFAULT_TARGET, {"gemm": "subgroup"})


@pytest.mark.parametrize(
    ("types", "attrs", "texts"),
    [
        (
            [typed("float32", 2, 3), typed("float32", 4, 5), None],
            {"a_transpose": True},
            ["gemm('here')", "Incompatible shapes for gemm", "a_transpose=True, b_transpose=False", "b with 2 rows"],
        ),
        (
            [typed("float32", 2, 3), typed("float32", 3, 5), typed("float32", 2)],
            {},
            ["c must broadcast to the result", "c float32[2]", "broadcasts to [2, 5]"],
        ),
        (
            [typed("float32", 1, 3), typed("float32", 3, 5), typed("float32", 2, 5)],
            {},
            ["c must broadcast to the result"],
        ),
        ([typed("float32", 1, 2, 3), typed("float32", 3, 5), None], {}, ["rank(a) is not allowed", "allowed: rank 2"]),
        ([typed("float32", 2, 3), typed("float32", 3), None], {}, ["rank(b) is not allowed"]),
        (
            [typed("float32", 2, 3), typed("float32", 3, 5), typed("float32", 1, 2, 5)],
            {},
            ["rank(c) is not allowed", "allowed: rank 0..2"],
        ),
        ([typed("int8", 2, 3), typed("int8", 3, 5), None], {}, ["a data type is not allowed"]),
        (
            [typed("float16", 2, 3), typed("float16", 3, 5), typed("float32", 5)],
            {},
            ["c data type must equal a data type"],
        ),
        ([typed("float32", 2, 3), typed("float32", 3, 5), None], {"alpha": float("inf")}, ["alpha must be finite"]),
    ],
)
def test_refusals(types: Sequence[TensorType | None], attrs: Mapping[str, Any], texts: Sequence[str]) -> None:
    message = refusal("gemm", types, attrs)
    assert [text for text in texts if text not in message] == []
