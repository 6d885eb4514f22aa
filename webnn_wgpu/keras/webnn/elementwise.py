"""Functions of `keras.ops` that compute each element by itself."""

from __future__ import annotations

import math as host_math
from collections.abc import Callable
from typing import Any

import numpy as np
from keras.src.backend.common import standardize_dtype
from keras.src.backend.common.dtypes import result_type

from . import core, host
from .dtypes import STORAGE, canonical, is_float
from .tensor import Tensor, call, cast, moved, of_array, recorded, several

Function = Callable[..., Any]


def dtype_of(x: Any) -> Any:
    """Return the part of an argument that decides the type of a result: a data type, or the Python type of a number."""
    found = getattr(x, "dtype", None)
    return type(x) if found is None else standardize_dtype(found)


def operands(*given: Any, extra: tuple[Any, ...] = ()) -> list[Tensor]:
    """Return arguments as tensors of the data type that Keras gives their combination."""
    arrays = [
        x if hasattr(x, "dtype") or isinstance(x, (bool, int, float, complex)) else core.convert_to_tensor(x) for x in given
    ]
    dtype = canonical(result_type(*[dtype_of(x) for x in arrays], *extra))
    return [core.convert_to_tensor(x, dtype) for x in arrays]


def wide(x: Tensor) -> Tensor:
    """Return a float tensor as float32 for a formula of several steps."""
    return cast(x, "float32")


def number(value: float, like: Tensor) -> Tensor:
    """Return a constant of the data type of a tensor."""
    return of_array(value, like.dtype)


def floating(x: Any) -> Tensor:
    """Return an argument as a tensor of floats."""
    found = core.convert_to_tensor(x)
    return found if is_float(found.dtype) else cast(found, canonical(result_type(found.dtype, float)))


# Two operands -------------------------------------------------------------------------------------------------------


def _arithmetic(name: str, method: str, truth: str | None = None) -> Function:
    @host.unless_held("numpy", name)
    def function(x1: Any, x2: Any) -> Tensor:
        a, b = operands(x1, x2)
        if a.dtype == "bool" and truth is not None:
            return call(truth, a, b, dtype="bool")
        return call(method, a, b)

    return _documented(function, name)


def _comparison(name: str, method: str) -> Function:
    @host.unless_held("numpy", name)
    def function(x1: Any, x2: Any) -> Tensor:
        a, b = operands(x1, x2)
        return call(method, a, b, dtype="bool")

    return _documented(function, name)


def _logic(name: str, method: str) -> Function:
    @host.unless_held("numpy", name)
    def function(*xs: Any) -> Tensor:
        return call(method, *(core.convert_to_tensor(x, "bool") for x in xs), dtype="bool")

    return _documented(function, name)


def _bits(name: str, method: str, truth: str | None = None) -> Function:
    @host.unless_held("numpy", name)
    def function(x: Any, y: Any) -> Tensor:
        a, b = operands(x, y)
        if a.dtype == "bool" and truth is not None:
            return call(truth, a, b, dtype="bool")
        return call(method, a, b)

    return _documented(function, name)


def _documented(function: Function, name: str) -> Function:
    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"`{name}`, element by element."
    return function


add = _arithmetic("add", "add", "logical_or")
subtract = _arithmetic("subtract", "sub", "logical_xor")
multiply = _arithmetic("multiply", "mul", "logical_and")
maximum = _arithmetic("maximum", "max", "logical_or")
minimum = _arithmetic("minimum", "min", "logical_and")
equal = _comparison("equal", "equal")
not_equal = _comparison("not_equal", "not_equal")
greater = _comparison("greater", "greater")
greater_equal = _comparison("greater_equal", "greater_or_equal")
less = _comparison("less", "lesser")
less_equal = _comparison("less_equal", "lesser_or_equal")
logical_and = _logic("logical_and", "logical_and")
logical_or = _logic("logical_or", "logical_or")
logical_xor = _logic("logical_xor", "logical_xor")
logical_not = _logic("logical_not", "logical_not")
bitwise_and = _bits("bitwise_and", "ext.bitwise_and", "logical_and")
bitwise_or = _bits("bitwise_or", "ext.bitwise_or", "logical_or")
bitwise_xor = _bits("bitwise_xor", "ext.bitwise_xor", "logical_xor")
bitwise_left_shift = left_shift = _bits("left_shift", "ext.shift_left")
bitwise_right_shift = right_shift = _bits("right_shift", "ext.shift_right")


@host.unless_held("numpy")
def bitwise_not(x: Any) -> Tensor:
    """`bitwise_not`, element by element."""
    found = core.convert_to_tensor(x)
    return call("logical_not" if found.dtype == "bool" else "ext.bitwise_not", found)


bitwise_invert = bitwise_not


