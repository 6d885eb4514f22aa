"""`debug.trace`: the values of the `dbg` statements of a running kernel."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias, cast, overload

import numpy as np

from webnn_wgpu.api.internals import context_of, executable_of, internals

from ..api.arrays import failing, is_integer
from ..api.backend import ON_A_DEVICE, DeviceBackend, no_device
from ..api.graph import MLGraph
from ..api.own_kernels import prepared_run, results_of
from ..core.data_types import Array
from ..core.errors import NotSupportedError
from ..display.tables import aligned, rich_table
from ..inspection.kernels import Override
from ..kernels.dbg import dbg_statements
from ..kernels.source_map import SourceMap, SourceOrigin, map_of_source
from ..runtime.own_kernels import run_kernel, run_spec
from ..runtime.program import Program
from ..runtime.tracing import Records, Tracer
from ..runtime.trials import trace_kernel

LIMIT = 4096
"""The default number of values that a trace holds."""

Id: TypeAlias = tuple[int, int, int]

_PRINTED = 40
"""Most values that a printed trace shows."""

_TITLES = ("workgroup", "invocation", "#", "name", "value", "line")
_IDS = ("workgroup", "invocation", "global")


@dataclass(frozen=True, eq=False, kw_only=True)
class TracedValue:
    """One value of a `dbg` statement.

    Attributes:
        workgroup: the workgroup.
        invocation: the `local_invocation_id`.
        name: the name of the value in the statement.
        value: a numpy scalar, or an array of a vector's components.
        occurrence: the number of times that this invocation reached the statement before.
        place: the location of the statement.
    """

    workgroup: Id
    invocation: Id
    name: str
    value: Any
    occurrence: int
    place: SourceOrigin


Where: TypeAlias = str | Mapping[str, Any] | Callable[[TracedValue], bool] | None


class Trace(Sequence[TracedValue]):
    """The values of the `dbg` statements of a kernel, by invocation, then in the order of the run.

    `print` shows a table of the first ones.

    Attributes:
        total: the number of values. It exceeds the length of the trace if the buffer was too small.
        lost: the number of values that did not fit.
        result: the result of the run of `trace_wgsl`. None for `trace`.
    """

    def __init__(self, values: Sequence[TracedValue], total: int, lost: int, result: Any = None) -> None:
        self._values, self.total, self.lost, self.result = tuple(values), total, lost, result

    @overload
    def __getitem__(self, index: int) -> TracedValue: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[TracedValue]: ...
    def __getitem__(self, index: int | slice) -> Any:
        return self._values[index]

    def __len__(self) -> int:
        return len(self._values)

    def values(self, name: str) -> Array:
        """Return the values of one name in an array. The last dimension has the components of vectors.

        Args:
            name: the expression of the `dbg` statement, as the template has it.
        """
        return np.array([v.value for v in self._values if v.name == name])

    def summary(self) -> str:
        """Return one line: the number of values, and of lost ones."""
        lost = f"; {self.lost} more did not fit: give a larger limit, or trace fewer invocations" if self.lost else ""
        return f"{len(self)} {'value' if len(self) == 1 else 'values'}{lost}"

    def rows(self) -> list[tuple[str, ...]]:
        """Return the table's lines, one for each value."""
        return [
            (_triple(v.workgroup), _triple(v.invocation), str(v.occurrence), v.name, _shown(v.value), str(v.place))
            for v in self._values
        ]

    def __str__(self) -> str:
        table = aligned([_TITLES, *self.rows()[:_PRINTED]], (2,)) if self._values else []
        return "\n".join([self._heading(), *table])

    def __rich__(self) -> Any:
        return rich_table(self._heading(), [_TITLES, *self.rows()[:_PRINTED]], (2,))

    def _heading(self) -> str:
        if not self._values:
            return (
                f"{self.summary()}: no selected invocation ran a dbg statement. `where` counts `invocation` in its workgroup, "
                "and `global` in the grid"
            )
        return self.summary() + (f"; the first {_PRINTED}, `where` selects others" if len(self) > _PRINTED else "")

    def __repr__(self) -> str:
        return f"Trace({self.summary()})"


