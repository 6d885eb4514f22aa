"""`write`: a graph as a `.webnn` text or its JSON form, with its weights in place or in a file beside it."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal, cast, get_args

import numpy as np
from numpy.typing import NDArray

from webnn_wgpu.api.graph import MLGraph
from webnn_wgpu.api.ml import ml
from webnn_wgpu.api.signatures import CallForm, call_form, camel, operator_names
from webnn_wgpu.core.errors import MLTypeError, NotSupportedError
from webnn_wgpu.formats.constants import to_bytes
from webnn_wgpu.formats.document import (
    Constant,
    Document,
    Init,
    InlineBytes,
    Location,
    OperandReference,
    Output,
    ScalarFill,
    Statement,
    TensorDeclaration,
    WeightsKey,
)
from webnn_wgpu.formats.names import UniqueNames, identifier
from webnn_wgpu.formats.weights import MAGIC, MANIFEST_FORMATS, PACKED_MARK, SAFETENSORS_TYPES
from webnn_wgpu.formats.writing import to_json, to_text

from .files import replace_files
from .rewriting import with_dynamic, with_indices
from .standard import needs_composition, standard

Array = NDArray[Any]
Weights = Literal["auto", "weights", "safetensors", "inline"]
SMALL = 1024
"""Bytes of a constant that is written in place with `weights="auto"`, at most."""

ALWAYS = frozenset({("gru", "reset_after"), ("gruCell", "reset_after"), ("layerNormalization", "axes")})
"""Options that are always written: other readers have other defaults."""


Extensions = Literal["standard", "keep", "error"]
OperandOptions = Literal["names", "indices"]


def write(
    graph: MLGraph,
    path: str | os.PathLike[str],
    *,
    weights: Weights = "auto",
    quantized: bool = False,
    extensions: Extensions = "standard",
    operand_options: OperandOptions = "names",
    name: str = "",
    json_form: bool = False,
    dynamic: Mapping[str, int] | None = None,
    graph_of_sizes: Callable[[Mapping[str, int]], MLGraph] | None = None,
) -> list[Path]:
    """Write a graph as it was built, before any pass.

    Args:
        graph: the graph.
        path: the file.
        weights: where constants are written. "auto": those above 1 KiB to `NAME.weights` and `NAME.manifest.json`. "weights":
            all but those of equal elements. "safetensors": these to `NAME.safetensors`. "inline": all in the file itself.
        quantized: the file's remark that the graph is quantized.
        extensions: the treatment of operators that WebNN does not have. "standard": they are composed of WebNN's operators,
            or refused. "keep": they are written as `x.NAME`, which only this package reads. "error": they are refused.
        operand_options: "names", or "indices" to write operands in options as their numbers, for pywebnn 0.5.
        name: name of the graph. By default that of the file.
        json_form: whether to write the JSON form, not the text.
        dynamic: names of dynamic dimensions with their largest sizes, for which `graph` is made.
        graph_of_sizes: returns the graph for other sizes of these dimensions.

    Returns:
        The files that were written.

    Raises:
        MLTypeError: an unknown `weights`, `extensions` or `operand_options`.
        NotSupportedError: an operator that files cannot have: one of the caller's own WGSL, outputs that update inputs, or a
            size in the graph that cannot follow a dynamic dimension.
    """
    target = Path(path)
    hint = "--extensions keep or extensions='keep' writes such operators as x.NAME, which only this package reads"
    with standardized(graph, extensions, graph_of_sizes, hint) as (source, sized):
        document, arrays = document_of(source, name or target.stem, weights, quantized)
        if dynamic and sized:
            document = with_dynamic(document, dynamic, lambda sizes: document_of(sized(sizes), "", weights)[0])
    if operand_options not in get_args(OperandOptions):
        raise _unknown("operand_options", operand_options, get_args(OperandOptions))
    if operand_options == "indices":
        document = with_indices(document)
    form = to_json if json_form else to_text
    return replace_files({target: form(document).encode(), **weights_files(target, arrays, weights)})


def weights_files(target: Path, arrays: Mapping[str, Array], weights: Weights) -> dict[Path, bytes]:
    """Return the files of weights beside a file, with their content."""
    if arrays and weights == "safetensors":
        return {target.with_suffix(".safetensors"): safetensors_of(arrays)}
    if not arrays:
        return {}
    blob, manifest = blob_of(arrays)
    return {target.with_suffix(".weights"): blob, target.with_name(f"{target.stem}.manifest.json"): manifest}


@contextmanager
def standardized(
    graph: MLGraph,
    extensions: Extensions,
    graph_of_sizes: Callable[[Mapping[str, int]], MLGraph] | None = None,
    hint: str = "",
) -> Generator[tuple[MLGraph, Callable[[Mapping[str, int]], MLGraph] | None]]:
    """Yield a graph and the graphs of other sizes with the operators that files may have.

    Args:
        graph: the graph.
        extensions: the treatment of operators that WebNN does not have, as in `write`.
        graph_of_sizes: returns the graph for other sizes of its dynamic dimensions.
        hint: the next step after the refusal of an operator that WebNN does not have.
    """
    if extensions not in get_args(Extensions):
        raise _unknown("extensions", extensions, get_args(Extensions))
    if extensions == "error":
        for node in graph.source.nodes:
            if needs_composition(node):
                raise NotSupportedError(
                    "the operator is none of WebNN's", operator="save", label=node.label, got=node.op, hint=hint
                )
    if extensions != "standard" or graph.source.aliases:
        yield graph, graph_of_sizes
        return
    with ml.create_context(backend="reference") as context:
        sized = graph_of_sizes
        yield standard(graph, context, hint=hint), None if sized is None else lambda sizes: standard(sized(sizes), context)


def _unknown(option: str, value: object, allowed: tuple[str, ...]) -> MLTypeError:
    return MLTypeError(f"unknown {option}", operator="save", got=repr(value), allowed=", ".join(allowed))


def document_of(
    graph: MLGraph, name: str = "graph", weights: Weights = "inline", quantized: bool = False, *, labels: bool = False
) -> tuple[Document, dict[str, Array]]:
    """Return a graph as a document, and the constants that it refers to by their keys.

    Args:
        graph: the graph.
        name: its name.
        weights: as for `write`.
        quantized: as for `write`.
        labels: whether to write a label that is also the name of the result.
    """
    if weights not in get_args(Weights):
        raise _unknown("weights", weights, get_args(Weights))
    return _Exporter(graph, weights, labels).document(name or "graph", quantized)


class _Exporter:
    """One walk over a graph."""

    def __init__(self, graph: MLGraph, weights: Weights, labels: bool) -> None:
        self.source, self.weights, self.labels = graph.source, weights, labels
        if self.source.aliases:
            raise NotSupportedError("outputs that update inputs in place cannot be written", operator="save")
        self.location = Location("")
        self.names: dict[int, str] = {}
        self.unique = UniqueNames([""])
        self.arrays: dict[str, Array] = {}

    def name(self, value: int, wanted: str) -> None:
        """Give a value a name: the wanted one, or one like it that is not taken."""
        self.names[value] = self.unique.of(wanted)

    def document(self, name: str, quantized: bool) -> tuple[Document, dict[str, Array]]:
        source = self.source
        for own, value in source.inputs.items():
            self.name(value, own)
        for own, value in source.outputs.items():
            if value not in self.names and value not in source.constants and own not in self.unique.taken:
                self.name(value, own)
        for value in source.constants:
            if source.values[value].name:
                self.name(value, identifier(source.values[value].name))
        for number, node in enumerate(source.nodes):
            first = node.outputs[0]
            if first not in self.names:
                self.name(first, node.label or f"operand_{number}")
            for i, value in enumerate(node.outputs[1:], 1):
                if value not in self.names:
                    self.name(value, f"{self.names[first]}_{i}")
        constants = [self.constant(value, f"constant_{i}") for i, value in enumerate(source.constants)]
        statements = [self.statement(node) for node in source.nodes]
        outputs = {own: self.names[value] for own, value in source.outputs.items()}
        return (
            Document(
                location=self.location,
                name=name,
                version=1,
                quantized=quantized,
                inputs=tuple(self.declaration(value) for value in source.inputs.values()),
                constants=tuple(constants),
                statements=tuple(statements),
                outputs=tuple(Output(own, self.reference(operand)) for own, operand in outputs.items()),
            ),
            self.arrays,
        )

    def reference(self, name: str) -> OperandReference:
        return OperandReference(name, self.location)

    def declaration(self, value: int) -> TensorDeclaration:
        type_ = self.source.type(value)
        return TensorDeclaration(
            name=self.names[value], data_type=type_.data_type, shape=tuple(type_.shape), location=self.location
        )

    def constant(self, value: int, name: str) -> Constant:
        if value not in self.names:
            self.name(value, name)
        return Constant(self.declaration(value), self.init(self.names[value], self.source.constants[value]))

    def init(self, name: str, array: Array) -> Init:
        filled = _filled(array)
        small = array.size * array.itemsize <= SMALL
        if filled is not None and (small or self.weights != "auto"):
            return filled
        if self.weights == "inline" or (self.weights == "auto" and small):
            return InlineBytes(to_bytes(array))
        self.arrays[name] = array
        return WeightsKey(name)

    def statement(self, node: Any) -> Statement:
        if node.op not in operator_names():
            raise NotSupportedError("the operator cannot be written to a file", operator="save", label=node.label, got=node.op)
        form = call_form(node.op)
        results = tuple(self.names[value] for value in node.outputs)
        arguments, options = self.operands(form, node.inputs)
        attrs = _specified(node.op, dict(node.attrs))
        for option, value in attrs.items():
            if option not in form.annotations:
                raise NotSupportedError(
                    f"the option {option} cannot be written to a file", operator="save", label=node.label, got=repr(value)
                )
            written = _written(value)
            default = _written(form.defaults.get(option)) if option in form.defaults else None
            differs = written != default or str(written) == "-0.0"  # which is equal to a default of 0
            if differs or option in form.arguments or (form.name, option) in ALWAYS:
                options[option_name(form.name, option)] = written
        if node.label and (self.labels or node.label != results[0]):
            options["label"] = node.label
        return self.call(node.op, arguments, options, results, bracketed=_returns_list(form))

    def operands(self, form: CallForm, inputs: tuple[int | None, ...]) -> tuple[tuple[str, ...], dict[str, Any]]:
        """Return the operands by position, and those that are options."""
        if form.variadic:
            return tuple(self.names[i] for i in inputs if i is not None), {}
        positional: list[str] = []
        options: dict[str, Any] = {}
        for operand, value in zip(form.operands, inputs, strict=False):
            if value is None:
                continue
            if operand in form.positional:
                positional.append(self.names[value])
            else:
                options[camel(operand)] = self.reference(self.names[value])
        return tuple(positional), options

    def call(
        self, operator: str, operands: tuple[str, ...], options: Mapping[str, Any], results: tuple[str, ...], *, bracketed: bool
    ) -> Statement:
        return Statement(
            operator=operator,
            arguments=tuple(self.reference(name) for name in operands),
            options=options,
            results=results,
            bracketed=bracketed,
            location=self.location,
        )


def option_name(operator: str, option: str) -> str:
    """Return the name of an argument or option in files."""
    return "to" if (operator, option) == ("cast", "data_type") else camel(option)


def _returns_list(form: CallForm) -> bool:
    return form.returns.startswith("list")


def _specified(operator: str, attrs: dict[str, Any]) -> dict[str, Any]:
    """Return the attributes in the specification's form, without those that are absent."""
    if operator in ("argMax", "argMin") and attrs.get("axes") is not None and len(attrs["axes"]) == 1:
        attrs["axis"], attrs["axes"] = attrs["axes"][0], None
    if attrs.get("select_last_index") is False:
        attrs.pop("select_last_index")
    return {name: value for name, value in attrs.items() if value is not None}


