"""The reader of ONNX files, which returns `onnx_ir` models and refuses broken or hostile files before their use."""

from __future__ import annotations

import mmap
import os
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import onnx
import onnx_ir
from google.protobuf.message import DecodeError
from onnx_ir.passes.common import InlinePass

from webnn_wgpu import NotSupportedError
from webnn_wgpu.api.garbage import Scarce

from ..kinds import mistaken_for_model
from .embedded import Malformed, without_weights
from .module import all_nodes, refusal, version_of
from .signatures import fault_of
from .types import logical

DATA_FIELDS = ("float_data", "int32_data", "int64_data", "double_data", "uint64_data", "string_data")
"""The fields of a tensor that contain its elements, if they are not stored as bytes."""

_START_BYTES = 512
"""The number of bytes by which other kinds of files are recognized."""

MOST_NODES = 1_000_000
"""The maximum number of nodes of a model with inlined local functions."""


def read(source: str | os.PathLike[str] | bytes | onnx.ModelProto) -> tuple[onnx_ir.Model, str]:
    """Read a model.

    Args:
        source: the path of a file, its bytes, or a parsed model.

    Returns:
        The model with local functions inlined and nodes in topological order, and its name in messages.

    Raises:
        FileNotFoundError: the file does not exist.
        NotSupportedError: the file is no ONNX model, or a broken one. The message states the fault.
    """
    files: _Files | None = None
    if isinstance(source, onnx.ModelProto):
        proto, name = source, source.graph.name or "the model"
    elif isinstance(source, bytes):
        name = "the model"
        proto = _parsed(source, name)
    else:
        path = Path(source)
        name, files = path.name, _Files(path)
        proto = _parsed(_light(path, files), name)
    if not proto.HasField("graph"):
        raise NotSupportedError(f"{name} is not an ONNX model: it holds no graph")
    if not proto.opset_import:
        raise NotSupportedError(f"{name} does not say which operator sets it uses")
    newest = onnx.defs.onnx_opset_version()
    for opset in proto.opset_import:
        if opset.domain in ("", "ai.onnx") and not 1 <= opset.version <= newest:
            raise NotSupportedError(
                f"{name} uses operator set {opset.version}",
                allowed=f"1 up to {newest}",
                hint="A newer onnx package may know it",
            )
    with _read_by_onnx_ir(name):
        model = onnx_ir.from_proto(proto)
    for value, declared in zip(model.graph.inputs, proto.graph.input, strict=True):
        if value.type is None:  # An output of the same name without a type removes the input's type.
            with _read_by_onnx_ir(name):
                onnx_ir.serde.deserialize_value_info_proto(declared, value)
    _inline(model, name)
    with _read_by_onnx_ir(name):
        model.graph.sort()
    _check(model, model.graph, name, set())
    for tensor in _tensors(model, lambda tensor: _in_place(tensor, files, name)):
        if isinstance(tensor, onnx_ir.TensorProtoTensor) and tensor.size and not _has_data(tensor.raw):
            # onnx_ir reads zeros from such a tensor.
            raise NotSupportedError(f"{name}: initializer '{tensor.name}' has no data")
    return model, name


@contextmanager
def _read_by_onnx_ir(name: str) -> Generator[None]:
    """Raise NotSupportedError for any error of onnx_ir. Only calls of onnx_ir belong in the block."""
    try:
        yield
    except Exception as error:
        raise NotSupportedError(f"{name} is broken: {type(error).__name__}: {error}") from error


_maps: Scarce[mmap.mmap] = Scarce(few=32)
"""The mapped files. They stay open because values and nodes of a model refer to each other."""


