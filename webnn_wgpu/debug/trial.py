"""`debug.try_kernel`: a source against the kernel that it is to replace, on the same inputs: is it right, and is it faster?"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from webnn_wgpu.accuracy.distance import absolute_distance, ulp_distance
from webnn_wgpu.api.arrays import failing
from webnn_wgpu.api.backend import ON_A_DEVICE
from webnn_wgpu.api.graph import MLGraph
from webnn_wgpu.api.internals import context_of, executable_of
from webnn_wgpu.core.data_types import Array
from webnn_wgpu.core.errors import InvalidStateError, NotSupportedError
from webnn_wgpu.inspection.kernels import Override
from webnn_wgpu.kernels.source_map import map_of_source
from webnn_wgpu.runtime.program import Program
from webnn_wgpu.runtime.trials import try_source

from .diff import by_transforms
from .observing import ObservedValues, observing
from .oracles import Reference

RUNS = 20
"""The default number of timed runs of each kernel."""


@dataclass(frozen=True, kw_only=True)
class ResultError:
    """The difference between one result of a kernel and the result of the original.

    Attributes:
        type: the data type and shape, as `float32[2, 3]`.
        elements: the number of elements.
        different: the number of elements that differ.
        max_abs_error: the largest difference. Infinite if a NaN or infinity has no counterpart.
        max_ulp: the largest distance in representable numbers of the data type.
        wrong: the number of elements beyond the permitted error of the numpy reference. None if no element differs, or if the
            operator has no reference.
    """

    type: str
    elements: int
    different: int
    max_abs_error: float
    max_ulp: float
    wrong: int | None = None

    def __str__(self) -> str:
        if not self.different:
            return f"{self.type}: all {self.elements} elements are the same"
        text = (
            f"{self.type}: {self.different} of {self.elements} elements differ from the original's, by at most "
            f"{self.max_abs_error:.3g}, {self.max_ulp:.4g} ULP"
        )
        if self.wrong is None:
            return text
        return f"{text}; {'all agree' if not self.wrong else f'{self.wrong} disagree'} with the numpy reference"


@dataclass(frozen=True)
class KernelTrial:
    """A comparison of a source with the kernel that it would replace. `print` shows it.

    The object is true if the results are equal.

    Attributes:
        kernel: the name of the kernel.
        results: one entry for each result of its operator.
        microseconds: the device time of the source, the median of several runs. None if the device takes no timestamps.
        original_microseconds: the device time of the original, in alternating runs.
    """

    kernel: str
    results: tuple[ResultError, ...]
    microseconds: float | None
    original_microseconds: float | None

    def __bool__(self) -> bool:
        return not any(result.different for result in self.results)

    def speed(self) -> str:
        """Return one line: the times of both."""
        if self.microseconds is None or self.original_microseconds is None:
            return "no times: the device takes no timestamps"
        share = f", {self.original_microseconds / self.microseconds:.2f} x as fast" if self.microseconds else ""
        return f"{self.microseconds:.1f} us, the original {self.original_microseconds:.1f} us{share}"

    def __str__(self) -> str:
        return "\n".join([f"{self.kernel}: {self.speed()}", *(f"  {result}" for result in self.results)])


def try_kernel(
    graph: MLGraph,
    feeds: Mapping[str, Any],
    kernel: str,
    wgsl: str | os.PathLike[str] | None = None,
    *,
    runs: int = RUNS,
) -> KernelTrial:
    """Run a source instead of a kernel, compare its results with the original's, and time both in turn.

    Results that differ are compared with the numpy reference too, as `diff` compares them. The graph keeps its installed
    kernels: `MLGraph.override` installs a source.

    Args:
        graph: the graph.
        feeds: every input by name, as for `MLContext.compute`.
        kernel: the name of the kernel, or the label of an operator that one kernel computes.
        wgsl: the path of a file, or WGSL with the entry point `main`. None is the source that overrides the kernel.
        runs: the number of timed runs of each. 0 takes no times.

    Returns:
        The differences of the results, and the times.

    Raises:
        MLTypeError: no kernel has the name, or more than one. There is no source, or the inputs are invalid.
        OSError: the file cannot be read.
        OperationError: the source does not compile, or its bindings differ. The message names file, line and column.
        InvalidStateError: the graph was destroyed, the context lost, or a run in steps has not finished.
        NotSupportedError: the numpy reference has no kernels.

    Example:
        >>> from webnn_wgpu import debug
        >>> graph = b.build({"y": b.neg(x)})
        >>> wgsl = graph.kernels["neg_0"].wgsl.replace("-(x0)", "0.5 - x0")
        >>> trial = debug.try_kernel(graph, {"x": np.zeros((2, 3), np.float32)}, "neg_0", wgsl)
        >>> bool(trial), trial.results[0].max_abs_error
        (False, 0.5)
    """
    context = context_of(graph)
    arrays = context.checked_inputs(graph, feeds, "try_kernel")
    found = graph.kernels.one(kernel, "try_kernel")
    override = found.override if wgsl is None else Override.of(wgsl, found.spec)
    fail = failing("try_kernel", found.name)
    if override is None:
        raise fail("there is no source to try: none is given, and the kernel is not overridden", hint="Pass a file or WGSL")
    if runs < 0:
        raise fail("runs must not be negative", got=str(runs))
    program = executable_of(graph)
    if not isinstance(program, Program):
        raise NotSupportedError("the numpy reference has no kernels", operator="try_kernel", label=found.name, hint=ON_A_DEVICE)
    with context.guarded("try_kernel", label=found.name), context.lock:
        tried = try_source(program, found.name, map_of_source(override.wgsl, override.file), arrays, runs)
    results = tuple(_error(a, e) for a, e in zip(tried.actual, tried.expected, strict=True))
    if any(result.different for result in results):
        wrong = _disagreeing(graph, found.name, arrays, tried.actual)
        results = tuple(replace(result, wrong=count) for result, count in zip(results, wrong, strict=True))
    medians = [None, None] if tried.microseconds is None else np.median(tried.microseconds, axis=0).tolist()
    return KernelTrial(found.name, results, medians[1], medians[0])


def _disagreeing(graph: MLGraph, kernel: str, inputs: Mapping[str, Array], results: Sequence[Array]) -> Sequence[int | None]:
    """Return how many elements of each result of a kernel's operator disagree with the numpy reference."""
    plan = graph.plan
    assert plan is not None
    position = plan.dispatches[list(graph.kernels).index(kernel)].node
    unknown: list[int | None] = [None] * len(results)
    if position is None:
        return unknown
    operands: list[Array | None] = []
    values = ObservedValues(graph.optimized, lambda at, given, _: operands.extend(given if at == position else ()))
    context = context_of(graph)
    with context.guarded("try_kernel", label=kernel), context.lock, observing(graph, values, "try_kernel"):
        executable_of(graph).start(inputs, list(graph.outputs)).result()
    stored = dict(zip((v for v in graph.optimized.nodes[position].outputs if v in plan.places), results, strict=True))
    given = [stored.get(value) for value in graph.optimized.nodes[position].outputs]
    kernels = [each for each, planned in zip(graph.kernels.values(), plan.dispatches, strict=True) if planned.node == position]
    judged = Reference(graph).judge(position, operands, given, by_transforms(kernels))
    if judged is None:
        return unknown
    return [int(np.count_nonzero(each.wrong)) for each, result in zip(judged, given, strict=True) if result is not None]


def inputs_of(graph: MLGraph, run: Callable[[], object]) -> dict[str, Array]:
    """Return the inputs of a graph in the first of its runs that a function makes.

    Raises:
        InvalidStateError: another observer watches the graph.
    """
    given: list[Mapping[int, Array]] = []
    executable = executable_of(graph)
    with context_of(graph).lock:
        if executable.observer is not None:
            raise InvalidStateError("only one observer may watch a graph at a time", operator="try_kernel", got=repr(graph))
        executable.observer = lambda node, arrays: given.append(arrays) if node is None else None
    try:
        run()
    finally:
        executable.observer = None
    return {name: given[0][value] for name, value in graph.optimized.inputs.items()}


def _error(actual: Array, expected: Array) -> ResultError:
    apart, ulp = absolute_distance(actual, expected), ulp_distance(actual, expected)
    return ResultError(
        type=f"{actual.dtype}{list(actual.shape)}",
        elements=actual.size,
        different=int(np.count_nonzero(apart)),
        max_abs_error=float(np.max(apart, initial=0)),
        max_ulp=float(np.max(ulp, initial=0)),
    )
