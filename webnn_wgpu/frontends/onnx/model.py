"""`Model`: an ONNX model that runs on a WebNN context."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import onnx
import onnx_ir

from webnn_wgpu import MLContext, MLPromise, NotSupportedError
from webnn_wgpu.api.progress import Progress
from webnn_wgpu.api.stored_graphs import TokenSteps
from webnn_wgpu.api.tuning import TuningSource

from ..common.model import ImportedModel, count_of, is_wide
from ..common.opening import load_file
from .decoding import Decoder, State
from .description import value_info
from .module import OnnxModule
from .program import OnnxProgram
from .reading import read
from .simplify import simplified
from .types import Array

log = logging.getLogger(__name__)

Fallback = Literal["warn", "host", "error"]
Simplifier = Literal["onnxslim"]


class Model(ImportedModel):
    """An ONNX model on a context. Made by `load` and `load_onnx`.

    A model is compiled for the shapes of its inputs: when it is loaded if they are known then, else by the first `run` with
    shapes that are new. The graphs of the last few sets of shapes are kept.

    Attributes:
        context: the context in which the model runs. `model.context.memory()` is its memory.
        name: the name of the model in messages.
        inputs: the inputs as the file declares them.
        outputs: the outputs.
        dims: the sizes of symbolic dimensions that are fixed, by name.
        loading: the times of the model's loading.

    Example:
        >>> model = wn.load_onnx(mlp)
        >>> model.inputs[0].name, model.run({"x": np.ones((2, 4), np.float32)})["y"].shape
        ('x', (2, 3))
    """

    def __init__(
        self,
        model: onnx_ir.Model,
        name: str,
        context: MLContext,
        *,
        fallback: Fallback = "warn",
        override_dims: Mapping[str, int] | None = None,
        cache_size: int = 8,
        kv_cache: int | None = None,
        wide_float16: bool | None = None,
        tuning: TuningSource = None,
        progress: Progress | None = None,
    ) -> None:
        super().__init__(context, name, override_dims, fallback)
        cache_size = count_of(cache_size, "cache_size", 1)
        self._progress = progress
        graph = model.graph
        self._module = OnnxModule(model, fallback, name, is_wide(wide_float16, context), tuning)
        self._program: OnnxProgram | Decoder
        if kv_cache is None:
            given = [v for v in graph.inputs if v.const_value is None]
            self._program = OnnxProgram(self._module, context, list(graph), given, graph.outputs, cache_size)
        else:
            self._program = Decoder(self._module, context, kv_cache, self.dims, cache_size)
        self.inputs = tuple(value_info(v, name) for v in self._program.inputs)
        self.outputs = tuple(value_info(v, name, declared=False) for v in self._program.outputs)
        if not isinstance(self._program, Decoder):  # which compiles for what it is fed
            feeds = self._known_feeds(self._program.inputs)
            if feeds is not None:
                self._program.prepare(feeds, progress)
                self._report()

    # running ------------------------------------------------------------------------------------------------------

    def state(self) -> State:
        """Return empty caches of keys and values, for `run`.

        Raises:
            NotSupportedError: the model was loaded without `kv_cache`.
        """
        return State(self._decoder("state"))

    def run(
        self, feeds: Mapping[str, Any], outputs: Iterable[str] | None = None, *, state: State | None = None
    ) -> dict[str, Array]:
        """Run the model.

        Args:
            feeds: an array for each input, by name. Lists and numbers are converted. Arrays must have the input's type.
            outputs: names of the wanted outputs. None is all.
            state: caches of keys and values, which the run adds to. Without it a model with `kv_cache` begins with empty ones.

        Returns:
            The outputs by name, in the model's order.

        Raises:
            MLTypeError: a missing or unknown input, a wrong type or shape, no room left in the caches, or another model's.
            NotSupportedError: an operator that cannot run. The message names node, operator, operator set and reason.

        Example:
            >>> wn.load_onnx(mlp).run({"x": np.zeros((1, 4), np.float32)}).keys()
            dict_keys(['y'])
        """
        return self._named(feeds, outputs, lambda arrays: self._run(arrays, state))

    def token_steps(self) -> TokenSteps | None:
        """Return a decoder as steps of one token, for exporters. None for a model without `kv_cache`.

        Raises:
            NotSupportedError: the decoder has not run with one token, or its masks and positions depend on the tokens.
        """
        return self._program.token_steps() if isinstance(self._program, Decoder) else None

    @property
    def _stages(self) -> OnnxProgram | Decoder:
        return self._program

    def _run(self, arrays: Sequence[Array], state: State | None = None) -> list[Array]:
        given = dict(zip(self._program.inputs, arrays, strict=True))
        if state is not None:
            results = self._decoder("run").run(given, state, self._progress)
        elif isinstance(self._program, Decoder):
            with self.state() as empty:
                results = self._program.run(given, empty, self._progress)
        else:
            results = self._program.run(given, self._progress)
        self._report()
        return results

    def _decoder(self, operator: str) -> Decoder:
        if not isinstance(self._program, Decoder):
            raise NotSupportedError(
                "the model's caches do not stay on the device", operator=operator, hint="load(..., kv_cache=ROWS) makes them"
            )
        return self._program

    def run_async(
        self, feeds: Mapping[str, Any], outputs: Iterable[str] | None = None, *, state: State | None = None
    ) -> MLPromise[dict[str, Array]]:
        """Run the model in the background and return a promise of the results of `run` for the same arguments."""
        return MLPromise[dict[str, Array]].in_background(lambda: self.run(feeds, outputs, state=state))

    @property
    def source(self) -> onnx_ir.Model:
        """The ONNX model, its local functions inlined."""
        return self._module.model


def load_model(
    source: str | os.PathLike[str] | bytes | onnx.ModelProto,
    opened: Callable[[], MLContext],
    *,
    simplify: Simplifier | None = None,
    override_dims: Mapping[str, int] | None = None,
    tuning: TuningSource = None,
    **options: Any,
) -> Model:
    """Load an ONNX model as `webnn_wgpu.load_onnx` does, on a context that is only asked for once the model is read."""

    def made(file: tuple[onnx_ir.Model, str], dims: Mapping[str, int], tuning: TuningSource) -> Model:
        return Model(*file, opened(), override_dims=dims, tuning=tuning, **options)

    return load_file(source, override_dims, tuning, lambda: open_model(source, simplify), made)


def open_model(
    source: str | os.PathLike[str] | bytes | onnx.ModelProto, simplify: Simplifier | None = None
) -> tuple[onnx_ir.Model, str]:
    """Read a model, simplify it on request, and return it and its name in messages."""
    if simplify is None:
        return read(source)
    model, name = read(simplified(source, simplify))
    return model, Path(source).name if isinstance(source, (str, os.PathLike)) else name
