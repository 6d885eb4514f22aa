"""`diff`: the first operator of a graph that computes something else than it should."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from webnn_wgpu.accuracy.judging import Judgement
from webnn_wgpu.api.context import MLContext
from webnn_wgpu.api.graph import MLGraph
from webnn_wgpu.api.internals import check_operators, context_of, executable_of
from webnn_wgpu.core.data_types import Array
from webnn_wgpu.core.errors import MLTypeError, NotSupportedError
from webnn_wgpu.inspection.kernels import Kernel
from webnn_wgpu.ir.graph import Graph, Node, file_places
from webnn_wgpu.plan.labels import node_label

from .comparison import Comparison, compare
from .observing import ObservedValues, observing, part_of, without
from .oracles import Oracle, OtherGraph, Reference
from .report import GraphDiff, OperatorDiff, badness
from .repro import Repro, kernels_repro, new_folder, operator_repro

if TYPE_CHECKING:
    from webnn_wgpu.frontends.common.model import ImportedModel
    from webnn_wgpu.frontends.onnx.model import Model
    from webnn_wgpu.frontends.webnn import WebNNModel


def diff(
    graph: MLGraph | Model | WebNNModel | str | os.PathLike[str],
    feeds: Mapping[str, Any],
    against: str | MLGraph | MLContext = "reference",
    *,
    folder: str | os.PathLike[str] | None = None,
) -> GraphDiff:
    """Run a graph with its installed kernels, and compare the results of each kernel with expected results.

    The oracle computes the expected results from the kernel's operands on the device, so that an earlier error does not count
    for a later kernel. The bounds are those of the kernel's operators. Kernels from `override` are compared too. If a kernel of
    several operators is wrong, these run one by one as well. If one of them is wrong by itself, the report names it, otherwise
    it names the kernel with all its labels.

    Args:
        graph: a graph, a model that `load` returned, or a model's path. The graphs of a model are compared one by one.
        feeds: an array for each input, by name, as for `MLContext.compute` or `Model.run`.
        against: the oracle. "reference" is numpy. "onnxruntime" compares the nodes of an ONNX model one by one, without
            fusion. A context compiles the graph anew, without its overrides. Another graph of the same operators keeps its
            own kernels, for example those of another device, driver or variant.
        folder: the folder for repros, one for the first wrong operator and one for the worst. None creates a new folder
            among the system's temporary files.

    Returns:
        The report. `first` is None if all results agree.

    Raises:
        MLTypeError: a missing or unknown name, a wrong data type or size, or an invalid `against`.
        InvalidStateError: the graph was destroyed, its context lost, or another observer watches it.
        OperationError: a device failed to run a graph.

    Numerics: The bounds are those of the operators of the optimized graph, so passes that round less often cause no errors.

    Example:
        >>> from webnn_wgpu import debug
        >>> graph = b.build({"z": b.softmax(b.neg(x, label="minus"), axis=1)})
        >>> feeds = {"x": np.ones((2, 3), np.float32)}
        >>> print(debug.diff(graph, feeds).first)
        None
        >>> _ = graph.override("minus", graph.kernels["minus"].wgsl.replace("-(x0)", "x0"))
        >>> found = debug.diff(graph, feeds).first
        >>> found.label, found.op, found.max_abs_error
        ('minus', 'neg', 2.0)
    """
    if not isinstance(graph, MLGraph):
        return _diff_model(graph, feeds, against, folder)
    check_operators(graph, "diff")
    context = context_of(graph)
    arrays = context.checked_inputs(graph, feeds, "diff")
    oracle, made = _oracle(graph, against)
    try:
        run = _ComparedRun(graph=graph, oracle=oracle)
        values = ObservedValues(graph.optimized, run.see)
        with context.guarded("diff"), context.lock, observing(graph, values, "diff"):
            results = executable_of(graph).start(arrays, list(graph.outputs)).result()
        run.check_copies(values.finish(), results)
        outputs = oracle.outputs(arrays)
    finally:
        if made is not None:
            made.destroy()
    compared = {name: compare(results[name], array, float("inf")) for name, array in outputs.items()}
    return run.report(compared, folder)


def _diff_model(
    model: ImportedModel | WebNNModel | str | os.PathLike[str],
    feeds: Mapping[str, Any],
    against: Any,
    folder: str | os.PathLike[str] | None,
) -> GraphDiff:
    """Compare the graphs of a model, or the nodes of an ONNX model."""
    from webnn_wgpu import Model
    from webnn_wgpu.frontends.loading import load_file

    if isinstance(model, (str, os.PathLike)):
        with load_file(model, fallback="host") as loaded:
            return _diff_model(loaded, feeds, against, folder)
    if against == "onnxruntime":
        from .onnx_nodes import diff_nodes, exported

        place = None if folder is None else Path(folder)
        if isinstance(model, Model):
            return diff_nodes(model, feeds, place)
        with exported(model, feeds) as other:
            return diff_nodes(other, feeds, place)
    found = [diff(graph, given, against, folder=folder) for graph, given in graphs_of(model, feeds).items()]
    return GraphDiff(
        found[0].against,
        tuple(each for report in found for each in report.operators),
        {name: output for report in found for name, output in report.outputs.items()},
        tuple(label for report in found for label in report.uncompared),
    )


def graphs_of(model: ImportedModel | WebNNModel, feeds: Mapping[str, Any]) -> dict[MLGraph, Mapping[str, Any]]:
    """Run a model and return the WebNN graphs that it runs, with the inputs of each."""
    from webnn_wgpu.frontends.timing import watched

    with watched() as watch:
        model.run(feeds)
    if not watch.inputs:
        if not model.graphs:
            raise NotSupportedError("the model has no graph that runs on the device", operator="diff", got=repr(model))
        raise NotSupportedError(
            "the model has run no graph that can be looked at",
            operator="diff",
            got=repr(model),
            hint="Load it without kv_cache",
        )
    return dict(watch.inputs)


def _oracle(graph: MLGraph, against: str | MLGraph | MLContext) -> tuple[Oracle, MLGraph | None]:
    """Return the oracle, and the graph that was built for it, if any."""
    if isinstance(against, MLContext):
        made = against.rebuild(graph, overrides=False)
        return OtherGraph(graph, made), made
    if isinstance(against, MLGraph):
        return OtherGraph(graph, against), None
    if against == "reference":
        return Reference(graph), None
    allowed = '"reference", an MLContext, an MLGraph'
    if against == "onnxruntime":
        hint = "Give the model that was loaded, or its path"
        raise NotSupportedError("a graph is no ONNX model", operator="diff", got=repr(against), allowed=allowed, hint=hint)
    raise MLTypeError("`against` must name an oracle", operator="diff", got=repr(against), allowed=allowed)


@dataclass(kw_only=True)
class _ComparedRun:
    """One run of a graph while its operators are compared."""

    graph: MLGraph
    oracle: Oracle
    found: list[OperatorDiff] = field(default_factory=list[OperatorDiff])
    uncompared: list[str] = field(default_factory=list[str])
    repros: dict[int, Repro] = field(default_factory=dict[int, Repro])
    """The repros of the first wrong operator and the worst so far, by position among `found`."""

    def __post_init__(self) -> None:
        self.optimized = self.graph.optimized
        self.kernels: dict[int | None, list[Kernel]] = {}
        if self.graph.plan is not None:
            for planned, kernel in zip(self.graph.plan.dispatches, self.graph.kernels.values(), strict=True):
                self.kernels.setdefault(planned.node, []).append(kernel)

    def see(self, position: int, operands: list[Array | None], results: list[Array | None]) -> None:
        """Compare one node's results with the expected ones."""
        node = self.optimized.nodes[position]
        kernels = self.kernels.get(position, [])
        judged = self.oracle.judge(position, operands, results, by_transforms(kernels))
        if judged is None:
            self.uncompared.append(node_label(node))
            return
        labels = tuple(dict.fromkeys(label for kernel in kernels for label in kernel.labels))
        entry = _entry(node, results, judged, labels, kernels)
        if not entry and not self._split(position, node, operands):
            if entry.overridden or isinstance(node.attrs.get("body"), Graph):
                given = {v: a for v, a in zip(node.inputs, operands, strict=True) if v is not None and a is not None}
                repro = kernels_repro(self.graph, kernels, given, dict(zip(node.outputs, judged, strict=True)))
            else:
                repro = operator_repro(self.graph, node, self.optimized, operands, self.optimized.constants, judged)
            self._add(entry, repro)
        elif entry:
            self.found.append(entry)

    def _split(self, position: int, node: Node, operands: Sequence[Array | None]) -> bool:
        """Run the operators of a fused node one by one, compare them, and return whether one is wrong by itself."""
        body = node.attrs.get("body")
        if not isinstance(body, Graph):
            return False
        given = {inner: operands[int(name)] for name, inner in body.inputs.items()}
        arrays = {inner: array for inner, array in given.items() if array is not None}
        outer = {inner: node.inputs[int(name)] for name, inner in body.inputs.items()}
        stored = self.optimized.constants
        constants = {inner: stored[value] for inner, value in outer.items() if value is not None and value in stored}
        parts = part_of(body, body.nodes, constants, every=True)
        context = context_of(self.graph)
        with context.compile(parts, None, without(), "diff") as alone:
            made = context.context.compute(alone, {name: arrays[value] for name, value in parts.inputs.items()})
        arrays |= {value: made[name] for name, value in parts.outputs.items()}
        wrong = False
        for member in body.nodes:
            had = [None if value is None else arrays[value] for value in member.inputs]
            results = [arrays[value] for value in member.outputs]
            judged = self.oracle.judge_alone(body, member, had, results)
            if judged is None:
                continue
            entry = _entry(member, results, judged, (node_label(member),), [])
            if not entry:
                wrong = True
                self._add(entry, operator_repro(self.graph, member, body, had, constants, judged))
        return wrong

    def _add(self, entry: OperatorDiff, repro: Repro) -> None:
        worst = max((self.found[at] for at in self.repros), key=badness, default=None)
        if worst is None or badness(entry) > badness(worst):
            # All but the first are better now than the worst: their operands need not be kept.
            for at in list(self.repros)[1:]:
                del self.repros[at]
            self.repros[len(self.found)] = repro
        self.found.append(entry)

    def check_copies(self, values: Mapping[str, Array], results: Mapping[str, Array]) -> None:
        """Compare outputs that are copies with their sources."""
        for kernel in self.kernels.get(None, []):
            name = next(n for n in self.optimized.outputs if kernel.bindings[-1].bound_to == f"output {n}")
            if name not in values:
                continue
            result = compare(results[name], values[name], 0)
            found = OperatorDiff(
                **vars(result),
                label=kernel.name,
                op="copy",
                labels=kernel.labels or (kernel.name,),
                kernels=(kernel.name,),
                overridden=kernel.overridden,
                places=kernel.places,
            )
            if found:
                self.found.append(found)
            else:
                value = self.optimized.outputs[name]
                judgement = Judgement(values[name], np.zeros(values[name].shape), np.asarray(results[name] != values[name]))
                self._add(found, kernels_repro(self.graph, [kernel], {value: values[name]}, {value: judgement}, name))

    def report(self, outputs: Mapping[str, Comparison], folder: str | os.PathLike[str] | None) -> GraphDiff:
        """Return the report, and write its repro files."""
        report = GraphDiff(self.oracle.name, tuple(self.found), outputs, tuple(self.uncompared))
        return report.with_repros(self.repros, new_folder if folder is None else Path(folder))


def by_transforms(kernels: Sequence[Kernel]) -> bool:
    """Return whether kernels compute a convolution by Winograd's transforms, whose bounds are wider."""
    return any(kernel.spec.template.startswith("winograd") for kernel in kernels)


def _entry(
    node: Node, results: Sequence[Array | None], judged: Sequence[Judgement], labels: tuple[str, ...], kernels: Sequence[Kernel]
) -> OperatorDiff:
    """Return the entry of a node with the numbers of its worst result."""
    pairs = zip(results, judged, strict=True)
    compared = [compare(j.expected if a is None else a, j.expected, j.allowed, j.wrong) for a, j in pairs]
    output = max(range(len(compared)), key=lambda i: (compared[i].wrong > 0, compared[i].share))
    body = node.attrs.get("body")
    return OperatorDiff(
        **vars(compared[output]),
        label=node_label(node),
        op=" + ".join(member.op for member in (body.nodes if isinstance(body, Graph) else (node,))),
        labels=labels or (node_label(node),),
        kernels=tuple(kernel.name for kernel in kernels),
        overridden=any(kernel.overridden for kernel in kernels),
        output=output,
        num_outputs=len(compared),
        places=file_places(node.origins),
    )
