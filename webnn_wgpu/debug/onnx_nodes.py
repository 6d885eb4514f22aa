"""Models compared with onnxruntime node by node."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import onnx
import onnx_ir

from webnn_wgpu import NotSupportedError, load_onnx
from webnn_wgpu.accuracy.judging import Judgement
from webnn_wgpu.core.data_types import Array

from .comparison import Comparison, compare
from .report import GraphDiff, OperatorDiff
from .repro import Repro, new_folder

if TYPE_CHECKING:
    from webnn_wgpu.frontends.common.model import ImportedModel
    from webnn_wgpu.frontends.onnx.model import Model
    from webnn_wgpu.frontends.webnn import WebNNModel

RELATIVE, ABSOLUTE = 1e-3, 1e-4
"""The bounds of an element: relative to the expected one, and relative to the largest expected one."""

_NODE = """model = wn.load_onnx(HERE / "{stem}.onnx", context, fallback="host")
results = model.run({feeds})
found = dict(zip({names}, results.values(), strict=True))"""


def onnxruntime() -> Any:
    """Return the module.

    Raises:
        NotSupportedError: onnxruntime is not installed.
    """
    try:
        return import_module("onnxruntime")
    except ModuleNotFoundError as error:
        hint = 'pip install onnxruntime, or compare with against="reference"'
        raise NotSupportedError("onnxruntime is not installed", hint=hint) from error


def run_onnxruntime(model: Any, feeds: Mapping[str, Array], outputs: Sequence[str] | None = None) -> dict[str, Array]:
    """Run a model by onnxruntime on the CPU without fusion: fused, 4-bit products round their activations to 8 bits.

    Args:
        model: the path or bytes of an ONNX model.
        feeds: the inputs.
        outputs: the names of the requested outputs. None is all of them.

    Raises:
        NotSupportedError: onnxruntime is not installed, or cannot run the model.
    """
    runtime = onnxruntime()
    try:
        plain = runtime.SessionOptions()
        plain.graph_optimization_level = runtime.GraphOptimizationLevel.ORT_DISABLE_ALL
        plain.log_severity_level = 3
        session = runtime.InferenceSession(model, plain, providers=["CPUExecutionProvider"])
        names = [o.name for o in session.get_outputs()] if outputs is None else list(outputs)
        return dict(zip(names, session.run(names, dict(feeds)), strict=True))
    except Exception as error:  # onnxruntime's kinds share no base
        raise NotSupportedError("onnxruntime must run the model", got=str(error)) from error


def exported(model: WebNNModel | ImportedModel, feeds: Mapping[str, Any]) -> Model:
    """Return a WebNN model as an ONNX model on the same context, for the sizes of these inputs."""
    from webnn_wgpu.exporters.onnx import to_onnx

    model.run(feeds)
    return load_onnx(to_onnx(model.graphs[-1]), model.context, fallback="host")


def diff_nodes(model: Model, feeds: Mapping[str, Any], folder: Path | None) -> GraphDiff:
    """Compare an ONNX model's nodes with onnxruntime.

    Both run the whole model with every result as an output. A node with a wrong result then runs by itself, on its operands in
    onnxruntime, so that an earlier error does not count for it.

    Args:
        model: the model.
        feeds: its inputs.
        folder: the folder for repros. None is a new folder.
    """
    whole = _whole(model.source)
    own = [output.name for output in whole.graph.output]
    names = [name for node in whole.graph.node for name in node.output if name]
    whole.graph.output.extend(onnx.ValueInfoProto(name=name) for name in names if name not in own)
    given = {info.name: array for info, array in zip(model.inputs, model.checked_feeds(feeds), strict=True)}
    expected: dict[str, Any] = {**given, **run_onnxruntime(whole.SerializeToString(), given, [*own, *names])}
    with load_onnx(whole, model.context, fallback="host", override_dims=model.dims) as exposed:
        results = exposed.run(given)
    constants = {tensor.name: tensor for tensor in whole.graph.initializer}
    found: list[OperatorDiff] = []
    repros: dict[int, Repro] = {}
    uncompared: list[str] = []
    for node in whole.graph.node:
        label = node.name or node.output[0]
        made = [name for name in node.output if name]
        # Sequences are lists there, and strings objects.
        if any(getattr(expected[name], "dtype", np.dtype(object)).hasobject for name in made):
            uncompared.append(label)
            continue
        entry = _entry(node, label, [results[name] for name in made], [expected[name] for name in made])
        if not entry:
            alone = _alone(whole, node, expected, constants)
            operands = {name: expected[name] for name in _read(alone)}
            with load_onnx(alone, model.context, fallback="host") as one:
                mine = one.run(operands)
            wanted = run_onnxruntime(alone.SerializeToString(), operands)
            entry = _entry(node, label, list(mine.values()), list(wanted.values()))
            if not entry:
                repros[len(found)] = _repro(model, alone, operands, wanted)
        found.append(entry)
    report = GraphDiff(
        "onnxruntime",
        tuple(found),
        {name: _compared(results[name], expected[name], float("inf")) for name in own if name in expected},
        tuple(uncompared),
    )
    return report.with_repros(repros, folder or new_folder)


def _whole(source: onnx_ir.Model) -> onnx.ModelProto:
    """Return a model with the weights of its external files."""
    whole = onnx_ir.to_proto(source)
    for tensor in whole.graph.initializer:
        held = source.graph.initializers[tensor.name].const_value
        if tensor.data_location == onnx.TensorProto.EXTERNAL and held is not None:
            tensor.ClearField("external_data")
            tensor.data_location = onnx.TensorProto.DEFAULT
            tensor.raw_data = held.tobytes()
    return whole


def _entry(node: onnx.NodeProto, label: str, results: Sequence[Array], expected: Sequence[Array]) -> OperatorDiff:
    compared = [_compared(a, e, _allowed(e)) for a, e in zip(results, expected, strict=True)]
    output = max(range(len(compared)), key=lambda i: (compared[i].wrong > 0, compared[i].share))
    return OperatorDiff(
        **vars(compared[output]),
        label=label,
        op=node.op_type,
        labels=(label,),
        kernels=(),
        output=output,
        num_outputs=len(compared),
    )


def _allowed(expected: Array) -> Array:
    if expected.dtype.kind not in "fV":
        return np.zeros(expected.shape)
    size = np.nan_to_num(np.abs(expected.astype(np.float64)), posinf=0)
    wide = 10 if expected.dtype == np.float16 else 1
    return wide * (RELATIVE * size + ABSOLUTE * size.max(initial=0))


def _compared(actual: Array, expected: Array, allowed: Any) -> Comparison:
    if actual.shape != expected.shape or actual.dtype != expected.dtype:
        other = compare(expected, expected, 0)
        kind = f"{actual.dtype}{list(actual.shape)} in place of {other.type}"
        return replace(other, type=kind, wrong=expected.size or 1, max_abs_error=float("inf"), share=float("inf"))
    return compare(actual.astype(np.uint8) if actual.dtype == bool else actual, _bytes(expected), allowed)


def _bytes(array: Array) -> Array:
    return array.astype(np.uint8) if array.dtype == bool else array


def _alone(
    whole: onnx.ModelProto, node: onnx.NodeProto, values: Mapping[str, Any], constants: Mapping[str, onnx.TensorProto]
) -> onnx.ModelProto:
    """Return a model of one node: its operands that were results or inputs are inputs."""
    captured = [name for a in node.attribute if a.type == onnx.AttributeProto.GRAPH for n in a.g.node for name in n.input]
    read = [name for name in dict.fromkeys([*node.input, *captured]) if name in values or name in constants]
    inputs = [
        onnx.helper.make_tensor_value_info(
            name, onnx.helper.np_dtype_to_tensor_dtype(values[name].dtype), list(values[name].shape)
        )
        for name in read
        if name not in constants
    ]
    outputs = [onnx.ValueInfoProto(name=name) for name in node.output if name]
    kept = [constants[name] for name in read if name in constants]
    graph = onnx.helper.make_graph([node], "one node", inputs, outputs, kept)
    return onnx.helper.make_model(graph, opset_imports=whole.opset_import, ir_version=whole.ir_version)


def _read(alone: onnx.ModelProto) -> list[str]:
    return [value.name for value in alone.graph.input]


def _repro(model: Model, alone: onnx.ModelProto, operands: Mapping[str, Array], wanted: Mapping[str, Array]) -> Repro:
    names = [f"output{i}" for i in range(len(wanted))]
    feeds = ", ".join(f'{name!r}: data["input{i}"]' for i, name in enumerate(operands))
    judged = [Judgement(_bytes(e), _allowed(e), np.zeros(e.shape, np.bool_)) for e in wanted.values()]
    lines = _NODE.replace("{feeds}", f"{{{feeds}}}").replace("{names}", str(names)).splitlines()
    return Repro(
        device=model.context.description,
        software=model.context.caps.is_software,
        data={f"input{i}": array for i, array in enumerate(operands.values())},
        expected=dict(zip(names, judged, strict=True)),
        lines=lines,
        sources={".onnx": alone.SerializeToString()},
    )