class _Files:
    """The files of a model's weights, each mapped once: every mapping keeps a file open.

    The files are searched beside the model's path, and beside the file that the path links to. Download caches store files
    under other names and link to them.
    """

    def __init__(self, model: Path) -> None:
        self._folders = tuple(dict.fromkeys((model.absolute().parent, model.resolve().parent)))
        self._inside = tuple(folder.resolve() for folder in self._folders)
        self._mapped: dict[Path, mmap.mmap] = {}

    def whole(self, path: Path) -> memoryview:
        """Return the contents of a file."""
        path = path.resolve()
        if path not in self._mapped:
            _maps.make_room()
            with path.open("rb") as file:
                if not os.fstat(file.fileno()).st_size:
                    return memoryview(b"")
                # Not closed explicitly: slices of the map, also those in an error's traceback, keep it open.
                self._mapped[path] = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
            _maps.add(self._mapped[path])
        return memoryview(self._mapped[path])

    def find(self, location: str) -> Path | None:
        """Return the path of external data, or None if there is no such file.

        Raises:
            ValueError: the file is outside of the model's folders.
        """
        for folder in self._folders:
            path = (folder / location).resolve()
            if Path(location).is_absolute() or not set(path.parents).intersection(self._inside):
                raise ValueError(location)
            if path.is_file():
                return path
        return None


def _light(path: Path, files: _Files) -> bytes:
    """Return the bytes of a model with large initializers as external data in the same file."""
    if not (whole := files.whole(path)):
        raise NotSupportedError(f"{path.name} is not an ONNX model", got="an empty file")
    try:
        return without_weights(whole, path.name)
    except Malformed as error:
        raise _no_model(path.name, bytes(whole[:_START_BYTES]), error) from error


def _parsed(data: bytes, name: str) -> onnx.ModelProto:
    proto = onnx.ModelProto()
    try:
        proto.ParseFromString(data)
    except DecodeError as error:
        raise _no_model(name, data[:_START_BYTES], error) from error
    return proto


def _no_model(name: str, start: bytes, error: Exception) -> NotSupportedError:
    """Return the error of a file that is no protobuf message."""
    found, hint = mistaken_for_model(start)
    if found:
        return NotSupportedError(f"{name} is not an ONNX model", got=found, hint=hint)
    return NotSupportedError(f"{name} is not an ONNX model, or a truncated one: {error}")


def _inline(model: onnx_ir.Model, name: str) -> None:
    """Inline local functions, unless the result would exceed the maximum number of nodes."""
    if not model.functions:
        return
    sizes: dict[onnx_ir.OperatorIdentifier, int] = {}

    def size(nodes: Iterator[onnx_ir.Node], callers: tuple[onnx_ir.OperatorIdentifier, ...]) -> int:
        count = 0
        for node in nodes:
            called = node.op_identifier()
            if called in callers:
                raise NotSupportedError(f"{name}: function {called[0]}::{called[1]} calls itself")
            if called in model.functions:
                if called not in sizes:
                    sizes[called] = size(iter(model.functions[called].all_nodes()), (*callers, called))
                count += sizes[called]
            count += 1
        return count

    total = size(iter(model.graph.all_nodes()), ())
    if total > MOST_NODES:
        raise NotSupportedError(f"{name} has {total} nodes once its functions are inlined", allowed=f"up to {MOST_NODES}")
    with _read_by_onnx_ir(name):
        InlinePass()(model)


def _check(model: onnx_ir.Model, graph: onnx_ir.Graph, name: str, outer: set[onnx_ir.Value]) -> None:
    """Refuse undefined values, names that are no text, and nodes that do not fit their operators' schemas."""
    known = outer | set(graph.inputs) | set(graph.initializers.values())
    _check_names(name, *(value.name for value in known))
    for node in graph:
        values = (value.name for value in (*node.inputs, *node.outputs) if value is not None)
        _check_names(name, node.op_type, node.domain, node.name, *node.attributes, *values)
        if not node.outputs:
            raise NotSupportedError(f"{name}: node '{node.name}' ({node.op_type}) has no outputs")
        for value in node.inputs:
            if value is not None and value not in known:
                raise NotSupportedError(
                    f"{name}: node '{node.name}' ({node.op_type}) reads '{value.name}', which nothing defines"
                )
        if fault := fault_of(node, version_of(model, node)):
            raise refusal(name, model, node, fault)
        for attribute in node.attributes.values():
            if attribute.type == onnx_ir.AttributeType.GRAPH:
                _check(model, attribute.value, name, known)
        known.update(node.outputs)
    for value in graph.outputs:
        if value not in known:
            raise NotSupportedError(f"{name}: output '{value.name}' is defined by nothing")


