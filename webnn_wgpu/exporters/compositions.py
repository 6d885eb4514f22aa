"""Extension operators as compositions of the specification's operators."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from webnn_wgpu.api.builder import MLGraphBuilder
from webnn_wgpu.api.ml import ml
from webnn_wgpu.api.operand import MLOperand
from webnn_wgpu.core.errors import NotSupportedError

Array: TypeAlias = NDArray[Any]


@dataclass(frozen=True)
class Composing:
    """An operator that is composed of others.

    Attributes:
        builder: the builder of the graph.
        operator: the operator.
        operands: its operands, None for absent ones.
        attrs: its canonical attributes.
        label: its label, which all operators of the composition get.
        arrays: the arrays of operands that are constants.
        hint: the next step after a refusal.
    """

    builder: MLGraphBuilder
    operator: str
    operands: Sequence[MLOperand | None]
    attrs: Mapping[str, Any]
    label: str
    arrays: Sequence[Array | None]
    hint: str = ""

    def operand(self, i: int = 0) -> MLOperand:
        """Return an operand that must be there."""
        found = self.operands[i]
        assert found is not None
        return found

    def number(self, value: float, like: MLOperand) -> MLOperand:
        """Return a scalar constant of an operand's type."""
        descriptor: Any = {"dataType": like.data_type, "shape": []}
        return self.builder.constant(descriptor, np.array(value).astype(like.data_type))

    def array(self, array: Array) -> MLOperand:
        """Return a constant."""
        descriptor: Any = {"dataType": array.dtype.name, "shape": list(array.shape)}
        return self.builder.constant(descriptor, array)

    def refuse(self, why: str) -> NotSupportedError:
        """Return the error of an operator without a composition."""
        rule = f"{self.operator} has no composition of WebNN's operators: {why}"
        return NotSupportedError(rule, operator="save", label=self.label, hint=self.hint)


Composition: TypeAlias = Callable[[Composing], list[MLOperand]]
COMPOSITIONS: dict[str, Composition] = {}
"""How each operator is composed."""


def composes(*operators: str) -> Callable[[Composition], Composition]:
    """Register a composition."""

    def register(compose: Composition) -> Composition:
        COMPOSITIONS.update(dict.fromkeys(operators, compose))
        return compose

    return register


ARCTANGENT = (
    1.0,
    -0.3333314528,
    0.1999355085,
    -0.1420889944,
    0.1065626393,
    -0.0752896400,
    0.0429096138,
    -0.0161657367,
    0.0028662257,
)
"""Coefficients of the odd powers for arguments up to 1, with errors below 2e-8 (Abramowitz and Stegun, 4.4.49)."""


def _arctangent(c: Composing, x: MLOperand) -> MLOperand:
    b = c.builder
    size = b.abs(x)
    one = c.number(1, x)
    small = b.min(size, b.reciprocal(size))
    square = b.mul(small, small)
    total = c.number(ARCTANGENT[-1], x)
    for coefficient in reversed(ARCTANGENT[:-1]):
        total = b.add(b.mul(total, square), c.number(coefficient, x))
    angle = b.mul(total, small)
    return b.mul(b.sign(x), b.where(b.greater(size, one), b.sub(c.number(math.pi / 2, x), angle), angle))


@composes("x.atan")
def _atan(c: Composing) -> list[MLOperand]:
    return [_arctangent(c, c.operand())]


@composes("x.asin")
def _asin(c: Composing) -> list[MLOperand]:
    b, x = c.builder, c.operand()
    one = c.number(1, x)
    return [_arctangent(c, b.div(x, b.sqrt(b.mul(b.sub(one, x), b.add(one, x)))))]


@composes("x.acos")
def _acos(c: Composing) -> list[MLOperand]:
    b, x = c.builder, c.operand()
    one = c.number(1, x)
    return [b.mul(c.number(2, x), _arctangent(c, b.sqrt(b.div(b.sub(one, x), b.add(one, x)))))]


@composes("x.sinh", "x.cosh")
def _hyperbolic(c: Composing) -> list[MLOperand]:
    b, x = c.builder, c.operand()
    half = c.number(0.5, x)
    grown, shrunk = b.mul(half, b.exp(x)), b.mul(half, b.exp(b.neg(x)))
    return [b.sub(grown, shrunk) if c.operator.endswith("sinh") else b.add(grown, shrunk)]


