"""Repros: Python programs that show the error of one operator, or of one kernel of several operators."""

from __future__ import annotations

import inspect
import json
import math
import os
import re
import tempfile
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypedDict, cast

import numpy as np

from webnn_wgpu.accuracy.judging import Judgement
from webnn_wgpu.api.builder import MLGraphBuilder
from webnn_wgpu.api.graph import MLGraph
from webnn_wgpu.api.internals import context_of
from webnn_wgpu.core.data_types import PACKED_TYPES, Array
from webnn_wgpu.core.names import snake_case
from webnn_wgpu.inspection.kernels import Kernel
from webnn_wgpu.ir.graph import Graph, Node
from webnn_wgpu.ir.types import TensorType
from webnn_wgpu.ops import OPS
from webnn_wgpu.ops._def import Part
from webnn_wgpu.plan.execution_plan import Resource
from webnn_wgpu.plan.labels import node_label

from .launch import installed
from .observing import part_of, without

_HEAD = '''"""{title}

Found by webnn_wgpu.debug.diff on {device}. The operands are in {data}.
Prints how far the results are off, and exits with 1 while they are wrong.
"""

{imports}

import webnn_wgpu as wn
from webnn_wgpu import debug

HERE = Path(__file__).resolve().parent
data = np.load(HERE / {data!r})
{settings}context = wn.ml.create_context({options})

'''

_SETTINGS = ("WEBNN_WGPU_FORCE", "WEBNN_WGPU_TARGET")
"""Settings on which the kernels of a graph depend."""

_TAIL = """
results = [debug.compare(found[name], data[f"{{name}}.expected"], data[f"{{name}}.allowed"]) for name in {names}]
for result in results:
    print("{label}:", result)
sys.exit(0 if all(results) else 1)
"""


@dataclass(frozen=True, kw_only=True)
class Repro:
    """The content of a program that shows an error.

    Attributes:
        device: the device of the error, for people.
        software: whether that was a software adapter.
        data: the operands by their names in the program.
        expected: the expected results by name.
        lines: the part of the program that computes `found`, the results by name. `{stem}` begins the names of its files.
        sources: WGSL, or a model's bytes, by the part of a file's name behind `{stem}`.
    """

    device: str
    software: bool
    data: Mapping[str, Array]
    expected: Mapping[str, Judgement]
    lines: Sequence[str]
    sources: Mapping[str, str | bytes] = field(default_factory=dict[str, "str | bytes"])

    def write(self, folder: Path, label: str, title: str) -> Path:
        """Write the program, its data and its sources into a folder, and return the program's file."""
        folder.mkdir(parents=True, exist_ok=True)
        stem = re.sub(r"[^\w.-]", "_", label)[:80]
        saved = {name: _plain(array) for name, array in self.data.items()}
        for name, judgement in self.expected.items():
            saved |= {f"{name}.expected": judgement.expected, f"{name}.allowed": judgement.allowed}
        np.savez_compressed(folder / f"{stem}.npz", allow_pickle=False, **cast("Any", saved))
        for behind, source in self.sources.items():
            (folder / f"{stem}{behind}").write_bytes(source.encode() if isinstance(source, str) else source)
        body = "".join(f"{line}\n" for line in self.lines).replace("{stem}", stem)
        forced = {name: os.environ[name] for name in _SETTINGS if os.environ.get(name)}
        modules = ["import os"] * bool(forced) + ["import sys", "from pathlib import Path", ""]
        modules += ["import ml_dtypes"] * ("ml_dtypes." in body) + ["import numpy as np"]
        head = _HEAD.format(
            title=title.replace("\\", "\\\\").replace('"""', "'''"),
            device=self.device,
            data=f"{stem}.npz",
            imports="\n".join(modules),
            settings="".join(f'os.environ["{name}"] = {value!r}\n' for name, value in forced.items()),
            options='device_type="cpu"' if self.software else "",
        )
        path = folder / f"{stem}.py"
        path.write_text(head + body + _TAIL.format(label=stem, names=list(self.expected)), encoding="utf-8")
        return path


