"""The built-in functions that compute numbers from numbers (section "Built-in Functions").

If WGSL leaves the last bits open, results are rounded from float64. `fma` rounds twice, as WGSL permits.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from typing import Any

import numpy as np

from ...core.data_types import Array
from .types import Numeric, struct_type
from .values import Composite, Fault, Value, alike, describe, is_abstract, number, sum_of

Function = Callable[..., Value]


def _float(function: Callable[..., Any]) -> Function:
    """Return a function of floats that is computed in float64."""

    def call(*values: Value) -> Value:
        given = floats(*values)
        return function(*(v.astype(np.float64) for v in given)).astype(given[0].dtype)

    return call


def floats(*values: Value) -> tuple[Array, ...]:
    """Return floats of one type. Abstract integers become floats."""
    found = alike(*(tuple(map(float, v)) if isinstance(v, tuple) else float(v) if is_abstract(v) else v for v in values))
    if found[0].dtype.kind != "f":
        raise Fault(f"the argument must be a float, but its type is {describe(found[0])}")
    return found


def _exact(function: Callable[..., Any], kinds: str = "f") -> Function:
    """Return a function that is computed in its operands' own type."""

    def call(*values: Value) -> Value:
        given = floats(*values) if kinds == "f" else alike(*values)
        if given[0].dtype.kind not in kinds:
            raise Fault(f"it takes no {describe(given[0])}")
        return function(*given)

    return call


def _clamp(x: Array, low: Array, high: Array) -> Array:
    return np.fmin(np.fmax(x, low), high)


def _one(x: Array) -> Any:
    return x.dtype.type(1)


def _smoothstep(low: Array, high: Array, x: Array) -> Array:
    t = _clamp((x - low) / (high - low), x.dtype.type(0), _one(x))
    return t * t * (x.dtype.type(3) - x.dtype.type(2) * t)


def dot(a: Array, b: Array) -> Array:
    """Return the dot product of vectors, summed in their order."""
    return sum_of(list(a * b))


def _length(x: Array) -> Array:
    return np.sqrt(dot(x, x)) if x.ndim > 1 else np.abs(x)


def _cross(a: Array, b: Array) -> Array:
    return np.stack([a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]])


def _refract(x: Array, normal: Array, ratio: Array) -> Array:
    cosine = dot(normal, x)
    k = _one(x) - ratio * ratio * (_one(x) - cosine * cosine)
    return np.where(k < 0, np.zeros_like(x), ratio * x - (ratio * cosine + np.sqrt(np.maximum(k, 0))) * normal)


def _sign(x: Array) -> Array:
    return np.sign(x)


def _determinant(m: Array) -> Array:
    return np.linalg.det(np.moveaxis(m, -1, 0).astype(np.float64)).astype(m.dtype)


def _frexp(x: Array) -> Value:
    fraction, exponent = np.frexp(x)
    return _pair("frexp", x, fraction.astype(x.dtype), "exp", exponent.astype(np.int32))


def _modf(x: Array) -> Value:
    whole = np.trunc(x)
    return _pair("modf", x, x - whole, "whole", whole)


def _pair(name: str, x: Array, fraction: Array, other: str, second: Array) -> Value:
    first, last = (Numeric({"f": "f32", "e": "f16", "i": "i32"}[a.dtype.char], x.shape[:-1]) for a in (fraction, second))
    type_ = struct_type(f"__{name}_result", [("fract", first, None, None), (other, last, None, None)])
    return Composite(type_, {"fract": fraction, other: second})


def _ldexp(x: Value, exponent: Value) -> Value:
    (given,) = floats(x)
    (power,) = alike(exponent)
    return np.ldexp(given.astype(np.float64), power).astype(given.dtype)


def select(other: Value, chosen: Value, condition: Value) -> Value:
    """Return `chosen` where a condition holds, `other` elsewhere."""
    if not isinstance(condition, np.ndarray) or condition.dtype.kind != "b":
        raise Fault(f"the condition of select is {describe(condition)}")
    a, b = alike(other, chosen)
    if condition.ndim == 1 and condition.size == 1:
        return b if condition[0] else a
    return np.where(condition, b, a)


def _all(x: Value) -> Value:
    return x.all(axis=0) if x.ndim > 1 else x


def _any(x: Value) -> Value:
    return x.any(axis=0) if x.ndim > 1 else x


# bits -----------------------------------------------------------------------------------------------------------------


def _unsigned(x: Array) -> Array:
    return x.view(np.dtype(f"u{x.dtype.itemsize}"))


def _by_bits(function: Callable[[Array], Array]) -> Function:
    """Return a function of integers that sees their bits as unsigned 32-bit numbers."""

    def call(value: Value) -> Value:
        (x,) = alike(value)
        if x.dtype.kind not in "iu" or x.dtype.itemsize != 4:
            raise Fault(f"it takes no {describe(x)}")
        return function(_unsigned(np.ascontiguousarray(x))).astype(np.uint32).view(x.dtype)

    return call


def _bit_count(x: Array) -> Array:
    return sum_of([(x >> np.uint32(i)) & np.uint32(1) for i in range(32)])


