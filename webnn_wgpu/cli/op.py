"""`webnn-wgpu op NAME`: every place of an operator."""

from __future__ import annotations

import inspect
import re
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

import click

import webnn_wgpu
from webnn_wgpu import MLGraphBuilder, ops
from webnn_wgpu.api.operators.ext import Extensions
from webnn_wgpu.core.data_types import ANY
from webnn_wgpu.core.errors import SPEC_URL
from webnn_wgpu.kernels.templates import shader_root
from webnn_wgpu.ops import OPS
from webnn_wgpu.ops._attrs import REQUIRED, Attr
from webnn_wgpu.ops._def import OpDef, Operand
from webnn_wgpu.plan.forced import forceable

from .text import result_console, write_section

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(webnn_wgpu.__file__).parents[1]
"""The folder the package is in: a checkout, or site-packages."""


@dataclass(frozen=True)
class OperatorPlaces:
    """Where an operator is.

    Attributes:
        module: The file that defines it.
        templates: Files of the templates it may use, each with the template's parameters.
        tests: Files of its tests, none in an installation without them.
    """

    module: Path
    templates: dict[Path, tuple[str, ...]]
    tests: list[Path]


@click.command()
@click.argument("name")
def op(name: str) -> None:
    """Print every place of the operator NAME: specification, code, templates, variants, tests."""
    found = find_operator(name)
    if found is None:
        close = ", ".join(close_names(name))
        hint = f" Did you mean {close}?" if close else f" There are: {', '.join(sorted(OPS))}."
        raise click.BadParameter(f"{name!r} is no operator.{hint}", param_hint="NAME")
    write_section(result_console(), found.name, _rows(found))


def find_operator(name: str) -> OpDef | None:
    """Return the operator of a name, in the specification's spelling or in Python's, or None where there is none.

    An extension operator is found as `x.top_k`, `ext.top_k` and, where the specification has no such name, `top_k`.
    """
    found = OPS.get(name) or next((op for op in OPS.values() if op.python_name == name), None)
    return found or OPS.get(f"x.{name}")


def close_names(name: str) -> list[str]:
    """Return the specification's names of at most three operators that a misspelled name is close to."""
    spellings = {spelling.lower(): op.name for op in OPS.values() for spelling in (op.name, op.python_name)}
    return list(dict.fromkeys(spellings[match] for match in get_close_matches(name.lower(), spellings)))


def places(op: OpDef) -> OperatorPlaces:
    """Return the files of an operator."""
    modules: list[ModuleType] = [module for _, module in inspect.getmembers(ops, inspect.ismodule)]
    module = next(module for module in modules if op in getattr(module, "OPS", ()))
    file = Path(inspect.getfile(module))
    return OperatorPlaces(
        module=file,
        templates={shader_root() / "ops" / f"{t.name}.wgsl.j2": t.params for t in op.templates},
        tests=sorted((ROOT / "tests" / "ops").glob(f"test_{file.stem}.py")),
    )


def _rows(op: OpDef) -> Iterator[tuple[str, str]]:
    found = places(op)
    yield "builder", _method(op)
    yield "specification", f"{SPEC_URL}{op.spec}" if op.spec else "none: an extension"
    yield "definition", _short(found.module)
    yield from _listed("templates", [f"{_short(t)} ({', '.join(p)})" for t, p in found.templates.items()], "none")
    yield "variants", ", ".join(forceable().get(op.name, ())) or "one kernel"
    yield from _listed("tests", [_short(test) for test in found.tests], "none in this installation")
    yield from _listed("operands", [operand_text(operand) for operand in op.operands], "those of what was fused")
    yield from _listed("options", [attribute_text(attr) for attr in op.attrs], "none")
    yield "outputs", ", ".join(op.outputs) + (f": {', '.join(op.output_types)}" if op.output_types else "")
    if formula := formula_text(op):
        yield "formula", formula
    yield "tolerance", tolerance_text(op)


def _listed(name: str, values: list[str], otherwise: str) -> Iterator[tuple[str, str]]:
    for number, value in enumerate(values or [otherwise]):
        yield "" if number else name, value


def _short(path: Path) -> str:
    return str(path.relative_to(ROOT) if path.is_relative_to(ROOT) else path)


def _method(op: OpDef) -> str:
    owner, name = (Extensions, op.name.removeprefix("x.")) if op.extension else (MLGraphBuilder, op.python_name)
    method: Any = getattr(owner, name, None)
    return f"MLGraphBuilder.{op.python_name}{_signature(method)}" if method else "none: passes make it"


def _signature(method: Any) -> str:
    signature = inspect.signature(method)
    _self, *parameters = signature.parameters.values()
    # Annotations are kept as text, which `str` puts in quotes.
    return re.sub(r"(: |-> )'([^']*)'", r"\1\2", str(signature.replace(parameters=parameters)))


def operand_text(operand: Operand) -> str:
    """Return the name, data types and ranks of an operand."""
    types = "every data type" if operand.data_types == ANY else ", ".join(operand.data_types)
    if operand.same_as:
        types = f"data type of {operand.same_as}"
    low, high = operand.min_rank, operand.max_rank
    rank = f"rank {low}" if low == high else f"rank {low} to {high}"
    kind = "a list of operands, each " if operand.variadic else "" if operand.required else "optional, "
    return f"{operand.name}: {kind}{types}, {rank}"


def attribute_text(attr: Attr) -> str:
    """Return the name, kind, allowed values and default of an attribute."""
    default = "required" if attr.default is REQUIRED else f"default {attr.default!r}"
    allowed = f" of {', '.join(attr.allowed)}" if attr.allowed else ""
    return f"{attr.name}: {attr.kind}{allowed}, {default}"


def formula_text(op: OpDef) -> str:
    """Return the element-wise formula in WGSL for float32 operands and default options, or an empty text if there is none."""
    if op.elementwise is None or op.internal or any(a.default is REQUIRED for a in op.attrs):
        return ""
    types = ["float32" if "float32" in o.data_types else o.data_types[0] for o in op.operands]
    output = op.output_types[0] if op.output_types else types[0]
    return str(op.elementwise.formula(types, output, {a.name: a.default for a in op.attrs}).value)


def tolerance_text(op: OpDef) -> str:
    """Return the permitted error of an operator's results."""
    if op.internal:
        return "that of what was fused"
    if op.moves:
        return "exact: moves bits"
    if op.tolerance is None:
        return "depends on the shape"
    return "exact" if op.tolerance == 0 else f"{op.tolerance:g} ULP in float32"
