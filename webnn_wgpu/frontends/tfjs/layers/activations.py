"""Activations by name, and layers that are activations."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

from webnn_wgpu import MLActivation, MLOperand

from ...common.calls import OperatorCall
from ..contents import fields
from ._call import LayerCall, layer

Activate = Callable[[OperatorCall, MLOperand], MLOperand]


def relu6(call: OperatorCall, x: MLOperand) -> MLOperand:
    """Return elements between 0 and 6."""
    return call.build.clamp(x, min_value=0.0, max_value=6.0)


def selu(call: OperatorCall, x: MLOperand) -> MLOperand:
    """Return the self-normalizing exponential linear unit. Source: G. Klambauer et al., 2017."""
    scale, alpha = 1.0507009873554805, 1.6732632423543772
    return call.build.mul(call.build.elu(x, alpha=alpha), call.like(scale, x))


def hard_sigmoid(call: OperatorCall, x: MLOperand) -> MLOperand:
    """Return Keras 2's piecewise linear sigmoid."""
    return call.build.hard_sigmoid(x, alpha=0.2, beta=0.5)


def gelu_new(call: OperatorCall, x: MLOperand) -> MLOperand:
    """Return the approximation of gelu by tanh."""
    b = call.build
    cube = b.mul(b.mul(x, b.mul(x, x)), call.like(0.044715, x))
    inner = b.tanh(b.mul(b.add(x, cube), call.like(math.sqrt(2 / math.pi), x)))
    return b.mul(b.mul(x, call.like(0.5, x)), b.add(inner, call.like(1.0, x)))


def mish(call: OperatorCall, x: MLOperand) -> MLOperand:
    """Return x * tanh(softplus(x))."""
    return call.build.mul(x, call.build.tanh(call.build.softplus(x)))


def swish(call: OperatorCall, x: MLOperand) -> MLOperand:
    """Return x * sigmoid(x)."""
    return call.build.mul(x, call.build.sigmoid(x))


ACTIVATIONS: Mapping[str, Activate] = {
    "elu": lambda call, x: call.build.elu(x),
    "selu": selu,
    "relu": lambda call, x: call.build.relu(x),
    "relu6": relu6,
    "linear": lambda call, x: x,
    "sigmoid": lambda call, x: call.build.sigmoid(x),
    "hard_sigmoid": hard_sigmoid,
    "softplus": lambda call, x: call.build.softplus(x),
    "softsign": lambda call, x: call.build.softsign(x),
    "tanh": lambda call, x: call.build.tanh(x),
    "softmax": lambda call, x: call.build.softmax(x, len(x.shape) - 1),
    "log_softmax": lambda call, x: call.build.ext.log_softmax(x, len(x.shape) - 1),
    "swish": swish,
    "silu": swish,
    "mish": mish,
    "gelu": lambda call, x: call.build.gelu(x),
    "gelu_new": gelu_new,
    "exponential": lambda call, x: call.build.exp(x),
}
"""The activations by the names of Keras."""

_OTHER_NAMES = {"hardSigmoid": "hard_sigmoid", "logSoftmax": "log_softmax"}


def activation_name(call: LayerCall, entry: str = "activation", default: str = "linear") -> str:
    """Return the name of an activation in the configuration."""
    value: Any = call.config.get(entry)
    given: Any = fields(value).get("class_name") if isinstance(value, dict) else value
    name = default if given is None else str(given)
    name = _OTHER_NAMES.get(name, name)
    return name if name in ACTIVATIONS else call.fail(f"{entry} is {given!r}; allowed: {', '.join(ACTIVATIONS)}")


def activated(call: LayerCall, x: MLOperand, entry: str = "activation", default: str = "linear") -> MLOperand:
    """Return an operand with the activation of the configuration."""
    return ACTIVATIONS[activation_name(call, entry, default)](call, x)


def recurrent_activation(call: LayerCall, name: str) -> MLActivation | None:
    """Return an activation for the operators of recurrent networks, or None if they have none like it."""
    b = call.build
    makers: Mapping[str, Callable[[], Any]] = {
        "relu": b.relu,
        "sigmoid": b.sigmoid,
        "tanh": b.tanh,
        "hard_sigmoid": lambda: b.hard_sigmoid(alpha=0.2, beta=0.5),
        "elu": b.elu,
        "softplus": b.softplus,
        "softsign": b.softsign,
        "linear": lambda: b.linear(alpha=1.0, beta=0.0),
    }
    return makers[name]() if name in makers else None


@layer("Activation", masks=True)
def activation(call: LayerCall) -> MLOperand:
    """An activation by name."""
    return activated(call, call.x)


@layer("ReLU", masks=True)
def relu(call: LayerCall) -> MLOperand:
    """Negative elements become 0, and large ones a maximum."""
    if call.config.get("max_value") is None:
        return call.build.relu(call.x)
    return call.build.clamp(call.x, min_value=0.0, max_value=call.number("max_value"))


@layer("LeakyReLU")
def leaky_relu(call: LayerCall) -> MLOperand:
    """Negative elements are scaled down."""
    return call.build.leaky_relu(call.x, alpha=call.number("alpha", 0.3))


@layer("PReLU", masks=True)
def prelu(call: LayerCall) -> MLOperand:
    """Negative elements are scaled by a weight."""
    return call.build.prelu(call.x, call.weight("alpha"))


@layer("ELU")
def elu(call: LayerCall) -> MLOperand:
    """The exponential linear unit."""
    if call.number("alpha", 1.0) != 1:
        call.fail(f"alpha {call.number('alpha')}, of which TensorFlow.js takes 1 only")
    return call.build.elu(call.x)


@layer("ThresholdedReLU")
def thresholded_relu(call: LayerCall) -> MLOperand:
    """Elements up to a threshold become 0."""
    above = call.build.greater(call.x, call.like(call.number("theta", 1.0), call.x))
    return call.build.mul(call.x, call.cast(above, "float32"))


@layer("Softmax")
def softmax(call: LayerCall) -> MLOperand:
    """Softmax over an axis."""
    axis = call.axes_of(call.config.get("axis", -1), len(call.x.shape))
    if len(axis) != 1:
        call.fail(f"axes {axis}, of which there must be one")
    x = call.x
    if call.mask is not None and len(call.mask.shape) == len(x.shape):
        # Steps that do not count get no share.
        away = call.build.sub(call.like(1.0, x), call.cast(call.mask, "float32"))
        x = call.build.add(x, call.build.mul(away, call.like(-1e9, x)))
    return call.build.softmax(x, axis[0])
