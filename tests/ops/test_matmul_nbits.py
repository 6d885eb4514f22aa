from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from tests.ops.movers import refusal, typed
from tests.ops.rows import as_hardware, plan_of
from tests.support import Sketch, assert_same, check_op, op_graph, run_graph
from webnn_wgpu.core.caps import Caps
from webnn_wgpu.core.errors import OperationError
from webnn_wgpu.costs import Target
from webnn_wgpu.ops.matmul_nbits import VARIANTS
from webnn_wgpu.plan import make_plan
from webnn_wgpu.runtime.program import Program

if TYPE_CHECKING:
    from collections.abc import Sequence

    from webnn_wgpu.ir.graph import Array
    from webnn_wgpu.runtime.device import Device

ATOL = {"float32": 4e-5, "float16": 6e-2}


def factors(
    leading: Sequence[int], K: int, N: int, bits: int, size: int, data_type: str = "float32", zeros: str = ""
) -> list[Array | None]:
    rng = np.random.default_rng(K + N)
    blocks = -(-K // size)
    a = rng.standard_normal((*leading, K)).astype(data_type)
    b = rng.integers(0, 256, (N, blocks, size * bits // 8), np.uint8)
    scales = (rng.uniform(0.5, 1.5, (N, blocks)) / 2**bits).astype(data_type)
    given = {
        "": None,
        "uint8": rng.integers(0, 256, (N, -(-blocks * bits // 8)), np.uint8),
        "float": rng.uniform(0, 2**bits, (N, blocks)).astype(data_type),
    }
    return [a, b, scales, given[zeros], None]


def by_hand(inputs: Sequence[Array | None], bits: int, size: int) -> Array:
    """The product, every number of b taken out of its byte by itself."""
    a, b, scales, zeros, bias = inputs
    assert a is not None
    assert b is not None
    assert scales is not None
    (N, blocks, _), K = b.shape, a.shape[-1]
    matrix = np.zeros((K, N))
    per_byte, mask = 8 // bits, 2**bits - 1
    for k, n in np.ndindex(K, N):
        block, i = divmod(k, size)
        number = int(b[n, block, i // per_byte]) >> (i % per_byte * bits) & mask
        zero = float(2 ** (bits - 1))
        if zeros is not None and zeros.dtype == np.uint8:
            zero = int(zeros.reshape(N, -1)[n, block // per_byte]) >> (block % per_byte * bits) & mask
        elif zeros is not None:
            zero = float(zeros.reshape(N, blocks)[n, block])
        matrix[k, n] = (number - zero) * float(scales.reshape(N, blocks)[n, block])
    return a.astype(np.float64) @ matrix + (0 if bias is None else bias.astype(np.float64))


def check(device: Device, inputs: Sequence[Array | None], bits: int, size: int, variant: str | None = None) -> Array:
    forced = {"x.matmul_nbits": variant} if variant else None
    assert inputs[0] is not None
    attrs = {"bits": bits, "block_size": size}
    result = check_op(device, "x.matmul_nbits", inputs, attrs, forced=forced, atol=ATOL[str(inputs[0].dtype)])[0]
    assert np.abs(result - by_hand(inputs, bits, size)).max() < ATOL[str(inputs[0].dtype)]
    return result


@pytest.mark.repeats
@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("bits", [2, 4, 8])
@pytest.mark.parametrize("zeros", ["", "uint8", "float"])
def test_variants(device: Device, zeros: str, bits: int, variant: str) -> None:
    # Whole blocks, blocks that end within, rows that are no quads, one element.
    for leading, K, N, size in (
        ((1,), 64, 40, 32),
        ((2, 3), 72, 24, 16),
        ((5,), 35, 7, 16),
        ((19,), 128, 36, 64),
        ((1,), 1, 1, 16),
    ):
        check(device, factors(leading, K, N, bits, size, zeros=zeros), bits, size, variant)


@pytest.mark.repeats
@pytest.mark.parametrize("variant", VARIANTS)
def test_float16(device: Device, variant: str) -> None:
    for zeros in ("", "uint8", "float"):
        for leading, K, N, size in (((1,), 64, 40, 32), ((17,), 35, 7, 16)):
            check(device, factors(leading, K, N, 4, size, "float16", zeros), 4, size, variant)


@pytest.mark.parametrize("variant", VARIANTS)
def test_bias_flat_parameters_and_vectors(device: Device, variant: str) -> None:
    inputs = factors((3,), 64, 40, 4, 32, zeros="uint8")
    inputs[4] = np.random.default_rng(1).standard_normal(40).astype(np.float32)
    expected = check(device, inputs, 4, 32, variant)
    flat = [*inputs[:2], *(None if a is None else a.reshape(-1) for a in inputs[2:4]), inputs[4]]
    assert np.array_equal(check(device, flat, 4, 32, variant), expected)
    assert inputs[0] is not None
    vector = check(device, [inputs[0][1], *inputs[1:]], 4, 32, variant)
    assert np.allclose(vector, expected[1], atol=1e-5)


@pytest.mark.repeats
@pytest.mark.parametrize("variant", VARIANTS)
def test_constants(device: Device, variant: str) -> None:
    # Constants have their columns beside each other in the kernels for hardware: columns that are no quads are padded.
    for zeros in ("", "uint8", "float"):
        for bits, size in ((2, 16), (4, 32), (8, 16)):
            for rows, K, N in ((1, 256, 24), (3, 96, 23), (7, 35, 6), (9, 128, 5)):
                inputs = factors((rows,), K, N, bits, size, zeros=zeros)
                constants = {i for i in (1, 2, 3) if inputs[i] is not None}
                attrs = {"bits": bits, "block_size": size}
                forced = {"x.matmul_nbits": variant}
                check_op(device, "x.matmul_nbits", inputs, attrs, constants=constants, forced=forced, atol=1e-4)


@pytest.mark.parametrize("subgroups", [True, False])
def test_constants_of_float16(device: Device, subgroups: bool) -> None:
    caps = device.caps if subgroups else replace(device.caps, features=device.caps.features - {"subgroup"})
    for rows in (1, 2, 5, 8):
        inputs = factors((rows,), 256, 40, 4, 32, "float16", "uint8")
        graph = op_graph("x.matmul_nbits", inputs, {"bits": 4, "block_size": 32}, {1, 2, 3})
        plan = make_plan(graph, Target.of(as_hardware(caps)))
        spec = plan.dispatches[0].spec
        assert spec.template == "matmul_nbits.gemv"
        assert (spec.param("packed"), spec.param("subgroups")) == (True, subgroups)
        program = Program(device, plan)
        result = program.start({"0": inputs[0]}, list(plan.outputs)).result()
        program.destroy()
        assert np.abs(next(iter(result.values())) - by_hand(inputs, 4, 32)).max() < ATOL["float16"]


def test_epilogues(device: Device) -> None:
    sketch = Sketch()
    a, b, scales, zeros, _ = factors((5,), 64, 24, 4, 32, zeros="uint8")
    assert a is not None
    assert b is not None
    assert scales is not None
    assert zeros is not None
    x = sketch.input(a)
    product = sketch.apply("x.matmul_nbits", x, sketch.constant(b), sketch.constant(scales), sketch.constant(zeros))
    added = sketch.apply("add", product, sketch.input(np.float32(np.arange(120).reshape(5, 24))))
    graph = sketch.graph(sketch.apply("relu", sketch.apply("mul", added, sketch.constant(np.float32(np.linspace(-1, 1, 24))))))
    assert_same(
        run_graph(device, graph, sketch.feeds), run_graph(device, graph, sketch.feeds, disabled_passes=["fuse_epilogues"])
    )


def test_profiles(profile_device: Device) -> None:
    for data_type in ATOL:
        for variant in (None, *VARIANTS[1:]):
            check(profile_device, factors((3,), 72, 24, 4, 32, data_type, "uint8"), 4, 32, variant)


def test_choice_of_variant(device: Device) -> None:
    def chosen(caps: Caps, rows: int, forced: dict[str, str] | None = None) -> str:
        return str(plan_of(caps, "x.matmul_nbits", factors((rows,), 64, 40, 4, 32), {}, forced).dispatches[0].spec)

    software, hardware = Caps(adapter_type="CPU"), as_hardware(Caps())
    subgroups = Caps(features=frozenset(["subgroup"]), subgroup_size=8, adapter_type="CPU")
    assert chosen(subgroups, 30).startswith("matmul_nbits.registers[lanes=8, rows=16, bits=4")
    assert chosen(subgroups, 1).startswith("matmul_nbits.registers[lanes=8, rows=1,")
    assert chosen(software, 30).startswith("matmul_nbits.registers[lanes=0, rows=8,")
    assert chosen(hardware, 30).startswith("matmul_nbits.tiled[tile=32x64,")
    assert chosen(hardware, 9).startswith("matmul_nbits.tiled[tile=32x64,")
    assert chosen(hardware, 8).startswith("matmul_nbits.gemv[tile=8x32x8,")
    assert chosen(hardware, 3).startswith("matmul_nbits.gemv[tile=4x64x4,")
    with pytest.raises(OperationError, match=r"ext\.matmul_nbits\('test'\): the forced kernel variant cannot be had"):
        chosen(software, 3, {"x.matmul_nbits": "subgroup"})


def test_refusals() -> None:
    def message(*types: Any, **attrs: Any) -> str:
        return refusal("x.matmul_nbits", [*types, *(None for _ in range(5 - len(types)))], attrs)

    a, b, scales = typed("float32", 2, 64), typed("uint8", 8, 2, 16), typed("float32", 8, 2)
    assert message(a, typed("uint8", 8, 3, 16), scales) == (
        "ext.matmul_nbits('here'): Incompatible shapes: b must be [N, blocks, block_size * bits / 8], as many blocks as the "
        "rows of a fill; got a float32[2, 64], b uint8[8, 3, 16], scales float32[8, 2]; allowed: [8, 2, 16]"
    )
    assert "bits is not allowed; got bits=3" in message(a, b, scales, bits=3)
    assert "block_size must be a power of 2" in message(a, b, scales, block_size=24)
    assert "block_size must be a power of 2" in message(a, b, scales, block_size=8)
    assert "scales must have one element per block" in message(a, b, typed("float32", 8))
    assert "zeroPoints data type is not allowed" in message(a, b, scales, typed("float16", 8, 2))
    assert "zeroPoints must have one number per block" in message(a, b, scales, typed("uint8", 8, 2))
    assert "bias must be [N]" in message(a, b, scales, None, typed("float32", 7))