def kernels_repro(
    graph: MLGraph, kernels: Sequence[Kernel], operands: Mapping[int, Array], judged: Mapping[int, Judgement], copy: str = ""
) -> Repro:
    """Return a program that shows the error of installed kernels.

    Args:
        graph: the graph of the error.
        kernels: the kernels.
        operands: their operands by value.
        judged: the expected results by value.
        copy: the name of the output that they fill with a copy of the operand, or "".
    """
    plan = graph.plan
    assert plan is not None
    # A result that is an operand's memory, updated in place, has the operand's name.
    places = {place: f"v{value}" for value in (*judged, *operands) if (place := plan.places.get(value)) is not None}
    if copy:
        places[Resource("output", copy, 0, plan.outputs[copy].size_bytes)] = "copy"
        results: dict[str, Judgement] = dict(zip(("copy",), judged.values(), strict=True))
    else:
        results = {places[plan.places[value]]: j for value, j in judged.items() if value in plan.places}
    for value, judgement in judged.items():
        if value in plan.parts and not copy:
            joint = plan.parts[value].value
            places[plan.places[joint]] = f"v{joint}"
            results[f"v{joint}"] = _joined(judgement, plan.parts[value], plan.graph.type(joint))
    for part, shape in ((p, plan.graph.type(value).shape) for value, p in plan.parts.items() if p.value in judged):
        part.within(results[f"v{part.value}"].allowed, shape)[:] = np.inf  # written by other producers
    given = {f"v{value}": array for value, array in operands.items() if value not in plan.parts}
    for value, array in operands.items():
        if value in plan.parts:
            part = plan.parts[value]
            whole = plan.graph.type(part.value)
            places[plan.places[part.value]] = f"v{part.value}"
            joint = given.setdefault(f"v{part.value}", np.zeros(whole.shape, whole.numpy))
            part.within(joint, array.shape)[:] = array.reshape(-1, array.shape[-1])
    own = {kernel.name for kernel in kernels}
    found = installed(graph, [d for d in plan.dispatches if d.label in own], {name: place for place, name in places.items()})
    bound = {b.name for each in found.launches for b in each.bindings}
    outputs = {name: (str(j.expected.dtype), list(j.expected.shape)) for name, j in results.items()}
    data = {name: array for name, array in {**given, **found.constants}.items() if name in bound}
    sources: dict[str, str | bytes] = {}
    lines = ["launches = ["]
    for i, (each, kernel) in enumerate(zip(found.launches, kernels, strict=True)):
        behind = f".{i}.wgsl" if len(kernels) > 1 else ".wgsl"
        sources[behind] = kernel.wgsl
        lines += [f"    # {kernel.name}: {kernel.spec}", "    debug.Launch(", f'        HERE / "{{stem}}{behind}",']
        lines += ["        ["]
        lines += [f'            debug.Bound("{b.access}", "{b.name}", {b.offset}, {b.size}),' for b in each.bindings]
        lines += ["        ],", f'        uniforms="{each.uniforms}",', f"        grid={each.grid},", "    ),"]
    lines += ["]", f"found = debug.launch(context, launches, data, {outputs})"]
    return Repro(**_where(graph), data=data, expected=results, lines=lines, sources=sources)


def _joined(judgement: Judgement, part: Part, joint: TensorType) -> Judgement:
    """Return the judgement of the larger value that a value is a part of. The other parts have no bounds."""
    expected, allowed = np.zeros(joint.shape, joint.numpy), np.full(joint.shape, np.inf)
    shape = judgement.expected.shape
    part.within(expected, shape)[:] = judgement.expected.reshape(-1, shape[-1])
    part.within(allowed, shape)[:] = judgement.allowed.reshape(-1, shape[-1])
    return Judgement(expected, allowed, np.zeros(joint.shape, np.bool_))


def operator_repro(
    graph: MLGraph,
    node: Node,
    within: Graph,
    operands: Sequence[Array | None],
    constants: Mapping[int, Array],
    judged: Sequence[Judgement],
) -> Repro:
    """Return a program that shows the error of an operator in a graph of its own.

    Args:
        graph: the graph of the error.
        node: the operator.
        within: the graph of the node.
        operands: its operands.
        constants: the constant operands by value.
        judged: the expected results.
    """
    part = part_of(within, [node], constants)
    data = {f"v{v}": a for v, a in zip(node.inputs, operands, strict=True) if v is not None and a is not None}
    expected = dict(zip((f"v{value}" for value in node.outputs), judged, strict=True))
    return Repro(**_where(graph), data=data, expected=expected, lines=list(_operators(part)))


class _Where(TypedDict):
    """Where an error was found."""

    device: str
    software: bool


def _where(graph: MLGraph) -> _Where:
    context = context_of(graph).context
    return {"device": context.description, "software": context.caps.is_software}


