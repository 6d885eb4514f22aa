from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from tests.ops.movers import refusal, typed
from tests.ops.rows import as_hardware, plan_of, run_plan
from tests.rotation import first_of
from tests.support import check_op
from webnn_wgpu.accuracy.distance import assert_within
from webnn_wgpu.core.caps import Caps
from webnn_wgpu.core.errors import OperationError
from webnn_wgpu.costs.attention import DECODE_ROWS, AttentionCosts, AttentionTile, attention_tiles
from webnn_wgpu.kernels.select import supports
from webnn_wgpu.ops.attention import VARIANTS

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from webnn_wgpu.ir.graph import Array
    from webnn_wgpu.runtime.device import Device

ATOL = {"float32": 4e-6, "float16": 2e-3}


def numbers(seed: int, *shape: int, data_type: str = "float32") -> Array:
    return np.random.default_rng(seed).standard_normal(shape).astype(data_type)


def qkv(
    heads: tuple[int, int], queries: int, keys: int, sizes: tuple[int, int], batch: int = 1, data_type: str = "float32"
) -> list[Array]:
    size, columns = sizes
    shapes = ((heads[0], queries, size), (heads[1], keys, size), (heads[1], keys, columns))
    return [numbers(seed, batch, *shape, data_type=data_type) for seed, shape in enumerate(shapes)]


def check(
    device: Device, arrays: Sequence[Array | None], variant: str | None = None, atol: float | None = None, **attrs: Any
) -> Array:
    inputs = [*arrays, *(None for _ in range(5 - len(arrays)))]
    query = arrays[0]
    assert query is not None
    forced = {"x.attention": variant} if variant else None
    return check_op(device, "x.attention", inputs, attrs, forced=forced, atol=atol or ATOL[str(query.dtype)])[0]


