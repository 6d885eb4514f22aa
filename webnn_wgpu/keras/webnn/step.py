"""Compiled steps of a model: one graph that reads and updates variables, and runs for each batch.

A function is traced once for each structure of its data: variables and data become tensors without numbers. The graph holds all
that the function computes from them, the new values of variables included, and writes these in place.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import Any

from keras.src import tree
from keras.src.backend.common.stateless_scope import StatelessScope

from webnn_wgpu import eager

from . import core
from .tensor import Tensor, recorded, unknown


class CompiledStep:
    """A function of a batch, compiled for each structure of its batches.

    Args:
        function: computes with tensors and variables. Its results are tensors in any containers.
        variables: the variables that it may read and change.
    """

    def __init__(self, function: Callable[[Any], Any], variables: Sequence[Any]) -> None:
        self._function = function
        self._variables = list({id(variable): variable for variable in variables}.values())
        self._traced: dict[Hashable, _Traced] = {}

    def __call__(self, data: Any) -> Any:
        """Run the function on a batch, and return its results. Variables have their new values."""
        given = tree.map_structure(lambda x: x if x is None else core.convert_to_tensor(x), data)
        flat = [x for x in tree.flatten(given) if isinstance(x, Tensor)]
        key = (
            id(eager.default_context()),
            str(tree.map_structure(lambda x: x is None, given)),
            tuple((x.dtype, x.shape) for x in flat),
        )
        traced = self._traced.get(key)
        if traced is None:
            traced = self._traced[key] = _Traced(self._function, self._variables, given)
        return traced.run(flat)


@dataclass(frozen=True)
class _Result:
    """The place of a result among the outputs of a graph, and its data type."""

    number: int
    dtype: str


class _Traced:
    """A function that was traced for one structure of data."""

    def __init__(self, function: Callable[[Any], Any], variables: list[Any], data: Any) -> None:
        inputs = tree.map_structure(lambda x: unknown(x.shape, x.dtype) if isinstance(x, Tensor) else x, data)
        states = [unknown(variable.shape, core.canonical(variable._dtype)) for variable in variables]
        with StatelessScope(state_mapping=zip(variables, states, strict=True), collect_losses=True) as scope:
            results = function(inputs)
            found = [scope.get_current_value(variable) for variable in variables]
        kept = [x for x in tree.flatten(results) if _on_device(x)]
        given = [recorded(x) for x in tree.flatten(inputs) if _on_device(x)]
        held = [n for n, state in enumerate(states) if _on_device(state)]
        updates = {len(given) + place: recorded(found[n]) for place, n in enumerate(held) if found[n] is not states[n]}
        given += [recorded(states[n]) for n in held]
        places = {id(x): _Result(n, x.dtype) for n, x in enumerate(kept)}
        self._results = tree.map_structure(lambda x: places.get(id(x), x), results)
        self._variables = [variables[n] for n in held]
        self._graph = eager.CompiledFunction(given, [recorded(x) for x in kept], updates)

    def run(self, data: list[Tensor]) -> Any:
        """Run the graph, which gives variables their new values, and return the results."""
        given = [recorded(x) for x in data if _on_device(x)]
        found = self._graph(*given, *[recorded(variable._value) for variable in self._variables])
        return tree.map_structure(lambda x: Tensor(found[x.number], x.dtype) if isinstance(x, _Result) else x, self._results)


def _on_device(x: Any) -> bool:
    return isinstance(x, Tensor) and x.value is not None
