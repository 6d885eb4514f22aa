from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.ops.movers import refusal, typed
from tests.ops.rows import VARIANTS, as_hardware, plan_of, variants_of
from tests.support import check_op
from tests.targets import SOFTWARE

if TYPE_CHECKING:
    from webnn_wgpu.ir.graph import Array
    from webnn_wgpu.runtime.device import Device

# Planes of quads and ragged, in registers and not, one pixel, one channel.
SHAPES = ((2, 3, 8, 8), (2, 5, 7, 3), (1, 2, 70, 61), (1, 4, 64, 64), (3, 2, 1, 1), (2, 1, 5, 4))
ATOL = {"float32": 1e-5, "float16": 8e-3}


def images(data_type: str, shape: tuple[int, ...], layout: str) -> list[Array]:
    """Return an input, a scale and a bias."""
    rng = np.random.default_rng(1)
    channels = shape[1]
    x = (rng.standard_normal(shape) + 2).astype(data_type)
    x = x if layout == "nchw" else np.ascontiguousarray(x.transpose(0, 2, 3, 1))
    return [x, *(rng.uniform(-2, 2, channels).astype(data_type) for _ in range(2))]


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("layout", ["nchw", "nhwc"])
@pytest.mark.parametrize("data_type", ["float32", "float16"])
def test_variants(device: Device, data_type: str, layout: str, variant: str) -> None:
    forced = {"instanceNormalization": variant}
    for shape in SHAPES:
        x, scale, bias = images(data_type, shape, layout)
        attrs = {"layout": layout}
        check_op(device, "instanceNormalization", [x, scale, bias], attrs, forced=forced, atol=ATOL[data_type])
    for given_scale, given_bias in ((None, bias), (scale, None), (None, None)):
        check_op(device, "instanceNormalization", [x, given_scale, given_bias], attrs, forced=forced, atol=ATOL[data_type])


def test_profiles(profile_device: Device) -> None:
    for data_type, atol in ATOL.items():
        for layout in ("nchw", "nhwc"):
            inputs = images(data_type, SHAPES[0], layout)
            check_op(profile_device, "instanceNormalization", inputs, {"layout": layout}, atol=atol)


def test_layouts_agree(device: Device) -> None:
    x, scale, bias = images("float32", (2, 3, 8, 8), "nchw")
    (nchw,) = check_op(device, "instanceNormalization", [x, scale, bias], atol=1e-5)
    other = np.ascontiguousarray(x.transpose(0, 2, 3, 1))
    (nhwc,) = check_op(device, "instanceNormalization", [other, scale, bias], {"layout": "nhwc"}, atol=1e-5)
    assert np.allclose(nchw, nhwc.transpose(0, 3, 1, 2), atol=1e-5)


def test_zero_epsilon_nan_and_infinity(device: Device) -> None:
    x, _, _ = images("float32", (2, 3, 6, 7), "nchw")
    x[0, 0, 1, 1], x[1, 2, 0, 0] = math.nan, math.inf
    (y,) = check_op(device, "instanceNormalization", [x, None, None], {"epsilon": 0}, atol=1e-5)
    assert np.isnan(y).all(axis=(2, 3)).tolist() == [[True, False, False], [False, False, True]]


@given(st.tuples(*[st.integers(1, 6)] * 4), st.sampled_from(["nchw", "nhwc"]), st.sampled_from([*VARIANTS, None]))
def test_any_shape(device: Device, shape: tuple[int, int, int, int], layout: str, variant: str | None) -> None:
    forced = {"instanceNormalization": variant} if variant else None
    attrs = {"layout": layout, "epsilon": 0.25}
    check_op(device, "instanceNormalization", images("float32", shape, layout), attrs, forced=forced, atol=1e-5)


def test_choice_of_variant() -> None:
    x = [np.zeros((1, 64, 16, 64), np.float32), None, None]
    assert variants_of(plan_of(SOFTWARE, "instanceNormalization", x)) == ["subgroup"]
    assert variants_of(plan_of(as_hardware(SOFTWARE), "instanceNormalization", x)) == ["workgroup"]
    assert variants_of(plan_of(SOFTWARE, "instanceNormalization", x, {"layout": "nhwc"})) == ["plain"]


def test_refusals() -> None:
    x = typed("float32", 1, 2, 3, 4)
    assert refusal("instanceNormalization", [x, typed("float32", 2), typed("float32", 2)], {"layout": "nhwc"}) == (
        "instance_normalization('here'): Shape mismatch: scale must have shape [input.shape[3]]; "
        "got input float32[1, 2, 3, 4], scale float32[2], bias float32[2]; allowed: [4]. "
        "See https://www.w3.org/TR/webnn/#api-mlgraphbuilder-instancenorm"
    )
    assert "Shape mismatch: bias" in refusal("instanceNormalization", [x, None, typed("float32", 4)], {})
    assert "Invalid layout; got 'nwhc'" in refusal("instanceNormalization", [x, None, None], {"layout": "nwhc"})
    refused = refusal("instanceNormalization", [typed("float32", 2, 3), None, None], {})
    assert "rank(input) is not allowed; got input float32[2, 3] of rank 2; allowed: rank 4" in refused
    assert "rank(scale) is not allowed" in refusal("instanceNormalization", [x, typed("float32", 2, 1), None], {})
    assert "bias data type must equal" in refusal("instanceNormalization", [x, None, typed("float16", 2)], {})
    assert "input data type is not allowed" in refusal("instanceNormalization", [typed("int8", 1, 1, 1, 1), None, None], {})
    assert "epsilon must be finite" in refusal("instanceNormalization", [x, None, None], {"epsilon": math.nan})
