"""Turns TFLite nodes into operators of a WebNN graph, as far as they can be: one stage of a program.

Every shape is known, since a graph is lowered for the shapes of actual inputs. Nodes whose inputs are known without a run are
evaluated at once by the reference, others become operators. A node may ask for the elements of a value (`TfliteCall.value`). If
the program was given them, the stage holds for these elements alone (a guard). Otherwise the node waits for a later stage,
before which the value is read back.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import replace

import numpy as np

from webnn_wgpu import MLContext, MLGraphBuilder, MLOperand, MLTypeError, NotSupportedError

from ..common.calls import OnHost
from ..common.held import Array, DType, Shape, decode
from ..common.stages import Feed, Inline, ValueNeeded
from .call import TfliteCall
from .checking import check_node
from .module import DEEPEST, TfliteModule
from .operators import Result, TfliteHandler, TfliteInline, handler
from .stage_operands import TfliteOperands
from .stages import TfliteStage
from .tensors import TfliteGraph, TfliteNode, TfliteTensor, TfliteValue, VariableKey

CHEAP = 1 << 16
"""The maximum number of elements that the host computes during compilation."""
FEW = 64
"""The maximum number of floats that the host computes during compilation."""
MOST_ELIDED = 1 << 22
"""The maximum number of elements of the inputs of a node with another input of no elements."""
MOST_COMPUTED = 1 << 29
"""The maximum number of elements of a result, which fill the largest buffers of usual adapters as float32."""
MOST_INLINED = 1 << 12
"""The maximum number of nodes that subgraphs may add to a graph."""


class TfliteLowering(TfliteOperands):
    """Lowers the nodes of one stage.

    Args:
        module: the model that the nodes belong to.
        context: where the graph will run.
        feeds: the values that are given at run time.
        aliases: values that stand for others, from earlier stages.
        handles: the variables that values of earlier stages refer to.
        variables: the shapes and types of variables that have elements.
        missing: values that nodes read but that are not given. Such nodes are left for later stages.
        known: values that are known besides.
        evaluates: whether the only purpose is the evaluation of a node with known inputs.
        depth: the number of conditions whose evaluation this lowering is a part of.
    """

    def __init__(
        self,
        module: TfliteModule,
        context: MLContext,
        *,
        feeds: Mapping[TfliteValue, Feed] | None = None,
        aliases: Mapping[TfliteValue, TfliteValue] | None = None,
        handles: Mapping[TfliteValue, VariableKey] | None = None,
        variables: Mapping[VariableKey, tuple[Shape, DType]] | None = None,
        missing: Iterable[TfliteValue] = (),
        known: Mapping[TfliteValue, TfliteTensor] | None = None,
        evaluates: bool = False,
        depth: int = 0,
    ) -> None:
        result = TfliteStage(builder=MLGraphBuilder(context), aliases=dict(aliases or {}), handles=dict(handles or {}))
        super().__init__(module, result, feeds or {}, missing, variables or {}, known or {})
        self._folds, self._depth = not evaluates, depth
        self._inlined = 0

    # one node -------------------------------------------------------------------------------------------------------

    def _waits(self, node: TfliteNode) -> bool:
        return super()._waits(node) or (bool(self.result.rest) and self._has_effects(node))

    def _has_effects(self, node: TfliteNode) -> bool:
        """Return whether a node reads or writes variables, which must happen in the order of the file."""
        found = handler(node.record.name, node.record.custom)
        handles = any(v is not None and v.record.type_name == "resource" for v in node.inputs)
        return handles or (found is not None and any(v is not None and v.variable for v in node.inputs))

    def _lower(self, node: TfliteNode) -> TfliteInline | None:
        found = handler(node.record.name, node.record.custom)
        custom = self.module.custom_operators.get(node.record.name) if node.record.custom else None
        if custom is not None:
            found = TfliteHandler(name=node.record.name, version=node.record.version, custom=True, lower=custom, folds=False)
        check_node(self.module, node, found)
        assert found is not None
        inputs = [None if v is None else self.tensor(v) for v in node.inputs]
        call = TfliteCall(self, node, inputs)
        for index, (least, most) in found.ranks.items():
            tensor = inputs[index] if index < len(inputs) else None
            if tensor is not None and not least <= tensor.rank <= most:
                call.fail(f"input {index} has rank {tensor.rank}; allowed: {least} to {most}")
        if found.host is not None and found.lower is None:
            raise OnHost("the device has no lowering of this operator")
        assert found.lower is not None
        if self._folds and found.folds and self._fold(call, found):
            return None
        if not found.empty and any(t is not None and not t.size for t in inputs):
            self._elide(call)
            return None
        try:
            result = found.lower(call)
        except MLTypeError as error:
            # An operand of a type, rank or size that WebNN's operator does not take.
            if found.host is None:
                call.fail(f"WebNN's operator does not take it: {error}")
            raise OnHost(str(error)) from error
        except OnHost as reason:
            if found.host is None and not self._is_control(node):
                call.fail(str(reason))
            raise
        if isinstance(result, Inline):
            self._inlined += len(result.nodes)
            if self._inlined > MOST_INLINED:
                call.fail(f"subgraphs add more than {MOST_INLINED} nodes to the graph")
            return result
        self._take(call, result)
        known = bool(node.outputs) and all(self._tensors[o].array is not None for o in node.outputs if o in self._tensors)
        self._place(node, "folded" if known else "device")
        return None

    def _is_control(self, node: TfliteNode) -> bool:
        return node.record.name in CONTROL and not node.record.custom

    def _take(self, call: TfliteCall, result: Result) -> None:
        results: list[MLOperand | TfliteTensor | None]
        results = list(result) if isinstance(result, (list, tuple)) else [result]  # pyright: ignore[reportAssignmentType]
        for i, output in enumerate(call.node.outputs):
            item = results[i] if i < len(results) else None
            if item is None:
                continue
            if isinstance(item, TfliteTensor):
                if item.array is not None or item.feed is not None or item.handle is not None:
                    item = replace(item, quantization=output.record.quantization, real=None, whole=None, name="")
                self._tensors[output] = item
            else:
                self._tensors[output] = call.typed(item, output.record)
            if self._tensors[output].size > MOST_COMPUTED:
                shape = list(self._tensors[output].shape)
                call.fail(f"a result of the shape {shape} has more than {MOST_COMPUTED} elements")

    # known values ---------------------------------------------------------------------------------------------------

    def _fold(self, call: TfliteCall, found: TfliteHandler) -> bool:
        """Evaluate a node whose inputs are known, if that is cheap."""
        node = call.node
        given = {v: t for v, t in zip(node.inputs, call.inputs, strict=True) if v is not None and t is not None}
        if not given or any(t.array is None for t in given.values()) or any(t.size == 0 for t in given.values()):
            return False
        sizes = [t.size for t in given.values()]
        if sum(sizes) > CHEAP or any(t.is_quantized for t in given.values()):
            return False
        if any(t.dtype.kind not in "iub" and t.size > FEW for t in given.values()):
            return False
        known = {self.resolve(v): TfliteTensor.known(t.array, t.quantization) for v, t in given.items() if t.array is not None}
        inner = TfliteLowering(self.module, self.module.reference, known=known, aliases=self.result.aliases, evaluates=True)
        try:
            arrays = inner.evaluated(node)
        except (OnHost, ValueNeeded, MLTypeError, NotSupportedError):
            return False
        if arrays is None:
            return False
        for output, array in zip(node.outputs, arrays, strict=True):
            self._tensors[output] = TfliteTensor.known(array, output.record.quantization)
        self._place(node, "folded")
        return True

    def _elide(self, call: TfliteCall) -> None:
        """Settle a node with inputs of no elements, if its outputs have none either.

        The sizes of the outputs follow from two lowerings with other sizes in place of 0.
        """
        shapes = [self._shapes(call, size) for size in (2, 3)]
        for output, two, three in zip(call.node.outputs, *shapes, strict=True):
            shape = tuple(a - 2 * (b - a) for a, b in zip(two, three, strict=True))
            dtype = output.record.dtype
            if 0 not in shape or min(shape) < 0 or dtype is None:
                call.fail(f"an input has no elements, but an output of the shape {list(shape)} has")
            self._tensors[output] = TfliteTensor.known(np.zeros(shape, dtype), output.record.quantization)
        self._place(call.node, "folded", "an input has no elements")

    def _shapes(self, call: TfliteCall, size: int) -> list[Shape]:
        """Return the shapes of a node's outputs with a size in place of 0."""
        known: dict[TfliteValue, TfliteTensor] = {}
        for value, tensor in zip(call.node.inputs, call.inputs, strict=True):
            if value is None or tensor is None:
                continue
            shape = tuple(d or size for d in tensor.shape)
            if math.prod(shape) > MOST_ELIDED:
                call.fail("an input has no elements")
            array = tensor.array if tensor.array is not None and tensor.size else np.zeros(shape, tensor.dtype)
            known[self.resolve(value)] = TfliteTensor.known(array, tensor.quantization)
        inner = TfliteLowering(self.module, self.module.reference, known=known, aliases=self.result.aliases, evaluates=True)
        try:
            if inner._lower(call.node) is not None:
                call.fail("an input has no elements")
        except (OnHost, ValueNeeded) as reason:
            raise self.module.refusal(call.node, "an input has no elements") from reason
        return [inner._tensors[o].shape for o in call.node.outputs]

    def evaluated(self, node: TfliteNode) -> list[Array] | None:
        """Return the outputs of a node with known inputs, on the reference. None if they have too many elements."""
        if self._lower(node) is not None or self._assigned:
            return None
        tensors = [self._tensors[o] for o in node.outputs]
        if any(t.size > CHEAP or (t.array is None and t.operand is None) for t in tensors):
            return None
        if any(t.array is None and t.dtype.kind not in "iub" and t.size > FEW for t in tensors):
            return None
        open_ = {f"{i}": t for i, t in enumerate(tensors) if t.array is None}
        results: Mapping[str, Array] = {}
        if open_:
            operands = {name: self.builder.identity(t.operand) for name, t in open_.items() if t.operand is not None}
            graph = self.builder.build(operands)
            results = self.module.reference.compute(graph, {})
        return [t.array if t.array is not None else decode(results[f"{i}"], t.dtype) for i, t in enumerate(tensors)]

    def known_result(self, graph: TfliteGraph, user: TfliteNode) -> Array | None:
        """Return the first output of a subgraph whose inputs are values of this lowering. None if it depends on a run."""
        known = {
            v: TfliteTensor.known(t.array, t.quantization)
            for v in (self.resolve(i) for i in user.inputs if i is not None)
            if (t := self._tensors.get(v)) is not None and t.array is not None and t.size
        }
        if self._depth >= DEEPEST:
            return None
        open_ = [self.resolve(v) for v in graph.inputs]
        inner = TfliteLowering(
            self.module,
            self.module.reference,
            known=known,
            aliases=self.result.aliases,
            missing=open_,
            depth=self._depth + 1,
        )
        wanted = graph.outputs[:1]
        try:
            found = inner.run(graph.nodes, wanted)
        except NotSupportedError:
            return None
        return found.known.get(inner.resolve(wanted[0])) if wanted else None

    def result_types(self, graph: TfliteGraph) -> list[tuple[Shape, DType]] | None:
        """Return the shapes and types of the outputs of a subgraph whose inputs are values of this lowering.

        None if the subgraph is not of operators of the device alone, without variables and without a dependence on elements.
        """
        if self._depth >= DEEPEST:
            return None
        given = {v: self.tensor(v) for v in dict.fromkeys(self.resolve(v) for v in graph.inputs)}
        if any(t.handle is not None or 0 in t.shape for t in given.values()):
            return None
        inner = TfliteLowering(
            self.module,
            self.module.reference,
            feeds={v: Feed(t.shape, t.dtype) for v, t in given.items() if t.array is None},
            known={v: TfliteTensor.known(t.array, t.quantization) for v, t in given.items() if t.array is not None},
            aliases=self.result.aliases,
            depth=self._depth + 1,
        )
        try:
            found = inner.run(graph.nodes, graph.outputs)
        except (NotSupportedError, ValueNeeded):
            return None
        if found.host or found.rest or found.reads or found.writes or found.handles:
            return None
        return [(t.shape, t.dtype) for t in map(inner.tensor, graph.outputs)]

    def demand(self, value: TfliteValue) -> Array:
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


CONTROL = frozenset({"IF", "WHILE", "STABLEHLO_CASE"})
"""Operators whose subgraphs the host may run one after the other."""
