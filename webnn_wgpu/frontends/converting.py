"""`convert`: a model file as a file of another kind."""

from __future__ import annotations

import logging
import os
import re
from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from webnn_wgpu import MLContext, MLGraph, MLTypeError, NotSupportedError, ml

from .common.module import writing_file
from .dims import sidecar, usual_size
from .loading import load_file

if TYPE_CHECKING:
    from .onnx import Model, Simplifier
    from .tfjs import TfjsModel
    from .tflite import TfliteModel
    from .webnn import WebNNModel

log = logging.getLogger(__name__)

LARGEST: tuple[tuple[str, int], ...] = ((r".*(past|seq|length).*|s|t", 4096), (r".*batch.*|b|n", 8))
"""Largest sizes of dynamic dimensions by their names, as regular expressions for the whole name in lower case."""

LARGEST_OTHERWISE = 65535
UNBOUNDED = 2**31


def convert(
    source: str | os.PathLike[str],
    target: str | os.PathLike[str],
    *,
    to: str = "",
    override_dims: Mapping[str, int] | None = None,
    dynamic: Mapping[str, int] | str | None = None,
    weights_file: str | os.PathLike[str] | None = None,
    manifest: str | os.PathLike[str] | None = None,
    simplify: Simplifier | None = None,
    **options: Any,
) -> list[Path]:
    """Read a model file and write it as a file of another kind. No device is used.

    Args:
        source: an ONNX, TFLite or TensorFlow.js model, a `.webnn` text or its JSON form.
        target: the file; `MLGraph.save` lists the suffixes.
        to: the kind of file, if the suffix does not tell it: webnn, json, onnx, coreml, js, html, py or dot.
        override_dims: sizes of symbolic or dynamic dimensions, by name. Others get those of `NAME.dims.json` beside the model,
            else the size that is usual for their name, else they are refused.
        dynamic: names of dimensions that stay dynamic, with their largest sizes; "all" keeps all of them, with sizes that
            are usual for their names. Dynamic dimensions of a WebNN graph stay dynamic unless `override_dims` gives a size.
        weights_file: the file of weights of a WebNN graph; searched beside it by default.
        manifest: the manifest of a `.weights` file; searched beside it by default.
        simplify: as for `load_onnx`.
        options: options of `MLGraph.save`; `name` is the name of the graph in `.webnn` and `.json` files.

    Returns:
        The files that were written.

    Raises:
        FileNotFoundError: no such file.
        MLTypeError: a file that is wrong, or a dimension without a size.
        NotSupportedError: an unknown kind of file, an operator that cannot be written or needs the host, or an argument that
            the kind of file does not have.

    Example:
        >>> wn.convert("model.pt", "model.webnn")
        Traceback (most recent call last):
        webnn_wgpu.core.errors.NotSupportedError: load: models of this kind cannot be read; got '.pt'; allowed: ...
    """
    with ml.create_context(backend="reference") as context:
        own: dict[str, Any] = {"weights": weights_file, "manifest": manifest, "simplify": simplify, "fallback": "error"}
        fixed = {**sidecar(source), **(override_dims or {})}
        kept = _kept(source, context, own, fixed, dynamic, _keeps_dimensions(target, to))
        sizes = {**fixed, **kept}

        def graph_of_sizes(changed: Mapping[str, int]) -> MLGraph:
            return _graph(_loaded(source, context, {**sizes, **changed}, own))

        save = import_module("webnn_wgpu.exporters.saving").save
        model = _loaded(source, context, sizes, own)
        # A graph has its inputs in the order of their first use.
        order = [i.name for i in model.inputs]
        return save(_graph(model), target, kind=to, dynamic=kept, graph_of_sizes=graph_of_sizes, order=order, **options)


def _keeps_dimensions(target: str | os.PathLike[str], to: str) -> bool:
    return to in ("webnn", "json", "onnx") or (not to and Path(target).suffix.lower() in (".webnn", ".json", ".onnx"))


def _kept(
    source: str | os.PathLike[str],
    context: MLContext,
    own: Mapping[str, Any],
    fixed: dict[str, int],
    dynamic: Mapping[str, int] | str | None,
    possible: bool,
) -> dict[str, int]:
    """Return the dimensions that stay dynamic with their largest sizes; give all others a size."""
    with _loaded(source, context, fixed, own) as model:
        declared: dict[str, int] = getattr(model, "dynamic_dimensions", {})
        inputs = model.inputs
        symbols = [d for i in inputs for d in i.shape or () if isinstance(d, str)]
    for info in inputs:
        if info.shape is None or None in info.shape:
            raise MLTypeError(f"the input '{info.name}' has a dimension without a name", operator="convert", got=str(info))
    names = [n for n in dict.fromkeys(part.strip() for d in symbols for part in d.split("+")) if not n.isdecimal()]
    wanted = {n: declared.get(n) or _largest(n) for n in names} if isinstance(dynamic, str) else dict(dynamic or {})
    for name in wanted:
        if name not in names:
            raise NotSupportedError(
                "the model has no such dimension", operator="convert", got=repr(name), allowed=", ".join(names) or "none"
            )
    if possible:
        wanted = {**{n: s for n, s in declared.items() if n not in fixed}, **wanted}
    for name in names:
        if name not in fixed and name not in wanted:
            size = min(_usual(name), declared.get(name, UNBOUNDED))
            kept_too = f", and --dynamic {name}=MAX or `dynamic` keeps the dimension" if possible else ""
            message = "%s: the dimension '%s' gets the size %d; -f %s=SIZE or `override_dims` sets another%s"
            log.warning(message, source, name, size, name, kept_too)
            fixed[name] = size
    return wanted


def _usual(name: str) -> int:
    """Return the size that is usual for a name, or refuse it."""
    size = usual_size(name)
    if size is not None:
        return size
    raise MLTypeError(
        f"the size of dimension '{name}' is open", operator="convert", hint=f"-f {name}=SIZE or override_dims sets it."
    )


def _largest(name: str) -> int:
    return next((size for pattern, size in LARGEST if re.fullmatch(pattern, name.lower())), LARGEST_OTHERWISE)


def _loaded(
    source: str | os.PathLike[str], context: MLContext, sizes: Mapping[str, int], own: Mapping[str, Any]
) -> Model | TfliteModel | TfjsModel | WebNNModel:
    options = {name: value for name, value in own.items() if value is not None}
    with writing_file():
        return load_file(source, context, override_dims=sizes, **options)


def _graph(model: Model | TfliteModel | TfjsModel | WebNNModel) -> MLGraph:
    graphs = model.graphs
    if len(graphs) != 1:
        raise NotSupportedError(
            "only a model that is one graph can be converted", operator="convert", got=f"{len(graphs)} graphs"
        )
    return graphs[0]
