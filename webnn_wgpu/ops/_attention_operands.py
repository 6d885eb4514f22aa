"""The operands and options that attention and its gradient share: checks, weights in numpy, and bindings of kernels."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..core.data_types import FLOATS
from ..ir.graph import Array, Attrs
from ..ir.types import TensorType
from ..kernels.element import QUAD
from ..kernels.spec import Binding
from ._attrs import Attr
from ._def import Lowering, OpCall, Operand
from ._product_kernel import ProductKernel
from ._rows import wide
from ._shapes import broadcast_strides, unidirectional

ATTRS = (
    Attr("heads", "uint", None),
    Attr("kv_heads", "uint", None),
    Attr("scale", "float", None),
    Attr("softcap", "float", 0.0),
    Attr("causal", "bool", False),
    Attr("left", "uint", None),
    Attr("right", "uint", None),
    Attr("offset", "int", None),
)

MASK_AND_LENGTH = (
    Operand(name="mask", data_types=(*FLOATS, "uint8"), max_rank=4, required=False),
    Operand(name="length", data_types=("uint32", "int32"), max_rank=1, required=False),
)
"""The last operands of attention and of its gradient: the admitted keys, and the number of keys."""

UNBOUNDED = 2**30
"""A window that holds all keys there may be."""


@dataclass(frozen=True, kw_only=True)
class HeadsTensor:
    """A tensor of one matrix per batch and head: [batch, heads, length, size], or [batch, length, heads * size]."""

    batch: int
    heads: int
    length: int
    size: int
    strides: tuple[int, int, int]
    """Strides from one batch, head and row to the next. The elements of a row are neighbors."""

    @classmethod
    def of(cls, shape: Sequence[int], heads: int) -> HeadsTensor:
        """Return a shape of rank 3 or 4 as heads. A shape of rank 4 has the number of heads as a dimension."""
        if len(shape) == 4:
            batch, heads, length, size = shape
            return cls(batch=batch, heads=heads, length=length, size=size, strides=(heads * length * size, length * size, size))
        batch, length, width = shape
        size = width // heads
        return cls(batch=batch, heads=heads, length=length, size=size, strides=(length * width, size, width))

    def split(self, array: Array) -> Array:
        """Return an array of this shape as [batch, heads, length, size]."""
        if array.ndim == 4:
            return array
        return array.reshape(self.batch, self.length, self.heads, self.size).swapaxes(1, 2)


@dataclass(frozen=True)
class QueryKeyValue:
    """The heads of the operands of attention."""

    q: HeadsTensor
    k: HeadsTensor
    v: HeadsTensor

    @classmethod
    def of(cls, low: Lowering, first: int = 0) -> QueryKeyValue:
        """Return the operands of a node from some operand on."""
        kv_heads = low.attrs["kv_heads"]
        q = HeadsTensor.of(low.input(first).shape, low.attrs["heads"])
        return cls(q, *(HeadsTensor.of(low.input(first + i).shape, kv_heads) for i in (1, 2)))

    @property
    def scores(self) -> tuple[int, int, int, int]:
        """The shape of the scores."""
        return self.q.batch, self.q.heads, self.q.length, self.k.length

    def result(self, rank: int) -> tuple[int, ...]:
        """Return the shape of the result for a query of a rank."""
        batch, heads, rows, columns = self.q.batch, self.q.heads, self.q.length, self.v.size
        return (batch, heads, rows, columns) if rank == 4 else (batch, rows, heads * columns)


def number_of_scores(attrs: Attrs, query: TensorType, key: TensorType) -> int:
    """Return the number of scores of all heads: one for each row of queries and each key."""
    rows = query.num_elements // query.shape[-1] * (1 if query.rank == 4 else attrs["heads"])
    return rows * key.shape[-2]


def check_operands(call: OpCall, first: int = 0) -> QueryKeyValue:
    """Check query, key, value, mask and length, and replace defaults of options by their values.

    Args:
        call: the call.
        first: the index of the query among its operands.
    """
    types = {name: call.input(first + i) for i, name in enumerate(("query", "key", "value"))}
    heads = _head_counts(call, types)
    q, k, v = (HeadsTensor.of(t.shape, heads[name]) for name, t in types.items())
    call.require(
        q.batch == k.batch == v.batch,
        "Incompatible shapes: query, key and value must have the same batch size",
        allowed=f"{q.batch}",
    )
    call.require(
        k.heads == v.heads, "Incompatible shapes: key and value must have the same number of heads", allowed=f"{k.heads}"
    )
    call.require(
        q.heads % k.heads == 0,
        "Incompatible shapes: the heads of query must be a multiple of those of key",
        got=f"{q.heads} and {k.heads} heads",
        allowed=f"divisors of {q.heads}",
    )
    call.require(k.length == v.length, "Incompatible shapes: key and value must have the same length", allowed=f"{k.length}")
    call.require(q.size == k.size, "Incompatible shapes: heads of query and key must have the same size", allowed=f"{q.size}")
    found = QueryKeyValue(q, k, v)
    mask, length = call.inputs[first + 3], call.inputs[first + 4]
    call.require(
        mask is None or unidirectional(mask.shape, found.scores),
        "Incompatible shapes: mask must broadcast to [batch, heads, queries, keys]",
        allowed=str(list(found.scores)),
    )
    call.require(
        length is None or length.num_elements == 1 or length.shape == (q.batch,),
        "length must be one number, or one for each batch",
        allowed=f"[], [1] or [{q.batch}]",
    )
    attrs = call.attrs
    attrs |= {"heads": q.heads, "kv_heads": k.heads}
    attrs["scale"] = 1 / math.sqrt(q.size) if attrs["scale"] is None else attrs["scale"]
    call.require(attrs["softcap"] >= 0, "softcap must not be negative", got=f"softcap={attrs['softcap']}", allowed=">= 0")
    if attrs["offset"] is None and length is None:
        attrs["offset"] = k.length - q.length
    return found


def _head_counts(call: OpCall, types: dict[str, TensorType]) -> dict[str, int]:
    """Return the number of heads of q, k and v, which those of rank 3 are told."""
    heads, kv_heads = call.attrs["heads"], call.attrs["kv_heads"]
    if heads is None and types["query"].rank == 4:
        heads = types["query"].shape[1]
    if kv_heads is None:
        kv_heads = next((types[name].shape[1] for name in ("key", "value") if types[name].rank == 4), heads)
    given: dict[str, int | None] = {"query": heads, "key": kv_heads, "value": kv_heads}
    found: dict[str, int] = {}
    for name, t in types.items():
        option = "heads" if name == "query" else "kv_heads"
        count = given[name]
        if count is None:
            raise call.fail(f"{option} is required where {name} has rank 3", got=f"{name} {t}")
        call.require(count > 0, f"{option} must be positive", got=f"{option}={count}", allowed=">= 1")
        found[name] = count
        if t.rank == 4:
            call.require(t.shape[1] == count, f"{option} must be {name}.shape[1]", got=f"{option}={count}, {name} {t}")
        else:
            call.require(t.shape[2] % count == 0, f"{option} must divide {name}.shape[2]", got=f"{option}={count}, {name} {t}")
    return found


@dataclass(frozen=True)
class Weights:
    """The values that attention computes before its result, in float64, by [batch, head].

    Attributes:
        query: the queries.
        key, value: those of each query head. Keys that no query sees are 0.
        capped: the scores before the mask is added.
        weights: the softmax of the scores. Rows that see no key are 0.
    """

    query: Array
    key: Array
    value: Array
    capped: Array
    weights: Array


def weights_of(arrays: Sequence[Array | None], attrs: Attrs) -> Weights:
    """Return the weights of attention of arrays of query, key, value, mask and length."""
    given = arrays[:3]
    mask, length = arrays[3:]
    layouts: list[HeadsTensor] = []
    split: list[Array] = []
    for array, heads in zip(given, (attrs["heads"], attrs["kv_heads"], attrs["kv_heads"]), strict=True):
        assert array is not None
        layouts.append(HeadsTensor.of(array.shape, heads))
        split.append(wide(layouts[-1].split(array)))
    q, k, v = split
    group = q.shape[1] // k.shape[1]
    seen: Array = _seen(attrs, length, q.shape[0], q.shape[2], k.shape[2])
    # Keys and values that no query sees may hold any number, NaN included.
    used: Array = np.any(seen, axis=2)[..., None]
    k, v = (np.repeat(np.where(used, x, 0.0), group, axis=1) for x in (k, v))
    capped: Any = q @ k.swapaxes(-1, -2) * attrs["scale"]
    if attrs["softcap"]:
        capped = attrs["softcap"] * np.tanh(capped / attrs["softcap"])
    scores = capped
    if mask is not None and mask.dtype == np.uint8:
        seen = np.logical_and(seen, mask != 0)
    elif mask is not None:
        seen = np.logical_and(seen, ~np.isneginf(mask))
        scores = scores + wide(mask)
    scores = np.where(seen, scores, -np.inf)
    largest: Array = np.max(scores, axis=-1, keepdims=True)
    weights: Any = np.exp(scores - np.where(np.isneginf(largest), 0.0, largest))
    total = weights.sum(axis=-1, keepdims=True)
    return Weights(q, k, v, capped, weights / np.where(total == 0, 1.0, total))


def _seen(attrs: Attrs, length: Array | None, batch: int, queries: int, keys: int) -> Array:
    """Return which keys each query sees, as [batch, 1, queries, keys]."""
    counts: Array = np.full(batch, keys)
    if length is not None:
        counts = np.broadcast_to(length.reshape(-1).astype(np.int64), (batch,)).clip(0, keys)
    offset: Array = counts - queries if attrs["offset"] is None else np.full(batch, attrs["offset"])
    distance: Array = np.arange(keys) - (np.arange(queries)[:, None] + offset[:, None, None])
    left, right = window_of(attrs)
    return ((distance >= -left) & (distance <= right) & (np.arange(keys) < counts[:, None, None]))[:, None]


def window_of(attrs: Attrs) -> tuple[int, int]:
    """Return how many keys before and after its own position a query sees."""
    left, right = (UNBOUNDED if attrs[name] is None else min(attrs[name], UNBOUNDED) for name in ("left", "right"))
    return left, 0 if attrs["causal"] else right


def bind_scores(kernel: ProductKernel, low: Lowering, heads: QueryKeyValue, *, quads: bool, first: int = 0) -> None:
    """Bind mask and length, and declare the scale and the keys that a query sees.

    Args:
        kernel: the kernel.
        low: the node.
        heads: its operands.
        quads: whether the kernel reads the mask of four keys at once where they are neighbors.
        first: the index of the query among the operands.
    """
    mask_index, length_index = first + 3, first + 4
    if low.has(mask_index):
        mask = low.input(mask_index)
        *steps, step = broadcast_strides(mask.shape, heads.scores)
        quad = step == 1 and heads.k.length % QUAD == 0 and quads
        kernel.bind(Binding(name="mask", access="read", element=mask.data_type, quad=quad), low.value(mask_index))
        kernel.uniforms(**dict(zip(("mask_batch", "mask_head", "mask_row"), steps, strict=True)), mask_key=step)
    offset = low.attrs["offset"]
    if low.has(length_index):
        length = low.input(length_index)
        kernel.bind(Binding(name="length", access="read", element=length.data_type), low.value(length_index))
        kernel.uniforms(length_step=int(length.num_elements > 1))
        kernel.uniform("length_offset", int(offset is None), "i32")
    kernel.uniform("offset", -heads.q.length if offset is None else max(-UNBOUNDED, min(offset, UNBOUNDED)), "i32")
    if low.attrs["softcap"]:
        kernel.uniform("softcap", low.attrs["softcap"], "f32")
    kernel.uniform("scale", low.attrs["scale"], "f32")
    for name, value in zip(("left", "right"), window_of(low.attrs), strict=True):
        kernel.uniform(name, value, "i32")
