"""The operands of a stage's graph: its inputs, constants and variables."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from webnn_wgpu import MLOperand

from ..common.calls import OnHost
from ..common.held import Array, DType
from .blocks import blockwise
from .contents import Quantization
from .module import TfliteModule
from .stages import Lowered, resolve
from .tensors import Shape, TfliteTensor, TfliteValue, VariableKey, encoded, held_shape, held_type

if TYPE_CHECKING:
    from .call import TfliteCall


class StageOperands:
    """The values of a stage while it is lowered, and their operands.

    Args:
        module: the model.
        result: the stage, whose inputs and variables are added.
        variables: the shapes and types of variables that have elements.
        known: values that are known besides.
    """

    def __init__(
        self,
        module: TfliteModule,
        result: Lowered,
        variables: Mapping[VariableKey, tuple[Shape, DType]],
        known: Mapping[TfliteValue, TfliteTensor],
    ) -> None:
        self.module, self.result = module, result
        self.builder = result.builder
        self._variables = variables
        self._tensors: dict[TfliteValue, TfliteTensor] = dict(known)
        self._current: dict[VariableKey, TfliteTensor] = {}
        self._assigned: dict[VariableKey, None] = {}
        self._constants: dict[int, tuple[Array, MLOperand]] = {}
        self._leaves: set[MLOperand] = set()

    def resolve(self, value: TfliteValue) -> TfliteValue:
        """Follow the aliases of a value."""
        return resolve(value, self.result.aliases)

    def tensor(self, value: TfliteValue) -> TfliteTensor:
        """Return the tensor of a value."""
        value = self.resolve(value)
        if value not in self._tensors:
            record = value.record
            if value.variable is not None:
                shape = record.shape if record.shape is not None else ()
                dtype = record.dtype if record.dtype is not None else np.dtype(np.float32)
                self._tensors[value] = self.variable(value.variable, (shape, dtype), record.quantization)
            else:
                array = self.module.constants.array(value.subgraph, record)
                self._tensors[value] = TfliteTensor.known(array, record.quantization)
        return self._tensors[value]

    # operands -------------------------------------------------------------------------------------------------------

    def hold(self, tensor: TfliteTensor) -> MLOperand:
        """Return the operand of a tensor."""
        if tensor.operand is None:
            if not tensor.size:
                raise OnHost("an input has no elements")
            if tensor.feed is not None:
                name = tensor.feed.name or f"input {tensor.feed.record.index}"
                while name in self.result.inputs or name in self.result.reads:
                    name += "'"
                tensor.operand = self._input(name, tensor)
                self.result.inputs[name] = tensor.feed
            else:
                assert tensor.array is not None
                tensor.operand = self.constant(encoded(tensor.array))
        return tensor.operand

    def _input(self, name: str, tensor: TfliteTensor) -> MLOperand:
        shape, dtype = held_shape(tensor.shape, tensor.dtype), held_type(tensor.dtype)
        operand = self.builder.input(name, shape, dtype)  # pyright: ignore[reportArgumentType]
        self._leaves.add(operand)
        return operand

    def constant(self, array: Array) -> MLOperand:
        """Return a constant operand, one for each array."""
        if id(array) not in self._constants:
            if not array.size:
                raise OnHost("an input has no elements")
            fixed = np.ascontiguousarray(array).reshape(array.shape)
            fixed.flags.writeable = False
            operand = self.builder.constant(fixed)
            self._leaves.add(operand)
            self._constants[id(array)] = (array, operand)
        return self._constants[id(array)][1]

    def blocks(self, call: TfliteCall, tensor: TfliteTensor, quantization: Quantization) -> MLOperand:
        """Return the numbers of weights with a scale per block."""
        return blockwise(self.module, call, tensor, quantization)

    # variables ------------------------------------------------------------------------------------------------------

    def variable(
        self, key: VariableKey, initial: tuple[Shape, DType] | None = None, quantization: Quantization | None = None
    ) -> TfliteTensor:
        """Return the elements of a variable: those that a node assigned last, or those from before the run.

        Args:
            key: the variable.
            initial: shape and type of a variable that is 0 before its first assignment.
            quantization: the mapping of its integers to numbers.

        Raises:
            OnHost: the variable has no elements yet.
        """
        if key not in self._current:
            found = self._variables.get(key, initial)
            if found is None:
                raise OnHost(f"variable '{key[-1]}' is read before it is assigned")
            self.result.types[key] = found
            if quantization is not None:
                self.result.quantizations[key] = quantization
            tensor = TfliteTensor(shape=found[0], dtype=found[1], quantization=quantization)
            name = f"variable {' '.join(key[1:])}"
            while name in self.result.inputs or name in self.result.reads:
                name += "'"
            tensor.operand = self._input(name, tensor)
            self.result.reads[name] = key
            self._current[key] = tensor
        return self._current[key]

    def assign(self, key: VariableKey, tensor: TfliteTensor, value: TfliteValue | None = None) -> None:
        """Give a variable new elements."""
        self._current[key] = tensor
        self._assigned[key] = None
        if value is not None:
            self._tensors[self.resolve(value)] = tensor
