"""Every rule of the specification's operators is enforced: for each there are calls that break it and nothing else."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

import webnn_wgpu as wn
from tests.specification import operators
from webnn_wgpu.core.data_types import MAX_DIMENSION

from . import rules_windows as _entered_on_import
from .calls import ABSENT, ALIASES, BASES, PRESENT, Operand, Workplace, changed
from .refusals import blames, refusal, shown
from .rules import OWNERSHIP, STATE, WRITTEN, broken, foreign_activations, foreign_operands

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

assert _entered_on_import.CONVOLUTIONS

RULES = 642
"""How many rules the table of operators has."""

UNBREAKABLE = {
    "input.shape[axis] <= max value of outputDataType": "no dimension is greater than the largest int32",
    "constant index values < axis size": "the draft has replaced it: indices are clamped when the graph runs",
}
"""Rules that no call can break, and why; a test for each shows it."""


@pytest.fixture(scope="module")
def reference() -> Iterator[wn.MLContext]:
    with wn.ml.create_context(backend="reference") as context:
        yield context


@pytest.fixture(scope="module")
def table() -> Mapping[str, Mapping[str, Any]]:
    return operators()


def ordinary(entry: Mapping[str, Any]) -> list[str]:
    """Rules on what is passed, other than to whom it belongs."""
    rules = [check["rule"] for check in entry["checks"]]
    return [r for r in rules if not STATE.search(r) and not OWNERSHIP.search(r) and r not in UNBREAKABLE]


# completeness -----------------------------------------------------------------------------------------------------------


def test_there_is_a_valid_call_of_every_operator(table: Mapping[str, Mapping[str, Any]]) -> None:
    assert set(BASES) == set(table)
    for name, entry in table.items():
        parameters = {p["python"] for p in (*entry["operands"], *entry["args"])}
        required = {o["python"] for o in entry["operands"] if o["required"]}
        options = {o["python"] for o in entry["options"]}
        assert required <= set(BASES[name]) <= parameters | options


def test_every_operator_is_there(table: Mapping[str, Mapping[str, Any]]) -> None:
    assert set(table) == set(PRESENT)


def test_every_rule_has_a_call_that_breaks_it(table: Mapping[str, Mapping[str, Any]]) -> None:
    rules = [(name, check["rule"]) for name, entry in table.items() for check in entry["checks"]]
    assert len(rules) == RULES
    assert {e["error"] for entry in table.values() for e in entry["checks"] if not STATE.search(e["rule"])} == {"TypeError"}
    without = [(name, rule) for name, entry in table.items() for rule in ordinary(entry) if not broken(entry, rule)]
    assert without == []
    owned = {name for name, rule in rules if OWNERSHIP.search(rule)}
    assert [n for n in owned if not foreign_operands(n)] == []
    activated = {name for name, rule in rules if OWNERSHIP.search(rule) and "activation" in rule}
    assert [n for n in activated if not foreign_activations(n)] == []


def test_every_written_call_is_for_a_rule(table: Mapping[str, Mapping[str, Any]]) -> None:
    assert {key for key in WRITTEN if key[1] not in ordinary(table[key[0]])} == set()


# valid calls, and those with one rule broken -------------------------------------------------------------------------------


@pytest.mark.parametrize("op", PRESENT)
def test_the_valid_call_is_accepted(reference: wn.MLContext, op: str) -> None:
    place = Workplace(reference)
    made = place.call(op, **place.values(BASES[op]))
    outputs = made if isinstance(made, list) else [made]
    graph = place.builder.build({f"y{i}": y for i, y in enumerate(outputs)})
    assert set(graph.outputs) == {f"y{i}" for i in range(len(outputs))}


@pytest.mark.parametrize("op", PRESENT)
def test_calls_that_break_a_rule_are_refused(reference: wn.MLContext, table: Mapping[str, Mapping[str, Any]], op: str) -> None:
    place, entry = Workplace(reference), table[op]
    problems: list[str] = []
    for rule in ordinary(entry):
        for changes in broken(entry, rule):
            arguments = changed(op, changes)
            message, problem = refusal(place, op, (), place.values(arguments))
            if not problem and not blames(message, changes, arguments):
                problem = f"does not say what is wrong: {message}"
            if problem:
                problems.append(f"{rule} with {changes}: {problem}")
    assert problems == []
    # The builder is as it was: the valid call still makes a graph.
    made = place.call(op, **place.values(BASES[op]))
    place.builder.build({"y": made[0] if isinstance(made, list) else made})


@pytest.mark.parametrize("op", PRESENT)
def test_operands_of_another_builder_are_refused(reference: wn.MLContext, op: str) -> None:
    place = Workplace(reference)
    problems: list[str] = []
    for changes in (*foreign_operands(op), *foreign_activations(op)):
        message, problem = refusal(place, op, (), place.values(changed(op, changes)))
        problem = problem or ("" if "belong" in message else f"is refused for something else: {message}")
        (given,) = changes.values()
        stranger = given if not isinstance(given, list) else next(g for g in given if getattr(g, "foreign", False))
        problems += [f"{changes}: {problem or message}"] if problem or not shown(message, stranger) else []
    assert problems == []


# the builder's state ------------------------------------------------------------------------------------------------------


def has_state_rule(entry: Mapping[str, Any]) -> bool:
    return any(STATE.search(check["rule"]) for check in entry["checks"])


@pytest.mark.parametrize("lost", [False, True], ids=["built", "lost"])
def test_builders_that_can_no_longer_build_refuse_every_operator(table: Mapping[str, Mapping[str, Any]], lost: bool) -> None:
    assert [name for name, entry in table.items() if not has_state_rule(entry)] == sorted(ALIASES)
    with wn.ml.create_context(backend="reference") as context:
        place = Workplace(context)
        calls = {op: place.values({n: v for n, v in BASES[op].items() if "activation" not in n}) for op in PRESENT}
        if lost:
            context.destroy()
        else:
            place.builder.build({"y": place.builder.relu(place.value(Operand("float32[2, 3]")))})
        problems = [
            f"{op}: {problem}"
            for op, keywords in calls.items()
            if (problem := refusal(place, op, (), keywords, wn.InvalidStateError)[1])
        ]
    assert problems == []


# rules that no call can break ---------------------------------------------------------------------------------------------


def test_no_dimension_is_greater_than_the_largest_index(reference: wn.MLContext) -> None:
    assert MAX_DIMENSION == 2**31 - 1
    builder = wn.MLGraphBuilder(reference)
    with pytest.raises(wn.MLTypeError, match="2147483648"):
        builder.input("x", {"dataType": "uint8", "shape": [2**31]})
    x = builder.input("x", {"dataType": "uint8", "shape": [2**31 - 1]})
    assert builder.arg_max(x, 0, output_data_type="int32").data_type == "int32"


def test_constant_indices_are_clamped(reference: wn.MLContext) -> None:
    place = Workplace(reference)
    indices = place.builder.constant({"dataType": "int32", "shape": [4]}, [0, 2, 3, -9])
    made = place.call("gather", **{**place.values(changed("gather", {"indices": ABSENT})), "indices": indices})
    result = reference.compute(place.builder.build({"y": made}), {"i0": [[1, 2, 3], [4, 5, 6]]})
    assert result["y"].tolist() == [[1, 3, 3, 1], [4, 6, 6, 4]]