@composes("x.asinh")
def _asinh(c: Composing) -> list[MLOperand]:
    b, x = c.builder, c.operand()
    size = b.abs(x)
    return [b.mul(b.sign(x), b.log(b.add(size, b.sqrt(b.add(b.mul(size, size), c.number(1, x))))))]


@composes("x.acosh")
def _acosh(c: Composing) -> list[MLOperand]:
    b, x = c.builder, c.operand()
    one = c.number(1, x)
    return [b.log(b.add(x, b.sqrt(b.mul(b.sub(x, one), b.add(x, one)))))]


@composes("x.atanh")
def _atanh(c: Composing) -> list[MLOperand]:
    b, x = c.builder, c.operand()
    one = c.number(1, x)
    return [b.mul(c.number(0.5, x), b.log(b.div(b.add(one, x), b.sub(one, x))))]


@composes("x.log_softmax")
def _log_softmax(c: Composing) -> list[MLOperand]:
    b, x, axes = c.builder, c.operand(), [c.attrs["axis"]]
    moved = b.sub(x, b.reduce_max(x, axes=axes, keep_dimensions=True))
    return [b.sub(moved, b.log(b.reduce_sum(b.exp(moved), axes=axes, keep_dimensions=True)))]


@composes("x.rms_normalization")
def _rms_normalization(c: Composing) -> list[MLOperand]:
    b, x, axes = c.builder, c.operand(), list(c.attrs["axes"])
    mean = b.reduce_mean(b.mul(x, x), axes=axes, keep_dimensions=True)
    found = b.div(x, b.sqrt(b.add(mean, c.number(c.attrs["epsilon"], x))))
    scale = c.operands[1]
    if scale is None:
        return [found]
    order = [axes.index(i) for i in range(len(x.shape)) if i in axes]
    moved = scale if order == sorted(order) else b.transpose(scale, permutation=order)
    return [b.mul(found, b.reshape(moved, [n if i in axes else 1 for i, n in enumerate(x.shape)]))]


@composes("x.normalization_gradient")
def _normalization_gradient(c: Composing) -> list[MLOperand]:
    b, g, x, scale = c.builder, c.operand(), c.operand(1), c.operands[2]

    def mean(operand: MLOperand) -> MLOperand:
        return b.reduce_mean(operand, axes=list(c.attrs["axes"]), keep_dimensions=True)

    d = b.sub(x, mean(x)) if c.attrs["centered"] else x
    deviation = b.sqrt(b.add(mean(b.mul(d, d)), c.number(c.attrs["epsilon"], x)))
    normal = b.div(d, deviation)
    inner = g if scale is None else b.mul(g, scale)
    rest = b.sub(inner, b.mul(normal, mean(b.mul(inner, normal))))
    rest = b.sub(rest, mean(inner)) if c.attrs["centered"] else rest
    addend = c.operands[3]
    found = [b.div(rest, deviation) if addend is None else b.add(b.div(rest, deviation), addend)]
    return [*found, b.cast(b.mul(g, normal), "float32")] if c.attrs["products"] else found


@composes("x.fmod", "x.mod")
def _remainder(c: Composing) -> list[MLOperand]:
    b, x, y = c.builder, c.operand(), c.operand(1)
    floored = c.operator == "x.mod"
    if x.data_type.startswith("float"):
        quotient = b.div(x, y)
        whole = b.floor(quotient) if floored else b.mul(b.sign(quotient), b.floor(b.abs(quotient)))
        return [b.sub(x, b.mul(whole, y))]
    rest = b.sub(x, b.mul(b.div(x, y), y))
    if not floored or x.data_type.startswith("uint"):
        return [rest]
    zero = c.number(0, x)
    apart = b.logical_xor(b.lesser(rest, zero), b.lesser(y, zero))
    return [b.where(b.logical_and(apart, b.not_equal(rest, zero)), b.add(rest, y), rest)]


@composes("x.bitwise_not")
def _bitwise_not(c: Composing) -> list[MLOperand]:
    b, x = c.builder, c.operand()
    return [b.sub(c.number(np.iinfo(x.data_type).max if x.data_type.startswith("uint") else -1, x), x)]


