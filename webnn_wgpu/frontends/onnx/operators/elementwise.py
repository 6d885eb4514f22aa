"""Element-wise arithmetic, comparisons, logic and activations."""

from __future__ import annotations

from collections.abc import Callable

from webnn_wgpu import MLOperand

from ..call import Call
from ._registry import Result, lowers

UNARY = {
    "Abs": "abs",
    "Ceil": "ceil",
    "Cos": "cos",
    "Erf": "erf",
    "Exp": "exp",
    "Floor": "floor",
    "Log": "log",
    "Neg": "neg",
    "Reciprocal": "reciprocal",
    "Relu": "relu",
    "Round": "round_even",
    "Sigmoid": "sigmoid",
    "Sign": "sign",
    "Sin": "sin",
    "Softplus": "softplus",
    "Softsign": "softsign",
    "Sqrt": "sqrt",
    "Tan": "tan",
    "Tanh": "tanh",
    "Not": "logical_not",
    "IsNaN": "is_nan",
}
BINARY = {
    "Add": "add",
    "Sub": "sub",
    "Mul": "mul",
    "Div": "div",
    "Equal": "equal",
    "Greater": "greater",
    "GreaterOrEqual": "greater_or_equal",
    "Less": "lesser",
    "LessOrEqual": "lesser_or_equal",
    "And": "logical_and",
    "Or": "logical_or",
    "Xor": "logical_xor",
}


def _unary(method: str) -> Callable[[Call], Result]:
    def lower(call: Call) -> Result:
        return getattr(call.build, method)(call.operand(0))

    return lower


def _binary(method: str) -> Callable[[Call], Result]:
    def lower(call: Call) -> Result:
        return getattr(call.build, method)(*old_broadcast(call))

    return lower


def old_broadcast(call: Call) -> tuple[MLOperand, MLOperand]:
    """Return two operands; before version 7 the second one is aligned at an axis."""
    a, b = call.operand(0), call.operand(1)
    if call.version < 7 and call.attribute("axis") is not None:
        axis = call.axis(call.attribute("axis"), len(a.shape))
        b = call.reshape(b, [*b.shape, *[1] * (len(a.shape) - axis - len(b.shape))])
    return a, b


for _name, _method in UNARY.items():
    lowers(_name)(_unary(_method))
for _name, _method in BINARY.items():
    lowers(_name)(_binary(_method))


@lowers("Where")
def where(call: Call) -> Result:
    """Elements of the second input where the first is true, of the third elsewhere."""
    return call.build.where(call.operand(0), call.operand(1), call.operand(2))
