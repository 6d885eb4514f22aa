"""The operator methods' signatures and documentation, against the specification."""

from __future__ import annotations

import inspect
import re
from typing import Any

import pytest

from tests.specification import operators
from webnn_wgpu.api.operators import Operators
from webnn_wgpu.core.data_types import ANY, CONSTANT_TYPES
from webnn_wgpu.core.errors import SPEC_URL
from webnn_wgpu.core.names import snake_case
from webnn_wgpu.ops import OPS

# Where our signatures go beyond the specification's or join its two versions.
EXTRA = {"hard_swish": {"alpha": 1 / 6, "beta": 0.5}}
POSITIONAL_OPTIONS = {"triangular": ("upper", "diagonal")}
OPTIONAL_ARGUMENTS = {"pad": ("ending_padding",)}


def wanted_signature(entry: dict[str, Any]) -> inspect.Signature:
    """The signature that the table of operators writes for Python."""
    calls = entry["python_call"]
    text = entry.get("python_unified", calls.get("2026", calls.get("2024"))).split(" - ")[0]
    namespace: dict[str, Any] = {}
    exec(f"def {text}: pass", namespace)
    return inspect.signature(namespace[text.split("(")[0]])


def signature_problems(entry: dict[str, Any]) -> list[str]:
    name = entry["python"]
    method = getattr(Operators, name, None)
    if method is None:
        return [f"{name}: no such method"]
    empty = inspect.Parameter.empty
    ours = {n: p for n, p in inspect.signature(method).parameters.items() if n != "self"}
    wanted = wanted_signature(entry).parameters
    problems: list[str] = []
    # The options as one dictionary, which stand behind the arguments.
    if ours.pop("options").kind is not inspect.Parameter.POSITIONAL_OR_KEYWORD:
        problems.append(f"{name}: the dictionary of options cannot be given by position")
    positional = [n for n, p in wanted.items() if p.kind is p.POSITIONAL_OR_KEYWORD] + [*POSITIONAL_OPTIONS.get(name, ())]
    if (found := [n for n, p in ours.items() if p.kind is p.POSITIONAL_OR_KEYWORD]) != positional:
        problems.append(f"{name}: positional {found}, not {positional}")
    defaults = {n: p.default for n, p in wanted.items()} | EXTRA.get(name, {}) | {"label": ""}
    defaults |= dict.fromkeys(OPTIONAL_ARGUMENTS.get(name, ()))
    # The 2024 text's options that the draft has dropped.
    unified = "python_unified" in entry
    defaults |= {
        o["python"]: o["default"]
        for o in entry["options"]
        if o["python"] not in defaults and not (unified and o["python"] == "axes")
    }
    if set(ours) != set(defaults):
        problems.append(f"{name}: parameters {sorted(ours)}, not {sorted(defaults)}")
    for parameter, listed in defaults.items():
        default = tuple(listed) if isinstance(listed, list) else listed
        found = ours[parameter].default if parameter in ours else None
        if found != default or (found is empty) != (default is empty):
            problems.append(f"{name}: {parameter}={found!r}, not {default!r}")
    return problems


# signatures and documentation -------------------------------------------------------------------------------------------


def test_every_operator_of_the_specification_has_its_method() -> None:
    entries = operators().values()
    names = {entry["name"] for entry in entries}
    assert {n for n in names - {"not"} if n not in OPS} == set()
    problems = [p for entry in entries for p in signature_problems(entry)]
    assert problems == []


def test_signatures_agree_with_the_operator_definitions() -> None:
    problems: list[str] = []
    for entry in operators().values():
        if entry["name"] not in OPS:
            continue
        op = OPS[entry["name"]]
        ours = inspect.signature(getattr(Operators, op.python_name)).parameters
        for attr in op.attrs:
            default = ours[attr.name].default
            if default is not inspect.Parameter.empty and attr.default != default and default is not None:
                problems.append(f"{op.name}: {attr.name}={default!r}, but {attr.default!r} in its definition")
    assert problems == []


def public_methods() -> dict[str, Any]:
    return {n: m for n, m in inspect.getmembers(Operators, inspect.isfunction) if not n.startswith("_")}


@pytest.mark.parametrize("name", sorted(public_methods()))
def test_documentation_is_complete(name: str) -> None:
    method = public_methods()[name]
    text = inspect.getdoc(method) or ""
    for part in ("Args:", "Returns:", "Raises:", "Example:", ">>> ", "Spec: https://www.w3.org/TR/webnn/#api-mlgraphbuilder"):
        assert part in text
    for parameter in inspect.signature(method).parameters:
        if parameter != "self":
            assert f"\n    {parameter}: " in text


def test_documented_data_types_are_those_that_are_checked() -> None:
    problems: list[str] = []
    for op in OPS.values():
        if not hasattr(Operators, op.python_name):
            continue
        lines = (inspect.getdoc(getattr(Operators, op.python_name)) or "").splitlines()
        for operand in op.operands:
            if operand.same_as:
                continue
            line = next(text for text in lines if text.startswith(f"    {snake_case(operand.name)}: "))
            named = {t for t in CONSTANT_TYPES if t in re.findall(r"\w+", line)}
            if named != (set() if operand.data_types == ANY else set(operand.data_types)):
                problems.append(f"{op.name}: {line.strip()!r}, but {operand.data_types}")
    assert problems == []


def test_documented_sections_are_those_of_the_specification() -> None:
    problems: list[str] = []
    for entry in operators().values():
        anchor = re.search(r"\((#.*)\)", entry["spec_section"].get("2026", ""))
        if not anchor:
            continue
        if f"{SPEC_URL}{anchor[1]}\n" not in f"{inspect.getdoc(getattr(Operators, entry['python']))}\n":
            problems.append(f"{entry['name']}: {anchor[1]}")
    assert problems == []
