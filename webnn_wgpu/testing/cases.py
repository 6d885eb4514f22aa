"""The WebNN conformance case format: loading, decoding, and building a case's graph through a graph builder."""

from __future__ import annotations

import base64
import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

import numpy as np
import numpy.typing as npt

from webnn_wgpu.accuracy.distance import Metric, Mismatch, compare
from webnn_wgpu.core.data_types import numpy_dtype
from webnn_wgpu.core.names import snake_case

if TYPE_CHECKING:
    from pathlib import Path

# Strings that stand for numbers without JSON notation. An integer may have the suffix of a JavaScript BigInt.
_SPECIAL_FLOATS = {"Infinity": math.inf, "-Infinity": -math.inf, "NaN": math.nan, "-0": -0.0}
_INTEGER = re.compile(r"-?[0-9]+n?")


Item: TypeAlias = int | float | str
"""One element: a JSON number, or a string for a number that JSON cannot write."""

Argument: TypeAlias = "Ref | int | float | str | list[Argument]"
"""An operand or a literal (a flag is an int here), or a list of them."""


class GraphBuilder(Protocol):
    """The methods of a builder besides its operator methods, which are called by their Python names."""

    def input(self, name: str, descriptor: Mapping[str, Any], /) -> Any:
        """Declare a graph input, and return its operand.

        Args:
            name: the name of the input.
            descriptor: a mapping with `dataType` and `shape`.
        """
        ...

    def constant(self, descriptor: Mapping[str, Any], data: npt.NDArray[Any], /) -> Any:
        """Add a constant, and return its operand.

        Args:
            descriptor: a mapping with `dataType` and `shape`.
            data: the elements.
        """
        ...


@dataclass(frozen=True)
class Ref:
    """An operand of a case, by name."""

    name: str


@dataclass(frozen=True)
class Tensor:
    """Values of an input, a constant or an expected output, still as the file has them.

    Attributes:
        data_type: WebNN data type, such as `"float32"`.
        shape: Dimensions. Empty for a scalar.
        data: Flat list of items, one scalar item, or `{"base64": text}`.
        constant: Whether the values are a constant of the graph instead of an input.
    """

    data_type: str
    shape: tuple[int, ...]
    data: Item | list[Item] | Mapping[str, str]
    constant: bool = False

    @property
    def descriptor(self) -> dict[str, Any]:
        """The WebNN operand descriptor: `{"dataType": ..., "shape": [...]}`."""
        return {"dataType": self.data_type, "shape": list(self.shape)}

    @property
    def byte_length(self) -> int:
        """Size of the values in bytes."""
        return math.prod(self.shape) * numpy_dtype(self.data_type).itemsize

    def array(self) -> npt.NDArray[Any]:
        """Decode the values.

        Returns:
            Read-only array of the tensor's data type and shape.

        Raises:
            KeyError: The data type is none of the specification's.
            ValueError: The number of items is not that of the shape, or an item is no number of the data type.

        Numerics:
            Decimal numbers are rounded to nearest even. Beyond the range of the data type they become infinite.

        Example:
            >>> Tensor("int64", (2,), ["9223372036854775807n", -1]).array()
            array([9223372036854775807,                  -1])
            >>> Tensor("float16", (1, 3), "-Infinity").array()
            array([[-inf, -inf, -inf]], dtype=float16)
        """
        dtype, size = numpy_dtype(self.data_type), math.prod(self.shape)
        if isinstance(self.data, Mapping):
            flat = np.frombuffer(base64.b64decode(self.data["base64"], validate=True), dtype.newbyteorder("<"))
        elif isinstance(self.data, list):
            flat = _numbers(self.data, dtype)
        else:
            flat = np.full(size, _numbers([self.data], dtype)[0])
        if flat.size != size:
            raise ValueError(f"a tensor of shape {list(self.shape)} has {size} elements, its data has {flat.size}")
        array = flat.reshape(self.shape).astype(dtype, copy=False)
        array.flags.writeable = False
        return array


