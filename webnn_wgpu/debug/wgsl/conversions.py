"""From values of one type to another: constructors, `bitcast`, and numbers packed in words."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ...core.data_types import Array
from .types import SCALAR_OF, SCALARS, ArrayType, Numeric, StructType, Type, map_tree
from .values import Composite, Fault, Value, alike, concrete, converted, data_of, describe, is_abstract, sum_of, type_of, zero

# constructors ---------------------------------------------------------------------------------------------------------


def cast(value: Array, dtype: np.dtype[Any]) -> Array:
    """Return numbers in another type. Floats are truncated and clamped to an integer type, NaN to 0. Integers wrap."""
    if value.dtype == dtype:
        return value
    if dtype.kind == "b":
        return value != 0
    if dtype.kind in "iu" and value.dtype.kind == "f":
        low, high = (_inside(value.dtype, limit) for limit in (np.iinfo(dtype).min, np.iinfo(dtype).max))
        # As the largest 64-bit integers have no float, the limits are floats too.
        return np.clip(np.nan_to_num(np.trunc(value), nan=0.0, posinf=high, neginf=low), low, high).astype(dtype)
    return value.astype(dtype)


def _inside(dtype: np.dtype[Any], limit: int) -> Any:
    """Return the float that is nearest to an integer and no further from 0."""
    largest = min(abs(limit), int(np.finfo(dtype).max)) * (1 if limit > 0 else -1)
    found = dtype.type(largest)
    return np.nextafter(found, dtype.type(0)) if abs(int(found)) > abs(limit) else found


def construct(type_: Type, arguments: Sequence[Value]) -> Value:
    """Return the value of a type that arguments make."""
    if not arguments:
        return zero(type_)
    if isinstance(type_, Numeric):
        return _numeric(type_, arguments)
    if isinstance(type_, ArrayType):
        count = len(arguments) if type_.count is None else type_.count
        if len(arguments) != count:
            raise Fault(f"{type_} is made of {len(arguments)} elements")
        parts = [converted(a, type_.element) for a in arguments]
        return Composite(ArrayType(type_.element, count), map_tree(_stacked, *map(data_of, parts)))
    if isinstance(type_, StructType):
        if len(arguments) != len(type_.members):
            raise Fault(f"{type_} has {len(type_.members)} members; {len(arguments)} are given")
        pairs = zip(type_.members, arguments, strict=True)
        return Composite(type_, {m.name: data_of(converted(a, m.type)) for m, a in pairs})
    raise Fault(f"no value has the type {type_}")


def infer(name: str, shape: tuple[int, ...] | None, arguments: Sequence[Value]) -> Value:
    """Return the vector, matrix or array that arguments make whose element type is theirs."""
    if not arguments:
        raise Fault(f"{name} without a type needs arguments")
    if shape is None:
        first = next((a for a in arguments if not is_abstract(a)), None)
        if first is None:
            first = concrete(next((a for a in arguments if not isinstance(a, int)), arguments[0]))
        return construct(ArrayType(type_of(first), len(arguments)), arguments)
    if len(shape) == 1 and all(map(is_abstract, arguments)):
        flat = [n for a in arguments for n in (a if isinstance(a, tuple) else (a,))]
        return tuple(flat * shape[0] if len(flat) == 1 else flat)
    parts = alike(*arguments)
    if len(shape) == 2 and parts[0].dtype.kind != "f":
        parts = tuple(p.astype(np.float32) for p in parts)
    return _numeric(Numeric(SCALAR_OF[parts[0].dtype], shape), parts)


def _numeric(type_: Numeric, arguments: Sequence[Value]) -> Value:
    dtype, shape = type_.dtype, type_.shape
    if len(arguments) == 1:
        value = arguments[0]
        value = concrete(value) if is_abstract(value) and dtype.kind == "b" else value
        value = converted(value, Numeric(type_.scalar, np.shape(value))) if is_abstract(value) else value
        if not isinstance(value, np.ndarray):
            raise Fault(f"{type_} is made of {describe(value)}")
        if value.shape[:-1] == shape:
            return cast(value, dtype)
        if value.ndim == 1 and len(shape) == 1 and value.dtype == dtype:
            return np.broadcast_to(value, (*shape, value.size))
        raise Fault(f"{type_} is made of {describe(value)}")
    parts: list[Array] = []
    for argument in arguments:
        given = converted(argument, Numeric(type_.scalar, np.shape(argument))) if is_abstract(argument) else argument
        if not isinstance(given, np.ndarray) or given.dtype != dtype:
            raise Fault(f"{type_} is made of {describe(argument)}")
        parts += list(given.reshape(-1, given.shape[-1]))
    if len(parts) != int(np.prod(shape)):
        raise Fault(f"{type_} is made of {len(parts)} numbers")
    return _stacked(*parts).reshape(*shape, -1)


def _stacked(*parts: Array) -> Array:
    return np.stack(np.broadcast_arrays(*parts))


def bitcast(type_: Numeric, value: Value) -> Array:
    """Return the bits of a value as one of another type."""
    if isinstance(value, np.ndarray) and value.ndim == 1 and type_.shape == () and value.itemsize == type_.dtype.itemsize:
        return np.ascontiguousarray(value).view(type_.dtype)
    given = concrete(value)
    if isinstance(value, int) and type_.scalar == "u32":
        given = np.array([value & 0xFFFFFFFF], np.uint32)
    bits = np.prod(type_.shape, initial=type_.dtype.itemsize)
    if not isinstance(given, np.ndarray) or given.ndim > 2 or given[..., 0].nbytes != bits:
        raise Fault(f"bitcast<{type_}> of {describe(value)}")
    by_lane = np.ascontiguousarray(np.moveaxis(given.reshape(-1, given.shape[-1]), 0, -1))
    return np.moveaxis(by_lane.view(type_.dtype), -1, 0).reshape(*type_.shape, -1)


# packed words ---------------------------------------------------------------------------------------------------------


def _split(dtype: str) -> Callable[[Value], Array]:
    """Return a function that unpacks the numbers of a type from a word."""

    def call(value: Value) -> Array:
        (word,) = alike(value)
        if word.dtype != np.uint32:
            raise Fault(f"it takes no {describe(word)}")
        return np.ascontiguousarray(word)[:, None].view(dtype).T

    return call


def _joined(parts: Array, dtype: str) -> Array:
    """Return the words that numbers, cast to a type, make up."""
    return np.ascontiguousarray(parts.astype(dtype).T).view(np.uint32)[:, 0]


def _pack(dtype: str, scalar: str, limits: tuple[int, int] | None) -> Callable[[Value], Array]:
    """Return a function that packs integers. It clamps numbers to the limits, and wraps them without limits."""

    def call(value: Value) -> Array:
        given = converted(value, Numeric(scalar, (4,)))
        return _joined(given if limits is None else np.clip(given, *limits), dtype)

    return call


def _unpack(dtype: str, scalar: str) -> Callable[[Value], Array]:
    split = _split(dtype)
    return lambda value: split(value).astype(SCALARS[scalar])


def _pack_norm(dtype: str, scale: int, low: float) -> Callable[[Value], Array]:
    def call(value: Value) -> Array:
        (given,) = alike(value)
        clamped = np.fmin(np.fmax(given, np.float32(low)), np.float32(1))
        return _joined(np.floor(np.float32(0.5) + np.float32(scale) * clamped), dtype)

    return call


def _unpack_norm(dtype: str, scale: int) -> Callable[[Value], Array]:
    split = _split(dtype)
    return lambda value: np.maximum(split(value).astype(np.float32) / np.float32(scale), np.float32(-1))


def _dot4(dtype: str, result: str) -> Callable[[Value, Value], Array]:
    split = _split(dtype)
    return lambda a, b: sum_of(list(split(a).astype(result) * split(b).astype(result)))


PACKING: dict[str, Callable[..., Value]] = {
    "pack4xI8": _pack("i1", "i32", None), "pack4xU8": _pack("u1", "u32", None),
    "pack4xI8Clamp": _pack("i1", "i32", (-128, 127)), "pack4xU8Clamp": _pack("u1", "u32", (0, 255)),
    "unpack4xI8": _unpack("i1", "i32"), "unpack4xU8": _unpack("u1", "u32"),
    "pack4x8snorm": _pack_norm("i1", 127, -1), "pack4x8unorm": _pack_norm("u1", 255, 0),
    "pack2x16snorm": _pack_norm("i2", 32767, -1), "pack2x16unorm": _pack_norm("u2", 65535, 0),
    "unpack4x8snorm": _unpack_norm("i1", 127), "unpack4x8unorm": _unpack_norm("u1", 255),
    "unpack2x16snorm": _unpack_norm("i2", 32767), "unpack2x16unorm": _unpack_norm("u2", 65535),
    "pack2x16float": lambda value: _joined(alike(value)[0], "f2"), "unpack2x16float": _unpack("f2", "f32"),
    "dot4I8Packed": _dot4("i1", "i4"), "dot4U8Packed": _dot4("u1", "u4"),
}  # fmt: skip
