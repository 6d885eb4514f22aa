"""Invalid uses beyond the rules: of every parameter of every operator, values that it cannot take, and calls that do not fit.

Everything is derived from the table of operators and the valid call of each, in a fixed order.
"""

from __future__ import annotations

import datetime
import decimal
import fractions
import inspect
import itertools
import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from webnn_wgpu.api.operators import Operators
from webnn_wgpu.core.data_types import ANY, MAX_RANK
from webnn_wgpu.core.names import snake_case
from webnn_wgpu.ir.types import TensorType

from .calls import ABSENT, ALIASES, BASES, PACKED, Activation, Operand, changed

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping


class Mute:
    """An object whose repr fails, as does its truth value."""

    def __repr__(self) -> str:
        raise RuntimeError("no words")

    def __bool__(self) -> bool:
        raise RuntimeError("neither true nor false")


@dataclass(frozen=True)
class Misuse:
    """One invalid call.

    Attributes:
        op: the operator.
        what: what is wrong with it, for a person.
        keywords: arguments by name, with stand-ins for operands.
        blamed: parameters that the message must name; empty where it is the call as a whole.
        args: arguments by position.
        says: what the message must contain besides.
    """

    op: str
    what: str
    keywords: Mapping[str, Any] = field(default_factory=dict[str, Any])
    blamed: tuple[str, ...] = ()
    args: tuple[Any, ...] = ()
    says: str = ""


NAN, INF = math.nan, math.inf
HUGE = 10**5000
NO_NUMBERS: tuple[Any, ...] = (
    *("1", "", b"1", True, np.False_, 1j, np.complex64(1), np.str_("1"), [1], [], {}, object(), Mute(), print, int),
    *(np.array([1, 2]), np.array(1), np.datetime64("2024-04-13"), datetime.date(2024, 4, 13), np.void(b"1")),
    *(decimal.Decimal(1), fractions.Fraction(1, 2), slice(1), ..., Operand("float32[]")),
)
"""What is no number, booleans and arrays among it."""

NO_INTEGERS = (*NO_NUMBERS, 0.5, -0.5, NAN, INF, -INF, np.float16(0.5), np.float32("nan"), np.float64(1e-300))
NO_UNSIGNED = (*NO_INTEGERS, -1, -1.0, 2**32, -(2**63), 2**64, HUGE, -HUGE, 1e300, np.int8(-1), np.int64(-(2**63)))
NO_SIGNED = (*NO_INTEGERS, 2**31, -(2**31) - 1, HUGE, np.int64(2**31), np.uint64(2**64 - 1))
NOT_FINITE = (*NO_NUMBERS, NAN, INF, -INF, np.float16("inf"), np.float32("nan"), HUGE, -HUGE)
NO_LISTS: tuple[Any, ...] = (
    *(1, 2.5, True, "12", b"\x01", bytearray(2), {0: 1}, {1}, frozenset(), np.array(1), np.float32(1), object(), Mute(), len),
    *(HUGE, NAN, range, ..., Operand("float32[2]")),
)
"""What is no list; a string, a set and a mapping do not pass for one."""

NO_ITEMS = (*(v for v in NO_UNSIGNED if not isinstance(v, Operand)), None)
NO_OPERANDS: tuple[Any, ...] = (
    *(0, 1.5, True, "x", b"x", [1.0], (), object(), Mute(), HUGE, NAN, len, np.float32(1), np.array(None), range(3), ...),
    *(np.zeros((2, 3)), [Operand("float32[2, 3]")], TensorType("float32", (2, 3)), Activation("relu")),
)
NO_NAMES: tuple[Any, ...] = (
    *("", "nonsense", " ", "\u202eesrever", "\x00", "x" * 9999, 0, 1.5, True, b"x", [], ["x"], object(), Mute(), HUGE),
    *(np.str_("no"), np.float32, np.dtype("float32"), np.zeros(2)),
)
NO_TRUTHS: tuple[Any, ...] = (np.zeros(2), np.array([True, False]), Mute())
NO_LABELS: tuple[Any, ...] = (0, 1.5, True, b"x", ["x"], object(), Mute(), HUGE, np.zeros(2), Operand("float32[]"))
NO_OPTIONS: tuple[Any, ...] = (0, 1.5, True, "label", [("label", "x")], object(), Mute(), HUGE, np.zeros(2))
UNKNOWN = ("nonsense", "Inputs_", "axis_", "a b", "", "self", "\u202e", "__class__", "kernel_size", "x" * 3000)


