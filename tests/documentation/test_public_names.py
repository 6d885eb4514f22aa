"""Every public name is in the reference, and its docstring is complete by the style guide."""

from __future__ import annotations

import ast
import dataclasses
import inspect
import pkgutil
import re
import textwrap
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import webnn_wgpu as wn
from webnn_wgpu import debug, eager, onnx, testing, tfjs, tflite, train, typing
from webnn_wgpu.core.names import snake_case
from webnn_wgpu.exporters import coreml, graphviz, html, javascript, python, web
from webnn_wgpu.exporters import onnx as onnx_exporter
from webnn_wgpu.frontends import images
from webnn_wgpu.ops import OPS

if TYPE_CHECKING:
    from collections.abc import Iterator

REFERENCE = Path(__file__).resolve().parents[2] / "docs" / "reference"

SPECIFIED = {
    "ML": "create_context",
    "MLContext": "dispatch create_tensor create_constant_tensor read_tensor write_tensor op_support_limits destroy compute",
    "MLGraph": "destroy",
    "MLGraphBuilder": "input constant build",
    "MLOperand": "",
    "MLTensor": "destroy",
    "MLActivation": "",
    "MLComputeResult": "",
    "MLContextLostInfo": "",
    "MLOpSupportLimits": "",
}
"""Classes of the specification and their methods that are no operators: their docstrings name the source."""


def _names(module: Any) -> dict[str, Any]:
    """Return the public functions and classes of a module by name."""
    names = getattr(module, "__all__", None) or [n for n, v in vars(module).items() if _defined_in(v, module) and n[0] != "_"]
    values = {name: getattr(module, name) for name in names}
    return {name: value for name, value in values.items() if inspect.isclass(value) or inspect.isfunction(value)}


def _defined_in(value: Any, module: Any) -> bool:
    return getattr(value, "__module__", "") == module.__name__


def _members(owner: type) -> Iterator[tuple[str, Any]]:
    """Yield the public methods and properties of a class, those of its bases in the package included."""
    for base in owner.__mro__:
        if base.__module__.startswith("webnn_wgpu"):
            for name, value in vars(base).items():
                function = value.__func__ if isinstance(value, staticmethod | classmethod) else value
                own = not name.startswith("_") and snake_case(name) == name
                if own and (isinstance(function, property) or inspect.isfunction(function)):
                    yield name, function


PUBLIC = {
    f"{module.__name__}.{name}": value
    for module in (
        wn,
        debug,
        testing,
        train,
        eager,
        tfjs,
        tfjs.image,
        tfjs.linalg,
        tfjs.losses,
        tfjs.signal,
        tfjs.train,
        typing,
        onnx,
        tflite,
        images,
        coreml,
        graphviz,
        html,
        javascript,
        onnx_exporter,
        python,
        web,
    )
    for name, value in _names(module).items()
}
FUNCTIONS = {name: value for name, value in PUBLIC.items() if inspect.isfunction(value)}
CLASSES = {name: value for name, value in PUBLIC.items() if inspect.isclass(value)}
METHODS = {f"{owner}.{name}": value for owner, kind in CLASSES.items() for name, value in _members(kind)}
CALLED = FUNCTIONS | {name: value for name, value in METHODS.items() if not isinstance(value, property)}


def _needs_example(value: Any) -> bool:
    """Whether a function or class shows its use. Those of `tfjs` keep the names and arguments of another documentation."""
    return not value.__module__.startswith(tfjs.__name__)


def _doc(value: Any) -> str:
    return inspect.cleandoc(value.__doc__ or "")


def _parameters(function: Any) -> list[str]:
    return [name for name in inspect.signature(function).parameters if name not in ("self", "cls")]


def _is_record(kind: type) -> bool:
    """Whether programs get instances of a class from functions, whose examples show them."""
    plain = dataclasses.is_dataclass(kind) or issubclass(kind, (dict, BaseException)) or getattr(kind, "_is_protocol", False)
    return plain or kind in (debug.Stop, debug.Trace)


def test_every_public_name_is_in_the_reference():
    pages = "\n".join(page.read_text("utf-8") for page in REFERENCE.glob("*.md"))
    shown: list[Any] = []
    for path in re.findall(r"^::: ([\w.]+)$", pages, re.MULTILINE):
        value = pkgutil.resolve_name(path)
        shown += _names(value).values() if inspect.ismodule(value) else [value]
    assert not [name for name, value in PUBLIC.items() if value not in shown]


def test_methods_of_the_builder_are_in_the_reference():
    # The site shows the members that classes inherit. Methods of operators have pages, so the builder lists the others.
    assert "            inherited_members: true\n" in (REFERENCE.parents[1] / "mkdocs.yml").read_text("utf-8")
    section = (REFERENCE / "api.md").read_text("utf-8").partition("::: webnn_wgpu.api.builder.MLGraphBuilder\n")[2]
    listed = re.findall(r"^        - (\w+)$", section.partition(":::")[0], re.MULTILINE)
    documented = [(op.python_name, op.documentation) for op in OPS.values() if op.documentation is not None]
    on_pages = {name for method, text in documented for name in (method, *text.method.also)} | {"ext"}
    inherited = {name for name, _ in _members(wn.MLGraphBuilder)} - set(vars(wn.MLGraphBuilder))
    assert set(listed) == inherited - on_pages


@pytest.mark.parametrize("values", [PUBLIC, METHODS], ids=["names", "methods"])
def test_every_public_name_has_a_docstring(values: dict[str, Any]):
    assert not [name for name, value in values.items() if not _doc(value)]


def test_docstrings_describe_each_argument():
    missing = [
        f"{name}: {parameter}"
        for name, call in CALLED.items()
        # Some methods list their forms, and others take the arguments of the method that they name.
        if "\nForms:" not in _doc(call) and not _doc(call).endswith("for the same arguments.")
        for parameter in _parameters(call)
        if not re.search(rf"^ +(\*{{0,2}}\w+, )*\*{{0,2}}{parameter}(, \*{{0,2}}\w+)*: ", _doc(call), re.MULTILINE)
    ]
    assert not missing


def test_docstrings_describe_the_result():
    """In a section, or in the first line if that says it all."""
    missing = [
        name
        for name, call in CALLED.items()
        if inspect.signature(call).return_annotation not in ("None", "NoReturn", inspect.Signature.empty)
        and not re.search(r"^(Returns|Yields):", _doc(call), re.MULTILINE)
        and not re.search(r"\b[Rr]eturn\b", _doc(call).splitlines()[0])
    ]
    assert not missing


def test_docstrings_describe_errors():
    missing = [
        name
        for name, call in CALLED.items()
        if any(isinstance(node, ast.Raise) for node in ast.walk(ast.parse(textwrap.dedent(inspect.getsource(call)))))
        and not re.search(r"^Raises:|[Ee]rror|raises", _doc(call), re.MULTILINE)
    ]
    assert not missing


def test_functions_and_classes_have_an_example():
    """Records have none of their own: the examples of the functions that return them show them."""
    values = [*FUNCTIONS.items(), *((name, kind) for name, kind in CLASSES.items() if not _is_record(kind))]
    missing = [name for name, value in values if _needs_example(value) and "Example:" not in _doc(value)]
    assert not missing


def test_names_of_the_specification_name_their_source():
    owners = [getattr(wn, name) for name in SPECIFIED]
    methods = [getattr(getattr(wn, name), method) for name, listed in SPECIFIED.items() for method in listed.split()]
    assert not [value.__qualname__ for value in (*owners, *methods) if "\nSpec: https://www.w3.org/TR/" not in _doc(value)]
