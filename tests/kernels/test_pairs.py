"""64-bit integers are exact on every device: those that have the types, and those that compute in pairs of words."""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.rotation import first_of
from tests.support import Sketch, assert_same, check_op, open_profile, random_array, run_graph
from webnn_wgpu.core.data_types import ANY
from webnn_wgpu.ops import OPS
from webnn_wgpu.ops._def import OpDef
from webnn_wgpu.reference import interpret
from webnn_wgpu.runtime.device import Device

if TYPE_CHECKING:
    from collections.abc import Callable

    from webnn_wgpu.ir.graph import Array

WIDE = ("int64", "uint64")
# Ends, powers of two with their neighbors, small numbers, numbers that float32 rounds: of either sign, modulo 2^64.
EDGES = [0, 1, 2, 3, 5, 7, 10, 2**16, 2**31, 2**32, 2**33, 2**40, 2**53, 2**62, 2**63, 10**9 + 7, 10**18, 3 * 2**38 + 1]
EDGES = sorted({n % 2**64 for edge in EDGES for n in (edge, edge - 1, edge + 1, -edge)})


def takes(op: OpDef, data_type: str) -> bool:
    return op.elementwise is not None and data_type in op.operands[-1 if op.name == "where" else 0].data_types


COMPUTED = [(op, t) for op in OPS.values() for t in WIDE if takes(op, t)]


@pytest.fixture(params=["full", "default-limits"])
def either(request: pytest.FixtureRequest) -> Device:
    """A device with 64-bit integers, and one that computes in pairs of words."""
    device = open_profile(request.param)
    assert request.param == "full" or not device.caps.features
    return device


def operands(data_type: str) -> tuple[Array, Array]:
    """Return all pairs of edges, then random numbers, the second of any length in bits."""
    edges = np.array(EDGES, np.uint64)
    x, y = (grid.reshape(-1) for grid in np.meshgrid(edges, edges))
    rng = np.random.default_rng(0)
    a, b = random_array(rng, "uint64", (999,)), random_array(rng, "uint64", (999,))
    b >>= rng.integers(0, 64, 999).astype(np.uint64)
    return np.concatenate([x, a]).view(data_type), np.concatenate([y, b]).view(data_type)


@pytest.mark.parametrize(("op", "data_type"), COMPUTED, ids=lambda p: p.name if isinstance(p, OpDef) else p)
def test_element_wise_operators(either: Device, op: OpDef, data_type: str) -> None:
    x, y = operands(data_type)
    if op.name == "cast":
        for target in ANY:
            check_op(either, "cast", [x], {"data_type": target})
    elif op.name == "where":
        check_op(either, "where", [(x % 2).astype(np.uint8), x, y])
    elif op.name == "clamp":
        low = -(2**53) - 3 if data_type == "int64" else 2**40 + 1
        for attrs in ({}, {"min_value": low}, {"max_value": 2**53 + 3}, {"min_value": low, "max_value": 2**62 + 1}):
            check_op(either, "clamp", [x], attrs)
    else:
        check_op(either, op.name, [x, y][: len(op.operands)])


@pytest.mark.parametrize("data_type", WIDE)
@pytest.mark.parametrize("source", [t for t in ANY if t not in WIDE])
def test_casts_to(either: Device, source: str, data_type: str) -> None:
    rng = np.random.default_rng(1)
    x = random_array(rng, source, (333,))
    if x.dtype.kind == "f":
        powers = np.exp2(np.arange(-3.0, 67.0))
        with np.errstate(over="ignore"):
            powers = np.concatenate([powers, powers * 1.5, powers * (1 - 2.0**-24)]).astype(source)
            spread = (random_array(rng, "float64", (333,)) * np.exp2(rng.uniform(-10, 70, 333))).astype(source)
        x = np.concatenate([powers, -powers, x, spread, np.array([np.nan, np.inf, -np.inf, 0.0, -0.0], source)])
    check_op(either, "cast", [x], {"data_type": data_type})


REDUCTIONS = [op.name for op in OPS.values() if op.name.startswith(("reduce", "arg"))]