@host.unless_held("numpy")
def divide(x1: Any, x2: Any) -> Tensor:
    """The quotient, as a float."""
    return call("div", *operands(x1, x2, extra=(float,)))


true_divide = divide


def chosen(condition: Tensor, a: Tensor, b: Tensor) -> Tensor:
    """Return a or b by a condition. Both have one data type."""
    return Tensor(several("where", condition, a, b)[0], a.dtype)


@host.unless_held("numpy")
def divide_no_nan(x1: Any, x2: Any) -> Tensor:
    """The quotient, and 0 where the divisor is 0."""
    a, b = operands(x1, x2, extra=(float,))
    empty = call("equal", b, number(0, b), dtype="bool")
    return chosen(empty, number(0, a), call("div", a, chosen(empty, number(1, b), b)))


@host.unless_held("numpy")
def floor_divide(x1: Any, x2: Any) -> Tensor:
    """The quotient, rounded down."""
    a, b = operands(x1, x2)
    if a.dtype == "bool":
        a, b = cast(a, "int8"), cast(b, "int8")
    if is_float(a.dtype):
        return cast(call("floor", call("div", wide(a), wide(b))), a.dtype)
    return call("div", call("sub", a, call("ext.mod", a, b)), b)


@host.unless_held("numpy")
def mod(x1: Any, x2: Any) -> Tensor:
    """The remainder, with the sign of the divisor."""
    a, b = operands(x1, x2)
    if a.dtype == "bool":
        a, b = cast(a, "int32"), cast(b, "int32")
    return call("ext.mod", a, b)


@host.unless_held("numpy")
def fmod(x1: Any, x2: Any) -> Tensor:
    """The remainder, with the sign of the dividend."""
    a, b = operands(x1, x2)
    if a.dtype == "bool":
        a, b = cast(a, "int8"), cast(b, "int8")
    return call("ext.fmod", a, b)


@host.unless_held("numpy")
def power(x1: Any, x2: Any) -> Tensor:
    """`x1` to the power of `x2`."""
    a, b = operands(x1, x2)
    if a.dtype == "bool":
        a, b = cast(a, "int32"), cast(b, "int32")
    return call("pow", a, b)


# One operand --------------------------------------------------------------------------------------------------------


def _unary(name: str, formula: Callable[[Tensor], Tensor]) -> Function:
    """Return a function of floats, computed as float32 and rounded once."""

    @host.unless_held("numpy", name)
    def function(x: Any) -> Tensor:
        found = floating(x)
        return cast(formula(wide(found)), found.dtype)

    return _documented(function, name)


def _single(name: str, method: str) -> Function:
    """Return a function that is one operator on floats."""

    @host.unless_held("numpy", name)
    def function(x: Any) -> Tensor:
        return call(method, floating(x))

    return _documented(function, name)


def _scaled(method: str, factor: float) -> Callable[[Tensor], Tensor]:
    return lambda x: call(method, x) * factor


def _log1p(x: Tensor) -> Tensor:
    small = absolute(x) < 0.25
    near = chosen(small, x, number(0, x))
    return chosen(small, call("ext.atanh", near / (near + 2.0)) * 2.0, call("log", x + 1.0))


def _expm1(x: Tensor) -> Tensor:
    exponential = call("exp", x)
    large = x > 16.0
    return chosen(large, exponential, call("tanh", x * 0.5) * (chosen(large, number(0, x), exponential) + 1.0))


def _sinc(x: Tensor) -> Tensor:
    angle = x * host_math.pi
    zero = equal(angle, 0.0)
    safe = chosen(zero, number(1, x), angle)
    return chosen(zero, number(1, x), call("sin", safe) / safe)


exp = _single("exp", "exp")
log = _single("log", "log")
sqrt = _single("sqrt", "sqrt")
sin = _single("sin", "sin")
cos = _single("cos", "cos")
tan = _single("tan", "tan")
tanh = _single("tanh", "tanh")
sinh = _single("sinh", "ext.sinh")
cosh = _single("cosh", "ext.cosh")
arcsin = _single("arcsin", "ext.asin")
arccos = _single("arccos", "ext.acos")
arctan = _single("arctan", "ext.atan")
arcsinh = _single("arcsinh", "ext.asinh")
arccosh = _single("arccosh", "ext.acosh")
arctanh = _single("arctanh", "ext.atanh")
reciprocal = _single("reciprocal", "reciprocal")
ceil = _single("ceil", "ceil")
floor = _single("floor", "floor")
exp2 = _unary("exp2", lambda x: call("pow", number(2, x), x))
expm1 = _unary("expm1", _expm1)
log1p = _unary("log1p", _log1p)
log2 = _unary("log2", _scaled("log", 1 / host_math.log(2)))
log10 = _unary("log10", _scaled("log", 1 / host_math.log(10)))
cbrt = _unary("cbrt", lambda x: call("sign", x) * call("pow", call("abs", x), number(1 / 3, x)))
deg2rad = _unary("deg2rad", lambda x: x * (host_math.pi / 180))
rad2deg = _unary("rad2deg", lambda x: x * (180 / host_math.pi))
sinc = _unary("sinc", _sinc)


