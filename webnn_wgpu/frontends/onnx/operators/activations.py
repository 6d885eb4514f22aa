"""Activation functions and clipping."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import ml_dtypes
import numpy as np

from webnn_wgpu import MLOperand

from ..call import NodeCall
from ..types import BOOL, HELD, DType, is_float
from ._registry import Result, lowers
from .elementwise import unsigned


def wide(function: Callable[[NodeCall, MLOperand], MLOperand]) -> Callable[[NodeCall], Result]:
    """Compute a function of the first input in float32, also for float16, and round once."""

    def lower(call: NodeCall) -> Result:
        x = call.operand(0)
        return call.cast(function(call, call.cast(x, "float32")), x.data_type)

    return lower


def _plain(name: str, **defaults: float) -> Callable[[NodeCall], Result]:
    """Lower to an operator of WebNN. `defaults` are the options that are attributes of ONNX, with ONNX's defaults."""

    def lower(call: NodeCall) -> Result:
        options = {option: call.attribute(option, default) for option, default in defaults.items()}
        return getattr(call.build, name)(call.operand(0), **options)

    return lower


lowers("Sigmoid")(_plain("sigmoid"))
lowers("Softplus")(_plain("softplus"))
lowers("Softsign")(_plain("softsign"))
lowers("HardSwish")(_plain("hard_swish"))
lowers("Elu")(_plain("elu", alpha=1.0))
lowers("HardSigmoid")(_plain("hard_sigmoid", alpha=0.2, beta=0.5))
lowers("LeakyRelu")(_plain("leaky_relu", alpha=0.01))


@lowers("Relu")
def relu(call: NodeCall) -> Result:
    """The larger of the input and 0."""
    return call.build.relu(call.operand(0))


@lowers("PRelu")
def prelu(call: NodeCall) -> Result:
    """The input, multiplied by a slope where it is negative."""
    return call.tensor(0) if unsigned(call.tensor(0)) else call.build.prelu(call.operand(0), call.operand(1))


@lowers("Selu")
@wide
def selu(call: NodeCall, x: MLOperand) -> MLOperand:
    """An elu, multiplied by gamma."""
    alpha, gamma = call.attribute("alpha", 1.67326319217681884765625), call.attribute("gamma", 1.05070102214813232421875)
    return call.build.mul(call.build.elu(x, alpha=alpha), call.like(gamma, x))


@lowers("Celu")
@wide
def celu(call: NodeCall, x: MLOperand) -> MLOperand:
    """The sum of max(x, 0) and min(0, alpha (exp(x / alpha) - 1))."""
    alpha, zero = call.attribute("alpha", 1.0), call.like(0, x)
    curve = call.build.mul(call.build.elu(call.build.div(x, call.like(alpha, x))), call.like(alpha, x))
    return call.build.where(call.build.greater(x, zero), x, call.build.min(curve, zero))


@lowers("Gelu")
def gelu(call: NodeCall) -> Result:
    """The input times its normal distribution function, exact or approximated by tanh."""
    if call.attribute("approximate", "none") == "none":
        return call.build.gelu(call.operand(0))
    return tanh_gelu(call, call.operand(0))


def tanh_gelu(call: NodeCall, x: MLOperand) -> MLOperand:
    """Return x * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 * x^3))) / 2, computed in float32 and rounded once."""
    build, root, values = call.build, math.sqrt(2 / math.pi), call.cast(x, "float32")
    inner = build.mul(values, build.linear(build.mul(values, values), alpha=0.044715 * root, beta=root))
    return call.cast(build.mul(values, build.linear(build.tanh(inner), alpha=0.5, beta=0.5)), x.data_type)


@lowers("Mish")
@wide
def mish(call: NodeCall, x: MLOperand) -> MLOperand:
    """The input times tanh(softplus(x))."""
    return call.build.mul(x, call.build.tanh(call.build.softplus(x)))


@lowers("Swish")
@wide
def swish(call: NodeCall, x: MLOperand) -> MLOperand:
    """The input times sigmoid(alpha x)."""
    alpha = call.attribute("alpha", 1.0)
    return call.build.mul(x, call.build.sigmoid(x if alpha == 1 else call.build.mul(x, call.like(alpha, x))))