@composes("x.cumulative_product")
def _cumulative_product(c: Composing) -> list[MLOperand]:
    """Multiply each element with the one 1, 2, 4, ... places before it."""
    b, x = c.builder, c.operand()
    axis: int = c.attrs["axis"]
    size = x.shape[axis]
    if c.attrs["reversed"]:
        x = b.reverse(x, axes=[axis])
    if c.attrs["exclusive"]:
        x = _moved(c, x, axis, 1)
    step = 1
    while step < size:
        x = b.mul(x, _moved(c, x, axis, step))
        step *= 2
    return [b.reverse(x, axes=[axis]) if c.attrs["reversed"] else x]


def _moved(c: Composing, x: MLOperand, axis: int, step: int) -> MLOperand:
    """Return elements moved toward the end, with ones before them."""
    b, shape = c.builder, list(x.shape)
    ones = b.expand(c.number(1, x), [min(step, n) if i == axis else n for i, n in enumerate(shape)])
    if step >= shape[axis]:
        return ones
    kept = b.slice(x, [0] * len(shape), [n - step if i == axis else n for i, n in enumerate(shape)])
    return b.concat([ones, kept], axis)


@composes("x.scatter_elements", "x.scatter_nd")
def _scatter(c: Composing) -> list[MLOperand]:
    if c.attrs["reduction"] != "none":
        raise c.refuse(f"a scatter that reduces by '{c.attrs['reduction']}'")
    x, indices, updates = (c.operand(i) for i in range(3))
    if c.operator == "x.scatter_nd":
        return [c.builder.scatter_nd(x, indices, updates)]
    return [c.builder.scatter_elements(x, indices, updates, axis=c.attrs["axis"])]


@composes("x.weighted_gather")
def _weighted_gather(c: Composing) -> list[MLOperand]:
    b, x, indices, weights = c.builder, c.operand(), c.operand(1), c.operand(2)
    axis = c.attrs["axis"]
    taken = b.gather(x, indices, axis=axis)
    shape = [1] * axis + list(weights.shape) + [1] * (len(x.shape) - axis - 1)
    weighed = b.mul(taken, b.reshape(b.cast(weights, x.data_type), shape))
    return [b.reduce_sum(weighed, axes=[axis + 1])]


@composes("x.top_k")
def _top_k(c: Composing) -> list[MLOperand]:
    b, x, axis = c.builder, c.operand(), c.attrs["axis"]
    if c.attrs["k"] != 1:
        raise c.refuse("WebNN does not sort")
    find = b.arg_max if c.attrs["largest"] else b.arg_min
    place = find(x, axis, keep_dimensions=True, output_data_type=c.attrs["indices_data_type"])
    return [b.gather_elements(x, place, axis=axis), place]


@composes("x.wrap_integer")
def _wrap_integer(c: Composing) -> list[MLOperand]:
    b, x, bits = c.builder, c.operand(), int(c.attrs["bits"])
    size = c.number(2**bits, x)
    moved = b.add(x, c.number(2 ** (bits - 1), x)) if c.attrs["signed"] else x
    rest = b.sub(moved, b.mul(b.div(moved, size), size))
    rest = b.where(b.lesser(rest, c.number(0, x)), b.add(rest, size), rest)
    return [b.sub(rest, c.number(2 ** (bits - 1), x)) if c.attrs["signed"] else rest]


@composes("x.quantization_parameters")
def _quantization_parameters(c: Composing) -> list[MLOperand]:
    b, x = c.builder, c.operand()
    zero = c.number(0, x)
    low = b.cast(b.min(b.reduce_min(x, keep_dimensions=True), zero), "float32")
    high = b.cast(b.max(b.reduce_max(x, keep_dimensions=True), zero), "float32")
    one, steps = c.number(1, low), c.number(255, low)
    scale = b.where(b.equal(high, low), one, b.div(b.sub(high, low), steps))
    place = b.clamp(b.round_even(b.neg(b.div(low, scale))), min_value=0, max_value=255)
    return [scale, b.cast(place, "uint8")]


@composes("x.matmul_nbits")
def _matmul_nbits(c: Composing) -> list[MLOperand]:
    """Multiply by the dequantized weights, which must be constants."""
    x, bias = c.operand(), c.operands[4]
    size = x.shape[-1]
    weights = _evaluated(c, [np.eye(size, dtype=x.data_type), *c.arrays[1:4], None])
    product = c.builder.matmul(x, c.array(weights)) if len(x.shape) > 1 else None
    if product is None:
        product = c.builder.reshape(c.builder.matmul(c.builder.reshape(x, [1, size]), c.array(weights)), [weights.shape[1]])
    return [product if bias is None else c.builder.add(product, bias)]


