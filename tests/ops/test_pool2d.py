from __future__ import annotations

import math
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.ops.movers import FOLDED_ELEMENTS, refusal, typed
from tests.ops.products import CHANNELS, ENDINGS, Chain, Ending, check_fused
from tests.ops.reduced import Reduced
from tests.ops.rows import VARIANTS, as_hardware, plan_of, positive, run_plan, runs, variants_of
from tests.rotation import first_of
from tests.support import PROFILES, check_op, op_graph, open_profile, random_array, run_graph
from tests.targets import SOFTWARE
from webnn_wgpu.core.caps import Caps
from webnn_wgpu.core.data_types import ANY, FLOATS, MAX_DIMENSION
from webnn_wgpu.core.errors import OperationError
from webnn_wgpu.costs import Target
from webnn_wgpu.ops import OPS
from webnn_wgpu.ops.pool2d import SPATIAL
from webnn_wgpu.passes import run_passes
from webnn_wgpu.plan import make_plan
from webnn_wgpu.reference import interpret

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from webnn_wgpu.ir.graph import Array
    from webnn_wgpu.runtime.device import Device

NAMES = ("averagePool2d", "l2Pool2d", "maxPool2d")

CASES: tuple[dict[str, Any], ...] = (
    {"window_dimensions": [3, 2]},
    {"window_dimensions": [3, 3], "strides": [2, 1], "padding": [1, 2, 3, 4], "output_shape_rounding": "ceil"},
    {"window_dimensions": [2, 2], "dilations": [2, 3], "strides": [3, 2], "padding": [5, 0, 0, 5]},
    {"window_dimensions": [1, 1], "strides": [2, 2], "padding": [2, 1, 2, 1]},
    {},
)
SHAPES = ((2, 3, 7, 5), (1, 4, 9, 8), (1, 5, 6, 1))


def samples(rng: np.random.Generator, name: str, data_type: str, shape: Sequence[int]) -> Array:
    """Numbers whose sums do not cancel; for maxima, any."""
    return random_array(rng, data_type, shape) if name == "maxPool2d" else positive(rng, data_type, shape)


def check(
    device: Device, name: str, x: Array, attrs: Mapping[str, Any], variant: str | None = None, tolerance: float = 6
) -> Array:
    forced = {"pool2d": variant} if variant else None
    return check_op(device, name, [x], attrs, forced=forced, tolerance=0 if name == "maxPool2d" else tolerance)[0]


def naive(name: str, x: Array, attrs: Mapping[str, Any]) -> Array:
    """The definition, window by window."""
    layout = attrs.get("layout", "nchw")
    images = np.moveaxis(x, 3, 1) if layout == "nhwc" else x
    sizes = images.shape[2:]
    window = attrs.get("window_dimensions") or sizes
    padding = attrs.get("padding", (0, 0, 0, 0))
    strides, dilations = attrs.get("strides", (1, 1)), attrs.get("dilations", (1, 1))
    rounding = math.ceil if attrs.get("output_shape_rounding") == "ceil" else math.floor
    output = attrs.get("output_sizes") or [
        rounding((sizes[i] - ((window[i] - 1) * dilations[i] + 1) + sum(padding[2 * i : 2 * i + 2])) / strides[i] + 1)
        for i in range(2)
    ]
    result = np.zeros((*images.shape[:2], *output), np.float64 if x.dtype.kind == "f" else x.dtype)
    lowest = -math.inf if x.dtype.kind == "f" else np.iinfo(str(x.dtype)).min
    for y, column in product(*map(range, output)):
        rows, columns = (
            [c for k in range(window[i]) if 0 <= (c := o * strides[i] + k * dilations[i] - padding[2 * i]) < sizes[i]]
            for i, o in enumerate((y, column))
        )
        inside = images[:, :, rows][:, :, :, columns].reshape(*images.shape[:2], -1)
        if name == "maxPool2d":
            pooled = inside.max(axis=2) if inside.size else lowest
        elif name == "l2Pool2d":
            pooled = np.sqrt(np.square(inside.astype(np.float64)).sum(axis=2))
        else:
            pooled = inside.astype(np.float64).mean(axis=2) if inside.size else 0.0
        result[:, :, y, column] = pooled
    result = result.astype(x.dtype)
    return np.moveaxis(result, 1, 3) if layout == "nhwc" else result


def reference(name: str, x: Array, attrs: Mapping[str, Any]) -> Array:
    return interpret(op_graph(name, [x], attrs), {"0": x})["0"]


