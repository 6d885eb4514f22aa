"""Values of all invocations at once, and the operators on them.

Invocations are lanes: the last axis of every array counts them, or has length 1 if all have the same value. A scalar is an
array `[lanes]`, a vector `[n, lanes]`, a matrix `[columns, rows, lanes]`. Numbers of WGSL's abstract types are Python numbers,
and vectors of them are tuples. Integers wrap, and floats round operation by operation, as numpy's do.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from ...core.data_types import Array
from .types import SCALAR_OF, ArrayType, Numeric, StructType, Tree, Type, leaves, map_tree

Abstract: TypeAlias = int | float | tuple[int | float, ...]


@dataclass(slots=True)
class Composite:
    """An array or a structure."""

    type: ArrayType | StructType
    data: Tree


Value: TypeAlias = Any
"""An array of lanes, an abstract number, a `Composite`, a `Place` as a pointer, or a texture."""


class Fault(Exception):
    """A violation of WGSL's rules by a source. The evaluator adds the position.

    Args:
        rule: the violated rule.
        hint: the next step, or "".
    """

    def __init__(self, rule: str, hint: str = "") -> None:
        super().__init__(rule)
        self.hint = hint


def is_abstract(value: Value) -> bool:
    """Return whether a value is an abstract number, or a vector of them."""
    return isinstance(value, int | float | tuple)


def type_of(value: Value) -> Type:
    """Return the type of a value that is not abstract."""
    if isinstance(value, Composite):
        return value.type
    return Numeric(SCALAR_OF[value.dtype], value.shape[:-1])


def describe(value: Value) -> str:
    """Return the name of a value's type for messages."""
    if isinstance(value, tuple):
        return f"a vector of {len(value)} abstract numbers"
    if isinstance(value, float):
        return "an abstract float"
    if isinstance(value, int):
        return "an abstract integer"
    return str(type_of(value)) if isinstance(value, np.ndarray | Composite) else "a pointer or texture"


def number(value: Abstract, dtype: np.dtype[Any]) -> Array:
    """Return an abstract number, or vector of them, as one of a type."""
    if isinstance(value, tuple):
        return np.concatenate([number(n, dtype) for n in value])[:, None]
    if dtype.kind == "b":
        raise Fault(f"{value} is not a bool")
    if dtype.kind in "iu" and (isinstance(value, float) or not _LOWEST[dtype] <= value <= _HIGHEST[dtype]):
        raise Fault(f"{value} is not a number of the type {SCALAR_OF[dtype]}")
    return np.array([value], dtype)


_INTEGERS = [dtype for dtype in SCALAR_OF if dtype.kind in "iu"]
_LOWEST = {dtype: int(np.iinfo(dtype).min) for dtype in _INTEGERS}
_HIGHEST = {dtype: int(np.iinfo(dtype).max) for dtype in _INTEGERS}


def concrete(value: Value) -> Value:
    """Return a value, but an abstract number as i32 or f32."""
    if not is_abstract(value):
        return value
    numbers = value if isinstance(value, tuple) else (value,)
    return number(value, np.dtype(np.float32 if any(isinstance(n, float) for n in numbers) else np.int32))


def converted(value: Value, type_: Type) -> Value:
    """Return a value in a context that requires `type_`: abstract numbers take that type, others must have it."""
    if isinstance(type_, Numeric):
        if is_abstract(value):
            value = number(value, type_.dtype)
        if isinstance(value, np.ndarray) and value.dtype == type_.dtype and value.shape[:-1] == type_.shape:
            return value
    elif not isinstance(type_, ArrayType | StructType) or (isinstance(value, Composite) and value.type == type_):
        return value
    raise Fault(f"{describe(value)} where {type_} is wanted")