@composes("x.gather_block_quantized")
def _gather_block_quantized(c: Composing) -> list[MLOperand]:
    """Gather from the dequantized table, which must be a constant."""
    table, indices = c.arrays[0], c.operand(1)
    if table is None:
        raise c.refuse("the table is not a constant")
    rows = np.arange(table.shape[0], dtype=np.int32)
    return [c.builder.gather(c.array(_evaluated(c, [table, rows, *c.arrays[2:]])), indices, axis=0)]


def _evaluated(c: Composing, arrays: Sequence[Array | None]) -> Array:
    """Return the result of the operator on arrays, computed in numpy."""
    missing = [i for i, (array, operand) in enumerate(zip(arrays, c.operands, strict=False)) if array is None and operand]
    if [i for i in missing if i != len(arrays) - 1]:
        raise c.refuse("the quantized operands are not constants")
    with ml.create_context(backend="reference") as context:
        builder = MLGraphBuilder(context)
        other = Composing(builder, c.operator, [], c.attrs, "", [])
        given: list[MLOperand | None] = [None if a is None else other.array(a) for a in arrays]
        names = (
            ("input", "indices", "scales", "zero_points")
            if "gather" in c.operator
            else ("a", "b", "scales", "zero_points", "bias")
        )
        named: dict[str, Any] = {name: value for name, value in zip(names, given, strict=False) if value is not None}
        method = getattr(builder.ext, c.operator.removeprefix("x."))
        result = method(**named, bits=c.attrs["bits"], block_size=c.attrs["block_size"])
        return np.ascontiguousarray(context.compute(builder.build({"y": result}), {})["y"])


@composes("x.rotary_embedding")
def _rotary_embedding(c: Composing) -> list[MLOperand]:
    b, x, cos, sin, positions = c.builder, c.operand(), c.operand(1), c.operand(2), c.operands[3]
    heads, rotary = c.attrs["heads"], c.attrs["rotary_dim"]
    whole = len(x.shape) == 4
    batch, length = x.shape[0], x.shape[2 if whole else 1]
    size = x.shape[-1] if whole else x.shape[-1] // heads
    split = x if whole else b.transpose(b.reshape(x, [batch, length, heads, size]), permutation=[0, 2, 1, 3])
    tables: list[MLOperand] = []
    for table in (cos, sin):
        found = table if positions is None else b.gather(table, positions, axis=0)
        spread = [*(1 for _ in range(3 - len(found.shape))), *found.shape]
        tables.append(b.reshape(found, [spread[0], 1, *spread[1:]]))
    c_, s_ = tables
    half = rotary // 2
    turned = b.slice(split, [0] * 4, [batch, heads, length, rotary])
    if c.attrs["interleaved"]:
        pairs = b.reshape(turned, [batch, heads, length, half, 2])
        parts = [b.reshape(p, [batch, heads, length, half]) for p in b.split(pairs, 2, axis=4)]
    else:
        parts = b.split(turned, 2, axis=3)
    first, second = parts
    results = [b.sub(b.mul(first, c_), b.mul(second, s_)), b.add(b.mul(first, s_), b.mul(second, c_))]
    if c.attrs["interleaved"]:
        columns = [b.reshape(r, [batch, heads, length, half, 1]) for r in results]
        results = [b.reshape(b.concat(columns, 4), [batch, heads, length, rotary])]
    if rotary < size:
        results.append(b.slice(split, [0, 0, 0, rotary], [batch, heads, length, size - rotary]))
    found = results[0] if len(results) == 1 else b.concat(results, 3)
    return [found if whole else b.reshape(b.transpose(found, permutation=[0, 2, 1, 3]), list(x.shape))]


@dataclass(frozen=True)
class _Weights:
    """The operands of attention by head, each key and value for every query head, with the scores and weights."""

    query: MLOperand
    key: MLOperand
    value: MLOperand
    capped: MLOperand
    """The scores before the mask."""
    weights: MLOperand


