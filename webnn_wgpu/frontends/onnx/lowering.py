"""Turns ONNX nodes into operators of a WebNN graph, as far as they can be: one stage of a program.

Every shape is known, since a graph is lowered for the shapes of actual inputs. Values that are known without a run
(initializers, shapes and values computed from them) are evaluated at once. The other nodes become operators. A node may ask for
the elements of a value (`Call.value`). If they follow from the program's inputs, they are computed, and the stage holds for
these elements alone (a guard). Otherwise the node waits for a later stage, before which the value is read back.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np
import onnx_ir

from webnn_wgpu import MLContext, MLGraphBuilder, MLOperand, MLTypeError, NotSupportedError

from ..common.calls import OnHost
from ..common.lowering import StageLowering
from ..common.stages import Feed, Inline, Lowered, ValueNeeded, resolve
from . import host
from .caches import InPlace
from .call import NodeCall
from .module import OnnxModule
from .operators import Handler, OnnxInline, Result, handler
from .rounding import rounded
from .tensors import OnnxTensor
from .types import BOOL, FLOAT32, HELD, INT64, Array

MOST_DEMANDED = 1 << 16
"""Most elements of a value that is computed on the host because an operator asks for its elements."""
DEEPEST_DEMAND = 200
"""Longest chain of operators that is."""
CHEAP = 4096
"""Results of as many elements at most are computed on the host where all inputs are known."""
_PLAIN = frozenset({None, FLOAT32, INT64, np.dtype(np.int32), BOOL})
"""The types of the inputs of most nodes, with None for inputs left out."""


OnnxStage = Lowered[onnx_ir.Value, onnx_ir.Node]


class Evaluator:
    """Computes values on the host from a program's inputs, following their producers."""

    def __init__(
        self, module: OnnxModule, aliases: Mapping[onnx_ir.Value, onnx_ir.Value], known: dict[onnx_ir.Value, Array]
    ) -> None:
        self._module, self._aliases, self._known = module, aliases, known

    def __call__(self, value: onnx_ir.Value, depth: int = 0) -> Array:
        """Return a value's elements.

        Raises:
            ValueNeeded: few and small operators do not compute them from the inputs.
        """
        value = resolve(value, self._aliases)
        if value in self._known:
            return self._known[value]
        if value.const_value is not None:
            return self._module.initializer(value)
        node = value.producer()
        if node is None or depth > DEEPEST_DEMAND or node.op_type in host.CONTROL | host.RANDOM:
            raise ValueNeeded(value)
        arrays = [None if i is None else self(i, depth + 1) for i in node.inputs]
        if any(a is not None and a.size > MOST_DEMANDED for a in arrays) or host.expected_size(node, arrays) > MOST_DEMANDED:
            raise ValueNeeded(value)
        try:
            results = host.evaluate(node, arrays, self._module.version(node))
        except OnHost:
            raise ValueNeeded(value) from None
        self._known.update(zip(node.outputs, results, strict=True))
        return self._known[value]


