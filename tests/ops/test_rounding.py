from __future__ import annotations

import math
from typing import TYPE_CHECKING

import ml_dtypes
import numpy as np
import pytest

from tests.support import Sketch, assert_same, check_op, run_graph
from webnn_wgpu.core.errors import MLTypeError
from webnn_wgpu.ir.types import TensorType
from webnn_wgpu.ops import OPS
from webnn_wgpu.ops.rounding import FORMATS
from webnn_wgpu.reference import interpret

if TYPE_CHECKING:
    from webnn_wgpu.ir.graph import Array
    from webnn_wgpu.runtime.device import Device

INF, NAN = math.inf, math.nan


def near(dtype: object) -> Array:
    """Every number of a format of 8 bits, the middles between neighbors, and what lies next to them."""
    own = np.sort(np.arange(256).astype(np.uint8).view(dtype).astype(np.float32))  # NaN last
    own = np.unique(own[np.isfinite(own)])
    middles = (own[1:] + own[:-1]) / 2
    step = own[-1] - own[-2]
    beyond = np.float32([own[-1] + step / 4, own[-1] + step / 2, own[-1] + step, 1e6, 3e38, INF])
    all_ = np.concatenate([own, middles, beyond, -beyond, np.float32([0.0, -0.0, NAN, 1e-9, -1e-9, 1e-40])])
    return np.concatenate([all_, np.nextafter(all_, np.float32(INF)), np.nextafter(all_, np.float32(-INF))]).astype(np.float32)


@pytest.mark.parametrize("saturate", [False, True])
@pytest.mark.parametrize("name", FORMATS)
def test_float8_is_what_ml_dtypes_rounds_to(profile_device: Device, name: str, saturate: bool) -> None:
    x = near(FORMATS[name].dtype)
    (actual,) = check_op(profile_device, "x.round_float8", [x], {"format": name, "saturate": saturate})
    with np.errstate(all="ignore"):
        expected = x.astype(FORMATS[name].dtype).astype(np.float32)
    if saturate:
        largest = float(ml_dtypes.finfo(FORMATS[name].dtype).max)
        expected = np.where(np.abs(x) > largest, np.copysign(np.float32(largest), x), expected)
    assert_same({"": actual}, {"": expected})


def test_float8_special_values(device: Device) -> None:
    x = np.float32([INF, -INF, 1e9, NAN, -0.0])
    expected = {
        ("e4m3fn", True): [448, -448, 448, NAN, -0.0],
        ("e4m3fn", False): [NAN, NAN, NAN, NAN, -0.0],
        ("e4m3fnuz", True): [240, -240, 240, NAN, 0],
        ("e4m3fnuz", False): [NAN, NAN, NAN, NAN, 0],
        ("e5m2", True): [57344, -57344, 57344, NAN, -0.0],
        ("e5m2", False): [INF, -INF, INF, NAN, -0.0],
        ("e5m2fnuz", True): [57344, -57344, 57344, NAN, 0],
        ("e5m2fnuz", False): [NAN, NAN, NAN, NAN, 0],
    }
    for (name, saturate), wanted in expected.items():
        (actual,) = check_op(device, "x.round_float8", [x], {"format": name, "saturate": saturate})
        assert_same({"": actual}, {"": np.float32(wanted)})


def test_bfloat16(profile_device: Device) -> None:
    rng = np.random.default_rng(0)
    bits = rng.integers(0, 1 << 32, 4096, np.uint32)
    # Middles between neighbors, and their neighbors.
    bits = np.concatenate([bits, (bits & 0xFFFF0000) | 0x8000, (bits & 0xFFFF0000) | 0x7FFF, (bits & 0xFFFF0000) | 0x8001])
    x = np.concatenate([bits.view(np.float32), np.float32([3.4e38, -3.4e38, INF, -INF, NAN, -0.0])])
    (actual,) = check_op(profile_device, "x.round_bfloat16", [x])
    with np.errstate(all="ignore"):
        assert_same({"": actual}, {"": x.astype(ml_dtypes.bfloat16).astype(np.float32)})


@pytest.mark.parametrize("signed", [False, True])
@pytest.mark.parametrize("bits", [1, 2, 4, 8, 16, 32])
def test_wrapping(profile_device: Device, bits: int, signed: bool) -> None:
    x = np.int32([0, 1, -1, 2, 7, 8, -8, -9, 127, 128, -129, 32767, 32768, 65535, 65536, 2**31 - 1, -(2**31)])
    (actual,) = check_op(profile_device, "x.wrap_integer", [x], {"bits": bits, "signed": signed})
    if bits in (8, 16, 32):
        assert actual.tolist() == x.astype(f"{'' if signed else 'u'}int{bits}").astype(np.int32).tolist()
    half_bytes = {
        (4, True): ml_dtypes.int4,
        (4, False): ml_dtypes.uint4,
        (2, True): ml_dtypes.int2,
        (2, False): ml_dtypes.uint2,
    }
    if (bits, signed) in half_bytes:
        assert actual.tolist() == x.astype(half_bytes[bits, signed]).astype(np.int32).tolist()


def test_they_fuse(device: Device) -> None:
    s = Sketch()
    x = s.input(np.linspace(-500, 500, 999, dtype=np.float32))
    y = s.apply("x.round_float8", s.apply("mul", x, x), format="e5m2", saturate=False)
    whole = s.apply("x.wrap_integer", s.apply("cast", y, data_type="int32"), bits=4)
    graph = s.graph(s.apply("x.round_bfloat16", y), whole)
    assert_same(run_graph(device, graph, s.feeds), interpret(graph, s.feeds))


def test_refusals() -> None:
    def refusal(name: str, data_type: str, attrs: dict[str, object]) -> str:
        with pytest.raises(MLTypeError) as raised:
            OPS[name].check([TensorType(data_type, (2,))], attrs, "here")
        return str(raised.value)

    assert "ext.wrap_integer('here'): bits is out of range; got bits=33; allowed: 1..32" in refusal(
        "x.wrap_integer", "int32", {"bits": 33}
    )
    assert "format" in refusal("x.round_float8", "float32", {"format": "e3m4"})
    assert "input data type is not allowed" in refusal("x.round_float8", "float16", {})
