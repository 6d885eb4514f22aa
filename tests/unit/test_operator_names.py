"""Rooms that work on any operator ask its interfaces: they do not compare its name with a string."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from webnn_wgpu.ops import OPS

PACKAGE = Path(__file__).resolve().parents[2] / "webnn_wgpu"
ROOMS = (
    "accuracy",
    "core",
    "debug",
    "display",
    "inspection",
    "ir",
    "kernels",
    "passes",
    "plan",
    "reference",
    "runtime",
    "testing",
)
"""All rooms but those that declare operators, and frontends and exporters, which translate names."""

RULES = {
    f"passes/{name}.py"
    for name in (
        *(
            "attention",
            "casts",
            "channels",
            "convolution",
            "gelu",
            "normalization",
            "numbers",
            "patterns",
            "quantized",
            "rotary",
            "scores",
        ),
    )
}
"""Rules are patterns of operators, which they name."""

OTHER_WORDS = {
    "debug/values.py": {"max", "min"},  # headings of a table
    "debug/wgsl/functions.py": {
        # Functions of WGSL.
        *("abs", "ceil", "clamp", "cos", "exp", "floor", "log", "max", "min", "pow", "sign", "sin", "sqrt", "tan", "tanh"),
        "transpose",
    },
    "inspection/plots.py": {"log"},  # a scale of an axis
    "plan/sharing.py": {"clamp"},  # a file of the WGSL library
    "testing/cases.py": {"max", "min"},  # keys of a range
}
"""Strings that happen to be names of operators and mean something else, by file."""


def names_in(source: str) -> set[str]:
    """Return the operators whose names are string literals of a source."""
    found = (node.value for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Constant))
    return {value for value in found if isinstance(value, str) and value in OPS}


FILES = {str(path.relative_to(PACKAGE)): path for room in ROOMS for path in sorted((PACKAGE / room).rglob("*.py"))}


@pytest.mark.parametrize("file", FILES)
def test_no_operator_is_named_outside_rules(file: str) -> None:
    if file not in RULES:
        assert names_in(FILES[file].read_text(encoding="utf-8")) == OTHER_WORDS.get(file, set())


def test_exceptions_are_of_files() -> None:
    assert set(OTHER_WORDS) | RULES <= set(FILES)


def test_names_are_found() -> None:
    assert names_in('if node.op in ("conv2d", "gemm") or node.op == "other": made("x.top_k")') == {"conv2d", "gemm", "x.top_k"}
