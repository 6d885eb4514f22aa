"""The operands of a stage's graph: its constants and variables."""

from __future__ import annotations

from abc import ABC
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from webnn_wgpu import MLOperand

from ..common.calls import OnHost
from ..common.held import Array, DType, Shape
from ..common.lowering import StageLowering
from ..common.stages import Feed
from .blocks import blockwise
from .contents import Quantization
from .module import TfliteModule
from .stages import TfliteStage
from .tensors import TfliteNode, TfliteTensor, TfliteValue, VariableKey

if TYPE_CHECKING:
    from .call import TfliteCall


class TfliteOperands(StageLowering[TfliteModule, TfliteValue, TfliteNode, TfliteTensor, TfliteStage], ABC):
    """The values of a stage while it is lowered, and their operands.

    Args:
        module: the model.
        result: the stage, whose inputs and variables are added.
        feeds: the values that are given at run time.
        missing: values that nodes read but that are not given.
        variables: the shapes and types of variables that have elements.
        known: values that are known besides.
    """

    def __init__(
        self,
        module: TfliteModule,
        result: TfliteStage,
        feeds: Mapping[TfliteValue, Feed],
        missing: Iterable[TfliteValue],
        variables: Mapping[VariableKey, tuple[Shape, DType]],
        known: Mapping[TfliteValue, TfliteTensor],
    ) -> None:
        super().__init__(module, result, feeds, missing, known)
        self._variables = variables
        self._current: dict[VariableKey, TfliteTensor] = {}
        self._assigned: dict[VariableKey, None] = {}
        self._stored: dict[tuple[int, int], TfliteTensor] = {}
        for value, key in result.handles.items():
            self._tensors[value] = TfliteTensor(shape=(), dtype=np.dtype(np.int32), handle=key)

    def _fed(self, value: TfliteValue, feed: Feed) -> TfliteTensor:
        empty = np.zeros(feed.shape, feed.dtype) if 0 in feed.shape else None
        return TfliteTensor(shape=feed.shape, dtype=feed.dtype, array=empty, feed=value, quantization=value.record.quantization)

    def _known(self, value: TfliteValue, array: Array) -> TfliteTensor:
        return TfliteTensor.known(array, value.record.quantization)

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
                # The uses of a subgraph, such as the rounds of an unrolled loop, share its constants and their operands.
                key = value.subgraph, record.index
                if key not in self._stored:
                    array = self.module.initializer(value)
                    self._stored[key] = TfliteTensor.known(array, record.quantization, record.name)
                self._tensors[value] = self._stored[key]
        return self._tensors[value]

    def _absent(self, value: TfliteValue) -> bool:
        return super()._absent(value) and self.resolve(value).variable is None

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
            name, tensor.operand = self.input(f"variable {' '.join(key[1:])}", tensor)
            self.result.reads[name] = key
            self._current[key] = tensor
        return self._current[key]

    def assign(self, key: VariableKey, tensor: TfliteTensor, value: TfliteValue | None = None) -> None:
        """Give a variable new elements."""
        self._current[key] = tensor
        self._assigned[key] = None
        if value is not None:
            self._tensors[self.resolve(value)] = tensor

    # the results ----------------------------------------------------------------------------------------------------

    def _collect(self, ends: list[TfliteValue]) -> None:
        super()._collect(ends)
        for key in self._assigned:
            tensor = self._current[key]
            operand = self.hold(tensor)
            name = f"variable {' '.join(key[1:])}"
            while name in self.result.outputs or name in self.result.writes:
                name += "'"
            if operand in self._leaves:
                operand = self.builder.identity(operand)
            self.result.writes[name] = (key, replace(tensor, operand=operand))

    def _end(self, end: TfliteValue, tensor: TfliteTensor | None) -> None:
        if tensor is None and end.variable is not None:
            tensor = self.tensor(end)
        if tensor is not None and tensor.handle is not None:
            self.result.handles[end] = tensor.handle
        else:
            super()._end(end, tensor)
