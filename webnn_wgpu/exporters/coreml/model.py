"""`to_coreml`: a graph as a Core ML program."""

from __future__ import annotations

import json
import os
import shutil
import tempfile
import uuid
from collections import defaultdict
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any, Literal, cast

import numpy as np

from webnn_wgpu.api.graph import Graph, MLGraph
from webnn_wgpu.api.ml import ml
from webnn_wgpu.core.errors import MLTypeError, NotSupportedError
from webnn_wgpu.formats import names

from ..arguments import check_graph
from ..standard import standard
from . import elementwise, movement, rows
from .call import WRITERS, CoreCall, Var, held, held_array, mb, types

ct: Any = import_module("coremltools")
mil: Any = import_module("coremltools.converters.mil.mil")

MODULES = (elementwise, movement, rows)
"""The modules that fill `WRITERS`."""

Minimum = Literal["iOS16", "iOS17", "iOS18"]
TARGETS: Mapping[str, Any] = {"iOS16": ct.target.iOS16, "iOS17": ct.target.iOS17, "iOS18": ct.target.iOS18}
NETWORKS = frozenset({"gru", "gruCell", "lstm", "lstmCell"})
"""Operators that are composed of others: MIL's have other gates."""
TYPES = {"fp32": types.fp32, "fp16": types.fp16, "int32": types.int32}
UNSTABLE = ("com.github.apple.coremltools.conversion_date",)
"""Metadata that differ from run to run."""


def to_coreml(graph: MLGraph, *, minimum: Minimum = "iOS17") -> Any:
    """Return a graph as it was built, before any pass, as a `coremltools.models.MLModel`.

    Integers of all types are int32, at the boundary and inside. Inputs and outputs of rank 0 have the shape [1]. Names are
    made identifiers. The metadata `webnn_wgpu.names` and `webnn_wgpu.types` have the original ones.

    Args:
        graph: the graph.
        minimum: the oldest system that runs the model.

    Returns:
        The model, with all constants in it. It is not loaded.

    Raises:
        MLTypeError: `graph` is no graph, or an unknown `minimum`.
        NotSupportedError: an operator that Core ML does not have, a rank above 5, or integers that int32 cannot hold.

    Example:
        >>> from webnn_wgpu.exporters.coreml import to_coreml
        >>> model = to_coreml(b.build({"y": b.softmax(x, 1)}))
        >>> [output.name for output in model.get_spec().description.output]
        ['y']
    """
    with _names_from_zero():
        program, names = program_of(graph, minimum)
        model = ct.convert(
            program,
            convert_to="mlprogram",
            skip_model_load=True,
            minimum_deployment_target=TARGETS[minimum],
            compute_precision=ct.precision.FLOAT32,
        )
    kinds = {name: t.data_type for name, t in (*graph.inputs.items(), *graph.outputs.items())}
    model.user_defined_metadata["webnn_wgpu.names"] = json.dumps(names, sort_keys=True)
    model.user_defined_metadata["webnn_wgpu.types"] = json.dumps({i: kinds[n] for i, n in names.items()}, sort_keys=True)
    return model


@contextmanager
def _names_from_zero() -> Generator[None]:
    """Have coremltools number its names from 0: it counts them for the whole process."""
    before = mb.name_count
    mb.name_count = defaultdict(int)
    try:
        yield
    finally:
        mb.name_count = before


def program_of(
    graph: MLGraph, minimum: Minimum = "iOS17", feeds: Mapping[str, Any] | None = None
) -> tuple[Any, dict[str, str]]:
    """Return the program of a graph, and the names of inputs and outputs by its identifiers.

    Args:
        graph: the graph.
        minimum: the oldest system that runs the model.
        feeds: arrays that take the place of inputs, as constants.
    """
    if minimum not in TARGETS:
        raise MLTypeError("unknown system", operator="to_coreml", got=repr(minimum), allowed=", ".join(TARGETS))
    check_graph(graph, "to_coreml")
    if graph.source.aliases:
        raise NotSupportedError("outputs that update inputs in place cannot be written as Core ML", operator="to_coreml")
    with ml.create_context(backend="reference") as context:
        source = standard(graph, context, keep=WRITERS, compose=NETWORKS).source
    return _Writing(source, minimum, feeds or {}).program()