def alike(*values: Value) -> tuple[Array, ...]:
    """Return values with abstract numbers made the type of the others."""
    dtypes = {v.dtype for v in values if isinstance(v, np.ndarray)}
    if len(dtypes) == 1 and not any(map(is_abstract, values)):
        return values
    dtype = next(iter(dtypes), None)
    if dtype is None:
        floats = any(isinstance(n, float) for v in values for n in (v if isinstance(v, tuple) else (v,)))
        dtype = np.dtype(np.float32 if floats else np.int32)
    found = tuple(number(v, dtype) if is_abstract(v) else v for v in values)
    for value in found:
        if not isinstance(value, np.ndarray) or value.dtype != dtype:
            raise Fault(f"operands have the types {' and '.join(describe(v) for v in found)}")
    return found


def zero(type_: Type) -> Value:
    """Return the zero value of a type."""
    if isinstance(type_, Numeric):
        return np.zeros((*type_.shape, 1), type_.dtype)
    assert isinstance(type_, ArrayType | StructType)
    return Composite(type_, map_tree(lambda leaf: np.zeros((*leaf.offsets.shape, 1), leaf.type.dtype), leaves(type_)))


POISON = 0x71
"""A byte. Four make a float32, or two a float16, that no sum and no comparison hides: about 1e30 and 1e4."""


def poison(type_: Type) -> Value:
    """Return a value of a type that is unlike any that kernels expect."""

    def bad(numbers: Array) -> Array:
        if numbers.dtype.kind == "b":
            return ~numbers
        return np.full(numbers.nbytes, POISON, np.uint8).view(numbers.dtype).reshape(numbers.shape)

    return of_data(type_, map_tree(bad, data_of(zero(type_))))


def data_of(value: Value) -> Tree:
    """Return the numbers of a value."""
    return value.data if isinstance(value, Composite) else value


def of_data(type_: Type, data: Tree) -> Value:
    """Return the value of a type that numbers are of."""
    tree: Any = data
    return Composite(type_, tree) if isinstance(type_, ArrayType | StructType) else tree


def merged(mask: Array, new: Value, old: Value) -> Value:
    """Return `new` in the lanes of a mask and `old` in the others."""
    if isinstance(new, np.ndarray):
        return np.where(mask, new, old)
    if isinstance(new, Composite):
        return Composite(new.type, map_tree(lambda n, o: np.where(mask, n, o), new.data, old.data))
    return new


def in_lane(value: Value, lane: int) -> Any:
    """Return a value in one lane: numpy's number or array, or a dict of a structure's members."""
    if isinstance(value, np.ndarray | Composite):
        return map_tree(lambda leaf: leaf[..., min(lane, leaf.shape[-1] - 1)], data_of(value))
    return value


# operators ------------------------------------------------------------------------------------------------------------


def binary(operator: str, left: Value, right: Value) -> Value:
    """Return the result of an operator on two values."""
    if operator in ("<<", ">>"):
        return _shifted(operator, left, right)
    if is_abstract(left) and is_abstract(right):
        return _abstract(operator, left, right)
    same = isinstance(left, np.ndarray) and isinstance(right, np.ndarray) and left.dtype == right.dtype
    a, b = (left, right) if same else alike(left, right)
    if operator == "*" and (a.ndim == 3 or b.ndim == 3) and 1 < min(a.ndim, b.ndim):
        return _product(a, b)
    if a.ndim > 1 and b.ndim > 1 and a.shape[:-1] != b.shape[:-1]:
        raise Fault(f"operands of {operator} have the types {describe(a)} and {describe(b)}")
    if a.dtype.kind not in _KINDS[operator]:
        raise Fault(f"the operator {operator} takes no {describe(a)}")
    if a.dtype.kind in "iu" and operator in ("/", "%"):
        return _divided(operator, a, b)
    return _UFUNCS[operator](a, b)


def unary(operator: str, value: Value) -> Value:
    """Return the result of an operator on one value."""
    if is_abstract(value) and operator in ("-", "~"):
        one: Any = (lambda n: -n) if operator == "-" else (lambda n: ~n)
        return tuple(map(one, value)) if isinstance(value, tuple) else one(value)
    kinds = {"-": "if", "~": "iu", "!": "b"}[operator]
    if not isinstance(value, np.ndarray) or value.dtype.kind not in kinds:
        raise Fault(f"the operator {operator} takes no {describe(value)}")
    return np.negative(value) if operator == "-" else np.invert(value)