@pytest.mark.parametrize("variant", [None, "plain", "workgroup"])
@pytest.mark.parametrize("data_type", first_of(WIDE))
@pytest.mark.parametrize("name", [n for n in REDUCTIONS if "int64" in OPS[n].operands[0].data_types])
def test_reductions(either: Device, name: str, data_type: str, variant: str | None) -> None:
    rng = np.random.default_rng(2)
    forced = {name: variant} if variant else None
    for shape, axes in (((3, 70), [1]), ((33, 8), [0]), ((2, 5000), [1]), ((4, 3, 4), [0, 2]), ((2, 3), []), ((68, 130), [0])):
        x = random_array(rng, data_type, shape)
        # Ties, and neighbors that differ in one word alone.
        x.reshape(-1)[::3] = np.array(EDGES, np.uint64).view(data_type)[rng.integers(0, len(EDGES), x.reshape(-1)[::3].size)]
        check_op(either, name, [x], {"axes": axes}, forced=forced)


def wrapped(n: int, data_type: str) -> int:
    """Return an integer modulo 2^64, as a number of the data type."""
    n %= 2**64
    return n - 2**64 if data_type == "int64" and n >= 2**63 else n


def quotient(a: int, b: int) -> int:
    """Return a / b truncated, in whole numbers of any length."""
    return 0 if b == 0 else abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


def power(a: int, b: int) -> int:
    """Return a to the power b modulo 2^64; for negative b what an integer can hold of 1 / a^-b."""
    return pow(a, b, 2**64) if b >= 0 else {1: 1, -1: (-1) ** (b % 2)}.get(a, 0)


BINARY: dict[str, Callable[[int, int], int]] = {
    "add": operator.add,
    "sub": operator.sub,
    "mul": operator.mul,
    "div": quotient,
    "pow": power,
    "min": min,
    "max": max,
    "equal": operator.eq,
    "notEqual": operator.ne,
    "lesser": operator.lt,
    "lesserOrEqual": operator.le,
    "greater": operator.gt,
    "greaterOrEqual": operator.ge,
}

NUMBERS = st.one_of(
    st.sampled_from(EDGES),
    st.integers(0, 2**64 - 1),
    st.builds(lambda n, bits: (n % 2**bits) % 2**64, st.integers(0, 2**64 - 1), st.integers(0, 64)),
    st.integers(-8, 8).map(lambda n: n % 2**64),
)


@given(st.lists(st.tuples(NUMBERS, NUMBERS), min_size=64, max_size=64))
def test_arithmetic_is_that_of_whole_numbers(pairs: list[tuple[int, int]]) -> None:
    for data_type in WIDE:
        x, y = (np.array([pair[k] for pair in pairs], np.uint64).view(data_type) for k in range(2))
        s = Sketch()
        a, b = s.input(x), s.input(y)
        graph = s.graph(**{name: s.apply(name, a, b) for name in BINARY})
        numbers = [(int(a), int(b)) for a, b in zip(x, y, strict=True)]
        expected = {
            name: np.array([wrapped(int(function(*n)), data_type) for n in numbers], *(OPS[name].output_types or (data_type,)))
            for name, function in BINARY.items()
        }
        for profile in ("full", "default-limits"):
            assert_same(run_graph(open_profile(profile), graph, s.feeds), expected)


@pytest.mark.parametrize("data_type", WIDE)
def test_chains(either: Device, data_type: str) -> None:
    x, y = operands(data_type)
    s = Sketch()
    a, b = s.input(x), s.input(y)
    narrow = s.apply("cast", s.apply("add", s.apply("mul", a, b), a), data_type="int32")
    wide = s.apply("cast", s.apply("mul", narrow, narrow), data_type=data_type)
    larger = s.apply("cast", s.apply("greater", a, wide), data_type="float16")
    graph = s.graph(s.apply("sub", wide, b), s.apply("linear", larger, alpha=0.1, beta=3.0))
    assert_same(run_graph(either, graph, s.feeds), interpret(graph, s.feeds))
