"""Caches of keys and values that stay on the device: step by step like onnxruntime with growing caches."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import numpy_helper

import webnn_wgpu as wn
from examples.models import gpt
from tests.onnx.models import MICROSOFT
from tests.runtime.counting import counted, created
from webnn_wgpu.runtime.device import Device

HEADS, SIZE, CAPACITY = 4, 16, 24
STEPS = (5, 1, 1, 3, 1)
"""New tokens of each run: a prompt, tokens one by one, and several at once."""

Feeds = Callable[[int, int], dict[str, np.ndarray]]
"""What a run is fed, from the number of tokens before it and its own."""


def decoder(
    body: str, *, inputs: str = "", kv_heads: int = HEADS, element: str = "float", **initializers: Any
) -> onnx.ModelProto:
    """Return a layer of attention over q, k and v, with caches pk and pv that become kk and vv."""
    kv = f"{element}[b,{kv_heads}"
    text = (
        f'<ir_version: 10, opset_import: ["" : 23, "{MICROSOFT}" : 1]> g ({element}[b,{HEADS},n,{SIZE}] q,'
        f" {kv},n,{SIZE}] k, {kv},n,{SIZE}] v, {inputs} {kv},past,{SIZE}] pk, {kv},past,{SIZE}] pv)"
        f" => ({element}[b,{HEADS},n,{SIZE}] y, {kv},total,{SIZE}] kk, {kv},total,{SIZE}] vv) {{ {body} }}"
    )
    model = onnx.parser.parse_model(text)
    sizes = {"i0": [0], "i1": [1], "i2": [2], "i3": [3]} | initializers
    used = {name for node in model.graph.node for name in node.input}
    made = {n: np.asarray(a, np.int64) if isinstance(a, list) else a for n, a in sizes.items() if n in used}
    model.graph.initializer.extend(numpy_helper.from_array(a, n) for n, a in made.items())
    return model


def heads(random: np.random.Generator, batch: int, kv_heads: int, dtype: Any = np.float32) -> Feeds:
    def feeds(_past: int, new: int) -> dict[str, np.ndarray]:
        counts = {"q": HEADS, "k": kv_heads, "v": kv_heads}
        return {n: random.standard_normal((batch, c, new, SIZE)).astype(dtype) for n, c in counts.items()}

    return feeds


def follow(
    context: wn.MLContext,
    model: onnx.ModelProto,
    feeds: Feeds,
    steps: Sequence[int] = STEPS,
    *,
    compiled: int = 3,
    tolerance: float = 3e-6,
    seen: Callable[[np.ndarray], np.ndarray] = lambda y: y,
) -> wn.Model:
    """Run step after step and compare each with onnxruntime's; return the model."""
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    loaded = wn.load_onnx(model, context, kv_cache=CAPACITY, fallback="error")
    names = [v.name for v in loaded.outputs]
    pasts = [v for v in session.get_inputs() if v.name not in {i.name for i in loaded.inputs}]
    presents = [v.name for v in session.get_outputs() if v.name not in names]
    state, grown, length = loaded.state(), {}, 0
    for new in steps:
        given = feeds(length, new)
        batch = len(next(iter(given.values())))
        kinds = {"tensor(float)": np.float32, "tensor(float16)": np.float16}
        empty = {v.name: np.zeros((batch, v.shape[1], 0, v.shape[3]), kinds[v.type]) for v in pasts}
        expected = dict(zip([*names, *presents], session.run([*names, *presents], {**given, **empty, **grown}), strict=True))
        grown = {past.name: expected[present] for past, present in zip(pasts, presents, strict=True)}
        found = loaded.run(given, state=state)
        length += new
        assert state.length == length
        for name in names:
            assert found[name].shape == expected[name].shape
            np.testing.assert_allclose(seen(found[name]), seen(expected[name]), rtol=tolerance, atol=tolerance)
    assert loaded.compiled == compiled
    assert not any("copy" in d.reason for d in loaded.graph.plan.dispatches)
    state.destroy()
    return loaded


