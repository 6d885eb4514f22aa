"""What all generated cases share: random operands of a fixed seed, expected results rounded from float64, and tolerances."""

from __future__ import annotations

import base64
import zlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from webnn_wgpu.core.names import snake_case
from webnn_wgpu.testing import Call, Case, Ref, Tensor

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from webnn_wgpu.ir.graph import Array

FLOATS = ("float32", "float16")
SIGNED = ("int32", "int64", "int8")
WIDE = ("int32", "uint32", "int64", "uint64")
INTEGERS = (*WIDE, "int8", "uint8")
ANY = (*FLOATS, *INTEGERS)
"""The data types that operators take, as the specification's tables group them."""


@dataclass(frozen=True)
class Tolerance:
    """The largest distance between a result and the expected value."""

    metric: Literal["ULP", "ATOL"]
    value: float


EXACT = Tolerance("ULP", 0)


def ulp(float32: float, float16: float | None = None) -> Mapping[str, Tolerance]:
    """Return a tolerance in units in the last place for each data type; integers are exact."""
    half = float32 if float16 is None else float16
    return dict.fromkeys(INTEGERS, EXACT) | {"float32": Tolerance("ULP", float32), "float16": Tolerance("ULP", half)}


def atol(float32: float, float16: float) -> Mapping[str, Tolerance]:
    """Return an absolute tolerance for each float type."""
    return {"float32": Tolerance("ATOL", float32), "float16": Tolerance("ATOL", float16)}


def sum_bound(data_type: str, terms: int, magnitudes: Array, results: Array) -> Tolerance:
    """Return the bound of a sum of products that float32 computes in any order, and that is rounded once to the data type.

    Args:
        data_type: of the result.
        terms: how many products are added.
        magnitudes: sums of the absolute values of the products.
        results: the sums themselves.
    """
    rounding = 2.0**-24 if data_type == "float32" else 2.0**-11
    bound = (terms + 2) * 2.0**-24 * float(np.max(magnitudes)) + rounding * float(np.max(np.abs(results)))
    return Tolerance("ATOL", bound)


class Numbers:
    """Random numbers for one case: the same ones whenever it is drawn."""

    def __init__(self, *what: object) -> None:
        self._rng = np.random.default_rng(zlib.crc32(repr(what).encode()))

    def draw(self, data_type: str, shape: Sequence[int], low: float = -4, high: float = 4) -> Array:
        """Return numbers from `low` to `high`, as far as the data type has them."""
        dtype = np.dtype(data_type)
        if dtype.kind == "f":
            return self._rng.uniform(low, high, tuple(shape)).astype(dtype)
        first, last = max(int(low), int(np.iinfo(dtype).min)), min(int(high), int(np.iinfo(dtype).max))
        return self._rng.integers(first, last, tuple(shape), dtype, endpoint=True)

    def whole_range(self, data_type: str, shape: Sequence[int]) -> Array:
        """Return integers of the type's whole range; normal numbers for floats."""
        dtype = np.dtype(data_type)
        if dtype.kind == "f":
            return self._rng.standard_normal(tuple(shape)).astype(dtype)
        limits = np.iinfo(dtype)
        return self._rng.integers(limits.min, limits.max, tuple(shape), dtype, endpoint=True)

    def different(self, high: int, count: int) -> Array:
        """Return numbers below `high`, none of them twice."""
        return self._rng.permutation(high)[:count]


def exact(array: Array) -> Array:
    """Return an operand for the oracle: floats as float64."""
    return array.astype(np.float64) if array.dtype.kind == "f" else array


def rounded(result: Any, data_type: str) -> Array:
    """Return a result of the oracle in a data type; what is too large for it becomes infinite."""
    with np.errstate(over="ignore", invalid="ignore"):
        return np.asarray(result).astype(data_type)


@dataclass(frozen=True)
class Constant:
    """An operand that the graph holds."""

    array: Array


def case(
    operator: str,
    what: str,
    arguments: Mapping[str, Any],
    expected: Array | list[Array],
    tolerance: Tolerance,
    **options: Any,
) -> Case:
    """Return the case of one call.

    Args:
        operator: name in the specification's spelling.
        what: what is special about the call; with the operator it is unique.
        arguments: positional arguments by the specification's names: arrays, constants, lists of them, or literals.
        expected: the result, or a list of them for an operator that returns a list.
        tolerance: how far results may be from it.
        options: members of the options dictionary by the specification's names.
    """
    inputs: dict[str, Tensor] = {}

    def value(name: str, given: Any) -> Any:
        if isinstance(given, np.ndarray | np.generic | Constant):
            inputs[name] = tensor(given)
            return Ref(name)
        if isinstance(given, list) and given and isinstance(given[0], np.ndarray):
            return [value(f"{name}{i}", each) for i, each in enumerate(given)]
        return given

    positional = tuple((name, value(name, given)) for name, given in arguments.items())
    named = {name: value(name, given) for name, given in options.items()}
    several = isinstance(expected, list)
    results = {f"output{i}": each for i, each in enumerate(expected)} if several else {"output": expected}
    return Case(
        operator=snake_case(operator),
        name=f"oracle {what}",
        source="oracle",
        inputs=inputs,
        calls=(Call(operator, positional, named, tuple(results) if several else "output"),),
        expected={name: tensor(each) for name, each in results.items()},
        metric=tolerance.metric,
        tolerance=tolerance.value,
    )


def tensor(given: Array | Constant) -> Tensor:
    """Return an array as a case has it."""
    array = np.asarray(given.array if isinstance(given, Constant) else given)
    text = base64.b64encode(np.ascontiguousarray(array).tobytes()).decode()
    return Tensor(str(array.dtype), array.shape, {"base64": text}, constant=isinstance(given, Constant))


def shown(*shapes: Sequence[int]) -> str:
    """Return shapes as names of cases show them."""
    return " ".join("x".join(map(str, shape)) or "scalar" for shape in shapes)
