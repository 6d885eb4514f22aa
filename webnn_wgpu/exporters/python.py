"""`to_python`: a graph as a Python program that builds it with this package."""

from __future__ import annotations

import base64
import json
import keyword
import math
import os
import re
from pathlib import Path
from typing import Any, Literal, cast

import numpy as np

from webnn_wgpu.api.graph import MLGraph
from webnn_wgpu.api.signatures import call_form
from webnn_wgpu.formats.constants import from_bytes, to_bytes
from webnn_wgpu.formats.document import (
    Constant,
    Document,
    OperandReference,
    ScalarFill,
    Statement,
    TensorDeclaration,
    WeightsKey,
)
from webnn_wgpu.formats.names import UniqueNames

from .arguments import check_graph
from .files import replace_files
from .webnn import Array, Weights, document_of, option_name, safetensors_of

__all__ = ["to_python", "write_python"]

RESERVED = frozenset(
    {*keyword.kwlist, *keyword.softkwlist, "builder", "build", "np", "wn", "main", "decoded", "float", "ml_dtypes"}
)
LISTED = 64
"""Elements of a constant that is written as a list of numbers, at most."""
WIDTH = 128


def to_python(graph: MLGraph, *, weights: Literal["inline"] | dict[str, Array] = "inline", file: str = "") -> str:
    """Return a program that builds a graph: `build(builder)` returns the outputs by name, and `main()` runs the graph on zeros.

    Args:
        graph: the graph.
        weights: "inline" to put all constants in the program, or a mapping that receives the constants above 1 KiB by key,
            for a caller that writes them.
        file: name of the safetensors file beside the program that has those constants.

    Returns:
        The text of the program.

    Raises:
        MLTypeError: `graph` is no graph.
        NotSupportedError: an operator of the caller's own WGSL, or outputs that update inputs.

    Example:
        >>> from webnn_wgpu.exporters.python import to_python
        >>> program = to_python(b.build({"y": b.softmax(x, 1, label="scores")}))
        >>> print(program.split("def build")[1].split("def main")[0].strip())
        (builder):
            x = builder.input("x", [2, 3], "float32")
            y = builder.softmax(x, axis=1, label="scores")
            return {"y": y}
    """
    check_graph(graph, "to_python")
    inline = weights == "inline"
    document, arrays = document_of(graph, weights="inline" if inline else "auto", labels=True)
    if isinstance(weights, dict):
        weights.update(arrays)
    return _Program(document, file if arrays else "").text()


def write_python(graph: MLGraph, path: str | os.PathLike[str], *, weights: Weights = "auto") -> list[Path]:
    """Write a graph as a program, and constants above 1 KiB to `NAME.safetensors`.

    Args:
        graph: the graph.
        path: the file of the program. Files of its name are replaced.
        weights: "inline" to put all constants in the program.

    Returns:
        The files that were written, the program first.

    Raises:
        NotSupportedError: an operator of the caller's own WGSL, or outputs that update inputs.

    Example:
        >>> import tempfile
        >>> from webnn_wgpu.exporters.python import write_python
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     [path.name for path in write_python(b.build({"y": b.softmax(x, 1)}), f"{folder}/scores.py")]
        ['scores.py']
    """
    arrays: dict[str, Array] = {}
    target = Path(path)
    beside = target.with_suffix(".safetensors")
    text = to_python(graph, weights="inline" if weights == "inline" else arrays, file=beside.name)
    files: dict[Path, bytes] = {target: text.encode()}
    if arrays:
        files[beside] = safetensors_of(arrays)
    return replace_files(files)


