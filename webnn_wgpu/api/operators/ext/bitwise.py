"""Extension operators on bits."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...options import with_options
from .._base import OperatorMethods

if TYPE_CHECKING:
    from ...operand import MLOperand
    from ...types import OperandDataType


class BitwiseExtensions(OperatorMethods):
    """bitcast, bitwise_and, bitwise_not, bitwise_or, bitwise_xor, shift_left, shift_right."""

    @with_options()
    def bitcast(self, input: MLOperand, data_type: OperandDataType, *, label: str = "") -> MLOperand:
        """The same bits, read as another data type. It costs nothing.

        Args:
            input: Any data type and shape.
            data_type: The output's data type, of as many bits as the input's.
            label: The operator's name in messages.

        Returns:
            An operand of data type `data_type` and the input's shape.

        Raises:
            MLTypeError: A data type of another number of bits, or an operand of another builder.

        Example:
            >>> b.ext.bitcast(x, "uint32")
            MLOperand(uint32[2, 3])
        """
        return self._output("x.bitcast", [input], {"data_type": data_type}, label=label)

    @with_options()
    def bitwise_and(self, a: MLOperand, b: MLOperand, *, label: str = "") -> MLOperand:
        """Bits that are set in both operands.

        Args:
            a: int64, uint64, int32, uint32, int8 or uint8; any shape.
            b: The same data type; any shape that broadcasts with `a`.
            label: The operator's name in messages.

        Returns:
            An operand of the operands' data type and the broadcast shape.

        Raises:
            MLTypeError: A data type that is not allowed, operands of different data types, shapes that do not broadcast, or an
                operand of another builder.

        Example:
            >>> b.ext.bitwise_and(b.cast(x, "int32"), b.constant("int32", 7))
            MLOperand(int32[2, 3])
        """
        return self._output("x.bitwise_and", [a, b], label=label)

    @with_options()
    def bitwise_not(self, input: MLOperand, *, label: str = "") -> MLOperand:
        """Every bit flipped: -1 - x for signed integers.

        Args:
            input: int64, uint64, int32, uint32, int8 or uint8; any shape.
            label: The operator's name in messages.

        Returns:
            An operand of the input's data type and shape.

        Raises:
            MLTypeError: A data type that is not allowed, or an operand of another builder.

        Example:
            >>> b.ext.bitwise_not(b.cast(x, "int32"))
            MLOperand(int32[2, 3])
        """
        return self._output("x.bitwise_not", [input], label=label)

    @with_options()
    def bitwise_or(self, a: MLOperand, b: MLOperand, *, label: str = "") -> MLOperand:
        """Bits that are set in either operand.

        Args:
            a: int64, uint64, int32, uint32, int8 or uint8; any shape.
            b: The same data type; any shape that broadcasts with `a`.
            label: The operator's name in messages.

        Returns:
            An operand of the operands' data type and the broadcast shape.

        Raises:
            MLTypeError: A data type that is not allowed, operands of different data types, shapes that do not broadcast, or an
                operand of another builder.

        Example:
            >>> b.ext.bitwise_or(b.cast(x, "int32"), b.constant("int32", 7))
            MLOperand(int32[2, 3])
        """
        return self._output("x.bitwise_or", [a, b], label=label)

    @with_options()
    def bitwise_xor(self, a: MLOperand, b: MLOperand, *, label: str = "") -> MLOperand:
        """Bits that are set in one operand and not in the other.

        Args:
            a: int64, uint64, int32, uint32, int8 or uint8; any shape.
            b: The same data type; any shape that broadcasts with `a`.
            label: The operator's name in messages.

        Returns:
            An operand of the operands' data type and the broadcast shape.

        Raises:
            MLTypeError: A data type that is not allowed, operands of different data types, shapes that do not broadcast, or an
                operand of another builder.

        Example:
            >>> b.ext.bitwise_xor(b.cast(x, "int32"), b.constant("int32", 7))
            MLOperand(int32[2, 3])
        """
        return self._output("x.bitwise_xor", [a, b], label=label)

    @with_options()
    def shift_left(self, a: MLOperand, b: MLOperand, *, label: str = "") -> MLOperand:
        """Bits moved up, zeros moved in below: a 2^b, wrapping.

        Args:
            a: int64, uint64, int32, uint32, int8 or uint8; any shape.
            b: How far, of the same data type; any shape that broadcasts with `a`.
            label: The operator's name in messages.

        Returns:
            An operand of the operands' data type and the broadcast shape.

        Raises:
            MLTypeError: A data type that is not allowed, operands of different data types, shapes that do not broadcast, or an
                operand of another builder.

        Numerics: As numpy has it: counts are read as unsigned, and those of the element's width or more give 0.

        Example:
            >>> b.ext.shift_left(b.cast(x, "int32"), b.constant("int32", 3))
            MLOperand(int32[2, 3])
        """
        return self._output("x.shift_left", [a, b], label=label)

    @with_options()
    def shift_right(self, a: MLOperand, b: MLOperand, *, label: str = "") -> MLOperand:
        """Bits moved down; copies of the sign bit are moved into signed integers, zeros into unsigned ones.

        Args:
            a: int64, uint64, int32, uint32, int8 or uint8; any shape.
            b: How far, of the same data type; any shape that broadcasts with `a`.
            label: The operator's name in messages.

        Returns:
            An operand of the operands' data type and the broadcast shape.

        Raises:
            MLTypeError: A data type that is not allowed, operands of different data types, shapes that do not broadcast, or an
                operand of another builder.

        Numerics: As numpy has it: counts are read as unsigned, and those of the element's width or more give 0, or -1 for
        negative numbers.

        Example:
            >>> b.ext.shift_right(b.cast(x, "int32"), b.constant("int32", 3))
            MLOperand(int32[2, 3])
        """
        return self._output("x.shift_right", [a, b], label=label)

    if TYPE_CHECKING:
        # camelCase names, which `__getattr__` finds at run time.
        bitwiseAnd = bitwise_and
        bitwiseNot = bitwise_not
        bitwiseOr = bitwise_or
        bitwiseXor = bitwise_xor
        shiftLeft = shift_left
        shiftRight = shift_right
