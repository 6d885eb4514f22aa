"""The graphs that predict and evaluate. Weights are their inputs, so that training needs no new graphs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from webnn_wgpu import MLGraph, MLGraphBuilder, MLOperand, MLTensor, MLTypeError

if TYPE_CHECKING:
    from .layers import LayersModel
    from .layers_fitting import Compiled

Array = NDArray[Any]


class Predictor:
    """Graphs of a model by the shapes of batches, and its weights on the device.

    Args:
        model: the model.
    """

    def __init__(self, model: LayersModel) -> None:
        self._model = model
        self._graphs: dict[tuple[object, ...], MLGraph] = {}
        self._weights: dict[str, MLTensor] = {}
        self._loaded = False

    def forget(self) -> None:
        """Free the weights. The graphs stay."""
        self._loaded = False

    def run(self, inputs: Sequence[Array], batch_size: int) -> list[Array]:
        """Return the outputs of the model."""
        parts: list[list[Array]] = []
        for rows in _batches(len(inputs[0]), batch_size):
            batch = [np.ascontiguousarray(array[rows]) for array in inputs]
            graph = self._graph("predict", batch, self._outputs)
            found = self._compute(graph, {f"input/{i}": array for i, array in enumerate(batch)})
            parts.append([found[f"output/{i}"] for i in range(len(self._model.outputs))])
        return [np.concatenate([part[i] for part in parts]) for i in range(len(self._model.outputs))]

    def evaluate(
        self, compiled: Compiled, inputs: Sequence[Array], targets: Sequence[Array], batch_size: int
    ) -> dict[str, float]:
        """Return loss and metrics, the means over batches by their sizes."""
        if len(inputs[0]) != len(targets[0]):
            raise MLTypeError("x and y must have as many rows", operator="evaluate", got=f"{len(inputs[0])}, {len(targets[0])}")
        totals: dict[str, float] = {}
        count = len(inputs)
        for rows in _batches(len(inputs[0]), batch_size):
            batch = [np.ascontiguousarray(array[rows]) for array in (*inputs, *targets)]

            def build(b: MLGraphBuilder, weights: Mapping[str, MLOperand], x: Sequence[MLOperand]) -> dict[str, MLOperand]:
                outputs, _ = self._model.network(b, weights, x[:count])
                return compiled.results(b, outputs, x[count:])

            graph = self._graph(compiled.key(), batch, build)
            found = self._compute(graph, {f"input/{i}": array for i, array in enumerate(batch)})
            for name, value in found.items():
                totals[name] = totals.get(name, 0.0) + float(value) * len(batch[0])
        return {name: total / len(inputs[0]) for name, total in totals.items()}

    def _outputs(self, b: MLGraphBuilder, weights: Mapping[str, MLOperand], x: Sequence[MLOperand]) -> dict[str, MLOperand]:
        outputs, _ = self._model.network(b, weights, x)
        given = {id(operand) for operand in (*x, *weights.values())}
        return {f"output/{i}": b.identity(o) if id(o) in given else o for i, o in enumerate(outputs)}

    def _graph(
        self,
        kind: object,
        batch: Sequence[Array],
        build: Callable[[MLGraphBuilder, Mapping[str, MLOperand], Sequence[MLOperand]], dict[str, MLOperand]],
    ) -> MLGraph:
        """Return the graph for the shapes of a batch, compiled on first use."""
        key = (kind, *(array.shape for array in batch))
        if key not in self._graphs:
            b = MLGraphBuilder(self._model.context)
            arrays = self._model.weights()
            weights = {n: b.input(f"weight/{n}", a.shape, str(a.dtype)) for n, a in arrays.items()}  # pyright: ignore[reportArgumentType]
            x = [b.input(f"input/{i}", a.shape, _held(a)) for i, a in enumerate(batch)]  # pyright: ignore[reportArgumentType]
            self._graphs[key] = b.build(build(b, weights, x))
        return self._graphs[key]

    def _compute(self, graph: MLGraph, batch: Mapping[str, Array]) -> dict[str, Array]:
        """Run a graph. Weights are sent to the device once, until training changes them."""
        context = self._model.context
        if not self._loaded:
            for name, array in self._model.weights().items():
                if name not in self._weights:
                    self._weights[name] = context.create_tensor(array.shape, str(array.dtype), writable=True)  # pyright: ignore[reportArgumentType]
                context.write_tensor(self._weights[name], array)
            self._loaded = True
        inputs: dict[str, MLTensor] = {}
        made: list[MLTensor] = []
        for name, wanted in graph.inputs.items():
            if name.startswith("weight/"):
                inputs[name] = self._weights[name.removeprefix("weight/")]
                continue
            inputs[name] = context.create_tensor(wanted.shape, wanted.data_type, writable=True)
            made.append(inputs[name])
            array = batch[name]
            context.write_tensor(inputs[name], array.view(np.uint8) if array.dtype == bool else array)
        outputs = {n: context.create_tensor(t.shape, t.data_type, readable=True) for n, t in graph.outputs.items()}
        context.dispatch(graph, inputs, outputs)
        found = {name: np.array(context.read_tensor(tensor)) for name, tensor in outputs.items()}
        for tensor in (*made, *outputs.values()):
            tensor.destroy()
        return found

    def destroy(self) -> None:
        """Free the graphs and the weights."""
        for graph in self._graphs.values():
            graph.destroy()
        for tensor in self._weights.values():
            tensor.destroy()
        self._graphs, self._weights, self._loaded = {}, {}, False


def _held(array: Array) -> str:
    return "uint8" if array.dtype == bool else str(array.dtype)


def _batches(count: int, size: int) -> list[slice]:
    """Return the rows of batches.

    Raises:
        MLTypeError: no size.
    """
    if size < 1:
        raise MLTypeError("batch_size must be a number of rows", operator="predict", got=repr(size), allowed="1 and more")
    return [slice(start, min(start + size, count)) for start in range(0, count, size)]
