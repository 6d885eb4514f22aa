"""The registry of the functions that lower operators of graph models."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from webnn_wgpu import MLOperand

from ...common.held import BOOL, FLOAT32, DType
from ..tensors import TfjsInline, TfjsTensor

if TYPE_CHECKING:
    from ..call import TfjsCall

INT32 = np.dtype(np.int32)
LOGICAL = {"uint8": BOOL, "float32": FLOAT32, "int32": INT32, "int64": INT32, "uint32": INT32}
"""TensorFlow.js's types by those of operands. It has no other integers."""

Result = MLOperand | TfjsTensor | TfjsInline | Sequence[MLOperand | TfjsTensor]
Lower = Callable[["TfjsCall"], Result]


@dataclass(frozen=True, kw_only=True)
class Handler:
    """The function that lowers an operator.

    Attributes:
        lower: builds the operator from a `TfjsCall`.
        empty: whether it takes inputs without elements.
        folds: whether the host may evaluate a call with known inputs when the graph is compiled.
    """

    lower: Lower
    empty: bool = False
    folds: bool = True

    def result(self, call: TfjsCall, operand: MLOperand) -> DType:
        """Return the type of a result."""
        return LOGICAL.get(operand.data_type) or call.fail(f"a result of the type {operand.data_type}")


HANDLERS: dict[str, Handler] = {}
"""The operators by name."""


def lowers(*names: str, empty: bool = False, folds: bool = True) -> Callable[[Lower], Lower]:
    """Register a function that lowers operators.

    Args:
        names: the names of operators.
        empty: see `Handler`.
        folds: see `Handler`.
    """

    def register(lower: Lower) -> Lower:
        for name in names:
            assert name not in HANDLERS, f"{name} is lowered twice"
            HANDLERS[name] = Handler(lower=lower, empty=empty, folds=folds)
        return lower

    return register
