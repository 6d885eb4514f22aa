"""Activations of recurrent operators, and the cells made of other operators where an activation needs a whole gate at once."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from ...core.errors import MLTypeError, quoted
from ...ops._attrs import list_items
from ...ops._cells import ACTIVATIONS, ACTIVATIONS_ATTR, NAMED
from ..activation import MLActivation, require_activation

if TYPE_CHECKING:
    from ...ops import OpDef
    from ..operand import MLOperand
    from ._base import OperatorMethods

Activations: TypeAlias = Iterable[Literal["relu", "sigmoid", "tanh"] | MLActivation]
"""Names among relu, sigmoid and tanh, or activations from the builder's methods, as in the 2024 text. They may be mixed."""

_Linear: TypeAlias = "Callable[[MLOperand, MLOperand | None, MLOperand | None, str], MLOperand]"

_KINDS = {op.python_name: op.name for op in ACTIVATIONS.values()}


def listed_activations(
    builder: OperatorMethods, op: OpDef, activations: Activations | None, label: str
) -> list[str | MLActivation] | None:
    """Return activations as a list, or None if they are absent.

    Raises:
        MLTypeError: They are no list, or an item is neither a name nor an activation that the operator can apply.
    """
    if activations is None:
        return None
    fail = partial(MLTypeError, operator=op.python_name, label=label, spec=op.spec)
    items = list_items(ACTIVATIONS_ATTR, activations, "activations", fail)
    for item in items:
        if isinstance(item, MLActivation):
            if item.builder is not builder:
                raise fail("activations must belong to the builder they are used with", got=quoted(item))
            require_activation(item, builder, op.python_name, op.operands[0].max_rank, label)
        elif not isinstance(item, str) or item not in NAMED:
            got = quoted(item) if isinstance(item, str) else f"{quoted(item)} ({type(item).__name__})"
            raise fail("Invalid activations", got=got, allowed=f"{', '.join(NAMED)}, or an MLActivation")
    return items


def definition_form(activation: str | MLActivation) -> str | tuple[str, Mapping[str, Any]]:
    """Return an activation as the operators' definitions have them.

    Softmax, which they do not have, is given as sigmoid: all else about a call can be checked with it.
    """
    if isinstance(activation, str):
        return activation
    return ("sigmoid", {}) if activation.kind == "softmax" else (_KINDS[activation.kind], activation.options)


def cell_by_operators(
    builder: OperatorMethods,
    name: str,
    operands: Mapping[str, MLOperand | None],
    attrs: Mapping[str, Any],
    activations: Sequence[str | MLActivation],
    label: str,
) -> list[MLOperand]:
    """Add gruCell or lstmCell as gemm, slice and element-wise operators. The call has been checked.

    Args:
        builder: The builder.
        name: "gruCell" or "lstmCell".
        operands: By name.
        attrs: Canonical attributes.
        activations: As they were given.
        label: The cell's label, which all operators get.
    """
    hidden: int = attrs["hidden_size"]

    def part(vector: MLOperand | None, index: int) -> MLOperand | None:
        if vector is None:
            return None
        return builder._output("slice", [vector], {"starts": [index * hidden], "sizes": [hidden]}, label)

    def linear(x: MLOperand, weight: MLOperand | None, bias: MLOperand | None, gate: str) -> MLOperand:
        assert weight is not None
        index = attrs["layout"].index(gate)
        starts, sizes = [index * hidden, 0], [hidden, weight.shape[1]]
        rows = builder._output("slice", [weight], {"starts": starts, "sizes": sizes}, label)
        return builder._output("gemm", [x, rows, part(bias, index)], {"b_transpose": True}, label)

    def apply(index: int, x: MLOperand) -> MLOperand:
        activation = activations[index]
        return builder._output(activation, [x], label=label) if isinstance(activation, str) else activation.apply(x)

    def binary(op: str, a: MLOperand, b: MLOperand) -> MLOperand:
        return builder._output(op, [a, b], label=label)

    x, h, weight, recurrent_weight = (operands[n] for n in ("input", "hiddenState", "weight", "recurrentWeight"))
    bias, recurrent_bias = operands["bias"], operands["recurrentBias"]
    assert x is not None
    assert h is not None

    def sums(gate: str) -> MLOperand:
        return binary("add", linear(x, weight, bias, gate), linear(h, recurrent_weight, recurrent_bias, gate))

    if name == "gruCell":
        z, r = apply(0, sums("z")), apply(0, sums("r"))
        if attrs["reset_after"]:
            inner = binary("mul", r, linear(h, recurrent_weight, recurrent_bias, "n"))
        else:
            inner = linear(binary("mul", r, h), recurrent_weight, recurrent_bias, "n")
        n = apply(1, binary("add", linear(x, weight, bias, "n"), inner))
        rest = builder._output("linear", [z], {"alpha": -1.0, "beta": 1.0}, label)
        return [binary("add", binary("mul", z, h), binary("mul", rest, n))]
    c, peepholes = operands["cellState"], operands["peepholeWeight"]
    assert c is not None

    def gate(letter: str, index: int) -> MLOperand:
        peephole = part(peepholes, index)
        total = sums(letter)
        return apply(0, total if peephole is None else binary("add", total, binary("mul", peephole, c)))

    i, o, f = (gate(letter, index) for index, letter in enumerate("iof"))
    new = binary("add", binary("mul", f, c), binary("mul", i, apply(1, sums("g"))))
    return [binary("mul", o, apply(2, new)), new]
