"""`InferenceSession`: a model in onnxruntime's spelling, so that a program written for it needs another import and no more."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from webnn_wgpu import MLContext, MLPromise, MLTypeError, ml

from ..description import ValueInfo
from .model import Fallback, Model, load_model
from .ort_values import IOBinding, OrtValue, type_name
from .session_options import DISABLE_HOST, RunOptions, SessionOptions
from .types import Array

PROVIDERS = ("WebGpuExecutionProvider", "CPUExecutionProvider")
"""The device and the host, as onnxruntime calls them."""


@dataclass(frozen=True)
class NodeArg:
    """An input or output: its name, its sizes (a string is a symbolic dimension), its type such as "tensor(float)"."""

    name: str
    shape: list[int | str | None]
    type: str


@dataclass(frozen=True, kw_only=True)
class ModelMetadata:
    """The metadata of a model file."""

    producer_name: str
    graph_name: str
    domain: str
    description: str
    graph_description: str
    version: int
    custom_metadata_map: dict[str, str]


class InferenceSession:
    """An ONNX model, with the methods of `onnxruntime.InferenceSession`.

    Args:
        path_or_bytes: path of a file, or the bytes of one.
        sess_options: options. `SessionOptions` lists those with an effect.
        providers: names of onnxruntime's execution providers, or pairs of a name and options. They are checked for being
            names, and no more: a model always runs on WebGPU.
        provider_options: passed over.
        context: the context of the graphs. None is the default context.
        fallback: as for `load_onnx`, and "error" where the options ask for that.
        **ignored: further arguments of onnxruntime, passed over.

    Raises:
        FileNotFoundError: no such file.
        NotSupportedError: not an ONNX model, a broken one, or one with an operator that cannot run.
        MLTypeError: `providers` are no names of providers.

    Example:
        >>> from webnn_wgpu.onnx import InferenceSession
        >>> session = InferenceSession(mlp.SerializeToString(), providers=["CPUExecutionProvider"])
        >>> session.get_inputs()
        [NodeArg(name='x', shape=['N', 4], type='tensor(float)')]
        >>> session.run(None, {"x": np.zeros((2, 4), np.float32)})[0].shape
        (2, 3)
    """

    def __init__(
        self,
        path_or_bytes: str | bytes | os.PathLike[str],
        sess_options: SessionOptions | None = None,
        providers: Sequence[str | tuple[str, Mapping[Any, Any]]] | None = None,
        provider_options: Sequence[Mapping[Any, Any]] | None = None,
        *,
        context: MLContext | None = None,
        fallback: Fallback = "warn",
        **ignored: Any,
    ) -> None:
        self._options = sess_options or SessionOptions()
        for provider in providers or ():
            name = provider if isinstance(provider, str) else provider[0]
            if not name.endswith("ExecutionProvider"):
                raise MLTypeError(
                    "not an execution provider", operator="InferenceSession", got=repr(name), allowed=", ".join(PROVIDERS)
                )
        if self._options.get_session_config_entry(DISABLE_HOST) == "1":
            fallback = "error"
        self._fallback = fallback
        self._model = load_model(
            path_or_bytes, lambda: context or ml.create_context(), fallback=fallback, override_dims=self._options.dims
        )

    # what it is ---------------------------------------------------------------------------------------------------

    @property
    def model(self) -> Model:
        """The model under this face."""
        return self._model

    def get_inputs(self) -> list[NodeArg]:
        """Return the inputs."""
        return [self._argument(info) for info in self._model.inputs]

    def get_outputs(self) -> list[NodeArg]:
        """Return the outputs."""
        return [self._argument(info) for info in self._model.outputs]

    def _argument(self, info: ValueInfo) -> NodeArg:
        pinned = self._model.dims
        sizes = [pinned.get(d, d) if isinstance(d, str) else d for d in info.shape or ()]
        return NodeArg(info.name, sizes, type_name(info.dtype))

    def get_overridable_initializers(self) -> list[NodeArg]:
        """Return nothing: initializers are constants here."""
        return []

    def get_modelmeta(self) -> ModelMetadata:
        """Return the metadata of the file."""
        model = self._model.source
        return ModelMetadata(
            producer_name=model.producer_name or "",
            graph_name=model.graph.name or "",
            domain=model.domain or "",
            description=model.doc_string or "",
            graph_description=model.graph.doc_string or "",
            version=model.model_version or 0,
            custom_metadata_map=dict(model.metadata_props),
        )

    def get_session_options(self) -> SessionOptions:
        """Return the options."""
        return self._options

    def get_providers(self) -> list[str]:
        """Return where nodes may run: the device and, unless that is refused, the host."""
        return list(PROVIDERS[:1] if self._fallback == "error" else PROVIDERS)

    def get_provider_options(self) -> dict[str, dict[str, str]]:
        """Return no options for each provider."""
        return {name: {} for name in self.get_providers()}

    def set_providers(self, providers: Sequence[Any] | None = None, provider_options: Sequence[Any] | None = None) -> None:
        """Do nothing: there is nothing to choose from.

        Args:
            providers: ignored.
            provider_options: ignored.
        """

    def disable_fallback(self) -> None:
        """Do nothing: runs that fail are never tried elsewhere."""

    def enable_fallback(self) -> None:
        """Do nothing: runs that fail are never tried elsewhere."""

    # running ------------------------------------------------------------------------------------------------------

    def run(
        self, output_names: Sequence[str] | None, input_feed: Mapping[str, Any], run_options: RunOptions | None = None
    ) -> list[Array]:
        """Run the model.

        Args:
            output_names: the wanted outputs, in order. None or an empty list is all.
            input_feed: an array for each input, by name.
            run_options: passed over.

        Returns:
            The outputs as arrays.

        Raises:
            MLTypeError: as `Model.run` does. It is a ValueError too.
        """
        feeds = {n: v.numpy() if isinstance(v, OrtValue) else v for n, v in input_feed.items()}
        results = self._model.run(feeds, output_names or None)
        return [results[name] for name in output_names or [o.name for o in self._model.outputs]]

    def run_async(
        self,
        output_names: Sequence[str] | None,
        input_feed: Mapping[str, Any],
        callback: Callable[[list[Array], Any, str], None],
        user_data: Any = None,
        run_options: RunOptions | None = None,
    ) -> None:
        """Run in the background, then call `callback(results, user_data, error)`. The error is "" after a success.

        Args:
            output_names: the requested outputs, as for `run`.
            input_feed: an array for each input, by name.
            callback: called in a thread of the library, once.
            user_data: passed to the callback.
            run_options: ignored.
        """

        def work() -> None:
            try:
                results = self.run(output_names, input_feed)
            except Exception as error:  # handed to the callback, whatever it is
                callback([], user_data, str(error))
            else:
                callback(results, user_data, "")

        MLPromise[None].in_background(work)

    def run_with_ort_values(
        self,
        output_names: Sequence[str] | None,
        input_dict_ort_values: Mapping[str, Any],
        run_options: RunOptions | None = None,
    ) -> list[OrtValue]:
        """Run over values and return values.

        Args:
            output_names: the requested outputs, as for `run`.
            input_dict_ort_values: a value for each input, by name.
            run_options: ignored.

        Raises:
            MLTypeError: as `run` does.
        """
        return [OrtValue(a) for a in self.run(output_names, input_dict_ort_values, run_options)]

    def io_binding(self) -> IOBinding:
        """Return bindings for this session, with nothing bound."""
        return IOBinding(self)

    def run_with_iobinding(self, iobinding: IOBinding, run_options: RunOptions | None = None) -> None:
        """Run on the bound values.

        Args:
            iobinding: the bound values. The results are in `iobinding.get_outputs()`.
            run_options: ignored.

        Raises:
            MLTypeError: as `run` does.
        """
        iobinding.run()


def get_available_providers() -> list[str]:
    """Return the names of where nodes may run: the device, then the host.

    Example:
        >>> import webnn_wgpu.onnx as ort
        >>> ort.get_available_providers()
        ['WebGpuExecutionProvider', 'CPUExecutionProvider']
    """
    return list(PROVIDERS)


def get_all_providers() -> list[str]:
    """Return the names of where nodes may run: the device, then the host.

    Example:
        >>> import webnn_wgpu.onnx as ort
        >>> ort.get_all_providers()
        ['WebGpuExecutionProvider', 'CPUExecutionProvider']
    """
    return list(PROVIDERS)


def get_device() -> str:
    """Return "GPU".

    Example:
        >>> import webnn_wgpu.onnx as ort
        >>> ort.get_device()
        'GPU'
    """
    return "GPU"


def set_default_logger_severity(severity: int) -> None:
    """Set the level of this package's log.

    Args:
        severity: 0 verbose, 1 information, 2 warnings, 3 errors, 4 fatal errors.

    Raises:
        MLTypeError: another level.

    Example:
        >>> import webnn_wgpu.onnx as ort
        >>> ort.set_default_logger_severity(2)
    """
    levels = (logging.DEBUG, logging.INFO, logging.WARNING, logging.ERROR, logging.CRITICAL)
    if severity not in range(len(levels)):
        raise MLTypeError("unknown severity", operator="set_default_logger_severity", got=repr(severity), allowed="0 to 4")
    logging.getLogger("webnn_wgpu").setLevel(levels[severity])
