"""Comparison of a graph on a device with the reference, operator by operator, and of the graph as a whole with its parts.

Errors of floats grow along a graph without bound: a rounding before a comparison, a quotient or an exponential can change
everything behind it. So each operator is judged by itself, on the operands that the device had. And what the passes make of
the graph must give the bits that its operators give one by one.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np

from tests.support import assert_same
from webnn_wgpu.accuracy.bounds import bounds
from webnn_wgpu.accuracy.judging import differs, judge
from webnn_wgpu.core.errors import OperationError
from webnn_wgpu.ir.verify import verify
from webnn_wgpu.kernels.select_convolution import WINOGRAD
from webnn_wgpu.ops import OPS
from webnn_wgpu.passes import PASSES, run_passes
from webnn_wgpu.plan import make_plan
from webnn_wgpu.reference import interpret
from webnn_wgpu.reference.interpreter import evaluate
from webnn_wgpu.runtime.program import Program

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from webnn_wgpu.costs import Target
    from webnn_wgpu.ir.graph import Array, Graph, Node
    from webnn_wgpu.runtime.device import Device

SIMPLIFYING = ("drop_dead_nodes", "fold_constants")
"""The passes whose work an operator-by-operator run shares: what is dead or folded runs nowhere."""

INEXACT = tuple(each.name for each in PASSES if not each.exact)
"""The passes that may change how results are rounded."""

_OTHERS = tuple(each.name for each in PASSES if each.name not in SIMPLIFYING)

_FUSING = ("fuse_epilogues", "fuse_elementwise", "merge_results")


class MismatchError(AssertionError):
    """A device computes something else than it should."""


@dataclass
class Tally:
    """What was compared.

    Attributes:
        nodes: operators that ran on a device, by name.
        unjudged: those of them whose operands were beyond any promise of accuracy.
    """

    nodes: Counter[str] = field(default_factory=Counter[str])
    unjudged: Counter[str] = field(default_factory=Counter[str])


def is_bounded(op: str) -> bool:
    """Return whether an operator has bounds of its own: all do but fused ones, whose bounds are those of their members."""
    return OPS[op].bounds is not None


def evaluated(graph: Graph, node: Node, operands: Sequence[Array | None]) -> list[Array]:
    """Return the reference's results of a node, without numpy's warnings about overflows and the like."""
    with np.errstate(all="ignore"):
        return evaluate(graph, node, operands)


def check_graph(
    device: Device,
    graph: Graph,
    feeds: Mapping[str, Array],
    tally: Tally | None = None,
    forced: Mapping[str, str] | None = None,
    target: Target | None = None,
) -> None:
    """Run a graph on a device, operator by operator and as a whole, and compare; also as passes that are not exact made it.

    Args:
        device: where to run.
        graph: the graph.
        feeds: its inputs.
        tally: counts what is compared.
        forced: kernel variants to take, where the device and the shapes allow them.
        target: what to plan for, if not for the device as it is.

    Raises:
        MismatchError: an operator's result is out of its bounds, or the whole graph's outputs differ from its operators'.
    """
    tally = tally if tally is not None else Tally()
    target = device.target if target is None else target
    _check(device, graph, feeds, tally, forced, target)
    narrow = any(value.type.data_type == "float16" for value in graph.values.values())
    for wide in (False, True) if narrow else (False,):
        rewritten, reports = run_passes(replace(graph, wide=wide), target, _FUSING)
        if any(r.name in INEXACT and r.nodes_before != r.nodes_after for r in reports) and all(
            is_bounded(node.op) for node in rewritten.nodes
        ):
            _check(device, rewritten, feeds, tally, forced, target)


def _check(
    device: Device,
    graph: Graph,
    feeds: Mapping[str, Array],
    tally: Tally,
    forced: Mapping[str, str] | None,
    target: Target,
) -> None:
    forced = {} if forced is None or not _possible(target, graph, forced) else forced
    simple, _ = run_passes(graph, target, _OTHERS)
    # Every result is an output, but for views: those are the memory of what they view.
    made = {str(o): o for node in simple.nodes if OPS[node.op].lower is not None for o in node.outputs}
    values: dict[int, Array] = dict(simple.constants)
    values |= {value: feeds[name] for name, value in simple.inputs.items()}
    if made:
        (found,) = run(device, replace(simple, outputs=made), feeds, _OTHERS, forced, target)
        values |= {made[name]: array for name, array in found.items()}
    for node in simple.nodes:
        operands = [None if i is None else values[i] for i in node.inputs]
        if OPS[node.op].lower is None:
            values[node.outputs[0]] = evaluated(simple, node, operands)[0]
            continue
        tally.unjudged[node.op] += not _check_node(
            simple, node, operands, [values[o] for o in node.outputs], patches=forced.get(node.op) in WINOGRAD
        )
    tally.nodes.update(node.op for node in simple.nodes)
    wanted = {name: values[value] for name, value in simple.outputs.items()}
    # Twice, because the second run finds in the slots what the first has left there.
    for when, whole in zip(("first", "second"), run(device, graph, feeds, INEXACT, forced, target, times=2), strict=True):
        try:
            assert_same(whole, wanted)
        except AssertionError as error:
            raise MismatchError(f"the whole graph ({when} run) differs from its operators one by one: {error}") from error


def _possible(target: Target, graph: Graph, forced: Mapping[str, str]) -> bool:
    """Return whether variants can be taken for all of a graph's operators, as they are and fused."""
    try:
        for disabled in (_OTHERS, INEXACT):
            make_plan(run_passes(graph, target, disabled)[0], target, forced)
    except OperationError:
        return False
    return True