def _operators(graph: Graph) -> Iterable[str]:
    """Write the calls that build and run a graph."""
    yield "builder = wn.MLGraphBuilder(context)"
    for name, value in graph.inputs.items():
        type_ = graph.type(value)
        yield f'{name} = builder.input("{name}", {list(type_.shape)}, "{type_.data_type}")'
    for value in graph.constants:
        type_ = graph.type(value)
        if type_.data_type in PACKED_TYPES:
            descriptor = {"dataType": type_.data_type, "shape": list(type_.shape)}
            yield f'v{value} = builder.constant({descriptor}, data["v{value}"].astype(ml_dtypes.{type_.data_type}))'
        else:
            yield f'v{value} = builder.constant(data["v{value}"])'
    for node in graph.nodes:
        results = ", ".join(f"v{value}" for value in node.outputs)
        yield f"{results} = {_call(node, several=len(node.outputs) > 1)}"
    outputs = ", ".join(f'"{name}": {name}' for name in graph.outputs)
    # The operator is as the passes have left it.
    yield f"graph = builder.build({{{outputs}}}, disabled_passes={json.dumps(without())})"
    feeds = ", ".join(f'"{name}": data["{name}"]' for name in graph.inputs)
    yield f"found = context.compute(graph, {{{feeds}}})"


def new_folder() -> Path:
    """Return a new folder among the system's temporary files."""
    return Path(tempfile.mkdtemp(prefix="webnn_wgpu-diff-"))


def _plain(array: Array) -> Array:
    """Return an array in a data type that numpy can write to a file."""
    return array.astype(np.int8 if str(array.dtype) == "int4" else np.uint8) if str(array.dtype) in PACKED_TYPES else array


def _call(node: Node, several: bool) -> str:
    """Write the call of the builder that adds an operator."""
    op = OPS[node.op]
    label = node_label(node)
    operands = [None if value is None else f"v{value}" for value in node.inputs]
    if op.opaque:
        return _own_kernel(node, operands, label)
    kinds = {attr.name: attr.kind for attr in op.attrs}
    given = {name: value for name, value in node.attrs.items() if value is not None}
    attrs = {name: _activations(v) if kinds[name] == "activations" else _literal(v) for name, v in given.items()}
    method = getattr(MLGraphBuilder, op.python_name, None)
    if op.extension:
        from webnn_wgpu.api.operators.ext import Extensions

        method = getattr(Extensions, op.python_name.removeprefix("ext."), None)
    parameters: Collection[str] = inspect.signature(method).parameters if method else ()
    required = [f"[{', '.join(o for o in operands if o)}]"] if op.variadic else operands[: sum(o.required for o in op.operands)]
    optional = {} if op.variadic else dict(zip(op.operand_names(len(operands)), operands, strict=True))
    options = {snake_case(o.name): v for o in op.operands if not o.required and (v := optional.get(o.name))} | attrs
    if not set(parameters) >= set(options):
        # An operator that only passes create, or a method with another form of the options.
        call = f'builder._operator("{node.op}", [{", ".join(o or "None" for o in operands)}], {{{_pairs(attrs)}}}, {label!r})'
        return call if several else f"{call}[0]"
    arguments = [*(o or "None" for o in required), *(f"{name}={text}" for name, text in options.items()), f"label={label!r}"]
    return f"builder.{op.python_name}({', '.join(arguments)})"


def _activations(value: Sequence[tuple[str, Sequence[tuple[str, Any]]]]) -> str:
    made = (f"builder.{name}({', '.join(f'{n}={_literal(v)}' for n, v in options)})" for name, options in value)
    return f"[{', '.join(made)}]"


def _pairs(attrs: Mapping[str, str]) -> str:
    return ", ".join(f'"{name}": {text}' for name, text in attrs.items())


def _own_kernel(node: Node, operands: Sequence[str | None], label: str) -> str:
    kernel = node.attrs["kernel"]
    shapes, types = [list(t.shape) for t in kernel.outputs], [t.data_type for t in kernel.outputs]
    call = (
        f"builder.wgsl_op({kernel.source!r}, [{', '.join(o for o in operands if o)}], output_shapes={shapes}, "
        f"output_types={types}, workgroups={kernel.workgroups}, label={label!r})"
    )
    return call if len(types) > 1 else f"{call}[0]"


def _literal(value: Any) -> str:
    """Write an option as Python."""
    if isinstance(value, float) and not math.isfinite(value):
        return f'float("{value}")'
    if isinstance(value, tuple | list):
        return f"[{', '.join(map(_literal, cast('Sequence[Any]', value)))}]"
    if isinstance(value, Mapping):
        items = cast("Mapping[str, Any]", value).items()
        return f"{{{', '.join(f'{name!r}: {_literal(item)}' for name, item in items)}}}"
    return repr(value)