def _highest(x: Array) -> Array:
    """Return the number of the highest set bit, or -1 if there is none."""
    return np.frexp(x.astype(np.float64))[1].astype(np.int64) - 1


def _lowest(x: Array) -> Array:
    return _highest(x & (~x + np.uint32(1)))


def _reversed(x: Array) -> Array:
    return reduce(
        lambda bits, step: (
            ((bits >> np.uint32(step[0])) & np.uint32(step[1])) | ((bits & np.uint32(step[1])) << np.uint32(step[0]))
        ),
        ((1, 0x55555555), (2, 0x33333333), (4, 0x0F0F0F0F), (8, 0x00FF00FF), (16, 0x0000FFFF)),
        x,
    )


def _first_leading(value: Value) -> Value:
    (x,) = alike(value)
    magnitude = np.where(x < 0, ~x, x) if x.dtype.kind == "i" else x
    return _highest(_unsigned(np.ascontiguousarray(magnitude))).astype(x.dtype)


def _extract(value: Value, offset: Value, count: Value) -> Value:
    (x,) = alike(value)
    o, c = _bit_range(offset, count)
    left = (32 - o - c).astype(x.dtype)
    return np.where(c == 0, x.dtype.type(0), ((x << left) >> (left + o.astype(x.dtype))).astype(x.dtype))


def _insert(value: Value, new: Value, offset: Value, count: Value) -> Value:
    x, y = alike(value, new)
    o, c = _bit_range(offset, count)
    mask = (((np.uint64(1) << c.astype(np.uint64)) - np.uint64(1)) << o.astype(np.uint64)).astype(np.uint32)
    moved = (_unsigned(np.ascontiguousarray(y)).astype(np.uint64) << o.astype(np.uint64)).astype(np.uint32)
    bits = (_unsigned(np.ascontiguousarray(x)) & ~mask) | (moved & mask)
    return bits.view(x.dtype)


def _bit_range(offset: Value, count: Value) -> tuple[Array, Array]:
    o, c = (number(v, np.dtype(np.uint32)) if is_abstract(v) else v for v in (offset, count))
    o = np.minimum(o, 32)
    return o.astype(np.int64), np.minimum(c, 32 - o).astype(np.int64)


EXACT: dict[str, Function] = {
    "abs": _exact(np.abs, "fiu"), "min": _exact(np.fmin, "fiu"), "max": _exact(np.fmax, "fiu"),
    "clamp": _exact(_clamp, "fiu"), "dot": _exact(dot, "fiu"), "sign": _exact(_sign, "fi"),
    "ceil": _exact(np.ceil), "floor": _exact(np.floor), "round": _exact(np.rint), "trunc": _exact(np.trunc),
    "fract": _exact(lambda x: x - np.floor(x)), "sqrt": _exact(np.sqrt),
    "inverseSqrt": _float(lambda x: 1 / np.sqrt(x)),
    "saturate": _exact(lambda x: _clamp(x, x.dtype.type(0), _one(x))),
    "fma": _exact(lambda x, y, z: x * y + z), "mix": _exact(lambda x, y, a: x * (_one(x) - a) + y * a),
    "step": _exact(lambda edge, x: np.where(edge <= x, _one(x), x.dtype.type(0))), "smoothstep": _exact(_smoothstep),
    "length": _exact(_length), "distance": _exact(lambda a, b: _length(a - b)),
    "normalize": _exact(lambda x: x / _length(x)), "cross": _exact(_cross),
    "reflect": _exact(lambda x, n: x - x.dtype.type(2) * dot(n, x) * n), "refract": _exact(_refract),
    "faceForward": _exact(lambda n, i, g: np.where(dot(g, i) < 0, n, -n)),
    "transpose": _exact(lambda m: m.swapaxes(0, 1)), "determinant": _exact(_determinant),
    "frexp": _exact(_frexp), "modf": _exact(_modf), "ldexp": _ldexp,
    "quantizeToF16": _exact(lambda x: x.astype(np.float16).astype(x.dtype)),
    "select": select, "all": _all, "any": _any,
}  # fmt: skip
ROUNDED: dict[str, Function] = {
    name: _float(function)
    for name, function in {
        "acos": np.arccos, "acosh": np.arccosh, "asin": np.arcsin, "asinh": np.arcsinh, "atan": np.arctan, "atanh": np.arctanh,
        "atan2": np.arctan2, "cos": np.cos, "cosh": np.cosh, "sin": np.sin, "sinh": np.sinh, "tan": np.tan, "tanh": np.tanh,
        "exp": np.exp, "exp2": np.exp2, "log": np.log, "log2": np.log2, "pow": np.power,
        "degrees": np.degrees, "radians": np.radians,
    }.items()
}  # fmt: skip
BITS: dict[str, Function] = {
    "countOneBits": _by_bits(_bit_count), "countLeadingZeros": _by_bits(lambda x: 31 - _highest(x)),
    "countTrailingZeros": _by_bits(lambda x: np.where(x == 0, 32, _lowest(x))), "firstTrailingBit": _by_bits(_lowest),
    "firstLeadingBit": _first_leading, "reverseBits": _by_bits(_reversed), "extractBits": _extract, "insertBits": _insert,
}  # fmt: skip
