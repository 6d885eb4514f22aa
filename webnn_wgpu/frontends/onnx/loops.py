"""The iteration of ONNX's Loop and Scan on the host. The caller supplies the function that runs a body."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import onnx_ir

from webnn_wgpu import OperationError

from ..common.calls import OnHost
from .types import Array

Body = Callable[[Sequence[Array]], list[Array]]

MOST_ITERATIONS = 1_000_000
"""The maximum number of iterations. A longer loop is treated as endless."""


def fault_of_loop(node: onnx_ir.Node) -> str:
    """Return the fault of a Loop's body, or "" if it fits the node."""
    body: onnx_ir.Graph = node.attributes["body"].value
    states = sum(v is not None for v in node.inputs[2:])
    if len(body.inputs) != 2 + states or len(body.outputs) < 1 + states:
        return f"a body of {len(body.inputs)} inputs and {len(body.outputs)} outputs for {states} states"
    return ""


def fault_of_scan(node: onnx_ir.Node, lengths: int = 0) -> str:
    """Return the fault of a Scan's body and attributes, or "" if they fit the node.

    Args:
        node: the Scan.
        lengths: the number of inputs before the states.
    """
    body: onnx_ir.Graph = node.attributes["body"].value
    given = sum(v is not None for v in node.inputs[lengths:])
    scanned: int = node.attributes["num_scan_inputs"].value
    states = given - scanned
    if scanned < 1 or states < 0 or len(body.inputs) != given or len(body.outputs) < states:
        return (
            f"a body of {len(body.inputs)} inputs and {len(body.outputs)} outputs for {given} inputs, {scanned} of them scanned"
        )
    slices = len(body.outputs) - states
    for name, count in (
        ("directions", scanned),
        ("scan_input_axes", scanned),
        ("scan_input_directions", scanned),
        ("scan_output_axes", slices),
        ("scan_output_directions", slices),
    ):
        if name in node.attributes and len(node.attributes[name].value) != count:
            return f"{name} has {len(node.attributes[name].value)} elements, not {count}"
    return ""


def stacked(slices: Sequence[Array], axis: int = 0) -> Array:
    """Return slices of a scan output joined along a new axis.

    Raises:
        OnHost: the slices differ in shape, or have no such axis.
    """
    if len({s.shape for s in slices}) != 1 or not -slices[0].ndim - 1 <= axis <= slices[0].ndim:
        raise OnHost(f"slices of shapes {', '.join(str(s.shape) for s in slices[:3])} cannot be stacked along axis {axis}")
    return np.stack(slices, axis)


def scalar(array: Array, what: str) -> Array:
    """Return the one element of an array.

    Raises:
        OnHost: the array has no element or several.
    """
    if array.size != 1:
        raise OnHost(f"{what} has {array.size} elements")
    return array.reshape(-1)[0]


def run_loop(node: onnx_ir.Node, arrays: Sequence[Array | None], body: Body) -> list[Array]:
    """Run a Loop.

    Args:
        node: the Loop.
        arrays: trip count or None, condition or None, initial states.
        body: returns condition, states and slices of the scan outputs, from iteration number, condition and states.

    Returns:
        The final states, then the scan outputs.

    Raises:
        OnHost: the inputs or the results of the body do not fit the node.
    """
    count = None if not arrays or arrays[0] is None else int(scalar(arrays[0], "the trip count"))
    condition = True if len(arrays) < 2 or arrays[1] is None else bool(scalar(arrays[1], "the condition"))
    states = [a for a in arrays[2:] if a is not None]
    graph: onnx_ir.Graph = node.attributes["body"].value
    slices: list[list[Array]] = [[] for _ in graph.outputs[1 + len(states) :]]
    iteration = 0
    while condition and (count is None or iteration < count):
        if max(iteration, count or 0) >= MOST_ITERATIONS:
            rule = f"loops of {MOST_ITERATIONS} and more iterations are taken for endless"
            raise OperationError(rule, operator="Loop", label=node.name or "")
        results = body([np.array(iteration, np.int64), np.array(condition), *states])
        condition = bool(scalar(results[0], "the condition"))
        states = results[1 : 1 + len(states)]
        for found, result in zip(slices, results[1 + len(states) :], strict=True):
            found.append(result)
        iteration += 1
    outputs = graph.outputs[1 + len(states) :]
    return [*states, *(stacked(found) if found else nothing(o) for found, o in zip(slices, outputs, strict=True))]