def trace(
    graph: MLGraph,
    feeds: Mapping[str, Any],
    kernel: str,
    *,
    where: Where = None,
    wgsl: str | os.PathLike[str] | None = None,
    limit: int = LIMIT,
) -> Trace:
    """Run a graph up to one kernel, and return the values of that kernel's `dbg` statements.

    A source may have `dbg(value, "name");` at the position of any statement: in a template of the package, in a source of
    `wgsl_op`, and in one that overrides a kernel. The values are scalars and vectors of f32, i32, u32, f16 and bool. Other runs
    use kernels from sources without the `dbg` statements.

    Args:
        graph: the graph.
        feeds: every input by name, as for `MLContext.compute`.
        kernel: the name of the kernel, or the label of an operator that one kernel computes.
        where: the traced invocations. A mapping of `workgroup`, `invocation` (in its workgroup) and `global` to (x, y, z)
            selects them, each a number, a `range`, or None for any. Missing entries permit any. A WGSL condition on these names
            selects them too, such as "workgroup.x == 0u && invocation.y < 2u". The device applies both, so that other
            invocations take no space in the buffer. A function of a `TracedValue` filters the values that the device wrote.
        wgsl: a source, or a file, to trace instead of the kernel's source.
        limit: the maximum number of values, 44 bytes each.

    Returns:
        The values, as a sequence and, by `print`, as a table.

    Raises:
        MLTypeError: no kernel has the name, or more than one. The kernel has no `dbg` statement, `where` or `limit` is invalid,
            or the inputs are.
        OperationError: the source or `where` does not compile, or a value is no scalar or vector. Or the kernel already binds
            as many storage buffers as the device allows, and the trace needs one more.
        InvalidStateError: the graph was destroyed, the context lost, or a run in steps has not finished.
        NotSupportedError: the numpy reference has no kernels.

    Example:
        >>> from webnn_wgpu import debug
        >>> graph = b.build({"y": b.neg(x)})
        >>> wgsl = graph.kernels["neg_0"].wgsl.replace("return y0;", 'dbg(y0, "negated"); return y0;')
        >>> ones = np.ones((2, 3), np.float32)
        >>> print(debug.trace(graph, {"x": ones}, "neg_0", wgsl=wgsl, where={"invocation": 0})[0].value)
        -1.0
    """
    context = context_of(graph)
    arrays = context.checked_inputs(graph, feeds, "trace")
    found = graph.kernels.one(kernel, "trace")
    if wgsl is None:
        source = found.map_source(dbg=True)
    else:
        given = Override.of(wgsl, found.spec)
        source = map_of_source(given.wgsl, given.file, dbg=True)
    condition, keep = _condition(where, found.name)
    _check(source, limit, found.name)
    program = executable_of(graph)
    if not isinstance(program, Program):
        raise NotSupportedError("the numpy reference has no kernels", operator="trace", label=found.name, hint=ON_A_DEVICE)
    with context.guarded("trace", label=found.name), context.lock:
        records = trace_kernel(program, found.name, source, arrays, condition, limit)
    return _trace(records, source, keep)


def trace_wgsl(
    source: str,
    *arguments: Any,
    workgroups: Any,
    constants: Mapping[str, Any] | None = None,
    context: Any = None,
    label: str = "",
    where: Where = None,
    limit: int = LIMIT,
) -> Trace:
    """Run a shader like `run_wgsl`, and return the values of its `dbg` statements, see `trace`.

    Args:
        source: WGSL with an entry point `main`.
        arguments: as for `run_wgsl`.
        workgroups: as for `run_wgsl`.
        constants: as for `run_wgsl`.
        context: as for `run_wgsl`.
        label: as for `run_wgsl`.
        where: the traced invocations, as for `trace`.
        limit: the maximum number of values.

    Returns:
        The values. `result` is the result of `run_wgsl`.

    Raises:
        MLTypeError, OperationError, InvalidStateError: as `run_wgsl` and `trace` do.

    Example:
        >>> from webnn_wgpu import debug
        >>> wgsl = '''
        ... @group(0) @binding(0) var<storage, read_write> x: array<f32>;
        ... @compute @workgroup_size(2) fn main(@builtin(local_invocation_index) i: u32) {
        ...     dbg(x[i], "before");
        ...     x[i] = x[i] * 2.0;
        ... }'''
        >>> found = debug.trace_wgsl(wgsl, np.float32([1, 2]), workgroups=1)
        >>> print(found.values("before"), found.result)
        [1. 2.] [2. 4.]
    """
    condition, keep = _condition(where, label)
    run = prepared_run("trace_wgsl", source, arguments, workgroups, constants, context, label)
    traced = map_of_source(run.source, dbg=True)
    _check(traced, limit, label)
    context = internals(run.context)
    if not isinstance(context.backend, DeviceBackend):
        raise no_device()
    device = context.backend.device
    with context.guarded("trace_wgsl", label=label), context.lock:
        tracer = Tracer(device, run_spec(run.source, run.arguments), traced, condition, limit)
        pending = run_kernel(device, run.source, run.arguments, run.grid, tracer)
        records = tracer.records()
    return _trace(records, traced, keep, results_of(run, pending))


