"""Functions of each element of a tensor."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

from webnn_wgpu.eager import Tensor, cast, ops

from ._convert import TensorLike, as_floats, as_tensor, flat

Unary: TypeAlias = Callable[[TensorLike], Tensor]

_SELU_SCALE = 1.0507009873554804934193349852946
_SELU_ALPHA = 1.6732632423543772848170429916717


def _unary(name: str, what: str, *, integers: bool = False, constant: bool = False, **options: Any) -> Unary:
    """Return the function of an operator.

    Args:
        name: the builder's method.
        what: the description.
        integers: whether integers keep their data type.
        constant: whether the function is constant almost everywhere, so that gradients are zeros.
        options: the options of the method.
    """

    def call(x: TensorLike) -> Tensor:
        given = as_tensor(x) if integers else as_floats(x)
        result = operator(cast(given, "int32") if given.dtype == "bool" and integers else given, **options)
        return flat(result) if constant else result

    operator: Any = getattr(ops.ext if name.startswith("ext.") else ops, name.removeprefix("ext."))
    call.__doc__ = f"Return {what[0].lower() + what[1:]}, element by element.\n\nArgs:\n    x: a tensor."
    return call


abs_ = _unary("abs", "Absolute values", integers=True)
acos = _unary("ext.acos", "Arc cosines")
acosh = _unary("ext.acosh", "Inverse hyperbolic cosines")
asin = _unary("ext.asin", "Arc sines")
asinh = _unary("ext.asinh", "Inverse hyperbolic sines")
atan = _unary("ext.atan", "Arc tangents")
atanh = _unary("ext.atanh", "Inverse hyperbolic tangents")
ceil = _unary("ceil", "Numbers rounded up", constant=True)
cos = _unary("cos", "Cosines")
cosh = _unary("ext.cosh", "Hyperbolic cosines")
elu = _unary("elu", "Exponential linear units")
erf = _unary("erf", "The error function")
exp = _unary("exp", "Powers of e")
floor = _unary("floor", "Numbers rounded down", constant=True)
is_inf = _unary("is_infinite", "Whether numbers are infinite")
is_nan = _unary("is_nan", "Whether numbers are not a number")
log = _unary("log", "Natural logarithms")
neg = _unary("neg", "Negated numbers", integers=True)
reciprocal = _unary("reciprocal", "Reciprocals")
relu = _unary("relu", "Numbers of at least 0", integers=True)
relu6 = _unary("clamp", "Numbers limited to the range from 0 to 6", integers=True, min_value=0, max_value=6)
round_ = _unary("round_even", "Numbers rounded to integers, halves to even ones", constant=True)
sigmoid = _unary("sigmoid", "The logistic function")
sign = _unary("sign", "Signs: -1, 0 or 1", integers=True, constant=True)
sin = _unary("sin", "Sines")
sinh = _unary("ext.sinh", "Hyperbolic sines")
softplus = _unary("softplus", "Logarithms of 1 and a power of e")
sqrt = _unary("sqrt", "Square roots")
tan = _unary("tan", "Tangents")
tanh = _unary("tanh", "Hyperbolic tangents")


def logical_not(x: TensorLike) -> Tensor:
    """Return whether elements are false.

    Args:
        x: truth values.
    """
    return ops.logical_not(as_tensor(x, "bool"))


def is_finite(x: TensorLike) -> Tensor:
    """Return whether numbers are neither infinite nor NaN.

    Args:
        x: a tensor.
    """
    given = as_floats(x)
    return ops.logical_not(ops.logical_or(ops.is_nan(given), ops.is_infinite(given)))


def square(x: TensorLike) -> Tensor:
    """Return squares.

    Args:
        x: a tensor.
    """
    given = as_tensor(x)
    return given * given


def rsqrt(x: TensorLike) -> Tensor:
    """Return reciprocals of square roots.

    Args:
        x: a tensor.
    """
    return ops.reciprocal(ops.sqrt(as_floats(x)))


def expm1(x: TensorLike) -> Tensor:
    """Return powers of e, less 1. Small numbers keep their precision.

    Args:
        x: a tensor.
    """
    given = as_floats(x)
    return ops.tanh(given * 0.5) * (ops.exp(given) + 1)


def log1p(x: TensorLike) -> Tensor:
    """Return logarithms of 1 and a number. Small numbers keep their precision.

    Args:
        x: a tensor.
    """
    given = as_floats(x)
    small = ops.clamp(given, min_value=-0.5, max_value=0.5)
    return ops.where(ops.abs(given) < 0.5, ops.ext.atanh(small / (small + 2)) * 2, ops.log(given + 1))


def log_sigmoid(x: TensorLike) -> Tensor:
    """Return logarithms of the logistic function.

    Args:
        x: a tensor.
    """
    return -ops.softplus(-as_floats(x))


def leaky_relu(x: TensorLike, alpha: float = 0.2) -> Tensor:
    """Return positive numbers, and negative ones times a factor.

    Args:
        x: a tensor.
        alpha: the factor.
    """
    return ops.leaky_relu(as_floats(x), alpha=alpha)


def prelu(x: TensorLike, alpha: TensorLike) -> Tensor:
    """Return positive numbers, and negative ones times factors.

    Args:
        x: a tensor.
        alpha: the factors, with a shape that broadcasts.
    """
    return ops.prelu(as_floats(x), as_floats(alpha))


def selu(x: TensorLike) -> Tensor:
    """Return scaled exponential linear units.

    Args:
        x: a tensor.
    """
    return ops.elu(as_floats(x), alpha=_SELU_ALPHA) * _SELU_SCALE


def step(x: TensorLike, alpha: float = 0.0) -> Tensor:
    """Return 1 for positive numbers, and another number for others.

    Args:
        x: a tensor.
        alpha: the other number.
    """
    given = as_floats(x)
    found = ops.where(given > 0, ops.where(given > 0, 1, given), alpha)
    return flat(ops.where(ops.is_nan(given), given, found))


def clip_by_value(x: TensorLike, clip_value_min: float, clip_value_max: float) -> Tensor:
    """Return numbers limited to a range.

    Args:
        x: a tensor.
        clip_value_min: the lower bound.
        clip_value_max: the upper bound.
    """
    return ops.clamp(as_tensor(x), min_value=clip_value_min, max_value=clip_value_max)
