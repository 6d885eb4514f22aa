from __future__ import annotations

import itertools
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from tests.ops.convolutions import (
    DEPTHWISE,
    FILTER_LAYOUTS,
    GENERAL,
    INPUT_LAYOUTS,
    POINTWISE,
    WINOGRAD,
    Case,
    by_definition,
    check_folded,
)
from tests.ops.movers import refusal, typed
from tests.ops.products import CHANNELS, ENDINGS, Chain, Ending, check_fused, in_tiles
from tests.ops.rows import as_hardware, plan_of, run_plan
from tests.rotation import first_of
from tests.support import PROFILES, check_op, op_graph, open_profile, random_array, run_graph
from tests.targets import DEFAULT_TARGET
from tests.unit.test_tuning import asked
from webnn_wgpu.core.errors import MLTypeError, OperationError
from webnn_wgpu.costs import Target
from webnn_wgpu.costs.convolutions import ConvolutionCosts
from webnn_wgpu.costs.depthwise import DepthwiseTimes
from webnn_wgpu.costs.tiles import BLOCK_TILES, WINOGRAD_TILES, BlockTile, WinogradTile
from webnn_wgpu.kernels.packing import Chain as PackingChain
from webnn_wgpu.kernels.packing import PanelTexture
from webnn_wgpu.kernels.select import supports, with_tiles
from webnn_wgpu.kernels.select_convolution import VARIANTS, obstacle
from webnn_wgpu.kernels.select_convolution import WINOGRAD as BY_WINOGRAD
from webnn_wgpu.kernels.tuning import Measured, Tuning
from webnn_wgpu.ops import OPS
from webnn_wgpu.ops._convolution import convolution_size
from webnn_wgpu.ops._def import Lowering
from webnn_wgpu.passes import run_passes
from webnn_wgpu.plan import make_plan
from webnn_wgpu.reference import interpret
from webnn_wgpu.runtime.program import Program

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from webnn_wgpu.ir.types import TensorType
    from webnn_wgpu.runtime.device import Device

VARIANT = pytest.mark.parametrize("variant", VARIANTS)
LAYOUT = pytest.mark.parametrize("layout", INPUT_LAYOUTS)

CASES = {"pointwise": POINTWISE, "depthwise": DEPTHWISE} | dict.fromkeys(BY_WINOGRAD, WINOGRAD)
"""What each variant takes; the others take everything."""


def cases(variant: str) -> Sequence[Case]:
    return CASES.get(variant, (*GENERAL, *POINTWISE, *DEPTHWISE, *WINOGRAD))


@pytest.mark.parametrize("case", [*GENERAL, *POINTWISE, *DEPTHWISE, *WINOGRAD])
def test_reference_is_the_definition(case: Case) -> None:
    rng = np.random.default_rng(0)
    inputs = case.operands(rng, "conv2d")
    graph = op_graph("conv2d", inputs, case.attrs())
    wanted = by_definition("conv2d", case, *inputs)  # pyright: ignore[reportArgumentType] - input and filter are given
    np.testing.assert_array_equal(interpret(graph, {str(i): a for i, a in enumerate(inputs)})["0"], wanted)


@VARIANT
@pytest.mark.parametrize("layout", first_of(INPUT_LAYOUTS))
@pytest.mark.parametrize("constant", first_of([True, False]), ids=["constant", "dynamic"])
@pytest.mark.parametrize("data_type", first_of(["float32", "float16"]))
def test_sizes_and_options(device: Device, variant: str, layout: str, data_type: str, constant: bool) -> None:
    rng = np.random.default_rng(1)
    if variant in BY_WINOGRAD and not constant:
        return  # Its filter is transformed when the graph is built: see test_what_a_variant_cannot_compute.
    for i, case in enumerate(cases(variant)):
        inputs = case.operands(rng, "conv2d", layout, data_type=data_type, bias=i % 3 != 2)
        constants = {1, 2} if constant and inputs[2] is not None else {1} if constant else set[int]()
        check_op(device, "conv2d", inputs, case.attrs(layout), constants=constants, forced={"conv2d": variant})


