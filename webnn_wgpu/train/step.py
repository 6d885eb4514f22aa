"""`Step`: a training step that is one graph."""

from __future__ import annotations

import itertools
import os
from collections.abc import Mapping
from dataclasses import replace
from types import TracebackType
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from webnn_wgpu import InvalidStateError, MLContext, MLTensor, WebNNError
from webnn_wgpu.api.progress import Progress
from webnn_wgpu.typing import MLOperandDescriptor, TensorData

from .arenas import arenas_of
from .checkpoints import Checkpoint, read_checkpoint, write_checkpoint
from .compiled import CompiledStep
from .loss_scale import LossScale
from .optimizers import Optimizer
from .step_graphs import (
    FINITE,
    METRICS,
    Forward,
    StepGraphs,
    buffer_name,
    check_known,
    check_names,
    fail,
    scalar_name,
    state_name,
    updated_name,
)

Array: TypeAlias = NDArray[Any]

_DESCRIPTORS = '{"x": {"dataType": "float32", "shape": [32, 2]}}, for example'


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
        buffers: float32 arrays by name that no gradient changes. `forward` gets them among its inputs, and gives one a new
            content by an entry of its result with the buffer's name.
        any_batch: whether batches may have another first size than `inputs` states. A graph is compiled for each size.
        accumulate: the number of batches of an update. The update takes the mean of their gradients. Calls in between compute
            gradients alone.
        loss_scale: the factor of the loss, for networks in float16. None is no factor.
        progress: as for `MLGraphBuilder.build`.

    Attributes:
        context: the context.
        optimizer: the rule of the updates.
        graph: the compiled graph that updates the parameters, for inspection.

    Raises:
        MLTypeError: an argument of another type, no parameters, a parameter that is not float32 or float64, or a loss or metric
            that is not a scalar. Or `forward` asks for a name that does not exist.
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
        buffers: Mapping[str, TensorData] | None = None,
        any_batch: bool = False,
        accumulate: int = 1,
        loss_scale: LossScale | None = None,
        progress: Progress | None = None,
    ) -> None:
        initial = _arrays(parameters)
        if not initial:
            fail("parameters must not be empty", got="no parameters", hint="Pass at least one array")
        if not isinstance(optimizer, Optimizer):  # pyright: ignore[reportUnnecessaryIsInstance] - callers need not be typed
            fail("optimizer must be an optimizer", got=type(optimizer).__name__, allowed="an instance of train.Optimizer")
        if not isinstance(inputs, Mapping):  # pyright: ignore[reportUnnecessaryIsInstance] - callers need not be typed
            fail("inputs must be descriptors by name", got=type(inputs).__name__, allowed=_DESCRIPTORS)
        for name, descriptor in inputs.items():
            if not isinstance(descriptor, Mapping):  # pyright: ignore[reportUnnecessaryIsInstance] - callers need not be typed
                fail("an input must be a descriptor", label=name, got=type(descriptor).__name__, allowed=_DESCRIPTORS)
        if not isinstance(loss_scale, LossScale | None):  # pyright: ignore[reportUnnecessaryIsInstance] - callers need not be typed
            fail("loss_scale must be a rule", got=type(loss_scale).__name__, allowed="None, or an instance of train.LossScale")
        if accumulate < 1:
            fail("accumulate must be a number of batches", got=repr(accumulate), allowed="1 or above")
        self.context, self.optimizer = context, optimizer
        held = _arrays(buffers or {})
        self._shapes = {name: array.shape for name, array in initial.items()}
        self._arenas = arenas_of(self._shapes)
        self._inputs, self._any_batch = dict(inputs), any_batch
        if taken := [name for name in held if name in self._shapes or name in self._inputs]:
            fail("buffers must have names of their own", got=", ".join(map(repr, taken)))
        self._steps, self._batches = 0, 0
        self._accumulate, self._loss_scale = accumulate, loss_scale
        self._scale, self._finite_steps = loss_scale.initial if loss_scale else 1.0, 0
        self._graphs = StepGraphs(
            context=context,
            forward=forward,
            shapes=self._shapes,
            arenas=self._arenas,
            optimizer=optimizer,
            inputs=self._inputs,
            accumulates=accumulate > 1,
            scales=loss_scale is not None,
            buffers={name: array.shape for name, array in held.items()},
        )
        first = CompiledStep.of(self._graphs, progress)
        self.graph = first.graph
        self._compiled = {_shapes_of(self._inputs): first}
        self._tensors = {
            name: context.create_host_tensor([arena.size], "float32")
            for arena in self._arenas
            for name in (arena.name, *(state_name(slot, arena.name) for slot in self._graphs.slots()))
        }
        self._buffers = {name: context.create_host_tensor(array.shape, "float32") for name, array in held.items()}
        names = self._graphs.scalars(1, 1.0, 1, first=True)
        self._scalars = {scalar_name(name): context.create_tensor([], "float32", writable=True) for name in names}
        self._write({**initial, **{buffer_name(name): array for name, array in held.items()}})

    @property
    def steps(self) -> int:
        """The number of updates that have run."""
        return self._steps

    @property
    def loss_scale(self) -> float:
        """The factor of the loss in the next step. It is 1 for a step without a loss scale."""
        return self._scale

    def __call__(self, batch: Mapping[str, TensorData]) -> dict[str, float]:
        """Run a step and wait for its result. With `accumulate`, only the last batch of an update changes parameters.

        Args:
            batch: an array or list of the declared shape for each input, by name. Raw bytes have no shape, and need its size.

        Returns:
            The loss and the metrics by name, computed with the parameters before the update.

        Raises:
            MLTypeError: a missing or unknown input, or one of another shape.
            InvalidStateError: the context is lost, or the step was destroyed.
        """
        check_names("inputs", batch, self._inputs)
        compiled = self._compiled_for(batch)
        for name, tensor in compiled.batch.items():
            self._write_tensor(name, tensor, batch[name])
        first, last = self._batches == 0, self._batches == self._accumulate - 1
        scalars = self._graphs.scalars(self._steps + 1, self._scale, self._accumulate, first=first)
        for name, value in scalars.items():
            self.context.write_tensor(self._scalars[scalar_name(name)], value)
        graph = compiled.graph if last else compiled.accumulating
        assert graph is not None
        kept = {**self._tensors, **self._buffers}
        tensors = {**compiled.batch, **kept, **self._scalars}
        used = {name: tensors[name] for name in graph.inputs}
        results = compiled.results[graph]
        updated = {updated_name(name): tensor for name, tensor in kept.items() if updated_name(name) in graph.outputs}
        self.context.dispatch(graph, used, {**updated, METRICS: results})
        self._batches = 0 if last else self._batches + 1
        # The graph that adds up gradients has no flag of finite ones at the end.
        found = dict(zip(compiled.metrics, self.context.read_tensor(results).tolist(), strict=False))
        if last:
            self._count(finite=bool(found.pop(FINITE, 1.0)))
        return found

    def _compiled_for(self, batch: Mapping[str, TensorData]) -> CompiledStep:
        """Return the graphs for the shapes of a batch, compiled on first use."""
        inputs: dict[str, MLOperandDescriptor] = {}
        for name, wanted in self._inputs.items():
            shape = self._checked_shape(name, batch[name], wanted)
            inputs[name] = {"dataType": wanted["dataType"], "shape": list(shape)}
        key = _shapes_of(inputs)
        if key not in self._compiled:
            graphs = replace(self._graphs, inputs=inputs)
            self._compiled[key] = CompiledStep.of(graphs, None)
        return self._compiled[key]

    def _checked_shape(self, name: str, data: Any, wanted: MLOperandDescriptor) -> tuple[int, ...]:
        """Return the shape of an input of a batch, which may have another first size if batches of any size are allowed."""
        declared = _shape_of(wanted)
        raw_bytes = getattr(data, "dtype", None) == np.uint8 and np.dtype(wanted["dataType"]) != np.uint8
        if raw_bytes or not _has_shape(data):
            return declared
        try:
            shape = tuple(np.shape(data))
        except ValueError:  # Lists of unequal lengths, which the write refuses with a message of its own.
            return declared
        other_size = len(shape) == len(declared) > 0 and shape[1:] == declared[1:]
        if shape == declared or (self._any_batch and other_size):
            return shape
        allowed = ["any size", *declared[1:]] if self._any_batch and declared else declared
        fail(
            "an input of a batch must have its declared shape",
            label=name,
            got=f"[{', '.join(map(str, shape))}]",
            allowed=f"[{', '.join(map(str, allowed))}]",
            hint="Step(..., any_batch=True) takes batches of other sizes" if other_size else "",
        )

    def _count(self, *, finite: bool) -> None:
        """Count an update, or one that was left out, and adapt the factor of the loss."""
        self._steps += int(finite)
        self._finite_steps = self._finite_steps + 1 if finite else 0
        if self._loss_scale is not None:
            self._scale = self._loss_scale.after(self._scale, self._finite_steps)

    def parameters(self) -> dict[str, Array]:
        """Return the present parameters by name, as float32 arrays on the host."""
        found: dict[str, Array] = {}
        for arena in self._arenas:
            found.update(arena.arrays(self.context.read_tensor(self._tensors[arena.name])))
        return {name: found[name].copy() for name in self._shapes}

    def buffers(self) -> dict[str, Array]:
        """Return the present buffers by name, as float32 arrays on the host."""
        return {name: np.array(self.context.read_tensor(tensor)) for name, tensor in self._buffers.items()}

    def set_parameters(self, parameters: Mapping[str, TensorData]) -> None:
        """Replace parameters. The states of the optimizer and the number of steps stay.

        Args:
            parameters: the parameters to replace, by name.

        Raises:
            MLTypeError: an unknown name, or an array of another shape or data type.
        """
        arrays = _arrays(parameters)
        check_known("parameters", arrays, self._shapes)
        self._write(arrays)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write parameters, buffers, states of the optimizer and the number of steps to a safetensors file.

        The parameters have their own names in the file, and the states names like `optimizer/velocity/weight`.

        Args:
            path: the file to write.

        Raises:
            InvalidStateError: gradients of some batches of an update have been added up: the file does not hold them.
            NotSupportedError: the extra `safetensors` is not installed.
        """
        if self._batches:
            got = f"{self._batches} of {self._accumulate} batches"
            raise InvalidStateError("save must follow an update", operator="Step", got=got, hint="Call the step first")
        tensors = self.parameters()
        tensors.update({buffer_name(name): array for name, array in self.buffers().items()})
        for arena, slot in itertools.product(self._arenas, self.optimizer.slots):
            states = arena.arrays(self.context.read_tensor(self._tensors[state_name(slot, arena.name)]))
            tensors.update({state_name(slot, name): array.copy() for name, array in states.items()})
        write_checkpoint(
            path,
            Checkpoint(
                tensors=tensors,
                steps=self._steps,
                optimizer=type(self.optimizer).__name__,
                loss_scale=self._scale,
                finite_steps=self._finite_steps,
            ),
        )

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
            fail("a checkpoint must be of the step's optimizer", got=found.optimizer, allowed=own)
        check_names("tensors of a checkpoint", found.tensors, self._all_shapes())
        self._write(found.tensors)
        self._steps, self._batches = found.steps, 0
        if self._loss_scale is not None:
            self._scale, self._finite_steps = found.loss_scale, found.finite_steps

    def destroy(self) -> None:
        """Free the graph and all tensors. Further calls have no effect."""
        for compiled in self._compiled.values():
            compiled.destroy()
        for tensors in (self._tensors, self._buffers, self._scalars):
            for tensor in tensors.values():
                tensor.destroy()

    def __enter__(self) -> Step:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.destroy()

    def __repr__(self) -> str:
        elements = sum(int(np.prod(shape)) for shape in self._shapes.values())
        return f"Step({type(self.optimizer).__name__}, {elements} weights, {self._steps} steps)"

    # tensors ------------------------------------------------------------------------------------------------------

    def _all_shapes(self) -> Mapping[str, tuple[int, ...]]:
        """Return the shapes of the parameters and their states by name."""
        states = itertools.product(self.optimizer.slots, self._shapes.items())
        buffers = {buffer_name(name): tuple(tensor.shape) for name, tensor in self._buffers.items()}
        return {**self._shapes, **buffers, **{state_name(slot, name): shape for slot, (name, shape) in states}}

    def _write(self, arrays: Mapping[str, Array]) -> None:
        """Replace parameters and states by name."""
        shapes = self._all_shapes()
        for name, array in arrays.items():
            got, allowed = f"{array.dtype}{list(array.shape)}", f"float32{list(shapes[name])}"
            if got != allowed:
                fail("a tensor must keep its data type and shape", label=name, got=got, allowed=allowed)
        for arena, slot in itertools.product(self._arenas, ("", *self.optimizer.slots)):
            named = {name: state_name(slot, name) if slot else name for name in arena.places}
            if not any(full in arrays for full in named.values()):
                continue
            tensor = self._tensors[state_name(slot, arena.name) if slot else arena.name]
            whole = self.context.read_tensor(tensor)
            for name, part in arena.arrays(whole).items():
                part[...] = arrays.get(named[name], part)
            self.context.write_tensor(tensor, whole)
        for name, tensor in self._buffers.items():
            if buffer_name(name) in arrays:
                self.context.write_tensor(tensor, arrays[buffer_name(name)])

    def _write_tensor(self, name: str, tensor: MLTensor, data: TensorData) -> None:
        try:
            self.context.write_tensor(tensor, data)
        except WebNNError as error:
            raise error.named("Step", name) from None


def _has_shape(data: object) -> bool:
    return hasattr(data, "shape") or isinstance(data, list | tuple | int | float)


def _shapes_of(inputs: Mapping[str, MLOperandDescriptor]) -> tuple[tuple[int, ...], ...]:
    return tuple(map(_shape_of, inputs.values()))


def _shape_of(wanted: MLOperandDescriptor) -> tuple[int, ...]:
    shape = wanted.get("shape", wanted.get("dimensions", ()))
    return (shape,) if isinstance(shape, int) else tuple(shape)


def _arrays(parameters: Mapping[str, TensorData]) -> dict[str, Array]:
    """Return parameters as float32 arrays."""
    found: dict[str, Array] = {}
    for name, data in parameters.items():
        array = np.asarray(data)
        if str(array.dtype) not in ("float32", "float64"):
            fail("parameters must be float32", label=name, got=str(array.dtype), allowed="float32, float64")
        if name.startswith(("optimizer/", "step/")):
            fail("names of parameters must not begin as those of states", got=repr(name), hint="Rename the parameter")
        found[name] = array.astype(np.float32)
    return found