def _written(value: Any) -> Any:
    """Return a canonical attribute as files have it: lists, names of activations."""
    if not isinstance(value, tuple | list):
        return cast("Any", value).item() if isinstance(value, np.generic) else value
    items = list(cast("Sequence[Any]", value))
    if not any(isinstance(item, tuple) for item in items):
        return [_written(item) for item in items]
    activations = cast("list[tuple[str, Any]]", items)
    if any(options for _, options in activations):
        raise NotSupportedError("activations with options cannot be written to a file", operator="save")
    return [name for name, _ in activations]


def _filled(array: Array) -> ScalarFill | None:
    """Return the number that all elements are, if each reader gets the same bits of it."""
    if not array.size or array.dtype.itemsize == 0:
        return None
    first = array.reshape(-1)[0]
    same = array.tobytes() == first.tobytes() * array.size
    number = first.item() if array.dtype.kind in "fiu" else int(first)
    if not same or not np.isfinite(float(number)) or float(np.float32(number)) != float(number) or str(number) == "-0.0":
        return None
    if isinstance(number, int) and int(np.float32(number)) != number:
        return None
    return ScalarFill(number)


def blob_of(arrays: Mapping[str, Array]) -> tuple[bytes, bytes]:
    """Return a blob of weights and its manifest."""
    parts, tensors, offset = [MAGIC + (1).to_bytes(4, "little")], dict[str, Any](), 8
    for key, array in sorted(arrays.items()):
        data = to_bytes(array)
        shape = list(array.shape)
        kind = array.dtype.name
        tensors[key] = {"dataType": kind, "shape": shape, "byteOffset": offset, "byteLength": len(data), "layout": "row-major"}
        offset += len(data)
        parts.append(data)
    manifest = {"format": MANIFEST_FORMATS[0], "version": 1, "endianness": "little", "tensors": tensors}
    return b"".join(parts), (json.dumps(manifest, indent=2) + "\n").encode()


def safetensors_of(arrays: Mapping[str, Array]) -> bytes:
    """Return a safetensors file of arrays. Elements of 4 bits are packed, two in a byte, and marked so."""
    header: dict[str, Any] = {}
    parts: list[bytes] = []
    offset = 0
    kinds = {long: short for short, long in SAFETENSORS_TYPES.items() if short not in ("BOOL", "BF16")}
    for key, array in sorted(arrays.items()):
        packed = array.dtype.name not in kinds
        data = to_bytes(array)
        shape = [len(data)] if packed else list(array.shape)
        header[key] = {
            "dtype": kinds.get(array.dtype.name, "U8"),
            "shape": shape,
            "data_offsets": [offset, offset + len(data)],
        }
        if packed:
            header["__metadata__"] = {PACKED_MARK: "1"}
        offset += len(data)
        parts.append(data)
    text = json.dumps(header, sort_keys=True).encode()
    text += b" " * (-len(text) % 8)
    return len(text).to_bytes(8, "little") + text + b"".join(parts)