@dataclass(frozen=True)
class Call:
    """One call of an operator method.

    Attributes:
        operator: Name in the specification's spelling (`"averagePool2d"`).
        arguments: Positional arguments in order, with the parameter's name: a `Ref`, a list of `Ref`, or a literal.
        options: Members of the options dictionary in the specification's spelling, with values of the same kinds.
        outputs: Name of the result, or a tuple of names for an operator that returns a list.
    """

    operator: str
    arguments: tuple[tuple[str, Argument], ...]
    options: Mapping[str, Argument]
    outputs: str | tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class Case:
    """A graph with inputs, expected outputs and the tolerance they are compared under.

    Attributes:
        operator: Python name of the operator that the case starts with, which is the stem of its file.
        name: Name that is unique in the file.
        source: Origin of the numbers.
        inputs: Inputs and constants by operand name.
        calls: Operator calls in order.
        expected: Expected outputs by operand name.
        metric: `"ULP"` or `"ATOL"`.
        tolerance: Largest permitted distance of an element, in the unit of the metric.
    """

    operator: str
    name: str
    source: str
    inputs: Mapping[str, Tensor]
    calls: tuple[Call, ...]
    expected: Mapping[str, Tensor]
    metric: Metric
    tolerance: float

    def mismatches(self, results: Mapping[str, npt.NDArray[Any]]) -> dict[str, Mismatch]:
        """Compare results with the expected outputs.

        Args:
            results: An array for every name in `expected`. Other names are ignored.

        Returns:
            The outputs that are out of tolerance, with the reason. Empty if the case passes.

        Raises:
            KeyError: An expected output has no result.
        """
        found = {
            name: compare(results[name], tensor.array(), self.metric, self.tolerance) for name, tensor in self.expected.items()
        }
        return {name: mismatch for name, mismatch in found.items() if mismatch is not None}

    def unsupported(self, limits: Mapping[str, Any], *, constants_as_inputs: bool = False) -> str | None:
        """Say why a context cannot run this case.

        Args:
            limits: The result of the context's `op_support_limits()`.
            constants_as_inputs: Whether to judge the graph that `build_case` makes with the same flag.

        Returns:
            None if the operators, and the data types, ranks and byte lengths of all inputs and expected outputs, are within the
            limits. Otherwise one sentence with the first violation.
        """
        longest = limits["maxTensorByteLength"]
        for name, tensor in (*self.inputs.items(), *self.expected.items()):
            if tensor.byte_length > longest:
                return f"{name} has {tensor.byte_length} bytes, a tensor may have {longest}"
        for tensor, member, allowed in self._limited(limits, constants_as_inputs):
            if allowed is None:
                return f"{member} is not supported"
            if tensor.data_type not in allowed["dataTypes"]:
                return f"{member} does not take {tensor.data_type}"
            low, high = allowed["rankRange"]["min"], allowed["rankRange"]["max"]
            if not low <= len(tensor.shape) <= high:
                return f"{member} takes rank {low} to {high}, not {len(tensor.shape)}"
        return None

    def _limited(
        self, limits: Mapping[str, Any], constants_as_inputs: bool
    ) -> Iterator[tuple[Tensor, str, Mapping[str, Any] | None]]:
        for tensor in self.inputs.values():
            member = "constant" if tensor.constant and not constants_as_inputs else "input"
            yield tensor, member, limits[member]
        for tensor in self.expected.values():
            yield tensor, "output", limits["output"]
        for call in self.calls:
            members: Mapping[str, Any] = limits.get(call.operator, {})
            for parameter, value in (*call.arguments, *call.options.items()):
                for ref in _refs(value):
                    if ref.name in self.inputs:
                        yield self.inputs[ref.name], f"{call.operator}.{parameter}", members.get(parameter)
            for position, name in enumerate([call.outputs] if isinstance(call.outputs, str) else call.outputs):
                if name in self.expected:
                    result = next((m for m in ("output", "outputs", f"output{position}") if m in members), "output")
                    yield self.expected[name], f"{call.operator}.{result}", members.get(result)


