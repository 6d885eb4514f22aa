"""The choices of `LayersModel.compile`, and the training with them: one compiled step for each size of a batch."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from webnn_wgpu import InvalidStateError, MLGraphBuilder, MLOperand, MLTypeError
from webnn_wgpu.train import Optimizer, Step

from .layers_losses import LOSSES, Function, loss_of, metric_of
from .layers_network import regularizer_of
from .layers_optimizers import optimizer_of

if TYPE_CHECKING:
    from .layers import LayersModel

Array = NDArray[Any]
Evaluate = Callable[..., dict[str, float]]

KEY = "layers/key"
"""The name of the key of random numbers among the inputs of a step."""


@dataclass
class History:
    """The result of `fit`.

    Attributes:
        epoch: the numbers of the epochs.
        history: the loss and the metrics by epoch.
    """

    epoch: list[int] = field(default_factory=list[int])
    history: dict[str, list[float]] = field(default_factory=dict[str, list[float]])


@dataclass(frozen=True)
class Compiled:
    """Optimizer, losses and metrics.

    Attributes:
        optimizer: the rule of the updates.
        names: the names of the outputs.
        losses: the loss of each output.
        metrics: name, number of the output and function of each metric.
    """

    optimizer: Optimizer
    names: Sequence[str]
    losses: Sequence[str]
    metrics: Sequence[tuple[str, int, Function]]

    @staticmethod
    def of(model: LayersModel, optimizer: Any, loss: Any, metrics: Any) -> Compiled:
        """Return the choice of `LayersModel.compile`."""
        names = model.outputs
        losses = _by_output(loss, names, "loss")
        if any(not isinstance(one, str) for one in losses):
            raise MLTypeError("a loss must be the name of one", operator="compile", got=repr(loss), allowed=", ".join(LOSSES))
        found: list[tuple[str, int, Function]] = []
        nested = isinstance(metrics, Mapping)
        for number, name in enumerate(names):
            own: Any = metrics.get(name, ()) if nested else metrics  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]
            for metric in [own] if isinstance(own, str) else own or ():  # pyright: ignore[reportUnknownVariableType]
                label, function = metric_of(str(metric), loss_of(losses[number]), model.width(number))  # pyright: ignore[reportUnknownArgumentType]
                found.append((label if len(names) == 1 else f"{name}_{label}", number, function))
        return Compiled(optimizer_of(optimizer), names, [loss_of(one) for one in losses], found)

    @staticmethod
    def required(compiled: Compiled | None, operator: str) -> Compiled:
        """Return the choice.

        Raises:
            InvalidStateError: `compile` was not called.
        """
        if compiled is None:
            raise InvalidStateError("the model must be compiled first", operator=operator, hint="Call compile")
        return compiled

    def key(self) -> tuple[object, ...]:
        """Return the choices that graphs of losses and metrics depend on."""
        return ("evaluate", *self.losses, *(name for name, _, _ in self.metrics))

    def targets(self, y: Any) -> list[Array]:
        """Return the targets as one float32 array for each output.

        Raises:
            MLTypeError: missing targets.
        """
        values = [y] if len(self.names) == 1 and not isinstance(y, Mapping) else _by_output(y, self.names, "y")
        return [np.asarray(value, np.float32) for value in values]

    def results(self, b: MLGraphBuilder, outputs: Sequence[MLOperand], targets: Sequence[MLOperand]) -> dict[str, MLOperand]:
        """Return the loss and the metrics."""
        means: dict[str, MLOperand] = {}
        total: MLOperand | None = None
        for name, loss, output, target in zip(self.names, self.losses, outputs, targets, strict=True):
            each = LOSSES[loss](b, target, output)
            total = each if total is None else b.add(total, each)
            if len(self.names) > 1:
                means[f"{name}_loss"] = b.reduce_mean(each)
        assert total is not None
        found = {"loss": b.reduce_mean(total), **means}
        for label, number, function in self.metrics:
            found[label] = b.reduce_mean(function(b, targets[number], outputs[number]))
        return found


def _by_output(value: Any, names: Sequence[str], what: str) -> list[Any]:
    """Return a value for each output, from one for all, a list, or values by name."""
    if isinstance(value, Mapping):
        if missing := [name for name in names if name not in value]:
            raise MLTypeError(f"{what} must have an entry for each output", operator="compile", got=f"no {', '.join(missing)}")
        return [value[name] for name in names]
    if isinstance(value, str):
        return [value] * len(names)
    values: list[Any] = list(value) if isinstance(value, list | tuple) else [value]  # pyright: ignore[reportUnknownArgumentType]
    if len(values) != len(names):
        raise MLTypeError(
            f"{what} must have an entry for each output", operator="compile", got=str(len(values)), allowed=str(len(names))
        )
    return values


class Fit:
    """The training of a model: a step, whose weights are on the device.

    Args:
        model: the model.
        compiled: optimizer, losses and metrics.
        weights: the weights to begin with.
    """

    def __init__(self, model: LayersModel, compiled: Compiled, weights: Mapping[str, Array]) -> None:
        self._model, self._compiled = model, compiled
        self._trainable = model.trainable_weights()
        if not self._trainable:
            raise MLTypeError("a model must have a weight that trains", operator="fit", got="none")
        self._fixed = {n: a for n, a in weights.items() if a.dtype == np.float32 and n not in self._trainable}
        self._rest = {n: a for n, a in weights.items() if a.dtype != np.float32}
        self._weights = dict(weights)
        self._step: Step | None = None

    def weights(self) -> dict[str, Array]:
        """Return the present weights."""
        if self._step is None:
            return dict(self._weights)
        found = {n.removeprefix("weight/"): a for n, a in self._step.parameters().items()}
        return {**self._rest, **found, **{n.removeprefix("fixed/"): a for n, a in self._step.buffers().items()}}

    def _started(self, batch: Mapping[str, Array]) -> Step:
        """Return the step, compiled for the first batch."""
        if self._step is None:
            self._step = Step(
                self._model.context,
                self._forward,
                {f"weight/{n}": self._weights[n] for n in self._trainable},
                self._compiled.optimizer,
                inputs={name: {"dataType": str(a.dtype), "shape": list(a.shape)} for name, a in batch.items()},  # pyright: ignore[reportArgumentType]
                buffers={f"fixed/{n}": a for n, a in self._fixed.items()},
                any_batch=True,
            )
        return self._step

    def _forward(
        self, b: MLGraphBuilder, parameters: Mapping[str, MLOperand], inputs: Mapping[str, MLOperand]
    ) -> dict[str, MLOperand]:
        weights = {n: parameters[f"weight/{n}"] for n in self._trainable}
        weights |= {n: inputs[f"fixed/{n}"] for n in self._fixed}
        weights |= {n: b.constant(a) for n, a in self._rest.items()}
        x = [inputs[f"x/{i}"] for i in range(len(self._model.inputs))]
        y = [inputs[f"y/{i}"] for i in range(len(self._compiled.names))]
        outputs, updates = self._model.network(b, weights, x, inputs[KEY])
        found = self._compiled.results(b, outputs, y)
        for name, config in self._model.places():
            for factor, square in zip(regularizer_of(config, name.rpartition("/")[2]), (False, True), strict=True):
                if factor:
                    w = weights[name]
                    size = b.reduce_sum_square(w) if square else b.reduce_sum(b.abs(w))
                    found["loss"] = b.add(found["loss"], b.mul(size, b.constant("float32", factor)))
        return {**found, **{f"fixed/{n}": value for n, value in updates.items()}}

    def step(
        self, inputs: Sequence[Array], targets: Sequence[Array], draw: np.random.Generator | None = None
    ) -> dict[str, float]:
        """Train with one batch."""
        if len(inputs[0]) != len(targets[0]):
            raise MLTypeError("x and y must have as many rows", operator="fit", got=f"{len(inputs[0])} and {len(targets[0])}")
        batch = {f"x/{i}": a.view(np.uint8) if a.dtype == bool else np.ascontiguousarray(a) for i, a in enumerate(inputs)}
        batch |= {f"y/{i}": np.ascontiguousarray(a) for i, a in enumerate(targets)}
        batch[KEY] = (draw or np.random.default_rng()).integers(0, 1 << 32, 2, np.uint32)
        return self._started(batch)(batch)

    def run(
        self,
        inputs: Sequence[Array],
        targets: Sequence[Array],
        *,
        batch_size: int,
        epochs: int,
        validation_split: float,
        validation_data: tuple[Any, Any] | None,
        evaluate: Evaluate,
        shuffle: bool,
        seed: int | None,
        initial_epoch: int,
    ) -> History:
        """Train for some epochs."""
        if batch_size < 1 or not 0 <= validation_split < 1:
            got = f"batch_size {batch_size}, validation_split {validation_split}"
            raise MLTypeError("wrong options", operator="fit", got=got, allowed="1 and more, and 0 to 1")
        count = len(inputs[0])
        if any(len(a) != count for a in targets):
            raise MLTypeError("x and y must have as many rows", operator="fit", got=f"{count} and {len(targets[0])}")
        validation: tuple[Any, Any] | None = validation_data
        if validation is None and validation_split:
            # As in TensorFlow.js, the last rows.
            kept = int(count * (1 - validation_split))
            held = [a[kept:] for a in targets]
            validation = ([a[kept:] for a in inputs], held[0] if len(held) == 1 else held)
            inputs, targets, count = [a[:kept] for a in inputs], [a[:kept] for a in targets], kept
        draw, found = np.random.default_rng(seed), History()
        for epoch in range(initial_epoch, epochs):
            order = draw.permutation(count) if shuffle else np.arange(count)
            totals: dict[str, float] = {}
            for start in range(0, count, batch_size):
                rows = order[start : start + batch_size]
                results = self.step([a[rows] for a in inputs], [a[rows] for a in targets], draw)
                for name, value in results.items():
                    totals[name] = totals.get(name, 0.0) + value * len(rows)
            logs = {name: total / count for name, total in totals.items()}
            if validation is not None:
                self._model.forget_predictions()
                x, y = validation
                logs |= {f"val_{name}": value for name, value in evaluate(x, y, batch_size).items()}
            found.epoch.append(epoch)
            for name, value in logs.items():
                found.history.setdefault(name, []).append(value)
        return found

    def destroy(self) -> None:
        """Free the step."""
        if self._step is not None:
            self._step.destroy()
            self._step = None
