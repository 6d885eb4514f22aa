"""`to_onnx`: a graph as an ONNX model."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import external_data_helper

from webnn_wgpu.api.graph import Graph, MLGraph
from webnn_wgpu.api.ml import ml
from webnn_wgpu.core.errors import NotSupportedError
from webnn_wgpu.formats.names import UniqueNames

from ..arguments import check_graph
from ..files import replace_files
from ..standard import standard
from . import elementwise, movement, quantization, recurrent, rows, windows
from .call import BITCAST_OPSET, ELEMENT_TYPES, WRITERS, Array, OnnxCall, OnnxValue, Shape
from .dynamic import with_dynamic

LOW, HIGH = 18, 21
"""Versions of the operator set: the lower one is taken if it is enough. Only bit casts need a higher one."""

IR_VERSIONS = ((25, 13), (24, 12), (23, 11), (21, 10), (19, 9), (0, 8))
"""Least version of the operator set, and version of the file format that goes with it."""

INLINE_LIMIT = 1 << 30
"""Bytes of a model above which its initializers are written to a file beside it."""

PROTOBUF_LIMIT = (1 << 31) - 1
SMALL = 1024

MODULES = (elementwise, movement, quantization, recurrent, rows, windows)
"""The modules that fill `WRITERS`."""


def to_onnx(graph: MLGraph, *, opset: int | None = None) -> onnx.ModelProto:
    """Return a graph as it was built, before any pass, as an ONNX model.

    An output that has the name of an input gets another, as names of values are unique in ONNX.

    Args:
        graph: the graph.
        opset: the version of ONNX's operator set. By default the lowest one of 18, 21 and 26 that has all operators.

    Returns:
        The model, with all constants in it.

    Raises:
        MLTypeError: `graph` is no graph.
        NotSupportedError: an operator that ONNX does not have, or not in this version, and outputs that update inputs in place.

    Example:
        >>> from webnn_wgpu.exporters.onnx import to_onnx
        >>> model = to_onnx(b.build({"y": b.softmax(x, 1, label="scores")}))
        >>> [(node.op_type, node.name) for node in model.graph.node], model.opset_import[0].version
        ([('Softmax', 'scores')], 18)
    """
    check_graph(graph, "to_onnx")
    if graph.source.aliases:
        raise NotSupportedError("outputs that update inputs in place cannot be written as ONNX", operator="to_onnx")
    with ml.create_context(backend="reference") as context:
        source = standard(graph, context, keep=WRITERS).source
    return _Model(source, needed_opset(source) if opset is None else opset).proto()


def write_onnx(
    graph: MLGraph,
    path: str | os.PathLike[str],
    *,
    opset: int | None = None,
    external_data: bool | None = None,
    dynamic: Mapping[str, int] | None = None,
    graph_of_sizes: Callable[[Mapping[str, int]], MLGraph] | None = None,
    order: Sequence[str] = (),
) -> list[Path]:
    """Write a graph as an ONNX file.

    Args:
        graph: the graph.
        path: the file.
        opset: as for `to_onnx`.
        external_data: whether constants above 1 KiB are written to `NAME.onnx.data`. By default where the model would have
            more than 1 GiB.
        dynamic: names of dynamic dimensions with their largest sizes, for which `graph` is made.
        graph_of_sizes: returns the graph for other sizes of these dimensions.
        order: names of inputs in the order that the file gets. Inputs without a place follow in the graph's order.

    Returns:
        The files that were written.

    Raises:
        NotSupportedError: as `to_onnx`, or a model beyond the 2 GiB of a file without external data.

    Example:
        >>> import tempfile
        >>> from webnn_wgpu.exporters.onnx import write_onnx
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     [path.name for path in write_onnx(b.build({"y": b.softmax(x, 1)}), f"{folder}/scores.onnx")]
        ['scores.onnx']
    """
    target = Path(path)
    model = to_onnx(graph, opset=opset)
    if dynamic and graph_of_sizes:
        opset = model.opset_import[0].version
        model = with_dynamic(model, dynamic, lambda sizes: to_onnx(graph_of_sizes(sizes), opset=opset))
    places = {name: i for i, name in enumerate(order)}
    model.graph.input.sort(key=lambda value: places.get(value.name, len(places)))
    size = sum(len(t.raw_data) for t in model.graph.initializer)
    if external_data is False and size > PROTOBUF_LIMIT:
        raise NotSupportedError(
            "an ONNX file without external data holds 2 GiB", operator="save", got=f"{size} bytes of constants"
        )
    files: dict[Path, list[bytes]] = {}
    if external_data or (external_data is None and size > INLINE_LIMIT):
        beside = target.with_name(f"{target.name}.data")
        files[beside] = _moved_out(model, beside.name)
    files[target] = [model.SerializeToString(deterministic=True)]
    return replace_files(files)


def _moved_out(model: onnx.ModelProto, name: str) -> list[bytes]:
    """Take large initializers out of a model, and return the parts of the file that holds them."""
    parts: list[bytes] = []
    offset = 0
    for tensor in model.graph.initializer:
        if len(tensor.raw_data) <= SMALL:
            continue
        data = tensor.raw_data
        external_data_helper.set_external_data(tensor, location=name, offset=offset, length=len(data))
        tensor.ClearField("raw_data")
        # Readers map the file, so that tensors begin at whole pages of the most common size.
        padding = -len(data) % 4096
        parts += [data, bytes(padding)]
        offset += len(data) + padding
    return parts


def needed_opset(source: Graph) -> int:
    """Return the lowest of three versions of the operator set that has everything that a graph needs."""
    if any(node.op == "x.bitcast" for node in source.nodes):
        return BITCAST_OPSET
    for node in source.nodes:
        types = tuple(source.type(v).data_type for v in (*node.operands, *node.outputs))
        if any(t.endswith("int4") for t in types) or node.op in ("x.grid_sample", "x.round_float8"):
            return HIGH
        if node.op in ("quantizeLinear", "dequantizeLinear"):
            shapes = [source.type(v).shape for v in node.operands[:2]]
            if quantization.needed_opset(types, shapes[0], shapes[1]) > LOW:
                return HIGH
        if node.op == "averagePool2d" and tuple(node.attrs["dilations"]) != (1, 1):
            return HIGH
    return LOW


class _Model:
    """One walk over a graph."""

    def __init__(self, source: Graph, opset: int) -> None:
        self.source, self.opset = source, opset
        # WebNN has two spaces of names, ONNX one: an output with the name of an input gets another.
        self.value_names = UniqueNames(["", *source.inputs])
        self.node_names = UniqueNames()
        self.values: dict[int, OnnxValue] = {}
        self.nodes: list[onnx.NodeProto] = []
        self.constants: dict[str, Array] = {}
        self.types: dict[str, tuple[str, Shape]] = {}
        self.outputs = {self.value_names.of(name): number for name, number in source.outputs.items()}

    def value(self, number: int, name: str, array: Array | None = None) -> OnnxValue:
        type_ = self.source.type(number)
        found = OnnxValue(name, type_.data_type, tuple(type_.shape), array)
        self.values[number] = found
        return found

    def proto(self) -> onnx.ModelProto:
        source = self.source
        for name, number in source.inputs.items():
            self.value(number, name)
        for i, (number, array) in enumerate(source.constants.items()):
            found = self.value(number, self.value_names.of(source.values[number].name or f"constant_{i}"), array)
            self.constants[found.name] = array
        ends: dict[int, str] = {}
        for name, number in self.outputs.items():
            if number not in self.values:
                ends.setdefault(number, name)
        for i, node in enumerate(source.nodes):
            self.operator(i, node, ends)
        for name, number in self.outputs.items():
            if ends.get(number) != name:
                own = self.node_names.of(name)
                self.nodes.append(onnx.helper.make_node("Identity", [self.values[number].name], [name], own))
        nodes = _without_double_casts(self.nodes, self.types, set(self.outputs))
        used = {name for node in nodes for name in node.input}
        produced = [name for node in nodes for name in node.output if name and name not in self.outputs]
        graph = onnx.helper.make_graph(
            nodes,
            "webnn",
            [self.info(name, number) for name, number in source.inputs.items()],
            [self.info(name, number) for name, number in self.outputs.items()],
            [_tensor(name, array) for name, array in self.constants.items() if name in used],
            value_info=[_info(name, *self.types[name]) for name in produced if name in self.types],
        )
        return onnx.helper.make_model(
            graph,
            opset_imports=[
                onnx.helper.make_opsetid(domain, self.opset if not domain else 1)
                for domain in dict.fromkeys(["", *(node.domain for node in nodes)])
            ],
            ir_version=next(version for least, version in IR_VERSIONS if self.opset >= least),
            producer_name="webnn_wgpu",
            producer_version=import_module("webnn_wgpu").__version__,
        )

    def info(self, name: str, number: int) -> onnx.ValueInfoProto:
        type_ = self.source.type(number)
        return _info(name, type_.data_type, tuple(type_.shape))

    def operator(self, i: int, node: Any, ends: Mapping[int, str]) -> None:
        writer = WRITERS.get(node.op)
        base = node.label or f"{node.op}_{i}"
        call = OnnxCall(
            operator=node.op,
            label=node.label,
            base=base,
            attrs=node.attrs,
            operands=[None if v is None else self.values[v] for v in node.inputs],
            results=[(self.source.type(v).data_type, tuple(self.source.type(v).shape)) for v in node.outputs],
            opset=self.opset,
            names=self.value_names,
        )
        if writer is None:
            raise call.refuse("ONNX has no such operator")
        made = writer(call)
        made = made if isinstance(made, list) else [made]
        produced = {name for own in call.nodes for name in own.output}
        renamed: dict[str, str] = {}
        for j, (number, result) in enumerate(zip(node.outputs, made, strict=True)):
            wanted = ends.get(number) or self.value_names.of(base if j == 0 else f"{base}_{j}")
            self.value(number, wanted)
            if result.name not in produced or result.name in renamed:
                call.nodes.append(onnx.helper.make_node("Identity", [renamed.get(result.name, result.name)], [wanted]))
            else:
                renamed[result.name] = wanted
            self.types[wanted] = (result.data_type, result.shape)
        for own in call.nodes:
            for names in (own.input, own.output):
                for k, name in enumerate(names):
                    names[k] = renamed.get(name, name)
        for name, type_ in call.types.items():
            self.types[renamed.get(name, name)] = type_
        for own in call.nodes:
            last = own is call.nodes[-1]
            own.name = self.node_names.of(base if last else f"{base}_{own.op_type}")
        self.nodes += call.nodes
        self.constants |= call.constants


def _info(name: str, data_type: str, shape: Shape) -> onnx.ValueInfoProto:
    return onnx.helper.make_tensor_value_info(name, ELEMENT_TYPES[data_type], list(shape))


def _tensor(name: str, array: Array) -> onnx.TensorProto:
    """Return an initializer. Elements of 4 bits are two in a byte, the first in the low half."""
    kind = array.dtype.name
    if kind.endswith("int4"):
        nibbles = array.reshape(-1).astype(np.int8).view(np.uint8) & 15
        padded = np.concatenate([nibbles, np.zeros(nibbles.size % 2, np.uint8)])
        data = (padded[::2] | padded[1::2] << 4).tobytes()
    else:
        data = np.ascontiguousarray(array).tobytes()
    return onnx.TensorProto(name=name, data_type=ELEMENT_TYPES[kind], dims=array.shape, raw_data=data)


def _without_double_casts(
    nodes: Sequence[onnx.NodeProto], types: Mapping[str, tuple[str, Shape]], outputs: set[str]
) -> list[onnx.NodeProto]:
    """Return nodes without casts of logical values to numbers and back."""
    truths: dict[str, str] = {}
    same: dict[str, str] = {}
    kept: list[onnx.NodeProto] = []
    for node in nodes:
        for i, name in enumerate(node.input):
            node.input[i] = same.get(name, name)
        if node.op_type == "Cast":
            source, target = types.get(node.input[0], ("", ()))[0], types[node.output[0]][0]
            if source == "bool" and target == "uint8":
                truths[node.output[0]] = node.input[0]
            elif target == "bool" and node.input[0] in truths and node.output[0] not in outputs:
                same[node.output[0]] = truths[node.input[0]]
                continue
        kept.append(node)
    needed = {name for node in kept for name in node.input} | outputs
    return [node for node in kept if node.op_type != "Cast" or node.output[0] in needed]
