"""The base of the operator methods: the methods that a builder implements, and the check that operands are operands."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from ...core.errors import MLTypeError, quoted
from ...ops import Signature, operator
from ..activation import MLActivation, make_activation
from ..operand import MLOperand

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from .dictionaries import MLOperatorOptions


class OperatorMethods(ABC):
    """Base of the classes that hold the operator methods."""

    @abstractmethod
    def _require_own(self, op: Signature, operands: Sequence[MLOperand | None], label: str) -> None:
        """Raise unless the builder can still build and the operands are its own.

        Methods made of several operators, or of one under another name, call it first, so that errors name the method.

        Raises:
            InvalidStateError: The builder can no longer build.
            MLTypeError: An operand belongs to another builder.
        """

    @abstractmethod
    def _operator(
        self, name: str, operands: Sequence[MLOperand | None], attrs: Mapping[str, Any], label: str
    ) -> list[MLOperand]:
        """Check a call, add the operator to the graph and return its outputs.

        Args:
            name: The specification's name, such as "argMax".
            operands: In the order of the definition, None for an optional one that is absent.
            attrs: Arguments and options as given. None means absent.
            label: The operator's name in messages.

        Raises:
            InvalidStateError: The builder can no longer build.
            MLTypeError: A rule of the operator is broken, or an operand belongs to another builder.
        """

    def _outputs(
        self, name: str, operands: Sequence[MLOperand | None], attrs: Mapping[str, Any] | None, label: str
    ) -> list[MLOperand]:
        """Add an operator and return all its outputs."""
        require_operands(operator(name), operands, label)
        return self._operator(name, operands, attrs or {}, label)

    def _output(
        self,
        name: str,
        operands: Sequence[MLOperand | None],
        attrs: Mapping[str, Any] | None = None,
        label: str = "",
    ) -> MLOperand:
        """Add an operator and return its only output."""
        (output,) = self._outputs(name, operands, attrs, label)
        return output

    def _activate(
        self, name: str, input: MLOperand | MLOperatorOptions | None, options: Mapping[str, Any], label: str
    ) -> MLOperand | MLActivation:
        """Add an activation operator, or return an activation that adds it later if there is no operand.

        Args:
            name: The specification's name.
            input: The operand or None. A dictionary of options in its place has become `options` before.
            options: The options as given.
            label: The operator's name in messages.
        """
        if input is None:
            return make_activation(self, name, options, label)
        return self._output(name, [cast("MLOperand", input)], options, label)


def require_operands(op: Signature, operands: Sequence[object], label: str) -> None:
    """Raise MLTypeError unless all are operands. Optional ones may be None."""
    for i, (name, given) in enumerate(zip(op.operand_names(len(operands)), operands, strict=True)):
        optional = not op.variadic and not op.operands[i].required
        if not (isinstance(given, MLOperand) or (given is None and optional)):
            raise _not_an_operand(op, name, given, operands, label)


def _not_an_operand(op: Signature, name: str, given: object, operands: Sequence[object], label: str) -> MLTypeError:
    hint = ""
    if isinstance(given, int | float | np.number):
        data_type = next((str(o.data_type) for o in operands if isinstance(o, MLOperand)), "float32")
        hint = f"Make a number an operand with builder.constant({data_type!r}, {quoted(given)})"  # pyright: ignore[reportUnknownArgumentType] - numpy's number is generic
    elif isinstance(given, np.ndarray | list | tuple):
        hint = "Make an array an operand with builder.constant(array)"
    return MLTypeError(
        f"{name} must be an operand",
        operator=op.python_name,
        label=label,
        got=f"{quoted(given, 80)} ({type(given).__name__})",  # pyright: ignore[reportUnknownArgumentType] - likewise
        allowed="MLOperand",
        hint=hint,
        spec=op.spec,
    )