@lowers("ThresholdedRelu")
def thresholded_relu(call: NodeCall) -> Result:
    """The input where it is above alpha, else 0."""
    x = call.operand(0)
    return call.build.where(call.build.greater(x, call.like(call.attribute("alpha", 1.0), x)), x, call.like(0, x))


@lowers("Shrink")
def shrink(call: NodeCall) -> Result:
    """The input moved toward 0 by bias, and 0 between -lambd and lambd. The results of integers are truncated."""
    bias, limit = call.attribute("bias", 0.0), call.attribute("lambd", 0.5)
    x, build, dtype = call.operand(0), call.build, call.tensor(0).dtype
    if not is_float(dtype):
        if not math.isfinite(limit) or not math.isfinite(bias):
            call.on_host("an infinite limit or bias for integers")
        limit = math.floor(limit)
        if bias != math.floor(bias):
            if dtype.itemsize > 2:
                call.on_host("32 bits of a fraction do not hold all these integers")
            x = call.cast(x, "float32")
    middle = build.where(build.greater(x, call.like(limit, x)), build.sub(x, call.like(bias, x)), call.like(0, x))
    if unsigned(call.tensor(0)) and limit >= 0:
        return middle
    return build.where(build.lesser(x, call.like(-limit, x)), build.add(x, call.like(bias, x)), middle)


def limits(dtype: DType) -> tuple[Any, Any]:
    """Return the lowest and the largest finite number of a data type."""
    info = ml_dtypes.finfo(dtype) if is_float(dtype) else ml_dtypes.iinfo(dtype)
    if dtype == np.dtype(np.float64):
        info = np.finfo(np.float32)  # the device's type for float64
    return info.min, info.max


@lowers("Clip")
def clip(call: NodeCall) -> Result:
    """Elements clamped to a range. An absent bound is the data type's own, so that infinities become finite."""
    dtype = call.tensor(0).dtype
    if dtype == BOOL:
        call.fail("truth values have no range")
    x, held = call.operand(0), HELD[dtype]
    bounds: list[Any] = []
    for index, (name, limit) in enumerate(zip(("min", "max"), limits(dtype), strict=True), 1):
        if call.version < 11:
            given = call.attribute(name)
            bounds.append(np.array(limit if given is None else given).astype(held))
        elif not call.has(index):
            bounds.append(np.array(limit).astype(held))
        else:
            known = call.tensor(index).array
            if call.tensor(index).size != 1:
                call.fail(f"input {index} must have one element")
            bounds.append(None if known is None else known.reshape(-1)[0].astype(held))
    low, high = bounds
    if low is not None and high is not None and low <= high:
        return call.build.clamp(x, min_value=low.item(), max_value=high.item())
    low = call.operand(1) if low is None else call.constant(low, held)
    high = call.operand(2) if high is None else call.constant(high, held)
    # The upper bound takes precedence where it is below the lower one.
    shape: list[int] = []
    return call.build.min(call.build.max(x, call.reshape(low, shape)), call.reshape(high, shape))


def activated(call: NodeCall, x: MLOperand, parameters: Sequence[float]) -> MLOperand:
    """Return an operand after the activation that a fused operator's attribute names.

    Args:
        call: the node.
        x: the operand.
        parameters: the activation's attributes, in the order of its schema. Trailing attributes may be absent.
    """
    name, build = call.attribute("activation", ""), call.build
    if len(parameters) > 2:
        call.fail(f"{len(parameters)} parameters of activation {name}")
    match name:
        case "":
            return x
        case "Relu" | "Tanh" | "Sigmoid":
            return getattr(build, name.lower())(x)
        case "LeakyRelu":
            return build.leaky_relu(x, alpha=parameters[0] if parameters else 0.01)
        case "HardSigmoid":
            alpha, beta = (*parameters, *(0.2, 0.5)[len(parameters) :])
            return build.hard_sigmoid(x, alpha=alpha, beta=beta)
        case "Clip":
            low, high = (*parameters, *limits(call.tensor(0).dtype)[len(parameters) :])
            return build.clamp(x, min_value=float(low), max_value=float(high))
        case _:
            call.fail(f"activation {name}")