@LAYOUT
@pytest.mark.parametrize("filter_layout", FILTER_LAYOUTS["conv2d"])
@pytest.mark.parametrize("constant", [False, True], ids=["dynamic", "constant"])
def test_filter_layouts(device: Device, layout: str, filter_layout: str, constant: bool) -> None:
    rng = np.random.default_rng(2)
    grouped = Case(2, 2, 3, 4, (4, 5), (2, 3))
    for variant, case in (
        *itertools.product(("plain", "tiled"), (grouped, GENERAL[1])),
        *((("implicit", grouped), ("implicit", GENERAL[1])) if supports(device.caps, "subgroup") else ()),
        *((name, own[0]) for name, own in CASES.items() if constant or name not in BY_WINOGRAD),
    ):
        inputs = case.operands(rng, "conv2d", layout, filter_layout)
        attrs = case.attrs(layout, filter_layout)
        check_op(device, "conv2d", inputs, attrs, constants={1} if constant else (), forced={"conv2d": variant})


@VARIANT
@LAYOUT
def test_signed(device: Device, variant: str, layout: str) -> None:
    rng = np.random.default_rng(3)
    case = {
        "pointwise": Case(1, 1, 96, 40, (9, 8), (1, 1)),
        "depthwise": Case(1, 24, 1, 1, (9, 8), (5, 5)),
    }.get(variant, Case(1, 1, 96, 40, (9, 8), (3, 3), {"padding": (1, 1, 1, 1)}))
    for data_type in ("float32", "float16"):
        shapes = case.shapes("conv2d", layout)
        x, weights, bias = (random_array(rng, data_type, shape, 1) for shape in shapes)
        graph = op_graph("conv2d", [x, weights, bias], case.attrs(layout), constants={1, 2})
        actual = run_graph(device, graph, {"0": x}, forced={"conv2d": variant}, disabled_passes=("fold_constants",))[
            "0"
        ].astype(np.float64)
        exact = op_graph("conv2d", [a.astype(np.float32) for a in (x, weights, bias)], case.attrs(layout))
        sizes = op_graph("conv2d", [abs(a.astype(np.float32)) for a in (x, weights, bias)], case.attrs(layout))
        wanted, terms = (
            interpret(g, {str(i): f(a.astype(np.float32)) for i, a in enumerate((x, weights, bias))})["0"].astype(np.float64)
            for g, f in ((exact, np.positive), (sizes, np.abs))
        )
        # Each term is rounded and added with one rounding per step at most; Winograd's sums are of up to 16 terms of the
        # patch for each term of the result, and grow by the norms of its transforms (a factor of 9 in the worst case).
        steps = case.depth * case.taps[0] * case.taps[1] + 1
        bound = (
            (9 if variant in BY_WINOGRAD else 1) * steps * 2.0**-23 * np.maximum(terms, terms.max() * (variant in BY_WINOGRAD))
        )
        if data_type == "float16":
            bound = bound + 2.0**-11 * np.abs(wanted) + 2.0**-25
        assert np.all(np.abs(actual - wanted) <= bound)


@pytest.mark.parametrize("profile", PROFILES)
@LAYOUT
def test_chosen_variant_on_every_profile(profile: str, layout: str) -> None:
    rng = np.random.default_rng(4)
    profiled = open_profile(profile)
    large = Case(1, 1, 32, 32, (16, 17), (3, 3), {"padding": (1, 1, 1, 1)})
    for data_type in ("float32", "float16"):
        for case in (GENERAL[1], GENERAL[2], POINTWISE[0], DEPTHWISE[0], large):
            inputs = case.operands(rng, "conv2d", layout, data_type=data_type)
            check_op(profiled, "conv2d", inputs, case.attrs(layout), constants={1})