def kernels(model: wn.Model) -> set[str]:
    return {d.spec.template.partition(".")[0] for d in model.graph.plan.dispatches}


SOFTMAX = "w = Softmax <axis = -1> (masked)  y = MatMul (w, vv)"
JOINED = "kk = Concat <axis = 2> (pk, k)  vv = Concat <axis = 2> (pv, v)"
SCORES = "kt = Transpose <perm = [0, 1, 3, 2]> (kk)  s = MatMul (q, kt)  scaled = Div (s, root)"
ROOT = np.float32(np.sqrt(SIZE))
# Rows of a triangle that shapes of keys and queries pick.
CAUSAL = (
    "total = Shape <start = 2, end = 3> (kk)  new = Shape <start = 2, end = 3> (q)  before = Sub (total, new)"
    " rows = Slice (triangle, before, total, i2)  seen = Slice (rows, i0, total, i3)"
)
TRIANGLE = np.tri(64, dtype=bool)[None, None]


@pytest.mark.parametrize("batch", [1, 2])
def test_left_padding(context: wn.MLContext, batch: int) -> None:
    random = np.random.default_rng(1)
    padding = np.array([[0, 0, 1, 1, 1], [1, 1, 1, 1, 1]])[:batch]
    masks = [padding]

    def feeds(past: int, new: int) -> dict[str, np.ndarray]:
        masks[0] = np.concatenate([padding, np.ones((batch, past + new - 5), np.int64)], 1)
        return {"input_ids": random.integers(0, 64, (batch, new)), "attention_mask": masks[0]}

    def seen(logits: np.ndarray) -> np.ndarray:
        return logits[masks[0][:, -logits.shape[1] :] == 1]

    model = follow(context, gpt(), feeds, seen=seen, tolerance=2e-5)
    assert "attention" in kernels(model)
    assert "softmax" not in kernels(model)


@pytest.mark.parametrize("element", ["float", "float16"])
def test_on_every_device(profile_device: Device, element: str) -> None:
    dtype, tolerance = (np.float32, 3e-6) if element == "float" else (np.float16, 4e-3)
    model = decoder("y, kk, vv = Attention <is_causal = 1> (q, k, v, , pk, pv)", kv_heads=2, element=element)
    context = wn.ml.create_context(profile_device.gpu)
    follow(context, model, heads(np.random.default_rng(16), 2, 2, dtype), tolerance=tolerance)


@pytest.mark.parametrize("filler", [np.finfo(np.float32).min, -np.inf])
def test_scores_hidden_by_a_triangle_that_shapes_pick(context: wn.MLContext, filler: float) -> None:
    model = decoder(
        f"{JOINED} {CAUSAL} {SCORES} masked = Where (seen, scaled, filler) {SOFTMAX}",
        root=ROOT,
        triangle=TRIANGLE,
        filler=np.float32(filler),
    )
    assert "softmax" not in kernels(follow(context, model, heads(np.random.default_rng(2), 2, HEADS)))


def test_a_mask_of_ranges_and_padding(context: wn.MLContext) -> None:
    """As transformers writes it: a triangle that ranges cut, filled where the attention mask is 0."""
    body = (
        f"{JOINED} batch = Shape <end = 1> (q)  new = Shape <start = 2, end = 3> (q)  past = Shape <start = 2, end = 3> (pk)"
        " total = Add (past, new)  sizes = Concat <axis = 0> (new, total)"
        " lowest = ConstantOfShape <value = float[1] {-3.4e38}> (sizes)  upper = Trilu <upper = 1> (lowest, diagonal)"
        " p = Squeeze (past)  t = Squeeze (total)  places = Range (p, t, step)  rows = Reshape (places, column)"
        " every = Range (zero, t, step)  later = Greater (every, rows)  flags = Cast <to = 1> (later)"
        " cut = Mul (upper, flags)  cut4 = Unsqueeze (cut, i01)  full = Concat <axis = 0> (batch, i1, new, total)"
        " causal = Expand (cut4, full)  given = Unsqueeze (mask, i12)  floats = Cast <to = 1> (given)"
        " sum = Add (causal, floats)  empty = Equal (sum, none)  filler = ConstantOfShape <value = float[1] {-3.4e38}> (i1)"
        " bias = Where (empty, filler, causal)"
        f" {SCORES} masked = Add (scaled, bias) {SOFTMAX}"
    )
    random = np.random.default_rng(15)
    inner, padding = heads(random, 2, HEADS), np.int64([[0, 0, 1, 1, 1], [1, 1, 1, 1, 1]])

    def feeds(past: int, new: int) -> dict[str, np.ndarray]:
        return {**inner(past, new), "mask": np.concatenate([padding, np.ones((2, past + new - 5), np.int64)], 1)}

    numbers = {"step": np.int64(1), "zero": np.int64(0), "none": np.float32(0), "diagonal": np.int64(1)}
    model = decoder(body, inputs="int64[b,total] mask,", root=ROOT, column=[-1, 1], i01=[0, 1], i12=[1, 2], **numbers)
    found = follow(context, model, feeds, seen=lambda y: y[:, :, -1])
    assert "softmax" not in kernels(found)


