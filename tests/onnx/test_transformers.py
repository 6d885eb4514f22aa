"""Attention, rotary embeddings and com.microsoft's operators of transformers, against onnxruntime."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

import webnn_wgpu as wn
from tests.onnx.models import check, node_model

MS = "com.microsoft"
rng = np.random.default_rng(7)


def normal(*shape: int, dtype: type = np.float32) -> np.ndarray:
    return rng.standard_normal(shape).astype(dtype)


def attend(context, op, inputs, attributes, *, order=None, outputs=1, **options):
    given = {n: a for n, a in inputs.items() if a is not None}
    names = order or [n if a is not None else "" for n, a in inputs.items()]
    while names and not names[-1]:
        names.pop()
    model = node_model(op, given, attributes, domain=MS, order=names, outputs=outputs)
    return check(model, given, context, rtol=2e-4, atol=2e-5, **options)


@pytest.mark.parametrize("unidirectional", [0, 1])
@pytest.mark.parametrize("bias", [False, True])
def test_multi_head_attention(context, bias, unidirectional):
    inputs = {"q": normal(2, 5, 24), "k": normal(2, 5, 24), "v": normal(2, 5, 24), "bias": normal(72) if bias else None}
    attend(context, "MultiHeadAttention", inputs, {"num_heads": 3, "unidirectional": unidirectional})


def test_multi_head_attention_across(context):
    inputs = {"q": normal(1, 3, 16), "k": normal(1, 7, 16), "v": normal(1, 7, 16)}
    attend(context, "MultiHeadAttention", inputs, {"num_heads": 4, "scale": 0.3})


@pytest.mark.parametrize(
    "mask",
    [
        np.int32([[1, 1, 1, 0], [1, 0, 1, 1]]),
        np.int32([[0, 0, 0, 0], [1, 1, 1, 1]]),
        np.int32([3, 4]),
    ],
    ids=["flags", "nothing", "lengths"],
)
def test_masks_of_keys(context, mask):
    inputs = {"q": normal(2, 4, 8), "k": normal(2, 4, 8), "v": normal(2, 4, 8), "bias": None, "mask": mask}
    attend(context, "MultiHeadAttention", inputs, {"num_heads": 2})


def test_keys_that_come_as_heads_have_their_bias(context):
    inputs = {"q": normal(2, 3, 16), "k": normal(2, 4, 7, 4), "v": normal(2, 4, 7, 4), "bias": normal(48)}
    attend(context, "MultiHeadAttention", inputs, {"num_heads": 4})


def test_multi_head_attention_with_a_cache_and_a_bias_of_scores(context):
    inputs = {
        "q": normal(2, 2, 8),
        "k": normal(2, 2, 8),
        "v": normal(2, 2, 8),
        "bias": None,
        "mask": None,
        "scores": normal(1, 2, 2, 5),
        "past_key": normal(2, 2, 3, 4),
        "past_value": normal(2, 2, 3, 4),
    }
    attend(context, "MultiHeadAttention", inputs, {"num_heads": 2}, outputs=3)


@pytest.mark.parametrize("unidirectional", [0, 1])
def test_attention_with_its_projection(context, unidirectional):
    inputs = {"x": normal(2, 4, 6), "w": normal(6, 24), "b": normal(24), "mask": np.int32([[1, 1, 1, 0], [1, 1, 1, 1]])}
    attend(context, "Attention", inputs, {"num_heads": 2, "unidirectional": unidirectional})


@pytest.mark.parametrize("unidirectional", [0, 1])
def test_attention_to_keys_from_starts_to_ends(context, unidirectional):
    mask = np.int32([3, 4, 0, 1])
    inputs = {"x": normal(2, 4, 6), "w": normal(6, 24), "b": normal(24), "mask": mask}
    attend(context, "Attention", inputs, {"num_heads": 2, "unidirectional": unidirectional})


def test_attention_with_a_past(context):
    inputs = {"x": normal(1, 2, 6), "w": normal(6, 24), "b": normal(24), "mask": None, "past": normal(2, 1, 2, 3, 4)}
    attend(context, "Attention", inputs, {"num_heads": 2, "unidirectional": 1}, outputs=2)


def tables(rows: int, width: int) -> tuple[np.ndarray, np.ndarray]:
    angles = np.outer(np.arange(rows), 1 / 10 ** (np.arange(width) / width))
    return np.cos(angles).astype(np.float32), np.sin(angles).astype(np.float32)


def grouped(batch, count, past, capacity, rotary, **attributes):
    cos, sin = tables(32, 8)
    total = past + count
    return {
        "q": normal(batch, count, 64),
        "k": normal(batch, count, 32),
        "v": normal(batch, count, 32),
        "past_key": normal(batch, 2, capacity, 16),
        "past_value": normal(batch, 2, capacity, 16),
        "lengths": np.full(batch, total - 1, np.int32),
        "total": np.int32(total).reshape(1),
        "cos": cos if rotary else None,
        "sin": sin if rotary else None,
    }, {"num_heads": 4, "kv_num_heads": 2, "do_rotary": int(rotary), **attributes}


@pytest.mark.parametrize("rotary", [False, True])
@pytest.mark.parametrize(
    "attributes",
    [{}, {"local_window_size": 3}, {"softcap": 2.0}, {"scale": 0.2}],
    ids=["plain", "window", "softcap", "scale"],
)
def test_grouped_queries_of_a_prompt(context, rotary, attributes):
    inputs, attributes = grouped(2, 6, 0, 6, rotary, **attributes)
    inputs["past_key"] = inputs["past_value"] = None
    attend(context, "GroupQueryAttention", inputs, attributes, outputs=3)


@pytest.mark.parametrize("rotary", [False, True])
@pytest.mark.parametrize(("batch", "count", "past"), [(1, 1, 5), (2, 1, 5), (1, 3, 4)])
def test_grouped_queries_over_a_growing_cache(context, rotary, batch, count, past):
    inputs, attributes = grouped(batch, count, past, past, rotary, local_window_size=4)
    attend(context, "GroupQueryAttention", inputs, attributes, outputs=3)


def test_grouped_queries_over_caches_of_different_lengths(context):
    inputs, attributes = grouped(2, 1, 6, 6, True)
    inputs["lengths"] = np.int32([6, 4])
    given = {n: a for n, a in inputs.items() if a is not None}
    model = node_model("GroupQueryAttention", given, attributes, domain=MS, order=list(given), outputs=3)
    from tests.onnx.models import with_onnxruntime

    y, key, value = with_onnxruntime(model, given)
    results = wn.load_onnx(model, context, fallback="error").run(given)
    np.testing.assert_allclose(results["y0"], y, rtol=2e-4, atol=2e-5)
    for b, length in enumerate((7, 5)):  # what lies behind a batch's length is no one's
        np.testing.assert_allclose(results["y1"][b, :, :length], key[b, :, :length], rtol=2e-4, atol=2e-5)
        np.testing.assert_allclose(results["y2"][b, :, :length], value[b, :, :length], rtol=2e-4, atol=2e-5)


def test_packed_grouped_queries(context):
    inputs, attributes = grouped(1, 4, 0, 4, True)
    inputs.update(q=normal(1, 4, 128), k=None, v=None, past_key=None, past_value=None)
    attend(context, "GroupQueryAttention", inputs, attributes, outputs=3)


@pytest.mark.parametrize("positions", [np.int64([2]), np.int64([[0, 1, 2, 7], [3, 1, 0, 2]])], ids=["first", "each"])
@pytest.mark.parametrize("interleaved", [0, 1])
def test_rotary_embedding(context, positions, interleaved):
    cos, sin = tables(16, 3)
    inputs = {"x": normal(2, 4, 12), "positions": positions, "cos": cos, "sin": sin}
    attend(context, "RotaryEmbedding", inputs, {"interleaved": interleaved})


@pytest.mark.parametrize("op", ["Gelu", "FastGelu", "QuickGelu"])
def test_gelus(context, op):
    attend(context, op, {"x": normal(3, 7)}, {})


@pytest.mark.parametrize("op", ["BiasGelu", "FastGelu"])
def test_gelus_with_a_bias(context, op):
    attend(context, op, {"x": normal(3, 7), "bias": normal(7)}, {})


@pytest.mark.parametrize("segments", [False, True])
def test_embed_layer_normalization(context, segments):
    inputs = {
        "ids": np.int32([[1, 3, 0], [2, 2, 4]]),
        "segments": np.int32([[0, 1, 1], [0, 0, 1]]) if segments else None,
        "words": normal(5, 8),
        "positions": normal(6, 8),
        "kinds": normal(2, 8) if segments else None,
        "gamma": normal(8),
        "beta": normal(8),
        "mask": np.int32([[1, 1, 0], [1, 1, 1]]),
    }
    attend(context, "EmbedLayerNormalization", inputs, {"epsilon": 1e-6}, outputs=2)


@pytest.mark.parametrize("zero_points", [False, True])
@pytest.mark.parametrize(("bits", "rows", "block"), [(4, 64, 32), (4, 40, 16), (8, 64, 32), (2, 64, 32)])
def test_matmul_nbits(context, bits, rows, block, zero_points):
    columns, blocks = 6, -(-rows // block)
    inputs = {
        "a": normal(2, 3, rows),
        "b": rng.integers(0, 256, (columns, blocks, block * bits // 8), dtype=np.uint8),
        "scales": normal(columns * blocks),
    }
    if zero_points:
        inputs["zero_points"] = rng.integers(0, 256, columns * -(-blocks * bits // 8), dtype=np.uint8)
    attributes = {"K": rows, "N": columns, "bits": bits, "block_size": block}
    constants = {n: inputs.pop(n) for n in list(inputs) if n != "a"}
    check(node_model("MatMulNBits", inputs, attributes, constants=constants, domain=MS), inputs, context, rtol=1e-3, atol=1e-3)


GATHERED = [
    # type, bits, shape in numbers, gather axis, quantize axis
    ("uint8", 4, (5, 64), 0, 1),
    ("uint8", 4, (5, 2, 40), 0, -1),
    ("uint8", 8, (5, 3, 40), 0, 2),
    *[
        (name, 4, shape, gather, quantize)
        for name in ("int4", "uint4")
        for shape, gather, quantize in (
            ((5, 64), 0, 1),
            ((5, 41), 0, 1),
            ((5, 4, 40), 0, 2),
            ((5, 40, 4), 0, 1),
            ((5, 40, 4), 1, -2),
            ((40, 5, 4), 1, 0),
            ((3, 40, 5), 2, 1),
            ((40, 6), 0, 0),
            ((3, 40), 1, 1),
        )
    ],
]


def quantized_table(name, bits, shape, axis, block, zero_points):
    """The constants of a table whose blocks lie along an axis."""
    blocks = [-(-d // block) if i == axis % len(shape) else d for i, d in enumerate(shape)]

    def numbers(sizes):
        if name != "uint8":
            info = ml_dtypes.iinfo(name)
            return rng.integers(info.min, info.max, sizes, endpoint=True).astype(getattr(ml_dtypes, name))
        return rng.integers(0, 256, [*sizes[:-1], -(-sizes[-1] * bits // 8)], dtype=np.uint8)

    table = {"data": numbers(shape), "scales": normal(*blocks)}
    return {**table, "zero_points": numbers(blocks)} if zero_points else table


@pytest.mark.parametrize("zero_points", [False, True])
@pytest.mark.parametrize(("name", "bits", "shape", "gather", "quantize"), GATHERED)
def test_gather_block_quantized(context, name, bits, shape, gather, quantize, zero_points):
    block = 16
    table = quantized_table(name, bits, shape, quantize, block, zero_points)
    indices = np.int64([[0, -1, 2], [1, -2, 1]])
    attributes = {"bits": bits, "block_size": block, "quantize_axis": quantize, "gather_axis": gather}
    order = ["data", "indices", "scales", *(["zero_points"] if zero_points else [])]
    model = node_model("GatherBlockQuantized", {"indices": indices}, attributes, constants=table, domain=MS, order=order)
    check(model, {"indices": indices}, context, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("name", ["int4", "uint4"])
def test_a_table_of_4_bits_stays_packed(context, name):
    table = quantized_table(name, 4, (64, 32), 1, 16, False)
    indices = np.int64([3, 1])
    model = node_model(
        "GatherBlockQuantized",
        {"indices": indices},
        {"block_size": 16},
        constants=table,
        domain=MS,
        order=["data", "indices", "scales"],
    )
    with wn.load_onnx(model, context) as loaded:
        source = loaded.graph.source
    assert [node.op for node in source.nodes] == ["x.gather_block_quantized"]
    assert source.constants[source.nodes[0].operands[0]].nbytes == 64 * 32 // 2


@pytest.mark.parametrize(
    ("attributes", "message"),
    [
        ({"bits": 3}, "numbers of 3 bits in bytes"),
        ({"gather_axis": 1, "quantize_axis": 0}, "not gathered along the first axis"),
    ],
)
def test_what_gather_block_quantized_cannot_do_is_named(context, attributes, message):
    table = quantized_table("uint8", 4, (16, 32), 1, 16, False)
    indices = np.int64([3, 1])
    order = ["data", "indices", "scales"]
    attributes = {"block_size": 16, **attributes}
    model = node_model("GatherBlockQuantized", {"indices": indices}, attributes, constants=table, domain=MS, order=order)
    with pytest.raises(wn.NotSupportedError, match=message):
        wn.load_onnx(model, context)


def test_what_attention_cannot_do_is_named(context):
    inputs, attributes = grouped(1, 4, 0, 4, False)
    inputs.update(past_key=None, past_value=None)
    given = {n: a for n, a in inputs.items() if a is not None}
    order = [n if a is not None else "" for n, a in inputs.items()]
    model = node_model("GroupQueryAttention", given, {**attributes, "smooth_softmax": 1}, domain=MS, order=order[:7])
    with pytest.raises(wn.NotSupportedError, match=r"GroupQueryAttention, com.microsoft opset 1\): smooth_softmax"):
        wn.load_onnx(model, context)
