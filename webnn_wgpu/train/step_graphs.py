"""The graphs of a training step: one that updates the parameters, and one that only adds up gradients."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NoReturn, TypeAlias

from webnn_wgpu import MLContext, MLGraph, MLGraphBuilder, MLOperand, MLTypeError
from webnn_wgpu.api.progress import Progress
from webnn_wgpu.typing import MLOperandDescriptor

from .arenas import Arena
from .clipping import clipped
from .optimizers import Optimizer
from .quantity import Quantity

Operands: TypeAlias = Mapping[str, MLOperand]
Forward: TypeAlias = Callable[[MLGraphBuilder, Operands, Operands], MLOperand | Operands]

LOSS = "loss"
METRICS = "step/metrics"
FINITE = "step/finite"
"""The name of the last metric of a step with a loss scale: 1 if all gradients are finite, else 0."""

ACCUMULATED = "accumulated"
"""The slot of the sums of gradients."""


@dataclass(frozen=True, kw_only=True)
class StepGraphs:
    """Builds the graphs of a step.

    Attributes:
        context: the context of the graphs.
        forward: the network.
        shapes: the shapes of the parameters, in the order of the program.
        arenas: the tensors that hold the parameters.
        optimizer: the rule of the updates.
        inputs: the data type and shape of each input of the batch.
        accumulates: whether gradients of several batches are added up.
        scales: whether the loss has a scale.
        buffers: the shapes of the tensors that `forward` gives new contents.
    """

    context: MLContext
    forward: Forward
    shapes: Mapping[str, tuple[int, ...]]
    arenas: Sequence[Arena]
    optimizer: Optimizer
    inputs: Mapping[str, MLOperandDescriptor]
    accumulates: bool = False
    scales: bool = False
    buffers: Mapping[str, tuple[int, ...]] = field(default_factory=dict[str, tuple[int, ...]])

    def slots(self) -> Sequence[str]:
        """Return the states of each parameter, those that no checkpoint has included."""
        return (*self.optimizer.slots, *([ACCUMULATED] if self.accumulates else []))

    def scalars(self, step: int, loss_scale: float, batches: int, first: bool) -> Mapping[str, float]:
        """Return the scalars that the host computes.

        Args:
            step: the number of the step, 1 for the first one.
            loss_scale: the factor of the loss.
            batches: the number of batches of an update.
            first: whether the batch is the first one of an update.
        """
        found = dict(self.optimizer.scalars(step))
        if self.scales:
            found["loss_scale"] = loss_scale
        if self.scales or self.accumulates:
            found["share"] = 1 / (loss_scale * batches)
        return found | ({"first": float(first)} if self.accumulates else {})

    def updating(self, progress: Progress | None) -> tuple[MLGraph, Sequence[str]]:
        """Compile the graph that updates the parameters, and return it with the names of its scalar results."""
        b = MLGraphBuilder(self.context)
        network = _Network(b, self)
        metrics = dict(network.metrics)
        found = network.gradients
        if self.accumulates:
            sums = [network.state(ACCUMULATED, arena) for arena in self.arenas]
            found = [gradient + total for gradient, total in zip(found, sums, strict=True)]
        if self.scales or self.accumulates:
            found = [gradient * network.scalar("share") for gradient in found]
        finite = None
        if self.scales:
            # Products with 0 are 0, or NaN.
            first, *others = (gradient.vanishing() for gradient in found)
            finite = sum(others, first).is_zero()
            metrics[FINITE] = b.cast(finite, "float32")
        found = clipped(found, self.optimizer)
        scalars = {name: network.scalar(name) for name in self.optimizer.scalars(1)}
        updates: dict[str, Quantity] = {}
        for arena, whole, gradient in zip(self.arenas, network.wholes, found, strict=True):
            state = {slot: network.state(slot, arena) for slot in self.optimizer.slots}
            updated, after = self.optimizer.update(whole, gradient, state, scalars)
            results = {arena.name: (updated, whole)}
            results |= {state_name(slot, arena.name): (after[slot], state[slot]) for slot in self.optimizer.slots}
            updates |= {name: new if finite is None else new.where(finite, old) for name, (new, old) in results.items()}
        for name, new in network.buffers.items():
            updates[name] = new if finite is None else new.where(finite, network.held[name])
        return self._built(b, metrics, updates, progress), list(metrics)

    def accumulating(self, progress: Progress | None) -> tuple[MLGraph, Sequence[str]]:
        """Compile the graph that adds gradients to those of the batches before."""
        b = MLGraphBuilder(self.context)
        network = _Network(b, self)
        first = b.greater(network.scalar("first").operand, b.constant("float32", 0.0))
        updates: dict[str, Quantity] = {}
        for arena, gradient in zip(self.arenas, network.gradients, strict=True):
            updates[state_name(ACCUMULATED, arena.name)] = gradient.where(first, gradient + network.state(ACCUMULATED, arena))
        return self._built(b, network.metrics, updates, progress), list(network.metrics)

    def _built(
        self, b: MLGraphBuilder, metrics: Operands, updates: Mapping[str, Quantity], progress: Progress | None
    ) -> MLGraph:
        rows = [b.reshape(b.cast(value, "float32"), [1]) for value in metrics.values()]
        outputs = {METRICS: b.concat(rows, 0), **{updated_name(name): new.operand for name, new in updates.items()}}
        return b.build(outputs, aliases={updated_name(name): name for name in updates}, progress=progress)


class _Network:
    """The forward and the backward pass in a builder.

    Attributes:
        metrics: the loss and the metrics.
        wholes: the parameters, by arena.
        gradients: their gradients.
        held: the buffers.
        buffers: the next contents of those that `forward` changes.
    """

    def __init__(self, b: MLGraphBuilder, graphs: StepGraphs) -> None:
        self._b = b
        self._scalars: dict[str, Quantity] = {}
        inputs = {name: b.input(name, descriptor) for name, descriptor in graphs.inputs.items()}
        self.wholes = [Quantity(b, b.input(arena.name, [arena.size], "float32")) for arena in graphs.arenas]
        split = {
            name: part
            for arena, whole in zip(graphs.arenas, self.wholes, strict=True)
            for name, part in arena.split(b, whole.operand).items()
        }
        parameters = {name: split[name] for name in graphs.shapes}
        self.held = {name: Quantity(b, b.input(name, shape, "float32")) for name, shape in graphs.buffers.items()}
        inputs |= {name: held.operand for name, held in self.held.items()}
        results = graphs.forward(b, _Named("parameters", parameters), _Named("inputs", inputs))
        found = {LOSS: results} if isinstance(results, MLOperand) else results
        if isinstance(found, Mapping):  # pyright: ignore[reportUnnecessaryIsInstance] - callers need not be typed
            self.buffers = {
                name: Quantity(b, _checked_buffer(found[name], self.held[name])) for name in self.held if name in found
            }
            found = {name: operand for name, operand in found.items() if name not in self.held}
        self.metrics = _checked_metrics(found)
        loss = self.metrics[LOSS]
        # A seed scales all gradients, and leaves the loss itself as it is.
        seed = b.cast(self.scalar("loss_scale").operand, loss.data_type) if graphs.scales else None
        found = b.gradients(loss, list(parameters.values()), seeds=seed)
        gradients = dict(zip(parameters, found, strict=True))
        self.gradients = [Quantity(b, arena.joined(b, gradients)) for arena in graphs.arenas]

    def scalar(self, name: str) -> Quantity:
        """Return a scalar that the host computes."""
        if name not in self._scalars:
            self._scalars[name] = Quantity(self._b, self._b.input(scalar_name(name), [], "float32"))
        return self._scalars[name]

    def state(self, slot: str, arena: Arena) -> Quantity:
        """Return a state of the parameters of an arena."""
        return Quantity(self._b, self._b.input(state_name(slot, arena.name), [arena.size], "float32"))


class _Named(dict[str, MLOperand]):
    """Operands by name, which name the valid names if one is unknown."""

    def __init__(self, kind: str, operands: Operands) -> None:
        super().__init__(operands)
        self._kind = kind

    def __missing__(self, name: str) -> NoReturn:
        check_known(self._kind, [name], self)
        raise AssertionError


def state_name(slot: str, parameter: str) -> str:
    """Return the name of a state of a parameter, in the graph and in checkpoints."""
    return f"optimizer/{slot}/{parameter}"


def buffer_name(name: str) -> str:
    """Return the name of a buffer in checkpoints."""
    return f"step/buffer/{name}"


def updated_name(name: str) -> str:
    """Return the name of the output that is the next content of a tensor."""
    return f"next/{name}"


def scalar_name(name: str) -> str:
    """Return the name of a scalar of the host in the graph."""
    return f"step/{name}"


def fail(rule: str, *, label: str = "", got: str = "", allowed: str = "", hint: str = "") -> NoReturn:
    """Raise an error of a step."""
    raise MLTypeError(rule, operator="Step", label=label, got=got, allowed=allowed, hint=hint)


def check_known(kind: str, given: Mapping[str, Any] | Sequence[str], known: Mapping[str, Any]) -> None:
    """Check that names are known."""
    if unknown := [name for name in given if name not in known]:
        fail(f"{kind} must have known names", got=", ".join(map(repr, unknown)), allowed=", ".join(map(repr, known)))


def check_names(kind: str, given: Mapping[str, Any], known: Mapping[str, Any]) -> None:
    """Check that names are known, and that there are all of them."""
    check_known(kind, given, known)
    if missing := [name for name in known if name not in given]:
        fail(f"{kind} must be complete", got=f"no {', '.join(map(repr, missing))}", allowed=", ".join(map(repr, known)))


def _checked_buffer(operand: MLOperand, held: Quantity) -> MLOperand:
    """Return the next content of a buffer, which must have the shape of the last."""
    if operand.shape != held.operand.shape or operand.data_type != "float32":
        fail("buffers must keep their data type and shape", got=repr(operand), allowed=repr(held.operand))
    return operand


def _checked_metrics(metrics: Operands) -> Operands:
    """Return the results of `forward`, which must be scalars, and one of them the loss."""
    hint = 'Return the loss, or a mapping with the key "loss"'
    if not isinstance(metrics, Mapping):  # pyright: ignore[reportUnnecessaryIsInstance] - callers need not be typed
        fail("forward must return the loss", got=type(metrics).__name__, hint=hint)
    if LOSS not in metrics:
        fail("forward must return the loss", got=", ".join(map(repr, metrics)), hint=hint)
    for name, operand in metrics.items():
        if not isinstance(operand, MLOperand):  # pyright: ignore[reportUnnecessaryIsInstance] - callers need not be typed
            fail("forward must return operands", label=name, got=type(operand).__name__, allowed="MLOperand")
        if operand.shape:
            fail("the loss and metrics must be scalars", label=name, got=repr(operand), hint="Reduce it, as by `reduce_mean`")
    return metrics