def test_no_mask(context: wn.MLContext) -> None:
    model = decoder(f"{JOINED} {SCORES} masked = Identity (scaled) {SOFTMAX}", root=ROOT)
    found = follow(context, model, heads(np.random.default_rng(3), 1, HEADS), (1, 1, 1, 1), compiled=1)
    assert "softmax" not in kernels(found)


def test_weights_whose_nan_becomes_0(context: wn.MLContext) -> None:
    body = (
        f"{JOINED} {SCORES} raw = Softmax <axis = -1> (scaled) odd = IsNaN (raw) w = Where (odd, zero, raw) y = MatMul (w, vv)"
    )
    model = decoder(body, root=ROOT, zero=np.float32(0))
    assert "softmax" not in kernels(follow(context, model, heads(np.random.default_rng(4), 2, HEADS)))


def test_weights_that_the_passes_do_not_recognize(context: wn.MLContext) -> None:
    body = f"{JOINED} {SCORES} raw = Softmax <axis = -1> (scaled) w = Mul (raw, factor) y = MatMul (w, vv)"
    model = decoder(body, root=ROOT, factor=np.float32(0.5))
    assert "softmax" in kernels(follow(context, model, heads(np.random.default_rng(4), 2, HEADS)))


def test_heads_repeated_for_their_queries(context: wn.MLContext) -> None:
    def repeated(x: str) -> str:
        return f"{x}5 = Unsqueeze ({x}, i2)  {x}e = Expand ({x}5, wide)  {x}r = Reshape ({x}e, flat)"

    shapes = (
        "batch = Shape <end = 1> (kk)  all = Shape <start = 2, end = 3> (kk)"
        " wide = Concat <axis = 0> (batch, pairs, all, size)  flat = Concat <axis = 0> (batch, heads, all, size)"
    )
    body = (
        f"{JOINED} {shapes} {repeated('kk')} {repeated('vv')} {CAUSAL} kt = Transpose <perm = [0, 1, 3, 2]> (kkr)"
        " s = MatMul (q, kt)  scaled = Div (s, root) masked = Where (seen, scaled, filler)"
        " w = Softmax <axis = -1> (masked)  y = MatMul (w, vvr)"
    )
    model = decoder(
        body,
        kv_heads=2,
        root=ROOT,
        triangle=TRIANGLE,
        filler=np.float32(-1e30),
        pairs=[2, 2],
        heads=[4],
        size=[SIZE],
    )
    found = follow(context, model, heads(np.random.default_rng(5), 2, 2))
    assert not any("expand" in d.label for d in found.graph.plan.dispatches)
    assert "softmax" not in kernels(found)


@pytest.mark.parametrize("element", ["float", "float16"])
@pytest.mark.parametrize("causal", [0, 1])
def test_attention(context: wn.MLContext, element: str, causal: int) -> None:
    model = decoder(f"y, kk, vv = Attention <is_causal = {causal}> (q, k, v, , pk, pv)", kv_heads=2, element=element)
    dtype, tolerance = (np.float32, 3e-6) if element == "float" else (np.float16, 4e-3)
    follow(context, model, heads(np.random.default_rng(6), 2, 2, dtype), tolerance=tolerance)