@host.unless_held("numpy")
def absolute(x: Any) -> Tensor:
    """The absolute value."""
    found = core.convert_to_tensor(x)
    return found if found.dtype == "bool" or found.dtype.startswith("uint") else call("abs", found)


abs = absolute


def fabs(x: Any) -> Tensor:
    """The absolute value, as a float."""
    return absolute(floating(x))


@host.unless_held("numpy")
def negative(x: Any) -> Tensor:
    """The opposite."""
    found = core.convert_to_tensor(x)
    if found.dtype == "bool" or found.dtype.startswith("uint"):
        return call("sub", number(0, found), found)
    return call("neg", found)


@host.unless_held("numpy")
def square(x: Any) -> Tensor:
    """The square."""
    found = core.convert_to_tensor(x)
    found = cast(found, "int32") if found.dtype == "bool" else found
    return call("mul", found, found)


@host.unless_held("numpy")
def sign(x: Any) -> Tensor:
    """The sign: -1, 0 or 1."""
    found = core.convert_to_tensor(x)
    if found.dtype == "bool":
        found = cast(found, "int32")
    if found.dtype.startswith("uint"):
        return call("min", found, number(1, found))
    return call("sign", found)


@host.unless_held("numpy")
def trunc(x: Any) -> Tensor:
    """The integer part."""
    found = core.convert_to_tensor(x)
    if not is_float(found.dtype):
        return found
    size = wide(found)
    whole = call("floor", call("abs", size))
    return cast(call("mul", call("sign", size), whole), found.dtype)


@host.unless_held("numpy")
def round(x: Any, decimals: int = 0) -> Tensor:
    """The nearest number with some decimals. Ties go to the even one."""
    found = core.convert_to_tensor(x)
    if found.dtype == "bool" or (not is_float(found.dtype) and decimals < 0):
        return host.fall_back("numpy", "round", found, decimals)
    if not is_float(found.dtype):
        return found
    factor = 10.0**decimals
    scaled = wide(found) if decimals == 0 else wide(found) * factor
    rounded = call("round_even", scaled)
    return cast(rounded if decimals == 0 else rounded / factor, found.dtype)


@host.unless_held("numpy")
def clip(x: Any, x_min: Any, x_max: Any) -> Tensor:
    """The elements, limited to a range."""
    found = core.convert_to_tensor(x)
    if found.dtype == "bool":
        found = cast(found, "int32")
    given = [found if each is None else each for each in (x_min, x_max)]
    dtype = canonical(result_type(found.dtype, *[dtype_of(each) for each in given]))
    result = cast(found, dtype)
    if x_min is not None:
        result = call("max", result, core.convert_to_tensor(x_min, dtype))
    if x_max is not None:
        result = call("min", result, core.convert_to_tensor(x_max, dtype))
    return result


def _constant_truth(x: Tensor, truth: bool) -> Tensor:
    found = of_array(truth, "bool")
    return moved("expand", found, new_shape=x.shape) if x.shape else found


def _test(name: str, formula: Callable[[Tensor], Tensor], of_integers: bool) -> Function:
    @host.unless_held("numpy", name)
    def function(x: Any) -> Tensor:
        found = core.convert_to_tensor(x)
        return formula(wide(found)) if is_float(found.dtype) else _constant_truth(found, of_integers)

    return _documented(function, name)


_LARGEST = float(np.finfo(np.float32).max)

isnan = _test("isnan", lambda x: call("is_nan", x, dtype="bool"), of_integers=False)
isinf = _test("isinf", lambda x: call("is_infinite", x, dtype="bool"), of_integers=False)
isfinite = _test("isfinite", lambda x: logical_not(logical_or(isnan(x), isinf(x))), of_integers=True)
isposinf = _test("isposinf", lambda x: logical_and(isinf(x), x > 0.0), of_integers=False)
isneginf = _test("isneginf", lambda x: logical_and(isinf(x), x < 0.0), of_integers=False)


@host.unless_held("numpy")
def isreal(x: Any) -> Tensor:
    """Whether elements have no imaginary part."""
    return _constant_truth(core.convert_to_tensor(x), True)


@host.unless_held("numpy")
def real(x: Any) -> Tensor:
    """The real part."""
    return core.convert_to_tensor(x)


@host.unless_held("numpy")
def conjugate(x: Any) -> Tensor:
    """The conjugate."""
    return core.convert_to_tensor(x)


conj = conjugate


