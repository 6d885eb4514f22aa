"""`fit`, `evaluate` and `predict`: each step is one compiled graph, and weights stay on the device."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from keras.src import backend, tree
from keras.src import callbacks as callbacks_module
from keras.src import optimizers as optimizers_module
from keras.src.backend import config
from keras.src.trainers import trainer as base_trainer
from keras.src.trainers.data_adapters import array_slicing, data_adapter_utils
from keras.src.trainers.epoch_iterator import EpochIterator
from keras.src.utils import traceback_utils
from keras.src.utils.python_utils import pythonify_logs

from webnn_wgpu import eager

from . import core
from .step import CompiledStep


class WebNNTrainer(base_trainer.Trainer):
    """The training of models on the backend. `train_step(data)` may be replaced, as with other backends."""

    def __init__(self) -> None:
        super().__init__()
        self.train_function: Any = None
        self.test_function: Any = None
        self.predict_function: Any = None

    # steps --------------------------------------------------------------------------------------------------------

    def _forward(self, x: Any, training: bool) -> Any:
        return self(x, training=training) if self._call_has_training_arg else self(x)

    def _tracked_loss(self, x: Any, y: Any, y_pred: Any, sample_weight: Any, training: bool) -> Any:
        loss = self._compute_loss(x=x, y=y, y_pred=y_pred, sample_weight=sample_weight, training=training)
        rows = next(each for each in tree.flatten(x) if each is not None).shape[0]
        self._loss_tracker.update_state(loss, sample_weight=rows)
        return loss

    def train_step(self, data: Any) -> Any:
        """Compute the loss and its gradients, update the weights, and return the metrics."""
        x, y, sample_weight = data_adapter_utils.unpack_x_y_sample_weight(data)
        y_pred = self._forward(x, training=True)
        loss = self._tracked_loss(x, y, y_pred, sample_weight, training=True)
        if self.optimizer is not None:
            loss = self.optimizer.scale_loss(loss)
        weights = self.trainable_weights[:]
        if weights:
            gradients = core.gradients(loss, weights)
            self.optimizer.apply(gradients, weights)
        else:
            warnings.warn("The model does not have any trainable weights.", stacklevel=2)
        return self.compute_metrics(x, y, y_pred, sample_weight=sample_weight)

    def test_step(self, data: Any) -> Any:
        """Compute the loss, and return the metrics."""
        x, y, sample_weight = data_adapter_utils.unpack_x_y_sample_weight(data)
        y_pred = self._forward(x, training=False)
        self._tracked_loss(x, y, y_pred, sample_weight, training=False)
        return self.compute_metrics(x, y, y_pred, sample_weight=sample_weight)

    def predict_step(self, data: Any) -> Any:
        """Return the predictions of a batch."""
        x, _, _ = data_adapter_utils.unpack_x_y_sample_weight(data)
        return self._forward(x, training=False)

    def _step_variables(self, training: bool) -> list[Any]:
        found = [*self.variables, *self.metrics_variables]
        if training and self.optimizer is not None:
            found += self.optimizer.variables
        return found

    def _step_function(self, step: Callable[[Any], Any], training: bool) -> Callable[[Any], Any]:
        """Return a step that runs as one graph, or by recorded operators where its function needs numbers."""

        def recorded(data: Any) -> Any:
            given = tree.map_structure(lambda x: x if x is None else core.convert_to_tensor(x), data)
            with eager.tape():
                found = step(given)
                eager.evaluate()
            return found

        if self.run_eagerly or not self.jit_compile:
            return recorded
        compiled: list[CompiledStep] = []
        failed: list[bool] = []

        def traced(data: Any) -> Any:
            self._clear_losses()
            return step(data)

        def run(data: Any) -> Any:
            if failed:
                return recorded(data)
            if not compiled:
                compiled.append(CompiledStep(traced, self._step_variables(training)))
            try:
                return compiled[0](data)
            except eager.UnknownValueError as error:
                failed.append(True)
                warnings.warn(f"The step of the model runs operator by operator: {error}", stacklevel=2)
                return recorded(data)

        return run

    def make_train_function(self, force: bool = False) -> None:
        """Make the function of `steps_per_execution` batches that trains."""
        if self.train_function is not None and not force:
            return
        step = self._step_function(self.train_step, training=True)
        self.train_function = lambda batches: [step(data) for data in batches][-1]

    def make_test_function(self, force: bool = False) -> None:
        """Make the function of `steps_per_execution` batches that evaluates."""
        if self.test_function is not None and not force:
            return
        step = self._step_function(self.test_step, training=False)
        self.test_function = lambda batches: [step(data) for data in batches][-1]

    def make_predict_function(self, force: bool = False) -> Any:
        """Make the function of `steps_per_execution` batches that predicts."""
        if self.predict_function is None or force:
            step = self._step_function(self.predict_step, training=False)

            def run(batches: Any) -> Any:
                found = [tree.map_structure(backend.convert_to_numpy, step(data)) for data in batches]
                return tree.map_structure(lambda *parts: np.concatenate(parts), *found) if len(found) > 1 else found[0]

            self.predict_function = run
        return self.predict_function

    # loops --------------------------------------------------------------------------------------------------------

    def _callback_list(self, callbacks: Any, verbose: Any, epochs: int, iterator: EpochIterator, history: bool) -> Any:
        if isinstance(callbacks, callbacks_module.CallbackList):
            return callbacks
        return callbacks_module.CallbackList(
            callbacks,
            add_history=history,
            add_progbar=verbose != 0,
            verbose=verbose,
            epochs=epochs,
            steps=iterator.num_batches,
            model=self,
        )

    @traceback_utils.filter_traceback
    def fit(
        self,
        x: Any = None,
        y: Any = None,
        batch_size: int | None = None,
        epochs: int = 1,
        verbose: Any = "auto",
        callbacks: Any = None,
        validation_split: float = 0.0,
        validation_data: Any = None,
        shuffle: bool = True,
        class_weight: Any = None,
        sample_weight: Any = None,
        initial_epoch: int = 0,
        steps_per_epoch: int | None = None,
        validation_steps: int | None = None,
        validation_batch_size: int | None = None,
        validation_freq: Any = 1,
    ) -> Any:
        """Train for a number of epochs. See Keras's `Model.fit`."""
        self._assert_compile_called("fit")
        most = config.max_epochs()
        if most and most < epochs:
            warnings.warn(f"Limiting epochs to {most}", stacklevel=2)
            epochs = most
        self._eval_epoch_iterator = None
        if validation_split and validation_data is None:
            (x, y, sample_weight), validation_data = array_slicing.train_validation_split(
                (x, y, sample_weight), validation_split=validation_split
            )
        iterator = EpochIterator(
            x=x,
            y=y,
            sample_weight=sample_weight,
            batch_size=batch_size,
            steps_per_epoch=steps_per_epoch,
            shuffle=shuffle,
            class_weight=class_weight,
            steps_per_execution=self.steps_per_execution,
        )
        self._symbolic_build(iterator=iterator)
        iterator.reset()
        callbacks = self._callback_list(callbacks, verbose, epochs, iterator, history=True)
        self.stop_training = False
        logs: dict[str, Any] = {}
        self.make_train_function()
        callbacks.on_train_begin()
        for epoch in range(self._initial_epoch or initial_epoch, epochs):
            self.reset_metrics()
            callbacks.on_epoch_begin(epoch)
            found: Any = {}
            for first, last, data in iterator:
                callbacks.on_train_batch_begin(first)
                found = self.train_function(data)
                callbacks.on_train_batch_end(last, found)
                if self.stop_training:
                    break
            logs = dict(pythonify_logs(self._get_metrics_result_or_logs(found)))
            if validation_data is not None and self._should_eval(epoch, validation_freq):
                logs |= self._validation_logs(validation_data, validation_batch_size or batch_size, validation_steps, callbacks)
            callbacks.on_epoch_end(epoch, logs)
            if self.stop_training:
                break
        if isinstance(self.optimizer, optimizers_module.Optimizer) and epochs > 0:
            self.optimizer.finalize_variable_values(self.trainable_weights)
        self._eval_epoch_iterator = None
        callbacks.on_train_end(logs=logs)
        return self.history

    def _validation_logs(self, data: Any, batch_size: int | None, steps: int | None, callbacks: Any) -> dict[str, Any]:
        x, y, sample_weight = data_adapter_utils.unpack_x_y_sample_weight(data)
        if self._eval_epoch_iterator is None:
            self._eval_epoch_iterator = EpochIterator(
                x=x,
                y=y,
                sample_weight=sample_weight,
                batch_size=batch_size,
                steps_per_execution=self.steps_per_execution,
                steps_per_epoch=steps,
                shuffle=False,
            )
        found = self.evaluate(
            x=x,
            y=y,
            sample_weight=sample_weight,
            batch_size=batch_size,
            steps=steps,
            callbacks=callbacks,
            return_dict=True,
            _use_cached_eval_dataset=True,
        )
        return {f"val_{name}": value for name, value in found.items()}

    @traceback_utils.filter_traceback
    def evaluate(
        self,
        x: Any = None,
        y: Any = None,
        batch_size: int | None = None,
        verbose: Any = "auto",
        sample_weight: Any = None,
        steps: int | None = None,
        callbacks: Any = None,
        return_dict: bool = False,
        **kwargs: Any,
    ) -> Any:
        """Return the loss and metrics of data. See Keras's `Model.evaluate`."""
        self._assert_compile_called("evaluate")
        cached = kwargs.pop("_use_cached_eval_dataset", False)
        if kwargs:
            raise ValueError(f"Arguments not recognized: {kwargs}")
        iterator: Any = self._eval_epoch_iterator if cached else None
        if iterator is None:
            iterator = EpochIterator(
                x=x,
                y=y,
                sample_weight=sample_weight,
                batch_size=batch_size,
                steps_per_epoch=steps,
                shuffle=False,
                steps_per_execution=self.steps_per_execution,
            )
        self._symbolic_build(iterator=iterator)
        iterator.reset()
        callbacks = self._callback_list(callbacks, verbose, 1, iterator, history=False)
        self.make_test_function()
        self.stop_evaluating = False
        callbacks.on_test_begin()
        logs: Any = {}
        self.reset_metrics()
        for first, last, data in iterator:
            callbacks.on_test_batch_begin(first)
            logs = self.test_function(data)
            callbacks.on_test_batch_end(last, logs)
            if self.stop_evaluating:
                break
        logs = pythonify_logs(self._get_metrics_result_or_logs(logs))
        callbacks.on_test_end(logs)
        return logs if return_dict else self._flatten_metrics_in_order(logs)

    @traceback_utils.filter_traceback
    def predict(
        self, x: Any, batch_size: int | None = None, verbose: Any = "auto", steps: int | None = None, callbacks: Any = None
    ) -> Any:
        """Return the predictions of data as arrays. See Keras's `Model.predict`."""
        iterator = EpochIterator(
            x=x,
            batch_size=batch_size,
            steps_per_epoch=steps,
            shuffle=False,
            steps_per_execution=self.steps_per_execution,
        )
        if not all(layer.built for layer in self._flatten_layers()):
            for _, _, batches in iterator:
                given = data_adapter_utils.unpack_x_y_sample_weight(batches[0])[0]
                with backend.StatelessScope():
                    self(given)
                break
            iterator.reset()
        callbacks = self._callback_list(callbacks, verbose, 1, iterator, history=False)
        self.make_predict_function()
        self.stop_predicting = False
        callbacks.on_predict_begin()
        outputs: list[Any] = []
        for first, last, data in iterator:
            callbacks.on_predict_batch_begin(first)
            outputs.append(self.predict_function(data))
            callbacks.on_predict_batch_end(last, {"outputs": outputs[-1]})
            if self.stop_predicting:
                break
        callbacks.on_predict_end()
        return tree.map_structure(lambda *parts: np.concatenate(parts), *outputs)

    # batches ------------------------------------------------------------------------------------------------------

    def train_on_batch(
        self, x: Any, y: Any = None, sample_weight: Any = None, class_weight: Any = None, return_dict: bool = False
    ) -> Any:
        """Train on one batch. See Keras's `Model.train_on_batch`."""
        self._assert_compile_called("train_on_batch")
        if class_weight is not None:
            if sample_weight is not None:
                raise ValueError(
                    "Arguments `sample_weight` and `class_weight` cannot be specified at the same time. "
                    f"Received: sample_weight={sample_weight}, class_weight={class_weight}"
                )
            sample_weight = data_adapter_utils.class_weight_to_sample_weights(y, class_weight)
        data = (x, y, sample_weight)
        self._symbolic_build(data_batch=data)
        self.make_train_function()
        self.reset_metrics()
        logs = pythonify_logs(self.train_function([data]))
        return logs if return_dict else self._flatten_metrics_in_order(logs)

    def test_on_batch(self, x: Any, y: Any = None, sample_weight: Any = None, return_dict: bool = False) -> Any:
        """Evaluate one batch. See Keras's `Model.test_on_batch`."""
        self._assert_compile_called("test_on_batch")
        data = (x, y, sample_weight)
        self._symbolic_build(data_batch=data)
        self.make_test_function()
        self.reset_metrics()
        logs = pythonify_logs(self.test_function([data]))
        return logs if return_dict else self._flatten_metrics_in_order(logs)

    def predict_on_batch(self, x: Any) -> Any:
        """Predict one batch. See Keras's `Model.predict_on_batch`."""
        self.make_predict_function()
        return self.predict_function([(x,)])


OpenVINOTrainer = WebNNTrainer
"""The name that Keras imports. See `webnn_wgpu.keras.installation`."""