def write_coreml(graph: MLGraph, path: str | os.PathLike[str], *, minimum: Minimum = "iOS17") -> list[Path]:
    """Write a graph as a Core ML package. The same graph gives the same bytes.

    Args:
        graph: the graph.
        path: the package, which is a folder. One of this name is replaced.
        minimum: the oldest system that runs the model.

    Returns:
        The package.

    Raises:
        MLTypeError: an unknown `minimum`.
        NotSupportedError: as `to_coreml`.

    Example:
        >>> import tempfile
        >>> from webnn_wgpu.exporters.coreml import write_coreml
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     [path.name for path in write_coreml(b.build({"y": b.softmax(x, 1)}), f"{folder}/scores.mlpackage")]
        ['scores.mlpackage']
    """
    target = Path(path)
    model = to_coreml(graph, minimum=minimum)
    with tempfile.TemporaryDirectory(dir=target.parent) as folder:
        package = Path(folder) / target.with_suffix(".mlpackage").name
        model.save(str(package))
        _make_stable(package)
        if target.is_dir():
            shutil.rmtree(target)
        os.replace(package, target)
    return [target]


def _make_stable(package: Path) -> None:
    """Give a package fixed identifiers, and remove metadata that differ from run to run."""
    manifest = json.loads((package / "Manifest.json").read_text())
    entries = manifest["itemInfoEntries"]
    fixed = {old: str(uuid.uuid5(uuid.NAMESPACE_URL, entry["path"])).upper() for old, entry in entries.items()}
    manifest["itemInfoEntries"] = {fixed[old]: entry for old, entry in sorted(entries.items(), key=lambda e: e[1]["path"])}
    manifest["rootModelIdentifier"] = fixed[manifest["rootModelIdentifier"]]
    (package / "Manifest.json").write_text(json.dumps(manifest, indent=2, sort_keys=True) + "\n")
    (file,) = package.rglob("*.mlmodel")
    spec: Any = ct.proto.Model_pb2.Model()
    spec.ParseFromString(file.read_bytes())
    for name in UNSTABLE:
        spec.description.metadata.userDefined.pop(name, None)
    file.write_bytes(spec.SerializeToString(deterministic=True))


class _Writing:
    """One walk over a graph."""

    def __init__(self, source: Graph, minimum: Minimum, feeds: Mapping[str, Any]) -> None:
        self.source, self.minimum, self.feeds = source, minimum, feeds
        self.identifiers = names.UniqueNames()
        self.names: dict[str, str] = {}
        self.values: dict[int, Var] = {}
        for value in source.values.values():
            if len(value.type.shape) > movement.MOST_DIMENSIONS:
                raise NotSupportedError("Core ML has 5 dimensions", operator="to_coreml", got=str(value.type))

    def identifier(self, name: str) -> str:
        found = self.identifiers.of(names.identifier(name.replace(".", "_").replace("/", "_").replace("$", "_")))
        self.names[found] = name
        return found

    def program(self) -> tuple[Any, dict[str, str]]:
        source = self.source
        inputs = {name: self.identifier(name) for name in source.inputs if name not in self.feeds}
        placeholders: dict[str, Any] = {}
        for name, identifier in inputs.items():
            type_ = source.type(source.inputs[name])
            placeholders[identifier] = mb.placeholder(shape=type_.shape or (1,), dtype=TYPES[held(type_.data_type)])
        program = mil.Program()
        with mil.Function(placeholders, opset_version=TARGETS[self.minimum]) as function:
            for name, value in source.inputs.items():
                if name in self.feeds:
                    self.values[value] = mb.const(val=held_array(np.asarray(self.feeds[name]), name))
                    continue
                found = function.inputs[inputs[name]]
                self.values[value] = found if source.type(value).shape else mb.squeeze(x=found)
            for value, array in source.constants.items():
                self.values[value] = mb.const(val=held_array(array, ""))
            for node in source.nodes:
                self.operator(node)
            outputs: list[Var] = []
            for name, value in source.outputs.items():
                found = self.values[value]
                identifier = self.identifier(name)
                if not source.type(value).shape:
                    outputs.append(mb.reshape(x=found, shape=[1], name=identifier))
                else:
                    outputs.append(mb.identity(x=found, name=identifier))
            function.set_outputs(outputs)
            program.add_function("main", function)
        return program, self.names

    def operator(self, node: Any) -> None:
        source = self.source
        call = CoreCall(
            operator=node.op,
            label=node.label,
            attrs=node.attrs,
            operands=[None if v is None else self.values[v] for v in node.inputs],
            types=["" if v is None else source.type(v).data_type for v in node.inputs],
            arrays=[None if v is None else source.constants.get(v) for v in node.inputs],
            results=[(source.type(v).data_type, tuple(source.type(v).shape)) for v in node.outputs],
        )
        writer = WRITERS.get(node.op)
        if writer is None:
            raise call.refuse("there is no such operator")
        try:
            made = writer(call)
        except (ValueError, TypeError) as error:
            # coremltools' builder has no error of its own for operands that it refuses.
            raise call.refuse(str(error).strip().splitlines()[0][:200] if str(error).strip() else "") from error
        results: list[Var] = cast("list[Var]", made) if isinstance(made, list) else [made]
        for value, result in zip(node.outputs, results, strict=True):
            self.values[value] = result