class _Program:
    """The text of one program."""

    def __init__(self, document: Document, file: str) -> None:
        self.document, self.file = document, file
        self.taken = UniqueNames(RESERVED)
        self.variables: dict[str, str] = {}
        declared = [d.name for d in document.inputs] + [c.declaration.name for c in document.constants]
        for name in (*declared, *(name for s in document.statements for name in s.results)):
            if name not in self.variables:
                self.variables[name] = self.variable(name)
        self.decodes = False
        self.packed = False

    def variable(self, name: str) -> str:
        plain = re.sub(r"[^A-Za-z0-9_]", "_", name)
        return self.taken.of(plain if plain and not plain[0].isdigit() else f"_{plain}")

    def text(self) -> str:
        document = self.document
        body = [self.assigned(self.variables[d.name], self.input(d)) for d in document.inputs]
        if self.file:
            body.append(f"    weights = load_file(Path(__file__).with_name({_string(self.file)}))")
        body += [self.assigned(self.variables[c.declaration.name], self.constant(c)) for c in document.constants]
        body += [self.assigned(self.target(s), self.call(s)) for s in document.statements]
        ends = [f"{_string(o.name)}: {self.variables[o.operand.name]}" for o in document.outputs]
        body.append(_fitted("    return {", ends, "}", one_line=False))
        standard = ["import base64"] if self.decodes else []
        standard += ["from pathlib import Path"] if self.file else []
        packages = ["import ml_dtypes"] if self.packed else []
        packages += ["import numpy as np"] + (["from safetensors.numpy import load_file"] if self.file else [])
        imports = ["\n".join(lines) for lines in (standard, [*packages, "", "import webnn_wgpu as wn"]) if lines]
        functions = [_DECODED] if self.decodes else []
        functions += ["def build(builder):\n" + "\n".join(body), _MAIN]
        head = "\n\n".join(['"""A graph, written by webnn_wgpu."""', *imports])
        return "\n\n\n".join([head, *functions, 'if __name__ == "__main__":\n    main()\n'])

    def target(self, statement: Statement) -> str:
        names = ", ".join(self.variables[name] for name in statement.results)
        return f"({names},)" if statement.bracketed and len(statement.results) == 1 else names

    def assigned(self, target: str, expression: tuple[str, list[str], str]) -> str:
        head, items, tail = expression
        return _fitted(f"    {target} = {head}", items, tail)

    def input(self, declaration: TensorDeclaration) -> tuple[str, list[str], str]:
        items = [_string(declaration.public_name), str(list(declaration.shape)), _string(declaration.data_type)]
        return "builder.input(", items, ")"

    def constant(self, constant: Constant) -> tuple[str, list[str], str]:
        declaration, init = constant.declaration, constant.init
        shape = constant.shape
        kind = declaration.data_type
        descriptor = f'{{"dataType": {_string(kind)}, "shape": {list(shape)}}}'
        if isinstance(init, WeightsKey):
            return "builder.constant(", [descriptor, f"weights[{_string(init.key)}]"], ")"
        self.packed = self.packed or kind.endswith("int4")
        dtype = f"ml_dtypes.{kind}" if kind.endswith("int4") else f"np.{kind}"
        if isinstance(init, ScalarFill):
            return "builder.constant(", [f"np.full({_tuple(shape)}, {_literal(init.value)}, {dtype})"], ")"
        array = from_bytes(declaration, shape, init.data)
        if array.size <= LISTED and array.dtype.kind in "fiu" and not np.isnan(array).any():
            numbers = ", ".join(_literal(v) for v in array.reshape(-1).tolist())
            return "builder.constant(", [f"np.array([{numbers}], {dtype}).reshape({_tuple(shape)})"], ")"
        # NaN in numbers would lose its bits.
        self.decodes = True
        return "builder.constant(", [descriptor, f"decoded({_string(base64.b64encode(to_bytes(array)).decode())})"], ")"

    def call(self, statement: Statement) -> tuple[str, list[str], str]:
        form = call_form(statement.operator)
        operands = [self.variables[v.name] for v in statement.arguments]
        items = [f"[{', '.join(operands)}]"] if form.variadic else operands
        names = {option_name(statement.operator, name): name for name in (*form.operands, *form.annotations)}
        items += [f"{names.get(name, name)}={self.value(value)}" for name, value in statement.options.items()]
        owner = "builder.ext" if statement.operator.startswith("x.") else "builder"
        return f"{owner}.{form.method}(", items, ")"

    def value(self, value: Any) -> str:
        if isinstance(value, OperandReference):
            return self.variables[value.name]
        if isinstance(value, list):
            return f"[{', '.join(self.value(v) for v in cast('list[Any]', value))}]"
        return _string(value) if isinstance(value, str) else _literal(value)


def _fitted(head: str, items: list[str], tail: str, *, one_line: bool = True) -> str:
    """Return an expression on one line if it fits, else as ruff breaks it."""
    whole = f"{head}{', '.join(items)}{tail}"
    if len(whole) <= WIDTH or not items:
        return whole
    inner = f"        {', '.join(items)}"
    if one_line and len(inner) <= WIDTH:
        return f"{head}\n{inner}\n    {tail}"
    return "\n".join([head, *(f"        {item}," for item in items), f"    {tail}"])


def _string(text: str) -> str:
    r"""Return a text as a literal in double quotes, in which only characters that cannot be printed are escaped.

    >>> print(_string("\U0001f926\u200d\n"))
    "🤦\u200d\n"
    """

    def escaped(character: str) -> str:
        code = ord(character)
        return character if character.isprintable() else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"

    return "".join(map(escaped, json.dumps(text, ensure_ascii=False)))


def _tuple(shape: tuple[int, ...]) -> str:
    return str(shape) if shape else "()"


def _literal(value: Any) -> str:
    if isinstance(value, float) and not math.isfinite(value):
        return 'float("nan")' if math.isnan(value) else 'float("inf")' if value > 0 else '-float("inf")'
    return repr(value)


_DECODED = """def decoded(text):
    return np.frombuffer(base64.b64decode(text), np.uint8)"""

_MAIN = """def main():
    with wn.ml.create_context() as context:
        builder = wn.MLGraphBuilder(context)
        graph = builder.build(build(builder))
        inputs = {name: np.zeros(t.shape, t.data_type) for name, t in graph.inputs.items()}
        for name, array in context.compute(graph, inputs).items():
            print(name, array.dtype, array.shape)"""
