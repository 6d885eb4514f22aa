"""`check_gradients`: the gradients of a graph against central differences, both in float64 on the numpy reference."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from webnn_wgpu.api.builder import MLGraphBuilder
from webnn_wgpu.api.internals import graph_of
from webnn_wgpu.api.ml import ml
from webnn_wgpu.api.operand import MLOperand
from webnn_wgpu.core.data_types import FLOATS
from webnn_wgpu.ir.types import TensorType
from webnn_wgpu.reference import interpret

if TYPE_CHECKING:
    from webnn_wgpu.ir.graph import Array, Graph, Node

_SEED = "gradient of output "


class GradientMismatchError(AssertionError):
    """A gradient that does not agree with central differences.

    Attributes:
        analytic: the derivative by gradients.
        numeric: the derivative by differences.
    """

    def __init__(self, operands: str, analytic: float, numeric: float) -> None:
        hint = "" if math.isfinite(numeric) else ". Give operands for which the results around them are finite"
        super().__init__(
            f"the derivative by operand {operands} must agree with central differences; got {analytic:.9g} by gradients, "
            f"{numeric:.9g} by differences{hint}"
        )
        self.analytic, self.numeric = analytic, numeric


@dataclass(frozen=True)
class WideTensorType(TensorType):
    """A float type whose values the reference keeps in float64."""

    @property
    def numpy(self) -> np.dtype[np.generic]:
        """float64."""
        return np.dtype(np.float64)


def in_float64(graph: Graph) -> Graph:
    """Return a graph whose float values the numpy reference keeps in float64, without a rounding to their data types."""

    def widened(type_: TensorType) -> TensorType:
        return WideTensorType(type_.data_type, type_.shape) if type_.data_type in FLOATS else type_

    values = {i: replace(value, type=widened(value.type)) for i, value in graph.values.items()}
    return graph.with_nodes(graph.nodes, values=values, constants={i: _wide(array) for i, array in graph.constants.items()})


def check_gradients(
    build: Callable[..., Any],
    inputs: Sequence[Any],
    *,
    tolerance: float = 1e-5,
    step: float = 1e-5,
    constants: Sequence[int] = (),
    together: bool = False,
) -> None:
    """Raise AssertionError unless the gradients of a graph agree with central differences.

    The check compares derivatives in random directions, for random seeds of the outputs. All values are float64, so that the
    check is strict, and the directions are the same in each run. At corners and steps of a function the check fails.

    Args:
        build: called as `build(builder, *operands)`, returns the output or a sequence of outputs.
        inputs: the value of each operand, as arrays. Gradients of float operands are checked.
        tolerance: the permitted difference, relative to the root of the sum of squares of the derivative's terms.
        step: the distance of the differences, in units of the operands. Recurrent networks need 1e-3, because their reference
            rounds activations to float32.
        constants: positions of the operands that are constants of the graph. The check leaves out their gradients.
        together: whether one direction is taken for all operands, which takes less time and does not tell them apart.

    Raises:
        AssertionError: a derivative differs. The message names the operand and both derivatives.

    Example:
        >>> check_gradients(lambda builder, x: builder.tanh(x), [np.float32([-1, 0.5, 2])])
    """
    arrays = [np.asarray(given) for given in inputs]
    rng = np.random.default_rng(0)
    builder = MLGraphBuilder(ml.create_context(backend="reference"))
    operands = [
        builder.constant(array)
        if i in constants
        else builder.input(str(i), {"dataType": str(array.dtype), "shape": array.shape})  # type: ignore[typeddict-item]
        for i, array in enumerate(arrays)
    ]
    made = build(builder, *operands)
    results: list[MLOperand] = [made] if isinstance(made, MLOperand) else list(made)
    results = [builder.identity(operand) for operand in results if operand.data_type in FLOATS]
    checked = [i for i, array in enumerate(arrays) if array.dtype.kind == "f" and i not in constants]
    seeds = [
        builder.input(f"{_SEED}{i}", {"dataType": operand.data_type, "shape": operand.shape})  # type: ignore[typeddict-item]
        for i, operand in enumerate(results)
    ]
    gradients = builder.gradients(results, [operands[i] for i in checked], seeds)
    outputs = {f"output {i}": operand for i, operand in enumerate(results)}
    found = {f"gradient {i}": operand for i, operand in zip(checked, gradients, strict=True)}
    graph = in_float64(graph_of(builder, {**outputs, **found}))
    weights = {f"{_SEED}{i}": rng.standard_normal(operand.shape) for i, operand in enumerate(results)}
    given = {str(i): _wide(array) for i, array in enumerate(arrays) if i not in constants}
    computed = interpret(graph, _fed(graph, {**given, **weights}))
    forward = _without_gradients(graph, outputs)
    sizes = (float(np.sum(np.abs(computed[f"output {i}"] * weights[f"{_SEED}{i}"]))) for i in range(len(results)))
    # The rounding of the sums whose difference is taken.
    noise = 2.0**-52 * sum(sizes) / step

    def projection(moved: Mapping[str, Array]) -> float:
        values = interpret(forward, _fed(forward, {**given, **moved}))
        return sum(float(np.sum(values[f"output {i}"] * weights[f"{_SEED}{i}"])) for i in range(len(results)))

    for group in [checked] if together else [[i] for i in checked]:
        directions = {str(i): rng.standard_normal(arrays[i].shape) for i in group}
        terms = [directions[str(i)] * computed[f"gradient {i}"] for i in group]
        there, back = (
            projection({name: given[name] + sign * step * direction for name, direction in directions.items()})
            for sign in (1, -1)
        )
        numeric = (there - back) / (2 * step)
        analytic = sum(float(np.sum(term)) for term in terms)
        size = float(np.sqrt(sum(np.sum(np.square(term)) for term in terms)))
        if not abs(analytic - numeric) <= tolerance * max(size, abs(numeric)) + noise:
            raise GradientMismatchError(", ".join(map(str, group)), analytic, numeric)


def _wide(array: Array) -> Array:
    return array.astype(np.float64) if array.dtype.kind == "f" else array


def _fed(graph: Graph, arrays: Mapping[str, Array]) -> dict[str, Array]:
    return {name: arrays[name] for name in graph.inputs}


def _without_gradients(graph: Graph, outputs: Mapping[str, object]) -> Graph:
    """Return the part of a graph that some of its outputs depend on."""
    kept = {name: graph.outputs[name] for name in outputs}
    needed = set(kept.values())
    nodes: list[Node] = []
    for node in reversed(graph.nodes):
        if not needed.isdisjoint(node.outputs):
            needed.update(node.operands)
            nodes.append(node)
    return replace(
        graph.with_nodes(tuple(reversed(nodes)), outputs=kept),
        inputs={name: value for name, value in graph.inputs.items() if value in needed},
    )
