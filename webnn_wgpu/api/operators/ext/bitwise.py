"""Extension operators on bits.

Generated from the operators' documentation by `python -m tests.generation`.
"""

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
            input: Any data type, with any shape.
            data_type: The output's data type, which must have as many bits as the input's.
            label: Name of the operator in errors, plans and debuggers.

        Returns:
            An operand of data type `data_type` with the input's shape.

        Raises:
            MLTypeError: The data type has another number of bits, or an operand belongs to another builder.
            InvalidStateError: The builder has built its graph, or its context is lost.

        Example:
            >>> b.ext.bitcast(x, "uint32")
            MLOperand(uint32[2, 3])
        """
        return self._output("x.bitcast", [input], {"data_type": data_type}, label)

    @with_options()
    def bitwise_and(self, a: MLOperand, b: MLOperand, *, label: str = "") -> MLOperand:
        """Bits that are set in both operands.

        Args:
            a: int32, uint32, int64, uint64, int8 or uint8, with any shape.
            b: The data type of `a`, with a shape that broadcasts with that of `a`.
            label: Name of the operator in errors, plans and debuggers.

        Returns:
            An operand of their data type with the broadcast shape.

        Raises:
            MLTypeError: The data types differ or are not allowed, the shapes do not broadcast, or an operand belongs to another
                builder.
            InvalidStateError: The builder has built its graph, or its context is lost.

        Example:
            >>> b.ext.bitwise_and(b.cast(x, "int32"), b.constant("int32", 7))
            MLOperand(int32[2, 3])
        """
        return self._output("x.bitwise_and", [a, b], {}, label)

    @with_options()
    def bitwise_not(self, input: MLOperand, *, label: str = "") -> MLOperand:
        """Every bit flipped: -1 - x for signed integers.

        Args:
            input: int32, uint32, int64, uint64, int8 or uint8, with any shape.
            label: Name of the operator in errors, plans and debuggers.

        Returns:
            An operand of the input's data type, with the shape of `input`.

        Raises:
            MLTypeError: The data type is not allowed, or an operand belongs to another builder.
            InvalidStateError: The builder has built its graph, or its context is lost.

        Example:
            >>> b.ext.bitwise_not(b.cast(x, "int32"))
            MLOperand(int32[2, 3])
        """
        return self._output("x.bitwise_not", [input], {}, label)

    @with_options()
    def bitwise_or(self, a: MLOperand, b: MLOperand, *, label: str = "") -> MLOperand:
        """Bits that are set in either operand.

        Args:
            a: int32, uint32, int64, uint64, int8 or uint8, with any shape.
            b: The data type of `a`, with a shape that broadcasts with that of `a`.
            label: Name of the operator in errors, plans and debuggers.

        Returns:
            An operand of their data type with the broadcast shape.

        Raises:
            MLTypeError: The data types differ or are not allowed, the shapes do not broadcast, or an operand belongs to another
                builder.
            InvalidStateError: The builder has built its graph, or its context is lost.

        Example:
            >>> b.ext.bitwise_or(b.cast(x, "int32"), b.constant("int32", 7))
            MLOperand(int32[2, 3])
        """
        return self._output("x.bitwise_or", [a, b], {}, label)

    @with_options()
    def bitwise_xor(self, a: MLOperand, b: MLOperand, *, label: str = "") -> MLOperand:
        """Bits that are set in one operand and not in the other.

        Args:
            a: int32, uint32, int64, uint64, int8 or uint8, with any shape.
            b: The data type of `a`, with a shape that broadcasts with that of `a`.
            label: Name of the operator in errors, plans and debuggers.

        Returns:
            An operand of their data type with the broadcast shape.

        Raises:
            MLTypeError: The data types differ or are not allowed, the shapes do not broadcast, or an operand belongs to another
                builder.
            InvalidStateError: The builder has built its graph, or its context is lost.

        Example:
            >>> b.ext.bitwise_xor(b.cast(x, "int32"), b.constant("int32", 7))
            MLOperand(int32[2, 3])
        """
        return self._output("x.bitwise_xor", [a, b], {}, label)

    @with_options()
    def shift_left(self, a: MLOperand, b: MLOperand, *, label: str = "") -> MLOperand:
        """Bits moved up, with zeros moved in below: a 2^b, which wraps around.

        Args:
            a: int32, uint32, int64, uint64, int8 or uint8, with any shape.
            b: The data type of `a`, with a shape that broadcasts with that of `a`.
            label: Name of the operator in errors, plans and debuggers.

        Returns:
            An operand of their data type with the broadcast shape.

        Raises:
            MLTypeError: The data types differ or are not allowed, the shapes do not broadcast, or an operand belongs to another
                builder.
            InvalidStateError: The builder has built its graph, or its context is lost.

        Numerics:
            Counts are read as unsigned, as in numpy. Counts of the element's width or more give 0.

        Example:
            >>> b.ext.shift_left(b.cast(x, "int32"), b.constant("int32", 3))
            MLOperand(int32[2, 3])
        """
        return self._output("x.shift_left", [a, b], {}, label)

    @with_options()
    def shift_right(self, a: MLOperand, b: MLOperand, *, label: str = "") -> MLOperand:
        """Bits moved down. Copies of the sign bit are moved into signed integers, zeros into unsigned ones.

        Args:
            a: int32, uint32, int64, uint64, int8 or uint8, with any shape.
            b: The data type of `a`, with a shape that broadcasts with that of `a`.
            label: Name of the operator in errors, plans and debuggers.

        Returns:
            An operand of their data type with the broadcast shape.

        Raises:
            MLTypeError: The data types differ or are not allowed, the shapes do not broadcast, or an operand belongs to another
                builder.
            InvalidStateError: The builder has built its graph, or its context is lost.

        Numerics:
            Counts are read as unsigned, as in numpy. Counts of the element's width or more give 0, or -1 for negative numbers.

        Example:
            >>> b.ext.shift_right(b.cast(x, "int32"), b.constant("int32", 3))
            MLOperand(int32[2, 3])
        """
        return self._output("x.shift_right", [a, b], {}, label)

    if TYPE_CHECKING:
        # camelCase names, which `__getattr__` finds at run time.
        bitwiseAnd = bitwise_and
        bitwiseNot = bitwise_not
        bitwiseOr = bitwise_or
        bitwiseXor = bitwise_xor
        shiftLeft = shift_left
        shiftRight = shift_right
