"""Loops that the host counts, as ONNX defines Loop and Scan; their bodies are run by whoever is given."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import onnx_ir

from webnn_wgpu import OperationError

from .types import Array

Body = Callable[[Sequence[Array]], list[Array]]

MOST_ITERATIONS = 1_000_000
"""Iterations after which a loop is taken for one that never ends."""


def run_loop(node: onnx_ir.Node, arrays: Sequence[Array | None], body: Body) -> list[Array]:
    """Run a Loop.

    Args:
        node: the Loop.
        arrays: trip count or None, condition or None, initial states.
        body: maps iteration number, condition and states to condition, states and slices of the scan outputs.

    Returns:
        The final states, then the scan outputs.
    """
    count = None if not arrays or arrays[0] is None else int(arrays[0].reshape(-1)[0])
    condition = True if len(arrays) < 2 or arrays[1] is None else bool(arrays[1].reshape(-1)[0])
    states = [a for a in arrays[2:] if a is not None]
    slices: list[list[Array]] = [[] for _ in range(len(node.outputs) - len(states))]
    iteration = 0
    while condition and (count is None or iteration < count):
        if max(iteration, count or 0) >= MOST_ITERATIONS:
            rule = f"loops of {MOST_ITERATIONS} and more iterations are taken for endless"
            raise OperationError(rule, operator="Loop", label=node.name or "")
        results = body([np.array(iteration, np.int64), np.array(condition), *states])
        condition = bool(results[0].reshape(-1)[0])
        states = results[1 : 1 + len(states)]
        for found, result in zip(slices, results[1 + len(states) :], strict=True):
            found.append(result)
        iteration += 1
    graph: onnx_ir.Graph = node.attributes["body"].value
    outputs = graph.outputs[1 + len(states) :]
    return [*states, *(np.stack(found) if found else nothing(o) for found, o in zip(slices, outputs, strict=True))]


def nothing(slice_: onnx_ir.Value) -> Array:
    """Return a scan output of no iterations: its first size is 0."""
    sizes = [d if isinstance(d, int) else 0 for d in slice_.shape or ()]
    return np.zeros([0, *sizes], slice_.dtype.numpy() if slice_.dtype is not None else np.float32)


def run_batched_scan(node: onnx_ir.Node, arrays: Sequence[Array | None], body: Body) -> list[Array]:
    """Run a Scan of operator set 8: every input has a batch as its first dimension, sequences have a length each."""
    scanned_count: int = node.attributes["num_scan_inputs"].value
    given = [a for a in arrays[1:] if a is not None]
    states, scanned = given[: len(given) - scanned_count], given[len(given) - scanned_count :]
    directions = node.attributes.get("directions")
    backward = [0] * scanned_count if directions is None else list(directions.value)
    longest = scanned[0].shape[1]
    results: list[list[Array]] = []
    for batch in range(scanned[0].shape[0]):
        length = longest if arrays[0] is None else int(arrays[0][batch])
        current = [s[batch] for s in states]
        slices: list[list[Array]] = [[] for _ in range(len(node.outputs) - len(states))]
        for i in range(length):
            outputs = body([*current, *(s[batch, length - 1 - i if b else i] for s, b in zip(scanned, backward, strict=True))])
            current = outputs[: len(states)]
            for found, part in zip(slices, outputs[len(states) :], strict=True):
                found.append(part)
        padded = [np.concatenate([np.stack(f), np.zeros((longest - length, *f[0].shape), f[0].dtype)]) for f in slices]
        results.append([*current, *padded])
    return [np.stack(parts) for parts in zip(*results, strict=True)]


def run_scan(node: onnx_ir.Node, arrays: Sequence[Array | None], body: Body) -> list[Array]:
    """Run a Scan.

    Args:
        node: the Scan.
        arrays: initial states, then the tensors to scan.
        body: maps states and slices of the scanned tensors to states and slices of the scan outputs.

    Returns:
        The final states, then the scan outputs.
    """

    def integers(name: str, count: int) -> list[int]:
        attribute = node.attributes.get(name)
        return list(attribute.value) if attribute is not None else [0] * count

    scanned_count: int = node.attributes["num_scan_inputs"].value
    given = [a for a in arrays if a is not None]
    states, scanned = given[: len(given) - scanned_count], given[len(given) - scanned_count :]
    count = len(node.outputs) - len(states)
    moved = [np.moveaxis(a, axis, 0) for a, axis in zip(scanned, integers("scan_input_axes", scanned_count), strict=True)]
    backward = integers("scan_input_directions", scanned_count)
    moved = [a[::-1] if b else a for a, b in zip(moved, backward, strict=True)]
    slices: list[list[Array]] = [[] for _ in range(count)]
    for parts in zip(*moved, strict=True):
        results = body([*states, *(np.ascontiguousarray(p) for p in parts)])
        states = results[: len(states)]
        for found, result in zip(slices, results[len(states) :], strict=True):
            found.append(result)
    axes, backward = integers("scan_output_axes", count), integers("scan_output_directions", count)
    graph: onnx_ir.Graph = node.attributes["body"].value
    outputs: list[Array] = []
    for found, axis, back, value in zip(slices, axes, backward, graph.outputs[len(states) :], strict=True):
        stacked = np.stack(found[::-1] if back else found) if found else nothing(value)
        outputs.append(np.ascontiguousarray(np.moveaxis(stacked, 0, axis if axis >= 0 else axis + stacked.ndim)))
    return [*states, *outputs]
