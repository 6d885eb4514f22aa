"""Small TFLite models, written for tests."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import flatbuffers
import numpy as np
import tflite

TYPES = {
    "float32": 0,
    "float16": 1,
    "int32": 2,
    "uint8": 3,
    "int64": 4,
    "string": 5,
    "bool": 6,
    "int16": 7,
    "complex64": 8,
    "int8": 9,
}
NAMES = {name: number for name, number in vars(tflite.BuiltinOperator).items() if isinstance(number, int)}

Options = Callable[[flatbuffers.Builder], int]


@dataclass(kw_only=True)
class Tensor:
    """A tensor of a model; with `data`, a constant."""

    name: str
    shape: Sequence[int]
    dtype: str = "float32"
    data: Any = None
    signature: Sequence[int] | None = None
    scale: float | None = None
    zero_point: int = 0
    variable: bool = False


@dataclass(kw_only=True)
class Op:
    """An operator of a model, with the numbers of its tensors."""

    name: str
    inputs: Sequence[int]
    outputs: Sequence[int]
    version: int = 1
    intermediates: Sequence[int] = ()
    custom: bool = False
    options: Options | None = None
    options_type: int = 0
    custom_options: bytes = b""


@dataclass(kw_only=True)
class Graph:
    """A subgraph of a model."""

    tensors: Sequence[Tensor]
    ops: Sequence[Op]
    inputs: Sequence[int]
    outputs: Sequence[int]


@dataclass(kw_only=True)
class Written:
    """What is collected while a model is written."""

    builder: flatbuffers.Builder
    buffers: list[bytes] = field(default_factory=lambda: [b""])
    codes: list[tuple[str, bool, int]] = field(default_factory=list)


def model(graph: Graph, *others: Graph) -> bytes:
    """Return the bytes of a model."""
    written = Written(builder=flatbuffers.Builder(1024))
    b = written.builder
    subgraphs = [_subgraph(written, g) for g in (graph, *others)]
    codes = [_code(b, *code) for code in written.codes]
    buffers = [_buffer(b, data) for data in written.buffers]
    vectors = [
        _offsets(b, tflite.ModelStartSubgraphsVector, subgraphs),
        _offsets(b, tflite.ModelStartOperatorCodesVector, codes),
        _offsets(b, tflite.ModelStartBuffersVector, buffers),
    ]
    tflite.ModelStart(b)
    tflite.ModelAddVersion(b, 3)
    tflite.ModelAddSubgraphs(b, vectors[0])
    tflite.ModelAddOperatorCodes(b, vectors[1])
    tflite.ModelAddBuffers(b, vectors[2])
    b.Finish(tflite.ModelEnd(b), b"TFL3")
    return bytes(b.Output())


def single(op: str, tensors: Sequence[Tensor], inputs: int, **details: Any) -> bytes:
    """Return a model of one operator that reads all tensors but the last, which it writes. The first are the inputs."""
    last = len(tensors) - 1
    node = Op(name=op, inputs=list(range(last)), outputs=[last], **details)
    return model(Graph(tensors=tensors, ops=[node], inputs=list(range(inputs)), outputs=[last]))


def _offsets(b: flatbuffers.Builder, start: Callable[[Any, int], int], offsets: Sequence[int]) -> int:
    start(b, len(offsets))
    for offset in reversed(offsets):
        b.PrependUOffsetTRelative(offset)
    return b.EndVector()


def _ints(b: flatbuffers.Builder, values: Sequence[int]) -> int:
    return b.CreateNumpyVector(np.array(values, np.int32))


def _code(b: flatbuffers.Builder, name: str, custom: bool, version: int) -> int:
    number = NAMES["CUSTOM"] if custom else NAMES[name]
    text = b.CreateString(name) if custom else 0
    tflite.OperatorCodeStart(b)
    tflite.OperatorCodeAddDeprecatedBuiltinCode(b, min(number, 127))
    tflite.OperatorCodeAddBuiltinCode(b, number)
    tflite.OperatorCodeAddVersion(b, version)
    if custom:
        tflite.OperatorCodeAddCustomCode(b, text)
    return tflite.OperatorCodeEnd(b)


def _buffer(b: flatbuffers.Builder, data: bytes) -> int:
    vector = b.CreateByteVector(data) if data else 0
    tflite.BufferStart(b)
    if data:
        tflite.BufferAddData(b, vector)
    return tflite.BufferEnd(b)


def _subgraph(written: Written, graph: Graph) -> int:
    b = written.builder
    tensors = [_tensor(written, t) for t in graph.tensors]
    ops = [_op(written, op) for op in graph.ops]
    vectors = [
        _offsets(b, tflite.SubGraphStartTensorsVector, tensors),
        _offsets(b, tflite.SubGraphStartOperatorsVector, ops),
        _ints(b, graph.inputs),
        _ints(b, graph.outputs),
    ]
    tflite.SubGraphStart(b)
    tflite.SubGraphAddTensors(b, vectors[0])
    tflite.SubGraphAddOperators(b, vectors[1])
    tflite.SubGraphAddInputs(b, vectors[2])
    tflite.SubGraphAddOutputs(b, vectors[3])
    return tflite.SubGraphEnd(b)


def _tensor(written: Written, tensor: Tensor) -> int:
    b = written.builder
    buffer = 0
    if tensor.data is not None:
        data = tensor.data if isinstance(tensor.data, bytes) else np.asarray(tensor.data, tensor.dtype).tobytes()
        written.buffers.append(data)
        buffer = len(written.buffers) - 1
    name, shape = b.CreateString(tensor.name), _ints(b, tensor.shape)
    signature = None if tensor.signature is None else _ints(b, tensor.signature)
    quantization = None
    if tensor.scale is not None:
        scales = b.CreateNumpyVector(np.array([tensor.scale], np.float32))
        points = b.CreateNumpyVector(np.array([tensor.zero_point], np.int64))
        tflite.QuantizationParametersStart(b)
        tflite.QuantizationParametersAddScale(b, scales)
        tflite.QuantizationParametersAddZeroPoint(b, points)
        quantization = tflite.QuantizationParametersEnd(b)
    tflite.TensorStart(b)
    tflite.TensorAddName(b, name)
    tflite.TensorAddShape(b, shape)
    tflite.TensorAddType(b, TYPES[tensor.dtype])
    tflite.TensorAddBuffer(b, buffer)
    tflite.TensorAddIsVariable(b, tensor.variable)
    if signature is not None:
        tflite.TensorAddShapeSignature(b, signature)
    if quantization is not None:
        tflite.TensorAddQuantization(b, quantization)
    return tflite.TensorEnd(b)


def _op(written: Written, op: Op) -> int:
    b = written.builder
    code = (op.name, op.custom, op.version)
    if code not in written.codes:
        written.codes.append(code)
    inputs, outputs, intermediates = (_ints(b, numbers) for numbers in (op.inputs, op.outputs, op.intermediates))
    options = op.options(b) if op.options is not None else None
    custom = b.CreateByteVector(op.custom_options) if op.custom_options else None
    tflite.OperatorStart(b)
    tflite.OperatorAddOpcodeIndex(b, written.codes.index(code))
    tflite.OperatorAddInputs(b, inputs)
    tflite.OperatorAddOutputs(b, outputs)
    tflite.OperatorAddIntermediates(b, intermediates)
    if options is not None:
        tflite.OperatorAddBuiltinOptionsType(b, op.options_type)
        tflite.OperatorAddBuiltinOptions(b, options)
    if custom is not None:
        tflite.OperatorAddCustomOptions(b, custom)
    return tflite.OperatorEnd(b)