@LAYOUT
@pytest.mark.parametrize("pixels", [(2, 4), (1, 4), (1, 2), (1, 1)])
def test_depthwise_kernels_of_hardware(
    device: Device, layout: str, pixels: tuple[int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    def forced(times: object, size: object, step: int, possible: Sequence[tuple[int, int]]) -> tuple[int, int]:
        return pixels if pixels in possible else possible[0]

    monkeypatch.setattr(DepthwiseTimes, "pixels", forced)
    rng = np.random.default_rng(4)
    for case in DEPTHWISE:
        inputs, attrs = case.operands(rng, "conv2d", layout), case.attrs(layout)
        plan = plan_of(as_hardware(device.caps), "conv2d", inputs, attrs)
        graph = op_graph("conv2d", inputs, attrs)
        wanted = interpret(graph, {str(i): a for i, a in enumerate(inputs) if a is not None})["0"]
        np.testing.assert_array_equal(run_plan(device, plan, inputs), wanted)


@pytest.mark.repeats
@VARIANT
@LAYOUT
@pytest.mark.parametrize("kind", ["nothing", "channels", "cast"])
def test_float16_without_the_feature(variant: str, layout: str, kind: str) -> None:
    profiled, case, rng = open_profile("subgroup-only"), cases(variant)[0], np.random.default_rng(12)
    assert "shader-f16" not in profiled.caps.features
    for bias in (False, True):
        chain = Chain()
        x, weights, channels = (random_array(rng, "float16", shape, 1) for shape in case.shapes("conv2d", layout))
        operands = [chain.input(x), chain.constant(weights), chain.constant(channels) if bias else None]
        result = chain.apply("conv2d", operands, **case.attrs(layout))
        check_fused(profiled, chain, getattr(Ending(chain, result, CHANNELS[layout], rng), kind)(), {"conv2d": variant})


@VARIANT
@LAYOUT
def test_grid_folds(device: Device, variant: str, layout: str) -> None:
    case = {
        "pointwise": Case(2, 1, 8, 80, (20, 20), (1, 1)),
        "depthwise": Case(2, 40, 1, 1, (20, 20), (3, 3)),
        **dict.fromkeys(BY_WINOGRAD, Case(1, 1, 40, 80, (30, 30), (3, 3))),
    }.get(variant, Case(1, 2, 3, 80, (30, 30), (2, 2)))
    check_folded(device, "conv2d", case, layout, variant)


@LAYOUT
@pytest.mark.parametrize("kind", ["channels", "one_and_all", "cast"])
def test_sums_in_parts_change_no_number(device: Device, layout: str, kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    in_tiles(monkeypatch, (32, 32), 3)
    rng = np.random.default_rng(10)
    for data_type, case in (("float32", GENERAL[2]), ("float16", Case(2, 1, 3, 8, (7, 6), (3, 5), {"padding": (1, 1, 1, 1)}))):
        chain = Chain()
        x, weights, channels = (random_array(rng, data_type, shape, 1) for shape in case.shapes("conv2d", layout))
        operands = [chain.input(x), chain.constant(weights), chain.constant(channels)]
        result = chain.apply("conv2d", operands, **case.attrs(layout))
        check_fused(device, chain, getattr(Ending(chain, result, CHANNELS[layout], rng), kind)(), {"conv2d": "tiled"})
        inputs = case.operands(rng, "conv2d", layout, data_type=data_type)
        plan = make_plan(op_graph("conv2d", inputs, case.attrs(layout)), device.target, {"conv2d": "tiled"})
        assert plan.dispatches[-1].spec.template == "partial_sums"
        check_op(device, "conv2d", inputs, case.attrs(layout), forced={"conv2d": "tiled"})


@pytest.mark.repeats
@pytest.mark.parametrize("channels", [6, 8, 16, 36], ids=["taps cut", "taps whole", "taps even", "taps of their own"])
@pytest.mark.parametrize("tile", BLOCK_TILES, ids=str)
def test_every_tile_of_workgroups(device: Device, tile: BlockTile, channels: int, monkeypatch: pytest.MonkeyPatch) -> None:
    in_tiles(monkeypatch, tile.sides)
    layout = "nchw" if tile.rows == 64 else "nhwc"
    case = Case(1, 1, channels, 70, (12, 15), (2, 3))
    inputs = case.operands(np.random.default_rng(11), "conv2d", layout)
    graph = op_graph("conv2d", inputs, case.attrs(layout))
    assert make_plan(graph, device.target, {"conv2d": "tiled"}).dispatches[-1].spec.param("tile") == tile
    check_op(device, "conv2d", inputs, case.attrs(layout), forced={"conv2d": "tiled"})


PATCHES = (
    Case(2, 1, 16, 36, (9, 11), (3, 3), {"padding": (1, 1, 1, 1)}),
    Case(1, 1, 8, 68, (14, 13), (3, 3), {"padding": (0, 2, 3, 1)}),
)
"""Convolutions of more patches and channels than a tile has, with odd numbers of rows and columns."""


@LAYOUT
@pytest.mark.parametrize("data_type", ["float32", "float16"])
@pytest.mark.parametrize("tile", WINOGRAD_TILES, ids=str)
def test_every_tile_of_winograd(
    device: Device, tile: WinogradTile, layout: str, data_type: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ConvolutionCosts, "winograd_tile", lambda *_: tile)
    forced = {"conv2d": "winograd_tiled"}
    for case in PATCHES:
        inputs, attrs = case.operands(np.random.default_rng(16), "conv2d", layout, data_type=data_type), case.attrs(layout)
        graph = op_graph("conv2d", inputs, attrs, constants={1})
        (dispatch,) = make_plan(graph, device.target, forced).dispatches
        assert dispatch.spec.param("tile") == tile
        check_op(device, "conv2d", inputs, attrs, constants={1}, forced=forced)


FEW_CHANNELS = (
    Case(2, 1, 3, 20, (9, 11), (3, 3), {"padding": (1, 1, 1, 1)}),
    Case(1, 1, 3, 9, (15, 14), (7, 7), {"padding": (3, 2, 3, 2), "strides": (2, 2)}),
    Case(1, 1, 5, 8, (8, 9), (2, 3), {"dilations": (2, 3), "padding": (0, 1, 2, 0)}),
    Case(2, 1, 2, 12, (6, 7), (3, 2), {"dilations": (1, 2), "strides": (2, 1), "padding": (1, 1, 1, 1)}),
    Case(1, 1, 1, 16, (9, 8), (5, 5), {"padding": (2, 2, 2, 2)}),
    Case(1, 1, 7, 4, (4, 5), (1, 1), {"padding": (1, 0, 0, 1)}),
    Case(1, 3, 6, 4, (5, 6), (3, 1), {"padding": (1, 1, 0, 0)}),
)
"""Convolutions whose quads of steps are of several taps."""


@LAYOUT
@pytest.mark.parametrize("tile", first_of(["32x32", "128x32"]))
def test_quads_of_steps_may_be_of_several_taps(device: Device, tile: str, layout: str, monkeypatch: pytest.MonkeyPatch) -> None:
    in_tiles(monkeypatch, [int(side) for side in tile.split("x")])
    for case in FEW_CHANNELS:
        inputs, attrs = case.operands(np.random.default_rng(15), "conv2d", layout), case.attrs(layout)
        graph = op_graph("conv2d", inputs, attrs, constants={1})
        assert make_plan(graph, device.target, {"conv2d": "tiled"}).dispatches[-1].spec.param("taps") == "cut"
        check_op(device, "conv2d", inputs, attrs, constants={1}, forced={"conv2d": "tiled"})


@LAYOUT
@pytest.mark.parametrize("constant", [False, True], ids=["dynamic", "constant"])
def test_rows_of_taps_are_read_in_quads(device: Device, layout: str, constant: bool) -> None:
    rng = np.random.default_rng(12)
    rows = Case(2, 1, 3, 20, (9, 16), (3, 4), {"strides": (2, 4), "padding": (1, 1, 0, 0), "dilations": (2, 1)})
    others = Case(2, 1, 3, 20, (9, 18), (3, 4), {"strides": (2, 4)})
    for case, quads in ((rows, True), (others, False)):
        inputs = case.operands(rng, "conv2d", layout)
        graph = op_graph("conv2d", inputs, case.attrs(layout), constants={1} if constant else ())
        spec = make_plan(graph, device.target, {"conv2d": "tiled"}).dispatches[-1].spec
        assert spec.bindings[0].quad == quads
        assert spec.param("planes") == (quads and layout == "nchw")
        check_op(device, "conv2d", inputs, case.attrs(layout), constants={1} if constant else (), forced={"conv2d": "tiled"})


def test_more_workgroups_than_one_dimension_holds(device: Device) -> None:
    case = Case(1, 1, 4, 4, (1040, 1040), (1, 1))
    inputs = case.operands(np.random.default_rng(7), "conv2d", "nhwc")
    graph = op_graph("conv2d", inputs, case.attrs("nhwc"), constants={1})
    assert make_plan(graph, device.target, {"conv2d": "implicit"}).dispatches[0].grid[1] > 1
    check_op(device, "conv2d", inputs, case.attrs("nhwc"), constants={1}, forced={"conv2d": "implicit"})


@VARIANT
@LAYOUT
def test_images_may_be_constants(device: Device, variant: str, layout: str) -> None:
    # Gradients of sums convolve constants. Pixels packed into a texture are columns of a matrix, however many rows they fill.
    rng = np.random.default_rng(14)
    wide = (Case(2, 1, 20, 12, (12, 12), (1, 1)),) if variant == "pointwise" else ()
    for case in (*cases(variant), *wide):
        inputs = case.operands(rng, "conv2d", layout)
        constants = {0, 1} if variant in BY_WINOGRAD else {0}
        check_op(device, "conv2d", inputs, case.attrs(layout), constants=constants, forced={"conv2d": variant})


@LAYOUT
def test_many_channels_wrap_in_the_texture(device: Device, layout: str) -> None:
    rng = np.random.default_rng(8)
    limits = tuple((n, 64 if n == "max-texture-dimension-2d" else v) for n, v in device.caps.limits)
    caps = replace(device.caps, limits=limits)
    for depth in (40, 43):
        case = Case(1, 1, depth, 20, (4, 5), (2, 2))
        inputs = case.operands(rng, "conv2d", layout)
        graph = op_graph("conv2d", inputs, case.attrs(layout), constants={1})
        plan = make_plan(graph, Target.of(caps), {"conv2d": "implicit"})
        packing = plan.constants[0].packing
        assert isinstance(packing, PackingChain)
        assert isinstance(packing.second, PanelTexture)
        assert packing.second.wraps(depth) > 1
        feeds = {"0": inputs[0], "2": inputs[2]}
        program = Program(device, plan)
        try:
            actual = program.start(feeds, ["0"]).result()["0"]  # pyright: ignore[reportArgumentType] - both are given
        finally:
            program.destroy()
        np.testing.assert_array_equal(actual, interpret(graph, feeds)["0"])  # pyright: ignore[reportArgumentType] - likewise


@VARIANT
@pytest.mark.parametrize("constant", [False, True], ids=["dynamic", "constant"])
def test_images_of_few_channels_are_read_before_they_are_transposed(device: Device, variant: str, constant: bool) -> None:
    rng = np.random.default_rng(9)
    case = {
        "depthwise": Case(2, 1, 1, 8, (6, 7), (3, 3)),
        "pointwise": Case(2, 1, 3, 8, (6, 7), (1, 1)),
        **dict.fromkeys(BY_WINOGRAD, Case(2, 1, 4, 8, (6, 7), (3, 3))),
    }.get(variant, Case(2, 1, 3, 20, (6, 7), (3, 2), {"strides": (2, 1), "padding": (1, 0, 1, 1)}))
    chain = Chain()
    image, weights, bias = case.operands(rng, "conv2d")
    assert image is not None
    assert weights is not None
    assert bias is not None
    turned = chain.apply("transpose", [chain.input(image)], permutation=(0, 2, 3, 1))
    filters = chain.constant(weights) if constant or variant in BY_WINOGRAD else chain.input(weights)
    relu = chain.apply("relu", [chain.apply("conv2d", [turned, filters, chain.constant(bias)], **case.attrs("nhwc"))])
    graph = chain.graph(relu)
    fused, _ = run_passes(graph, device.target)
    plan = make_plan(fused, device.target, {"conv2d": variant})
    if variant in ("implicit", "tiled", "plain"):
        assert not any(d.spec.template == "strided" and "permutation" in d.reason for d in plan.dispatches)
    actual = run_graph(device, graph, chain.feeds, forced={"conv2d": variant})
    np.testing.assert_array_equal(actual["0"], interpret(graph, chain.feeds)["0"])


def test_images_that_a_kernel_cannot_read_are_transposed_before_a_fused_convolution(device: Device) -> None:
    rng = np.random.default_rng(9)
    chain = Chain()
    image, weights, _ = Case(1, 1, 3, 8, (40, 50), (3, 3)).operands(rng, "conv2d")
    assert image is not None
    assert weights is not None
    turned = chain.apply("transpose", [chain.input(image)], permutation=(0, 2, 3, 1))
    graph = chain.graph(chain.apply("conv2d", [turned, chain.constant(weights), None], input_layout="nhwc"))
    fused, _ = run_passes(graph, device.target)
    assert len(fused.nodes) == 1
    # The image is larger than a binding: it is divided, and parts of planes are not parts of the image.
    limits = tuple((n, 16384 if n == "max-storage-buffer-binding-size" else v) for n, v in device.caps.limits)
    plan = make_plan(fused, Target.of(replace(device.caps, limits=limits)))
    assert plan.dispatches[0].reason.startswith("permutation [0, 2, 3, 1]")
    np.testing.assert_array_equal(run_plan(device, plan, [image]), interpret(graph, chain.feeds)["0"])


@pytest.mark.repeats
@pytest.mark.parametrize("tile", with_tiles("implicit", texture=True))
def test_every_tile(device: Device, tile: str) -> None:
    rng = np.random.default_rng(9)
    for case in (Case(1, 1, 4, 80), Case(2, 1, 3, 16, (6, 6)), Case(1, 2, 5, 48), Case(1, 1, 8, 21, (3, 7), (1, 3))):
        for layout in INPUT_LAYOUTS:
            inputs = case.operands(rng, "conv2d", layout)
            graph = op_graph("conv2d", inputs, case.attrs(layout), constants={1, 2})
            (operator, *_) = asked(graph, device.caps)
            known = Tuning.of(device.caps, {operator: Measured(tile, {tile: 1.0})})
            assert inputs[0] is not None
            feeds = {"0": inputs[0]}
            actual = run_graph(device, graph, feeds, tuning=known, disabled_passes=("keep_channels_last",))
            np.testing.assert_array_equal(actual["0"], interpret(graph, feeds)["0"])


@pytest.mark.parametrize("variant", [v for v in VARIANTS if v not in BY_WINOGRAD])
@LAYOUT
def test_special_values_stay_where_their_taps_reach(device: Device, variant: str, layout: str) -> None:
    rng = np.random.default_rng(9)
    for case in cases(variant)[:2]:
        inputs = case.operands(rng, "conv2d", layout)
        x = inputs[0]
        assert x is not None
        x[0].flat[0], x[0].flat[-1] = np.inf, np.nan
        check_op(device, "conv2d", inputs, case.attrs(layout), constants={1}, forced={"conv2d": variant})


# what follows a convolution ------------------------------------------------------------------------------------------------


@pytest.mark.repeats
@VARIANT
@LAYOUT
@pytest.mark.parametrize("kind", ENDINGS)
def test_epilogue_changes_no_number(device: Device, variant: str, layout: str, kind: str) -> None:
    rng = np.random.default_rng(10)
    some = CASES[variant][:2] if variant in CASES else GENERAL[1:3]
    for data_type, case, bias in (("float32", some[0], True), ("float32", some[1], False), ("float16", some[1], True)):
        chain = Chain()
        x, weights, channels = (random_array(rng, data_type, shape, 1) for shape in case.shapes("conv2d", layout))
        operands = [chain.input(x), chain.constant(weights), chain.constant(channels) if bias else None]
        result = chain.apply("conv2d", operands, **case.attrs(layout))
        output = getattr(Ending(chain, result, CHANNELS[layout], rng), kind)()
        check_fused(device, chain, output, {"conv2d": variant})


def test_only_vectors_along_the_channels_are_fused(device: Device) -> None:
    for layout, shape, nodes in (("nchw", (4,), 2), ("nchw", (4, 1, 1), 1), ("nhwc", (4,), 1), ("nhwc", (4, 1, 1), 2)):
        chain = Chain()
        result = chain.apply(
            "conv2d",
            [chain.input(np.ones((1, 4, 4, 4), np.float32)), chain.input(np.ones((4, 4, 1, 1), np.float32)), None],
            input_layout=layout,
        )
        graph = chain.graph(chain.apply("add", [result, chain.input(np.arange(4, dtype=np.float32).reshape(shape))]))
        assert len(run_passes(graph, device.target)[0].nodes) == nodes
        np.testing.assert_array_equal(run_graph(device, graph, chain.feeds)["0"], interpret(graph, chain.feeds)["0"])


# any convolution -----------------------------------------------------------------------------------------------------------

small = st.integers(1, 3)
pairs = st.tuples(small, small)


@settings(max_examples=60)
@given(
    case=st.builds(
        Case,
        images=st.integers(1, 2),
        groups=st.integers(1, 4),
        depth=st.integers(1, 9),
        columns=st.integers(1, 9),
        size=st.tuples(st.integers(1, 12), st.integers(1, 12)),
        taps=pairs,
        options=st.fixed_dictionaries({"padding": st.tuples(*[st.integers(0, 3)] * 4), "strides": pairs, "dilations": pairs}),
    ),
    variant=st.sampled_from(VARIANTS),
    input_layout=st.sampled_from(INPUT_LAYOUTS),
    filter_layout=st.sampled_from(FILTER_LAYOUTS["conv2d"]),
    constant=st.booleans(),
    bias=st.booleans(),
    seed=st.integers(0, 2**32 - 1),
)
def test_any_convolution(
    case: Case, variant: str, input_layout: str, filter_layout: str, constant: bool, bias: bool, seed: int
) -> None:
    device = open_profile("full")
    attrs = case.attrs(input_layout, filter_layout)
    inputs = case.operands(np.random.default_rng(seed), "conv2d", input_layout, filter_layout, bias=bias)
    try:
        graph = op_graph("conv2d", inputs, attrs)
    except MLTypeError as error:
        assume("must fit into the padded input" not in str(error))
        raise
    size = convolution_size(Lowering(node=graph.nodes[0], graph=graph, target=device.target, ops=OPS), transposed=False)
    # What the drawn variant cannot compute the device's own choice does.
    forced = {} if obstacle(device.caps, size, variant, constant_filter=constant) else {"conv2d": variant}
    check_op(device, "conv2d", inputs, attrs, constants={1} if constant else (), forced=forced)


# refusals ------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("variant", "case", "constant", "why"),
    [
        ("depthwise", Case(), True, "a group has 4 input channels"),
        ("pointwise", Case(), True, "it takes one tap, one group, strides of 1 and no padding"),
        ("pointwise", Case(1, 2, 2, 2, taps=(1, 1)), True, "one group"),
        ("winograd", Case(taps=(3, 2)), True, "it takes 3 x 3 taps"),
        ("winograd", Case(depth=3), True, "channels in multiples of 4"),
        ("winograd", Case(), False, "the filter is not a constant"),
        ("implicit", Case(), True, "the device's subgroup size is 0"),
    ],
)
def test_what_a_variant_cannot_compute(variant: str, case: Case, constant: bool, why: str) -> None:
    shapes = case.shapes("conv2d")
    graph = op_graph("conv2d", [np.zeros(s, np.float32) for s in shapes], case.attrs(), {1} if constant else ())
    with pytest.raises(OperationError, match=rf"conv2d\('test'\): .*got {variant}: .*{why}.*; allowed: .*plain"):
        make_plan(graph, DEFAULT_TARGET, {"conv2d": variant})


X, F = typed("float32", 1, 4, 5, 5), typed("float32", 6, 4, 3, 3)


@pytest.mark.parametrize(
    ("types", "attrs", "texts"),
    [
        ([typed("float32", 4, 5, 5), F, None], {}, ["conv2d('here')", "Conv2d input must be 4D", "input float32[4, 5, 5]"]),
        ([X, typed("float32", 6, 4, 3), None], {}, ["Conv2d input must be 4D, as must its filter", "filter float32[6, 4, 3]"]),
        ([X, F, typed("float32", 6, 1)], {}, ["bias 1D", "bias float32[6, 1] of rank 2", "rank 1"]),
        ([typed("int32", 1, 4, 5, 5), F, None], {}, ["input data type is not allowed", "float32, float16"]),
        ([X, typed("float16", 6, 4, 3, 3), None], {}, ["filter data type must equal input data type"]),
        ([X, F, typed("float16", 6)], {}, ["bias data type must equal input data type"]),
        ([X, F, typed("float32", 4)], {}, ["bias must have one element per output channel", "allowed: [6]"]),
        ([X, F, None], {"padding": (1, 1)}, ["padding must have 4 items", "padding=[1, 1]", "[top, bottom, left, right]"]),
        ([X, F, None], {"padding": (1, 1, 1, -1)}, ["padding must be an unsigned 32-bit integer", "-1"]),
        ([X, F, None], {"strides": (1,)}, ["strides must have 2 items"]),
        ([X, F, None], {"strides": (1, 0)}, ["every item of strides must be > 0", "strides=[1, 0]"]),
        ([X, F, None], {"dilations": (1, 1, 1)}, ["dilations must have 2 items"]),
        ([X, F, None], {"dilations": (0, 1)}, ["every item of dilations must be > 0"]),
        ([X, F, None], {"groups": 0}, ["groups must be > 0", "groups=0"]),
        ([X, F, None], {"groups": 3}, ["Conv2d input channels (4) must be divisible by groups (3)"]),
        (
            [X, F, None],
            {"groups": 2},
            ["the filter's input channels must equal the input's channels divided by groups", "allowed: 2"],
        ),
        (
            [X, typed("float32", 6, 1, 3, 3), None],
            {"groups": 4},
            ["the filter's output channels must be divisible by groups", "k * 4"],
        ),
        ([X, typed("float32", 6, 4, 6, 3), None], {}, ["must fit into the padded input", "6 taps along h", "allowed: 1..5"]),
        ([X, F, None], {"dilations": (1, 3)}, ["must fit into the padded input", "7 taps along w"]),
        ([X, F, None], {"input_layout": "nhcw"}, ["Invalid input_layout", "'nhcw'", "nchw, nhwc"]),
        ([X, F, None], {"filter_layout": "iohw"}, ["Invalid filter_layout", "oihw, hwio, ohwi, ihwo"]),
        ([X, F, None], {"auto_pad": "same-upper"}, ["unknown option 'auto_pad'"]),
        (
            [typed("float32", 1, 4, 1, 1), typed("float32", 1, 4, 1, 1), None],
            {"padding": (2**31, 0, 0, 0)},
            ["output dimensions and element count must be valid dimensions"],
        ),
        ([None, F, None], {}, ["input is required"]),
    ],
)
def test_refusals(types: Sequence[TensorType | None], attrs: Mapping[str, Any], texts: Sequence[str]) -> None:
    message = refusal("conv2d", types, attrs)
    assert [text for text in texts if text not in message] == []


@pytest.mark.parametrize(
    ("layout", "filter_layout", "taps", "options", "shape"),
    [
        ("nchw", "oihw", (6, 4, 3, 3), {}, (1, 6, 3, 3)),
        ("nhwc", "ohwi", (6, 3, 3, 5), {}, (1, 2, 3, 6)),
        ("nchw", "hwio", (3, 3, 4, 6), {"strides": (2, 3), "padding": (1, 1, 0, 0)}, (1, 6, 3, 1)),
        ("nchw", "ihwo", (4, 2, 1, 6), {"dilations": (4, 9)}, (1, 6, 1, 5)),
    ],
)
def test_output_shapes(
    layout: str, filter_layout: str, taps: tuple[int, ...], options: dict[str, Any], shape: tuple[int, ...]
) -> None:
    types = [typed("float32", 1, 4, 5, 5), typed("float32", *taps), None]
    (output,), canonical = OPS["conv2d"].check(types, {"input_layout": layout, "filter_layout": filter_layout, **options})
    assert output.shape == shape
    assert OPS["conv2d"].check(types, canonical)[0] == (output,)