def test_largest_of_integers_of_every_size() -> None:
    lowest = {t: np.iinfo(t).min for t in ANY if t not in FLOATS}
    for data_type, value in lowest.items():
        x = np.full((1, 1, 1, 1), 3, data_type)
        attrs = {"window_dimensions": [1, 1], "padding": [1, 0, 0, 0]}
        assert reference("maxPool2d", x, attrs).tolist() == [[[[value], [3]]]]


AXIS = st.tuples(
    st.integers(1, 7), st.integers(1, 5), st.integers(1, 4), st.integers(1, 3), st.integers(0, 6), st.integers(0, 6)
)


@st.composite
def pools(draw: st.DrawFn) -> tuple[tuple[int, ...], dict[str, Any]]:
    """A shape and options whose output has at least one element."""
    (h, *down), (w, *across) = draw(AXIS), draw(AXIS)
    layout = draw(st.sampled_from(["nchw", "nhwc"]))
    images, channels = draw(st.integers(1, 2)), draw(st.sampled_from([1, 3, 4, 8]))
    shape = (images, channels, h, w) if layout == "nchw" else (images, h, w, channels)
    attrs: dict[str, Any] = {
        "window_dimensions": [down[0], across[0]],
        "strides": [down[1], across[1]],
        "dilations": [down[2], across[2]],
        "padding": [*down[3:5], *across[3:5]],
        "layout": layout,
        "output_shape_rounding": draw(st.sampled_from(["floor", "ceil"])),
    }
    for i, size in enumerate((h, w)):
        # A window that does not fit is made to fit.
        extent = (attrs["window_dimensions"][i] - 1) * attrs["dilations"][i] + 1
        attrs["padding"][2 * i] += max(0, extent - size - attrs["padding"][2 * i] - attrs["padding"][2 * i + 1])
    return shape, attrs


@given(st.sampled_from(NAMES), pools(), st.sampled_from([*VARIANTS, None]), st.sampled_from(["float32", "float16", "int8"]))
def test_any_pooling(
    device: Device, name: str, pool: tuple[tuple[int, ...], dict[str, Any]], variant: str | None, data_type: str
) -> None:
    shape, attrs = pool
    data_type = data_type if name == "maxPool2d" or data_type in FLOATS else "float32"
    x = samples(np.random.default_rng(sum(shape)), name, data_type, shape)
    wanted = naive(name, x, attrs)
    found = reference(name, x, attrs)
    assert found.shape == wanted.shape
    np.testing.assert_allclose(found, wanted, rtol=1e-3 if data_type == "float16" else 1e-6)
    check(device, name, x, attrs, variant)


@pytest.mark.repeats
@pytest.mark.parametrize("variant", [*VARIANTS, None])
@pytest.mark.parametrize("name", NAMES)
def test_types_and_variants(device: Device, name: str, variant: str | None) -> None:
    rng = np.random.default_rng(1)
    for data_type in OPS[name].operands[0].data_types:
        if variant and not runs(variant, data_type):
            continue
        for shape, attrs, layout in product(SHAPES, CASES, SPATIAL):
            window = attrs.get("window_dimensions")
            if window and any(shape[d] < 2 for d in SPATIAL[layout]):
                continue
            check(device, name, samples(rng, name, data_type, shape), {**attrs, "layout": layout}, variant)


@pytest.mark.parametrize("name", NAMES)
def test_profiles(profile_device: Device, name: str) -> None:
    rng = np.random.default_rng(2)
    for data_type in OPS[name].operands[0].data_types:
        x = samples(rng, name, data_type, (2, 9, 7, 4))
        for attrs, layout in product(CASES, SPATIAL):
            check(profile_device, name, x, {**attrs, "layout": layout})


@pytest.mark.parametrize("variant", [*VARIANTS, None])
@pytest.mark.parametrize("name", NAMES)
def test_large_windows(device: Device, name: str, variant: str | None) -> None:
    # Serial float32 sums of these would be off by hundreds of ULP.
    rng = np.random.default_rng(3)
    for shape, attrs in (
        ((1, 2, 90, 70), {"window_dimensions": [85, 66], "strides": [5, 5], "padding": [3, 0, 0, 3]}),
        ((1, 7_000, 1, 3), {"window_dimensions": [6_990, 1], "layout": "nhwc"}),
        ((1, 1, 7_000, 4), {"window_dimensions": [1, 6_990], "layout": "nhwc"}),
        ((1, 1, 3, 7_000), {"window_dimensions": [1, 6_990]}),
    ):
        check(device, name, positive(rng, "float32", shape), attrs, variant, tolerance=32)


