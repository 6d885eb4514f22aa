"""Options and arguments of operators: their declared kinds, and the conversion of a caller's values to canonical form."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from itertools import islice
from typing import Any, Literal, cast

import numpy as np

from ..core.data_types import DATA_TYPES
from ..core.errors import quoted

REQUIRED: Any = object()
"""Default of an argument that must be given."""

MAX_ITEMS = 2**16
"""The maximum number of items of a list, far above the specification's limits. It stops the conversion of endless iterables."""

AttrKind = Literal[
    "uint", "int", "uints", "bool", "float", "floats", "number", "enum", "data_type", "splits", "activations", "made"
]
Fail = Callable[..., Exception]
"""Returns the error to raise: `fail(rule, got=..., allowed=...)`."""


@dataclass(frozen=True)
class Attr:
    """One argument or option of an operator.

    Attributes:
        name: the Python name. The specification's name is its camelCase form.
        kind: the kind of the accepted values. A `uint` is a range-enforced unsigned long, and `uints` is a list of them. A
            `float` is a finite number, and `floats` is a list of them. A `number` is any int or float, including NaN and
            infinities. `splits` is an unsigned int or a list of them. `activations` is a list of operator names, or of pairs
            of an operator name and its options. `made` is a value that the builder's method creates and validates itself.
        default: the value if the caller gives none. `REQUIRED` means that the caller must give a value. None means absent.
        allowed: the values of an `enum` or `data_type`, or the names among `activations`.
    """

    name: str
    kind: AttrKind
    default: Any = REQUIRED
    allowed: tuple[str, ...] = ()

    def convert(self, value: Any, fail: Fail) -> Any:
        """Return the canonical form of `value`: ints, floats, bools, strings, tuples of ints, of pairs of name and options."""
        if value is None:
            if self.default is REQUIRED:
                raise fail(f"{self.name} is required", got="None")
            return self.default
        return _CONVERTERS[self.kind](self, value, fail)


_HINTS = {
    "axis": "An axis counts from the first dimension, which is 0",
    "new_shape": "State the size of each dimension: WebNN infers none",
}
"""The next step for numbers that numpy accepts and WebNN does not, by name of the argument."""


def _uint(attr: Attr, value: Any, fail: Fail) -> int:
    number = _integer(attr, value, fail)
    if not 0 <= number <= 2**32 - 1:
        hint = _HINTS.get(attr.name, "")
        raise fail(f"{attr.name} must be an unsigned 32-bit integer", got=quoted(value), allowed="0..4294967295", hint=hint)
    return number


def _int(attr: Attr, value: Any, fail: Fail) -> int:
    number = _integer(attr, value, fail)
    if not -(2**31) <= number <= 2**31 - 1:
        raise fail(f"{attr.name} must be a signed 32-bit integer", got=quoted(value), allowed="-2147483648..2147483647")
    return number


def _scalar(value: Any) -> int | float | None:
    """Return a Python or numpy number as an int or float, or None for any other value, booleans included."""
    plain = cast("Any", value).item() if isinstance(value, np.generic) else value
    return None if isinstance(plain, bool) or not isinstance(plain, int | float) else plain


def _integer(attr: Attr, value: Any, fail: Fail) -> int:
    # JavaScript accepts integral floats, too. A fraction is more likely a mistake than a request to truncate.
    number = _scalar(value)
    if number is None:
        raise fail(f"{attr.name} must be an integer", got=f"{quoted(value)} ({type(value).__name__})")
    if isinstance(number, float) and not number.is_integer():
        raise fail(f"{attr.name} must be an integer", got=quoted(value))
    return int(number)


def _uints(attr: Attr, value: Any, fail: Fail) -> tuple[int, ...]:
    return tuple(_uint(attr, item, fail) for item in list_items(attr, value, "unsigned integers", fail))


def list_items(attr: Attr, value: Any, kind: str, fail: Fail) -> list[Any]:
    """Return the items of the list that a caller gave for `attr`. The error message names `kind` as their expected kind."""
    # Sets have no order. A caller who gives a string or a mapping hardly means its items.
    ordered = not isinstance(value, str | bytes | bytearray | Mapping | AbstractSet)
    try:
        items: list[Any] | None = list(islice(iter(value), MAX_ITEMS + 1)) if ordered else None
    except TypeError:
        items = None
    if items is None:
        raise fail(f"{attr.name} must be a list of {kind}", got=f"{quoted(value)} ({type(value).__name__})")
    if len(items) > MAX_ITEMS:
        raise fail(f"{attr.name} has too many items", got=quoted(value), allowed=f"at most {MAX_ITEMS} items")
    return items


def _splits(attr: Attr, value: Any, fail: Fail) -> int | tuple[int, ...]:
    is_list = isinstance(value, Sequence | np.ndarray) and not isinstance(value, str | bytes)
    return _uints(attr, value, fail) if is_list else _uint(attr, value, fail)


def _bool(attr: Attr, value: Any, fail: Fail) -> bool:
    try:
        return bool(value)
    except Exception:
        # Arrays of several elements have no truth value.
        raise fail(f"{attr.name} must be a boolean", got=f"{quoted(value)} ({type(value).__name__})") from None


def _number(attr: Attr, value: Any, fail: Fail) -> int | float:
    number = _scalar(value)
    if number is None:
        raise fail(f"{attr.name} must be a number", got=f"{quoted(value)} ({type(value).__name__})")
    return number


def _float(attr: Attr, value: Any, fail: Fail) -> float:
    number = _number(attr, value, fail)
    try:
        number = float(number)
    except OverflowError:
        number = math.inf
    if not math.isfinite(number):
        raise fail(f"{attr.name} must be finite", got=quoted(value))
    return number


def _floats(attr: Attr, value: Any, fail: Fail) -> tuple[float, ...]:
    return tuple(_float(attr, item, fail) for item in list_items(attr, value, "numbers", fail))


def _enum(attr: Attr, value: Any, fail: Fail) -> str:
    if not isinstance(value, str) or value not in attr.allowed:
        # pywebnn's programs look for "Invalid layout" and the like.
        raise fail(f"Invalid {attr.name}", got=quoted(value), allowed=", ".join(attr.allowed))
    return str(value)


def _activations(attr: Attr, value: Any, fail: Fail) -> tuple[tuple[str, tuple[tuple[str, Any], ...]], ...]:
    found: list[tuple[str, tuple[tuple[str, Any], ...]]] = []
    for item in list_items(attr, value, "activations", fail):
        if isinstance(item, tuple):
            name, options = cast("tuple[str, Mapping[str, Any]]", item)
            found.append((name, tuple(sorted(options.items()))))
        else:
            found.append((_enum(attr, item, fail), ()))
    return tuple(found)


def _data_type(attr: Attr, value: Any, fail: Fail) -> str:
    allowed = attr.allowed or tuple(DATA_TYPES)
    if not isinstance(value, str) or value not in allowed:
        raise fail(f"{attr.name} must be a data type", got=quoted(value), allowed=", ".join(allowed))
    return str(value)


_CONVERTERS: dict[str, Callable[[Attr, Any, Fail], Any]] = {
    "uint": _uint,
    "int": _int,
    "uints": _uints,
    "splits": _splits,
    "bool": _bool,
    "number": _number,
    "float": _float,
    "floats": _floats,
    "enum": _enum,
    "data_type": _data_type,
    "activations": _activations,
    "made": lambda attr, value, fail: value,
}