def test_attention_over_joined_caches(context: wn.MLContext) -> None:
    model = decoder(f"{JOINED} {CAUSAL} y = Attention (q, kk, vv, seen)", kv_heads=2, triangle=TRIANGLE)
    follow(context, model, heads(np.random.default_rng(7), 2, 2))


def merge(x: str, count: int) -> str:
    return f"{x}t = Transpose <perm = [0, 2, 1, 3]> ({x})  {x}m = Reshape ({x}t, {'wide' if count == HEADS else 'narrow'})"


SPLIT = "yr = Reshape (ym, rows)  y = Transpose <perm = [0, 2, 1, 3]> (yr)"
ROWS: Mapping[str, list[int]] = {"wide": [0, 0, HEADS * SIZE], "narrow": [0, 0, 2 * SIZE], "rows": [0, 0, HEADS, SIZE]}


@pytest.mark.parametrize("declared", ["total", "past + 1", "past + n"])
def test_multi_head_attention(context: wn.MLContext, declared: str) -> None:
    body = (
        f"{merge('q', HEADS)} {merge('k', HEADS)} {merge('v', HEADS)} ym, kk, vv = {MICROSOFT}.MultiHeadAttention"
        f" <num_heads = {HEADS}, unidirectional = 1> (qm, km, vm, , mask, , pk, pv) {SPLIT}"
    )
    random = np.random.default_rng(8)
    inner, padding = heads(random, 2, HEADS), np.int32([[0, 1, 1, 1, 1], [1, 1, 1, 1, 1]])

    def feeds(past: int, new: int) -> dict[str, np.ndarray]:
        return {**inner(past, new), "mask": np.concatenate([padding, np.ones((2, past + new - 5), np.int32)], 1)}

    model = decoder(body, inputs="int32[b,total] mask,", **{n: s for n, s in ROWS.items() if n != "narrow"})
    mask = next(value for value in model.graph.input if value.name == "mask")
    mask.type.tensor_type.shape.dim[1].dim_param = declared
    follow(context, model, feeds, seen=lambda y: y[:, :, -1])


