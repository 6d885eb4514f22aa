from __future__ import annotations

import itertools
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.ops.movers import refusal, typed
from tests.ops.products import Chain, Ending, assert_signed, check_fused, in_tiles, whole_numbers
from tests.rotation import first_of
from tests.support import PROFILES, Sketch, check_op, op_graph, open_profile, random_array, run_graph
from tests.targets import DEFAULT_TARGET
from tests.unit.test_tuning import asked
from webnn_wgpu.core.errors import OperationError
from webnn_wgpu.costs import Target
from webnn_wgpu.kernels.packing import PanelTexture
from webnn_wgpu.kernels.select import VARIANTS, possible, supports, with_tiles
from webnn_wgpu.kernels.tuning import Measured, Tuning
from webnn_wgpu.plan import make_plan
from webnn_wgpu.reference import interpret
from webnn_wgpu.runtime.program import Program

if TYPE_CHECKING:
    from collections.abc import Sequence

    from webnn_wgpu.ir.types import TensorType
    from webnn_wgpu.runtime.device import Device

VARIANT = pytest.mark.parametrize("variant", VARIANTS)

# (M, N, K): whole quads, none, one of each, single elements, one row, one column, one step; rows of two high tiles.
SIZES = (
    (64, 64, 64),
    (33, 65, 19),
    (49, 64, 8),
    (50, 30, 5),
    (18, 36, 7),
    (7, 9, 20),
    (1, 1, 1),
    (1, 70, 33),
    (67, 1, 33),
    (5, 6, 1),
)

# Leading dimensions of a and of b.
BATCHES = (((3,), (3,)), ((2, 1), (3,)), ((), (2, 3)), ((2, 3), ()), ((2, 1, 2), (1, 3, 1)), ((2, 3, 1, 2), (3, 1, 1)))


@VARIANT
@pytest.mark.parametrize("constant", [False, True], ids=["dynamic", "constant"])
@pytest.mark.parametrize("data_type", first_of(["float32", "float16"]))
def test_sizes(device: Device, variant: str, data_type: str, constant: bool) -> None:
    rng = np.random.default_rng(0)
    for M, N, K in SIZES:
        inputs = [whole_numbers(rng, data_type, M, K), whole_numbers(rng, data_type, K, N)]
        constants = {1} if constant else set[int]()
        check_op(device, "matmul", inputs, constants=constants, forced={"matmul": variant})


@VARIANT
@pytest.mark.parametrize("constant", first_of([True, False]), ids=["constant", "dynamic"])
def test_leading_dimensions(device: Device, variant: str, constant: bool) -> None:
    rng = np.random.default_rng(1)
    for left, right in BATCHES:
        for N in (8, 9):
            inputs = [whole_numbers(rng, "float32", *left, 5, 12), whole_numbers(rng, "float32", *right, 12, N)]
            constants = {1} if constant else set[int]()
            check_op(device, "matmul", inputs, constants=constants, forced={"matmul": variant})


@VARIANT
def test_signed(device: Device, variant: str) -> None:
    rng = np.random.default_rng(2)
    for data_type in ("float32", "float16"):
        a, b = random_array(rng, data_type, (40, 300), 1), random_array(rng, data_type, (300, 72), 1)
        graph = op_graph("matmul", [a, b], constants={1})
        actual = run_graph(device, graph, {"0": a}, forced={"matmul": variant}, disabled_passes=("fold_constants",))
        assert_signed(actual["0"], a, b)


@pytest.mark.parametrize("profile", PROFILES)
def test_chosen_variant_on_every_profile(profile: str) -> None:
    rng = np.random.default_rng(3)
    profiled = open_profile(profile)
    for data_type in ("float32", "float16"):
        inputs = [whole_numbers(rng, data_type, 33, 19), whole_numbers(rng, data_type, 19, 65)]
        check_op(profiled, "matmul", inputs, constants={1})


def test_long_sums_wrap_in_the_texture(device: Device) -> None:
    rng = np.random.default_rng(4)
    # Two full rows of the texture and a part of a third, in each of two panels.
    row = PanelTexture(
        lanes=device.caps.subgroup_size, quads=1, width=device.caps.limit("max-texture-dimension-2d")
    ).wrap_steps(10**6)
    N = 4 * device.caps.subgroup_size + 1
    for K in (2 * row + 8, 2 * row + 1):
        inputs = [whole_numbers(rng, "float32", 3, K), whole_numbers(rng, "float32", K, N)]
        graph = op_graph("matmul", inputs, constants={1})
        packing = make_plan(graph, device.target, {"matmul": "subgroup"}).constants[0].packing
        assert isinstance(packing, PanelTexture)
        assert packing.wraps(K) >= 3
        check_op(device, "matmul", inputs, constants={1}, forced={"matmul": "subgroup"})