def endless() -> Iterator[int]:
    return itertools.repeat(0)


def _value(op: str, name: str, given: Any, what: str) -> Misuse:
    # argMax and argMin take one of the two.
    other = {"axis": ABSENT} if name == "axes" and "axis" in BASES[op] else {}
    return Misuse(op, f"{name}: {what}", changed(op, {**other, name: given}), (name,))


def _each(op: str, name: str, values: tuple[Any, ...], what: str) -> Iterator[Misuse]:
    return (_value(op, name, value, what) for value in values)


# operands ---------------------------------------------------------------------------------------------------------------


FREE = {
    *(("conv2d", "input"), ("convTranspose2d", "input"), ("convTranspose2d", "filter"), ("instanceNormalization", "input")),
    *(("gather", "input"), ("gather", "indices"), ("gatherND", "input"), ("matmul", "b")),
}
"""Operands whose last dimension may have any size beside the others."""


def operand_misuses(entry: Mapping[str, Any], operand: Mapping[str, Any]) -> Iterator[Misuse]:
    op, name = entry["name"], operand["python"]
    given = BASES[op][name]
    several = isinstance(given, list)
    for value in NO_OPERANDS:
        yield _value(op, name, [given[0], value] if several else value, "no operand")
    if several:
        for value in (*NO_LISTS, endless()):
            yield Misuse(op, "no list of operands", changed(op, {name: value}), (), says=name)
        return
    if operand["required"] and not is_activation(op):
        yield _value(op, name, None, "None")
        yield Misuse(op, f"{name}: left out", changed(op, {name: ABSENT}), (), says=f"'{name}'")
    # A data type that an operand may have alone still differs from the others'.
    limits = operand.get("limits_2026") or {}
    types = limits.get("allowed_dtypes", {})
    own = types.get("list", ()) if "same_as" not in types else (given.type.data_type,)
    for data_type in ANY:
        if data_type not in (own or ("uint8",)):
            yield _value(op, name, given.of(data_type), "data type")
    if op != "dequantizeLinear":
        for data_type in PACKED:
            yield _value(op, name, given.of(data_type), "data type")
    rank = limits.get("allowed_rank") or {}
    for r in range(MAX_RANK + 1):
        if r < rank.get("min", 0) or r > (rank.get("max") or MAX_RANK):
            yield _value(op, name, given.ranked(r), "rank")
    if len(entry["operands"]) > 1 and (op, name) not in FREE:
        *outer, last = given.type.shape
        yield _value(op, name, given.shaped(*outer, last + 7919), "shape")


# arguments and options --------------------------------------------------------------------------------------------------

FIXED = {
    *("padding", "strides", "dilations", "window_dimensions", "output_padding", "output_sizes", "sizes", "scales", "starts"),
    *("beginning_padding", "ending_padding", "permutation", "repetitions", "new_shape", "splits", "activations"),
}
"""Lists whose number of items is given."""


def parameter_misuses(entry: Mapping[str, Any], parameter: Mapping[str, Any]) -> Iterator[Misuse]:
    op, name, kind = entry["name"], parameter["python"], parameter["type"]
    if parameter.get("required") and not (name == "axis" and op in ("argMax", "argMin", "softmax")):
        yield _value(op, name, None, "None")
        yield Misuse(op, f"{name}: left out", changed(op, {name: ABSENT}), (), says=name)
    if "activations" == name:
        yield from list_misuses(entry, name, (*NO_NAMES, None))
    elif kind.startswith("MLActivation"):
        yield from _each(op, name, (*NO_NAMES, len, Operand("float32[]"), ["relu"]), "no activation")
    elif kind.startswith("MLOperand") and kind != "MLOperandDataType":
        return
    elif kind in ("enum", "MLOperandDataType") or name == "mode":
        # The two versions have different modes of padding.
        allowed = parameter["allowed"]["2024"] if op == "pad" else parameter["allowed"]
        near = [v.upper() for v in allowed] + [f"{allowed[0]} ", allowed[0][:-1], allowed[0].encode()]
        yield from _each(op, name, (*NO_NAMES, *near), "no such name")
    elif kind == "bool":
        yield from _each(op, name, NO_TRUTHS, "no truth value")
    elif kind.startswith("list[int]") or kind.startswith("int or list"):
        yield from list_misuses(entry, name, NO_ITEMS)
    elif kind.startswith("list[float]"):
        yield from list_misuses(entry, name, (*(v for v in NOT_FINITE if not isinstance(v, Operand)), None))
    elif kind.startswith("int (signed)"):
        yield from _each(op, name, NO_SIGNED, "no signed integer")
    elif kind.startswith("int"):
        yield from _each(op, name, NO_UNSIGNED, "no unsigned integer")
        if name == "axis":
            yield from _each(op, name, (100, 2**31, 2**32 - 1, np.uint32(7)), "out of range")
    elif kind.startswith("number"):
        yield from _each(op, name, NO_NUMBERS, "no number")
    elif kind.startswith("float"):
        yield from _each(op, name, NOT_FINITE, "no finite number")
    else:
        raise AssertionError(f"{op}: nothing is known of {kind}")