def by_hand(arrays: Sequence[Array], allowed: Array | None = None, bias: Array | None = None, softcap: float = 0) -> Array:
    """Attention of [B, H, S, D], one query after the other, in float64."""
    q, k, v = (a.astype(np.float64) for a in arrays)
    batch, heads, queries, size = q.shape
    group = heads // k.shape[1]
    result = np.zeros((batch, heads, queries, v.shape[3]))
    for b, h, s in np.ndindex(batch, heads, queries):
        scores = [float(q[b, h, s] @ key) / math.sqrt(size) for key in k[b, h // group]]
        if softcap:
            scores = [softcap * math.tanh(x / softcap) for x in scores]
        if bias is not None:
            scores = [
                x + float(np.broadcast_to(bias, (batch, heads, queries, len(scores)))[b, h, s, t]) for t, x in enumerate(scores)
            ]
        weights = [math.exp(x) for x in scores]
        if allowed is not None:
            weights = [
                w * bool(np.broadcast_to(allowed, (batch, heads, queries, len(scores)))[b, h, s, t])
                for t, w in enumerate(weights)
            ]
        total = sum(weights)
        if total:
            result[b, h, s] = sum(w / total * value for w, value in zip(weights, v[b, h // group], strict=True))
    return result


# Blocks of keys and tiles of rows that are full, ragged and of one element; grouped queries; values of another size.
CASES = (
    ((1, 1), 1, 1, (4, 4)),
    ((2, 2), 33, 33, (32, 32)),
    ((4, 2), 9, 70, (32, 32)),
    ((3, 1), 1, 300, (32, 32)),
    ((2, 2), 3, 65, (16, 96)),
)


@pytest.mark.repeats
@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("data_type", ["float32", "float16"])
def test_variants(device: Device, data_type: str, variant: str) -> None:
    for heads, queries, keys, sizes in CASES:
        arrays = qkv(heads, queries, keys, sizes, 2, data_type)
        result = check(device, arrays, variant)
        assert np.abs(result - by_hand(arrays)).max() < ATOL[data_type]


@pytest.mark.parametrize("variant", VARIANTS)
def test_causal(device: Device, variant: str) -> None:
    for queries, keys in ((40, 40), (5, 40), (40, 5)):
        arrays = qkv((2, 1), queries, keys, (32, 32))
        # The last query sees the last key.
        allowed = np.arange(keys) <= np.arange(queries)[:, None] + keys - queries
        result = check(device, arrays, variant, causal=True)
        assert np.abs(result - by_hand(arrays, allowed)).max() < 4e-6
        assert np.all((result == 0).all(axis=3)[0, 0] == ~allowed.any(axis=1))
        result = check(device, arrays, variant, causal=True, offset=0)
        assert np.abs(result - by_hand(arrays, np.arange(keys) <= np.arange(queries)[:, None])).max() < 4e-6


@pytest.mark.parametrize("variant", VARIANTS)
def test_windows(device: Device, variant: str) -> None:
    arrays = qkv((2, 1), 40, 100, (32, 32))
    distance = np.arange(100) - (np.arange(40)[:, None] + 60)
    for left, right in ((7, None), (None, 3), (33, 0), (0, 0)):
        allowed = (distance >= -(1000 if left is None else left)) & (distance <= (1000 if right is None else right))
        result = check(device, arrays, variant, left=left, right=right)
        assert np.abs(result - by_hand(arrays, allowed)).max() < 4e-6
    assert np.array_equal(
        check(device, arrays, variant, left=33, right=0), check(device, arrays, variant, left=33, causal=True)
    )


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("shape", first_of([(2, 2, 9, 40), (9, 40), (2, 1, 1, 40), (1, 2, 9, 39), (39,), (1,), ()]))
def test_masks(device: Device, shape: tuple[int, ...], variant: str) -> None:
    keys = shape[-1] if shape and shape[-1] > 1 else 40
    arrays = qkv((2, 2), 9, keys, (32, 32), 2)
    bias = np.asarray(numbers(7, *shape), np.float32)
    assert np.abs(check(device, [*arrays, bias], variant) - by_hand(arrays, bias=bias)).max() < 4e-6
    allowed = (bias > -0.5).astype(np.uint8) * np.uint8(3)
    assert np.abs(check(device, [*arrays, allowed], variant) - by_hand(arrays, allowed)).max() < 4e-6
    bias = np.where(allowed, bias, -np.inf).astype(np.float32)
    expected = by_hand(arrays, allowed, bias=np.where(allowed, bias, 0))
    assert np.abs(check(device, [*arrays, bias], variant) - expected).max() < 4e-6


@pytest.mark.parametrize("variant", VARIANTS)
def test_rows_that_see_nothing_are_zero(device: Device, variant: str) -> None:
    arrays = qkv((1, 1), 6, 40, (32, 32))
    bias = numbers(3, 6, 40)
    bias[2], bias[4, 1:], bias[5] = -np.inf, -np.inf, np.finfo(np.float32).min
    result = check(device, [*arrays, bias], variant)
    assert np.all(result[0, 0, 2] == 0)
    assert np.allclose(result[0, 0, 4], arrays[2][0, 0, 0], atol=1e-6)
    # The lowest finite number swallows every score, and all keys count alike.
    assert np.allclose(result[0, 0, 5], arrays[2][0, 0].mean(axis=0), atol=1e-6)
    assert not check(device, [*arrays, np.zeros((1, 1), np.uint8)], variant).any()


@pytest.mark.parametrize("variant", VARIANTS)
def test_length(device: Device, variant: str) -> None:
    # A cache of fixed capacity: what lies behind its length may be anything.
    arrays = qkv((4, 2), 3, 50, (32, 32), 3)
    for length in (np.uint32([17, 50, 3]), np.int32([0, 99, -4])):
        keys = length.astype(np.int64).clip(0, 50)
        for b, count in enumerate(keys):
            arrays[1][b, :, count:] = arrays[2][b, :, count:] = np.nan
        clean = [arrays[0], *(np.nan_to_num(a) for a in arrays[1:])]
        within = np.arange(50) < keys[:, None, None, None]
        assert np.abs(check(device, [*arrays, None, length], variant) - by_hand(clean, within)).max() < 4e-6
        seen = within & (np.arange(50) <= np.arange(3)[:, None] + keys[:, None, None, None] - 3)
        result = check(device, [*arrays, None, length], variant, causal=True)
        assert np.abs(result - by_hand(clean, seen)).max() < 4e-6
    scalar = check(device, [*qkv((1, 1), 2, 50, (32, 32)), None, np.asarray(20, np.uint32)], variant)
    assert np.allclose(scalar, by_hand([a[:, :, :20] for a in qkv((1, 1), 2, 50, (32, 32))]), atol=4e-6)


@pytest.mark.parametrize("variant", VARIANTS)
def test_softcap_scale_and_everything_at_once(device: Device, variant: str) -> None:
    arrays = qkv((4, 2), 20, 60, (32, 32), 2)
    assert np.abs(check(device, arrays, variant, softcap=1.5) - by_hand(arrays, softcap=1.5)).max() < 4e-6
    scaled = check(device, [3 * arrays[0], *arrays[1:]], variant, scale=1 / (3 * math.sqrt(32)))
    assert np.abs(scaled - by_hand(arrays)).max() < 4e-6
    mask, length = numbers(9, 2, 1, 20, 60), np.uint32([31, 60])
    check(device, [*arrays, mask, length], variant, softcap=2.0, causal=True, left=20)


@pytest.mark.parametrize("variant", VARIANTS)
def test_heads_side_by_side(device: Device, variant: str) -> None:
    q, k, v = arrays = qkv((6, 2), 5, 37, (32, 16), 2)
    flat_q, flat_k, flat_v = (a.swapaxes(1, 2).reshape(2, a.shape[2], -1) for a in arrays)
    expected = check(device, arrays, variant)
    flat = expected.swapaxes(1, 2).reshape(2, 5, -1)
    assert np.array_equal(check(device, [flat_q, flat_k, flat_v], variant, heads=6, kv_heads=2), flat)
    assert np.array_equal(check(device, [flat_q, k, v], variant, heads=6), flat)
    assert np.array_equal(check(device, [q, flat_k, flat_v], variant, kv_heads=2), expected)


@pytest.mark.parametrize("sizes", first_of([(7, 5), (1, 1), (6, 70), (3, 300)]), ids=str)
def test_sizes_that_are_no_quads(device: Device, sizes: tuple[int, int]) -> None:
    arrays = qkv((2, 1), 5, 11, sizes)
    assert np.abs(check(device, arrays) - by_hand(arrays)).max() < 4e-6
    half = [a.astype(np.float16) for a in arrays]
    assert np.abs(check(device, half) - by_hand(half)).max() < 2e-3


@pytest.mark.parametrize("columns", first_of([64, 128, 256]))
def test_wide_heads(device: Device, columns: int) -> None:
    arrays = qkv((1, 1), 40, 50, (64, columns))
    for variant in (v for v in VARIANTS if v not in ("subgroup", "queries") or supports(device.caps, "subgroup")):
        assert np.abs(check(device, arrays, variant) - by_hand(arrays)).max() < 4e-6


def shape_of(tile: AttentionTile) -> str:
    return f"{tile}, {tile.column_groups} of {tile.quads} quads"


@pytest.mark.parametrize("tile", first_of(t for columns in (64, 8, 48, 192) for t in attention_tiles(columns)), ids=shape_of)
@pytest.mark.parametrize("batch", [1, 8], ids=["parts of the keys", "whole keys"])
def test_every_tile(device: Device, tile: AttentionTile, batch: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(AttentionCosts, "tile", lambda *_, **__: tile)
    monkeypatch.setattr(AttentionCosts, "parts_of_tiles", lambda *_: 2 if batch == 1 else 1)
    columns = 4 * tile.column_groups * tile.quads - 4
    # Rows of two heads, of which one tile has some of both; keys, elements and columns that do not fill the last block.
    size = 4 * (tile.depth + 1) if batch == 1 else 8 * tile.depth
    arrays = qkv((2, 1), min(40, 3 * tile.rows + 2), tile.keys + 22, (size, columns), batch)
    plan = plan_of(device.caps, "x.attention", [*arrays, None, None], {}, {"x.attention": "tiled"})
    assert plan.dispatches[0].spec.param("tile") == tile
    assert plan.dispatches[0].spec.param("full_slices") == (batch > 1)
    assert len(plan.dispatches) == (2 if batch == 1 else 1)
    check(device, arrays, "tiled", causal=True)


@pytest.mark.parametrize("columns", [4, 40, 64, 128, 256])
def test_tiles_fit_the_limits_of_every_device(columns: int) -> None:
    tiles = attention_tiles(columns)
    assert [tile.rows for tile in tiles] == sorted((tile.rows for tile in tiles), reverse=True)
    for tile in tiles:
        assert tile.invocations <= Caps().limit("max-compute-invocations-per-workgroup")
        assert tile.local_bytes(4) <= Caps().limit("max-compute-workgroup-storage-size")
        assert tile.column_groups * tile.quads * 4 >= columns
        assert tile.shares * tile.column_groups == tile.across


@pytest.mark.parametrize("rows", [1, 2, 3, 7, 8, 9])
def test_rows_that_share_what_is_read(device: Device, rows: int) -> None:
    arrays = qkv((3 * rows, 3), 1, 300, (40, 24), 2)
    plan = plan_of(as_hardware(device.caps), "x.attention", [*arrays, None, None], {})
    few = plan.dispatches[0].spec
    assert few.template == ("attention.decode" if rows <= DECODE_ROWS else "attention.tiled")
    assert rows > DECODE_ROWS or few.param("rows") == rows
    assert_within(run_plan(device, plan, arrays), by_hand(arrays).astype(np.float32), "ATOL", 4e-6)


@pytest.mark.parametrize(
    ("rows", "sizes", "keys", "loads"),
    [
        # A block of some keys, whose queries stay in registers.
        (1, (64, 64), 129, (3, 3, 4)),
        # Invocations that have no share of the sums, and a step of a key that is not whole.
        (1, (20, 96), 600, (1, 2, 0)),
        # Queries that are loaded for each key, and several blocks.
        (8, (64, 64), 200, (1, 1, 4)),
        # A key for which there are not enough registers.
        (2, (272, 256), 70, (1, 4, 0)),
        (1, (256, 4), 70, (1, 1, 16)),
        (5, (32, 128), 65, (1, 2, 2)),
    ],
)
def test_loads_of_few_rows(device: Device, rows: int, sizes: tuple[int, int], keys: int, loads: tuple[int, int, int]) -> None:
    arrays = qkv((rows, 1), 1, keys, sizes)
    plan = plan_of(as_hardware(device.caps), "x.attention", [*arrays, None, None], {}, {"x.attention": "decode"})
    spec = plan.dispatches[0].spec
    assert tuple(map(spec.param, ("own_keys", "own_values", "steps"))) == loads
    assert_within(run_plan(device, plan, arrays), by_hand(arrays).astype(np.float32), "ATOL", 4e-6)


def test_an_infinite_value_of_the_last_key(device: Device) -> None:
    arrays = qkv((1, 1), 1, 64, (16, 16))
    arrays[2][0, 0, -1, 3] = np.inf
    for variant in ("decode", "plain"):
        result = check_op(device, "x.attention", [*arrays, None, None], {}, forced={"x.attention": variant}, tolerance=64)[0]
        assert np.flatnonzero(np.isinf(result)).tolist() == [3]


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("queries", [1, 33])
def test_long_keys(device: Device, queries: int, variant: str) -> None:
    arrays = qkv((2, 2), queries, 3000, (32, 32))
    arrays[1] *= 4
    check(device, arrays, variant, causal=True)


@pytest.mark.parametrize("variant", VARIANTS)
def test_scores_that_rise_and_fall(device: Device, variant: str) -> None:
    # Sums are rescaled at every block; differences of scores are far beyond what exponentials can hold.
    q = np.ones((1, 1, 2, 4), np.float32)
    ramp = np.linspace(-300, 300, 200, dtype=np.float32)
    for order in (ramp, ramp[::-1], np.abs(ramp), -np.abs(ramp)):
        k = np.repeat(order[None, None, :, None], 4, axis=3)
        check(device, [q, k, numbers(2, 1, 1, 200, 8)], variant)


@pytest.mark.parametrize("variant", VARIANTS)
def test_nan_and_infinity(device: Device, variant: str) -> None:
    arrays = qkv((1, 1), 4, 40, (32, 32))
    arrays[0][0, 0, 1, 3], arrays[0][0, 0, 2, 0] = np.nan, np.inf
    result = check(device, arrays, variant)
    assert np.isnan(result).all(axis=3)[0, 0].tolist() == [False, True, True, False]


def test_profiles(profile_device: Device) -> None:
    for data_type in ("float32", "float16"):
        for heads, queries, keys, sizes in (*CASES[1:3], ((2, 1), 5, 11, (7, 5))):
            arrays = qkv(heads, queries, keys, sizes, data_type=data_type)
            check(profile_device, arrays, causal=True)
            check(profile_device, [*arrays, numbers(5, keys, data_type=data_type), np.uint32([keys - 1])])
    for variant in ("tiled", "decode", "plain"):
        check(profile_device, qkv((2, 1), 5, 300, (16, 16), data_type="float16"), variant)


@pytest.mark.repeats
def test_more_units_than_a_grid_dimension(device: Device) -> None:
    arrays = qkv((1, 1), 1, 3, (4, 4), 65_540)
    plan = plan_of(as_hardware(device.caps), "x.attention", [*arrays, None, None], {}, {"x.attention": "decode"})
    assert plan.dispatches[0].grid[1] > 1
    weights: Array = np.exp(np.einsum("bhsd,bhtd->bhst", arrays[0], arrays[1], dtype=np.float64) / 2)
    wanted = (weights / weights.sum(axis=-1, keepdims=True)) @ arrays[2]
    assert_within(run_plan(device, plan, arrays), wanted.astype(np.float32), "ATOL", 4e-6)


def kernels(
    caps: Caps, heads: tuple[int, int], queries: int, keys: int, sizes: tuple[int, int], forced: Mapping[str, str] | None = None
) -> str:
    plan = plan_of(caps, "x.attention", [*qkv(heads, queries, keys, sizes), None, None], {}, forced)
    return ", ".join(d.spec.template.removeprefix("attention.") for d in plan.dispatches)


def test_choice_of_variant(device: Device) -> None:
    software, hardware = Caps(adapter_type="CPU"), as_hardware(Caps())
    subgroups = replace(software, features=frozenset(["subgroup"]), subgroup_size=8)
    assert kernels(subgroups, (12, 12), 64, 64, (32, 32)) == kernels(subgroups, (4, 1), 4, 300, (32, 32)) == "subgroup"
    assert kernels(subgroups, (12, 12), 17, 129, (32, 32)) == kernels(subgroups, (4, 1), 5, 300, (32, 96)) == "queries"
    assert kernels(subgroups, (12, 12), 128, 128, (64, 128)) == "subgroup"
    assert kernels(subgroups, (12, 12), 64, 64, (33, 32)) == kernels(subgroups, (1, 1), 9, 9, (8, 260)) == "plain"
    assert kernels(software, (12, 12), 64, 64, (32, 32)) == "plain"
    assert kernels(hardware, (12, 12), 64, 64, (32, 32)) == kernels(hardware, (12, 12), 128, 128, (32, 32)) == "tiled"
    assert kernels(hardware, (12, 12), 1, 200, (32, 32)) == kernels(hardware, (32, 4), 1, 200, (32, 32)) == "decode"
    assert kernels(hardware, (12, 12), 1, 600, (32, 32)) == "decode, combine"
    assert kernels(hardware, (32, 2), 1, 100, (32, 32)) == "tiled"
    assert kernels(hardware, (32, 2), 1, 900, (32, 32)) == "tiled, combine"
    # One head and one query: the keys are shared, so that the device has something to do.
    assert kernels(subgroups, (1, 1), 1, 4000, (32, 32)) == "subgroup, combine"
    with pytest.raises(OperationError, match=r"ext\.attention\('test'\): the forced kernel variant cannot be had"):
        kernels(software, (1, 1), 4, 4, (32, 32), {"x.attention": "subgroup"})
    with pytest.raises(OperationError, match="heads of 30 and 32 elements; allowed: plain"):
        kernels(subgroups, (1, 1), 4, 4, (30, 32), {"x.attention": "tiled"})


def test_workgroups_fill_the_device() -> None:
    # 160 subgroups of 32 keep a GPU with 40 compute units busy.
    for heads, queries, keys, size, tile in (
        (12, 128, 128, 32, "16x128"),  # MiniLM
        (3, 197, 197, 64, "6x256"),  # ViT-tiny
        (6, 1500, 1500, 64, "64x64"),  # Whisper
        (12, 1024, 1024, 64, "64x64"),  # GPT-2
        (8, 64, 8192, 128, "32x64"),
    ):
        types = [typed("float32", 1, heads, n, size) for n in (queries, keys, keys)]
        inputs = [np.broadcast_to(np.float32(0), t.shape) for t in types]
        first, *_ = plan_of(as_hardware(Caps()), "x.attention", [*inputs, None, None]).dispatches
        assert str(first.spec.param("tile")) == tile
        assert 2 * math.prod(first.grid) >= 160


def test_keys_at_once_fit_workgroup_memory() -> None:
    for lanes, length, keys in ((8, 1500, 64), (16, 1500, 32), (8, 197, 40), (8, 160, 32), (4, 1500, 64)):
        caps = Caps(features=frozenset(["subgroup"]), subgroup_size=lanes, adapter_type="CPU")
        plan = plan_of(caps, "x.attention", [*qkv((2, 2), length, length, (64, 64)), None, None])
        assert plan.dispatches[0].spec.param("keys") == keys
        # Scores of a lane's four queries, and two numbers for each query.
        assert keys * lanes * 16 + lanes * 4 * 8 <= Caps().limit("max-compute-workgroup-storage-size")


def test_loops_end_in_time() -> None:
    # Mesa's software driver ends the loops of an invocation after 65535 iterations: very many keys are cut into parts.
    for caps in (Caps(adapter_type="CPU"), Caps(features=frozenset(["subgroup"]), subgroup_size=8, adapter_type="CPU")):
        types = [typed("float32", 1, 10, n, 16) for n in (1, 100_000, 100_000)]
        inputs = [np.broadcast_to(np.float32(0), t.shape) for t in types]
        plan = plan_of(caps, "x.attention", [*inputs, None, None])
        assert [d.spec.template for d in plan.dispatches][1:] == ["attention.combine"]


def test_refusals() -> None:
    q, k = typed("float32", 1, 4, 5, 8), typed("float32", 1, 2, 7, 8)

    def message(*types: Any, **attrs: Any) -> str:
        return refusal("x.attention", [*types, *(None for _ in range(5 - len(types)))], attrs)

    assert message(q, k, typed("float32", 1, 2, 6, 8)) == (
        "ext.attention('here'): Incompatible shapes: key and value must have the same length; got query float32[1, 4, 5, 8], "
        "key float32[1, 2, 7, 8], value float32[1, 2, 6, 8]; allowed: 7"
    )
    assert "must have the same batch size" in message(q, k, typed("float32", 2, 2, 7, 8))
    assert "must be a multiple of those of key; got 4 and 3 heads" in message(q, *[typed("float32", 1, 3, 7, 8)] * 2)
    assert "heads of query and key must have the same size" in message(q, *[typed("float32", 1, 2, 7, 4)] * 2)
    assert "heads is required where query has rank 3" in message(typed("float32", 1, 5, 32), k, k)
    assert "heads must divide query.shape[2]" in message(typed("float32", 1, 5, 32), k, k, heads=5)
    assert "heads must be query.shape[1]; got heads=3" in message(q, k, k, heads=3)
    assert "heads must be positive" in message(typed("float32", 1, 5, 32), k, k, heads=0)
    assert "mask must broadcast to" in message(q, k, k, typed("float32", 5, 6))
    assert "length must be one number" in message(q, k, k, None, typed("uint32", 3))
    assert "softcap must not be negative" in message(q, k, k, softcap=-1)
    assert "mask data type is not allowed" in message(q, k, k, typed("int32", 5, 7))
