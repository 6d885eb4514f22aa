"""The registry of TFLite's operators: one entry with versions, notes and functions for each."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from webnn_wgpu import MLOperand

from ...common.held import Array
from ...common.stages import Inline
from ..tensors import TfliteNode, TfliteTensor, TfliteValue

if TYPE_CHECKING:
    from ..call import NodeFacts, TfliteCall


TfliteInline = Inline[TfliteValue, TfliteNode]
Result = MLOperand | TfliteTensor | TfliteInline | Sequence[MLOperand | TfliteTensor | None] | None
Lower = Callable[["TfliteCall"], Result]
HostFunction = Callable[["NodeFacts", Sequence[Array | None]], Sequence[Array]]


@dataclass(frozen=True, kw_only=True)
class TfliteHandler:
    """The functions of an operator.

    Attributes:
        name: the operator's name, for custom operators as files have it.
        version: the newest supported version.
        custom: whether it is a custom operator.
        lower: builds the operator on the device. None for operators of the host.
        host: evaluates the operator on the host. None for operators of the device.
        ranks: the least and the greatest rank of inputs, by position.
        folds: whether a call with known inputs is evaluated when the graph is compiled.
        empty: whether it supports inputs without elements.
        doubles: whether it supports float64.
        note: the treatment of the operator, for the documentation.
    """

    name: str
    version: int = 1
    custom: bool = False
    lower: Lower | None = None
    host: HostFunction | None = None
    ranks: Mapping[int, tuple[int, int]] = field(default_factory=dict[int, tuple[int, int]])
    folds: bool = True
    empty: bool = False
    doubles: bool = False
    note: str = ""


_HANDLERS: dict[tuple[str, bool], TfliteHandler] = {}


def _add(names: Mapping[str, int], options: Mapping[str, Any]) -> None:
    for name, version in names.items():
        key = (name, bool(options.get("custom")))
        assert key not in _HANDLERS, f"{name} is declared twice"
        _HANDLERS[key] = TfliteHandler(name=name, version=version, **options)


def lowers(names: Mapping[str, int] | None = None, **options: Any) -> Callable[[Lower], Lower]:
    """Register a function that builds operators on the device.

    Args:
        names: the operators and their newest versions.
        options: further attributes of `TfliteHandler`, and operators without a version, whose newest one is 1: `ABS=5`.
    """
    named = {n: options.pop(n) for n in [*options] if n.isupper()}

    def register(lower: Lower) -> Lower:
        _add({**(names or {}), **named}, {"lower": lower, **options})
        return lower

    return register


def hosted(names: Mapping[str, int] | None = None, **options: Any) -> Callable[[HostFunction], HostFunction]:
    """Register a function that evaluates operators on the host, as `lowers` does."""
    named = {n: options.pop(n) for n in [*options] if n.isupper()}

    def register(host: HostFunction) -> HostFunction:
        _add({**(names or {}), **named}, {"host": host, **options})
        return host

    return register


def handler(name: str, custom: bool = False) -> TfliteHandler | None:
    """Return the handler of an operator, or None."""
    return _HANDLERS.get((name, custom))


def handlers() -> list[TfliteHandler]:
    """Return the handlers of all operators by name, those of custom operators last."""
    return sorted(_HANDLERS.values(), key=lambda h: (h.custom, h.name))