def nothing(slice_: onnx_ir.Value) -> Array:
    """Return a scan output of no iterations. Its first size is 0."""
    sizes = [d if isinstance(d, int) else 0 for d in slice_.shape or ()]
    return np.zeros([0, *sizes], slice_.dtype.numpy() if slice_.dtype is not None else np.float32)


def run_batched_scan(node: onnx_ir.Node, arrays: Sequence[Array | None], body: Body) -> list[Array]:
    """Run a Scan of operator set 8. The first dimension of every input is a batch, and each sequence has its own length.

    Raises:
        OnHost: the inputs or the results of the body do not fit the node.
    """
    scanned_count: int = node.attributes["num_scan_inputs"].value
    given = [a for a in arrays[1:] if a is not None]
    states, scanned = given[: len(given) - scanned_count], given[len(given) - scanned_count :]
    directions = node.attributes.get("directions")
    backward = [0] * scanned_count if directions is None else list(directions.value)
    graph: onnx_ir.Graph = node.attributes["body"].value
    shapes = {s.shape[:2] for s in scanned}
    if len(shapes) != 1 or scanned[0].ndim < 2:
        raise OnHost(f"sequences of batches and lengths {', '.join(map(str, shapes))}")
    batches, longest = scanned[0].shape[:2]
    lengths = np.full(batches, longest) if arrays[0] is None else arrays[0].reshape(-1)
    if len(lengths) != batches or any(s.shape[:1] != (batches,) for s in states) or not batches:
        raise OnHost(f"lengths or states do not fit {batches} batches")
    if (lengths < 1).any() or (lengths > longest).any():
        raise OnHost(f"lengths {lengths.tolist()} of sequences of {longest}")
    results: list[list[Array]] = []
    for batch, length in enumerate(map(int, lengths)):
        current = [s[batch] for s in states]
        slices: list[list[Array]] = [[] for _ in graph.outputs[len(states) :]]
        for i in range(length):
            outputs = body([*current, *(s[batch, length - 1 - i if b else i] for s, b in zip(scanned, backward, strict=True))])
            current = outputs[: len(states)]
            for found, part in zip(slices, outputs[len(states) :], strict=True):
                found.append(part)
        padded = [np.concatenate([stacked(f), np.zeros((longest - length, *f[0].shape), f[0].dtype)]) for f in slices]
        results.append([*current, *padded])
    return [stacked(parts) for parts in zip(*results, strict=True)]


def run_scan(node: onnx_ir.Node, arrays: Sequence[Array | None], body: Body) -> list[Array]:
    """Run a Scan.

    Args:
        node: the Scan.
        arrays: initial states, then the tensors to scan.
        body: returns states and slices of the scan outputs, from states and slices of the scanned tensors.

    Returns:
        The final states, then the scan outputs.

    Raises:
        OnHost: the inputs or the results of the body do not fit the node.
    """

    def integers(name: str, count: int) -> list[int]:
        attribute = node.attributes.get(name)
        return list(attribute.value) if attribute is not None else [0] * count

    scanned_count: int = node.attributes["num_scan_inputs"].value
    given = [a for a in arrays if a is not None]
    states, scanned = given[: len(given) - scanned_count], given[len(given) - scanned_count :]
    graph: onnx_ir.Graph = node.attributes["body"].value
    count = len(graph.outputs) - len(states)
    input_axes = integers("scan_input_axes", scanned_count)
    if any(not -a.ndim <= axis < a.ndim for a, axis in zip(scanned, input_axes, strict=True)):
        raise OnHost(f"scan_input_axes {input_axes} of inputs of shapes {', '.join(str(a.shape) for a in scanned)}")
    moved = [np.moveaxis(a, axis, 0) for a, axis in zip(scanned, input_axes, strict=True)]
    if len({len(a) for a in moved}) != 1:
        raise OnHost(f"sequences of lengths {', '.join(str(len(a)) for a in moved)}")
    backward = integers("scan_input_directions", scanned_count)
    moved = [a[::-1] if b else a for a, b in zip(moved, backward, strict=True)]
    slices: list[list[Array]] = [[] for _ in range(count)]
    for parts in zip(*moved, strict=True):
        results = body([*states, *(np.ascontiguousarray(p) for p in parts)])
        states = results[: len(states)]
        for found, result in zip(slices, results[len(states) :], strict=True):
            found.append(result)
    axes, backward = integers("scan_output_axes", count), integers("scan_output_directions", count)
    outputs: list[Array] = []
    for found, axis, back, value in zip(slices, axes, backward, graph.outputs[len(states) :], strict=True):
        outputs.append(np.ascontiguousarray(stacked(found[::-1] if back else found, axis)) if found else nothing(value))
    return [*states, *outputs]