@VARIANT
def test_special_values_stay_in_their_rows_and_columns(device: Device, variant: str) -> None:
    rng = np.random.default_rng(5)
    # Not whole quads: what lies past the end of a row must not be multiplied, not even by 0.
    for K in (5, 6, 7):
        a, b = whole_numbers(rng, "float32", 3, K), whole_numbers(rng, "float32", K, 6)
        a[1, 0], a[2, K - 1] = np.inf, np.nan
        b[0, 1], b[K - 1, 4], b[2, 0] = 0, -np.inf, np.nan
        for constants in ((), (1,)):
            check_op(device, "matmul", [a, b], constants=constants, forced={"matmul": variant})


@VARIANT
def test_grid_folds(device: Device, variant: str) -> None:
    rng = np.random.default_rng(6)
    a, b = whole_numbers(rng, "float32", 5, 140, 12), whole_numbers(rng, "float32", 5, 12, 8)
    limits = tuple((n, 7 if n == "max-compute-workgroups-per-dimension" else v) for n, v in device.caps.limits)
    graph = op_graph("matmul", [a, b])
    plan = make_plan(graph, Target.of(replace(device.caps, limits=limits)), {"matmul": variant})
    assert 1 < plan.dispatches[0].grid[1]
    program = Program(device, plan)
    try:
        actual = program.start({"0": a, "1": b}, ["0"]).result()["0"]
    finally:
        program.destroy()
    np.testing.assert_array_equal(actual, interpret(graph, {"0": a, "1": b})["0"])


@pytest.mark.parametrize("cores", [1, 1 << 20], ids=["wide", "narrow"])
@pytest.mark.parametrize("subgroups", [True, False])
def test_every_tile_of_few_rows(device: Device, subgroups: bool, cores: int) -> None:
    caps = device.caps if subgroups else replace(device.caps, features=device.caps.features - {"subgroup"})
    target = Target.of(caps)
    products = target.costs.products
    products = replace(products, blocks=replace(products.blocks, cores=cores))
    target = replace(target, costs=replace(target.costs, products=products))
    rng = np.random.default_rng(8)
    tiles: set[str] = set()
    for M, K, N in ((1, 300, 70), (2, 7, 20), (3, 64, 130), (8, 30, 9), (11, 44, 36)):
        for data_type in ("float32", "float16"):
            a, b = whole_numbers(rng, data_type, M, K), whole_numbers(rng, data_type, K, N)
            graph = op_graph("matmul", [a, b])
            plan = make_plan(graph, target, {"matmul": "gemv"})
            assert plan.dispatches[0].spec.param("subgroups") == subgroups
            tiles.add(str(plan.dispatches[0].spec.param("tile")))
            program = Program(device, plan)
            actual = program.start({"0": a, "1": b}, ["0"]).result()["0"]
            program.destroy()
            np.testing.assert_array_equal(actual, interpret(graph, {"0": a, "1": b})["0"])
    assert len(tiles) >= 4


@pytest.mark.parametrize("K", [1, 5, 63, 64, 130, 255])
@pytest.mark.parametrize("subgroups", [True, False])
def test_short_rows_take_a_column_for_each_invocation(device: Device, subgroups: bool, K: int) -> None:
    features = device.caps.features if subgroups else device.caps.features - {"subgroup"}
    target = Target.of(replace(device.caps, features=features, adapter_type="DiscreteGPU"))
    rng = np.random.default_rng(9)
    for N in (1, 10, 36, 128):
        for data_type in ("float32", "float16"):
            a, b = whole_numbers(rng, data_type, 1, K), whole_numbers(rng, data_type, K, N)
            graph = op_graph("matmul", [a, b], constants={1} if N == 36 else set())
            plan = make_plan(graph, target)
            assert plan.dispatches[0].spec.param("tile").narrow
            feeds = {key: (a, b)[int(key)] for key in graph.inputs}
            program = Program(device, plan)
            actual = program.start(feeds, ["0"]).result()["0"]
            program.destroy()
            np.testing.assert_array_equal(actual, interpret(graph, feeds)["0"])


