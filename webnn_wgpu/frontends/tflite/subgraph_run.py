"""`SubgraphRun`: a subgraph with its tensors, which are set, computed and read one by one."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from webnn_wgpu import MLContext, NotSupportedError, WebNNError

from ..common.held import Array
from ..common.stages import Feed
from .contents import TensorRecord
from .details import InterpreterRuntimeError, InterpreterValueError, checked_value
from .module import TfliteModule
from .program import TfliteProgram
from .state import Variables
from .tensors import TfliteValue


class SubgraphRun:
    """A subgraph of an interpreter.

    Args:
        module: the model.
        context: where it runs.
        variables: the variables of the model.
        index: the subgraph.
        preserve: whether the values between the operators are kept.
    """

    def __init__(self, module: TfliteModule, context: MLContext, variables: Variables, index: int, preserve: bool) -> None:
        self._module, self._context, self._variables = module, context, variables
        self.record = module.file.subgraphs[index]
        graph = module.graph(index)
        self._values = graph.values
        self._inputs = list(dict.fromkeys(self.record.inputs))
        self._program = TfliteProgram(module, context, variables, graph)
        self._outputs = list(dict.fromkeys(self.record.outputs))
        if preserve:
            inner = [i for o in self.record.operators for i in o.outputs]
            plain = [i for i in inner if self.record.tensors[i].dtype is not None]
            self._outputs = list(dict.fromkeys([*self._outputs, *plain]))
        self._program.outputs = tuple(self._values[i] for i in self._outputs)
        self._shapes: dict[int, tuple[int, ...]] = {}
        self._arrays: dict[int, Array] = {}
        self.allocated = False

    # shapes ---------------------------------------------------------------------------------------------------------

    def tensor(self, index: int) -> TensorRecord:
        """Return the record of a tensor.

        Raises:
            InterpreterValueError: there is no such tensor.
        """
        count = len(self.record.tensors)
        if not 0 <= index < count:
            raise InterpreterValueError(f"Invalid tensor index {index} exceeds max tensor index {count - 1}")
        return self.record.tensors[index]

    def shape(self, index: int) -> tuple[int, ...]:
        """Return the current shape of a tensor."""
        if index in self._shapes:
            return self._shapes[index]
        if index in self._arrays:
            return self._arrays[index].shape
        shape = self.tensor(index).shape
        return shape if shape is not None else ()

    def resize(self, index: int, size: Sequence[int], strict: bool) -> None:
        """Give an input another shape. The shapes of other tensors follow from those of the inputs and stay as they are.

        Raises:
            InterpreterRuntimeError: there is no such tensor, or a size is negative or, if `strict`, fixed.
        """
        if not 0 <= index < len(self.record.tensors):
            raise InterpreterRuntimeError(f"there is no tensor {index}")
        record = self.tensor(index)
        shape = tuple(int(d) for d in size)
        if index not in self._inputs:
            return
        if any(d < 0 for d in shape):
            raise InterpreterRuntimeError(f"the sizes must not be negative; got {list(shape)}")
        if strict and record.signature is not None:
            if len(shape) != len(record.signature):
                raise InterpreterRuntimeError(f"Tensor {index} has rank {len(record.signature)}; got {list(shape)}")
            for i, (new, old) in enumerate(zip(shape, record.signature, strict=True)):
                if old >= 0 and new != old:
                    resized = f"dimension {i} of tensor {index} with value {old} to {new}"
                    raise InterpreterRuntimeError(f"Attempting to resize {resized}")
        if shape != self.shape(index):
            self.allocated = False
            self._arrays.clear()
        self._shapes[index] = shape

    def allocate(self, initialize: Callable[[], None]) -> None:
        """Compile the subgraph for the current shapes.

        Raises:
            InterpreterRuntimeError: an operator that cannot run.
        """
        if self.allocated:
            return
        feeds: dict[TfliteValue, Feed] = {}
        for index in self._inputs:
            dtype = self.tensor(index).dtype
            if dtype is None:
                record = self.tensor(index)
                raise InterpreterRuntimeError(
                    f"input {index} ('{record.name}') has the type {record.type_name}, which is not supported"
                )
            feeds[self._values[index]] = Feed(self.shape(index), dtype)
        try:
            initialize()
            self._program.prepare(feeds)
        except NotSupportedError as error:
            raise InterpreterRuntimeError(str(error)) from error
        for index in self._inputs:
            if index not in self._arrays:
                self._arrays[index] = np.zeros(self.shape(index), self.tensor(index).dtype)
        for index, shape in self._program.output_shapes().items():
            self._shapes[self._outputs[index]] = shape
        self.allocated = True

    # elements -------------------------------------------------------------------------------------------------------

    def set(self, index: int, value: object) -> None:
        """Give a tensor elements.

        Raises:
            InterpreterValueError: no such input, or a value of another type, rank or shape.
        """
        record = self.tensor(index)
        if not self.allocated:
            raise InterpreterValueError("Cannot set tensor: Tensor is unallocated. Try calling allocate_tensors() first")
        array = checked_value(record, self.shape(index), value)
        if index not in self._inputs:
            raise InterpreterValueError(f"Cannot set tensor: tensor {index} is no input")
        self._arrays[index] = array

    def get(self, index: int) -> Array:
        """Return the elements of a tensor, those of the last run.

        Raises:
            InterpreterValueError: no such tensor, or one that is not kept.
        """
        record = self.tensor(index)
        if index in self._arrays:
            return self._arrays[index]
        if self._module.constants.has(record):
            return self._module.constants.array(self.record.index, record)
        variable = self._values[index].variable
        if variable is not None and (found := self._variables.get(variable)) is not None:
            return found
        if not self.allocated or record.dtype is None or (index not in self._outputs and variable is None):
            raise InterpreterValueError("Tensor data is null. Run allocate_tensors() first")
        return np.zeros(self.shape(index), record.dtype)

    def invoke(self) -> None:
        """Run the subgraph.

        Raises:
            InterpreterRuntimeError: the tensors are not allocated, or the run fails.
        """
        if not self.allocated:
            raise InterpreterRuntimeError("Invoke called on model that is not ready.")
        feeds = {self._values[i]: self._arrays[i] for i in self._inputs}
        try:
            results = self._program.run(feeds)
        except WebNNError as error:
            raise InterpreterRuntimeError(str(error)) from error
        for index, array in zip(self._outputs, results, strict=True):
            self._arrays[index] = array
            self._shapes[index] = array.shape

    def nodes(self) -> TfliteProgram:
        """Return the program of the subgraph."""
        return self._program

    def destroy(self) -> None:
        """Free the graphs."""
        self._program.destroy()
