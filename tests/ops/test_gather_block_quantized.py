from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from tests.ops.movers import refusal, typed
from tests.support import check_op

if TYPE_CHECKING:
    from collections.abc import Sequence

    from webnn_wgpu.ir.graph import Array
    from webnn_wgpu.runtime.device import Device


def table(shape: Sequence[int], bits: int, size: int, data_type: str = "float32") -> tuple[Array, Array, Array]:
    rng = np.random.default_rng(shape[-1])
    blocks = -(-shape[-1] * 8 // bits // size)
    zeros = rng.integers(0, 256, (*shape[:-1], -(-blocks * bits // 8)), np.uint8)
    scales = rng.uniform(0.5, 1.5, (*shape[:-1], blocks)).astype(data_type)
    return rng.integers(0, 256, tuple(shape), np.uint8), scales, zeros


def by_hand(x: Array, index: int, scales: Array, zeros: Array | None, bits: int, size: int) -> Array:
    """One row of a table of rank 2, every number taken out of its byte by itself."""
    per_byte, mask = 8 // bits, 2**bits - 1
    row: list[float] = []
    for k in range(x.shape[1] * per_byte):
        block = k // size
        number = int(x[index, k // per_byte]) >> (k % per_byte * bits) & mask
        zero = 2 ** (bits - 1) if zeros is None else int(zeros[index, block // per_byte]) >> (block % per_byte * bits) & mask
        row.append((number - zero) * float(scales[index, block]))
    return np.array(row)


@pytest.mark.parametrize("bits", [2, 4, 8])
@pytest.mark.parametrize("with_zeros", [False, True])
def test_rows(device: Device, with_zeros: bool, bits: int) -> None:
    # Rows in quads and not, blocks that end within.
    for shape, size in (((9, 40), 16), ((9, 25), 16), ((5, 3), 32), ((1, 1), 16)):
        x, scales, zeros = table(shape, bits, size)
        given = zeros if with_zeros else None
        indices = np.int32([[0, shape[0] - 1], [shape[0] // 2, 0]])
        attrs = {"bits": bits, "block_size": size}
        result = check_op(device, "x.gather_block_quantized", [x, indices, scales, given], attrs, tolerance=1)[0]
        for place, index in np.ndenumerate(indices):
            assert np.allclose(result[place], by_hand(x, int(index), scales, given, bits, size), rtol=1e-6)


@pytest.mark.parametrize("data_type", ["int32", "uint32", "int64"])
def test_indices(device: Device, data_type: str) -> None:
    x, scales, zeros = table((6, 2, 8), 4, 16)
    indices = np.array([5, 0, 99, -1 if data_type != "uint32" else 3], data_type)
    attrs = {"block_size": 16}
    result = check_op(device, "x.gather_block_quantized", [x, indices, scales, zeros], attrs, tolerance=1)[0]
    assert result.shape == (4, 2, 16)
    assert np.array_equal(result[2], result[0])
    one = check_op(device, "x.gather_block_quantized", [x, indices[0], scales, zeros], attrs, tolerance=1)[0]
    assert np.array_equal(one, result[0])


def test_profiles(profile_device: Device) -> None:
    for data_type in ("float32", "float16"):
        for shape in ((9, 40), (9, 25)):
            x, scales, zeros = table(shape, 4, 16, data_type)
            inputs = [x, np.int64([3, -2]), scales, zeros]
            check_op(profile_device, "x.gather_block_quantized", inputs, {"block_size": 16}, tolerance=1)


def test_refusals() -> None:
    def message(*types: Any, **attrs: Any) -> str:
        return refusal("x.gather_block_quantized", [*types, *(None for _ in range(4 - len(types)))], attrs)

    x, indices, scales = typed("uint8", 9, 32), typed("int32", 2), typed("float32", 9, 2)
    assert message(x, indices, typed("float32", 9, 1), block_size=32) == (
        "ext.gather_block_quantized('here'): Incompatible shapes: scales must have one element per block of the input's rows; "
        "got input uint8[9, 32], indices int32[2], scales float32[9, 1]; allowed: [9, 2]"
    )
    assert "zeroPoints must have one number" in message(x, indices, scales, typed("uint8", 9, 2), block_size=32)
    assert "bits is not allowed; got bits=5" in message(x, indices, scales, bits=5)
    assert "block_size must be" in message(x, indices, scales, block_size=17)