def list_misuses(entry: Mapping[str, Any], name: str, no_items: tuple[Any, ...]) -> Iterator[Misuse]:
    op = entry["name"]
    valid = BASES[op].get(name) or [1, 1]
    # A number alone is the number of splits.
    yield from _each(op, name, tuple(v for v in NO_LISTS if name != "splits" or not isinstance(v, int | np.float32)), "no list")
    for item in no_items:
        yield _value(op, name, [item, *valid[1:]], "no such item")
    yield _value(op, name, [valid], "nested list")
    yield _value(op, name, [*valid[:-1], (valid[-1],)], "nested tuple")
    yield _value(op, name, np.array([valid]), "array of two dimensions")
    yield _value(op, name, np.array([f"{v}x" for v in valid]), "array of strings")
    yield _value(op, name, endless(), "endless")
    yield _value(op, name, [valid[0]] * 100_000, "huge list")
    if name in FIXED:
        yield _value(op, name, [*valid, *valid, valid[0]], "wrong length")
        yield _value(op, name, np.array([valid[0]] * 11), "wrong length")
    if name == "axes":
        yield _value(op, name, [valid[0], valid[0]], "duplicate")
        yield _value(op, name, (valid[0], 99), "out of range")
        yield _value(op, name, np.array([valid[0], valid[0]], np.uint8), "duplicate")


# calls as a whole -------------------------------------------------------------------------------------------------------


def is_activation(op: str) -> bool:
    """Whether the operator may be called without its operand."""
    return (
        inspect.signature(getattr(Operators, snake_case(ALIASES.get(op, op)))).parameters["input"].default is None
        if ("input" in BASES[op])
        else False
    )


def camel(name: str) -> str:
    head, *tail = name.split("_")
    return head + "".join(word.title() for word in tail)


def call_misuses(entry: Mapping[str, Any]) -> Iterator[Misuse]:
    op = entry["name"]
    base = BASES[op]
    for name in UNKNOWN:
        yield Misuse(op, "unknown argument", {**base, name: 1}, (), says="unknown option")
        yield Misuse(op, "unknown option", {**base, "options": {name: 1}}, (), says="unknown option")
    for value in NO_LABELS:
        yield Misuse(op, "label", {**base, "label": value}, (), says="label must be a string")
    for value in NO_OPTIONS:
        yield Misuse(op, "options", {**base, "options": value}, (), says="options must be a mapping")
    yield Misuse(op, "too many arguments", {}, (), tuple([*base.values()] * 9), says="too many positional arguments")
    yield Misuse(op, "an option for an operand", base, (), ({"input": 1},), says="unknown option")
    first = next(iter(base))
    yield Misuse(op, "an operand twice", base, (), (base[first],), says=f"'{first}'")
    options = {p["python"]: p["type"] for p in entry["options"]}
    for name in base:
        if name in options and not options[name].startswith("ML"):
            yield Misuse(op, "an option twice", {**base, "options": {name: "other"}}, (name,), says="given twice")
            if camel(name) != name:
                yield Misuse(op, "two spellings", {**base, camel(name): "other"}, (name,), says="given twice")


def misuses(entry: Mapping[str, Any]) -> Iterator[Misuse]:
    """All invalid uses of an operator."""
    operands = [o for o in entry["operands"] if o["python"] in BASES[entry["name"]]]
    for operand in operands:
        yield from operand_misuses(entry, operand)
    for parameter in (*entry["args"], *entry["options"]):
        if parameter["python"] not in ("label", *(o["python"] for o in operands)):
            yield from parameter_misuses(entry, parameter)
    yield from call_misuses(entry)
