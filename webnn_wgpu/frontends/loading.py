"""`load`, `load_onnx` and `load_graph`: a file on a context.

What reads models takes about as long to import as the default context takes to be opened, so both are done side by side, and
this module imports nothing of it before it is called.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, cast

from webnn_wgpu import MLContext, MLGraph, MLPromise, MLTypeError, NotSupportedError, ml
from webnn_wgpu.api.optional import needed_by
from webnn_wgpu.api.progress import Progress
from webnn_wgpu.api.tuning import TuningSource

from .kinds import is_tfjs

if TYPE_CHECKING:
    import onnx

    from .onnx import Fallback, Model, Simplifier
    from .stored import StoredModel
    from .tfjs import TfjsModel
    from .tflite import TfliteCall, TfliteModel
    from .webnn import WebNNModel


_Loaded = TypeVar("_Loaded")


def load_onnx(
    source: str | os.PathLike[str] | bytes | onnx.ModelProto,
    context: MLContext | None = None,
    *,
    fallback: Fallback = "warn",
    override_dims: Mapping[str, int] | None = None,
    cache_size: int = 8,
    kv_cache: int | None = None,
    wide_float16: bool | None = None,
    simplify: Simplifier | None = None,
    tuning: TuningSource = None,
    progress: Progress | None = None,
) -> Model:
    """Load an ONNX model.

    Args:
        source: path of a file, the bytes of one, or a parsed model. A file `NAME.dims.json` beside `NAME.onnx` pins symbolic
            dimensions: `{"batch": 1}`.
        context: where to run; the default context by default.
        fallback: "warn" runs on the host what cannot run on the device, and logs a warning that names it; "host" logs it as
            information; "error" refuses such models.
        override_dims: sizes of symbolic dimensions, by name.
        cache_size: number of sets of input shapes whose graphs are kept.
        kv_cache: keeps the caches of a decoder (`past_key_values` and `present`, whatever their names) on the device, with room
            for so many tokens. They are inputs and outputs no longer but in a `Model.state`, which every `run` adds to.
        wide_float16: whether float16 values between nodes are kept as float32, as onnxruntime's CPU does: see
            `MLGraphBuilder.build`. By default so on software adapters, where it is faster too. Without effect with `kv_cache`.
        simplify: "onnxslim" lets that package, to be installed beside this one, simplify the model first.
        tuning: as for `MLGraphBuilder.build`; what it does not say a file `NAME.tuning.json` beside `NAME.onnx` may.
        progress: called as `progress(done, total, what)`: with numbers of nodes and "reading nodes", and then as
            `MLGraphBuilder.build` does.

    Returns:
        The model, compiled already if the shapes of its inputs are known.

    Raises:
        FileNotFoundError: no such file.
        NotSupportedError: not an ONNX model, a broken one, or one with an operator that cannot run.

    Example:
        >>> wn.load_onnx(mlp)
        Model(mlp: x: float32[N, 4] -> y: float32[N, 3])
    """
    options: dict[str, Any] = {
        "fallback": fallback,
        "override_dims": override_dims,
        "cache_size": cache_size,
        "kv_cache": kv_cache,
        "wide_float16": wide_float16,
        "simplify": simplify,
        "tuning": tuning,
        "progress": progress,
    }

    def load_model(opened: Callable[[], MLContext]) -> Model:
        with needed_by("load_onnx", "onnx"):
            from .onnx import load_model
        return load_model(source, opened, **options)

    return _beside(context, load_model)


def _beside(context: MLContext | None, load_model: Callable[[Callable[[], MLContext]], _Loaded]) -> _Loaded:
    """Load a model on a context, or on the default context, which is opened while the model is read."""
    _check_context(context)
    opening = ml.create_context_async() if context is None else MLPromise[MLContext].resolved(context)
    try:
        return load_model(opening.result)
    except BaseException:
        if context is None:
            _destroy(opening)
        raise


def _check_context(context: Any) -> None:
    if context is not None and not isinstance(context, MLContext):
        hint = "wn.ml.create_context() returns one"
        raise MLTypeError("the context must be an MLContext", operator="load", got=repr(context), hint=hint)


def _check_path(path: Any) -> None:
    if not isinstance(path, (str, os.PathLike)):
        hint = "load_onnx also takes the bytes of a file, or a parsed model"
        raise MLTypeError("path must be a string or an os.PathLike", operator="load", got=type(path).__name__, hint=hint)


def _destroy(opening: MLPromise[MLContext]) -> None:
    """Wait for a context that nobody will have, as what opens it must not be left at work when the process ends."""
    with suppress(Exception):
        opening.result().destroy()


def load(
    path: str | os.PathLike[str],
    context: MLContext | None = None,
    *,
    weights: str | os.PathLike[str] | None = None,
    manifest: str | os.PathLike[str] | None = None,
    fallback: Fallback = "warn",
    override_dims: Mapping[str, int] | None = None,
    cache_size: int = 8,
    kv_cache: int | None = None,
    wide_float16: bool | None = None,
    simplify: Simplifier | None = None,
    tuning: TuningSource = None,
    progress: Progress | None = None,
    signature: str | None = None,
    custom_operators: Mapping[str, Callable[[TfliteCall], Any]] | None = None,
) -> Model | TfliteModel | TfjsModel | WebNNModel | StoredModel:
    """Load a model file.

    Its suffix tells its kind: `.onnx` and `.pb`, `.tflite`, or `.webnn` and `.json` for a WebNN graph. A `.json` file with a
    `modelTopology` is a TensorFlow.js model.

    A folder that `exporters.web.write` has written is a compiled graph. It is not compiled again, so it has no options.

    Args:
        path: path of the file or folder.
        context: where to run; the default context by default.
        weights: for WebNN graphs, the file of weights. By default it is searched beside the file, as `NAME.safetensors`,
            `NAME.weights`, `model.safetensors` and `model.weights`.
        manifest: for WebNN graphs, the manifest of a `.weights` file. By default it is searched too.
        fallback: for ONNX, TFLite and TensorFlow.js models: see `load_onnx`.
        override_dims: sizes of symbolic or dynamic dimensions, by name.
        cache_size: number of sets of sizes whose graphs are kept.
        kv_cache: for ONNX models: see `load_onnx`.
        wide_float16: as for `MLGraphBuilder.build`; for ONNX models see `load_onnx`.
        simplify: for ONNX models: see `load_onnx`.
        tuning: as for `MLGraphBuilder.build`.
        progress: as for `MLGraphBuilder.build`.
        signature: for TFLite models, the name of the signature, by default that of the main subgraph.
        custom_operators: for TFLite models, functions that lower custom operators, by name. A function gets the call and
            returns operands: see `webnn_wgpu.frontends.tflite.TfliteCall`.

    Returns:
        The model, compiled already if the shapes of its inputs are known.

    Raises:
        FileNotFoundError: no such file.
        MLTypeError: a WebNN graph or a folder that is wrong. The message begins with the file and the place in it.
        NotSupportedError: a kind of file that cannot be read, an argument that only models of another kind have, an operator
            that cannot run, or a device that lacks something that a folder requires.

    Example:
        >>> wn.load("model.pt")
        Traceback (most recent call last):
        webnn_wgpu.core.errors.NotSupportedError: load: models of this kind cannot be read; got '.pt'; allowed: ...
    """
    _check_context(context)
    _check_path(path)
    if Path(path).is_dir():
        options: dict[str, Any] = {
            "weights": weights,
            "manifest": manifest,
            "override_dims": override_dims,
            "kv_cache": kv_cache,
            "wide_float16": wide_float16,
            "simplify": simplify,
            "tuning": tuning,
            "signature": signature,
            "custom_operators": custom_operators,
        }
        for name, value in options.items():
            if value is not None:
                rule = f"a folder has a compiled graph, which {name} does not change"
                raise NotSupportedError(rule, operator="load", got=os.fspath(path))
        from .stored import load_stored

        return load_stored(path, context, progress)
    suffix = Path(path).suffix.lower()
    if suffix not in SUFFIXES:
        raise _unknown_kind(path)
    build: dict[str, Any] = {"wide_float16": wide_float16, "tuning": tuning, "progress": progress}
    if suffix != TFLITE and (signature is not None or custom_operators is not None):
        raise NotSupportedError("signature and custom_operators are for TFLite models", operator="load", got=os.fspath(path))
    tfjs = suffix in WEBNN and is_tfjs(path)
    if suffix == TFLITE or tfjs:
        if any(v is not None for v in (kv_cache, simplify, weights, manifest)):
            rule = "kv_cache, simplify, weights and manifest are for models of other kinds"
            raise NotSupportedError(rule, operator="load", got=os.fspath(path))
        own = {"fallback": fallback, "override_dims": override_dims, "cache_size": cache_size}
        if tfjs:
            return _load_tfjs(path, context, **own, **build)
        return _load_tflite(path, context, signature=signature, custom_operators=custom_operators, **own, **build)
    if suffix in WEBNN:
        if kv_cache is not None or simplify is not None:
            raise NotSupportedError("kv_cache and simplify are for ONNX models", operator="load", got=os.fspath(path))
        build["wide_float16"] = bool(wide_float16)
        with needed_by("load", "webnn"):
            from .webnn import load_webnn
        return load_webnn(
            path,
            context,
            weights=weights,
            manifest=manifest,
            override_dims=override_dims,
            cache_size=cache_size,
            **build,
        )
    if weights is not None or manifest is not None:
        raise NotSupportedError("weights and manifest are for WebNN graphs", operator="load", got=os.fspath(path))
    return load_onnx(
        path,
        context,
        fallback=fallback,
        override_dims=override_dims,
        cache_size=cache_size,
        kv_cache=kv_cache,
        simplify=simplify,
        **build,
    )


def load_file(
    path: str | os.PathLike[str], context: MLContext | None = None, **options: Any
) -> Model | TfliteModel | TfjsModel | WebNNModel:
    """Load a model file as `load` does, and refuse folders: their graphs have kernels but no operators."""
    if Path(path).is_dir():
        raise _unknown_kind(path)
    return cast("Model | TfliteModel | TfjsModel | WebNNModel", load(path, context, **options))


def _unknown_kind(path: str | os.PathLike[str]) -> NotSupportedError:
    suffix, allowed = Path(path).suffix.lower(), ", ".join(sorted(SUFFIXES))
    return NotSupportedError("models of this kind cannot be read", operator="load", got=repr(suffix), allowed=allowed)


def _load_tflite(path: str | os.PathLike[str], context: MLContext | None, **options: Any) -> TfliteModel:
    def load_model(opened: Callable[[], MLContext]) -> TfliteModel:
        with needed_by("load", "tflite"):
            from .tflite import load_model
        return load_model(path, opened, **options)

    return _beside(context, load_model)


def _load_tfjs(path: str | os.PathLike[str], context: MLContext | None, **options: Any) -> TfjsModel:
    def load_model(opened: Callable[[], MLContext]) -> TfjsModel:
        from .tfjs import load_model

        return load_model(path, opened, **options)

    return _beside(context, load_model)


TFLITE = ".tflite"
WEBNN = frozenset({".webnn", ".json"})
SUFFIXES = WEBNN | {".onnx", ".pb", TFLITE}
"""Suffixes of the files that can be read."""


def load_graph(
    path: str | os.PathLike[str],
    manifest_path: str | os.PathLike[str] | None = None,
    weights_path: str | os.PathLike[str] | None = None,
    *,
    context: MLContext | None = None,
    override_dims: Mapping[str, int] | None = None,
) -> MLGraph:
    """Load a WebNN graph: see `MLGraph.load`."""
    if not isinstance(path, str | os.PathLike):  # pyright: ignore[reportUnnecessaryIsInstance] - callers need not be typed
        raise MLTypeError("the path must be a string or a path", operator="load", got=repr(path))
    with needed_by("MLGraph.load", "webnn"):
        from .webnn import load_webnn
    return load_webnn(path, context, weights=weights_path, manifest=manifest_path, override_dims=override_dims).graph
