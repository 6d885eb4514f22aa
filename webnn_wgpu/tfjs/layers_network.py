"""The layers of a model in a graph under construction, with weights that are operands."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from webnn_wgpu import MLGraphBuilder, MLOperand, NotSupportedError
from webnn_wgpu.frontends.tfjs.layers import Flow, run_model
from webnn_wgpu.frontends.tfjs.tensors import TfjsGraph, TfjsNode

MOVING = ("moving_mean", "moving_variance")
"""The weights of batch normalization that no gradient changes."""


@dataclass
class Network:
    """The layers of a model in a graph: the scope of `run_model`.

    Attributes:
        builder: the builder of the graph.
        weights: the weights as operands, by the names that layers give them.
        name: the name of the model in messages.
        key: the key of random numbers. None if the model only predicts.
        updates: new values of weights that no gradient changes.
    """

    builder: MLGraphBuilder
    weights: Mapping[str, MLOperand]
    name: str
    random: MLOperand | None = None
    updates: dict[str, MLOperand] = field(default_factory=dict[str, MLOperand])
    drawn: int = 0

    @property
    def training(self) -> Network | None:
        """The training. None if the model only predicts."""
        return None if self.random is None else self

    def weight(self, path: str) -> MLOperand | None:
        """Return a weight, or None if the model has none of the name."""
        return self.weights.get(path)

    def constant(self, array: NDArray[Any]) -> MLOperand:
        """Return a constant."""
        return self.builder.constant(np.ascontiguousarray(array).reshape(array.shape))

    def refusal(self, kind: str, label: str, reason: str) -> NotSupportedError:
        """Return the error of a layer that cannot run."""
        return NotSupportedError(f"{self.name}: layer '{label}' cannot run: {reason}", operator=kind, label=label)

    def key(self) -> MLOperand:
        """Return a key of random numbers that no other layer has."""
        assert self.random is not None
        self.drawn += 1
        return self.builder.ext.bitwise_xor(self.random, self.constant(np.array([0, self.drawn], np.uint32)))

    def update(self, path: str, value: MLOperand) -> None:
        """Give a weight that no gradient changes a new value after the step."""
        self.updates[path] = value

    def outputs(self, graph: TfjsGraph, inputs: Sequence[MLOperand]) -> list[MLOperand]:
        """Add the layers of a model and return its outputs."""
        return [flow.operand for flow in run_model(self, graph, [Flow(x) for x in inputs])]


def places_of(node: TfjsNode) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield the beginnings of the names of a layer's weights, with the configurations that speak about them."""
    path = node.path or node.name
    yield from _places(node.op, path, node.attributes)


def _places(kind: str, path: str, config: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    inner: Any = config.get("layer") or config.get("cell")
    entry = cast("dict[str, Any]", inner) if isinstance(inner, dict) else {}
    found: Any = entry.get("config")
    if not isinstance(found, dict):
        yield path, config
        return
    own = cast("dict[str, Any]", found)
    inside = str(entry.get("class_name", ""))
    if kind == "Bidirectional":
        for prefix in ("forward", "backward"):
            yield from _places(inside, f"{path}/{prefix}_{own.get('name', '')}", own)  # pyright: ignore[reportUnknownMemberType, reportUnknownArgumentType]
    elif inside == "StackedRNNCells":
        for number, cell in enumerate(own.get("cells") or []):  # pyright: ignore[reportUnknownMemberType, reportUnknownArgumentType, reportUnknownVariableType]
            yield f"{path}/RNNCell_{number}", cell.get("config") or {}  # pyright: ignore[reportUnknownMemberType]
    else:
        yield from _places(inside, path, own)  # pyright: ignore[reportUnknownArgumentType]


def regularizer_of(config: Mapping[str, Any], weight: str) -> tuple[float, float]:
    """Return the factors of absolute values and of squares of a weight in the loss."""
    name = {"recurrent_kernel": "recurrent", "depthwise_kernel": "depthwise", "pointwise_kernel": "pointwise"}.get(
        weight, weight
    )
    entry: Any = config.get(f"{name}_regularizer")
    own: Any = entry.get("config") if isinstance(entry, dict) else None  # pyright: ignore[reportUnknownVariableType, reportUnknownMemberType]
    if not isinstance(own, dict):
        return 0.0, 0.0
    l1, l2 = own.get("l1", 0.0), own.get("l2", 0.0)  # pyright: ignore[reportUnknownVariableType, reportUnknownMemberType]
    return float(l1 or 0.0), float(l2 or 0.0)  # pyright: ignore[reportUnknownArgumentType]