@host.unless_held("numpy")
def imag(x: Any) -> Tensor:
    """The imaginary part."""
    found = core.convert_to_tensor(x)
    return call("mul", found, number(0, found))


@host.unless_held("numpy")
def nan_to_num(x: Any, nan: float = 0.0, posinf: float | None = None, neginf: float | None = None) -> Tensor:
    """The elements, with numbers in place of NaN and infinities."""
    found = core.convert_to_tensor(x)
    if not is_float(found.dtype):
        return found
    import ml_dtypes

    info = ml_dtypes.finfo(found.dtype)
    result = wide(found)
    result = chosen(isposinf(result), number(float(info.max) if posinf is None else posinf, result), result)
    result = chosen(isneginf(result), number(float(info.min) if neginf is None else neginf, result), result)
    return cast(chosen(isnan(result), number(nan, result), result), found.dtype)


@host.unless_held("numpy")
def where(condition: Any, x1: Any = None, x2: Any = None) -> Any:
    """Elements of one tensor or another by a condition. Without tensors, the places where the condition holds."""
    if x1 is None or x2 is None:
        return host.fall_back("numpy", "where", condition, x1, x2)
    a, b = operands(x1, x2)
    return chosen(core.convert_to_tensor(condition, "bool"), a, b)


@host.unless_held("numpy")
def select(condlist: Any, choicelist: Any, default: Any = 0) -> Tensor:
    """The element of the first tensor whose condition holds."""
    found = default
    for condition, choice in zip(reversed(list(condlist)), reversed(list(choicelist)), strict=True):
        found = where(condition, choice, found)
    return core.convert_to_tensor(found)


# Formulas of two operands ----------------------------------------------------------------------------------------


def _formula(name: str, formula: Callable[[Tensor, Tensor], Tensor]) -> Function:
    """Return a function of two floats, computed as float32 and rounded once."""

    @host.unless_held("numpy", name)
    def function(x1: Any, x2: Any) -> Tensor:
        a, b = operands(x1, x2, extra=(float,))
        return cast(formula(wide(a), wide(b)), a.dtype)

    return _documented(function, name)


def _logaddexp(a: Tensor, b: Tensor) -> Tensor:
    same = equal(a, b)
    distance = chosen(same, number(0, a), call("abs", a - b))
    return call("max", a, b) + _log1p(call("exp", -distance))


def _arctan2(y: Tensor, x: Tensor) -> Tensor:
    flat = logical_and(equal(x, 0.0), equal(y, 0.0))
    angle = call("ext.atan", y / chosen(equal(x, 0.0), number(1, x), x))
    upright = chosen(y > 0.0, number(host_math.pi / 2, y), number(-host_math.pi / 2, y))
    turn = chosen(y < 0.0, number(-host_math.pi, y), number(host_math.pi, y))
    left = chosen(x < 0.0, angle + turn, angle)
    found = chosen(equal(x, 0.0), upright, left)
    return chosen(flat, number(0, x), found)


hypot = _formula("hypot", lambda a, b: call("sqrt", a * a + b * b))
logaddexp = _formula("logaddexp", _logaddexp)
logaddexp2 = _formula("logaddexp2", lambda a, b: _logaddexp(a * host_math.log(2), b * host_math.log(2)) / host_math.log(2))
arctan2 = _formula("arctan2", _arctan2)
heaviside = _formula("heaviside", lambda a, b: chosen(isnan(a), a, chosen(equal(a, 0.0), b, cast(a > 0.0, "float32"))))


def _extreme(name: str, method: Function) -> Function:
    @host.unless_held("numpy", name)
    def function(x1: Any, x2: Any) -> Tensor:
        a, b = operands(x1, x2)
        if not is_float(a.dtype):
            return method(a, b)
        first, second = call("is_nan", a, dtype="bool"), call("is_nan", b, dtype="bool")
        return chosen(first, b, chosen(second, a, method(chosen(first, number(0, a), a), chosen(second, number(0, b), b))))

    return _documented(function, name)


fmax = _extreme("fmax", maximum)
fmin = _extreme("fmin", minimum)


@host.unless_held("numpy")
def isclose(x1: Any, x2: Any, rtol: float = 1e-5, atol: float = 1e-8, equal_nan: bool = False) -> Tensor:
    """Whether elements are equal within limits."""
    a, b = (wide(x) for x in operands(x1, x2, extra=(float,)))
    near = logical_and(call("abs", a - b) <= call("abs", b) * rtol + atol, isfinite(b))
    found = logical_or(near, equal(a, b))
    return logical_or(found, logical_and(isnan(a), isnan(b))) if equal_nan else found


def stored(x: Tensor) -> Tensor:
    """Return a tensor under the name of its storage type, for operators that move bits."""
    return Tensor(recorded(x), STORAGE[x.dtype])
