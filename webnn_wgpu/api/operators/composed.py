"""Methods that are not operators. Each adds other operators, and makes checks under its own name."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal

from ...core.data_types import ANY, FLOATS
from ...ops import operator
from ...ops._attrs import Attr
from ...ops._def import OpCall, Operand, Signature
from ...ops.pool2d import LAYOUTS
from ..options import with_options
from ._base import OperatorMethods, require_operands

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ...ir.types import TensorType
    from ..operand import MLOperand

RESHAPE = operator("reshape").spec


def _infer_squeeze(call: OpCall) -> tuple[TensorType, ...]:
    x, axes = call.input(), call.attrs["axes"]
    axes = [i for i, d in enumerate(x.shape) if d == 1] if axes is None else call.axes(axes, x.rank)
    for axis in axes:
        call.require(x.shape[axis] == 1, "dimensions to squeeze must have size 1", got=f"axis {axis} of input {x}")
    return (call.output(x.data_type, [d for i, d in enumerate(x.shape) if i not in axes]),)


def _infer_unsqueeze(call: OpCall) -> tuple[TensorType, ...]:
    x, axes = call.input(), call.attrs["axes"]
    rank = x.rank + len(axes)
    call.axes(axes, rank)
    sizes = iter(x.shape)
    return (call.output(x.data_type, [1 if i in axes else next(sizes) for i in range(rank)]),)


def _infer_flatten(call: OpCall) -> tuple[TensorType, ...]:
    x = call.input()
    axis = call.axis(call.attrs["axis"], x.rank + 1)
    return (call.output(x.data_type, [math.prod(x.shape[:axis]), math.prod(x.shape[axis:])]),)


# The methods are checked as operators are. They add a reshape to the graph.
_INPUT = (Operand(name="input"),)
SQUEEZE = Signature(name="squeeze", operands=_INPUT, infer=_infer_squeeze, attrs=(Attr("axes", "uints", None),), spec=RESHAPE)
UNSQUEEZE = Signature(name="unsqueeze", operands=_INPUT, infer=_infer_unsqueeze, attrs=(Attr("axes", "uints"),), spec=RESHAPE)
FLATTEN = Signature(name="flatten", operands=_INPUT, infer=_infer_flatten, attrs=(Attr("axis", "uint", 1),), spec=RESHAPE)


def _helper(name: str, data_types: tuple[str, ...]) -> Signature:
    return Signature(
        name=name,
        operands=(Operand(name="input", data_types=data_types, min_rank=4, max_rank=4),),
        infer=lambda call: (call.input(),),
        attrs=(Attr("layout", "enum", "nchw", LAYOUTS),),
        spec="#api-mlgraphbuilder-pool2d",
        rank_phrase="Global pooling input must be 4D",
    )


# The methods are checked as operators are. They add a pooling without options to the graph.
_GLOBAL = {
    "averagePool2d": _helper("globalAveragePool", FLOATS),
    "l2Pool2d": _helper("globalL2Pool", FLOATS),
    "maxPool2d": _helper("globalMaxPool", ANY),
}


class ComposedOperators(OperatorMethods):
    """flatten, global_average_pool, global_l2_pool, global_max_pool, squeeze, unsqueeze, where_."""

    @with_options()
    def flatten(self, input: MLOperand, axis: int = 1, *, label: str = "") -> MLOperand:
        """Join the dimensions before `axis` into one and the others into a second, with `reshape`.

        Args:
            input: Any data type, with any shape.
            axis: First dimension of the second group, 0 to rank(input).
            label: Name of the operator in errors, plans and debuggers.

        Returns:
            An operand with the input's data type and rank 2.

        Raises:
            MLTypeError: The axis is above the rank, or an operand belongs to another builder.
            InvalidStateError: The builder has built its graph, or its context is lost.

        Example:
            >>> b.flatten(b.reshape(x, [1, 2, 3])).shape
            (1, 6)

        Spec: https://www.w3.org/TR/webnn/#api-mlgraphbuilder-reshape-method
        """
        return self._reshaped(FLATTEN, input, {"axis": axis}, label)

    @with_options()
    def squeeze(self, input: MLOperand, axes: Sequence[int] | None = None, *, label: str = "") -> MLOperand:
        """Remove dimensions of size 1, with `reshape`.

        Args:
            input: Any data type, with any shape.
            axes: The dimensions to remove, each of size 1. The default is all dimensions of size 1.
            label: Name of the operator in errors, plans and debuggers.

        Returns:
            An operand with the input's data type.

        Raises:
            MLTypeError: An axis is not a dimension of the input, is repeated or does not have size 1, or an operand belongs to
                another builder.
            InvalidStateError: The builder has built its graph, or its context is lost.

        Example:
            >>> b.squeeze(b.reshape(x, [1, 2, 1, 3])).shape
            (2, 3)

        Spec: https://www.w3.org/TR/webnn/#api-mlgraphbuilder-reshape-method
        """
        return self._reshaped(SQUEEZE, input, {"axes": axes}, label)

    @with_options()
    def unsqueeze(self, input: MLOperand, axes: Sequence[int], *, label: str = "") -> MLOperand:
        """Insert dimensions of size 1, with `reshape`.

        Args:
            input: Any data type, with any shape.
            axes: The new dimensions, as dimensions of the output.
            label: Name of the operator in errors, plans and debuggers.

        Returns:
            An operand with the input's data type. Its rank is the input's plus the number of axes.

        Raises:
            MLTypeError: An axis is not a dimension of the output or is repeated, or an operand belongs to another builder.
            InvalidStateError: The builder has built its graph, or its context is lost.

        Example:
            >>> b.unsqueeze(x, [0, 3]).shape
            (1, 2, 3, 1)

        Spec: https://www.w3.org/TR/webnn/#api-mlgraphbuilder-reshape-method
        """
        return self._reshaped(UNSQUEEZE, input, {"axes": axes}, label)

    def _reshaped(self, helper: Signature, input: MLOperand, attrs: Mapping[str, Any], label: str) -> MLOperand:
        require_operands(helper, [input], label)
        self._require_own(helper, [input], label)
        (output,), _ = helper.check([input.type], attrs, label)
        return self._output("reshape", [input], {"new_shape": output.shape}, label)

    @with_options(positions=("layout",))
    def global_average_pool(self, input: MLOperand, *, layout: Literal["nchw", "nhwc"] = "nchw", label: str = "") -> MLOperand:
        """Mean over height and width, with `average_pool2d`.

        Args:
            input: float32 or float16, with rank 4 in the order of `layout`.
            layout: "nchw" or "nhwc", of input and output.
            label: Name of the operator in errors, plans and debuggers.

        Returns:
            An operand with the input's data type and layout. Its height and width are 1.

        Raises:
            MLTypeError: The rank is not 4, the layout is unknown, the data type is not allowed, or an operand belongs to
                another builder.
            InvalidStateError: The builder has built its graph, or its context is lost.

        Example:
            >>> b.global_average_pool(image).shape
            (1, 2, 1, 1)

        Spec: https://www.w3.org/TR/webnn/#api-mlgraphbuilder-pool2d
        """
        return self._global("averagePool2d", input, layout, label)

    @with_options()
    def global_l2_pool(self, input: MLOperand, *, layout: Literal["nchw", "nhwc"] = "nchw", label: str = "") -> MLOperand:
        """Square root of the sum of squares over height and width, with `l2_pool2d`.

        Args:
            input: float32 or float16, with rank 4 in the order of `layout`.
            layout: "nchw" or "nhwc", of input and output.
            label: Name of the operator in errors, plans and debuggers.

        Returns:
            An operand with the input's data type and layout. Its height and width are 1.

        Raises:
            MLTypeError: The rank is not 4, the layout is unknown, the data type is not allowed, or an operand belongs to
                another builder.
            InvalidStateError: The builder has built its graph, or its context is lost.

        Example:
            >>> b.global_l2_pool(image).shape
            (1, 2, 1, 1)

        Spec: https://www.w3.org/TR/webnn/#api-mlgraphbuilder-pool2d
        """
        return self._global("l2Pool2d", input, layout, label)

    @with_options(positions=("layout",))
    def global_max_pool(self, input: MLOperand, *, layout: Literal["nchw", "nhwc"] = "nchw", label: str = "") -> MLOperand:
        """Greatest element over height and width, with `max_pool2d`.

        Args:
            input: Any data type, with rank 4 in the order of `layout`.
            layout: "nchw" or "nhwc", of input and output.
            label: Name of the operator in errors, plans and debuggers.

        Returns:
            An operand with the input's data type and layout. Its height and width are 1.

        Raises:
            MLTypeError: The rank is not 4, the layout is unknown, the data type is not allowed, or an operand belongs to
                another builder.
            InvalidStateError: The builder has built its graph, or its context is lost.

        Example:
            >>> b.global_max_pool(image).shape
            (1, 2, 1, 1)

        Spec: https://www.w3.org/TR/webnn/#api-mlgraphbuilder-pool2d
        """
        return self._global("maxPool2d", input, layout, label)

    def _global(self, name: str, input: MLOperand, layout: str, label: str) -> MLOperand:
        helper = _GLOBAL[name]
        require_operands(helper, [input], label)
        self._require_own(helper, [input], label)
        helper.check([input.type], {"layout": layout}, label)
        return self._output(name, [input], {"layout": layout}, label)

    @with_options()
    def where_(self, condition: MLOperand, true_value: MLOperand, false_value: MLOperand, *, label: str = "") -> MLOperand:
        """`true_value` where a condition of any data type is not 0, else `false_value`. It is not in the specification.

        Args:
            condition: Any data type, with any shape.
            true_value: Any data type, with any shape.
            false_value: The data type of `true_value`, with any shape.
            label: Name of the operators in errors, plans and debuggers.

        Returns:
            An operand with the values' data type and the broadcast shape.

        Raises:
            MLTypeError: The values have different data types, the shapes do not broadcast, or an operand belongs to another
                builder.
            InvalidStateError: The builder has built its graph, or its context is lost.

        Numerics:
            256, 0.5 and NaN are true, -0.0 is false.

        Example:
            >>> b.where_(x, x, y).shape
            (2, 3)

        Spec: https://www.w3.org/TR/webnn/#api-mlgraphbuilder-where
        """
        operands = [condition, true_value, false_value]
        op = operator("where")
        require_operands(op, operands, label)
        self._require_own(op, operands, label)
        if condition.data_type != "uint8":
            # Checked before the first operator is added, so that a failed call does not change the graph.
            op.check([condition.type.with_data_type("uint8"), true_value.type, false_value.type], {}, label)
            # Every number except 0 differs from its difference with itself, and NaN differs from everything.
            zero = self._output("sub", [condition, condition], label=label)
            condition = self._output("notEqual", [condition, zero], label=label)
        return self._output("where", [condition, true_value, false_value], label=label)

    if TYPE_CHECKING:
        # camelCase names, which `__getattr__` finds at run time.
        globalAveragePool = global_average_pool
        globalL2Pool = global_l2_pool
        globalMaxPool = global_max_pool