def test_more_workgroups_than_one_dimension_holds(device: Device) -> None:
    rng = np.random.default_rng(7)
    inputs = [whole_numbers(rng, "float32", 70000, 4), whole_numbers(rng, "float32", 4, 4)]
    check_op(device, "matmul", inputs, forced={"matmul": "gemv"})


class ProductEnding(Ending):
    """Operators behind a product."""

    def columns(self) -> int:
        biased = self.chain.apply("add", [self.result, self.chain.constant(self.random(self.shape[-1]))])
        return self.chain.apply("gelu", [biased])

    def vectors(self) -> int:
        """One for each matrix."""
        biased = self.chain.apply("add", [self.chain.constant(self.random(*self.shape[:-2], 1, self.shape[-1])), self.result])
        return self.chain.apply("mul", [biased, self.chain.input(self.random(*self.shape[:-2], 1, self.shape[-1]))])

    def bytes(self) -> int:
        picked = self.chain.input((self.random(*self.shape) > 0).astype(np.uint8))
        return self.chain.apply("where", [picked, self.result, self.chain.constant(self.random(1, self.shape[-1]))])


@pytest.mark.repeats
@VARIANT
@pytest.mark.parametrize("kind", ["nothing", "uniforms", "columns", "vectors", "one_and_all", "bytes", "cast"])
def test_epilogue_changes_no_number(device: Device, variant: str, kind: str) -> None:
    rng = np.random.default_rng(8)
    for data_type, shape in itertools.product(("float32", "float16"), ((9, 12), (2, 5, 7), (3, 9, 12))):
        chain = Chain()
        a = chain.input(random_array(rng, data_type, (*shape[:-1], 8), 1))
        b = chain.constant(random_array(rng, data_type, (*shape[:-2], 8, shape[-1]), 1))
        output = getattr(ProductEnding(chain, chain.apply("matmul", [a, b]), -1, rng), kind)()
        check_fused(device, chain, output, {"matmul": variant})


def test_a_vector_for_each_matrix_of_rows_that_one_factor_multiplies(device: Device) -> None:
    """The rows of such matrices are taken as one's, which has no such vectors."""
    rng = np.random.default_rng(10)
    for variant in possible(device.caps):
        s = Sketch()
        a, b, vectors = (whole_numbers(rng, "float32", *shape) for shape in ((2, 5, 8), (8, 4), (2, 1, 4)))
        graph = s.graph(s.apply("add", s.apply("matmul", s.input(a), s.constant(b)), s.constant(vectors)))
        actual = run_graph(device, graph, s.feeds, forced={"matmul": variant})
        np.testing.assert_array_equal(actual["0"], interpret(graph, s.feeds)["0"])


sizes = st.integers(1, 40)


@settings(max_examples=30)
@given(
    variant=st.sampled_from(VARIANTS),
    M=sizes,
    N=sizes,
    K=sizes,
    batches=st.sampled_from(BATCHES),
    constant=st.booleans(),
    seed=st.integers(0, 2**32 - 1),
)
def test_any_size(variant: str, M: int, N: int, K: int, batches: Sequence[Sequence[int]], constant: bool, seed: int) -> None:
    rng = np.random.default_rng(seed)
    inputs = [whole_numbers(rng, "float32", *batches[0], M, K), whole_numbers(rng, "float32", *batches[1], K, N)]
    constants = {1} if constant else set[int]()
    check_op(open_profile("full"), "matmul", inputs, constants=constants, forced={"matmul": variant})


def test_device_must_have_what_a_forced_variant_needs() -> None:
    graph = op_graph("matmul", [np.zeros((2, 2), np.float32)] * 2)
    with pytest.raises(OperationError, match=r"matmul\('test'\): .*got subgroup, .*size 0; allowed: tiled, gemv, plain"):
        make_plan(graph, DEFAULT_TARGET, {"matmul": "subgroup"})


@pytest.mark.parametrize(
    ("types", "texts"),
    [
        (
            [typed("float32", 2, 3), typed("float32", 4, 5)],
            ["matmul('here')", "Incompatible shapes for matmul", "a float32[2, 3]", "b with 3 rows"],
        ),
        (
            [typed("float32", 2, 2, 3), typed("float32", 3, 3, 5)],
            ["Incompatible shapes for matmul: leading dimensions must broadcast", "b float32[3, 3, 5]"],
        ),
        ([typed("float32", 3), typed("float32", 3, 5)], ["rank(a) is not allowed", "allowed: rank 2.."]),
        ([typed("float32", 3, 3), typed("float32", 3)], ["rank(b) is not allowed"]),
        ([typed("int32", 3, 3), typed("int32", 3, 3)], ["a data type is not allowed", "float32, float16"]),
        ([typed("float32", 3, 3), typed("float16", 3, 3)], ["b data type must equal a data type"]),
    ],
)
def test_refusals(types: Sequence[TensorType], texts: Sequence[str]) -> None:
    message = refusal("matmul", types)
    assert [text for text in texts if text not in message] == []