_KINDS = {op: "iuf" for op in ("+", "-", "*", "/", "%", "<", ">", "<=", ">=")} | {
    "==": "iufb", "!=": "iufb", "&": "iub", "|": "iub", "^": "iu"
}  # fmt: skip
_UFUNCS: dict[str, Any] = {
    "+": np.add, "-": np.subtract, "*": np.multiply, "/": np.divide, "%": np.fmod,
    "<": np.less, ">": np.greater, "<=": np.less_equal, ">=": np.greater_equal, "==": np.equal, "!=": np.not_equal,
    "&": np.bitwise_and, "|": np.bitwise_or, "^": np.bitwise_xor,
}  # fmt: skip


def _shifted(operator: str, left: Value, right: Value) -> Value:
    if is_abstract(left):
        if is_abstract(right):
            return left << right if operator == "<<" else left >> right
        left = concrete(left)
    amount = number(right, np.dtype(np.uint32)) if is_abstract(right) else right
    if left.dtype.kind not in "iu" or amount.dtype.kind not in "iu":
        raise Fault(f"operands of {operator} have the types {describe(left)} and {describe(right)}")
    # By the amount modulo the bits there are.
    bits = (amount & (8 * left.dtype.itemsize - 1)).astype(left.dtype)
    return np.left_shift(left, bits) if operator == "<<" else np.right_shift(left, bits)


def _abstract(operator: str, left: Abstract, right: Abstract) -> Value:
    if isinstance(left, tuple) or isinstance(right, tuple):
        components: Any = left if isinstance(left, tuple) else right
        size = len(components)
        pairs = zip(*(v if isinstance(v, tuple) else (v,) * size for v in (left, right)), strict=True)
        found = [_abstract(operator, a, b) for a, b in pairs]
        return np.stack(found) if isinstance(found[0], np.ndarray) else tuple(found)
    a: Any = left
    b: Any = right
    if operator in ("/", "%") and b == 0:
        raise Fault(f"{a} {operator} 0 in a constant expression")
    if operator in ("/", "%") and isinstance(a, int) and isinstance(b, int):
        quotient = abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)
        return quotient if operator == "/" else a - quotient * b
    if operator in ("&", "|", "^"):
        return {"&": a & b, "|": a | b, "^": a ^ b}[operator]
    if operator in ("==", "!=", "<", ">", "<=", ">="):
        return np.array([_UFUNCS[operator](a, b)])
    if operator in ("/", "%"):
        return a / b if operator == "/" else float(np.fmod(a, b))
    return {"+": a + b, "-": a - b, "*": a * b}[operator]


def _divided(operator: str, a: Array, b: Array) -> Array:
    """Return the truncated quotient or remainder of integers. Division by 0, or an overflow, gives the dividend and 0."""
    overflow = b == 0
    if a.dtype.kind == "i":
        overflow = overflow | ((a == np.iinfo(a.dtype).min) & (b == -1))
    divisor = np.where(overflow, np.ones_like(b), b)
    rest = np.fmod(a, divisor)
    return rest if operator == "%" else np.floor_divide(a - rest, divisor)


def _product(a: Array, b: Array) -> Array:
    """Return the product of matrices and vectors, summed in the order of the columns."""
    if a.ndim == 3 and b.ndim == 3:
        return np.stack([_product(a, column) for column in b])
    if a.ndim == 3:
        if a.shape[0] != b.shape[0]:
            raise Fault(f"operands of * have the types {describe(a)} and {describe(b)}")
        return sum_of([column * factor for column, factor in zip(a, b, strict=True)])
    return np.stack([sum_of(list(a * column)) for column in b])


def sum_of(parts: list[Array]) -> Array:
    """Return the sum of arrays, one after the other."""
    total = parts[0]
    for part in parts[1:]:
        total = total + part
    return total
