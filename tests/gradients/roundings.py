"""How far roundings may move the outputs of a graph: what a device may differ by from the graph in float64.

Each operator promises how far its results are from exact ones for the same operands. Errors of operands go through the
operators behind them, which may amplify them without bound: a division by a difference, a comparison of equal numbers. So the
whole graph runs several times in float64, and each result moves at random by up to what its operator promises. Comparisons of
numbers that are no farther apart than they move have a random outcome. A sine or cosine of a number that moves by a quarter
turn or more is that of any angle.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from tests.random_graphs.check import evaluated
from webnn_wgpu.accuracy.bounds import bounds
from webnn_wgpu.core.data_types import FLOATS
from webnn_wgpu.ops import OPS
from webnn_wgpu.ops.interfaces.bounds import EXACT, SMALLEST
from webnn_wgpu.testing.gradients import in_float64

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from webnn_wgpu.ir.graph import Array, Graph, Node

SAMPLES = 8

_LARGEST = float(np.finfo(np.float32).max)

COMPARISONS = ("equal", "notEqual", "greater", "greaterOrEqual", "lesser", "lesserOrEqual")
PERIODIC = ("sin", "cos", "tan")


@dataclass(frozen=True)
class Roundings:
    """The outputs of a graph in float64.

    Attributes:
        exact: the outputs without roundings.
        moved: the outputs of each run with roundings.
    """

    exact: Mapping[str, Array]
    moved: Sequence[Mapping[str, Array]]

    @property
    def finite(self) -> bool:
        """Whether no output is infinite or NaN."""
        return all(np.isfinite(array.astype(np.float64)).all() for each in (self.exact, *self.moved) for array in each.values())

    def allowed(self, name: str) -> float:
        """Return how far an element of an output may be off: twice the most that a run moved one.

        A run moves results by half of what operators promise or more. So twice that is no less than what one rounding can do,
        or two that add up, unless they cancel in all runs, which has a probability of 1 in 256.
        """
        return 2 * max(distance(each[name], self.exact[name]) for each in self.moved) + SMALLEST


def distance(one: Array, other: Array | float) -> float:
    """Return the largest absolute difference of two elements, or 0 if there are none.

    Elements beyond the range of float32 are infinite, as they are in float32.
    """
    a, b = _in_range(one), _in_range(other)
    with np.errstate(invalid="ignore"):  # equal infinities
        return float(np.max(np.where(a == b, 0.0, np.abs(a - b)), initial=0.0))


def _in_range(array: Array | float) -> Array:
    wide = np.asarray(array, np.float64)
    return np.where(np.abs(wide) > _LARGEST, np.copysign(np.inf, wide), wide)


def roundings(graph: Graph, feeds: Mapping[str, Array]) -> Roundings | None:
    """Run a graph in float64, without roundings and with some. None means that an operator has operands beyond any promise."""
    wide = in_float64(graph)
    given = {value: _wide(feeds[name]) for name, value in graph.inputs.items()}
    samples = SAMPLES * (2 if any(node.op in PERIODIC for node in graph.nodes) else 1)
    runs: list[dict[int, Array]] = [{**wide.constants, **given} for _ in range(1 + samples)]
    exact, *moved = runs
    rngs = [np.random.default_rng(i) for i in range(samples)]
    for node, narrow in zip(wide.nodes, graph.nodes, strict=True):
        results = evaluated(wide, node, _operands(node, exact))
        off = _promised(graph, narrow, exact, results)
        if off is None:
            return None
        exact.update(zip(node.outputs, results, strict=True))
        open_ = _undecided(node, exact, moved) if node.op in COMPARISONS else None
        turns = _turns(node, exact, moved) if node.op in PERIODIC else None
        if node.op == "tan" and np.any(turns):
            return None
        for i, (run, rng) in enumerate(zip(moved, rngs, strict=True)):
            operands = _operands(node, run)
            if turns is not None:
                operands = [np.where(turns, _angles(node, turns.shape, i), array) for array in operands]
            found = evaluated(wide, node, operands)
            if open_ is not None:
                found = [np.where(open_, rng.integers(0, 2, open_.shape, np.uint8), array) for array in found]
            run.update(
                (output, array + bound * _signed(rng, array.shape) if array.dtype.kind == "f" else array)
                for output, array, bound in zip(node.outputs, found, off, strict=True)
            )
    named = [{name: run[value] for name, value in graph.outputs.items()} for run in runs]
    return Roundings(named[0], named[1:])


def _promised(graph: Graph, node: Node, values: Mapping[int, Array], results: Sequence[Array]) -> list[Array] | None:
    """Return how far each result of a node may be from the exact one: its operator's bound, and the rounding to its type."""
    types = [graph.type(value) for value in node.outputs]
    operands = [None if value is None else values[value].astype(graph.type(value).numpy) for value in node.inputs]
    with np.errstate(all="ignore"):
        expected = [array.astype(type_.numpy) for array, type_ in zip(results, types, strict=True)]
    off = bounds(graph, node, operands, expected)
    if off is None:
        return None
    found: list[Array] = []
    for type_, array, bound in zip(types, results, off, strict=True):
        if type_.data_type not in FLOATS:
            found.append(bound)
            continue
        # Results that are elements of operands have no rounding of their own, but a cast to a smaller type has.
        rounds = OPS[node.op].bounds is not EXACT or node.op == "cast"
        size = np.where(np.isfinite(array), np.abs(array), 0)
        more = bound + (size * float(np.finfo(type_.numpy).eps) / 2 if rounds else 0)
        # Zeros stay: devices take what is smaller for 0. So do the ends of a hard sigmoid, where its gradient has corners.
        stays = (array == 0) & (more < SMALLEST) | ((node.op == "hardSigmoid") & ((array == 0) | (array == 1)))
        found.append(np.where(stays, 0.0, more))
    return found


