"""Pages of the site that are written from the code: operators, passes, and files of the repository's root.

The plugin mkdocs-gen-files runs this module. Each page exists in the site alone.
"""

from __future__ import annotations

import inspect
import re
from collections import defaultdict
from pathlib import Path
from typing import TYPE_CHECKING

import mkdocs_gen_files

from docs.generation.devices import choices, kernels_with_features
from webnn_wgpu import MLGraphBuilder
from webnn_wgpu.api.operators.ext import Extensions
from webnn_wgpu.cli.op import attribute_text, formula_text, operand_text, places, tolerance_text
from webnn_wgpu.core.errors import SPEC_URL
from webnn_wgpu.frontends.tflite.operators import handlers
from webnn_wgpu.ops import OPS
from webnn_wgpu.passes.pipeline import PASSES
from webnn_wgpu.plan.forced import forceable

if TYPE_CHECKING:
    from collections.abc import Iterator

    from webnn_wgpu.ops import OpDef

ROOT = Path(__file__).resolve().parents[2]
ROOT_FILES = {
    "CHANGELOG.md": "reference/changelog.md",
    "CONTRIBUTING.md": "contributing/index.md",
    "SECURITY.md": "contributing/security.md",
}
"""Files of the repository's root, and the pages that show them."""

GENERIC_INTERFACES = ("movement", "layout", "precision", "epilogue")
"""Interfaces that an operator's page lists by name."""


def write(path: str, lines: list[str]) -> None:
    """Write a page of the site."""
    with mkdocs_gen_files.open(path, "w") as page:
        page.write("\n".join([*lines, ""]))


def root_page(source: str, target: str) -> None:
    """Show a file of the repository's root as a page, with its links relative to the page."""
    up = "../" * target.count("/")
    text = (ROOT / source).read_text("utf-8")
    text = re.sub(r"\]\(docs/", f"]({up}", text)
    text = re.sub(r"\]\((README|LICENSE|CONTRIBUTING|SECURITY|CHANGELOG)(\.md)?(#[^)]*)?\)", lambda m: _link(m, up), text)
    write(target, [text])


def _link(match: re.Match[str], up: str) -> str:
    """Return the end of a link to a file of the root."""
    name = f"{match[1]}{match[2] or ''}"
    return f"]({up}{ROOT_FILES.get(name, 'index.md')})"


def method_path(op: OpDef) -> str:
    """Return the place of the builder's method: module, class and name."""
    owner, name = (Extensions, op.python_name.removeprefix("ext.")) if op.extension else (MLGraphBuilder, op.python_name)
    for base in owner.__mro__:
        if name in vars(base):
            return f"{base.__module__}.{base.__qualname__}.{name}"
    raise AssertionError(f"{op.name} has documentation and no method")


def operator_page(op: OpDef) -> str:
    """Write the page of an operator, and return its name."""
    where = places(op)
    lines = [f"# {op.python_name}", ""]
    spec = f"[`{op.name}`]({SPEC_URL}{op.spec})" if op.spec else f"`{op.name}`, an extension operator"
    lines += [f"Specification: {spec}.", ""]
    lines += [f"::: {method_path(op)}", "    options:", "      heading_level: 2", "      show_root_full_path: false", ""]
    lines += ["## Operands and options", "", "| Name | Accepted |", "| --- | --- |"]
    for text in (*map(operand_text, op.operands), *map(attribute_text, op.attrs)):
        name, _, accepted = text.partition(": ")
        lines.append(f"| `{name}` | {accepted.replace('|', chr(92) + '|')} |")
    lines += ["", "## Implementation", "", "| Fact | Value |", "| --- | --- |"]
    lines.append(f"| Family | {op.family.value if op.family else 'none'} |")
    if formula := formula_text(op):
        lines.append(f"| Formula in WGSL | `{formula.replace('|', chr(92) + '|')}` |")
    lines.append(f"| Tolerance | {tolerance_text(op)} |")
    lines.append(f"| Gradient | {'`builder.gradients`' if op.gradient else 'none'} |")
    lines.append(
        f"| Kernels | {', '.join(f'`{file.name}`' for file in where.templates) or 'none: the operator needs no kernel'} |"
    )
    variants = ", ".join(f"`{variant}`" for variant in forceable().get(op.name, ()))
    lines.append(f"| Variants for `WEBNN_WGPU_FORCE` | {variants or 'one kernel'} |")
    declared = [name for name in GENERIC_INTERFACES if getattr(op, name) is not None]
    lines.append(f"| Interfaces | {', '.join(declared) or 'none'} |")
    lines.append("| Devices | every WebGPU device, and the numpy reference |")
    for feature, templates in kernels_with_features(op.name).items():
        lines.append(f"| Kernels with the feature `{feature}` | {', '.join(f'`{name}`' for name in templates)} |")
    lines.append(f"| Definition | `{where.module.relative_to(ROOT)}` |")
    if chosen := choices(op.name):
        lines += [
            "",
            "## Choice of kernels",
            "",
            "The kernels of the operator's test graphs, each with the reason of one choice.",
            "",
        ]
        lines += ["`graph.kernels` has the reasons of your graph.", ""]
        lines += ["| Kernel | Device | Reason |", "| --- | --- | --- |"]
        lines += (f"| `{kernel}` | {device} | {reason} |" for kernel, device, reason in chosen)
    name = op.python_name.replace(".", "-")
    write(f"reference/operators/{name}.md", lines)
    return name