class OnnxLowering(StageLowering[OnnxModule, onnx_ir.Value, onnx_ir.Node, OnnxTensor, OnnxStage]):
    """Lowers the nodes of one stage. `run` does it. The rest is for `NodeCall`.

    Args:
        module: the model that the nodes belong to.
        context: where the graph will run.
        feeds: the inputs at run time.
        aliases: values that stand for others, from earlier stages.
        missing: values that nodes read but that are not given. Such nodes are left for later stages.
        known: values that are known besides.
        in_place: caches that stay on the device.
    """

    def __init__(
        self,
        module: OnnxModule,
        context: MLContext,
        feeds: Mapping[onnx_ir.Value, Feed],
        aliases: Mapping[onnx_ir.Value, onnx_ir.Value],
        missing: Iterable[onnx_ir.Value] = (),
        *,
        known: Mapping[onnx_ir.Value, Array] | None = None,
        in_place: InPlace | None = None,
    ) -> None:
        arrays = known or {}
        result = OnnxStage(builder=MLGraphBuilder(context), aliases=dict(aliases))
        super().__init__(module, result, feeds, missing, {v: OnnxTensor.known(a) for v, a in arrays.items()})
        self.in_place = in_place
        given = {v: feed.array for v, feed in feeds.items() if feed.array is not None}
        self._evaluator = Evaluator(module, self.result.aliases, {**given, **arrays})

    def _fed(self, value: onnx_ir.Value, feed: Feed) -> OnnxTensor:
        empty = np.zeros(feed.shape, feed.dtype) if 0 in feed.shape else None
        return OnnxTensor(shape=feed.shape, dtype=feed.dtype, array=empty, feed=value)

    def _known(self, value: onnx_ir.Value, array: Array) -> OnnxTensor:
        del value
        return OnnxTensor.known(array)

    # one node -----------------------------------------------------------------------------------------------------

    def _waits(self, node: onnx_ir.Node) -> bool:
        # The branches of a condition replace their node, and may wait by themselves.
        return any(self._absent(v) for v in self.module.uses(node, inner=node.op_type != "If"))

    def tensor(self, value: onnx_ir.Value) -> OnnxTensor:
        """Return the tensor of a value."""
        value = self.resolve(value)
        if value not in self._tensors:
            self._tensors[value] = OnnxTensor.known(self.module.initializer(value), value.name or "")
        return self._tensors[value]

    def found(self, value: onnx_ir.Value) -> OnnxTensor | None:
        """Return the tensor of a value, if anything has made it."""
        return None if self._absent(value) else self.tensor(value)

    def _lower(self, node: onnx_ir.Node) -> OnnxInline | None:
        if node.op_type in host.RANDOM and not node.domain:
            raise OnHost("its results are random")
        version = self.module.version(node)
        inputs = [None if i is None else self.tensor(i) for i in node.inputs]
        call = NodeCall(self, node, inputs, version)
        chosen = handler(node.domain, node.op_type, version)
        if node.op_type not in host.CONTROL and (chosen is None or chosen.folds) and self._fold(node, inputs, version, chosen):
            return None
        if chosen is None:
            body = self.module.body(node, inputs, version)
            if body is None:
                raise OnHost("no lowering for this operator")
            return body
        if fault := chosen.fault(inputs):
            call.fail(fault)
        if not chosen.empty and any(t is not None and not t.size for t in inputs):
            self._elide(node, inputs, version)
            return None
        try:
            result = chosen.lower(call)
        except OnHost:
            if all(t is None or t.array is not None for t in inputs) and node.op_type not in host.CONTROL:
                self._evaluate(node, inputs, version)
                return None
            raise
        except MLTypeError as error:
            if not self.module.fits(node, inputs, version):
                call.fail(str(error))
            # An operand of a type or rank that WebNN's operator does not take.
            raise OnHost(str(error)) from error
        if isinstance(result, Inline):
            return result
        self._take(call, chosen, result)
        known = all(o not in self._tensors or self._tensors[o].array is not None for o in node.outputs)
        self._place(node, "folded" if known else "device")
        return None

    def _take(self, call: NodeCall, chosen: Handler, result: Result) -> None:
        results = list(result) if isinstance(result, (list, tuple)) else [result]
        for i, output in enumerate(call.node.outputs):
            item = results[i] if i < len(results) else None
            if item is None:
                if output.name and (output.uses() or output.is_graph_output()):
                    raise OnHost(f"output {i} ('{output.name}') cannot be computed on the device")
                continue
            self._tensors[output] = item if isinstance(item, OnnxTensor) else self._typed(call, chosen, i, item)  # pyright: ignore[reportArgumentType]

    def _typed(self, call: NodeCall, chosen: Handler, index: int, operand: MLOperand) -> OnnxTensor:
        """Give an operator's result the type that ONNX's schema asks for."""
        given = [None if t is None else t.dtype for t in call.inputs]
        if operand.data_type == HELD[FLOAT32] and FLOAT32 in given and _PLAIN.issuperset(given):
            # Nothing else that is held as float32 comes of these. ONNX takes a while to set its schemas up.
            return OnnxTensor(shape=tuple(operand.shape), dtype=FLOAT32, operand=operand)
        dtype = self.module.output_dtype(call.node, index, given, call.version)
        if dtype is None:
            first = next(t for t in call.inputs if t is not None)
            dtype = first.dtype
        operand = call.cast(operand, HELD[dtype])
        if not chosen.moves:
            operand = rounded(call, operand, dtype)
        return OnnxTensor(shape=tuple(operand.shape), dtype=dtype, operand=operand)

    # what is known ------------------------------------------------------------------------------------------------

    def _fold(self, node: onnx_ir.Node, inputs: Sequence[OnnxTensor | None], version: int, chosen: Handler | None) -> bool:
        """Evaluate a node whose inputs are known, unless the device is the better place."""
        arrays = [None if t is None else t.array for t in inputs]
        if any(a is None and t is not None for a, t in zip(arrays, inputs, strict=True)):
            return False
        if chosen is not None:
            expected = host.expected_size(node, arrays)
            if expected > host.MOST_FOLDED:
                return False
            whole = all(a is None or a.dtype.kind in "iub" or a.size <= CHEAP for a in arrays)
            if not whole and not chosen.moves:
                return False
        try:
            self._evaluate(node, inputs, version)
        except OnHost:
            return False
        return True

    def _evaluate(self, node: onnx_ir.Node, inputs: Sequence[OnnxTensor | None], version: int) -> None:
        results = host.evaluate(node, [None if t is None else t.array for t in inputs], version)
        for output, result in zip(node.outputs, results, strict=True):
            if output.name:
                if result.dtype not in HELD:
                    raise OnHost(f"its results are {result.dtype}, which no tensor holds")
                self._tensors[output] = OnnxTensor.known(result)
        self._place(node, "folded")

    def _elide(self, node: onnx_ir.Node, inputs: Sequence[OnnxTensor | None], version: int) -> None:
        """Settle a node with inputs of no elements: its results are known unless they depend on the other inputs."""
        if any(t is not None and t.array is None and t.size > MOST_DEMANDED for t in inputs):
            raise OnHost("an input has no elements")
        fillings: list[list[Array]] = []
        for filling in (np.zeros, np.ones):
            arrays = [None if t is None else filling(t.shape, t.dtype) if t.array is None else t.array for t in inputs]
            fillings.append(host.evaluate(node, arrays, version))
        for first, second in zip(*fillings, strict=True):
            if not np.array_equal(first, second, equal_nan=first.dtype.kind == "f"):
                raise OnHost("an input has no elements")
        for output, array in zip(node.outputs, fillings[0], strict=True):
            self._tensors[output] = OnnxTensor.known(array)
        self._place(node, "folded", "an input has no elements")

    def demand(self, value: onnx_ir.Value | None) -> Array:
        """Return a value's elements, for which the stage is then compiled."""
        assert value is not None
        value = self.resolve(value)
        tensor = self.tensor(value)
        if tensor.array is None:
            tensor.array = np.array(self._evaluator(tensor.feed or value))  # a copy: the caller may change what he fed
            self.result.guards[tensor.feed or value] = tensor.array
        return tensor.array

    def refusal(self, node: onnx_ir.Node, reason: str) -> NotSupportedError:
        """Return the error that names a node, its operator and the reason why it cannot run."""
        return self.module.refusal(node, reason)
