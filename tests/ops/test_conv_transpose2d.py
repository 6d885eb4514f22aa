from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from tests.ops.convolutions import FILTER_LAYOUTS, INPUT_LAYOUTS, Case, by_definition, check_folded
from tests.ops.movers import refusal, typed
from tests.ops.products import Chain, check_fused
from tests.rotation import first_of
from tests.support import PROFILES, check_op, op_graph, open_profile, random_array
from tests.targets import DEFAULT_TARGET
from webnn_wgpu.core.errors import MLTypeError, OperationError
from webnn_wgpu.kernels.select import supports
from webnn_wgpu.kernels.select_convolution import WINOGRAD, obstacle
from webnn_wgpu.ops import OPS
from webnn_wgpu.ops._convolution import convolution_size
from webnn_wgpu.ops._def import Lowering
from webnn_wgpu.plan import make_plan
from webnn_wgpu.reference import interpret

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from webnn_wgpu.ir.types import TensorType
    from webnn_wgpu.runtime.device import Device

NAME = "convTranspose2d"
VARIANTS = OPS[NAME].variants
VARIANT = pytest.mark.parametrize("variant", VARIANTS)
LAYOUT = pytest.mark.parametrize("layout", INPUT_LAYOUTS)

GENERAL = (
    Case(),
    Case(
        2, 2, 3, 2, (5, 4), (3, 3), {"strides": (2, 3), "padding": (1, 0, 0, 2), "output_padding": (1, 2), "dilations": (1, 2)}
    ),
    Case(1, 1, 8, 36, (4, 5), (2, 2), {"strides": (2, 2), "output_sizes": (9, 11)}),
    Case(1, 1, 5, 4, (3, 3), (3, 3), {"strides": (3, 3), "padding": (2, 2, 2, 2), "output_padding": (2, 2)}),
    # Rows and columns that no input pixel reaches: they hold the bias.
    Case(1, 1, 4, 3, (2, 2), (1, 1), {"strides": (4, 3), "output_padding": (3, 2)}),
    Case(1, 1, 4, 4, (6, 6), (3, 3), {"padding": (2, 3, 3, 2)}),
)
POINTWISE = (Case(2, 1, 5, 7, (3, 4), (1, 1)), Case(1, 1, 8, 12, (4, 4), (1, 1)))
DEPTHWISE = (
    Case(
        2, 6, 1, 1, (5, 4), (3, 3), {"strides": (2, 3), "padding": (1, 0, 0, 2), "output_padding": (1, 2), "dilations": (1, 2)}
    ),
    Case(1, 4, 1, 2, (5, 4), (2, 3), {"padding": (1, 1, 1, 1)}),
    Case(1, 8, 1, 1, (7, 7), (3, 3)),
)


def cases(variant: str) -> Sequence[Case]:
    return {"pointwise": POINTWISE, "depthwise": DEPTHWISE}.get(variant, (*GENERAL, *POINTWISE, *DEPTHWISE))


@pytest.mark.parametrize("case", [*GENERAL, *POINTWISE, *DEPTHWISE])
def test_reference_is_the_definition(case: Case) -> None:
    inputs = case.operands(np.random.default_rng(0), NAME)
    graph = op_graph(NAME, inputs, case.attrs())
    wanted = by_definition(NAME, case, *inputs)  # pyright: ignore[reportArgumentType] - input and filter are given
    np.testing.assert_array_equal(interpret(graph, {str(i): a for i, a in enumerate(inputs)})["0"], wanted)


@VARIANT
@pytest.mark.parametrize("layout", first_of(INPUT_LAYOUTS))
@pytest.mark.parametrize("constant", first_of([True, False]), ids=["constant", "dynamic"])
@pytest.mark.parametrize("data_type", first_of(["float32", "float16"]))
def test_sizes_and_options(device: Device, variant: str, layout: str, data_type: str, constant: bool) -> None:
    rng = np.random.default_rng(1)
    for i, case in enumerate(cases(variant)):
        inputs = case.operands(rng, NAME, layout, data_type=data_type, bias=i % 3 != 2)
        check_op(device, NAME, inputs, case.attrs(layout), constants={1} if constant else (), forced={NAME: variant})


@pytest.mark.parametrize("depth", [3, 4, 8, 12])
def test_phases_have_their_own_taps(device: Device, depth: int) -> None:
    rng = np.random.default_rng(5)
    for taps, options in (
        ((2, 2), {"strides": (2, 2)}),
        ((3, 3), {"strides": (2, 2), "padding": (1, 1, 1, 1), "output_padding": (1, 1)}),
        ((4, 5), {"strides": (3, 2), "padding": (4, 0, 3, 1)}),
        ((1, 2), {"strides": (2, 3), "output_padding": (1, 2)}),
    ):
        case = Case(2, 1, depth, 12, (5, 6), taps, options)
        inputs = case.operands(rng, NAME, "nhwc")
        graph = op_graph(NAME, inputs, case.attrs("nhwc"), constants={1})
        (dispatch,) = make_plan(graph, device.target, {NAME: "tiled"}).dispatches
        assert dispatch.spec.param("phased")
        check_op(device, NAME, inputs, case.attrs("nhwc"), constants={1}, forced={NAME: "tiled"})