@pytest.mark.parametrize("name", first_of(NAMES))
def test_windows_that_no_invocation_can_take(device: Device, name: str) -> None:
    # Mesa's software driver ends the loops of an invocation after 65535 iterations; so large windows must be shared.
    x = positive(np.random.default_rng(3), "float32", (1, 1, 3, 70_000))
    x[..., 69_980:] = 2
    attrs = {"window_dimensions": [1, 69_990]}
    check(device, name, x, attrs, tolerance=32)
    check(device, name, np.moveaxis(np.repeat(x, 4, axis=1), 1, 3), {**attrs, "layout": "nhwc"}, tolerance=32)
    for caps in (SOFTWARE, Caps(adapter_type="CPU")):
        assert set(variants_of(plan_of(caps, name, [x], attrs))) <= {"subgroup", "workgroup"}
        with pytest.raises(OperationError, match="forced kernel variant cannot be had"):
            plan_of(caps, name, [x], attrs, {"pool2d": "plain"})
    assert variants_of(plan_of(as_hardware(SOFTWARE), name, [x], attrs, {"pool2d": "plain"})) == ["plain"]
    huge = np.zeros((1, 1, 2, 2_000_000), np.float32)
    with pytest.raises(OperationError, match=r"pool2d\('test'\): too many elements are reduced to one for this device"):
        plan_of(SOFTWARE, name, [huge], {"window_dimensions": [2, 1_999_990]})
    # Small ones may not add up to too many either.
    many = positive(np.random.default_rng(3), "float32", (1, 1, 700, 700))
    many[..., 690:] = 2
    check(device, name, many, {"window_dimensions": [90, 90], "strides": [2, 2]}, tolerance=32)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("layout", SPATIAL)
def test_whole_images(device: Device, name: str, layout: str) -> None:
    rng = np.random.default_rng(4)
    for shape in ((3, 5, 7, 9), (1, 64, 14, 14), (2, 1, 1, 1), (1, 3, 300, 400)):
        h, w = (shape[d] for d in SPATIAL[layout])
        around = {"window_dimensions": [500, 500], "padding": [99, 401 - h, 100, 400 - w]}
        for options in ({}, around):
            attrs = {**options, "layout": layout}
            x = samples(rng, name, "float32", shape)
            result = check(device, name, x, attrs, tolerance=16)
            assert [result.shape[d] for d in SPATIAL[layout]] == [1, 1]
            plan = plan_of(device.caps, name, [x], attrs)
            assert {d.spec.template for d in plan.dispatches} == {"reduce"}
    x = samples(rng, name, "float16", (2, 3, 40, 40))
    check(device, name, x, {"layout": layout})
    # Not whole: a row is left out, or padding makes a second window.
    for attrs in ({"window_dimensions": [39, 40], "strides": [2, 1]}, {"padding": [0, 1, 0, 0]}):
        plan = plan_of(device.caps, name, [x], attrs)
        assert [d.spec.template for d in plan.dispatches] == ["pool2d"]


def test_whole_images_of_integers(device: Device) -> None:
    rng = np.random.default_rng(5)
    for data_type, layout in product(("uint8", "int8", "int64", "uint32"), SPATIAL):
        check(device, "maxPool2d", random_array(rng, data_type, (2, 5, 9, 6)), {"layout": layout})


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("data_type", ["float32", "float16"])
def test_nan_and_infinity(device: Device, data_type: str, variant: str) -> None:
    x = positive(np.random.default_rng(6), data_type, (1, 4, 9, 8))
    x[0, 0, 1, 1], x[0, 1, 8, 7], x[0, 2, 4, 4] = math.nan, math.inf, -math.inf
    x[0, 3, 2:4, 2], x[0, 3, 6:8, 6] = [math.inf, -math.inf], [-math.nan, -math.inf]
    for name, layout in product(NAMES, SPATIAL):
        for attrs in (CASES[0], CASES[1], {"window_dimensions": [1, 1]}, {}):
            check(device, name, x, {**attrs, "layout": layout}, variant)