@dataclass(frozen=True)
class BuiltCase:
    """A case's graph, ready for `builder.build(outputs)` and a run with `feeds`.

    Attributes:
        outputs: Operand of every expected output by name.
        feeds: Array of every graph input by name.
    """

    outputs: dict[str, Any]
    feeds: dict[str, npt.NDArray[Any]]


def load_cases(path: Path) -> tuple[Case, ...]:
    """Load the cases of one file.

    Args:
        path: File of the conformance format, whose stem names the operator.

    Returns:
        The cases in the order of the file. Their tensors are decoded when asked for.

    Raises:
        ValueError: No call of a case makes an output it expects.
        KeyError: A required member of a case is missing.
        OSError: The file cannot be read.

    Example:
        >>> import json
        >>> from pathlib import Path
        >>> vector = {"dataType": "float32", "shape": [2]}
        >>> call = {"name": "neg", "arguments": [{"input": "x"}], "outputs": "y"}
        >>> ends = {"inputs": {"x": {"data": [1, -2], "descriptor": vector}}}
        >>> ends["expectedOutputs"] = {"y": {"data": [-1, 2], "descriptor": vector}}
        >>> entry = {"name": "neg of a vector", "source": "by hand", "tolerance": {"metric": "ULP", "value": 0}}
        >>> text = json.dumps({"tests": [{**entry, "graph": {**ends, "operators": [call]}}]})
        >>> _ = Path("neg.json").write_text(text)
        >>> (case,) = load_cases(Path("neg.json"))
        >>> case.operator, case.name, case.calls[0].operator
        ('neg', 'neg of a vector', 'neg')
    """
    with path.open(encoding="utf-8") as file:
        return tuple(_case(path.stem, entry) for entry in json.load(file)["tests"])


def build_case(builder: GraphBuilder, case: Case, *, constants_as_inputs: bool = False) -> BuiltCase:
    """Call a builder as a case describes.

    Operands and literals are passed positionally, options as keywords, all under their Python names.

    Args:
        builder: A fresh graph builder.
        case: The case to build.
        constants_as_inputs: Whether the case's constants become graph inputs, so that the build knows no values.

    Returns:
        The operands to build the graph for, and the arrays to feed it with.

    Raises:
        ValueError: An operator returned a list instead of one operand, one operand instead of a list, or a list of another
            length.

    Example:
        >>> inputs, expected = {"x": Tensor("float32", (2,), [1, -2])}, {"y": Tensor("float32", (2,), [-1, 2])}
        >>> calls = (Call("neg", (("input", Ref("x")),), {}, "y"),)
        >>> case = Case(
        ...     operator="neg",
        ...     name="a vector",
        ...     source="by hand",
        ...     inputs=inputs,
        ...     calls=calls,
        ...     expected=expected,
        ...     metric="ULP",
        ...     tolerance=0,
        ... )
        >>> builder = wn.MLGraphBuilder(context)
        >>> built = build_case(builder, case)
        >>> case.mismatches(context.compute(builder.build(built.outputs), built.feeds))
        {}

    Spec: https://www.w3.org/TR/webnn/#api-mlgraphbuilder
    """
    operands: dict[str, Any] = {}
    feeds: dict[str, npt.NDArray[Any]] = {}
    for name, tensor in case.inputs.items():
        if tensor.constant and not constants_as_inputs:
            operands[name] = builder.constant(tensor.descriptor, tensor.array())
        else:
            operands[name] = builder.input(name, tensor.descriptor)
            feeds[name] = tensor.array()
    for call in case.calls:
        method = getattr(builder, snake_case(call.operator))
        positional = [_resolve(value, operands) for _, value in call.arguments]
        options = {snake_case(option): _resolve(value, operands) for option, value in call.options.items()}
        result: Any = method(*positional, **options)
        if isinstance(call.outputs, str) != (not isinstance(result, list | tuple)):
            raise ValueError(f"{case.name}: {call.operator} returned {type(result).__name__} for {call.outputs!r}")
        if isinstance(call.outputs, str):
            operands[call.outputs] = result
        else:
            operands.update(zip(call.outputs, result, strict=True))
    return BuiltCase({name: operands[name] for name in case.expected}, feeds)


