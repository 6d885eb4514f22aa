"""Which kernels convolutions get on which device, decided from recorded capabilities, and how their filters are packed."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from tests.shaders import free_variables
from tests.unit.test_matmul_selection import DEVICES, caps_of, lower
from webnn_wgpu.core.caps import Caps
from webnn_wgpu.costs import Choice, ConvolutionSize, Target
from webnn_wgpu.kernels.packing import Chain, PanelTexture, Permuted, WinogradFilter
from webnn_wgpu.kernels.select_convolution import VARIANTS, WINOGRAD, obstacle, possible
from webnn_wgpu.kernels.spec import Packed, Temp
from webnn_wgpu.kernels.templates import render
from webnn_wgpu.ops._convolution import FORWARD_TEMPLATES
from webnn_wgpu.plan.forced import forceable

if TYPE_CHECKING:
    from collections.abc import Mapping

    from webnn_wgpu.kernels.spec import KernelCall

HARDWARE = ("webgpu-default", "nvidia", "amd", "intel", "apple")
SOFTWARE_WITHOUT_SUBGROUPS = Caps(adapter_type="CPU")

PLAIN_3X3 = ConvolutionSize(
    transposed=False,
    nhwc=True,
    images=1,
    groups=1,
    depth=64,
    columns=64,
    input=(56, 56),
    output=(56, 56),
    kernel=(3, 3),
    strides=(1, 1),
    dilations=(1, 1),
    padding=(1, 1),
)
WIDE_3X3 = replace(PLAIN_3X3, depth=512, columns=512, input=(32, 32), output=(32, 32))
STRIDED = replace(PLAIN_3X3, strides=(2, 2), output=(28, 28))
DEPTHWISE = replace(PLAIN_3X3, groups=64, depth=1, columns=1)
POINTWISE = replace(PLAIN_3X3, kernel=(1, 1), padding=(0, 0))
GROUPED = replace(STRIDED, groups=32, depth=4, columns=4)


def image(device: str, side: int, channels: int) -> str:
    """Return the variant for 3 x 3 taps on a square image."""
    sides = (side, side)
    return chosen(caps_of(device), replace(PLAIN_3X3, depth=channels, columns=channels, input=sides, output=sides))


def choose(caps: Caps, size: ConvolutionSize, constant: bool = True) -> Choice:
    return Target.of(caps).costs.convolutions.choose(size, possible(caps, size, constant_filter=constant))


def chosen(caps: Caps, size: ConvolutionSize, constant: bool = True) -> str:
    return choose(caps, size, constant).variant


@pytest.mark.parametrize("device", DEVICES)
def test_what_needs_no_sums_over_taps_or_channels_goes_first(device: str) -> None:
    caps = caps_of(device)
    assert chosen(caps, POINTWISE) == "pointwise"
    assert chosen(caps, replace(POINTWISE, transposed=True)) == "pointwise"
    assert chosen(caps, DEPTHWISE) == "depthwise"
    assert chosen(caps, replace(DEPTHWISE, kernel=(1, 1), padding=(0, 0))) == "depthwise"
    # One input channel alone is no depthwise convolution: its output channels share every pixel.
    assert chosen(caps, replace(PLAIN_3X3, depth=1)) not in ("depthwise", *WINOGRAD)


@pytest.mark.parametrize("device", DEVICES)
def test_winograd_where_it_pays_and_can(device: str) -> None:
    caps = caps_of(device)
    assert chosen(caps, WIDE_3X3) in WINOGRAD
    others = (
        replace(WIDE_3X3, depth=129),
        replace(WIDE_3X3, columns=130),
        replace(WIDE_3X3, groups=2),
        replace(WIDE_3X3, transposed=True),
        replace(WIDE_3X3, dilations=(2, 2)),
        replace(WIDE_3X3, kernel=(5, 5)),
        STRIDED,
    )
    assert {chosen(caps, size) for size in others} <= {"implicit", "tiled"}
    assert chosen(caps, WIDE_3X3, constant=False) in ("implicit", "tiled")


def test_software_takes_winograd_where_its_transforms_take_less_time_than_they_save() -> None:
    caps = caps_of("lavapipe")
    # Few pixels of many channels, against many pixels of few.
    few = replace(PLAIN_3X3, depth=512, columns=512, input=(7, 7), output=(7, 7))
    assert (chosen(caps, few), chosen(caps, PLAIN_3X3)) == ("winograd", "implicit")


@pytest.mark.parametrize("device", ["nvidia", "amd", "webgpu-default"])
def test_gpus_take_the_form_of_winograd_that_takes_less_time(device: str) -> None:
    """Few patches leave cores idle. For many channels two dispatches more and their memory traffic are worth larger tiles."""
    assert (image(device, 7, 512), image(device, 64, 256)) == ("tiled", "winograd")
    assert image(device, 28, 128) == ("tiled" if device == "webgpu-default" else "winograd_tiled")


def test_small_gpus_take_winograd_for_smaller_images() -> None:
    assert [image(device, 56, 64) for device in ("nvidia", "intel", "apple")] == ["tiled", "winograd_tiled", "winograd_tiled"]
    assert [image(device, 14, 256) for device in ("nvidia", "intel")] == ["tiled", "winograd_tiled"]


def test_tiles_of_winograd_go_by_the_memory_and_the_registers_of_the_device() -> None:
    def tile(device: str, size: ConvolutionSize) -> str:
        return str(Target.of(caps_of(device)).costs.convolutions.winograd_tile(Choice("winograd_tiled", ""), size))

    large = replace(PLAIN_3X3, depth=32, columns=32, input=(256, 256), output=(256, 256))
    # 32 KiB of workgroup memory, 16 of them, and registers for half as many sums.
    assert [tile(device, large) for device in ("amd", "webgpu-default", "qualcomm")] == ["32x32x8", "32x32x4", "16x32x8"]
    # Slices are whole, and few patches do not fill a tile of 32.
    assert tile("amd", replace(large, depth=36)) == "32x32x4"
    assert tile("amd", replace(large, input=(7, 7), output=(7, 7))) == "16x32x8"


def test_winograd_keeps_to_what_the_device_can_bind() -> None:
    huge = replace(PLAIN_3X3, input=(800, 800), output=(800, 800))
    why = obstacle(Caps(), huge, "winograd", constant_filter=True)
    assert why == f"input, output and transformed filter take up to {4 * 800 * 800 * 64} bytes, more than the device can bind"
    assert chosen(Caps(), huge) == "tiled"


@pytest.mark.parametrize("device", HARDWARE)
def test_hardware(device: str) -> None:
    caps = caps_of(device)
    assert chosen(caps, STRIDED) == "tiled"
    assert chosen(caps, GROUPED) == "plain"


def test_software() -> None:
    lavapipe = caps_of("lavapipe")
    for size in (STRIDED, GROUPED):
        assert chosen(lavapipe, size) == "implicit"
        assert chosen(SOFTWARE_WITHOUT_SUBGROUPS, size) == "plain"


def test_reasons() -> None:
    def reason(caps: Caps, size: ConvolutionSize) -> str:
        return choose(caps, size).reason

    assert reason(caps_of("lavapipe"), STRIDED) == "software adapter with subgroups of 8"
    assert reason(SOFTWARE_WITHOUT_SUBGROUPS, STRIDED) == "software adapter without subgroups: sums in registers"
    assert reason(caps_of("nvidia"), STRIDED) == "hardware GPU: tiles in workgroup memory"
    assert reason(caps_of("nvidia"), GROUPED) == "hardware GPU, 4 output channels per group"
    assert reason(caps_of("nvidia"), WIDE_3X3) == "3 x 3 with 512 and 512 channels: fewer multiplications"


def calls(
    device: str, variant: str, layout: str = "nhwc", constants: tuple[int, ...] = (1,), attrs: Mapping[str, Any] | None = None
) -> list[KernelCall]:
    taps = {"pointwise": (16, 16, 1, 1), "depthwise": (16, 1, 3, 3)}.get(variant, (16, 16, 3, 3))
    shape = (1, 300, 300, 16) if layout == "nhwc" else (1, 16, 300, 300)
    groups = {"groups": 16} if variant == "depthwise" else {}
    return lower(
        "conv2d",
        (shape, taps, (16,)),
        caps_of(device),
        {"input_layout": layout, **groups, **(attrs or {})},
        constants=constants,
        forced={"conv2d": variant},
    )


@pytest.mark.parametrize("layout", ["nchw", "nhwc"])
@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("device", DEVICES)
def test_every_variant_keeps_to_default_limits(device: str, variant: str, layout: str) -> None:
    if variant == "implicit" and device not in ("lavapipe", "intel"):
        return  # These have no subgroups of 8 or 16: tests/ops/test_conv2d.py has what they answer.
    for call in calls(device, variant, layout):
        assert all(n <= 65535 for n in call.grid)
        # Software adapters have words of 64 bits, which no limit bounds.
        assert set(call.spec.features) <= ({"subgroup", "shader-int64"} if caps_of(device).is_software else {"subgroup"})
        assert len(call.spec.bindings) <= 8
        assert "@workgroup_size(" in render(call.spec)


def test_products_within_a_convolution_are_forced_by_their_own_name() -> None:
    def product(variant: str, forced: Mapping[str, str]) -> str:
        taps = (16, 16, 3, 3) if variant == "winograd" else (16, 16, 1, 1)
        found = lower(
            "conv2d", ((1, 16, 30, 30), taps, None), caps_of("lavapipe"), constants={1}, forced={"conv2d": variant, **forced}
        )
        return found[len(found) // 2].spec.template

    for variant in ("winograd", "pointwise"):
        assert product(variant, {}) == "matmul.subgroup"
        assert product(variant, {"matmul": "tiled"}) == "matmul.tiled"


def test_what_can_be_forced() -> None:
    assert set(forceable()["conv2d"]) == set(VARIANTS)
    assert set(forceable()["convTranspose2d"]) == set(VARIANTS) - set(WINOGRAD)
    assert set(forceable()["matmul"]) == {"gemv", "plain", "subgroup", "tiled"}


def test_templates_declare_their_parameters() -> None:
    for template in FORWARD_TEMPLATES:
        assert free_variables(template.name) == set(template.params)


def test_sizes_are_not_part_of_the_shader() -> None:
    for device in ("lavapipe", "nvidia"):
        specs = {
            lower(
                "conv2d",
                ((1, 64, size, size), (64, 64, taps, taps), None),
                caps_of(device),
                {"strides": (2, 2), "padding": (1, 1, 1, 1)},
                constants={1},
            )[0].spec
            for size, taps in ((448, 3), (440, 5), (460, 7))
        }
        assert len(specs) == 1


# filters ---------------------------------------------------------------------------------------------------------------------


def test_constant_filters_are_packed_and_others_are_copied() -> None:
    order = Permuted((1, 16, 16, 3, 3), (0, 3, 4, 2, 1))
    (call,) = calls("lavapipe", "implicit")
    assert call.operands[1] == Packed(1, Chain(order, PanelTexture(lanes=8, quads=0.5, width=16384)))
    assert call.reason == "forced, filter packed in a texture"
    (call,) = calls("nvidia", "tiled")
    assert call.operands[1] == Packed(1, order)
    copy, call = calls("nvidia", "tiled", constants=())
    assert copy.reason == "filter from oihw to ghwio"
    assert copy.operands[1] == call.operands[1] == Temp("filter", 16 * 16 * 9 * 4)
    transform, product, *_ = calls("lavapipe", "winograd")
    assert product.operands[1] == Packed(
        1, Chain(Chain(order, WinogradFilter()), PanelTexture(lanes=8, quads=0.5, width=16384))
    )
    assert transform.operands[1] == product.operands[0]


def test_filters_in_the_kernels_order_are_read_where_they_are() -> None:
    (call,) = lower("conv2d", ((1, 4, 9, 9), (3, 3, 4, 8), None), caps_of("nvidia"), {"filter_layout": "hwio"})
    assert call.operands[1] == 1


def test_permuted() -> None:
    filters = np.arange(2 * 3 * 2 * 2).reshape(2, 3, 2, 2)
    packed = Permuted((1, 2, 3, 2, 2), (0, 3, 4, 2, 1)).pack(filters)
    np.testing.assert_array_equal(packed[0], filters.transpose(2, 3, 1, 0))
    assert not Permuted((1,), (0,)).texture


def test_chain_is_what_its_second_makes() -> None:
    matrices = np.arange(6, dtype=np.float32)
    panels = PanelTexture(lanes=8, quads=1, width=64)
    chain = Chain(Permuted((2, 3), (1, 0)), panels)
    np.testing.assert_array_equal(chain.pack(matrices), panels.pack(matrices.reshape(2, 3).T))
    assert chain.texture
    assert not Chain(panels, Permuted((1,), (0,))).texture


@pytest.mark.parametrize("data_type", ["float32", "float16"])
def test_winograd_filters_convolve(data_type: str) -> None:
    rng = np.random.default_rng(0)
    filters = rng.integers(-8, 8, (1, 3, 3, 2, 5)).astype(data_type)
    transformed = WinogradFilter().pack(filters)
    assert (transformed.dtype, transformed.shape) == (np.float32, (16, 2, 5))
    # One patch of one channel, by hand: A' [(G g G') * (B' d B)] A is the convolution of the patch d.
    patch = rng.integers(-8, 8, (4, 4)).astype(np.float64)
    into = np.array([[1, 0, -1, 0], [0, 1, 1, 0], [0, -1, 1, 0], [0, 1, 0, -1]])
    back = np.array([[1, 1, 1, 0], [0, 1, -1, -1]])
    for i, o in np.ndindex(2, 5):
        result = back @ (transformed[:, i, o].reshape(4, 4) * (into @ patch @ into.T)) @ back.T
        wanted = [[np.sum(patch[y : y + 3, x : x + 3] * filters[0, :, :, i, o]) for x in range(2)] for y in range(2)]
        np.testing.assert_array_equal(result, wanted)