@pytest.mark.repeats
@pytest.mark.parametrize("tile", [*with_tiles("subgroup", texture=True), *with_tiles("tiled", texture=True)])
def test_every_tile(device: Device, tile: str) -> None:
    rng = np.random.default_rng(9)
    for M, K, N in ((37, 8, 80), (16, 5, 48), (33, 3, 16), (17, 6, 84), (16, 7, 70), (2, 40, 13)):
        a = whole_numbers(rng, "float32", M, K)
        graph = op_graph("matmul", [a, whole_numbers(rng, "float32", K, N)], constants={1})
        (operator,) = asked(graph, device.caps)
        known = Tuning.of(device.caps, {operator: Measured(tile, {tile: 1.0})})
        actual = run_graph(device, graph, {"0": a}, tuning=known)
        np.testing.assert_array_equal(actual["0"], interpret(graph, {"0": a})["0"])


@pytest.mark.parametrize("sides", [(32, 32), (64, 64, 2), (16, 16, 16)], ids=lambda sides: "x".join(map(str, sides)))
def test_sums_in_parts(device: Device, sides: Sequence[int], monkeypatch: pytest.MonkeyPatch) -> None:
    in_tiles(monkeypatch, sides, 3)
    rng = np.random.default_rng(10)
    for data_type, left, right, N in (("float32", (2, 1), (3,), 36), ("float16", (), (), 70), ("float32", (3,), (), 13)):
        inputs = [whole_numbers(rng, data_type, *left, 37, 203), whole_numbers(rng, data_type, *right, 203, N)]
        plan = make_plan(op_graph("matmul", inputs), device.target, {"matmul": "tiled"})
        assert [d.spec.template for d in plan.dispatches] == ["matmul.tiled", "partial_sums"]
        check_op(device, "matmul", inputs, forced={"matmul": "tiled"})