def _case(operator: str, entry: Mapping[str, Any]) -> Case:
    graph, tolerance = entry["graph"], entry["tolerance"]
    inputs = {name: _tensor(item) for name, item in graph["inputs"].items()}
    expected = {name: _tensor(item) for name, item in graph["expectedOutputs"].items()}
    known, made = set(inputs), set[str]()
    calls: list[Call] = []
    for item in graph["operators"]:
        call = _call(item, known)
        made.update([call.outputs] if isinstance(call.outputs, str) else call.outputs)
        known |= made
        calls.append(call)
    if not expected.keys() <= made:
        raise ValueError(f"{entry['name']}: no operator makes {sorted(expected.keys() - made)}")
    return Case(
        operator=operator,
        name=entry["name"],
        source=entry["source"],
        inputs=inputs,
        calls=tuple(calls),
        expected=expected,
        metric=tolerance["metric"],
        tolerance=tolerance["value"],
    )


def _tensor(item: Mapping[str, Any]) -> Tensor:
    descriptor = item["descriptor"]
    return Tensor(descriptor["dataType"], tuple(descriptor["shape"]), item["data"], item.get("constant", False))


def _call(item: Mapping[str, Any], known: set[str]) -> Call:
    arguments: list[tuple[str, Argument]] = []
    options: dict[str, Argument] = {}
    for argument in item["arguments"]:
        ((parameter, value),) = argument.items()
        if parameter == "options":
            options = {option: _argument(member, known) for option, member in value.items()}
        else:
            arguments.append((parameter, _argument(value, known)))
    outputs = item["outputs"]
    return Call(item["name"], tuple(arguments), options, outputs if isinstance(outputs, str) else tuple(outputs))


def _argument(value: Item | list[Any], known: set[str]) -> Argument:
    if isinstance(value, list):
        return [_argument(item, known) for item in value]
    if not isinstance(value, str):
        return value
    return Ref(value) if value in known else _literal(value)


def _literal(text: str) -> str | float | int:
    if text in _SPECIAL_FLOATS:
        return _SPECIAL_FLOATS[text]
    return int(text.removesuffix("n")) if _INTEGER.fullmatch(text) else text


def _refs(value: Argument) -> list[Ref]:
    if isinstance(value, list):
        return [ref for item in value for ref in _refs(item)]
    return [value] if isinstance(value, Ref) else []


def _resolve(value: Argument, operands: Mapping[str, Any]) -> Any:
    if isinstance(value, list):
        return [_resolve(item, operands) for item in value]
    return operands[value.name] if isinstance(value, Ref) else value


def _numbers(items: Sequence[Item], dtype: np.dtype[Any]) -> npt.NDArray[Any]:
    values = [_literal(item) if isinstance(item, str) else item for item in items]
    for value in values:
        if isinstance(value, str):
            raise ValueError(f"{value!r} is not a number")
        if dtype.kind in "iu" and not float(value).is_integer():
            raise ValueError(f"{value!r} is not an integer")
    if dtype.kind in "iu":
        integers = [int(value) for value in values]
        low, high = np.iinfo(dtype).min, np.iinfo(dtype).max
        if not all(low <= value <= high for value in integers):
            raise ValueError(f"an integer is out of the range of {dtype.name}, {low} to {high}")
        return np.array(integers, dtype)
    with np.errstate(over="ignore"):
        return np.array([float(value) for value in values], np.float64).astype(dtype)
