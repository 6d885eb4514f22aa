"""Turns nodes and layers into operators of a WebNN graph, as far as they can be: one stage of a program.

Every shape is known, since a graph is lowered for the shapes of actual inputs. Nodes whose inputs are known without a run are
evaluated at once by the reference, others become operators. A node may ask for the elements of a value (`TfjsCall.value`). If
the program was given them, the stage holds for these elements alone (a guard). Otherwise the node waits for a later stage,
before which the value is read back.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from webnn_wgpu import MLContext, MLGraphBuilder, MLOperand, MLTypeError, NotSupportedError

from ..common.calls import OnHost
from ..common.held import Array, decode
from ..common.lowering import StageLowering
from ..common.stages import Feed, Inline, Lowered, ValueNeeded
from . import host
from .call import TfjsCall
from .layers import Flow, run_layer
from .lists import joined
from .module import TfjsModule
from .operators import HANDLERS, Handler, Result
from .tensors import TfjsGraph, TfjsInline, TfjsNode, TfjsTensor, TfjsValue

CHEAP = 1 << 16
"""The maximum number of elements that the host computes during compilation."""
FEW = 64
"""The maximum number of floats that the host computes during compilation."""
MOST_COMPUTED = 1 << 29
"""The maximum number of elements of a result, which fill the largest buffers of usual adapters as float32."""
MOST_INLINED = 1 << 13
"""The maximum number of nodes that graphs of control flow may add to a graph."""
DEEPEST = 8
"""The maximum depth of graphs that evaluate each other."""

TfjsStage = Lowered[TfjsValue, TfjsNode]


class TfjsLowering(StageLowering[TfjsModule, TfjsValue, TfjsNode, TfjsTensor, TfjsStage]):
    """Lowers the nodes of one stage.

    Args:
        module: the model that the nodes belong to.
        context: where the graph will run.
        feeds: the values that are given at run time.
        aliases: values that stand for others, from earlier stages.
        missing: values that nodes read but that are not given. Such nodes are left for later stages.
        known: values that are known besides.
        evaluates: whether the only purpose is the evaluation of nodes with known inputs.
        depth: the number of graphs whose evaluation this lowering is a part of.
    """

    def __init__(
        self,
        module: TfjsModule,
        context: MLContext,
        *,
        feeds: Mapping[TfjsValue, Feed] | None = None,
        aliases: Mapping[TfjsValue, TfjsValue] | None = None,
        missing: Iterable[TfjsValue] = (),
        known: Mapping[TfjsValue, TfjsTensor] | None = None,
        evaluates: bool = False,
        depth: int = 0,
    ) -> None:
        result = TfjsStage(builder=MLGraphBuilder(context), aliases=dict(aliases or {}))
        super().__init__(module, result, feeds or {}, missing, known or {})
        self._folds, self._depth, self._inlined = not evaluates, depth, 0

    # the scope of layers --------------------------------------------------------------------------------------------

    @property
    def training(self) -> None:
        """Layers only predict here."""
        return None

    def weight(self, path: str) -> MLOperand | None:
        """Return a weight by the name that the layer gives it, or None if the model has none."""
        name = self.module.weight_name(path)
        return None if name is None else self.constant(self.module.weight(name), name)

    def refusal(self, kind: str, label: str, reason: str) -> NotSupportedError:
        """Return the error of a layer that cannot run."""
        return self.module.refusal_of(kind, label, reason, "layer")

    # values ---------------------------------------------------------------------------------------------------------

    def _fed(self, value: TfjsValue, feed: Feed) -> TfjsTensor:
        empty = np.zeros(feed.shape, feed.dtype) if 0 in feed.shape else None
        return TfjsTensor(shape=feed.shape, dtype=feed.dtype, array=empty, feed=value)

    def _known(self, value: TfjsValue, array: Array) -> TfjsTensor:
        del value
        return TfjsTensor.known(array)

    def tensor(self, value: TfjsValue) -> TfjsTensor:
        """Return the tensor of a value."""
        value = self.resolve(value)
        if value not in self._tensors:
            if not self.module.is_constant(value):
                raise NotSupportedError(f"{self.module.name}: no node computes '{value.name}'")
            self._tensors[value] = TfjsTensor.known(self.module.initializer(value), value.name)
        return self._tensors[value]

    def hold(self, tensor: TfjsTensor) -> MLOperand:
        """Return the operand of a tensor. A list of tensors becomes one."""
        if tensor.operand is None and tensor.items is not None:
            joined(self, tensor)
        return super().hold(tensor)

    def _end(self, end: TfjsValue, tensor: TfjsTensor | None) -> None:
        if tensor is not None and tensor.items is not None:
            joined(self, tensor)
        super()._end(end, tensor)

    # one node -------------------------------------------------------------------------------------------------------

    def _lower(self, node: TfjsNode) -> TfjsInline | None:
        if node.path is not None:
            self._layer(node)
            return None
        found = HANDLERS.get(node.op)
        if found is None:
            if node.op in host.EVALUATED:
                return self._hosted(node)
            raise self.module.refusal(node, "TensorFlow.js's operator has no translation")
        inputs = [self.tensor(v) for v in node.inputs]
        call = TfjsCall(self, node, inputs)
        if self._folds and found.folds and self._fold(node, inputs):
            return None
        if not found.empty and any(not t.size for t in inputs):
            raise OnHost("an input has no elements") if node.op in host.EVALUATED else call.fail("an input has no elements")
        try:
            result = found.lower(call)
        except MLTypeError as error:
            # An operand of a type, rank or size that WebNN's operator does not take.
            call.fail(f"WebNN's operator does not take it: {error}")
        if isinstance(result, Inline):
            self._inlined += len(result.nodes)
            if self._inlined > MOST_INLINED:
                call.fail(f"control flow adds more than {MOST_INLINED} nodes to the graph")
            return result
        self._take(call, found, result)
        known = bool(node.outputs) and all(self._tensors[o].array is not None for o in node.outputs if o in self._tensors)
        self._place(node, "folded" if known else "device")
        return None

    def _layer(self, node: TfjsNode) -> None:
        """Lower a layer."""
        tensors = [self.tensor(v) for v in node.inputs]
        flows = run_layer(self, node, [Flow(self.hold(t), t.mask) for t in tensors])
        for output, flow in zip(node.outputs, flows, strict=False):
            operand = flow.operand
            dtype = np.dtype(bool) if operand.data_type == "uint8" else np.dtype(operand.data_type)
            self._checked(node, tuple(operand.shape))
            self._tensors[output] = TfjsTensor(shape=tuple(operand.shape), dtype=dtype, operand=operand, mask=flow.mask)
        self._place(node, "device")

    def _take(self, call: TfjsCall, found: Handler, result: Result) -> None:
        results: Sequence[MLOperand | TfjsTensor] = result if isinstance(result, list | tuple) else [result]  # pyright: ignore[reportAssignmentType]
        if len(results) < len(call.node.outputs):
            call.fail(f"the graph uses {len(call.node.outputs)} of its {len(results)} results")
        for output, item in zip(call.node.outputs, results, strict=False):
            tensor = call.typed(item, found.result(call, item)) if isinstance(item, MLOperand) else item
            self._checked(call.node, tensor.shape)
            self._tensors[output] = tensor

    def _checked(self, node: TfjsNode, shape: tuple[int, ...]) -> None:
        if math.prod(shape) > MOST_COMPUTED:
            raise self.module.refusal(node, f"a result of the shape {list(shape)} has more than {MOST_COMPUTED} elements")

    def _hosted(self, node: TfjsNode) -> None:
        """Evaluate a node that only the host can run, at once if its inputs are known."""
        inputs = [self.tensor(v) for v in node.inputs]
        if any(t.array is None for t in inputs) or sum(t.size for t in inputs) > CHEAP:
            raise OnHost("the device has no lowering of this operator")
        results = host.evaluate(node, [t.array for t in inputs if t.array is not None])
        for output, array in zip(node.outputs, results, strict=True):
            self._tensors[output] = TfjsTensor.known(array)
        self._place(node, "folded")

    # known values ---------------------------------------------------------------------------------------------------

    def _fold(self, node: TfjsNode, inputs: Sequence[TfjsTensor]) -> bool:
        """Evaluate a node whose inputs are known, if that is cheap."""
        if not inputs or any(t.array is None or not t.size or t.items is not None for t in inputs):
            return False
        if sum(t.size for t in inputs) > CHEAP or any(t.dtype.kind not in "iub" and t.size > FEW for t in inputs):
            return False
        known = {
            self.resolve(v): TfjsTensor.known(t.array) for v, t in zip(node.inputs, inputs, strict=True) if t.array is not None
        }
        inner = TfjsLowering(self.module, self.module.reference, known=known, aliases=self.result.aliases, evaluates=True)
        try:
            arrays = inner.evaluated(node)
        except (OnHost, ValueNeeded, MLTypeError, NotSupportedError):
            return False
        if arrays is None:
            return False
        for output, array in zip(node.outputs, arrays, strict=True):
            self._tensors[output] = TfjsTensor.known(array)
        self._place(node, "folded")
        return True

    def evaluated(self, node: TfjsNode) -> list[Array] | None:
        """Return the outputs of a node with known inputs, on the reference. None if they have too many elements."""
        if self._lower(node) is not None:
            return None
        tensors = [self._tensors[o] for o in node.outputs]
        if any(t.size > CHEAP or t.items is not None or (t.dtype.kind not in "iub" and t.size > FEW) for t in tensors):
            return None
        open_ = {f"{i}": t for i, t in enumerate(tensors) if t.array is None}
        results: Mapping[str, Array] = {}
        if open_:
            operands = {name: self.builder.identity(t.operand) for name, t in open_.items() if t.operand is not None}
            results = self.module.reference.compute(self.builder.build(operands), {})
        return [t.array if t.array is not None else decode(results[f"{i}"], t.dtype) for i, t in enumerate(tensors)]

    def known_result(self, graph: TfjsGraph) -> Array | None:
        """Return the first output of a graph on values of this lowering. None if it depends on a run."""
        if self._depth >= DEEPEST or not graph.outputs:
            return None
        known: dict[TfjsValue, TfjsTensor] = {}
        missing: list[TfjsValue] = []
        inside = {o for node in graph.nodes for o in node.outputs}
        uses = [*graph.inputs, *(v for node in graph.nodes for v in self.module.uses(node)), *graph.outputs]
        for value in dict.fromkeys(self.resolve(v) for v in uses if v not in inside):
            tensor = self._tensors.get(value)
            if tensor is not None and tensor.array is not None and tensor.size:
                known[value] = TfjsTensor.known(tensor.array)
            elif not self.module.is_constant(value):
                missing.append(value)
        inner = TfjsLowering(
            self.module,
            self.module.reference,
            known=known,
            aliases=self.result.aliases,
            missing=missing,
            depth=self._depth + 1,
        )
        wanted = inner.resolve(graph.outputs[0])
        try:
            found = inner.run(graph.nodes, [wanted])
        except NotSupportedError:
            return None
        wanted = inner.resolve(wanted)
        return found.known.get(wanted, self.module.initializer(wanted) if self.module.is_constant(wanted) else None)

    def result_types(self, graph: TfjsGraph) -> list[tuple[tuple[int, ...], np.dtype[np.generic]]] | None:
        """Return the shapes and types of the outputs of a graph on values of this lowering.

        None if the graph is not of operators of the device alone, without a dependence on elements.
        """
        if self._depth >= DEEPEST:
            return None
        inside = {o for node in graph.nodes for o in node.outputs}
        uses = [*graph.inputs, *(v for node in graph.nodes for v in self.module.uses(node)), *graph.outputs]
        given = {v: self.tensor(v) for v in dict.fromkeys(self.resolve(v) for v in uses if v not in inside)}
        if any(t.items is not None or 0 in t.shape for t in given.values()):
            return None
        inner = TfjsLowering(
            self.module,
            self.module.reference,
            feeds={v: Feed(t.shape, t.dtype) for v, t in given.items() if t.array is None},
            known={v: TfjsTensor.known(t.array) for v, t in given.items() if t.array is not None},
            aliases=self.result.aliases,
            depth=self._depth + 1,
        )
        try:
            found = inner.run(graph.nodes, graph.outputs)
        except (NotSupportedError, ValueNeeded):
            return None
        if found.host or found.rest:
            return None
        return [(t.shape, t.dtype) for t in map(inner.tensor, graph.outputs)]

    def demand(self, value: TfjsValue) -> Array:
        """Return a value's elements, for which the stage is then compiled."""
        value = self.resolve(value)
        tensor = self.tensor(value)
        if tensor.array is None:
            given = self._feeds.get(tensor.feed) if tensor.feed is not None else None
            if tensor.feed is None or given is None or given.array is None:
                raise ValueNeeded(tensor.feed or value)
            # A copy: the caller may change the array of the feed.
            tensor.array = np.array(given.array)
            self.result.guards[tensor.feed] = tensor.array
        return tensor.array
