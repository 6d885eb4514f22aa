"""The conformance format: decoding of data, the Python spelling of names, and how a case drives a builder."""

from __future__ import annotations

import base64
import json
from collections import defaultdict
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from tests.conformance import sources
from tests.specification import operators
from webnn_wgpu.core.data_types import ANY, DATA_TYPES
from webnn_wgpu.core.names import snake_case
from webnn_wgpu.ops import OPS
from webnn_wgpu.testing import Ref, Tensor, build_case, load_cases

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from webnn_wgpu.testing import Call, Case


class Recorder:
    """Stands in for a builder: operands are strings, operator calls are recorded."""

    def __init__(self, results: dict[str, Any] | None = None) -> None:
        self.calls: list[tuple[str, tuple[Any, ...], dict[str, Any]]] = []
        self.constants: dict[str, np.ndarray[Any, Any]] = {}
        self.inputs: dict[str, Any] = {}
        self._results = results or {}

    def input(self, name: str, descriptor: Any) -> str:
        self.inputs[name] = descriptor
        return f"input {name}"

    def constant(self, descriptor: Any, data: np.ndarray[Any, Any]) -> str:
        assert list(data.shape) == descriptor["shape"]
        name = f"constant {len(self.constants)}"
        self.constants[name] = data
        return name

    def __getattr__(self, name: str) -> Callable[..., Any]:
        def method(*arguments: Any, **options: Any) -> Any:
            self.calls.append((name, arguments, options))
            return self._results.get(name, f"result of {name}")

        return method


def tensor(data: Any, shape: list[int], data_type: str = "float32", **more: Any) -> dict[str, Any]:
    return {"data": data, "descriptor": {"shape": shape, "dataType": data_type}, **more}


@pytest.fixture
def load(tmp_path: Path) -> Callable[..., Case]:
    def load(inputs: Any, operators: list[Any], expected: Any) -> Case:
        graph = {"inputs": inputs, "operators": operators, "expectedOutputs": expected}
        entry = {"name": "a case", "source": "here", "graph": graph, "tolerance": {"metric": "ULP", "value": 1}}
        path = tmp_path / "add.json"
        path.write_text(json.dumps({"operator": "add", "tests": [entry]}), encoding="utf-8")
        (case,) = load_cases(path)
        return case

    return load


@pytest.mark.parametrize(
    ("data_type", "data", "values"),
    [
        ("float32", [1, 0.1, -2.5], [1, np.float32(0.1), -2.5]),
        ("float32", ["Infinity", "-Infinity", "NaN"], [np.inf, -np.inf, np.nan]),
        ("float32", 0.5, [0.5, 0.5, 0.5]),
        ("float32", "NaN", [np.nan] * 3),
        ("float16", [0.1, 65519, 65520], [np.float16(0.1), 65504, np.inf]),
        ("int64", ["9223372036854775807n", "-9223372036854775808n", "42"], [2**63 - 1, -(2**63), 42]),
        ("uint64", "18446744073709551615n", [2**64 - 1] * 3),
        ("int8", [-128, 127, 3.0], [-128, 127, 3]),
        ("uint8", [0, 255, "7"], [0, 255, 7]),
        ("int32", {"base64": base64.b64encode(np.array([1, -2, 3], "<i4").tobytes()).decode()}, [1, -2, 3]),
        ("float16", {"base64": base64.b64encode(np.array([1, -2, 0.1], "<f2").tobytes()).decode()}, [1, -2, 0.1]),
    ],
)
def test_data_decodes_to_the_bits_it_stands_for(data_type: str, data: Any, values: list[Any]) -> None:
    array = Tensor(data_type, (3, 1), data).array()
    assert array.dtype == np.dtype(data_type)
    assert not array.flags.writeable
    np.testing.assert_array_equal(array, np.array(values, data_type).reshape(3, 1))


@pytest.mark.parametrize("zero", ["-0", -0.0])
def test_negative_zero_keeps_its_sign(zero: Any) -> None:
    assert np.signbit(Tensor("float32", (2,), [zero, 0]).array()).tolist() == [True, False]


