"""The generated modules are what the operators' documentation says, and the documentation is complete."""

from __future__ import annotations

import inspect
from dataclasses import replace
from pathlib import Path

import pytest

from tests.generation import eager
from tests.generation.__main__ import unregistered
from tests.generation.methods import method_of
from tests.generation.modules import FOLDER, generated
from tests.generation.signatures import Signature, types_text
from tests.support import op_graph
from webnn_wgpu.ops import OPS, OpDef, operator
from webnn_wgpu.ops._def import Operand
from webnn_wgpu.ops.interfaces.documentation import Method

DOCUMENTED = [op for op in OPS.values() if op.documentation]


@pytest.fixture(scope="module")
def files() -> dict[str, str]:
    return generated()


def test_generated_modules_are_up_to_date(files: dict[str, str], repository: Path) -> None:
    # A new group has no file yet.
    there = {path: (repository / path).read_text(encoding="utf-8") for path in files if (repository / path).exists()}
    stale = [path for path, text in files.items() if there.get(path) != text]
    assert stale == [], "run `python -m tests.generation`"


def test_every_module_of_operators_is_registered() -> None:
    assert unregistered() == [], "add it to webnn_wgpu/ops/__init__.py"


def test_data_types_of_operands_in_words() -> None:
    assert types_text(Operand(name="input")) == "Any data type"
    assert types_text(Operand(name="input", data_types=("float32", "float16", "int4"))) == (
        "float32 or float16, or a constant of int4"
    )
    assert types_text(Operand(name="low", same_as="trueValue")) == "The data type of `true_value`"


def test_names_of_new_operators_do_not_wait_for_their_methods() -> None:
    """The list of names and the methods are written in one run, so classes lack the methods of new operators."""
    assert "    sech: Callable[..., Any]" in eager.module({"sech"}, {"relu"}, ["webnn_wgpu/api/operators/pointwise.py"])


def test_modules_that_say_they_are_generated_are(files: dict[str, str], repository: Path) -> None:
    marked = {
        path.relative_to(repository).as_posix()
        for folder in (FOLDER, eager.PATH.parent)
        for path in (repository / folder).rglob("*.py")
        if "python -m tests.generation" in path.read_text(encoding="utf-8")
    }
    assert marked == set(files)


@pytest.mark.parametrize("op", DOCUMENTED, ids=lambda op: op.name)
def test_every_operator_has_its_method(op: OpDef) -> None:
    signature, method = Signature(op), method_of(op)
    assert op.documentation is not None
    assert (inspect.getdoc(method) or "").startswith(op.documentation.summary)
    assert [*inspect.signature(method).parameters][1:] == [a.name for a in signature.implementation]


def test_an_argument_without_a_text_is_refused() -> None:
    documentation = operator("gather").documentation
    assert documentation is not None
    incomplete = replace(operator("gather"), documentation=replace(documentation, arguments={"input": "", "indices": ""}))
    with pytest.raises(ValueError, match=r"gather: documented are"):
        _ = Signature(incomplete).declared


def test_an_operator_without_documentation_is_refused() -> None:
    with pytest.raises(TypeError, match=r"^gather: operators are documented"):
        replace(operator("gather"), documentation=None)


def test_options_that_pywebnn_takes_by_position_are_parameters() -> None:
    for op in DOCUMENTED:
        assert op.documentation is not None
        method: Method = op.documentation.method
        signature = Signature(op)
        assert {*method.optional, *method.positional, *method.aliases.values()} <= {a.name for a in signature.declared}
        # What pywebnn takes by position goes by name in the specification, so that the two cannot be mixed up.
        assert set(method.pywebnn) <= {a.name for a in signature.keywords}


def test_an_operator_that_is_not_registered_is_named() -> None:
    with pytest.raises(KeyError, match=r"no operator is called 'x.nobody': webnn_wgpu/ops/__init__.py lists the modules"):
        op_graph("x.nobody", [])
