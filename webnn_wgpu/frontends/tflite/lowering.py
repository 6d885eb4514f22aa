"""Turns TFLite nodes into operators of a WebNN graph, as far as they can be: one stage of a program.

Every shape is known, since a graph is lowered for the shapes of actual inputs. Nodes whose inputs are known without a run are
evaluated at once by the reference, others become operators. A node may ask for the elements of a value (`TfliteCall.value`). If
the program was given them, the stage holds for these elements alone (a guard). Otherwise the node waits for a later stage,
before which the value is read back.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from webnn_wgpu import MLContext, MLGraphBuilder, MLOperand, MLTypeError, NotSupportedError
from webnn_wgpu.api.progress import READING, Progress

from ..common.calls import OnHost
from ..common.held import Array, DType
from ..description import Placed
from .call import TfliteCall
from .checking import check_node
from .module import DEEPEST, TfliteModule
from .operators import Inline, Result, TfliteHandler, handler
from .stage_operands import StageOperands
from .stages import Feed, Lowered
from .tensors import (
    Shape,
    TfliteGraph,
    TfliteNode,
    TfliteTensor,
    TfliteValue,
    ValueNeeded,
    VariableKey,
    decoded,
)

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


class TfliteLowering(StageOperands):
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
        result = Lowered(builder=MLGraphBuilder(context), aliases=dict(aliases or {}), handles=dict(handles or {}))
        super().__init__(module, result, variables or {}, known or {})
        self._feeds = dict(feeds or {})
        self._missing = set(missing)
        self._folds, self._depth = not evaluates, depth
        for value, feed in self._feeds.items():
            empty = np.zeros(feed.shape, feed.dtype) if 0 in feed.shape else None
            self._tensors[value] = TfliteTensor(
                shape=feed.shape, dtype=feed.dtype, array=empty, feed=value, quantization=value.record.quantization
            )
        for value, key in self.result.handles.items():
            self._tensors[value] = TfliteTensor(shape=(), dtype=np.dtype(np.int32), handle=key)

    # the walk -------------------------------------------------------------------------------------------------------

    def run(self, nodes: Iterable[TfliteNode], wanted: Sequence[TfliteValue], progress: Progress | None = None) -> Lowered:
        """Lower nodes, in the order of execution.

        Args:
            nodes: the nodes that are left of the program.
            wanted: the program's outputs.
            progress: called as `progress(done, total, READING)` with numbers of nodes.

        Raises:
            NotSupportedError: a node that neither device nor host can run, or, with `fallback="error"`, not the device.
            ValueNeeded: a node needs elements that the program will be given, but they are not known yet.
        """
        work = deque(nodes)
        needed: dict[TfliteValue, None] = {}
        done = inlined = 0
        while work:
            if progress is not None:
                progress(done, done + len(work), READING)
            done += 1
            node = work.popleft()
            if any(self._absent(v) for v in node.inputs if v is not None) or (self.result.rest and self._has_effects(node)):
                self._postpone(node)
                continue
            try:
                with self.module.at(node, "lowering"):
                    result = self._lower(node)
            except ValueNeeded as wait:
                if wait.value in self._feeds and self._feeds[wait.value].array is None:
                    raise
                self.module.refuse_host(node, "it needs the elements of a value that the device computes")
                needed[wait.value] = None
                self._postpone(node)
            except OnHost as reason:
                self._leave_to_host(node, str(reason))
            else:
                if result is not None:
                    inlined += len(result.nodes)
                    if inlined > MOST_INLINED:
                        raise self.module.refusal(node, f"subgraphs add more than {MOST_INLINED} nodes to the graph")
                    self.result.aliases.update(result.aliases)
                    self.result.aliases.update({a: b for a, b in zip(node.outputs, result.outputs, strict=False) if a is not b})
                    work.extendleft(reversed(result.nodes))
        self._collect(wanted, list(needed))
        return self.result

    def _has_effects(self, node: TfliteNode) -> bool:
        """Return whether a node reads or writes variables, which must happen in the order of the file."""
        found = handler(node.record.name, node.record.custom)
        handles = any(v is not None and v.record.type_name == "resource" for v in node.inputs)
        return handles or (found is not None and any(v is not None and v.variable for v in node.inputs))

    def _absent(self, value: TfliteValue) -> bool:
        value = self.resolve(value)
        return value not in self._tensors and not self.module.constants.has(value.record) and value.variable is None

    def _postpone(self, node: TfliteNode) -> None:
        self._missing.update(node.outputs)
        self.result.rest.append(node)

    def _leave_to_host(self, node: TfliteNode, reason: str) -> None:
        self.module.refuse_host(node, reason)
        self._missing.update(node.outputs)
        self.result.host.append(node)
        self._place(node, "host", reason)

    def _place(self, node: TfliteNode, where: str, note: str = "") -> None:
        self.result.placed.append(Placed(node.label, node.record.name, where, note))

    def _collect(self, wanted: Sequence[TfliteValue], needed: Sequence[TfliteValue]) -> None:
        """Make outputs of the values that the program returns, the host reads and later stages use."""
        ends = [*wanted, *needed]
        for node in (*self.result.host, *self.result.rest):
            ends.extend(v for v in node.inputs if v is not None)
        names = set[str]()
        for end in dict.fromkeys(self.resolve(v) for v in ends):
            tensor = self._tensors.get(end)
            if tensor is None:
                if self.module.constants.has(end.record):
                    continue
                if end.variable is not None:
                    self._output(end, self.tensor(end), names)
                elif end not in self._missing:
                    raise NotSupportedError(
                        f"{self.module.name}: no operator computes tensor {end.record.index} ('{end.name}')"
                    )
            elif tensor.handle is not None:
                self.result.handles[end] = tensor.handle
            elif tensor.array is not None:
                self.result.known[end] = tensor.array
            elif tensor.feed is None:
                self._output(end, tensor, names)
            elif tensor.feed is not end:
                self.result.aliases[end] = tensor.feed
        for key in self._assigned:
            tensor = self._current[key]
            operand = self.hold(tensor)
            name = self._name(f"variable {' '.join(key[1:])}", names)
            copy = self.builder.identity(operand) if operand in self._leaves or operand in self._ends() else operand
            self.result.writes[name] = (
                key,
                TfliteTensor(shape=tensor.shape, dtype=tensor.dtype, operand=copy, quantization=tensor.quantization),
            )

    def _ends(self) -> set[MLOperand]:
        return {t.operand for _, t in self.result.outputs.values() if t.operand is not None}

    def _output(self, end: TfliteValue, tensor: TfliteTensor, names: set[str]) -> None:
        operand = self.hold(tensor)
        if operand in self._leaves or operand in self._ends():
            operand = self.builder.identity(operand)
        result = TfliteTensor(shape=tensor.shape, dtype=tensor.dtype, operand=operand, quantization=tensor.quantization)
        self.result.outputs[self._name(end.name or "value", names)] = (end, result)

    def _name(self, name: str, names: set[str]) -> str:
        while name in names:
            name += "'"
        names.add(name)
        return name

    # one node -------------------------------------------------------------------------------------------------------

    def _lower(self, node: TfliteNode) -> Inline | None:
        """Lower a node: set its outputs' tensors, or return the nodes that replace it."""
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
                    item = TfliteTensor(
                        shape=item.shape,
                        dtype=item.dtype,
                        array=item.array,
                        operand=item.operand,
                        feed=item.feed,
                        handle=item.handle,
                        quantization=output.record.quantization,
                    )
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
        return [t.array if t.array is not None else decoded(results[f"{i}"], t.dtype) for i, t in enumerate(tensors)]

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
