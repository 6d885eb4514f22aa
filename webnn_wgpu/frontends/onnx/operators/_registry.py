"""Which function lowers which ONNX operator."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import onnx_ir

from webnn_wgpu import MLOperand

from ..tensors import OnnxTensor
from ..types import Array

if TYPE_CHECKING:
    from ..call import NodeCall

MICROSOFT = "com.microsoft"


@dataclass
class Inline:
    """Nodes to lower in place of a node.

    Attributes:
        nodes: the nodes, in topological order.
        outputs: values that stand for the node's outputs.
        aliases: values that stand for others, such as a body's inputs.
        known: values that are not the result of a node, and their elements.
    """

    nodes: Sequence[onnx_ir.Node]
    outputs: Sequence[onnx_ir.Value]
    aliases: Mapping[onnx_ir.Value, onnx_ir.Value] = field(default_factory=dict[onnx_ir.Value, onnx_ir.Value])
    known: Mapping[onnx_ir.Value, Array] = field(default_factory=dict[onnx_ir.Value, Array])


Result = MLOperand | OnnxTensor | Inline | Sequence[MLOperand | OnnxTensor | None]
Lower = Callable[["NodeCall"], Result]
Ranks = Mapping[int, Sequence[int]]

IMAGES = range(3, 65)
"""Ranks of batches of images with channels, of one spatial dimension and more."""
SOME = range(1, 65)
"""Ranks of everything but scalars."""


@dataclass(frozen=True, kw_only=True)
class Handler:
    """How an operator is lowered.

    Attributes:
        lower: builds the operator; called with a `NodeCall`.
        since: first version of the operator set that it serves.
        empty: whether it copes with inputs of no elements.
        moves: whether results are copies of inputs' elements, hence exact in any type.
        folds: whether a call with known inputs may be evaluated by the host when the graph is compiled. Not where `onnx`'s
            reference implementation gives something else than the operator, for some attributes or versions of it.
        ranks: the ranks that inputs may have, by position; other inputs may have any.
    """

    lower: Lower
    since: int = 1
    empty: bool = False
    moves: bool = False
    folds: bool = True
    ranks: Ranks = field(default_factory=dict[int, Sequence[int]])

    def fault(self, inputs: Sequence[OnnxTensor | None]) -> str:
        """Return which input has a rank that the operator does not take; "" if none has."""
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
    """Register a function as what lowers operators, from a version of the operator set on.

    Args:
        names: operators of `domain`.
        since: first version that the function serves; the next registered one takes over from its own.
        domain: "" for ai.onnx.
        empty: see `Handler`; so too `moves` and `folds`.
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
    """Return what lowers an operator of a version of its operator set; None if nothing does."""
    return next((h for h in _HANDLERS.get((domain, name), ()) if h.since <= version), None)
