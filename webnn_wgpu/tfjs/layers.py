"""`LayersModel`: a layers model that predicts, trains and is saved, as in TensorFlow.js."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from webnn_wgpu import MLContext, MLGraphBuilder, MLOperand, MLTypeError, NotSupportedError, ml
from webnn_wgpu.frontends.tfjs.contents import LAYERS, TfjsFile
from webnn_wgpu.frontends.tfjs.module import TfjsModule
from webnn_wgpu.frontends.tfjs.topology import InputSpec, read_topology
from webnn_wgpu.frontends.tfjs.writing import write_layers_model

from .layers_fitting import Compiled, Fit, History
from .layers_network import MOVING, Network, places_of
from .layers_predicting import Predictor

Array = NDArray[Any]
Batch = Array | Sequence[Any] | Mapping[str, Any]


class LayerInfo:
    """A layer of a model.

    Attributes:
        name: its name.
        kind: its class.
        config: its configuration.
        weights: the names of its weights.
        trainable: whether `fit` changes its weights. Set it before `compile`.
    """

    def __init__(self, name: str, kind: str, config: Mapping[str, Any], weights: Sequence[str]) -> None:
        self.name, self.kind, self.config, self.weights = name, kind, config, tuple(weights)
        self.trainable = config.get("trainable") is not False

    def __repr__(self) -> str:
        return f"LayerInfo({self.name}: {self.kind})"


class LayersModel:
    """A layers model on a context. Made by `load_layers_model`.

    Attributes:
        context: where it runs.
        name: its name in messages.
        inputs: its inputs.
        outputs: the names of its outputs.
        layers: its layers.
        history: the losses and metrics of the last `fit`, by epoch. None before it.

    Example:
        >>> from examples.models import tfjs_layers
        >>> from webnn_wgpu.tfjs.models import load_layers_model
        >>> with load_layers_model(tfjs_layers()) as model:
        ...     model.predict(np.zeros((5, 4), np.float32)).shape
        (5, 2)
    """

    def __init__(self, file: TfjsFile, context: MLContext) -> None:
        if file.kind != LAYERS:
            raise NotSupportedError(f"{file.name} is a {file.kind}, which does not train", allowed=LAYERS)
        self.context, self.name, self._file = context, file.name, file
        self._topology = read_topology(file.name, file.topology)
        self.inputs: Sequence[InputSpec] = self._topology.inputs
        self.outputs: Sequence[str] = self._topology.names
        module = TfjsModule(file, {})
        self._weights: dict[str, Array] = {}
        self._paths: dict[str, str] = {}
        found: dict[str, LayerInfo] = {}
        for node in self._topology.graph.nodes:
            own: list[str] = []
            for place, _ in places_of(node):
                for full in file.weights:
                    short = place + "/" + full.rpartition("/")[2]
                    if module.weight_name(short) == full and full not in own:
                        own.append(full)
                        self._paths[short] = full
            for full in own:
                self._weights.setdefault(full, np.array(file.array(full)))
            found.setdefault(node.name, LayerInfo(node.name, node.op, node.attributes, own))
        self.layers: Sequence[LayerInfo] = tuple(found.values())
        self.history: History | None = None
        self._compiled: Compiled | None = None
        self._fit: Fit | None = None
        self._predictor = Predictor(self)

    # weights --------------------------------------------------------------------------------------------------------

    def get_layer(self, name: str) -> LayerInfo:
        """Return a layer by name.

        Args:
            name: the name of the layer.

        Raises:
            MLTypeError: the model has no such layer.
        """
        for layer in self.layers:
            if layer.name == name:
                return layer
        allowed = ", ".join(layer.name for layer in self.layers)
        raise MLTypeError("unknown layer", operator="get_layer", got=repr(name), allowed=allowed)

    def weights(self) -> dict[str, Array]:
        """Return the present weights by the names of the file."""
        if self._fit is not None:
            self._weights.update(self._fit.weights())
        return {name: array.copy() for name, array in self._weights.items()}

    def set_weights(self, weights: Mapping[str, Any]) -> None:
        """Replace weights by name.

        Args:
            weights: float32 arrays by the names of the file. Other weights stay.

        Raises:
            MLTypeError: an unknown name, or another shape.
        """
        present = self.weights()
        for name, value in weights.items():
            array = np.asarray(value, np.float32)
            if name not in present or array.shape != present[name].shape:
                got, allowed = f"'{name}' of {list(array.shape)}", str({n: list(a.shape) for n, a in present.items()})
                raise MLTypeError("weights must have known names and shapes", operator="set_weights", got=got, allowed=allowed)
            present[name] = array
        self._weights = present
        self._forget()

    def count_params(self) -> int:
        """Return the number of all weights."""
        return sum(array.size for array in self._weights.values())

    def forget_predictions(self) -> None:
        """Send the weights to the device again before the next prediction."""
        self._predictor.forget()

    def width(self, number: int) -> int:
        """Return the last size of an output.

        Args:
            number: the place of the output in `outputs`.
        """
        with ml.create_context(backend="reference") as context:
            b = MLGraphBuilder(context)
            weights = {n: b.input(f"weight/{n}", a.shape, str(a.dtype)) for n, a in self._weights.items()}  # pyright: ignore[reportArgumentType]
            shapes = [[d or 8 for d in spec.shape] for spec in self.inputs]
            kinds = ["uint8" if spec.dtype == bool else str(spec.dtype) for spec in self.inputs]
            x = [b.input(f"input/{i}", shape, kind) for i, (shape, kind) in enumerate(zip(shapes, kinds, strict=True))]  # pyright: ignore[reportArgumentType]
            shape = self.network(b, weights, x)[0][number].shape
            return shape[-1] if shape else 1

    def _forget(self) -> None:
        """Free the tensors of the former weights."""
        if self._fit is not None:
            self._fit.destroy()
            self._fit = None
        self._predictor.forget()

    def trainable_weights(self) -> list[str]:
        """Return the names of the weights that `fit` changes by gradients."""
        names: dict[str, None] = {}
        for layer in self.layers:
            if layer.trainable:
                names.update({n: None for n in layer.weights if n.rpartition("/")[2] not in MOVING})
        return [n for n in names if self._weights[n].dtype == np.float32]

    # graphs ---------------------------------------------------------------------------------------------------------

    def network(
        self,
        builder: MLGraphBuilder,
        weights: Mapping[str, MLOperand],
        inputs: Sequence[MLOperand],
        key: MLOperand | None = None,
    ) -> tuple[list[MLOperand], dict[str, MLOperand]]:
        """Add the layers to a graph.

        Args:
            builder: the builder of the graph.
            weights: the weights by the names of the file.
            inputs: the inputs.
            key: a key of random numbers, uint32 [2], for training. None for prediction.

        Returns:
            The outputs, and the new values of weights that training changes without gradients.
        """
        named = {path: weights[full] for path, full in self._paths.items()}
        network = Network(builder, named, self.name, key)
        outputs = network.outputs(self._topology.graph, inputs)
        return outputs, {self._paths[path]: value for path, value in network.updates.items()}

    def places(self) -> list[tuple[str, Mapping[str, Any]]]:
        """Return each weight's name in the file with the configuration that speaks about it."""
        found: dict[str, Mapping[str, Any]] = {}
        for node in self._topology.graph.nodes:
            for place, config in places_of(node):
                for path, full in self._paths.items():
                    if path.rpartition("/")[0] == place:
                        found.setdefault(full, config)
        return list(found.items())

    def arrays(self, given: Batch, what: str = "x") -> list[Array]:
        """Return a batch as one array for each input.

        Args:
            given: an array, a list of an array for each input, or arrays by name.
            what: the name of the argument in messages.

        Raises:
            MLTypeError: missing inputs, shapes that do not fit, or batches of different sizes.
        """
        if isinstance(given, Mapping):
            missing = [i.name for i in self.inputs if i.name not in given]
            if missing:
                raise MLTypeError("missing input", operator="predict", got=", ".join(missing))
            values = [given[i.name] for i in self.inputs]
        else:
            values = [given] if len(self.inputs) == 1 and not _is_list_of_arrays(given) else list(given)
        if len(values) != len(self.inputs):
            raise MLTypeError(f"{what} must have an array for each input", operator="predict", got=str(len(values)))
        found: list[Array] = []
        for spec, value in zip(self.inputs, values, strict=True):
            array = np.asarray(value, spec.dtype)
            fits = array.ndim == len(spec.shape) and all(
                d in (None, n) for d, n in zip(spec.shape[1:], array.shape[1:], strict=True)
            )
            if not fits or not array.size or len(array) != len(values[0]):
                allowed = f"{spec.name}: {list(spec.shape)}"
                raise MLTypeError(f"wrong shape of {what}", operator="predict", got=str(list(array.shape)), allowed=allowed)
            found.append(array)
        return found

    # prediction and training ----------------------------------------------------------------------------------------

    def predict(self, x: Batch, batch_size: int = 32) -> Any:
        """Return the outputs for inputs.

        Args:
            x: an array, a list of an array for each input, or arrays by name.
            batch_size: the number of rows that are computed at once.

        Returns:
            An array, or a list of arrays if the model has several outputs.

        Raises:
            MLTypeError: arrays that do not fit the inputs.
        """
        results = self._predictor.run(self.arrays(x), batch_size)
        return results[0] if len(results) == 1 else results

    def compile(self, optimizer: Any, loss: Any, metrics: Any = ()) -> None:
        """Choose optimizer, loss and metrics of `fit`.

        Args:
            optimizer: an optimizer of `webnn_wgpu.train`, the name of one, or TensorFlow.js's class and configuration.
            loss: the name of a loss, a list of one for each output, or names by output.
            metrics: names of metrics for all outputs, or a list for each output by its name.

        Raises:
            MLTypeError: an unknown name.
        """
        self._weights = self.weights()
        self._forget()
        self._compiled = Compiled.of(self, optimizer, loss, metrics)

    def fit(
        self,
        x: Batch,
        y: Any,
        *,
        batch_size: int = 32,
        epochs: int = 1,
        validation_split: float = 0.0,
        validation_data: tuple[Any, Any] | None = None,
        shuffle: bool = True,
        initial_epoch: int = 0,
        seed: int | None = None,
    ) -> History:
        """Train the model.

        Args:
            x: as for `predict`.
            y: the targets: an array, a list of one for each output, or arrays by output.
            batch_size: the number of rows of a step. The last step of an epoch may have fewer.
            epochs: the number of the epoch to end before.
            validation_split: the share of the last rows that are not trained with, but evaluated after each epoch.
            validation_data: other rows for that.
            shuffle: whether each epoch has the rows in another order.
            initial_epoch: the number of the first epoch.
            seed: the seed of the order and of random numbers in layers. None takes another one each time.

        Returns:
            The loss and the metrics by epoch.

        Raises:
            InvalidStateError: `compile` was not called.
            MLTypeError: arrays that do not fit.
            NotSupportedError: a layer has no gradient.
        """
        compiled = Compiled.required(self._compiled, "fit")
        if self._fit is None:
            self._fit = Fit(self, compiled, self._weights)
        options: dict[str, Any] = {"shuffle": shuffle, "seed": seed, "initial_epoch": initial_epoch}
        try:
            self.history = self._fit.run(
                self.arrays(x),
                compiled.targets(y),
                batch_size=batch_size,
                epochs=epochs,
                validation_split=validation_split,
                validation_data=validation_data,
                evaluate=self.evaluate,
                **options,
            )
        finally:
            self._predictor.forget()
        return self.history

    def train_on_batch(self, x: Batch, y: Any) -> dict[str, float]:
        """Train the model with one batch and return the loss and the metrics.

        Args:
            x: as for `predict`.
            y: as for `fit`.

        Raises:
            InvalidStateError, MLTypeError, NotSupportedError: as `fit` does.
        """
        compiled = Compiled.required(self._compiled, "train_on_batch")
        inputs = self.arrays(x)
        if self._fit is None:
            self._fit = Fit(self, compiled, self._weights)
        try:
            return self._fit.step(inputs, compiled.targets(y))
        finally:
            self._predictor.forget()

    def evaluate(self, x: Batch, y: Any, batch_size: int = 32) -> dict[str, float]:
        """Return the loss and the metrics without training.

        Args:
            x: as for `predict`.
            y: as for `fit`.
            batch_size: the number of rows that are computed at once.

        Raises:
            InvalidStateError, MLTypeError: as `fit` does.
        """
        compiled = Compiled.required(self._compiled, "evaluate")
        return self._predictor.evaluate(compiled, self.arrays(x), compiled.targets(y), batch_size)

    # files ----------------------------------------------------------------------------------------------------------

    def save(self, folder: str | os.PathLike[str]) -> list[Path]:
        """Write the model as TensorFlow.js reads it: `model.json` and `weights.bin`.

        Args:
            folder: the folder, which is created if it is not there.

        Returns:
            The files.
        """
        return write_layers_model(folder, self._file, self.weights())

    def destroy(self) -> None:
        """Free the graphs and tensors of the model. It can still be used, and compiles again."""
        self._weights = self.weights()
        self._forget()
        self._predictor.destroy()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.destroy()

    def __repr__(self) -> str:
        inputs = ", ".join(f"{i.name}: {i.dtype}{list(i.shape)}" for i in self.inputs)
        return f"LayersModel({self.name}: {inputs} -> {', '.join(self.outputs)})"


def _is_list_of_arrays(given: Any) -> bool:
    return isinstance(given, list | tuple) and len(given) == 1 and isinstance(given[0], np.ndarray)  # pyright: ignore[reportUnknownArgumentType]