@LAYOUT
@pytest.mark.parametrize("filter_layout", FILTER_LAYOUTS[NAME])
@pytest.mark.parametrize("constant", [False, True], ids=["dynamic", "constant"])
def test_filter_layouts(device: Device, layout: str, filter_layout: str, constant: bool) -> None:
    rng = np.random.default_rng(2)
    for variant in (v for v in VARIANTS if v != "implicit" or supports(device.caps, "subgroup")):
        for case in cases(variant)[:2]:
            inputs = case.operands(rng, NAME, layout, filter_layout)
            attrs = case.attrs(layout, filter_layout)
            check_op(device, NAME, inputs, attrs, constants={1} if constant else (), forced={NAME: variant})


@pytest.mark.parametrize("profile", PROFILES)
@LAYOUT
def test_chosen_variant_on_every_profile(profile: str, layout: str) -> None:
    rng = np.random.default_rng(3)
    profiled = open_profile(profile)
    for data_type in ("float32", "float16"):
        for case in (GENERAL[1], GENERAL[2], POINTWISE[0], DEPTHWISE[0]):
            inputs = case.operands(rng, NAME, layout, data_type=data_type)
            check_op(profiled, NAME, inputs, case.attrs(layout), constants={1})


@VARIANT
@LAYOUT
def test_grid_folds(device: Device, variant: str, layout: str) -> None:
    case = {
        "pointwise": Case(2, 1, 8, 80, (20, 20), (1, 1)),
        "depthwise": Case(2, 40, 1, 1, (20, 20), (3, 3)),
    }.get(variant, Case(1, 2, 3, 80, (15, 15), (2, 2), {"strides": (2, 2)}))
    check_folded(device, NAME, case, layout, variant)


@pytest.mark.repeats
@VARIANT
@LAYOUT
def test_epilogue_changes_no_number(device: Device, variant: str, layout: str) -> None:
    rng = np.random.default_rng(4)
    for data_type, case, bias in (("float32", cases(variant)[1], True), ("float16", cases(variant)[0], False)):
        chain = Chain()
        x, weights, channels = (random_array(rng, data_type, shape, 1) for shape in case.shapes(NAME, layout))
        operands = [chain.input(x), chain.constant(weights), chain.constant(channels) if bias else None]
        result = chain.apply(NAME, operands, **case.attrs(layout))
        vector = channels if layout == "nhwc" else channels[:, None, None]
        scaled = chain.apply("mul", [result, chain.constant(vector)])
        residual = chain.input(random_array(rng, data_type, chain.values[result].type.shape))
        check_fused(device, chain, chain.apply("relu", [chain.apply("add", [residual, scaled])]), {NAME: variant})


def test_output_sizes_are_an_output_padding() -> None:
    types = [typed("float32", 1, 2, 3, 3), typed("float32", 2, 4, 3, 3), None]
    by_sizes = OPS[NAME].check(types, {"strides": (2, 3), "output_sizes": (8, 11)})
    by_padding = OPS[NAME].check(types, {"strides": (2, 3), "output_padding": (1, 2)})
    assert by_sizes == by_padding
    # output_sizes overrides output_padding, and the canonical form is stable.
    assert OPS[NAME].check(types, {"strides": (2, 3), "output_sizes": (8, 11), "output_padding": (7, 7)}) == by_sizes
    assert OPS[NAME].check(types, by_sizes[1]) == by_sizes


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
        size=st.tuples(st.integers(1, 6), st.integers(1, 6)),
        taps=pairs,
        options=st.fixed_dictionaries(
            {
                "padding": st.tuples(*[st.integers(0, 2)] * 4),
                "strides": pairs,
                "dilations": pairs,
                "output_padding": st.tuples(st.integers(0, 2), st.integers(0, 2)),
            }
        ),
    ),
    variant=st.sampled_from(VARIANTS),
    input_layout=st.sampled_from(INPUT_LAYOUTS),
    filter_layout=st.sampled_from(FILTER_LAYOUTS[NAME]),
    constant=st.booleans(),
    bias=st.booleans(),
    seed=st.integers(0, 2**32 - 1),
)
def test_any_convolution(
    case: Case, variant: str, input_layout: str, filter_layout: str, constant: bool, bias: bool, seed: int
) -> None:
    device = open_profile("full")
    attrs = case.attrs(input_layout, filter_layout)
    inputs = case.operands(np.random.default_rng(seed), NAME, input_layout, filter_layout, bias=bias)
    try:
        graph = op_graph(NAME, inputs, attrs)
    except MLTypeError as error:
        assume("output_padding must be less" not in str(error) and "must be valid dimensions" not in str(error))
        raise
    size = convolution_size(Lowering(node=graph.nodes[0], graph=graph, target=device.target, ops=OPS), transposed=True)
    # What the drawn variant cannot compute the device's own choice does.
    forced = {} if obstacle(device.caps, size, variant, constant_filter=constant) else {NAME: variant}
    check_op(device, NAME, inputs, attrs, constants={1} if constant else (), forced=forced)


