"""The registry of the functions that lower ONNX operators."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import onnx_ir

from webnn_wgpu import MLOperand

from ...common.stages import Inline
from ..tensors import OnnxTensor

if TYPE_CHECKING:
    from ..call import NodeCall

MICROSOFT = "com.microsoft"


OnnxInline = Inline[onnx_ir.Value, onnx_ir.Node]
Result = MLOperand | OnnxTensor | OnnxInline | Sequence[MLOperand | OnnxTensor | None]
Lower = Callable[["NodeCall"], Result]
Ranks = Mapping[int, Sequence[int]]

IMAGES = range(3, 65)
"""Ranks of batches of images with channels, of one spatial dimension and more."""
SOME = range(1, 65)
"""All ranks except 0."""


@dataclass(frozen=True, kw_only=True)
class Handler:
    """The function that lowers an operator, and the calls that it supports.

    Attributes:
        lower: builds the operator from a `NodeCall`.
        since: the first version of the operator set that it supports.
        empty: whether it supports inputs without elements.
        moves: whether results are copies of the inputs' elements, and therefore exact in every data type.
        folds: whether the host may evaluate a call with known inputs when the graph is compiled. False where `onnx`'s reference
            implementation differs from the operator for some attributes or versions.
        ranks: the valid ranks of inputs, by position. Other inputs may have any rank.
    """

    lower: Lower
    since: int = 1
    empty: bool = False
    moves: bool = False
    folds: bool = True
    ranks: Ranks = field(default_factory=dict[int, Sequence[int]])

    def fault(self, inputs: Sequence[OnnxTensor | None]) -> str:
        """Return a description of the first input with an unsupported rank, or "" if there is none."""
        for index, allowed in self.ranks.items():
            tensor = inputs[index] if index < len(inputs) else None
            if tensor is not None and tensor.rank not in allowed:
                wanted = f"{allowed[0]} and more" if isinstance(allowed, range) else " or ".join(map(str, allowed))
                return f"input {index} has rank {tensor.rank}, not {wanted}"
        return ""


_HANDLERS: dict[tuple[str, str], list[Handler]] = {}


def lowers(
    *names: str,
    since: int = 1,
    domain: str = "",
    empty: bool = False,
    moves: bool = False,
    folds: bool = True,
    ranks: Ranks | None = None,
) -> Callable[[Lower], Lower]:
    """Register a function that lowers operators from a version of the operator set on.

    Args:
        names: the names of operators of `domain`.
        since: the first version that the function supports. The next registered function supports the versions from its own on.
        domain: the domain of the operator set, "" for ai.onnx.
        empty: see `Handler`.
        moves: see `Handler`.
        folds: see `Handler`.
        ranks: see `Handler`.
    """

    def register(lower: Lower) -> Lower:
        for name in names:
            versions = _HANDLERS.setdefault((domain, name), [])
            assert since not in (h.since for h in versions), f"{name} is lowered twice"
            versions.append(Handler(lower=lower, since=since, empty=empty, moves=moves, folds=folds, ranks=ranks or {}))
            versions.sort(key=lambda h: -h.since)
        return lower

    return register


def handler(domain: str, name: str, version: int) -> Handler | None:
    """Return the handler of an operator of a version of its operator set, or None."""
    return next((h for h in _HANDLERS.get((domain, name), ()) if h.since <= version), None)
