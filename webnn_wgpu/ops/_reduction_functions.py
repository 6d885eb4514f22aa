"""The functions of reductions: of an element, between elements, and of their total. Pools use the same functions."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Literal

from ..kernels.element import PAIRS
from ..kernels.expression import library_of
from ..kernels.notation import term
from ..kernels.terms import FunctionCall, Infix, Symbol, Term
from ._reduction import HIGHEST, LOWEST

_ELEMENT_OF = {
    "f32": "float32",
    "i32": "int32",
    "u32": "uint32",
    "i64": "int64",
    "u64": "uint64",
    "i64x2": "int64.pair",
    "u64x2": "uint64.pair",
}
X, T = Symbol("x"), Symbol("t")
_UNSIGNED = ("u32", "u64", "u64x2")
_SUFFIX = {"f32": ".0", "i32": "i", "u32": "u", "i64": "li", "u64": "lu"}


@dataclass(frozen=True, kw_only=True)
class ReductionStep:
    """The functions of one kernel call.

    Attributes:
        operation: the operation between mapped elements.
        type: the WGSL type of mapped elements.
        zero: the WGSL of the operation's neutral element.
        map, finish: the functions of an element `x` and of the total `t`. Both may use `shift`, a number per row.
        lib: the files of `shaders/lib/math` that these functions call.
    """

    operation: Literal["sum", "product", "max", "min"]
    type: str
    zero: str
    map: Term = X
    finish: Term = T
    lib: tuple[str, ...] = ()

    @property
    def element(self) -> str:
        """The element kind of totals between two calls."""
        return _ELEMENT_OF[self.type]

    def uses(self, name: str) -> bool:
        """Return whether one of the functions reads the symbol `name`."""
        return any(each == Symbol(name) for function in (self.map, self.finish) for each in function.walk())


def arithmetic(
    operation: Literal["sum", "product"], value: str, map_item: str = "x", finish: str = "t", *, lib: tuple[str, ...] = ()
) -> ReductionStep:
    """Return the functions of a sum or product.

    Args:
        operation: the operation between elements.
        value: the WGSL type of the values.
        map_item: the function of an element `x`, in WGSL's notation.
        finish: the function of the total `t`.
        lib: further files of `shaders/lib/math` that the template calls.
    """
    mapped, finished = term(map_item).rewritten(partial(_on_type, value)), term(finish)
    if value in PAIRS:
        # Reductions of integers call no other library.
        return ReductionStep(
            operation=operation,
            type=value,
            zero=f"{value}({int(operation == 'product')}u, 0u)",
            map=mapped,
            finish=finished,
            lib=("pair", value),
        )
    zero = ("0" if operation == "sum" else "1") + _SUFFIX[value]
    return ReductionStep(
        operation=operation, type=value, zero=zero, map=mapped, finish=finished, lib=(*library_of(mapped, finished), *lib)
    )


def _on_type(value: str, function: Term) -> Term:
    """Return a function for values of a WGSL type. Pairs have functions of their own, and `abs` drops from unsigned numbers."""
    match function:
        case FunctionCall("abs", (argument,)) if value in _UNSIGNED:
            return argument
        case FunctionCall("abs", arguments) if value in PAIRS:
            return FunctionCall(f"abs_{value}", arguments)
        case Infix("*", left, right) if value in PAIRS:
            return FunctionCall("mul_pair", (left, right))
        case _:
            return function


def extremum(operation: Literal["max", "min"], value: str) -> ReductionStep:
    """Return the functions of a maximum or minimum of values of a WGSL type."""
    zeros = LOWEST if operation == "max" else HIGHEST
    if value != "f32":
        return ReductionStep(operation=operation, type=value, zero=zeros[value], lib=("pair", value) if value in PAIRS else ())
    # NaN is the winner: the end of the integers that the operation prefers.
    nan = (HIGHEST if operation == "max" else LOWEST)["i32"]
    return ReductionStep(
        operation=operation,
        type="i32",
        zero=zeros["i32"],
        map=term(f"ordered_f32(x, {nan})"),
        finish=term("of_ordered_f32(t)"),
        lib=("ordered",),
    )