@pytest.mark.parametrize(
    ("data_type", "data", "message"),
    [
        ("float32", [1, 2], r"^a tensor of shape \[3\] has 3 elements, its data has 2$"),
        ("float32", {"base64": "AACAPw=="}, r"^a tensor of shape \[3\] has 3 elements, its data has 1$"),
        ("float32", [1, 2, "three"], "^'three' is not a number$"),
        ("int32", [1, 2, 2.5], r"^2\.5 is not an integer$"),
        ("int32", [1, 2, "Infinity"], "^inf is not an integer$"),
        ("uint8", [1, 2, 256], "^an integer is out of the range of uint8, 0 to 255$"),
        ("uint64", [1, 2, "-1n"], "^an integer is out of the range of uint64, "),
    ],
)
def test_data_that_does_not_fit_is_refused(data_type: str, data: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Tensor(data_type, (3,), data).array()


def test_a_case_calls_the_builder_with_positional_operands_and_keyword_options(load: Callable[..., Case]) -> None:
    case = load(
        {"x": tensor([1, 2], [2]), "w": tensor(3, [], constant=True), "s": tensor(4, [2], constant=True)},
        [
            {"name": "concat", "arguments": [{"inputs": ["x", "s"]}, {"axis": 0}], "outputs": "joined"},
            {
                "name": "clamp",
                "arguments": [
                    {"input": "joined"},
                    {"options": {"minValue": "-Infinity", "maxValue": "9007199254740993n"}},
                ],
                "outputs": "bounded",
            },
            {
                "name": "gemm",
                "arguments": [{"a": "bounded"}, {"b": "x"}, {"options": {"c": "w", "aTranspose": True}}],
                "outputs": "y",
            },
            {
                "name": "split",
                "arguments": [{"input": "y"}, {"splits": [1, 1]}, {"options": {"axis": 1}}],
                "outputs": ["left", "right"],
            },
        ],
        {"right": tensor([0], [1])},
    )
    recorder = Recorder({"split": ["first", "second"]})
    built = build_case(recorder, case)
    assert recorder.calls == [
        ("concat", (["input x", "constant 1"], 0), {}),
        ("clamp", ("result of concat",), {"min_value": -np.inf, "max_value": 2**53 + 1}),
        ("gemm", ("result of clamp", "input x"), {"c": "constant 0", "a_transpose": True}),
        ("split", ("result of gemm", [1, 1]), {"axis": 1}),
    ]
    assert recorder.inputs == {"x": {"dataType": "float32", "shape": [2]}}
    constants = {name: value.tolist() for name, value in recorder.constants.items()}
    assert constants == {"constant 0": 3, "constant 1": [4, 4]}
    assert built.outputs == {"right": "second"}
    assert {name: value.tolist() for name, value in built.feeds.items()} == {"x": [1, 2]}

    recorder = Recorder({"split": ["first", "second"]})
    built = build_case(recorder, case, constants_as_inputs=True)
    assert recorder.constants == {}
    assert {name: value.tolist() for name, value in built.feeds.items()} == {"x": [1, 2], "w": 3, "s": [4, 4]}


@pytest.mark.parametrize(
    ("outputs", "result", "message"),
    [
        ("y", ["a", "b"], "^a case: split returned list for 'y'$"),
        (["y"], "a", r"^a case: split returned str for \('y',\)$"),
        (["y", "z"], ["a"], "shorter"),
    ],
)
def test_results_of_another_number_are_refused(load: Callable[..., Case], outputs: Any, result: Any, message: str) -> None:
    call = {"name": "split", "arguments": [{"input": "x"}], "outputs": outputs}
    case = load({"x": tensor(0, [1])}, [call], {"y": tensor(0, [1])})
    with pytest.raises(ValueError, match=message):
        build_case(Recorder({"split": result}), case)


def test_an_expected_output_that_nothing_makes_is_refused(load: Callable[..., Case]) -> None:
    call = {"name": "relu", "arguments": [{"input": "x"}], "outputs": "y"}
    with pytest.raises(ValueError, match=r"^a case: no operator makes \['z'\]$"):
        load({"x": tensor(0, [1])}, [call], {"z": tensor(0, [1])})


def test_mismatches_names_outputs_out_of_tolerance(load: Callable[..., Case]) -> None:
    call = {"name": "split", "arguments": [{"input": "x"}], "outputs": ["a", "b"]}
    case = load({"x": tensor(0, [2])}, [call], {"a": tensor([1], [1]), "b": tensor([2], [1])})
    assert case.mismatches({"a": np.float32([1]), "b": np.float32([2])}) == {}
    assert list(case.mismatches({"a": np.float32([1]), "b": np.float32([3])})) == ["b"]
    with pytest.raises(KeyError):
        case.mismatches({"a": np.float32([1])})


def _limits(data_types: list[str], ranks: tuple[int, int] = (0, 8)) -> dict[str, Any]:
    return {"dataTypes": data_types, "rankRange": {"min": ranks[0], "max": ranks[1]}}


def test_unsupported_looks_at_types_and_ranks_of_everything_known(load: Callable[..., Case]) -> None:
    case = load(
        {"x": tensor(0, [2, 2], "float16"), "w": tensor(0, [2], "int64", constant=True)},
        [{"name": "gather", "arguments": [{"input": "x"}, {"indices": "w"}], "outputs": "y"}],
        {"y": tensor(0, [2, 2], "float16")},
    )
    every = _limits(list(DATA_TYPES))
    half, index = _limits(["float16"]), _limits(["int64"])
    limits: dict[str, Any] = {
        "maxTensorByteLength": 16,
        "input": half,
        "constant": index,
        "output": half,
        "gather": {"input": half, "indices": index, "output": half},
    }
    assert case.unsupported(limits) is None
    assert case.unsupported(limits, constants_as_inputs=True) == "input does not take int64"
    assert case.unsupported({**limits, "output": _limits(["float32"])}) == "output does not take float16"
    assert case.unsupported({**limits, "output": _limits(["float16"], (0, 1))}) == "output takes rank 0 to 1, not 2"
    narrow = {"input": half, "indices": _limits(["int32"]), "output": half}
    assert case.unsupported({**limits, "gather": narrow}) == "gather.indices does not take int64"
    shallow = {"input": half, "indices": every, "output": _limits(["float16"], (3, 3))}
    assert case.unsupported({**limits, "gather": shallow}) == "gather.output takes rank 3 to 3, not 2"
    assert case.unsupported({**limits, "maxTensorByteLength": 15}) == "w has 16 bytes, a tensor may have 15"
    del limits["gather"]
    assert case.unsupported(limits) == "gather.input is not supported"


def test_snake_case_is_the_spelling_of_the_operator_table() -> None:
    names = 0
    for operator in operators().values():
        for item in (operator, *operator["operands"], *operator["args"], *operator["options"]):
            assert snake_case(item["name"]) == item["python"]
            names += 1
    assert names > 500


def test_every_operator_has_cases() -> None:
    found = {case.operator for case in (*sources.file_cases(), *sources.oracle_cases())}
    # `not` is an older name of `logicalNot`.
    assert {snake_case(name) for name in operators()} - found == {"not_"}
    assert {case.operator for case in sources.all_cases()} <= {snake_case(name) for name in operators()}


def test_cases_are_drawn_the_same_way_again() -> None:
    drawn = sources.oracle_cases()
    assert drawn == sources.oracle_cases.__wrapped__()
    assert len(drawn) > 3000


def test_every_data_type_of_an_operator_has_cases() -> None:
    found: defaultdict[str, set[str]] = defaultdict(set)
    for case in (*sources.file_cases(), *sources.oracle_cases()):
        call = case.calls[0]
        given = call.arguments[0][1]
        first = given[0] if isinstance(given, list) else given
        assert isinstance(first, Ref)
        found[call.operator].add(case.inputs[first.name].data_type)
    for op in OPS.values():
        if op.name in operators():
            assert set(op.operands[0].data_types) & set(ANY) <= found[op.name], op.name


def test_every_case_fits_the_operator_table() -> None:
    names = [(case.operator, case.name) for case in sources.all_cases()]
    assert len(set(names)) == len(names)
    for case in sources.all_cases():
        for item in (*case.inputs.values(), *case.expected.values()):
            assert item.array().shape == item.shape
        assert snake_case(case.calls[0].operator) == case.operator
        read: set[str] = set()
        for call in case.calls:
            read |= _check_call(call, operators()[call.operator])
        assert set(case.inputs) <= read, f"{case.operator}: {case.name} has an unused input"


def _check_call(call: Call, operator: Mapping[str, Any]) -> set[str]:
    """Check a call's parameters against the operator's signature; return the operands it reads."""
    positional = [operand["name"] for operand in operator["operands"] if operand["passed_as"] == "positional"]
    operands = {operand["name"] for operand in operator["operands"]}
    literals = [argument["name"] for argument in operator["args"]]
    read: set[str] = set()
    for parameter, value in (*call.arguments, *call.options.items()):
        refs = [item for item in (value if isinstance(value, list) else [value]) if isinstance(item, Ref)]
        assert bool(refs) == (parameter in operands), f"{call.operator}: {parameter}"
        read |= {ref.name for ref in refs}
    given = [parameter for parameter, _ in call.arguments]
    # cast's second parameter has its older name here.
    assert [{"type": "dataType"}.get(name, name) for name in given] == (positional + literals)[: len(given)]
    assert set(call.options) <= operands | {option["name"] for option in operator["options"]}
    return read
