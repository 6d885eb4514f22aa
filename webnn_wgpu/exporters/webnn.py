"""`write`: a graph as a `.webnn` text or its JSON form, with its weights in place or in a file beside it."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, cast, get_args

import numpy as np
from numpy.typing import NDArray

from webnn_wgpu.api.graph import MLGraph
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
from webnn_wgpu.formats.weights import MAGIC, MANIFEST_FORMATS, PACKED_MARK, SAFETENSORS_TYPES
from webnn_wgpu.formats.writing import to_json, to_text

Array = NDArray[Any]
Weights = Literal["auto", "weights", "safetensors", "inline"]
SMALL = 1024
"""Bytes of a constant that is written in place with `weights="auto"`, at most."""

ALWAYS = frozenset({("gru", "reset_after"), ("gruCell", "reset_after"), ("layerNormalization", "axes")})
"""Options that are always written: other readers have other defaults."""


def write(graph: MLGraph, path: str | os.PathLike[str], *, weights: Weights = "auto", quantized: bool = False) -> list[Path]:
    """Write a graph as it was built, before any pass.

    Args:
        graph: the graph.
        path: the file: `.json` for the JSON form, any other suffix for the text.
        weights: where constants are written. "auto": those above 1 KiB to `NAME.weights` and `NAME.manifest.json`; "weights":
            all but those of equal elements; "safetensors": these to `NAME.safetensors`; "inline": all in the file itself.
        quantized: the file's remark that the graph is quantized.

    Returns:
        The files that were written.

    Raises:
        MLTypeError: an unknown `weights`.
        NotSupportedError: an operator that files cannot have: one of the caller's own WGSL, or outputs that update inputs.
    """
    if weights not in get_args(Weights):
        raise MLTypeError("unknown weights", operator="save", got=repr(weights), allowed=", ".join(get_args(Weights)))
    target = Path(path)
    document, arrays = document_of(graph, target.stem, weights, quantized)
    form = to_json if target.suffix.lower() == ".json" else to_text
    files = {target: form(document).encode()}
    if arrays and weights == "safetensors":
        files[target.with_suffix(".safetensors")] = _safetensors(arrays)
    elif arrays:
        blob, manifest = _blob(arrays)
        files |= {target.with_suffix(".weights"): blob, target.with_name(f"{target.stem}.manifest.json"): manifest}
    for file, content in files.items():
        _replace(file, content)
    return list(files)


def _replace(file: Path, content: bytes) -> None:
    """Write a file under a temporary name, so that it is whole or not there."""
    with tempfile.NamedTemporaryFile(dir=file.parent, prefix=f".{file.name}.", delete=False) as made:
        made.write(content)
    os.chmod(made.name, 0o644)
    os.replace(made.name, file)


def document_of(
    graph: MLGraph, name: str = "graph", weights: Weights = "inline", quantized: bool = False
) -> tuple[Document, dict[str, Array]]:
    """Return a graph as a document, and the constants that it refers to by their keys."""
    return _Exporter(graph, weights).document(name or "graph", quantized)


class _Exporter:
    """One walk over a graph."""

    def __init__(self, graph: MLGraph, weights: Weights) -> None:
        self.source, self.weights = graph.source, weights
        if self.source.aliases:
            raise NotSupportedError("outputs that update inputs in place cannot be written", operator="save")
        self.location = Location(name := "")
        self.names: dict[int, str] = {}
        self.taken: set[str] = {name}
        self.arrays: dict[str, Array] = {}

    def name(self, value: int, wanted: str) -> str:
        """Return a value's name: the wanted one, or one like it that is not taken."""
        found, number = wanted, 1
        while found in self.taken:
            number += 1
            found = f"{wanted}_{number}"
        self.taken.add(found)
        self.names[value] = found
        return found

    def document(self, name: str, quantized: bool) -> tuple[Document, dict[str, Array]]:
        source = self.source
        for own, value in source.inputs.items():
            self.name(value, own)
        for own, value in source.outputs.items():
            if value not in self.names and value not in source.constants and own not in self.taken:
                self.name(value, own)
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
            if written != default or option in form.arguments or (form.name, option) in ALWAYS:
                options[camel(option)] = written
        if node.label and node.label != results[0]:
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


def _blob(arrays: Mapping[str, Array]) -> tuple[bytes, bytes]:
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


def _safetensors(arrays: Mapping[str, Array]) -> bytes:
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