@pytest.mark.parametrize("rotary", [0, 1])
@pytest.mark.parametrize("shortest", [5, 3])
def test_group_query_attention(context: wn.MLContext, rotary: int, shortest: int) -> None:
    angles = np.random.default_rng(9).uniform(-3, 3, (64, SIZE // 2)).astype(np.float32)
    body = (
        f"{merge('q', HEADS)} {merge('k', 2)} {merge('v', 2)}"
        " counts = ReduceSum <keepdims = 0> (mask, i1)  less = Sub (counts, i1)  lengths = Cast <to = 6> (less)"
        " every = Shape <start = 1, end = 2> (mask)  one = Squeeze (every)  total = Cast <to = 6> (one)"
        f" ym, kk, vv = {MICROSOFT}.GroupQueryAttention <num_heads = {HEADS}, kv_num_heads = 2, do_rotary = {rotary}>"
        f" (qm, km, vm, pk, pv, lengths, total{', cos, sin' if rotary else ''}) {SPLIT}"
    )
    tables = {"cos": np.cos(angles), "sin": np.sin(angles)} if rotary else {}
    inner = heads(np.random.default_rng(10), 2, 2)

    def feeds(past: int, new: int) -> dict[str, np.ndarray]:
        # Padding stands at the right of the prompt, and the first tokens of the answer take its place.
        mask = np.ones((2, past + new), np.int64)
        mask[0, shortest:5] = 0
        return {**inner(past, new), "mask": mask}

    def seen(y: np.ndarray) -> np.ndarray:
        return y if y.shape[2] == 1 else np.concatenate([y[0, :, :shortest], y[1]], 1)

    model = decoder(body, inputs="int64[b,total] mask,", kv_heads=2, **ROWS, **tables)
    follow(context, model, feeds, (5, 1, 1, 1), compiled=2, seen=seen)


def test_positions_from_a_range(context: wn.MLContext) -> None:
    body = (
        "past = Shape <start = 2, end = 3> (pk)  new = Shape <start = 2, end = 3> (k)  total = Add (past, new)"
        " first = Squeeze (past)  end = Squeeze (total)  places = Range (first, end, step)  positions = Unsqueeze (places, i0)"
        " batch = Shape <end = 1> (k)  size = Concat <axis = 0> (batch, new)  all = Expand (positions, size)"
        " turned = RotaryEmbedding (k, cos, sin, all)"
        f" kk = Concat <axis = 2> (pk, turned)  vv = Concat <axis = 2> (pv, v) {SCORES} masked = Identity (scaled) {SOFTMAX}"
    )
    angles = np.random.default_rng(11).uniform(-3, 3, (64, SIZE // 2)).astype(np.float32)
    model = decoder(body, root=ROOT, step=np.int64(1), cos=np.cos(angles), sin=np.sin(angles))
    follow(context, model, heads(np.random.default_rng(12), 2, HEADS))


# the state ------------------------------------------------------------------------------------------------------------


def tokens(*ids: int, past: int = 0) -> dict[str, Any]:
    return {"input_ids": [ids], "attention_mask": [[1] * (past + len(ids))]}


@pytest.fixture(scope="module")
def model(context: wn.MLContext) -> wn.Model:
    return wn.load_onnx(gpt(), context, kv_cache=12)


def test_truncated_reset_and_apart(model: wn.Model) -> None:
    whole = model.run(tokens(1, 2, 3, 4))["logits"][0]
    with model.state() as one, model.state() as other:
        model.run(tokens(1, 2, 9, 9), state=one)
        model.run(tokens(7), state=other)
        one.truncate(2)
        for i, token in enumerate((3, 4)):
            logits = model.run(tokens(token, past=2 + i), state=one)["logits"]
            np.testing.assert_allclose(logits[0, 0], whole[2 + i], rtol=1e-5, atol=1e-5)
        one.reset()
        assert one.length == 0
        np.testing.assert_allclose(model.run(tokens(1), state=one)["logits"][0, 0], whole[0], rtol=1e-5, atol=1e-5)
        assert repr(other) == "State(1 of 12 rows)"
        with pytest.raises(wn.MLTypeError, match=r"truncate: there are not so many rows; got 5; allowed: 0\.\.1"):
            other.truncate(5)
        for wrong in (0.5, True, "a", None):
            with pytest.raises(wn.MLTypeError, match=r"truncate: there are not so many rows; got .*; allowed: 0\.\.1"):
                other.truncate(wrong)
        other.truncate(np.int64(1))
        assert repr(other) == "State(1 of 12 rows)"


def test_a_run_has_new_tokens(model: wn.Model) -> None:
    with model.state() as state:
        model.run(tokens(1, 2), state=state)
        with pytest.raises(
            wn.MLTypeError, match=r"run: an input has no elements; got input_ids: \[1, 0\]; allowed: a new token"
        ):
            model.run({"input_ids": np.zeros((1, 0), np.int64), "attention_mask": [[1, 1]]}, state=state)
        assert state.length == 2


def test_states_of_other_models_are_refused(context: wn.MLContext, model: wn.Model) -> None:
    with wn.load_onnx(gpt(), context, kv_cache=12) as other, other.state() as state:
        for wrong in (state, {}, 3, False):
            with pytest.raises(
                wn.MLTypeError, match=r"run: not a state of this model; got .*; allowed: a result of Model.state\(\)"
            ):
                model.run(tokens(1), state=wrong)
        assert state.length == 0


@pytest.mark.parametrize("rows", [0, 1.5, "8", True])
def test_room_is_for_a_whole_number_of_rows(context: wn.MLContext, rows: object) -> None:
    with pytest.raises(wn.MLTypeError, match=r"load: a cache must have room for a row; got kv_cache=.*; allowed: 1 and more"):
        wn.load_onnx(gpt(), context, kv_cache=rows)


def test_as_many_rows_as_there_is_room_for(model: wn.Model) -> None:
    for first in (12, 11, 10):
        with model.state() as state:
            model.run(tokens(*range(first)), state=state)
            for i in range(first, 12):
                last = model.run(tokens(i, past=i), state=state)["logits"][0, -1]
            with pytest.raises(wn.MLTypeError, match=r"no room for so many rows; got 12 rows and 1 more; allowed: kv_cache=12"):
                model.run(tokens(1, past=12), state=state)
            assert state.length == 12
    np.testing.assert_allclose(last, model.run(tokens(*range(12)))["logits"][0, -1], rtol=1e-5, atol=1e-5)
    with pytest.raises(wn.MLTypeError, match="got 0 rows and 13 more"):
        model.run(tokens(*range(13)))


def test_what_does_not_fit_a_state(model: wn.Model) -> None:
    state = model.state()
    model.run(tokens(1, 2), state=state)
    two = {"input_ids": [[1], [2]], "attention_mask": np.ones((2, 3), np.int64)}
    with pytest.raises(wn.MLTypeError, match="filled with other shapes"):
        model.run(two, state=state)
    for past in (0, 1, 3):
        got = rf"an input must grow with the caches; got attention_mask: \[1, {1 + past}\]"
        with pytest.raises(wn.MLTypeError, match=f"{got}; allowed: in dimension 1, 2 cached rows and the new ones: 3"):
            model.run(tokens(1, past=past), state=state)
    assert state.length == 2
    state.reset()
    model.run({**two, "attention_mask": np.ones((2, 1), np.int64)}, state=state)
    state.destroy()
    assert repr(state) == "State(destroyed)"
    with pytest.raises(wn.InvalidStateError, match="run: the state was destroyed"):
        model.run(tokens(1), state=state)


def test_models_that_cannot(context: wn.MLContext) -> None:
    with pytest.raises(wn.NotSupportedError, match=r"load\(..., kv_cache=ROWS\)"):
        wn.load_onnx(gpt(), context).state()
    with pytest.raises(wn.MLTypeError, match="kv_cache=0"):
        wn.load_onnx(gpt(), context, kv_cache=0)
    plain = onnx.parser.parse_model('<ir_version: 10, opset_import: ["" : 21]> g (float[n] x) => (float[n] y) { y = Abs (x) }')
    with pytest.raises(wn.NotSupportedError, match="has no caches of keys and values"):
        wn.load_onnx(plain, context, kv_cache=8)
    still = decoder(f"{JOINED} {SCORES} masked = Identity (scaled) {SOFTMAX}", root=ROOT)
    for value in (*still.graph.input, *still.graph.output):
        for dim in value.type.tensor_type.shape.dim:
            if dim.dim_param == "past":
                dim.dim_value = 8
    with pytest.raises(wn.NotSupportedError, match="rows of cache 'pk' must be a symbolic dimension; got 8 rows"):
        wn.load_onnx(still, context, kv_cache=8)


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ("largest = ReduceMax (kk, i2) y = Mul (q, largest)", r"\(ReduceMax, ai.onnx opset 23\): it is not known to keep keys"),
        ("part = Slice (kk, i1, i2, i2) y = Mul (q, part)", "Slice.*it takes a part of the keys"),
        ("last = Slice (kk, back, end, i2) y = Mul (q, last)", "Slice.*it takes a part of the keys"),
        (
            "turned = Slice (kk, end, start, i2, one) kt = Transpose <perm = [0, 1, 3, 2]> (turned) s = MatMul (q, kt)"
            " w = Softmax (s) y = MatMul (w, vv)",
            "Slice.*it turns the order of the keys round",
        ),
        ("flat = Reshape (kk, one) y = Expand (q, i1)", "Reshape.*it takes"),
        ("kt = Transpose <perm = [0, 1, 3, 2]> (kk) s = MatMul (kt, vv) y = MatMul (q, s)", "MatMul.*over all keys"),
        ("s = Softmax <axis = 2> (kk) kt = Transpose <perm = [0, 1, 3, 2]> (s) y = MatMul (q, kt)", "Softmax.*last dimension"),
        (
            "old = Abs (pk) kt = Transpose <perm = [0, 1, 3, 2]> (kk) w = MatMul (q, kt) y = MatMul (w, vv)",
            "Abs.*it reads a cache",
        ),
    ],
)
def test_rows_that_are_not_filled_never_count(context: wn.MLContext, body: str, reason: str) -> None:
    model = decoder(f"{JOINED} {body}", back=[-2], end=[2**62], start=[-(2**62)], one=[-1])
    feeds = heads(np.random.default_rng(13), 1, HEADS)(0, 1)
    with pytest.raises(wn.NotSupportedError, match=reason):
        wn.load_onnx(model, context, kv_cache=8).run(feeds)


def test_what_the_host_would_have_to_do(context: wn.MLContext) -> None:
    def refusal(body: str, **initializers: Any) -> str:
        feeds = heads(np.random.default_rng(17), 1, HEADS)(0, 1)
        with pytest.raises(wn.NotSupportedError) as raised:
            wn.load_onnx(decoder(f"{JOINED} {body}", **initializers), context, kv_cache=8).run(feeds)
        return str(raised.value)

    assert "(NonZero" in refusal("places = NonZero (q) n = Cast <to = 1> (places) m = ReduceMax (n, i0) y = Add (q, m)")
    largest = "a = Abs (q) m = ReduceMax <keepdims = 0> (a) s = Cast <to = 7> (m) u = Unsqueeze (s, i0) size = Add (u, i1)"
    assert "depends on the elements of 'size'" in refusal(f"{largest} y = Slice (q, i0, size, i3)")
    # Rows of caches are whole words.
    text = onnx.printer.to_text(decoder("y, kk, vv = Attention (q, k, v, , pk, pv)", element="float16")).replace("16]", "3]")
    feeds = {n: np.zeros((1, HEADS, 1, 3), np.float16) for n in "qkv"}
    with pytest.raises(wn.NotSupportedError, match=r"whole words of 4 bytes.*its caches cannot stay on the device"):
        wn.load_onnx(onnx.parser.parse_model(text), context, kv_cache=8).run(feeds)


@pytest.mark.parametrize("axis", [1, -1])
def test_softmax_of_matrices(context: wn.MLContext, axis: int) -> None:
    model = decoder(
        f"{JOINED} {SCORES} w = Softmax {f'<axis = {axis}>' if axis < 0 else ''} (scaled) y = MatMul (w, vv)", root=ROOT
    )
    model.opset_import[0].version = 11
    for node in model.graph.node:
        assert node.op_type not in ("Shape", "Slice")
    feeds = heads(np.random.default_rng(14), 1, HEADS)
    if axis == 1:
        with pytest.raises(wn.NotSupportedError, match="last dimension"):
            wn.load_onnx(model, context, kv_cache=8).run(feeds(0, 1))
    else:
        follow(context, model, feeds, (2, 1, 1), compiled=2)


def test_a_hundred_tokens_compile_once_and_create_nothing(context: wn.MLContext) -> None:
    model = wn.load_onnx(gpt(), context, kv_cache=128)
    state = model.state()
    model.run(tokens(1, 2, 3, 4), state=state)
    model.run(tokens(5, past=4), state=state)
    assert model.compiled == 2
    plan, caches = model.graph.plan, set(state.tensors.values())
    model.run(tokens(6, past=5), state=state)
    with counted() as calls:
        for i in range(6, 106):
            model.run(tokens(i % 64, past=i), state=state)
    assert created(calls) == {}
    assert calls["wgpuQueueSubmit"] == 200  # a run, and reading the logits
    assert (model.compiled, state.length, set(state.tensors.values())) == (2, 106, caches)
    assert model.graph.plan is plan
    # Nothing but the new row is written into a cache.
    ends = [
        (d, r.key)
        for d in plan.dispatches
        for b, r in zip(d.spec.bindings, d.bindings, strict=True)
        if b.access == "write" and r.kind == "input"
    ]
    assert {d.spec.template for d, _ in ends} == {"cache_update"}
    assert {key for _, key in ends} == set(plan.aliases.values()) == set(state.tensors)
