"""`Step`: a training step that is one graph."""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable, Mapping, Sequence
from types import TracebackType
from typing import Any, NoReturn, TypeAlias

import numpy as np
from numpy.typing import NDArray

from webnn_wgpu import MLContext, MLGraph, MLGraphBuilder, MLOperand, MLTensor, MLTypeError, WebNNError
from webnn_wgpu.api.progress import Progress
from webnn_wgpu.typing import MLOperandDescriptor, TensorData

from .arenas import arenas_of
from .checkpoints import Checkpoint, read_checkpoint, write_checkpoint
from .clipping import clipped
from .optimizers import Optimizer
from .quantity import Quantity

Array: TypeAlias = NDArray[Any]
Operands: TypeAlias = Mapping[str, MLOperand]
Forward: TypeAlias = Callable[[MLGraphBuilder, Operands, Operands], MLOperand | Operands]

LOSS = "loss"
METRICS = "step/metrics"


class Step:
    """A training step as one compiled graph: forward pass, backward pass, clipping, update and metrics.

    Parameters and the optimizer's states stay on the device, and are updated in place. A call uploads the batch and a few
    scalars, and reads the loss and the metrics. Few large tensors hold the parameters, so that few kernels update all of them.

    Args:
        context: the context to train on.
        forward: returns the loss, a float scalar, or a mapping with the key "loss" and further scalars as metrics. Its
            arguments are the builder, the parameters by name and the inputs by name.
        parameters: the initial parameters by name: float32 arrays. float64 is rounded to float32.
        optimizer: the rule of the updates.
        inputs: the data type and shape of each input of the batch, by name.
        progress: as for `MLGraphBuilder.build`.

    Attributes:
        context: the context.
        optimizer: the rule of the updates.
        graph: the compiled graph, for inspection.

    Raises:
        MLTypeError: a parameter that is not float32 or float64, no parameters, a loss or metric that is not a scalar, or a name
            that `forward` asks for and that does not exist.
        NotSupportedError: an operator between the parameters and the loss has no gradient.
        OutOfMemoryError: the device cannot hold the tensors.

    Example:
        >>> from webnn_wgpu import train
        >>> def forward(b, parameters, inputs):
        ...     error = b.sub(b.matmul(inputs["x"], parameters["w"]), inputs["target"])
        ...     return b.reduce_mean(b.mul(error, error))
        >>> inputs = {"x": {"dataType": "float32", "shape": [4, 2]}, "target": {"dataType": "float32", "shape": [4, 1]}}
        >>> step = train.Step(context, forward, {"w": np.zeros((2, 1))}, train.SGD(learning_rate=0.2), inputs=inputs)
        >>> rows = np.float32([[0, 1], [1, 0], [1, 1], [1, -1]])
        >>> batch = {"x": rows, "target": rows @ np.float32([[2], [-3]])}
        >>> losses = [step(batch)["loss"] for _ in range(50)]
        >>> print(losses[0], losses[-1] < 1e-6, np.round(step.parameters()["w"], 2).tolist())
        9.75 True [[2.0], [-3.0]]
        >>> step.destroy()
    """

    def __init__(
        self,
        context: MLContext,
        forward: Forward,
        parameters: Mapping[str, TensorData],
        optimizer: Optimizer,
        *,
        inputs: Mapping[str, MLOperandDescriptor],
        progress: Progress | None = None,
    ) -> None:
        initial = _arrays(parameters)
        if not initial:
            _fail("parameters must not be empty", got="no parameters", hint="Pass at least one array")
        if not isinstance(optimizer, Optimizer):  # pyright: ignore[reportUnnecessaryIsInstance] - callers need not be typed
            _fail("optimizer must be an optimizer", got=type(optimizer).__name__, allowed="an instance of train.Optimizer")
        self.context, self.optimizer = context, optimizer
        self._shapes = {name: array.shape for name, array in initial.items()}
        self._arenas = arenas_of(self._shapes)
        self._inputs = dict(inputs)
        self._steps = 0
        self.graph, self._metrics = self._build(forward, progress)
        self._tensors = {
            name: context.create_host_tensor([arena.size], "float32")
            for arena in self._arenas
            for name in (arena.name, *(_state(slot, arena.name) for slot in optimizer.slots))
        }
        # Inputs that `forward` does not use are not inputs of the graph.
        self._batch = {
            name: context.create_tensor(wanted.shape, wanted.data_type, writable=True)
            for name, wanted in self.graph.inputs.items()
            if name in self._inputs
        }
        self._scalars = {name: context.create_tensor([], "float32", writable=True) for name in optimizer.scalars(1)}
        self._results = context.create_tensor([len(self._metrics)], "float32", readable=True)
        self._write(initial)

    @property
    def steps(self) -> int:
        """The number of steps that have run."""
        return self._steps

    def __call__(self, batch: Mapping[str, TensorData]) -> dict[str, float]:
        """Run a step and wait for its result.

        Args:
            batch: the elements of each input, by name.

        Returns:
            The loss and the metrics by name, computed with the parameters before the update.

        Raises:
            MLTypeError: a missing or unknown input, or one of another shape.
            InvalidStateError: the context is lost, or the step was destroyed.
        """
        _check_names("inputs", batch, self._inputs)
        for name, tensor in self._batch.items():
            self._write_tensor(name, tensor, batch[name])
        for name, value in self.optimizer.scalars(self._steps + 1).items():
            self.context.write_tensor(self._scalars[name], value)
        tensors = {**self._batch, **self._tensors, **{_scalar(name): tensor for name, tensor in self._scalars.items()}}
        used = {name: tensors[name] for name in self.graph.inputs}
        updated = {_updated(name): tensor for name, tensor in self._tensors.items()}
        self.context.dispatch(self.graph, used, {**updated, METRICS: self._results})
        self._steps += 1
        return dict(zip(self._metrics, self.context.read_tensor(self._results).tolist(), strict=True))

    def parameters(self) -> dict[str, Array]:
        """Return the present parameters by name, as float32 arrays on the host."""
        found: dict[str, Array] = {}
        for arena in self._arenas:
            found.update(arena.arrays(self.context.read_tensor(self._tensors[arena.name])))
        return {name: found[name].copy() for name in self._shapes}

    def set_parameters(self, parameters: Mapping[str, TensorData]) -> None:
        """Replace parameters. The states of the optimizer and the number of steps stay.

        Args:
            parameters: the parameters to replace, by name.

        Raises:
            MLTypeError: an unknown name, or an array of another shape or data type.
        """
        arrays = _arrays(parameters)
        _check_known("parameters", arrays, self._shapes)
        self._write(arrays)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write parameters, states of the optimizer and the number of steps to a safetensors file.

        The parameters have their own names in the file, and the states names like `optimizer/velocity/weight`.

        Args:
            path: the file to write.

        Raises:
            NotSupportedError: the extra `safetensors` is not installed.
        """
        tensors = self.parameters()
        for arena, slot in itertools.product(self._arenas, self.optimizer.slots):
            states = arena.arrays(self.context.read_tensor(self._tensors[_state(slot, arena.name)]))
            tensors.update({_state(slot, name): array.copy() for name, array in states.items()})
        write_checkpoint(path, Checkpoint(tensors=tensors, steps=self._steps, optimizer=type(self.optimizer).__name__))

    def load(self, path: str | os.PathLike[str]) -> None:
        """Continue from a file of `save`: the next steps give the same results as those after `save`.

        Args:
            path: the file to read.

        Raises:
            FileNotFoundError: no such file.
            MLTypeError: the file is no checkpoint, or one of other parameters or of another optimizer.
            NotSupportedError: the extra `safetensors` is not installed.
        """
        found = read_checkpoint(path)
        own = type(self.optimizer).__name__
        if found.optimizer != own:
            _fail("a checkpoint must be of the step's optimizer", got=found.optimizer, allowed=own)
        _check_names("tensors of a checkpoint", found.tensors, self._all_shapes())
        self._write(found.tensors)
        self._steps = found.steps

    def destroy(self) -> None:
        """Free the graph and all tensors. Further calls have no effect."""
        self.graph.destroy()
        for tensors in (self._tensors, self._batch, self._scalars, {METRICS: self._results}):
            for tensor in tensors.values():
                tensor.destroy()

    def __enter__(self) -> Step:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.destroy()

    def __repr__(self) -> str:
        elements = sum(int(np.prod(shape)) for shape in self._shapes.values())
        return f"Step({type(self.optimizer).__name__}, {elements} weights, {self._steps} steps)"

    # the graph ----------------------------------------------------------------------------------------------------

    def _build(self, forward: Forward, progress: Progress | None) -> tuple[MLGraph, Sequence[str]]:
        """Compile the graph, and return it with the names of its scalar results."""
        b = MLGraphBuilder(self.context)
        inputs = {name: b.input(name, descriptor) for name, descriptor in self._inputs.items()}
        wholes = [b.input(arena.name, [arena.size], "float32") for arena in self._arenas]
        split = {
            name: part
            for arena, whole in zip(self._arenas, wholes, strict=True)
            for name, part in arena.split(b, whole).items()
        }
        parameters = {name: split[name] for name in self._shapes}
        results = forward(b, _Named("parameters", parameters), _Named("inputs", inputs))
        metrics = _checked_metrics({LOSS: results} if isinstance(results, MLOperand) else results)
        rows = [b.reshape(b.cast(value, "float32"), [1]) for value in metrics.values()]
        outputs = {METRICS: b.concat(rows, 0)}
        names = list(parameters)
        gradients = dict(zip(names, b.gradients(metrics[LOSS], [parameters[name] for name in names]), strict=True))
        found = clipped([Quantity(b, arena.joined(b, gradients)) for arena in self._arenas], self.optimizer)
        scalars = {name: Quantity(b, b.input(_scalar(name), [], "float32")) for name in self.optimizer.scalars(1)}
        aliases: dict[str, str] = {}
        for arena, whole, gradient in zip(self._arenas, wholes, found, strict=True):
            full = {slot: _state(slot, arena.name) for slot in self.optimizer.slots}
            state = {slot: Quantity(b, b.input(name, [arena.size], "float32")) for slot, name in full.items()}
            updated, after = self.optimizer.update(Quantity(b, whole), gradient, state, scalars)
            results = {arena.name: updated, **{full[slot]: after[slot] for slot in full}}
            outputs.update({_updated(name): result.operand for name, result in results.items()})
            aliases.update({_updated(name): name for name in results})
        return b.build(outputs, aliases=aliases, progress=progress), list(metrics)

    def _all_shapes(self) -> Mapping[str, tuple[int, ...]]:
        """Return the shapes of the parameters and their states by name."""
        states = itertools.product(self.optimizer.slots, self._shapes.items())
        return {**self._shapes, **{_state(slot, name): shape for slot, (name, shape) in states}}

    def _write(self, arrays: Mapping[str, Array]) -> None:
        """Replace parameters and states by name."""
        shapes = self._all_shapes()
        for name, array in arrays.items():
            got, allowed = f"{array.dtype}{list(array.shape)}", f"float32{list(shapes[name])}"
            if got != allowed:
                _fail("a tensor must keep its data type and shape", label=name, got=got, allowed=allowed)
        for arena, slot in itertools.product(self._arenas, ("", *self.optimizer.slots)):
            named = {name: _state(slot, name) if slot else name for name in arena.places}
            if not any(full in arrays for full in named.values()):
                continue
            tensor = self._tensors[_state(slot, arena.name) if slot else arena.name]
            whole = self.context.read_tensor(tensor)
            for name, part in arena.arrays(whole).items():
                part[...] = arrays.get(named[name], part)
            self.context.write_tensor(tensor, whole)

    def _write_tensor(self, name: str, tensor: MLTensor, data: TensorData) -> None:
        try:
            self.context.write_tensor(tensor, data)
        except WebNNError as error:
            raise error.named("Step", name) from None


class _Named(dict[str, MLOperand]):
    """Operands by name, which name the valid names if one is unknown."""

    def __init__(self, kind: str, operands: Operands) -> None:
        super().__init__(operands)
        self._kind = kind

    def __missing__(self, name: str) -> NoReturn:
        _check_known(self._kind, [name], self)
        raise AssertionError


def _state(slot: str, parameter: str) -> str:
    """Return the name of a state of a parameter, in the graph and in checkpoints."""
    return f"optimizer/{slot}/{parameter}"


def _updated(name: str) -> str:
    """Return the name of the output that is the next content of a tensor."""
    return f"next/{name}"


def _scalar(name: str) -> str:
    """Return the name of a scalar of the optimizer in the graph."""
    return f"step/{name}"


def _fail(rule: str, *, label: str = "", got: str = "", allowed: str = "", hint: str = "") -> NoReturn:
    raise MLTypeError(rule, operator="Step", label=label, got=got, allowed=allowed, hint=hint)


def _arrays(parameters: Mapping[str, TensorData]) -> dict[str, Array]:
    """Return parameters as float32 arrays."""
    found: dict[str, Array] = {}
    for name, data in parameters.items():
        array = np.asarray(data)
        if str(array.dtype) not in ("float32", "float64"):
            _fail("parameters must be float32", label=name, got=str(array.dtype), allowed="float32, float64")
        if name.startswith(("optimizer/", "step/")):
            _fail("names of parameters must not begin as those of states", got=repr(name), hint="Rename the parameter")
        found[name] = array.astype(np.float32)
    return found


def _check_known(kind: str, given: Mapping[str, Any] | Sequence[str], known: Mapping[str, Any]) -> None:
    if unknown := [name for name in given if name not in known]:
        _fail(f"{kind} must have known names", got=", ".join(map(repr, unknown)), allowed=", ".join(map(repr, known)))


def _check_names(kind: str, given: Mapping[str, Any], known: Mapping[str, Any]) -> None:
    _check_known(kind, given, known)
    if missing := [name for name in known if name not in given]:
        _fail(f"{kind} must be complete", got=f"no {', '.join(map(repr, missing))}", allowed=", ".join(map(repr, known)))


def _checked_metrics(metrics: Operands) -> Operands:
    """Return the results of `forward`, which must be scalars, and one of them the loss."""
    hint = 'Return the loss, or a mapping with the key "loss"'
    if not isinstance(metrics, Mapping):  # pyright: ignore[reportUnnecessaryIsInstance] - callers need not be typed
        _fail("forward must return the loss", got=type(metrics).__name__, hint=hint)
    if LOSS not in metrics:
        _fail("forward must return the loss", got=", ".join(map(repr, metrics)), hint=hint)
    for name, operand in metrics.items():
        if not isinstance(operand, MLOperand):  # pyright: ignore[reportUnnecessaryIsInstance] - callers need not be typed
            _fail("forward must return operands", label=name, got=type(operand).__name__, allowed="MLOperand")
        if operand.shape:
            _fail("the loss and metrics must be scalars", label=name, got=repr(operand), hint="Reduce it, as by `reduce_mean`")
    return metrics
