"""The forms of operators with methods that do more than pass on their arguments."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import islice
from typing import Any, cast

from ...core.errors import MLTypeError, quoted
from ...ir.types import TensorType
from ...ops import operator
from ...ops._attrs import Attr
from ...ops.strided import MAX_PARTS
from ..activation import MLActivation, require_activation
from ..operand import MLOperand
from ._base import OperatorMethods, require_operands
from ._cells import Activations, cell_by_operators, definition_form, listed_activations
from .dictionaries import MLHardSigmoidOptions, MLOperatorOptions

# The method hard_swish takes hard_sigmoid's options, unlike the specification's. They are checked under its own name.
_HARD_SWISH = replace(operator("hardSwish"), attrs=operator("hardSigmoid").attrs)
_HARD_SWISH_NUMBERS = {"alpha": 1 / 6, "beta": 0.5}


class OperatorForms(OperatorMethods):
    """The base of the classes with such methods."""

    # several operators -------------------------------------------------------------------------------------------------

    def _activated(
        self,
        name: str,
        operands: Sequence[MLOperand | None],
        attrs: Mapping[str, Any],
        activation: MLActivation | None,
        label: str,
    ) -> MLOperand:
        """Add an operator, and an activation of its result if one is given."""
        op = operator(name)
        require_operands(op, operands, label)
        if activation is not None:
            assert operands[0] is not None
            require_activation(activation, self, op.python_name, operands[0].rank, label)
        output = self._output(name, operands, attrs, label)
        return output if activation is None else activation.apply(output)

    def _hard_swish(
        self, input: MLOperand | MLHardSigmoidOptions | None, alpha: float, beta: float, label: str
    ) -> MLOperand | MLActivation:
        """Add hardSwish, or hardSigmoid and a product for other numbers than hardSwish's own."""
        # A dictionary in place of the operand has become alpha and beta.
        operand = cast("MLOperand | None", input)
        if operand is not None:
            require_operands(_HARD_SWISH, [operand], label)
            self._require_own(_HARD_SWISH, [operand], label)
        checked = TensorType("float32", ()) if operand is None else operand.type
        _, numbers = _HARD_SWISH.check([checked], {"alpha": alpha, "beta": beta}, label)
        if numbers == _HARD_SWISH_NUMBERS:
            return self._activate("hardSwish", operand, {}, label)
        if operand is None:
            return MLActivation(self, "hard_swish", numbers, label)
        gate = self._output("hardSigmoid", [operand], numbers, label)
        return self._output("mul", [operand, gate], label=label)

    def _recurrent(
        self,
        name: str,
        operands: Sequence[MLOperand | None],
        attrs: Mapping[str, Any],
        activations: Activations | None,
        label: str,
    ) -> list[MLOperand]:
        """Add a network or a cell. A cell with an activation that is not element-wise is composed of other operators."""
        op = operator(name)
        require_operands(op, operands, label)
        given = listed_activations(self, op, activations, label)
        attrs = {**attrs, "activations": None if given is None else [definition_form(a) for a in given]}
        by_operators = any(isinstance(a, MLActivation) and a.kind == "softmax" for a in given or ())
        if given is None or not by_operators:
            return self._outputs(name, operands, attrs, label)
        self._require_own(op, operands, label)
        # Checked before the first operator is added, so that a failed call does not change the graph.
        _, canonical = op.check([None if o is None else o.type for o in operands], attrs, label)
        named = {declared.name: o for declared, o in zip(op.operands, operands, strict=True)}
        return cell_by_operators(self, name, named, canonical, given, label)

    def _recurrent_cell(
        self,
        name: str,
        operands: Sequence[MLOperand | None],
        attrs: Mapping[str, Any],
        activations: Activations | None,
        label: str,
    ) -> MLOperand:
        """Add a cell with one result."""
        (output,) = self._recurrent(name, operands, attrs, activations, label)
        return output

    # other arguments ---------------------------------------------------------------------------------------------------

    def _pad(
        self,
        input: MLOperand,
        beginning_padding: Sequence[int],
        ending_padding: Sequence[int] | str | None,
        mode: str,
        value: float,
        label: str,
    ) -> MLOperand:
        """Add pad, also in pywebnn's forms: with both ends in one list, or with the mode in place of the second end."""
        if isinstance(ending_padding, str):
            mode, ending_padding = ending_padding, None
        if ending_padding is None:
            beginning_padding, ending_padding = self._split_padding(input, beginning_padding, label)
        attrs = {"beginning_padding": beginning_padding, "ending_padding": ending_padding, "mode": mode, "value": value}
        return self._output("pad", [input], attrs, label)

    def _split_padding(self, input: MLOperand, padding: Sequence[int], label: str) -> tuple[Sequence[int], Sequence[int]]:
        op = operator("pad")
        require_operands(op, [input], label)
        rank = input.rank
        fail = partial(MLTypeError, operator=op.python_name, label=label, spec=op.spec)
        items: tuple[int, ...] = Attr("padding", "uints").convert(padding, fail)
        if len(items) != 2 * rank:
            raise fail(
                "without ending_padding, padding must hold all beginnings and then all ends",
                got=f"{quoted(padding)}, input {input.type}",
                allowed=f"{2 * rank} items",
            )
        return items[:rank], items[rank:]

    def _softmax(self, input: MLOperand | MLOperatorOptions | None, axis: int | None, label: str) -> MLOperand | MLActivation:
        """Add softmax. As an activation it has no axis."""
        op = operator("softmax")
        if input is None and axis is not None:
            raise MLTypeError(
                "an activation has no axis: it is applied to the last dimension of a 2-D result",
                operator=op.python_name,
                label=label,
                got=f"axis={axis}",
                spec=op.spec,
            )
        return self._activate(op.name, input, {"axis": axis}, label)

    def _variadic(self, name: str, operands: Iterable[MLOperand], attrs: Mapping[str, Any], label: str) -> MLOperand:
        """Add an operator of a list of operands."""
        op = operator(name)
        try:
            # One more than the maximum is enough to detect too many operands, also of an endless iterable.
            given = list(islice(iter(operands), MAX_PARTS + 1))
        except TypeError:
            raise MLTypeError(
                f"{op.operands[0].name} must be a list of operands",
                operator=op.python_name,
                label=label,
                got=f"{quoted(operands)} ({type(operands).__name__})",
                allowed="a sequence of MLOperand",
                spec=op.spec,
            ) from None
        return self._output(name, given, attrs, label)