def _check_names(name: str, *names: object) -> None:
    """Refuse bytes, which protobuf returns for names that are not UTF-8."""
    for each in names:
        if not isinstance(each, str | None):
            raise NotSupportedError(f"{name} has a name that is no UTF-8: {each!r}")


def _tensors(
    model: onnx_ir.Model, changed: Callable[[onnx_ir.TensorProtocol], onnx_ir.TensorProtocol]
) -> Iterator[onnx_ir.TensorProtocol]:
    """Replace all tensors of a model, and return the new ones."""

    def of(values: Iterable[onnx_ir.Value]) -> Iterator[onnx_ir.TensorProtocol]:
        for value in values:
            if value.const_value is not None:
                value.const_value = changed(value.const_value)
                yield value.const_value

    yield from of(model.graph.initializers.values())
    for node in all_nodes(list(model.graph)):
        for attribute in list(node.attributes.values()):
            if attribute.type == onnx_ir.AttributeType.TENSOR:
                tensor = changed(attribute.value)
                if tensor is not attribute.value:
                    node.attributes[attribute.name] = onnx_ir.AttrTensor(attribute.name, tensor)
                yield tensor
            elif attribute.type == onnx_ir.AttributeType.GRAPH:
                yield from of(attribute.value.initializers.values())


def _has_data(tensor: onnx.TensorProto) -> bool:
    """Whether a tensor has elements: bytes, or numbers in the field of its type."""
    return tensor.HasField("raw_data") or any(len(getattr(tensor, field)) for field in DATA_FIELDS)


def _in_place(tensor: onnx_ir.TensorProtocol, files: _Files | None, name: str) -> onnx_ir.TensorProtocol:
    """Return a tensor that reads its external data in place.

    The data must be in the model's folder and long enough.
    """
    if not isinstance(tensor, onnx_ir.ExternalTensor):
        return tensor
    if files is None:
        raise NotSupportedError(f"{name} keeps '{tensor.name}' in the file '{tensor.location}': load it by its path")
    try:
        path = files.find(os.fspath(tensor.location))
    except (ValueError, OSError):  # or its name is invalid for a file
        raise NotSupportedError(
            f"{name} keeps '{tensor.name}' in '{tensor.location}', which is outside the model's folder"
        ) from None
    if path is None:
        raise NotSupportedError(f"{name} keeps '{tensor.name}' in '{tensor.location}', which is not there")
    dtype, data, begin = logical(tensor.dtype), files.whole(path), tensor.offset or 0
    length = tensor.length if tensor.length is not None else len(data) - begin
    if dtype is None:
        return tensor
    if min(tensor.shape.numpy(), default=0) < 0:
        raise NotSupportedError(f"{name}: '{tensor.name}' has a negative size: {list(tensor.shape.numpy())}")
    if begin < 0 or begin + length > len(data) or length < tensor.nbytes:
        raise NotSupportedError(f"{name}: '{tensor.name}' reaches beyond the end of its data in '{tensor.location}'")
    if tensor.dtype.bitwidth < 8:  # onnx_ir unpacks the numbers from their bytes
        raw = bytes(data[begin : begin + length])
        proto = onnx.TensorProto(name=tensor.name, data_type=tensor.dtype, dims=tensor.shape.numpy(), raw_data=raw)
        return onnx_ir.TensorProtoTensor(proto)
    array = np.frombuffer(data, tensor.dtype.numpy(), tensor.size, begin) if tensor.size else np.empty(0, tensor.dtype.numpy())
    return onnx_ir.Tensor(array.reshape(tensor.shape.numpy()), tensor.dtype, name=tensor.name)
