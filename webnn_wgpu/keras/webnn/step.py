"""Compiled functions of a model: one graph that reads and updates variables, and runs for each batch.

A function is traced once for each structure of its data: variables and data become tensors without numbers. The graph holds all
that the function computes from them, the new values of variables included, and writes these in place.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Hashable, Sequence
from typing import Any

from keras.src import tree
from keras.src.backend.common.stateless_scope import StatelessScope

import webnn_wgpu as wn

from .. import engine
from ..engine import Value
from . import core
from .tensor import Tensor, unknown

_ALONE = 3
"""References to an object that only its owner has: the owner's, a local name and the argument of `getrefcount`."""


class CompiledFunction:
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
        core.settle_variables()
        given = tree.map_structure(lambda x: x if x is None else core.convert_to_tensor(x), data)
        flat = [x for x in tree.flatten(given) if isinstance(x, Tensor)]
        key = (
            id(engine.context()),
            str(tree.map_structure(lambda x: x is None, given)),
            tuple((x.dtype, x.shape) for x in flat),
        )
        traced = self._traced.get(key)
        if traced is None:
            traced = self._traced[key] = _Traced(self._function, self._variables, given)
        return traced.run(flat)


class _Traced:
    """A function that was traced for one structure of data."""

    def __init__(self, function: Callable[[Any], Any], variables: list[Any], data: Any) -> None:
        inputs = tree.map_structure(lambda x: unknown(x.shape, x.dtype) if isinstance(x, Tensor) else x, data)
        self._variables = variables
        states = [unknown(variable.shape, core.canonical(variable._dtype)) for variable in variables]
        with StatelessScope(state_mapping=zip(variables, states, strict=True), collect_losses=True) as scope:
            self._results = function(inputs)
            found = [scope.get_current_value(variable) for variable in variables]
        wanted: list[Value] = []
        self._kept = [x for x in tree.flatten(self._results) if isinstance(x, Tensor) and x.value is not None]
        wanted += [x.value for x in self._kept if x.value is not None]
        self._updated = [
            n for n, (old, new) in enumerate(zip(states, found, strict=True)) if new is not old and new.value is not None
        ]
        wanted += [found[n].value for n in self._updated]
        program = engine.Program(wanted)
        names = {id(x.value): f"x{n}" for n, x in enumerate(x for x in tree.flatten(inputs) if isinstance(x, Tensor))}
        names |= {id(x.value): f"v{n}" for n, x in enumerate(states)}
        builder = wn.MLGraphBuilder(engine.context())

        def leaf(b: Any, _: int, value: Value) -> Any:
            name = names.get(id(value))
            if name is None:
                return b.constant(value.numpy())
            return b.input(name, value.shape, value.data_type)

        operands = program.describe(builder, leaf)
        outputs = {f"y{n}": operand for n, operand in enumerate(operands[: len(self._kept)])}
        outputs |= {f"n{n}": operand for n, operand in zip(self._updated, operands[len(self._kept) :], strict=True)}
        read = {names.get(identity) for identity in program.read()}
        aliases = {f"n{n}": f"v{n}" for n in self._updated if f"v{n}" in read}
        self._aliases = frozenset(aliases)
        self.graph = engine.build(outputs, builder, aliases=aliases)

    def run(self, data: list[Tensor]) -> Any:
        """Dispatch the graph, give variables their new values, and return the results."""
        inputs: dict[str, Any] = {}
        for n, x in enumerate(data):
            if f"x{n}" in self.graph.inputs and x.value is not None:
                inputs[f"x{n}"] = x.value.on_device()
        outputs: dict[str, Any] = {}
        context = engine.context()
        for n in self._updated:
            if f"n{n}" in self._aliases:
                outputs[f"n{n}"] = _own(self._variables[n])
            else:
                described = self.graph.outputs[f"n{n}"]
                outputs[f"n{n}"] = context.create_tensor(described.shape, described.data_type, readable=True, writable=True)
        for n, variable in enumerate(self._variables):
            if f"v{n}" in self.graph.inputs:
                inputs[f"v{n}"] = outputs[f"n{n}"] if f"n{n}" in self._aliases else _tensor(variable)
        for n, x in enumerate(self._kept):
            outputs[f"y{n}"] = context.create_tensor(x.shape, self.graph.outputs[f"y{n}"].data_type, readable=True)
        context.dispatch(self.graph, inputs, outputs)
        engine.compilation.dispatches += 1
        for n in self._updated:
            self._variables[n]._value = _stored(outputs[f"n{n}"], self._variables[n]._value.dtype)
        results = {id(x): _stored(outputs[f"y{n}"], x.dtype) for n, x in enumerate(self._kept)}
        return tree.map_structure(lambda x: results.get(id(x), x), self._results)


def _stored(tensor: wn.MLTensor, dtype: str) -> Tensor:
    """Return a tensor of the device as a tensor."""
    return Tensor(Value.stored(tensor), dtype)


def _tensor(variable: Any) -> wn.MLTensor:
    return variable._value.value.on_device()


def _own(variable: Any) -> wn.MLTensor:
    """Return the memory of a variable, which nothing else reads: others that hold its present value keep that."""
    tensor: Tensor = variable._value
    value = tensor.value
    assert value is not None
    if sys.getrefcount(tensor) > _ALONE or sys.getrefcount(value) > _ALONE:
        (copied,) = engine.record(("copy",), lambda builder, x: builder.identity(x), value)
        engine.evaluate([copied])
        variable._value = Tensor(copied, tensor.dtype)
        return copied.on_device()
    return value.on_device()