def test_examples(device: Device) -> None:
    x = np.arange(1, 10, dtype=np.float32).reshape(1, 1, 3, 3)
    corner = {"window_dimensions": [2, 2], "strides": [2, 2], "padding": [1, 0, 1, 0]}
    # Padding does not count: the corner's window has one element.
    assert check(device, "averagePool2d", x, corner).tolist() == [[[[1, 2.5], [5.5, 7]]]]
    assert check(device, "maxPool2d", -x, corner).tolist() == [[[[-1, -2], [-4, -5]]]]
    assert check(device, "l2Pool2d", x, {**corner, "window_dimensions": [1, 1]}).tolist() == [[[[0, 0], [0, 5]]]]
    # Rounding up makes a last window that begins beyond the input.
    beyond = {"window_dimensions": [1, 1], "strides": [4, 4], "output_shape_rounding": "ceil"}
    assert check(device, "averagePool2d", x, beyond).tolist() == [[[[1, 0], [0, 0]]]]
    assert check(device, "maxPool2d", x, beyond).tolist() == [[[[1, -math.inf], [-math.inf, -math.inf]]]]
    bytes_ = x.astype(np.int8)
    assert check(device, "maxPool2d", bytes_, beyond).tolist() == [[[[1, -128], [-128, -128]]]]
    assert check(device, "maxPool2d", x.astype(np.uint8), beyond).tolist() == [[[[1, 0], [0, 0]]]]
    # Half precision is summed in single precision.
    large = np.full((1, 1, 2, 2), 65504, np.float16)
    assert check(device, "averagePool2d", large, {}).tolist() == [[[[65504]]]]
    assert check(device, "l2Pool2d", np.full((1, 1, 2, 2), 1000, np.float16), {}).tolist() == [[[[2000]]]]


@pytest.mark.parametrize("name", NAMES)
def test_options_far_beyond_the_input(device: Device, name: str) -> None:
    x = samples(np.random.default_rng(7), name, "float32", (1, 2, 3, 4))
    huge = 2**32 - 1
    for attrs in (
        {"window_dimensions": [1, 1], "strides": [huge, huge], "output_shape_rounding": "ceil"},
        {"window_dimensions": [1, 1], "dilations": [huge, huge]},
        {"window_dimensions": [2, 2], "dilations": [huge, 7], "strides": [huge, huge], "output_shape_rounding": "ceil"},
        {"window_dimensions": [huge, 3], "strides": [huge, 9], "output_shape_rounding": "ceil", "padding": [2, 2, 0, 0]},
        {"window_dimensions": [1, 2**31 - 9], "padding": [0, 0, 2**31 - 13, 3], "strides": [2, 2**30]},
        {"window_dimensions": [2, 2], "padding": [2**31 - 5, 0, 0, 2**31 - 6], "strides": [2**30, 2**30 - 1]},
    ):
        for variant in (*VARIANTS, None):
            check(device, name, x, attrs, variant)