def test_a_variant_that_cannot_compute_it_is_refused() -> None:
    graph = op_graph(NAME, [np.zeros(s, np.float32) for s in Case().shapes(NAME)[:2]] + [None])
    with pytest.raises(
        OperationError, match=r"conv_transpose2d\('test'\): .*got depthwise: a group has 4 .*; allowed: tiled, plain"
    ):
        make_plan(graph, DEFAULT_TARGET, {NAME: "depthwise"})
    for variant in WINOGRAD:
        with pytest.raises(MLTypeError, match=f"convTranspose2d={variant}"):
            make_plan(graph, DEFAULT_TARGET, {NAME: variant})


X, F = typed("float32", 1, 4, 5, 5), typed("float32", 4, 3, 3, 3)


@pytest.mark.parametrize(
    ("types", "attrs", "texts"),
    [
        ([typed("float32", 4, 5, 5), F, None], {}, ["conv_transpose2d('here')", "ConvTranspose2d input must be 4D"]),
        ([X, typed("float32", 6, 4, 3), None], {}, ["as must its filter", "filter float32[6, 4, 3]"]),
        ([X, F, typed("float32")], {}, ["bias 1D", "of rank 0"]),
        ([typed("uint8", 1, 4, 5, 5), F, None], {}, ["input data type is not allowed"]),
        ([X, typed("float16", 4, 3, 3, 3), None], {}, ["filter data type must equal input data type"]),
        ([X, F, typed("float16", 3)], {}, ["bias data type must equal input data type"]),
        ([X, F, typed("float32", 6)], {}, ["bias must have one element per output channel", "allowed: [3]"]),
        ([X, F, typed("float32", 3)], {"groups": 2}, ["bias must have one element per output channel", "allowed: [6]"]),
        ([X, F, None], {"padding": (1, 1)}, ["padding must have 4 items"]),
        ([X, F, None], {"strides": (1,)}, ["strides must have 2 items"]),
        ([X, F, None], {"strides": (0, 1)}, ["every item of strides must be > 0"]),
        ([X, F, None], {"dilations": ()}, ["dilations must have 2 items"]),
        ([X, F, None], {"dilations": (1, 0)}, ["every item of dilations must be > 0"]),
        ([X, F, None], {"output_padding": (0,)}, ["output_padding must have 2 items"]),
        (
            [X, F, None],
            {"output_padding": (0, 1)},
            ["output_padding must be less than the stride", "output_padding=[0, 1]", "0..0"],
        ),
        ([X, F, None], {"output_sizes": (7, 7, 7)}, ["output_sizes must have 2 items", "output_sizes=[7, 7, 7]"]),
        (
            [X, F, None],
            {"output_sizes": (7, 8)},
            ["output_sizes must be at least the computed size", "computed [7, 7]", "7..7"],
        ),
        ([X, F, None], {"strides": (2, 2), "output_sizes": (10, 11)}, ["output_sizes=[10, 11]", "11..12"]),
        ([X, F, None], {"groups": 0}, ["groups must be > 0"]),
        ([X, F, None], {"groups": 3}, ["ConvTranspose2d input channels (4) must be divisible by groups (3)"]),
        (
            [X, typed("float32", 3, 4, 3, 3), None],
            {},
            ["the filter's input channels must equal the input's channels", "allowed: 4"],
        ),
        (
            [typed("float32", 1, 2**16, 1, 1), typed("float32", 2**16, 2**16, 1, 1), None],
            {"groups": 2**16},
            ["the output's channels must be a valid dimension", "65536 * groups=65536"],
        ),
        ([X, F, None], {"padding": (4, 4, 0, 0)}, ["output dimensions and element count must be valid dimensions"]),
        ([X, F, None], {"input_layout": "chwn"}, ["Invalid input_layout"]),
        ([X, F, None], {"filter_layout": "oihw"}, ["Invalid filter_layout", "iohw, hwoi, ohwi"]),
    ],
)
def test_refusals(types: Sequence[TensorType | None], attrs: Mapping[str, Any], texts: Sequence[str]) -> None:
    message = refusal(NAME, types, attrs)
    assert [text for text in texts if text not in message] == []