def _check(source: SourceMap, limit: int, label: str) -> None:
    fail = failing("trace", label)
    if not dbg_statements(source.text):
        raise fail("the kernel has no dbg statement", got=source.file, allowed='dbg(value, "name"); in a function of it')
    if limit < 1:
        raise fail("limit must be positive", got=str(limit))


def _condition(where: Where, label: str) -> tuple[str, Callable[[TracedValue], bool]]:
    """Return the WGSL condition for the device, and the filter for the values that it wrote."""
    if where is None or callable(where):
        return "true", where or (lambda _: True)
    if isinstance(where, str):
        return where, lambda _: True
    fail = failing("trace", label)
    parts: list[str] = []
    for name, wanted in where.items():
        if name not in _IDS:
            raise fail("where must name ids of invocations", got=repr(name), allowed=", ".join(_IDS))
        each: list[Any] = [*wanted] if isinstance(wanted, tuple | list) else [wanted]
        if len(each) > 3:
            raise fail(f"'{name}' must have at most three parts", got=repr(each))
        for component, part in zip("xyz", each, strict=False):
            if isinstance(part, range) and part.step == 1 and part.start >= 0:
                parts.append(f"({name}.{component} - {part.start}u < {len(part)}u)")
            elif is_integer(part) and part >= 0:  # pyright: ignore[reportOperatorIssue] - no range
                parts.append(f"({name}.{component} == {part}u)")
            elif part is not None:
                raise fail(f"the parts of '{name}' must be numbers, ranges or None", got=repr(part))
    return " && ".join(parts) or "true", lambda _: True


def _trace(records: Records, source: SourceMap, keep: Callable[[TracedValue], bool], result: Any = None) -> Trace:
    words = records.words
    # Workgroup and invocation, last dimension first, as WebGPU numbers them. The sort preserves the order of each invocation.
    order = np.lexsort([words[:, i] for i in (3, 4, 5, 0, 1, 2)])
    found = [value for value in _decoded(records, words[order], source) if keep(value)]
    return Trace(found, records.total, records.total - len(words), result)


def _decoded(records: Records, words: Array, source: SourceMap) -> Iterator[TracedValue]:
    places = [_place(source, statement.start) for statement in records.statements]
    values = [type_.decoded(words[:, 7:]) for type_ in records.types]
    times: Counter[tuple[int, ...]] = Counter()
    heads: list[list[int]] = words[:, :7].tolist()
    for row, ids in enumerate(heads):
        number = ids[6]
        name = records.statements[number].name
        workgroup, invocation = cast("Id", tuple(ids[:3])), cast("Id", tuple(ids[3:6]))
        yield TracedValue(
            workgroup=workgroup,
            invocation=invocation,
            name=name,
            value=values[number][row],
            occurrence=times[tuple(ids)],
            place=places[number],
        )
        times[tuple(ids)] += 1


def _place(source: SourceMap, offset: int) -> SourceOrigin:
    return source.place(source.text.count("\n", 0, offset) + 1, offset - source.text.rfind("\n", 0, offset))


def _triple(at: Id) -> str:
    return ",".join(map(str, at))


def _shown(value: Any) -> str:
    return "  ".join(map(str, value)) if isinstance(value, np.ndarray) else str(value)  # pyright: ignore[reportUnknownArgumentType] - any vector's
