"""The modules that are generated from the operators' documentation: methods of builders, and lists of names."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections import defaultdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import jinja2

from tests.generation import eager
from tests.generation.docstrings import class_docstring, docstring, options_docstring
from tests.generation.signatures import Signature
from webnn_wgpu.core.names import snake_case
from webnn_wgpu.ops import OPS

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from webnn_wgpu.ops.interfaces.documentation import Group

FOLDER = Path("webnn_wgpu/api/operators")
_PLAIN = ("return self._output(", "return self._outputs(", "return self._activate(")
"""Calls of methods that `OperatorMethods` has, the base of classes that need no `OperatorForms`."""

_REPOSITORY = Path(__file__).resolve().parents[2]
_TEMPLATES = jinja2.Environment(
    loader=jinja2.FileSystemLoader(Path(__file__).parent), undefined=jinja2.StrictUndefined, keep_trailing_newline=True
)


def generated() -> dict[str, str]:
    """Return the text of every generated file by its path below the repository's root, formatted."""
    groups: dict[Group, list[Signature]] = defaultdict(list)
    for op in OPS.values():
        if op.documentation:
            groups[op.documentation.group].append(Signature(op))
    files = {_path(group, members): _module(group, members) for group, members in groups.items()}
    files[(FOLDER / "dictionaries.py").as_posix()] = _dictionaries(s for members in groups.values() for s in members)
    names: dict[bool, set[str]] = {True: set(), False: set()}
    for signature in (s for members in groups.values() for s in members):
        names[signature.op.extension] |= {signature.name, *signature.documentation.method.also}
    files[eager.PATH.as_posix()] = eager.module(names[True], names[False], files.keys())
    return _formatted(files)


def _path(group: Group, members: Sequence[Signature]) -> str:
    names = ", ".join(s.op.name for s in members if s.op.extension)
    if len({s.op.extension for s in members}) != 1:
        raise ValueError(f"the group {group.module} is for operators of the specification alone: {names} need another group")
    positional = [s.op.name for s in members if s.op.extension and s.documentation.method.positional]
    if positional:
        raise ValueError(f"Method(positional=...) is for operators of the specification alone: {', '.join(positional)}")
    return (FOLDER / ("ext" if members[0].op.extension else "") / f"{group.module}.py").as_posix()


def _module(group: Group, members: list[Signature]) -> str:
    members = sorted(members, key=lambda s: s.name)
    extension = members[0].op.extension
    methods = [_method(s) for s in members]
    names = [name for s in members for name in (s.name, *s.documentation.method.also)]
    plain = all(m["body"].startswith(_PLAIN) for m in methods)
    return _TEMPLATES.get_template("module.py.j2").render(
        group=group,
        dots="..." if extension else "..",
        extension=extension,
        base="OperatorMethods" if plain else "OperatorForms",
        dictionaries=sorted({s.dictionary for s in members if s.dictionary}),
        docstring=class_docstring(group, names),
        methods=methods,
        names=[(camel, s.name) for s in members if (camel := camel_case(s)) != s.name],
    )


def _method(signature: Signature) -> dict[str, Any]:
    method = signature.documentation.method
    decorator = [f"positions={method.pywebnn!r}"] if method.pywebnn else []
    decorator += [f'{alias}="{name}"' for alias, name in method.aliases.items()]
    return {
        "name": signature.name,
        "overloads": [f"{form}" for form in signature.overloads],
        "decorator": ", ".join(decorator),
        "signature": str(signature),
        "docstring": docstring(signature),
        "body": _body(signature),
        "also": method.also,
    }


def _body(signature: Signature) -> str:
    op, method = signature.op, signature.documentation.method
    arguments = [a.name for a in signature.declared]
    if method.through:
        return f"return self.{method.through}({', '.join([*arguments, 'label'])})"
    operands = ", ".join(snake_case(operand.name) for operand in op.operands)
    attrs = "{" + ", ".join(f'"{name}": {name}' for name in signature.attributes) + "}"
    if method.activation:
        return f'return self._activate("{op.name}", {operands}, {attrs}, label)'
    if op.variadic:
        return f'return self._variadic("{op.name}", {operands}, {attrs}, label)'
    if "activations" in arguments:
        form = "_recurrent" if op.outputs != ("output",) else "_recurrent_cell"
        return f'return self.{form}("{op.name}", [{operands}], {attrs}, activations, label)'
    if "activation" in arguments:
        return f'return self._activated("{op.name}", [{operands}], {attrs}, activation, label)'
    form = "_output" if op.outputs == ("output",) else "_outputs"
    return f'return self.{form}("{op.name}", [{operands}], {attrs}, label)'


def camel_case(signature: Signature) -> str:
    """Return the specification's name of a method; of an extension operator the same spelling of its name."""
    if not signature.op.extension:
        return signature.op.name
    head, *tail = signature.name.split("_")
    return head + "".join(word[0].upper() + word[1:] for word in tail)


def _dictionaries(signatures: Iterable[Signature]) -> str:
    users: dict[str, list[str]] = defaultdict(list)
    members: dict[str, dict[str, str]] = defaultdict(dict)
    for signature in signatures:
        name = signature.dictionary
        if name in ("", "MLOperatorOptions"):
            continue
        users[name].append(signature.name)
        aliases = signature.documentation.method.aliases
        for option in signature.options:
            for spelling in (option.name, *(alias for alias, meant in aliases.items() if meant == option.name)):
                for key in dict.fromkeys((_camel(spelling), spelling)):
                    if members[name].setdefault(key, option.annotation) != option.annotation:
                        raise ValueError(f"{name}: {key} has several types")
    found = [
        {"name": name, "docstring": options_docstring(sorted(users[name])), "members": members[name].items()}
        for name in sorted(members)
    ]
    return _TEMPLATES.get_template("dictionaries.py.j2").render(dictionaries=found)


def _camel(name: str) -> str:
    head, *tail = name.split("_")
    return head + "".join(word.capitalize() for word in tail)


def _formatted(files: dict[str, str]) -> dict[str, str]:
    """Return files without the imports that they do not use, and formatted."""
    with tempfile.TemporaryDirectory() as folder:
        for path, text in files.items():
            file = Path(folder, path)
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text, encoding="utf-8")
        configuration = ["--config", str(_REPOSITORY / "pyproject.toml"), "--no-cache", "--quiet"]
        for command in (["check", "--select", "F401,I", "--fix"], ["format"]):
            subprocess.run([sys.executable, "-m", "ruff", *command, *configuration, folder], check=True)
        return {path: Path(folder, path).read_text(encoding="utf-8") for path in files}
