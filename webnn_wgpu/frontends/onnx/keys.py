"""The analysis of values with a row for each cached key. It ensures that rows which are not filled never count.

Caches have more rows than are filled, and so have the values computed from them. Elements computed from unfilled rows are
meaningless and must not mix with the others. Element-wise operators keep them apart. Two operators sum over keys: softmax,
which gets the number of filled rows and returns 0 for the rest, and matrix products with the results of softmax.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import onnx_ir

from .caches import ATTENTION, Cache
from .module import OnnxModule
from .probes import Probes

ELEMENTWISE = frozenset((
    *("Abs", "Add", "And", "Cast", "Clip", "Div", "Dropout", "Equal", "Exp", "Greater", "GreaterOrEqual", "Identity", "IsNaN"),
    *("Less", "LessOrEqual", "Max", "Min", "Mul", "Neg", "Not", "Or", "Pow", "Sqrt", "Sub", "Tanh", "Where"),
))  # fmt: skip
MOVES = frozenset(("Concat", "Expand", "Reshape", "Slice", "Split", "Squeeze", "Transpose", "Unsqueeze"))
KEEPS_ZEROS = frozenset(("Cast", "Dropout", "Identity", "Mul", *MOVES)) - {"Concat"}
"""Operators that return 0 for elements 0, for all values of the other operands."""


class Keys:
    """The values that depend on cached keys and values.

    Args:
        module: the model.
        caches: its caches.
        probes: its shapes.

    Attributes:
        values: the values that depend on the caches' elements.
        bounded: the nodes that need the number of keys.
    """

    def __init__(self, module: OnnxModule, caches: Sequence[Cache], probes: Probes) -> None:
        self._module, self._probes = module, probes
        self._pasts = {c.past for c in caches}
        self._updates = {c.present.producer() for c in caches}
        present, axis = caches[0].present, caches[0].axis
        self._rows = tuple(p[present].shape[axis] for p in (probes.few, probes.full))
        self._weights: set[onnx_ir.Value] = set()
        """The values that are 0 for unfilled keys."""
        self.values = set(self._pasts)
        self.bounded: set[onnx_ir.Node] = set()

    def follow(self, node: onnx_ir.Node, uses: Sequence[onnx_ir.Value], outputs: Sequence[onnx_ir.Value]) -> None:
        """Record the results of a node that reads such values.

        Raises:
            NotSupportedError: the node may mix filled rows with others.
        """
        given = [v for v in uses if v in self.values and self._probes.grows(v)]
        self.values.update(outputs)
        if node in self._updates or (given and (node.domain, node.op_type) in ATTENTION):
            self.bounded.update((node,) if (node.domain, node.op_type) in ATTENTION else ())
            return
        if self._pasts.intersection(uses):
            raise self._refusal(node, "it reads a cache that new rows are yet to be put into")
        if not given:
            return
        match node.op_type if not node.domain else "":
            case "Softmax":
                self._softmax(node, given[0])
            case "MatMul":
                if self._sums(node) and not self._weights.intersection(node.inputs):
                    raise self._refusal(node, "its sums are over all keys that there is room for")
            case op if op in ELEMENTWISE or op in MOVES:
                if self._keeps_zeros(node):
                    self._weights.update(outputs)
                if not all(self._has_all(o) for o in outputs):
                    raise self._refusal(node, "it takes a part of the keys")
                if op == "Slice" and self._turns(node):
                    raise self._refusal(node, "it turns the order of the keys round")
                if op == "Reshape" and len({self._before(v) for v in (given[0], *outputs)}) > 1:
                    raise self._refusal(node, "it takes keys out of their order")
            case _:
                raise self._refusal(node, "it is not known to keep keys apart")

    def _softmax(self, node: onnx_ir.Node, given: onnx_ir.Value) -> None:
        last, grown = len(self._probes.full[given].shape) - 1, self._probes.growing_axes(given)
        matrices = self._module.version(node) < 13
        axis = node.attributes["axis"].as_int() if "axis" in node.attributes else 1 if matrices else -1
        axis = axis % (last + 1)
        if grown != [last] or (matrices and axis != last):
            raise self._refusal(node, "keys are not in the last dimension")
        if axis == last:
            self.bounded.add(node)
            self._weights.update(node.outputs)

    def _keeps_zeros(self, node: onnx_ir.Node) -> bool:
        """Return whether a node's results are 0 for unfilled keys."""
        first, *others = node.inputs
        if node.op_type == "Div":
            return first in self._weights
        if node.op_type == "Where":
            arrays = [None if v is None else self._probes.full[v].array for v in others]
            zeros = [array is not None and not array.any() for array in arrays]
            return all(zero or v in self._weights for zero, v in zip(zeros, others, strict=True))
        return node.op_type in KEEPS_ZEROS and not self._weights.isdisjoint(node.inputs)

    def _sums(self, node: onnx_ir.Node) -> bool:
        """Whether a matrix product sums over keys."""
        left, right = node.inputs
        assert left is not None
        assert right is not None
        inner = ((left, -1), (right, max(-2, -len(self._probes.full[right].shape))))
        return any(len(self._probes.full[v].shape) + i in self._probes.growing_axes(v) for v, i in inner)

    def _has_all(self, value: onnx_ir.Value) -> bool:
        """Whether a value has a row for each key."""
        few, full = self._probes.few[value].shape, self._probes.full[value].shape
        return [(few[i], full[i]) for i in self._probes.growing_axes(value)] == [self._rows]

    def _turns(self, node: onnx_ir.Node) -> bool:
        """Whether a slice runs backwards along any dimension, or may."""
        steps = node.inputs[4] if len(node.inputs) > 4 else None
        array = None if steps is None else self._probes.full[steps].array
        return steps is not None and (array is None or bool((array < 0).any()))

    def _before(self, value: onnx_ir.Value) -> int:
        """Return the product of the sizes before a value's first growing dimension."""
        return math.prod(self._probes.full[value].shape[: self._probes.growing_axes(value)[0]])

    def _refusal(self, node: onnx_ir.Node, reason: str) -> Exception:
        return self._module.refusal(node, f"{reason}; the model's caches cannot stay on the device")
