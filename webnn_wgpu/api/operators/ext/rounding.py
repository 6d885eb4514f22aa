"""Extension operators: rounding to data types that WebNN does not have.

Generated from the operators' documentation by `python -m tests.generation`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from ...options import with_options
from .._base import OperatorMethods

if TYPE_CHECKING:
    from ...operand import MLOperand


class RoundingExtensions(OperatorMethods):
    """round_bfloat16, round_float8, wrap_integer."""

    @with_options()
    def round_bfloat16(self, input: MLOperand, *, label: str = "") -> MLOperand:
        """Each element rounded to bfloat16, and kept as float32.

        Args:
            input: float32, with any shape.
            label: Name of the operator in errors, plans and debuggers.

        Returns:
            An operand of the input's data type, with the shape of `input`.

        Raises:
            MLTypeError: The data type is not allowed, or an operand belongs to another builder.
            InvalidStateError: The builder has built its graph, or its context is lost.

        Numerics:
            The result is exact: halves go to even, numbers that are too large become infinity, and NaN stays NaN.

        Example:
            >>> b.ext.round_bfloat16(x)
            MLOperand(float32[2, 3])
        """
        return self._output("x.round_bfloat16", [input], {}, label)

    @with_options()
    def round_float8(
        self,
        input: MLOperand,
        *,
        format: Literal["e4m3fn", "e4m3fnuz", "e5m2", "e5m2fnuz"] = "e4m3fn",
        saturate: bool = True,
        label: str = "",
    ) -> MLOperand:
        """Each element rounded to an 8-bit floating-point format, and kept as float32.

        Args:
            input: float32, with any shape.
            format: "e4m3fn", "e4m3fnuz", "e5m2" or "e5m2fnuz", as ONNX names them.
            saturate: Whether numbers that are too large, infinity included, become the largest number. Otherwise they become
                infinity if the format has it, else NaN.
            label: Name of the operator in errors, plans and debuggers.

        Returns:
            An operand with the input's data type and shape.

        Raises:
            MLTypeError: The format is unknown, the data type is not allowed, or an operand belongs to another builder.
            InvalidStateError: The builder has built its graph, or its context is lost.

        Numerics:
            The result is exact: halves go to even, NaN stays NaN, and formats that end in `uz` have no negative zero.

        Example:
            >>> b.ext.round_float8(x, format="e5m2", saturate=False)
            MLOperand(float32[2, 3])
        """
        return self._output("x.round_float8", [input], {"format": format, "saturate": saturate}, label)

    @with_options()
    def wrap_integer(self, input: MLOperand, *, bits: int = 8, signed: bool = True, label: str = "") -> MLOperand:
        """The lowest bits of each element, read as an integer of that width and kept as int32.

        Args:
            input: int32, with any shape.
            bits: The width, 1 to 32.
            signed: Whether the highest of the bits is a sign.
            label: Name of the operator in errors, plans and debuggers.

        Returns:
            An operand with the input's data type and shape.

        Raises:
            MLTypeError: The width is out of range, the data type is not allowed, or an operand belongs to another builder.
            InvalidStateError: The builder has built its graph, or its context is lost.

        Example:
            >>> b.ext.wrap_integer(b.cast(x, "int32"), bits=16)
            MLOperand(int32[2, 3])
        """
        return self._output("x.wrap_integer", [input], {"bits": bits, "signed": signed}, label)

    if TYPE_CHECKING:
        # camelCase names, which `__getattr__` finds at run time.
        roundBfloat16 = round_bfloat16
        roundFloat8 = round_float8
        wrapInteger = wrap_integer
