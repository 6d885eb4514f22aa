"""The forms of `MLGraphBuilder.constant`. Each becomes a tensor type and an array that later changes do not affect."""

from __future__ import annotations

import math
import mmap
from collections.abc import Mapping
from typing import Any, TypeAlias

import numpy as np

from ..core.data_types import CONSTANT_TYPES, PACKED_TYPES, cast_number
from ..ir.graph import Array, frozen_array
from ..ir.types import TensorType
from .arrays import Fail, as_array, failing, parse_descriptor, tensor_type, to_array, type_of_array

Typed: TypeAlias = tuple[TensorType, Array]

_ALIASES = {"type": "data_type", "dtype": "data_type", "dataType": "data_type", "buffer": "data"}
_OPTIONS = ("shape", "data_type", "data", "value", "descriptor")


def constant_of(args: tuple[Any, ...], kwargs: Mapping[str, Any], *, shape_required: bool = True) -> Typed:
    """Return the tensor type and the array of a call of `constant`.

    Args:
        args: positional arguments.
        kwargs: keyword arguments.
        shape_required: whether a descriptor must have a shape. Otherwise a missing shape means a scalar.

    Raises:
        MLTypeError: the arguments fit no form, or the data does not fit its type.
    """
    fail = failing("constant")
    options: dict[str, Any] = {}
    for key, value in kwargs.items():
        name = _ALIASES.get(key, key)
        if name not in _OPTIONS:
            raise fail(f"unknown option {key!r}", allowed=", ".join(_OPTIONS))
        options[name] = value
    if not args:
        first = next((options.pop(name) for name in ("descriptor", "value", "data") if name in options), None)
        args = (first,)
    first, *rest = args
    if isinstance(first, Mapping):
        _no_more(rest, 1, fail)
        wanted, _ = parse_descriptor(first, fail, shape_required=shape_required, allowed=CONSTANT_TYPES)
        data = rest[0] if rest else options.get("data", options.get("value"))
        return wanted, _owned(to_array(data, wanted, fail, "data"), data)
    if isinstance(first, str):
        _no_more(rest, 1, fail)
        return _scalar(first, rest[0] if rest else options.get("value"), fail)
    if _is_number(first):
        if len(rest) >= 2 and _is_number(rest[0]):
            _no_more(rest, 3, fail)
            return _sequence(first, rest[0], rest[1], rest[2] if len(rest) == 3 else options.get("data_type", "float32"), fail)
        if not options.get("shape") and (not rest or _is_data_type(rest[0])):
            _no_more(rest, 1, fail)
            return _scalar((rest[0] if rest else options.get("data_type")) or "float32", first, fail)
    _no_more(rest, 2, fail)
    shape, data_type, *_ = (*rest, None, None)
    return _array(first, options.get("shape") if shape is None else shape, data_type or options.get("data_type"), fail)


def _no_more(rest: list[Any], count: int, fail: Fail) -> None:
    if len(rest) > count:
        raise fail("too many arguments", got=f"{rest[count]!r} as argument {count + 2}")


def _is_number(value: object) -> bool:
    return isinstance(value, int | float | np.integer | np.floating) and not isinstance(value, bool)


def _is_data_type(value: object) -> bool:
    return isinstance(value, str | type | np.dtype)


def _is_list(value: object) -> bool:
    return isinstance(value, list | tuple)


def _scalar(data_type: Any, value: Any, fail: Fail) -> Typed:
    wanted = tensor_type(data_type, (), fail, CONSTANT_TYPES)
    if not _is_number(value):
        raise fail("a scalar constant needs a number", got=f"{value!r} ({type(value).__name__})")
    number: Any = np.asarray(value).item() if hasattr(value, "dtype") else value
    return wanted, frozen_array(np.asarray(cast_number(number, wanted.data_type), wanted.numpy))


def _sequence(start: Any, end: Any, step: Any, data_type: Any, fail: Fail) -> Typed:
    got = f"start={start!r}, end={end!r}, step={step!r}"
    if not all(_is_number(n) and math.isfinite(n) for n in (start, end, step)):
        raise fail("start, end and step must be finite numbers", got=got)
    if step == 0:
        raise fail("step must not be 0", got=got)
    count = math.ceil((end - start) / step)
    if count < 1:
        raise fail("the sequence has no elements", got=got)
    wanted = tensor_type(data_type, (count,), fail, CONSTANT_TYPES)
    numbers = [cast_number(start + i * step, wanted.data_type) for i in range(count)]
    return wanted, frozen_array(np.asarray(numbers, wanted.numpy))


def _array(data: Any, shape: Any, data_type: Any, fail: Fail) -> Typed:
    plain = _is_list(data) or _is_number(data)
    if plain:
        try:
            natural: Array = np.asarray(data)
        except ValueError as error:
            raise fail(f"data is no array: {error}", got=type(data).__name__) from None
        # Lists of integers become 64-bit types, as in numpy and pywebnn. numpy converts other numbers to float64.
        natural_type = {"i": "int64", "u": "uint64"}.get(natural.dtype.kind if _is_list(data) else "", "float32")
        wanted = tensor_type(data_type or natural_type, natural.shape, fail, CONSTANT_TYPES)
        array = to_array(data, wanted, fail, "data")
    else:
        array = as_array(data, fail, "data")
        wanted = type_of_array(array, fail) if data_type is None else tensor_type(data_type, array.shape, fail, CONSTANT_TYPES)
        packed = wanted.data_type in PACKED_TYPES and array.dtype == np.uint8
        if array.dtype != wanted.numpy and not packed:
            array = array.astype(wanted.numpy)
    if shape is not None:
        wanted = tensor_type(wanted.data_type, shape, fail, CONSTANT_TYPES)
        if plain and array.size == 1:
            array = np.full(wanted.shape, array.reshape(()))
    return wanted, _owned(to_array(array, wanted, fail, "data"), data)


def _owned(array: Array, data: Any) -> Array:
    """Return an array that later changes by the caller do not affect. Memory that is read-only needs no copy."""
    made_here = _is_list(data) or _is_number(data)
    return frozen_array(array if made_here or _is_immutable(array) else array.copy())


def _is_immutable(array: Array) -> bool:
    owner: Any = array
    while isinstance(owner, np.ndarray):
        if owner.flags.writeable:
            return False
        owner = owner.base
    if isinstance(owner, memoryview):
        owner = owner.obj
    if isinstance(owner, mmap.mmap):
        with memoryview(owner) as view:
            return view.readonly
    return owner is None or isinstance(owner, bytes)
