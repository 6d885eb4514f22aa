"""Attention and rotary embeddings of ONNX and of com.microsoft. Each operator becomes one kernel."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from webnn_wgpu import MLOperand

from ..call import NodeCall
from ._registry import MICROSOFT, Result, lowers


def split_heads(call: NodeCall, x: MLOperand, heads: int) -> MLOperand:
    """Turn [batch, length, heads * size] into [batch, heads, length, size]."""
    batch, length, width = x.shape
    if width % heads:
        call.fail(f"{width} columns for {heads} heads")
    return call.transpose(call.reshape(x, [batch, length, heads, width // heads]), [0, 2, 1, 3])


def given(call: NodeCall, index: int) -> MLOperand | None:
    """Return an optional input, or None if it is absent or has no elements, like an empty cache."""
    return call.operand(index) if call.has(index) and call.tensor(index).size else None


def widened(call: NodeCall, mask: MLOperand, keys: int) -> MLOperand:
    """Pad a mask for fewer keys than exist: the attention ignores the other keys."""
    missing = keys - int(mask.shape[-1])
    if missing <= 0 or mask.shape[-1] == 1:
        return mask
    ending = [0] * (len(mask.shape) - 1) + [missing]
    value = 0 if mask.data_type == "uint8" else -np.inf
    return call.build.pad(mask, [0] * len(ending), ending, value=value)


@lowers("Attention", since=23, empty=True, ranks={0: (3, 4), 1: (3, 4), 2: (3, 4), 3: range(1, 5), 4: (4,), 5: (4,)})
def attention(call: NodeCall) -> Result:
    """softmax(Q K' + mask) V, with a cache of earlier keys and values."""
    if call.wants(3):
        body = call.lowering.module.body(call.node, call.inputs, call.version)
        return body if body is not None else call.on_host("the scores themselves are asked for")
    q, k, v = call.operand(0), call.operand(1), call.operand(2)
    past_key, past_value, lengths, filled = given(call, 4), given(call, 5), call.optional(6), call.key_count()
    if lengths is not None and filled is not None:
        call.fail("nonpad_kv_seqlen besides caches that stay on the device")
    heads, kv_heads = call.attribute("q_num_heads"), call.attribute("kv_num_heads")
    if len({len(o.shape) for o in (q, k, v)}) > 1:
        call.fail("query, key and value must have the same rank")
    if len(q.shape) == 3:
        heads, kv_heads = call.required("q_num_heads"), call.required("kv_num_heads")
    if past_key is not None or past_value is not None or call.wants(1) or call.wants(2):
        if len(k.shape) == 3:
            k, v = split_heads(call, k, kv_heads), split_heads(call, v, kv_heads)
        if past_key is not None and past_value is not None:
            k, v = call.joined(4, k, 2), call.joined(5, v, 2)
    keys = int(k.shape[-2])
    mask = call.optional(3)
    if mask is not None:
        mask = widened(call, mask if mask.data_type == "uint8" else call.cast(mask, q.data_type), keys)
    left, right = call.attribute("left_window_size", -1), call.attribute("right_window_size", -1)
    past = 0 if past_key is None else int(past_key.shape[2])
    if filled is not None:
        lengths, past = filled, None if past_key is not None else 0
    elif lengths is not None:
        lengths, past = call.cast(lengths, "int32"), None
    y = call.build.ext.attention(
        q,
        k,
        v,
        mask=mask,
        length=lengths,
        heads=heads if len(q.shape) == 3 else None,
        kv_heads=kv_heads if len(k.shape) == 3 else None,
        scale=call.attribute("scale"),
        softcap=call.attribute("softcap", 0.0),
        causal=bool(call.attribute("is_causal", 0)),
        left=left if left >= 0 else None,
        right=right if right >= 0 else None,
        offset=past,
    )
    return [y, k if call.wants(1) else None, v if call.wants(2) else None]


@lowers("RotaryEmbedding", since=23)
def rotary_embedding(call: NodeCall) -> Result:
    """The elements of each head, rotated by angles that depend on the position."""
    positions = call.optional(3)
    return call.build.ext.rotary_embedding(
        call.operand(0),
        call.operand(1),
        call.operand(2),
        positions=positions,
        heads=call.attribute("num_heads") if call.tensor(0).rank == 3 else None,
        interleaved=bool(call.attribute("interleaved", 0)),
        rotary_dim=call.attribute("rotary_embedding_dim", 0),
    )


@lowers("RotaryEmbedding", domain=MICROSOFT, ranks={0: (3, 4), 2: (2,)})
def rotary_embedding_of_microsoft(call: NodeCall) -> Result:
    """The elements of each head, rotated by angles. The positions may be only the first one."""
    x = call.operand(0)
    if call.attribute("scale", 1.0) != 1.0:
        call.fail("a scale other than 1")
    rotated = call.attribute("rotary_embedding_dim", 0)
    heads = call.attribute("num_heads", 0)
    if len(x.shape) == 3 and not heads:
        heads = x.shape[2] // (2 * call.tensor(2).shape[-1])
    positions = call.operand(1)
    if tuple(positions.shape) == (1,):
        length = int(x.shape[-2])
        steps = call.constant(np.arange(length).reshape(1, length), positions.data_type)
        positions = call.build.add(steps, positions)
    return call.build.ext.rotary_embedding(
        x,
        call.operand(2),
        call.operand(3),
        positions=positions,
        heads=heads if len(x.shape) == 3 else None,
        interleaved=bool(call.attribute("interleaved", 0)),
        rotary_dim=rotated,
    )


@dataclass
class _Heads:
    """Query, key and value as [batch, heads, length, size]."""

    q: MLOperand
    k: MLOperand
    v: MLOperand


def _padding(call: NodeCall, mask: MLOperand, keys: int, filler: float) -> MLOperand:
    """Return com.microsoft's mask of keys as a summand of the scores.

    The mask contains flags [batch, (queries,) keys], lengths [batch], or the ends and then the starts of the visible keys [2 *
    batch].
    """
    shape = list(mask.shape)
    if len(shape) == 1:
        batch = int(call.tensor(0).shape[0])
        steps = call.constant(np.arange(keys).reshape(1, 1, 1, keys), mask.data_type)
        ends, *starts = (call.reshape(part, [batch, 1, 1, 1]) for part in call.build.split(mask, shape[0] // batch))
        keep = call.build.lesser(steps, ends)
        if starts:
            keep = call.build.logical_and(keep, call.build.greater_or_equal(steps, starts[0]))
    else:
        flags = call.build.not_equal(mask, call.like(0, mask))
        if len(shape) == 2:
            flags = call.reshape(flags, [shape[0], 1, 1, shape[1]])
        elif len(shape) == 3:
            flags = call.reshape(flags, [shape[0], 1, *shape[1:]])
        keep = flags
    zero, low = call.constant(0, "float32"), call.constant(filler, "float32")
    return call.build.where(keep, zero, low)


def _weighed(call: NodeCall, x: _Heads, padding: MLOperand | None, bias: MLOperand | None, past: int) -> MLOperand:
    """Return the attention of heads as [batch, length, heads * columns]."""
    mask = None if padding is None else call.cast(padding, x.q.data_type)
    if bias is not None:
        bias = call.cast(bias, x.q.data_type)
        mask = bias if mask is None else call.build.add(mask, bias)
    scale = call.attribute("scale", 0.0)
    filled = call.key_count()
    y = call.build.ext.attention(
        x.q,
        x.k,
        x.v,
        mask=mask,
        length=filled,
        scale=scale or None,
        causal=bool(call.attribute("unidirectional", 0)),
        offset=past if filled is None or not past else None,
    )
    return merged(call, y)


def merged(call: NodeCall, y: MLOperand) -> MLOperand:
    """Turn [batch, heads, length, columns] into [batch, length, heads * columns]."""
    batch, heads, length, columns = y.shape
    return call.reshape(call.transpose(y, [0, 2, 1, 3]), [batch, length, heads * columns])


def _filler(call: NodeCall) -> float:
    return call.attribute("mask_filter_value", -10000.0)


@lowers(
    "MultiHeadAttention",
    domain=MICROSOFT,
    empty=True,
    ranks={0: (3, 5), 1: (3, 4, 5), 2: (3, 4), 3: (1,), 4: (1, 2, 3, 4), 6: (4,), 7: (4,)},
)
def multi_head_attention(call: NodeCall) -> Result:
    """Attention over separate or packed queries, keys and values."""
    if call.has(8) or call.has(9) or call.wants(3):
        call.fail("caches shared between past and present, beam search and scores as an output")
    heads = call.required("num_heads")
    q = call.operand(0)
    if len(q.shape) == 5:  # [batch, length, heads, 3, size]
        q, k, v = _unpacked(call, q)
    elif call.tensor(1).rank == 5:
        k, v = _unpacked(call, call.operand(1))
    else:
        k, v = call.operand(1), call.operand(2)
    if call.has(3) and call.has(1) and call.tensor(1).rank == 4:
        # Keys and values in heads, like those of a cache, include their bias already.
        q = call.build.add(q, call.build.slice(call.operand(3), [0], [int(q.shape[2])]))
    elif call.has(3):
        q, k, v = _biased(call, call.operand(3), q, k, v, heads)
    x = _Heads(*(split_heads(call, o, heads) if len(o.shape) == 3 else o for o in (q, k, v)))
    past_key, past_value = given(call, 6), given(call, 7)
    past = 0
    if past_key is not None and past_value is not None:
        past = int(past_key.shape[2])
        x.k, x.v = call.joined(6, x.k, 2), call.joined(7, x.v, 2)
    padding = _padding(call, call.operand(4), int(x.k.shape[2]), _filler(call)) if call.has(4) else None
    return [_weighed(call, x, padding, call.optional(5), past), x.k, x.v]


def _unpacked(call: NodeCall, packed: MLOperand) -> list[MLOperand]:
    """Turn [batch, length, heads, parts, size] into the parts, [batch, heads, length, size] each."""
    batch, length, heads, parts, size = packed.shape
    pieces = call.build.split(packed, parts, axis=3)
    return [call.transpose(call.reshape(p, [batch, length, heads, size]), [0, 2, 1, 3]) for p in pieces]


def _biased(call: NodeCall, bias: MLOperand, q: MLOperand, k: MLOperand, v: MLOperand, heads: int) -> list[MLOperand]:
    """Add a bias, in three parts, to queries, keys and values."""
    widths = [int(o.shape[2]) if len(o.shape) == 3 else heads * int(o.shape[3]) for o in (q, k, v)]
    found: list[MLOperand] = []
    for operand, part in zip((q, k, v), call.build.split(bias, widths), strict=True):
        if len(operand.shape) == 4:
            part = call.reshape(part, [heads, 1, int(operand.shape[3])])  # noqa: PLW2901 - the same bias, shaped for heads
        found.append(call.build.add(operand, part))
    return found


@lowers("Attention", domain=MICROSOFT, empty=True, ranks={0: (3,), 1: (2,), 3: range(1, 5), 4: (5,)})
def attention_of_microsoft(call: NodeCall) -> Result:
    """The projection to queries, keys and values, then attention."""
    if call.attribute("do_rotary", 0) or call.attribute("past_present_share_buffer", 0):
        call.fail("rotary embeddings within Attention, and shared caches")
    heads = call.required("num_heads")
    projected = call.build.matmul(call.operand(0), call.operand(1))
    bias = call.optional(2)
    if bias is not None:
        projected = call.build.add(projected, bias)
    width = int(projected.shape[2])
    sizes = call.integers("qkv_hidden_sizes") or [width // 3] * 3
    if len(sizes) != 3:
        call.fail(f"qkv_hidden_sizes must be three; got {sizes}")
    x = _Heads(*(split_heads(call, part, heads) for part in call.build.split(projected, sizes, axis=2)))
    past, length = given(call, 4), 0
    if past is not None:
        length = int(past.shape[3])
        key, value = (call.reshape(p, list(p.shape[1:])) for p in call.build.split(past, 2, axis=0))
        x.k, x.v = call.build.concat([key, x.k], 2), call.build.concat([value, x.v], 2)
    padding = None
    if call.has(3):
        mask = call.operand(3)
        if len(mask.shape) == 4 or (len(mask.shape) == 1 and mask.shape[0] // x.q.shape[0] not in (1, 2)):
            call.fail(f"a mask of shape {tuple(mask.shape)}")
        padding = _padding(call, mask, int(x.k.shape[2]), _filler(call))
    y = _weighed(call, x, padding, call.optional(5), length)
    if not call.wants(1):
        return [y]
    return [y, call.build.concat([call.reshape(p, [1, *p.shape]) for p in (x.k, x.v)], 0)]


@lowers(
    "GroupQueryAttention",
    domain=MICROSOFT,
    empty=True,
    ranks={0: (3,), 1: (3,), 2: (3,), 3: (4,), 4: (4,), 7: (2,), 8: (2,), 10: range(2, 5)},
)
def group_query_attention(call: NodeCall) -> Result:
    """Attention with fewer heads of keys than of queries, over a cache with a separate filled length for each batch."""
    for index, name in ((11, "head_sink"), (12, "k_scale"), (13, "v_scale"), (14, "q_norm_weight"), (15, "k_norm_weight")):
        if call.has(index):
            call.fail(f"input {name}")
    if call.attribute("smooth_softmax", 0) > 0 or call.wants(3):
        call.fail("smooth_softmax, and scores as an output")
    heads, kv_heads = call.required("num_heads"), call.required("kv_num_heads")
    q = call.operand(0)
    if call.has(1):
        k, v = call.operand(1), call.operand(2)
    else:
        size = int(q.shape[2]) // (heads + 2 * kv_heads)
        q, k, v = call.build.split(q, [heads * size, kv_heads * size, kv_heads * size], axis=2)
    q, k, v = split_heads(call, q, heads), split_heads(call, k, kv_heads), split_heads(call, v, kv_heads)
    batch, _, count, _ = (int(d) for d in q.shape)
    lengths = call.build.add(call.cast(call.reshape(call.operand(5), [batch]), "int32"), call.constant(1, "int32"))
    past_key, past_value = given(call, 3), given(call, 4)
    in_place = call.lowering.in_place if call.position(3) is not None else None
    if in_place is not None:
        first = in_place.first
    else:
        first = past_key is None or past_value is None or call.integer(6) == count
    # The number of keys of each batch before this call, 0 for a prompt.
    before = None if first else call.build.sub(lengths, call.constant(count, "int32"))
    if call.attribute("do_rotary", 0):
        q, k = _rotated(call, q, before), _rotated(call, k, before)
    if in_place is not None and past_key is not None and past_value is not None:
        start = call.constant(0, "int32") if before is None else before
        k, v = (call.build.ext.cache_update(p, rows, start) for p, rows in ((past_key, k), (past_value, v)))
    elif past_key is not None and past_value is not None:
        capacity = max(call.integer(6), int(past_key.shape[2]))
        k, v = _appended(call, past_key, k, before, capacity), _appended(call, past_value, v, before, capacity)
    window = call.attribute("local_window_size", -1)
    bias = call.optional(10)
    y = call.build.ext.attention(
        q,
        k,
        v,
        mask=None if bias is None else widened(call, call.cast(bias, q.data_type), int(k.shape[2])),
        length=lengths,
        scale=call.attribute("scale", 0.0) or None,
        softcap=call.attribute("softcap", 0.0),
        causal=True,
        left=window - 1 if window > 0 else None,
        offset=0 if first else None,
    )
    return [merged(call, y), k, v]


def _rotated(call: NodeCall, x: MLOperand, before: MLOperand | None) -> MLOperand:
    """Rotate heads by their positions: the node's input, or the positions behind the cache."""
    batch, _, count, _ = (int(d) for d in x.shape)
    if call.has(9):
        positions = call.cast(call.operand(9), "int32")
    else:
        positions = call.constant(np.arange(count).reshape(1, count), "int32")
        if before is not None:
            positions = call.build.add(positions, call.reshape(before, [batch, 1]))
    return call.build.ext.rotary_embedding(
        x,
        call.operand(7),
        call.operand(8),
        positions=positions,
        interleaved=bool(call.attribute("rotary_interleaved", 0)),
        rotary_dim=2 * call.tensor(7).shape[-1],
    )


def _appended(call: NodeCall, past: MLOperand, new: MLOperand, before: MLOperand | None, capacity: int) -> MLOperand:
    """Return a cache with new rows behind the earlier rows of each batch."""
    batch, heads, held, size = (int(d) for d in past.shape)
    count = int(new.shape[2])
    both = call.build.concat([past, new], 2)
    if held + count == capacity and batch == 1 and before is not None:
        return both
    # Row j of the result is row j of the past, or row j - before of the new rows, which begin at row `held`.
    rows = call.constant(np.arange(capacity).reshape(1, capacity), "int32")
    if before is None:
        picked = call.constant(np.minimum(np.arange(capacity) + held, held + count - 1).reshape(1, capacity), "int32")
    else:
        start = call.reshape(before, [batch, 1])
        behind = call.build.add(call.build.sub(rows, start), call.constant(held, "int32"))
        picked = call.build.where(call.build.lesser(rows, start), rows, behind)
        picked = call.build.min(picked, call.constant(held + count - 1, "int32"))
    indices = call.build.expand(call.reshape(picked, [picked.shape[0], 1, capacity, 1]), [batch, heads, capacity, size])
    return call.build.gather_elements(both, indices, axis=2)
