"""If, Loop and Scan. Known conditions select branches, and loops of known length are unrolled. The host runs the others."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import onnx_ir

from ..call import NodeCall
from ..loops import fault_of_loop, fault_of_scan, nothing
from ..types import Array
from ._registry import OnnxInline, Result, lowers

MOST_UNROLLED = 4096
"""The maximum number of nodes of an unrolled loop."""


@lowers("If", empty=True)
def if_(call: NodeCall) -> Result:
    """The nodes of one branch."""
    branch = call.attribute("then_branch" if call.number(0) else "else_branch")
    return OnnxInline(list(branch), branch.outputs)


@dataclass(kw_only=True)
class _Unrolled:
    """The nodes of a loop's iterations, one after the other."""

    call: NodeCall
    body: onnx_ir.Graph
    nodes: list[onnx_ir.Node] = field(default_factory=list)
    aliases: dict[onnx_ir.Value, onnx_ir.Value] = field(default_factory=dict)
    known: dict[onnx_ir.Value, Array] = field(default_factory=dict)

    def constant(self, array: Array) -> onnx_ir.Value:
        value = onnx_ir.Value(name="known")
        self.known[value] = array
        return value

    def operator(self, op_type: str, inputs: Sequence[onnx_ir.Value | None], version: int, **attributes: int) -> onnx_ir.Value:
        node = onnx_ir.node(op_type, inputs, attributes, name=f"{self.call.label}/{op_type}_{len(self.nodes)}", version=version)
        self.nodes.append(node)
        node.outputs[0].name = node.name
        return node.outputs[0]

    def iteration(self, number: int, given: Sequence[onnx_ir.Value]) -> Sequence[onnx_ir.Value]:
        """Append a copy of the body and return its outputs."""
        copy = self.body.clone(allow_outer_scope_values=True)
        self.aliases.update(zip(copy.inputs, given, strict=True))
        for node in copy:
            node.name = f"{self.call.label}[{number}]/{node.name or node.op_type}"
            self.nodes.append(node)
        return list(copy.outputs)

    def stacked(self, slices: Sequence[onnx_ir.Value], axis: int, example: onnx_ir.Value) -> onnx_ir.Value:
        """Join the slices of a scan output along a new axis."""
        if not slices:
            return self.constant(nothing(example))
        at = self.constant(np.array([axis], np.int64))
        return self.operator("Concat", [self.operator("Unsqueeze", [s, at], 13) for s in slices], 13, axis=axis)

    def result(self, outputs: Sequence[onnx_ir.Value]) -> OnnxInline:
        return OnnxInline(self.nodes, outputs, self.aliases, self.known)


def _stays_true(body: onnx_ir.Graph) -> bool:
    """Return whether a Loop's body passes its condition on unchanged, or always returns true."""
    value: onnx_ir.Value = body.outputs[0]
    while (node := value.producer()) is not None and node.op_type == "Identity" and node.inputs[0] is not None:
        value = node.inputs[0]
    if value is body.inputs[1]:
        return True
    constant = value.const_value
    if constant is None and node is not None and node.op_type == "Constant" and "value" in node.attributes:
        constant = node.attributes["value"].value
    return constant is not None and bool(constant.numpy().all())


@lowers("Loop", empty=True)
def loop(call: NodeCall) -> Result:
    """The iterations one after the other, if their number is known and small."""
    body: onnx_ir.Graph = call.attribute("body")
    if fault := fault_of_loop(call.node):
        call.fail(fault)
    if not call.has(0) or call.tensor(0).array is None:
        call.on_host("the number of iterations is not known beforehand")
    if call.has(1) and call.tensor(1).array is None:
        call.on_host("whether it runs is not known beforehand")
    count = int(call.number(0)) if not call.has(1) or call.number(1) else 0
    if count > 0 and not _stays_true(body):
        call.on_host("it ends by a condition")
    if max(count, 0) * (len(body) + 1) > MOST_UNROLLED:
        call.on_host(f"{count} iterations of {len(body)} nodes are too many to unroll")
    unrolled = _Unrolled(call=call, body=body)
    states = [v for v in call.node.inputs[2:] if v is not None]
    slices: list[list[onnx_ir.Value]] = [[] for _ in body.outputs[1 + len(states) :]]
    for i in range(max(count, 0)):
        head = [unrolled.constant(np.array(i, np.int64)), unrolled.constant(np.array(True))]
        outputs = unrolled.iteration(i, [*head, *states])
        states = list(outputs[1 : 1 + len(states)])
        for found, value in zip(slices, outputs[1 + len(states) :], strict=True):
            found.append(value)
    examples = body.outputs[1 + len(states) :]
    return unrolled.result([*states, *(unrolled.stacked(s, 0, e) for s, e in zip(slices, examples, strict=True))])


@lowers("Scan", since=9, empty=True)
def scan(call: NodeCall) -> Result:
    """The iterations one after the other, if they are few."""
    body: onnx_ir.Graph = call.attribute("body")
    if fault := fault_of_scan(call.node):
        call.fail(fault)
    inputs = [v for v in call.node.inputs if v is not None]
    scanned = call.attribute("num_scan_inputs")
    states, sources = inputs[: len(inputs) - scanned], inputs[len(inputs) - scanned :]
    tensors = [t for t in call.inputs if t is not None][len(states) :]
    if not all(t.rank for t in tensors):
        call.fail("a scalar is scanned")
    axes = [call.axis(a, t.rank) for a, t in zip(call.attribute("scan_input_axes", [0] * scanned), tensors, strict=True)]
    counts = {t.shape[a] for t, a in zip(tensors, axes, strict=True)}
    count = counts.pop()
    if counts:
        call.fail(f"sequences of lengths {count}, {', '.join(map(str, counts))}")
    if count * (len(body) + 1) > MOST_UNROLLED:
        call.on_host(f"{count} iterations of {len(body)} nodes are too many to unroll")
    backward = call.attribute("scan_input_directions", [0] * scanned)
    unrolled = _Unrolled(call=call, body=body)
    examples = body.outputs[len(states) :]
    slices: list[list[onnx_ir.Value]] = [[] for _ in examples]
    for i in range(count):
        parts = [
            unrolled.operator("Gather", [v, unrolled.constant(np.array(count - 1 - i if b else i, np.int64))], 13, axis=a)
            for v, a, b in zip(sources, axes, backward, strict=True)
        ]
        outputs = unrolled.iteration(i, [*states, *parts])
        states = list(outputs[: len(states)])
        for found, value in zip(slices, outputs[len(states) :], strict=True):
            found.append(value)
    directions = call.attribute("scan_output_directions", [0] * len(slices))
    output_axes = call.attribute("scan_output_axes", [0] * len(slices))
    joined = [
        unrolled.stacked(s[::-1] if d else s, a, e)
        for s, d, a, e in zip(slices, directions, output_axes, examples, strict=True)
    ]
    return unrolled.result([*states, *joined])


@lowers("Scan", since=8, empty=True)
def scan_of_batches(call: NodeCall) -> Result:
    """Scan's first form, over batches of sequences of different lengths."""
    if fault := fault_of_scan(call.node, lengths=1):
        call.fail(fault)
    return call.on_host("Scan of operator set 8 works on batches")