def documented() -> Iterator[OpDef]:
    """Yield the operators that the builder has methods for."""
    return (op for op in OPS.values() if op.documentation is not None)


def operators() -> None:
    """Write the pages of all operators, and their index."""
    groups: dict[str, list[OpDef]] = defaultdict(list)
    for op in documented():
        assert op.documentation is not None
        groups[op.documentation.group.summary].append(op)
    lines = [
        "# Operators",
        "",
        "All operators of the June 2026 draft are methods of `MLGraphBuilder`.",
        "Extension operators are methods of `builder.ext`. In graphs, their names begin with `x.`.",
        "`context.op_support_limits()` lists the data types and ranks of a context.",
        "Kernels emulate data types on devices without their features, for example float16 without `shader-f16`.",
        "",
    ]
    for summary, members in groups.items():
        lines += [f"## {summary.rstrip('.')}", "", "| Operator | Result |", "| --- | --- |"]
        for op in members:
            assert op.documentation is not None
            result = inspect.cleandoc(op.documentation.summary).replace("|", "\\|")
            lines.append(f"| [`{op.python_name}`]({operator_page(op)}.md) | {result} |")
        lines.append("")
    write("reference/operators/index.md", lines)


def passes() -> None:
    """Write the page of the compiler's passes, in order."""
    lines = [
        "# Passes",
        "",
        "The compiler applies these passes in order.",
        "`graph.passes` and `webnn-wgpu info MODEL --passes` show their effect on a graph.",
        "`build(outputs, disabled_passes=[...])` disables passes by name. A rule is printed as `result <- pattern`.",
        "",
    ]
    for each in PASSES:
        lines += [f"## {each.name}", "", f"{each.reason[0].upper()}{each.reason[1:]}.", ""]
        lines.append("* Results keep every bit." if each.exact else "* Results may be rounded differently.")
        if each.by_cost:
            lines.append("* The pass decides by the costs of the target.")
        for rule in each.rules:
            lines += ["", "```text", rule.describe(), "```"]
        lines.append("")
    write("how-it-works/passes.md", lines)


def tflite_operators() -> None:
    """Write the table of TFLite's operators."""
    lines = [
        "# TFLite operators",
        "",
        "A newer version of an operator than the newest one of this table is refused.",
        "",
        "| Operator | Newest version | Place | Result | Note |",
        "| --- | --- | --- | --- | --- |",
    ]
    for each in handlers():
        function = each.lower or each.host
        assert function is not None
        place = "host" if each.lower is None else "device"
        name = f"`{each.name}`" + (" (custom)" if each.custom else "")
        cells = (name, str(each.version), place, inspect.getdoc(function) or "", each.note)
        lines.append(f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |")
    write("reference/tflite-operators.md", lines)


for source, target in ROOT_FILES.items():
    root_page(source, target)
operators()
tflite_operators()
passes()
