"""Operators that give the same memory another shape, and the helpers squeeze, unsqueeze and flatten over reshape."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from ...ops._attrs import Attr
from ...ops._def import Call, Operand, Signature
from ..options import with_options
from ._base import OperatorMethods, require_operands

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ...ir.types import TensorType
    from ..operand import MLOperand
    from .dictionaries import MLOperatorOptions


RESHAPE = "#api-mlgraphbuilder-reshape-method"


def _infer_squeeze(call: Call) -> tuple[TensorType, ...]:
    x, axes = call.input(), call.attrs["axes"]
    axes = [i for i, d in enumerate(x.shape) if d == 1] if axes is None else call.axes(axes, x.rank)
    for axis in axes:
        call.require(x.shape[axis] == 1, "dimensions to squeeze must have size 1", got=f"axis {axis} of input {x}")
    return (call.output(x.data_type, [d for i, d in enumerate(x.shape) if i not in axes]),)


def _infer_unsqueeze(call: Call) -> tuple[TensorType, ...]:
    x, axes = call.input(), call.attrs["axes"]
    rank = x.rank + len(axes)
    call.axes(axes, rank)
    sizes = iter(x.shape)
    return (call.output(x.data_type, [1 if i in axes else next(sizes) for i in range(rank)]),)


def _infer_flatten(call: Call) -> tuple[TensorType, ...]:
    x = call.input()
    axis = call.axis(call.attrs["axis"], x.rank + 1)
    return (call.output(x.data_type, [math.prod(x.shape[:axis]), math.prod(x.shape[axis:])]),)


# The helpers are checked as operators are, but are none: what they add to the graph is a reshape.
_INPUT = (Operand("input"),)
SQUEEZE = Signature("squeeze", _INPUT, _infer_squeeze, attrs=(Attr("axes", "uints", None),), spec=RESHAPE)
UNSQUEEZE = Signature("unsqueeze", _INPUT, _infer_unsqueeze, attrs=(Attr("axes", "uints"),), spec=RESHAPE)
FLATTEN = Signature("flatten", _INPUT, _infer_flatten, attrs=(Attr("axis", "uint", 1),), spec=RESHAPE)


class ViewOperators(OperatorMethods):
    """flatten, identity, reshape, squeeze, unsqueeze. They cost nothing at run time."""

    @with_options()
    def identity(self, input: MLOperand, options: MLOperatorOptions = {}, *, label: str = "") -> MLOperand:
        """The input itself, as an operator's output: inputs and constants can be built as graph outputs only so.

        Args:
            input: Any data type and shape.
            options: The options below as one dictionary.
            label: The operator's name in messages.

        Returns:
            An operand of the input's data type and shape.

        Raises:
            MLTypeError: An operand of another builder.

        Example:
            >>> b.identity(x).shape
            (2, 3)

        Spec: https://www.w3.org/TR/webnn/#api-mlgraphbuilder-unary
        """
        return self._output("identity", [input], label=label)

    @with_options()
    def reshape(
        self, input: MLOperand, new_shape: Sequence[int], options: MLOperatorOptions = {}, *, label: str = ""
    ) -> MLOperand:
        """The same elements in the same row-major order, in another shape.

        Args:
            input: Any data type and shape.
            new_shape: The output's shape, with as many elements; [] makes a scalar of one element.
            options: The options below as one dictionary.
            label: The operator's name in messages.

        Returns:
            An operand of the input's data type and shape `new_shape`.

        Raises:
            MLTypeError: Another number of elements, a size of 0, or an operand of another builder.

        Example:
            >>> b.reshape(x, [3, 2]).shape
            (3, 2)

        Spec: https://www.w3.org/TR/webnn/#api-mlgraphbuilder-reshape-method
        """
        return self._output("reshape", [input], {"new_shape": new_shape}, label)

    @with_options()
    def squeeze(self, input: MLOperand, axes: Sequence[int] | None = None, *, label: str = "") -> MLOperand:
        """Remove dimensions of size 1: a helper over `reshape`.

        Args:
            input: Any data type and shape.
            axes: The dimensions to remove, each of size 1; all of size 1 where absent.
            label: The operator's name in messages.

        Returns:
            An operand of the input's data type.

        Raises:
            MLTypeError: An axis that is no dimension of the input, stands twice, or has another size than 1; an operand
                of another builder.

        Example:
            >>> b.squeeze(b.reshape(x, [1, 2, 1, 3])).shape
            (2, 3)

        Spec: https://www.w3.org/TR/webnn/#api-mlgraphbuilder-reshape-method
        """
        return self._reshaped(SQUEEZE, input, {"axes": axes}, label)

    @with_options()
    def unsqueeze(self, input: MLOperand, axes: Sequence[int], *, label: str = "") -> MLOperand:
        """Insert dimensions of size 1: a helper over `reshape`.

        Args:
            input: Any data type and shape.
            axes: The dimensions of the output that are new.
            label: The operator's name in messages.

        Returns:
            An operand of the input's data type, its rank greater by the number of axes.

        Raises:
            MLTypeError: An axis that is no dimension of the output or stands twice, or an operand of another builder.

        Example:
            >>> b.unsqueeze(x, [0, 3]).shape
            (1, 2, 3, 1)

        Spec: https://www.w3.org/TR/webnn/#api-mlgraphbuilder-reshape-method
        """
        return self._reshaped(UNSQUEEZE, input, {"axes": axes}, label)

    @with_options()
    def flatten(self, input: MLOperand, axis: int = 1, *, label: str = "") -> MLOperand:
        """Join the dimensions before `axis` into one and the others into a second: a helper over `reshape`.

        Args:
            input: Any data type and shape.
            axis: First dimension of the second group, 0 to rank(input).
            label: The operator's name in messages.

        Returns:
            An operand of the input's data type and rank 2.

        Raises:
            MLTypeError: An axis above the rank, or an operand of another builder.

        Example:
            >>> b.flatten(b.reshape(x, [1, 2, 3])).shape
            (1, 6)

        Spec: https://www.w3.org/TR/webnn/#api-mlgraphbuilder-reshape-method
        """
        return self._reshaped(FLATTEN, input, {"axis": axis}, label)

    def _reshaped(self, helper: Signature, input: MLOperand, attrs: Mapping[str, Any], label: str) -> MLOperand:
        require_operands(helper, [input], label)
        self._require_own(helper, [input], label)
        (output,), _ = helper.check([input.type], attrs, label)
        return self._output("reshape", [input], {"new_shape": output.shape}, label)