def _by_head(c: Composing, x: MLOperand, heads: int) -> MLOperand:
    if len(x.shape) == 4:
        return x
    b, (batch, rows, width) = c.builder, x.shape
    return b.transpose(b.reshape(x, [batch, rows, heads, width // heads]), permutation=[0, 2, 1, 3])


def _merged(c: Composing, x: MLOperand, rank: int) -> MLOperand:
    """Return heads as a tensor of some rank."""
    if rank == 4:
        return x
    b, (batch, heads, rows, width) = c.builder, x.shape
    return b.reshape(b.transpose(x, permutation=[0, 2, 1, 3]), [batch, rows, heads * width])


def _swapped(c: Composing, x: MLOperand) -> MLOperand:
    return c.builder.transpose(x, permutation=[0, 1, 3, 2])


def _weights(c: Composing, first: int) -> _Weights:
    """Return the weights of attention whose query is the operand `first`."""
    b, attrs = c.builder, c.attrs
    mask, length = c.operands[first + 3 : first + 5]
    if length is not None:
        raise c.refuse("a number of keys that comes with the inputs")
    counts = (attrs["heads"], attrs["kv_heads"], attrs["kv_heads"])
    q, k, v = (_by_head(c, c.operand(first + i), heads) for i, heads in enumerate(counts))
    group = q.shape[1] // k.shape[1]
    k, v = (_repeated(c, x, group) for x in (k, v))
    scores = b.mul(b.matmul(q, _swapped(c, k)), c.number(attrs["scale"], q))
    if attrs["softcap"]:
        cap = c.number(attrs["softcap"], q)
        scores = b.mul(cap, b.tanh(b.div(scores, cap)))
    capped = scores
    never = c.number(-math.inf, q)
    queries, keys = q.shape[2], k.shape[2]
    offset = keys - queries if attrs["offset"] is None else attrs["offset"]
    distance = np.arange(keys) - (np.arange(queries)[:, None] + offset)
    left, right = (math.inf if attrs[name] is None else attrs[name] for name in ("left", "right"))
    seen = (distance >= -left) & (distance <= (0 if attrs["causal"] else right))
    if not seen.all():
        scores = b.where(c.array(seen.astype(np.uint8)), scores, never)
    if mask is not None:
        scores = b.where(mask, scores, never) if mask.data_type == "uint8" else b.add(scores, mask)
    # A query that sees no key has a result of zeros, where softmax gives NaN.
    largest = b.reduce_max(scores, axes=[3], keep_dimensions=True)
    nothing = b.equal(largest, never)
    weights = b.exp(b.sub(scores, b.where(nothing, c.number(0, q), largest)))
    total = b.reduce_sum(weights, axes=[3], keep_dimensions=True)
    return _Weights(q, k, v, capped, b.div(weights, b.where(nothing, c.number(1, q), total)))


@composes("x.attention")
def _attention(c: Composing) -> list[MLOperand]:
    found = _weights(c, 0)
    return [_merged(c, c.builder.matmul(found.weights, found.value), len(c.operand().shape))]


@composes("x.attention_gradient")
def _attention_gradient(c: Composing) -> list[MLOperand]:
    b, attrs = c.builder, c.attrs
    found, g = _weights(c, 1), _by_head(c, c.operand(), attrs["heads"])
    flow = b.matmul(g, _swapped(c, found.value))
    sums = b.reduce_sum(b.mul(found.weights, flow), axes=[3], keep_dimensions=True)
    of_scores = b.mul(b.mul(found.weights, b.sub(flow, sums)), c.number(attrs["scale"], g))
    if attrs["softcap"]:
        part = b.div(found.capped, c.number(attrs["softcap"], g))
        of_scores = b.mul(of_scores, b.sub(c.number(1, g), b.mul(part, part)))
    of_query = b.matmul(of_scores, found.key)
    of_key, of_value = b.matmul(_swapped(c, of_scores), found.query), b.matmul(_swapped(c, found.weights), g)
    if (groups := attrs["kv_heads"]) < attrs["heads"]:

        def added(x: MLOperand) -> MLOperand:
            batch, heads, rows, width = x.shape
            return b.reduce_sum(b.reshape(x, [batch, groups, heads // groups, rows, width]), axes=[2])

        of_key, of_value = added(of_key), added(of_value)
    return [_merged(c, x, len(c.operand(1 + i).shape)) for i, x in enumerate((of_query, of_key, of_value))]


def _repeated(c: Composing, x: MLOperand, group: int) -> MLOperand:
    """Return heads of which each serves several queries, one for each of these."""
    if group == 1:
        return x
    b, (batch, heads, rows, width) = c.builder, x.shape
    spread = b.expand(b.reshape(x, [batch, heads, 1, rows, width]), [batch, heads, group, rows, width])
    return b.reshape(spread, [batch, heads * group, rows, width])