def _undecided(node: Node, exact: Mapping[int, Array], moved: Sequence[Mapping[int, Array]]) -> Array:
    """Return where the operands of a comparison are no farther apart than roundings moved them.

    Of many equal elements, for example, each may be the only smallest one on a device, but only a few are in the runs.
    """
    first, second = (value for value in node.inputs if value is not None)
    off = [np.max([np.abs(run[value] - exact[value]) for run in moved], axis=0) for value in (first, second)]
    distances = np.abs(exact[first] - exact[second])
    return (distances <= off[0] + off[1]) & (off[0] + off[1] > 0)


def _turns(node: Node, exact: Mapping[int, Array], moved: Sequence[Mapping[int, Array]]) -> Array:
    """Return where the operand of a periodic function moved by a quarter turn or more. A tangent has a pole within this."""
    (value,) = (value for value in node.inputs if value is not None)
    return np.max([np.abs(run[value] - exact[value]) for run in moved], axis=0) >= np.pi / 2


def _angles(node: Node, shape: tuple[int, ...], run: int) -> Array:
    """Return angles for the operand of a periodic function in a run, the same ones for its sine and its cosine.

    Half of the runs take one angle for all elements, because a device may round neighbors to the same number. No sine of these
    angles is 0, to which the rounding of another angle's sine would add.
    """
    if run < SAMPLES:
        return np.full(shape, 0.1 + 2 * np.pi * run / SAMPLES)
    return np.random.default_rng((run, *(value for value in node.inputs if value is not None))).uniform(0, 2 * np.pi, shape)


def _signed(rng: np.random.Generator, shape: tuple[int, ...]) -> Array:
    """Return random numbers of sizes between a half and 1."""
    return rng.choice((-1.0, 1.0), shape) * rng.uniform(0.5, 1, shape)


def _operands(node: Node, values: Mapping[int, Array]) -> list[Array | None]:
    return [None if value is None else values[value] for value in node.inputs]


def _wide(array: Array) -> Array:
    return array.astype(np.float64) if array.dtype.kind == "f" else array
