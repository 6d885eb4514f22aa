"""Calls of every operator that exporters write: those of `tests.kernels.operators`, and one of each further extension."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING

from tests.interop import exact
from tests.kernels import operators

if TYPE_CHECKING:
    from tests.kernels.operators import Call


WEIGHTS = {"x.gather_block_quantized": frozenset({0, 2, 3}), "x.matmul_nbits": frozenset({1, 2, 3})}
"""The operands that must be constants, because exporters dequantize them."""


def _exported(call: Call) -> Call:
    return replace(call, constants=WEIGHTS.get(call.name, call.constants))


@cache
def calls() -> tuple[Call, ...]:
    """Return calls of every operator but `wgslOp`, which has no form in a file."""
    found = operators.calls()
    named = {call.name for call in found} | {"wgslOp"}
    return (*found, *(_exported(of_operator[0]) for name, of_operator in exact.calls().items() if name not in named))


def first_calls() -> dict[str, Call]:
    """Return the first call of each operator, by its name."""
    return {call.name: call for call in reversed(calls())}