@pytest.mark.repeats
def test_more_workgroups_than_a_grid_dimension_holds(device: Device) -> None:
    x = np.random.default_rng(8).integers(0, 256, (1, 1, FOLDED_ELEMENTS // 4096 + 1, 4096), np.uint8)
    attrs = {"window_dimensions": [1, 2], "padding": [0, 0, 0, 1]}
    plan = plan_of(as_hardware(device.caps), "maxPool2d", [x], attrs)
    assert plan.dispatches[0].grid[1] > 1
    wanted = np.maximum(x, np.pad(x, ((0, 0), (0, 0), (0, 0), (0, 1)))[..., 1:])
    assert np.array_equal(run_plan(device, plan, [x]), wanted)
    few = positive(np.random.default_rng(9), "float32", (1, 70_000, 2, 4))
    attrs = {"window_dimensions": [2, 1], "layout": "nchw"}
    plan = plan_of(as_hardware(device.caps), "averagePool2d", [few], attrs, {"pool2d": "workgroup"})
    assert plan.dispatches[0].grid[1] > 1
    np.testing.assert_allclose(run_plan(device, plan, [few]), few.mean(axis=2, keepdims=True), rtol=1e-6)


@pytest.mark.repeats
@pytest.mark.parametrize("variant", [*VARIANTS, None])
@pytest.mark.parametrize("layout", SPATIAL)
@pytest.mark.parametrize("kind", ENDINGS)
def test_epilogue_changes_no_number(kind: str, layout: str, variant: str | None) -> None:
    device = open_profile("hardware")
    rng = np.random.default_rng(10)
    # Neighbors of one channel, channels one by one, channels in quads, and whole images in parts.
    for name, data_type, shape, attrs in (
        ("averagePool2d", "float32", (2, 3, 7, 5), CASES[1]),
        ("averagePool2d", "float16", (1, 9, 8, 8), CASES[0]),
        ("l2Pool2d", "float32", (2, 6, 7, 8), CASES[0]),
        ("maxPool2d", "float16", (2, 3, 7, 5), CASES[0]),
        ("maxPool2d", "float32", (1, 9, 8, 4), CASES[1]),
        ("averagePool2d", "float32", (2, 12, 40, 40), {}),
        ("averagePool2d", "float16", (1, 30, 30, 16), {}),
        ("maxPool2d", "float32", (2, 7, 9, 5), {}),
    ):
        chain = Chain()
        x = chain.input(samples(rng, name, data_type, shape))
        result = chain.apply(name, [x], **attrs, layout=layout)
        output = getattr(Ending(chain, result, CHANNELS[layout], rng), kind)()
        check_fused(device, chain, output, {"pool2d": variant} if variant else {})


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("layout", SPATIAL)
def test_an_epilogue_computes_what_the_reference_does(name: str, layout: str) -> None:
    device = open_profile("hardware")
    cases = ((2, 6, 7, 8), CASES[0]), ((2, 5, 9, 7), CASES[1]), ((1, 20, 24, 8), {})
    for data_type, (shape, attrs) in product(FLOATS, cases):
        graph, feeds = Reduced(name, shape, {**attrs, "layout": layout}, CHANNELS[layout], data_type).graph()
        assert len(run_passes(graph, device.target)[0].nodes) == 1
        found, wanted = run_graph(device, graph, feeds)["0"], interpret(graph, feeds)["0"]
        np.testing.assert_allclose(found, wanted, rtol=2e-6 if data_type == "float32" else 2e-3)


@pytest.mark.parametrize("name", NAMES)
def test_an_epilogue_of_float16_without_the_feature(name: str) -> None:
    device = open_profile("default-limits")
    target = Target.of(as_hardware(device.caps))
    for (shape, attrs), layout in product((((2, 6, 7, 8), CASES[0]), ((1, 5, 9, 8), {})), SPATIAL):
        graph, feeds = Reduced(name, shape, {**attrs, "layout": layout}, CHANNELS[layout], "float16").graph()
        fused, _ = run_passes(graph, target)
        assert len(fused.nodes) == 1
        apart, _ = run_passes(graph, target, ("fuse_epilogues", "fuse_elementwise"))
        found, wanted = (run_plan(device, make_plan(each, target), list(feeds.values())) for each in (fused, apart))
        np.testing.assert_array_equal(found, wanted)


def test_pools_of_integers_have_no_epilogue() -> None:
    device = open_profile("hardware")
    chain = Chain()
    x = chain.input(random_array(np.random.default_rng(12), "int8", (1, 2, 6, 4)))
    result = chain.apply("maxPool2d", [x], window_dimensions=[2, 2])
    graph = chain.graph(chain.apply("cast", [result], data_type="float32"))
    assert [node.op for node in run_passes(graph, device.target)[0].nodes] == ["maxPool2d", "cast"]
    np.testing.assert_array_equal(run_graph(device, graph, chain.feeds)["0"], interpret(graph, chain.feeds)["0"])


def test_choice_of_variant() -> None:
    large = {"window_dimensions": [50, 50], "strides": [2, 2]}

    def chosen(caps: Caps, data_type: str = "float32", shape: tuple[int, ...] = (1, 2, 60, 60), **attrs: Any) -> list[str]:
        return variants_of(plan_of(caps, "maxPool2d", [np.zeros(shape, data_type)], {**large, **attrs}))

    hardware, plain_cpu = as_hardware(SOFTWARE), Caps(adapter_type="CPU")
    assert chosen(SOFTWARE) == ["subgroup"]
    assert chosen(SOFTWARE, "uint8") == ["subgroup"]
    assert chosen(SOFTWARE, "int64") == ["plain"]
    assert chosen(hardware) == ["workgroup"]
    assert chosen(plain_cpu) == ["plain"]
    assert chosen(hardware, window_dimensions=[3, 3]) == ["plain"]
    assert chosen(hardware, shape=(1, 3000, 60, 60)) == ["plain"]


def test_forced_variants_that_cannot_be_had() -> None:
    x = np.zeros((1, 1, 4, 4), np.float32)
    with pytest.raises(OperationError) as refused:
        plan_of(Caps(), "l2Pool2d", [x], forced={"l2Pool2d": "subgroup"})
    assert "l2_pool2d('test'): the forced kernel variant cannot be had; got l2Pool2d=subgroup" in str(refused.value)
    with pytest.raises(OperationError):
        plan_of(open_profile("full").caps, "maxPool2d", [x.astype(np.int64)], forced={"pool2d": "subgroup"})
    assert "subgroup" not in (PROFILES["default-limits"] or ())


def test_output_sizes() -> None:
    x = typed("float32", 1, 2, 7, 8)
    options = {"window_dimensions": [3, 3], "strides": [2, 2], "padding": [1, 0, 1, 0]}

    def shape(**attrs: Any) -> tuple[int, ...]:
        (output,), _ = OPS["maxPool2d"].check([x], {**options, **attrs}, "")
        return output.shape

    assert shape() == (1, 2, 3, 4)
    assert shape(output_shape_rounding="ceil") == (1, 2, 4, 4)
    assert shape(output_sizes=[3, 4], output_shape_rounding="ceil") == (1, 2, 3, 4)
    assert shape(output_sizes=[4, 4]) == (1, 2, 4, 4)
    assert shape(layout="nhwc") == (1, 1, 3, 8)
    assert refusal("maxPool2d", [x], {**options, "output_sizes": [4, 3]}) == (
        "max_pool2d('here'): output_sizes must be the calculated sizes, both rounded down or both rounded up; "
        "got output_sizes=[4, 3], input float32[1, 2, 7, 8]; allowed: [3, 4] or [4, 4]. "
        "See https://www.w3.org/TR/webnn/#api-mlgraphbuilder-pool2d"
    )
    # One rounded down, the other up.
    mixed = {"window_dimensions": [2, 2], "strides": [2, 2]}
    odd = typed("float32", 1, 2, 7, 7)
    assert "allowed: [3, 3] or [4, 4]" in refusal("maxPool2d", [odd], {**mixed, "output_sizes": [3, 4]})


@pytest.mark.parametrize("name", NAMES)
def test_refusals(name: str) -> None:
    x = typed("float32", 1, 2, 5, 6)

    def refused(**attrs: Any) -> str:
        return refusal(name, [x], attrs)

    for rank in (3, 5):
        message = refusal(name, [typed("float32", *range(1, rank + 1))])
        assert (
            f"Pool2d input must be 4D; got input float32{list(range(1, rank + 1))} of rank {rank}; allowed: rank 4" in message
        )
    for option, count in (("window_dimensions", 2), ("strides", 2), ("dilations", 2), ("padding", 4), ("output_sizes", 2)):
        for given_items in ([1] * (count - 1), [1] * (count + 1), []):
            assert f"{option} must have {count} items; got {option}={given_items}" in refused(**{option: given_items})
        assert f"{option} must be an unsigned 32-bit integer; got -1" in refused(**{option: [-1] * count})
        assert f"{option} must be an unsigned 32-bit integer" in refused(**{option: [2**32] * count})
        assert f"{option} must be an integer; got 1.5" in refused(**{option: [1.5] * count})
        assert f"{option} must be a list of unsigned integers" in refused(**{option: 3})
    for option in ("window_dimensions", "strides", "dilations"):
        for zero in ([0, 1], [1, 0]):
            assert f"every item of {option} must be at least 1; got {option}={zero}" in refused(**{option: zero})
    assert "Invalid layout; got 'hwcn'; allowed: nchw, nhwc" in refused(layout="hwcn")
    assert "Invalid output_shape_rounding; got 'round'; allowed: floor, ceil" in refused(output_shape_rounding="round")
    fit = "output height and width must be valid dimensions: a window must fit the padded input; got output sizes "
    assert f"{fit}[0, 6] of window_dimensions=[6, 1]" in refused(window_dimensions=[6, 1])
    assert f"{fit}[5, -4] of" in refused(window_dimensions=[1, 11])
    assert f"{fit}[1, 0] of" in refused(window_dimensions=[2, 2], dilations=[4, 6])
    assert f"{fit}[0, 0] of" in refused(window_dimensions=[6, 7], output_sizes=[0, 0])
    assert "unknown option 'rounding'" in refused(rounding="floor")
    assert "the padded input must have valid dimensions" in refused(padding=[MAX_DIMENSION, 0, 0, 0])
    assert "output dimensions and element count" in refused(window_dimensions=[1, 1], padding=[2**30, 0, 0, 2**30])


def test_refused_data_types() -> None:
    for name, data_type in product(NAMES[:2], set(ANY) - set(FLOATS)):
        message = refusal(name, [typed(data_type, 1, 1, 2, 2)])
        assert f"input data type is not allowed; got input {data_type}[1, 1, 2, 2]; allowed: float32, float16" in message