@pytest.mark.parametrize(("sides", "parts"), [((32, 64, 4), 1), ((16, 16, 16), 3)], ids=["whole", "in parts"])
def test_transposed_factors_are_read_as_stored(
    device: Device, sides: Sequence[int], parts: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    in_tiles(monkeypatch, sides, parts)
    rng = np.random.default_rng(11)
    for data_type, left, right, N, K, a_transpose, b_transpose in (
        ("float32", (2, 1), (3,), 36, 203, True, True),
        ("float16", (), (2,), 70, 192, True, False),
        ("float16", (), (), 70, 192, False, True),
        ("float32", (3,), (3,), 13, 130, True, False),
    ):
        a, b = swap((*left, 37, K), a_transpose), swap((*right, K, N), b_transpose)
        inputs = [whole_numbers(rng, data_type, *shape) for shape in (a, b)]
        attrs = {"a_transpose": a_transpose, "b_transpose": b_transpose}
        plan = make_plan(op_graph("transposedMatmul", inputs, attrs), device.target, {"matmul": "tiled"})
        assert [d.spec.template for d in plan.dispatches] == ["matmul.tiled", "partial_sums"][: min(2, parts)]
        check_op(device, "transposedMatmul", inputs, attrs, forced={"matmul": "tiled"})


@pytest.mark.parametrize("tile", [*with_tiles("subgroup", texture=False)])
def test_subgroups_read_transposed_factors_as_stored(device: Device, tile: str) -> None:
    if not supports(device.caps, "subgroup"):
        pytest.skip("the variant needs subgroups of few invocations, as software adapters have them")
    rng = np.random.default_rng(13)
    for data_type, left, right, M, K, N, a_transpose, b_transpose in (
        ("float32", (2, 1), (3,), 36, 20, 41, True, True),
        ("float32", (), (), 68, 7, 130, True, False),
        ("float16", (), (2,), 8, 9, 64, True, False),
        ("float16", (3,), (), 37, 12, 70, False, True),
        ("float32", (3,), (3,), 100, 128, 13, False, True),
        ("float32", (), (), 37, 8, 5, True, True),
        ("float32", (), (), 8, 7, 5, True, True),
    ):
        a, b = swap((*left, M, K), a_transpose), swap((*right, K, N), b_transpose)
        inputs = [whole_numbers(rng, data_type, *shape) for shape in (a, b)]
        attrs = {"a_transpose": a_transpose, "b_transpose": b_transpose}
        graph = op_graph("transposedMatmul", inputs, attrs)
        (operator,) = asked(graph, device.caps)
        known = Tuning.of(device.caps, {operator: Measured(tile, {tile: 1.0})})
        *copies, product = make_plan(graph, device.target, tuning=known).dispatches
        rows = product.spec.param("rows")
        assert f"{rows}x{product.spec.param('quads')}" == tile.partition(":")[2]
        # Lanes read whole quads: of the rows of the left factor, or of the steps of the right one.
        turned = "a" * (a_transpose and M % 4 == 0 and rows % 4 == 0) + "b" * (b_transpose and K % 4 == 0)
        assert product.spec.param("turned") == turned
        assert len(copies) == a_transpose + b_transpose - len(turned)
        actual = run_graph(device, graph, dict(zip("01", inputs, strict=True)), tuning=known)
        np.testing.assert_array_equal(actual["0"], interpret(graph, dict(zip("01", inputs, strict=True)))["0"])


@pytest.mark.parametrize("tile", ["32x2", "32x1", "8x1"])
@pytest.mark.parametrize(
    ("sizes", "turned", "words"),
    [
        ((70, 12, 136), "", (2, 4)),
        ((70, 12, 132), "", (2, 2)),
        ((70, 7, 136), "", (0, 4)),
        ((70, 12, 131), "", (2, 0)),
        ((72, 9, 136), "a", (2, 4)),
        ((72, 12, 136), "a", (4, 4)),
        ((76, 12, 132), "a", (2, 2)),
        ((70, 12, 137), "b", (2, 2)),
    ],
)
def test_subgroups_read_words_of_64_bits(
    device: Device, tile: str, sizes: Sequence[int], turned: str, words: tuple[int, int]
) -> None:
    M, K, N = sizes
    rng = np.random.default_rng(15)
    shapes = swap((3, M, K), "a" in turned), swap((3, K, N), "b" in turned)
    inputs = [whole_numbers(rng, "float32", *shape) for shape in shapes]
    graph = op_graph("transposedMatmul", inputs, {"a_transpose": "a" in turned, "b_transpose": "b" in turned})
    (operator,) = asked(graph, device.caps)
    tile = f"subgroup:{tile}"
    known = Tuning.of(device.caps, {operator: Measured(tile, {tile: 1.0})})
    (product,) = make_plan(graph, device.target, tuning=known).dispatches
    # A lane of a tile with one quad has no neighboring quads of the right factor.
    expected = (words[0], words[1] if tile.endswith("x2") else min(2, words[1]))
    if "shader-int64" not in device.caps.features or not device.target.costs.products.subgroup.wide_words:
        expected = (0, 0)
    *factors, output = product.spec.bindings
    assert tuple(binding.words for binding in factors) == expected
    # What a lane has of two neighboring quads is stored at once.
    assert output.words == (4 if expected[1] == 4 else 0)
    actual = run_graph(device, graph, dict(zip("01", inputs, strict=True)), tuning=known)
    np.testing.assert_array_equal(actual["0"], interpret(graph, dict(zip("01", inputs, strict=True)))["0"])


@pytest.mark.parametrize(
    ("sizes", "heads", "turned"),
    [
        ((37, 8, 12), (1, 1, 1), ""),
        ((72, 40, 64), (1, 0, 2), "a"),
        ((33, 64, 36), (0, 2, 0), "b"),
        ((40, 12, 24), (2, 1, 1), "ab"),
        ((33, 7, 30), (1, 1, 1), ""),  # rows that are no quads
        ((33, 7, 30), (1, 1, 0), "ab"),
    ],
)
def test_products_of_heads(device: Device, sizes: Sequence[int], heads: Sequence[int], turned: str) -> None:
    if not supports(device.caps, "subgroup"):
        pytest.skip("only kernels in subgroups of few invocations store heads beside each other")
    M, K, N = sizes
    rng = np.random.default_rng(17)
    batch = (2, 3, 1) if max(heads) == 2 else (2, 3)
    shapes = swap((*batch, M, K), "a" in turned), swap((*batch, K, N), "b" in turned)
    inputs = [
        np.ascontiguousarray(np.moveaxis(whole_numbers(rng, "float32", *shape), -2, -2 - between))
        for shape, between in zip(shapes, heads, strict=False)
    ]
    attrs = {"a_transpose": "a" in turned, "b_transpose": "b" in turned}
    attrs |= dict(zip(("a_heads", "b_heads", "heads"), heads, strict=True))
    graph = op_graph("transposedMatmul", inputs, attrs)
    product = make_plan(graph, device.target).dispatches[-1]
    # Other factors are copied.
    quads = all(n % 4 == 0 for n in ((M if "a" in turned else K), (K if "b" in turned else N)))
    spread = tuple(name for name, n in zip(("a", "b", "output"), heads, strict=True) if n and (quads or name == "output"))
    assert product.spec.param("spread") == spread
    check_op(device, "transposedMatmul", inputs, attrs)


@pytest.mark.parametrize("diagonal", [-9, 0, 7, 200])
@pytest.mark.parametrize(
    ("sizes", "turned", "triangle", "batch"),
    [
        ((70, 60, 136), "", "left", 3),
        ((72, 60, 41), "a", "left", 3),
        ((72, 60, 136), "ab", "left", 3),
        ((70, 63, 136), "", "left", 3),  # sums of steps that are no quads skip none
        ((70, 60, 136), "", "left", 1),
        ((71, 60, 136), "a", "left", 3),  # a copy of the left factor has the other triangle
        ((70, 60, 136), "b", "result", 3),
        ((70, 7, 136), "", "result", 3),
    ],
)
def test_products_skip_what_lies_past_a_diagonal(
    device: Device, sizes: Sequence[int], turned: str, triangle: str, batch: int, diagonal: int
) -> None:
    M, K, N = sizes
    rng = np.random.default_rng(16)
    shapes = swap((3, M, K), "a" in turned), swap((batch, K, N), "b" in turned)
    a, b = (whole_numbers(rng, "float32", *shape) for shape in shapes)
    if triangle == "left":
        a = np.tril(a, diagonal)
    attrs = {"a_transpose": "a" in turned, "b_transpose": "b" in turned}
    graph = op_graph("transposedMatmul", [a, b], {**attrs, "triangle": triangle, "diagonal": diagonal})
    plan = make_plan(graph, device.target)
    skips = K % 4 == 0 and batch > 1 and ("a" not in turned or M % 4 == 0) and "subgroup" in device.caps.features
    assert (
        plan.dispatches[-1].spec.template != "matmul.subgroup" or plan.dispatches[-1].spec.param("triangle") == triangle * skips
    )
    found = run_graph(device, graph, {"0": a, "1": b})["0"]
    wanted = interpret(graph, {"0": a, "1": b})["0"]
    if triangle == "left":
        np.testing.assert_array_equal(found, wanted)
        return
    np.testing.assert_array_equal(np.tril(found, diagonal), np.tril(wanted, diagonal))
    above = found != np.tril(found, diagonal)
    np.testing.assert_array_equal(found[above], wanted[above])
    # Whole tiles are skipped.
    skips = skips and plan.dispatches[-1].spec.template == "matmul.subgroup"
    assert (np.array_equal(found, wanted) != skips) or diagonal == 200 or N <= 64


def test_transposed_rows_beside_a_constant_are_copied(device: Device) -> None:
    rng = np.random.default_rng(14)
    inputs = [whole_numbers(rng, "float32", *shape) for shape in ((20, 8), (20, 12))]
    attrs = {"a_transpose": True}
    graph = op_graph("transposedMatmul", inputs, attrs, constants={1})
    plan = make_plan(graph, device.target, {"matmul": "subgroup"})
    assert [d.spec.template for d in plan.dispatches] == ["strided", "matmul.subgroup"]
    check_op(device, "transposedMatmul", inputs, attrs, constants={1}, forced={"matmul": "subgroup"})


def test_rows_of_transposed_matrices_are_copied_for_a_single_right_factor(device: Device) -> None:
    rng = np.random.default_rng(12)
    inputs = [whole_numbers(rng, "float32", *shape) for shape in ((3, 20, 7), (20, 9))]
    check_op(device, "transposedMatmul", inputs, {"a_transpose": True}, forced={"matmul": "tiled"})


def swap(shape: tuple[int, ...], transposed: bool) -> tuple[int, ...]:
    return (*shape[:-2], shape[-1], shape[-2]) if transposed else shape
