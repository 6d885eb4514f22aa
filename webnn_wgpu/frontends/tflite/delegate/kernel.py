"""`PartitionKernel`: a partition of a subgraph of TFLite's runtime, compiled for a device."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import Any

import numpy as np

from webnn_wgpu import MLContext

from ...common.held import Array, Shape
from ...common.stages import Feed
from ..module import TfliteModule
from ..program import TfliteProgram
from ..state import Variables
from ..tensors import TfliteGraph, TfliteValue
from .layouts import MEMORY_DYNAMIC, RuntimeContext, ints_at
from .support import is_stored_weight


class PartitionKernel:
    """A partition.

    The elements of variables stay in the runtime, which resets them. A run copies them to the device and back.

    Args:
        module: the module of the subgraph.
        context: where the partition runs.
        graph: the use of the subgraph.
        nodes: the numbers of the partition's nodes.
        inputs: the tensors that the runtime declares as inputs, with constants and variables.
        outputs: the tensors that the partition computes for others.
    """

    def __init__(
        self,
        module: TfliteModule,
        context: MLContext,
        graph: TfliteGraph,
        *,
        nodes: Sequence[int],
        inputs: Sequence[int],
        outputs: Sequence[int],
    ) -> None:
        values = graph.values
        self._module = module
        read = frozenset(values[i] for i in inputs if i >= 0)
        weights = {n.record.index: n for n in graph.nodes if is_stored_weight(module, n) and n.outputs[0] in read}
        copies = {n.outputs[0] for n in weights.values()}
        chosen = weights.keys() | set(nodes)
        self._inputs = [values[i] for i in inputs if i >= 0 and not (self._is_inner(values[i]) or values[i] in copies)]
        self._outputs = [values[i] for i in outputs if i >= 0 and values[i].variable is None]
        part = TfliteGraph(
            nodes=[n for n in graph.nodes if n.record.index in chosen],
            inputs=self._inputs,
            outputs=self._outputs,
            values=values,
        )
        used = (v for n in part.nodes for v in n.inputs if v is not None and v.variable is not None)
        self._kept = list(dict.fromkeys(used))
        self._variables = Variables(context)
        self._program = TfliteProgram(module, context, self._variables, part)

    def _is_inner(self, value: TfliteValue) -> bool:
        return value.variable is not None or self._module.constants.has(value.record)

    # preparation ----------------------------------------------------------------------------------------------------

    def compile(self, runtime: RuntimeContext) -> dict[int, Shape]:
        """Compile the graph for the current shapes of the inputs.

        Returns:
            The shapes of the outputs, by their tensors. Those that depend on elements of the inputs are absent.

        Raises:
            NotSupportedError: the device cannot run the partition with these shapes.
        """
        feeds: dict[TfliteValue, Feed] = {}
        for value in self._inputs:
            assert value.record.dtype is not None
            feeds[value] = Feed(ints_at(runtime.tensor(value.record.index).dims), value.record.dtype)
        shapes = self._program.output_shapes() if self._program.prepare(feeds) else {}
        # The graph has its own copy of the constants.
        self._module.constants.forget()
        return {self._outputs[i].record.index: shape for i, shape in shapes.items()}

    def prepare(self, runtime: RuntimeContext) -> None:
        """Compile the graph and give the outputs their shapes. Outputs of unknown shapes get memory during each run.

        The runtime prepares a node after the run of all nodes before it whose shapes only a run knows.
        """
        shapes = self.compile(runtime)
        for value in self._outputs:
            tensor = runtime.tensor(value.record.index)
            shape = shapes.get(value.record.index)
            if shape is not None:
                if ints_at(tensor.dims) != shape:
                    runtime.resize(tensor, shape)
            elif tensor.allocation_type != MEMORY_DYNAMIC:
                tensor.allocation_type, tensor.data = MEMORY_DYNAMIC, None

    # runs -----------------------------------------------------------------------------------------------------------

    def invoke(self, runtime: RuntimeContext) -> None:
        """Copy the inputs from the runtime's memory, run the graph, and copy the outputs back."""
        feeds = {v: elements_of(runtime.tensor(v.record.index), v) for v in self._inputs}
        for value in self._kept:
            assert value.variable is not None
            self._variables.set(value.variable, elements_of(runtime.tensor(value.record.index), value))
        results = self._program.run(feeds)
        for value, result in zip(self._outputs, results, strict=True):
            self._store(runtime, value, result)
        for value in self._kept:
            assert value.variable is not None
            found = self._variables.get(value.variable)
            if found is not None:
                self._store(runtime, value, found)

    def _store(self, runtime: RuntimeContext, value: TfliteValue, result: Array) -> None:
        tensor = runtime.tensor(value.record.index)
        array = np.ascontiguousarray(result, value.record.dtype).reshape(result.shape)
        if tensor.allocation_type == MEMORY_DYNAMIC and (ints_at(tensor.dims) != array.shape or not tensor.data):
            runtime.resize(tensor, array.shape)
        if tensor.bytes < array.nbytes or ints_at(tensor.dims) != array.shape:
            raise ValueError(f"output '{value.name}' has the shape {list(array.shape)}, but memory for {tensor.bytes} bytes")
        if array.nbytes and not tensor.data:
            raise ValueError(f"output '{value.name}' has no memory")
        if array.nbytes:
            ctypes.memmove(tensor.data, array.ctypes.data, array.nbytes)

    def destroy(self) -> None:
        """Free the graph."""
        self._program.destroy()
        self._variables.reset()


def elements_of(tensor: Any, value: TfliteValue) -> Array:
    """Return a view of a tensor's elements in the runtime's memory."""
    dtype = value.record.dtype
    assert dtype is not None
    shape = ints_at(tensor.dims)
    count = int(np.prod(shape, dtype=np.int64))
    if not count:
        return np.zeros(shape, dtype)
    if not tensor.data or tensor.bytes < count * dtype.itemsize:
        raise ValueError(f"tensor '{value.name}' of the shape {list(shape)} has no memory")
    memory: Any = (ctypes.c_uint8 * (count * dtype.itemsize)).from_address(tensor.data)
    return np.frombuffer(memory, dtype).reshape(shape)