def check_rewritten(before: Graph, after: Graph, feeds: Mapping[str, Array]) -> None:
    """Compare what new nodes make of the values that were there before with those that they have made instead.

    Raises:
        MismatchError: a new node's result is out of its bounds, and of those of the node in whose place it makes it.
    """
    every = {str(i): i for i in before.values}
    values = {int(name): array for name, array in interpret(replace(before, outputs=every), feeds).items()}
    values |= after.constants
    kept = {id(node) for node in before.nodes}
    replaced = {output: node for node in before.nodes for output in node.outputs}
    for node in after.nodes:
        if id(node) in kept:
            continue
        operands = [None if i is None else values[i] for i in node.inputs]
        made = evaluated(after, node, operands)
        allowed = bounds(after, node, operands, made) if is_bounded(node.op) else None
        for i, (output, array) in enumerate(zip(node.outputs, made, strict=True)):
            known = values.setdefault(output, array)
            if allowed is None or not np.any(differs(known, array, 4 * allowed[i])):
                continue
            promised = _promised(before, replaced[output], values) if output in replaced else None
            if promised is None or np.any(differs(known, array, promised[output])):
                raise MismatchError(f"{node.op} gives {array!r}, not {known!r}")


def _promised(graph: Graph, node: Node, values: Mapping[int, Array]) -> dict[int, Array] | None:
    """Return how far each result of a node may be off, where something is promised of it."""
    operands, made = [None if i is None else values[i] for i in node.inputs], [values[o] for o in node.outputs]
    found = bounds(graph, node, operands, made) if is_bounded(node.op) else None
    return None if found is None else dict(zip(node.outputs, found, strict=True))


def run(
    device: Device,
    graph: Graph,
    feeds: Mapping[str, Array],
    disabled_passes: Collection[str],
    forced: Mapping[str, str],
    target: Target,
    times: int = 1,
) -> list[dict[str, Array]]:
    """Compile a graph, run it so many times and free it."""
    optimized, _ = run_passes(graph, target, disabled_passes)
    program = Program(device, make_plan(verify(optimized), target, forced))
    try:
        return [program.start(feeds, list(graph.outputs)).result() for _ in range(times)]
    finally:
        program.destroy()


def _check_node(graph: Graph, node: Node, operands: Sequence[Array | None], found: Sequence[Array], *, patches: bool) -> bool:
    """Compare an operator's results with the reference; return False where no accuracy is promised for its operands."""
    judged = judge(graph, node, operands, found, patches=patches)
    if judged is None:
        return False
    for i, (actual, result) in enumerate(zip(found, judged, strict=True)):
        if np.any(result.wrong):
            flat = int(np.flatnonzero(result.wrong)[0])
            at = [int(c) for c in np.unravel_index(flat, actual.shape)]
            raise MismatchError(
                f"{node.op} output {i}: {np.count_nonzero(result.wrong)} of {actual.size} elements differ; at {at} "
                f"{actual.reshape(-1)[flat]!r}, not {result.expected.reshape(-1)[flat]!r} "
                f"within {result.allowed.reshape(-1)[flat]:.3g}"
            )
    return True
