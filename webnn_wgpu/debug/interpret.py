"""The WGSL interpreter: it runs kernels on the CPU, invocation by invocation, and reports their faults."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, cast

import numpy as np

from webnn_wgpu.api.internals import context_of, executable_of

from ..api.backend import ON_A_DEVICE
from ..api.graph import MLGraph
from ..api.own_kernels import completed, data_types_of, grid_of
from ..core.caps import Caps
from ..core.data_types import Array
from ..core.errors import MLTypeError, NotSupportedError
from ..core.wording import counted
from ..display.html import table_html
from ..display.tables import first_few, rich_table
from ..inspection.kernels import Kernel, KernelBinding, source_text
from ..kernels.own import check_elements, wrong_elements
from ..kernels.source_map import OWN_SOURCE, SourceMap, map_of_source
from ..kernels.spec import TEXTURES, Grid
from ..plan.execution_plan import PlannedDispatch
from ..runtime.program import Program
from ..runtime.trials import found_by
from .plan_memory import PlanMemory
from .stops import Quit, Stop, Stopper
from .wgsl import dispatch
from .wgsl.findings import Finding
from .wgsl.machine import Budget
from .wgsl.memory import BufferBytes
from .wgsl.parsing import parse
from .wgsl.syntax import Global, Literal, attribute
from .wgsl.types import ArrayType, Numeric, StructType, Type
from .wgsl.wave import Triple

_SUBGROUP = 32
"""The invocations of a subgroup without a device."""

_TITLES = ("finding", "kernel", "line", "template", "what")

_PARTS = {"half": "float16", "int64.pair": "int64", "uint64.pair": "uint64", "atomic32": "uint32"}
"""Kinds of elements that are no data types, by the data type whose bits they are."""


@dataclass(frozen=True, kw_only=True)
class Interpretation:
    """The results and findings of an interpretation. `print` shows them.

    Attributes:
        outputs: the outputs of a graph, or the buffers that a kernel has written, by name.
        findings: the faults.
        harmless: reads out of bounds or of uninitialized memory whose values do not reach any output. Idle invocations may make
            such reads.
        kernels: the names of the interpreted kernels.
        invocations: the number of invocations.
        complete: whether the interpretation reached the end. False after a stop has quit.
        no_stop: the reason why no invocation stopped, or "" after a stop or without `on_stop`.
    """

    outputs: Mapping[str, Array] = field(repr=False)
    findings: tuple[Finding, ...]
    harmless: tuple[Finding, ...]
    kernels: tuple[str, ...]
    invocations: int
    complete: bool = True
    no_stop: str = ""

    def summary(self) -> str:
        """Return one line: the number of invocations and of findings."""
        what = f"{len(self.kernels)} kernels" if len(self.kernels) != 1 else self.kernels[0] or "the kernel"
        found = counted(len(self.findings), "finding") if self.findings else "nothing found"
        more = f", {counted(len(self.harmless), 'harmless read')}" if self.harmless else ""
        end = "" if self.complete else ", stopped before the end"
        return f"{what}: {counted(self.invocations, 'invocation')}, {found}{more}{end}"

    def rows(self) -> list[tuple[str, ...]]:
        """Return the table's lines, one for each finding."""
        return [(f.kind, f.kernel, str(f.line), f.template, f.message) for f in self.findings]

    def __str__(self) -> str:
        end = [f"no stop: {self.no_stop}"] if self.no_stop else []
        return "\n".join([self.summary(), *map(str, self.findings), *end])

    def __rich__(self) -> Any:
        return rich_table(self.summary(), [_TITLES, *self.rows()], [2], [4])

    def _repr_html_(self) -> str:
        return table_html(self.summary(), [_TITLES, *self.rows()], [2])


@dataclass(kw_only=True)
class _Session:
    """The options and the state that all kernels of an interpretation share."""

    workgroups: Sequence[Triple] | None
    subgroup_size: int
    breakpoints: Collection[int]
    invocation: Triple | None
    on_stop: Callable[[Stop], None] | None
    max_invocations: int
    max_steps: int
    findings: list[Finding] = field(default_factory=list[Finding])
    kernels: list[str] = field(default_factory=list[str])
    invocations: int = 0
    complete: bool = True
    stops: int = 0

    def run(self, kernel: dispatch.SourceKernel, name: str, resources: Mapping[int, dispatch.Resource], grid: Grid) -> None:
        """Interpret a kernel and collect its findings."""
        count = len(self.workgroups) if self.workgroups is not None else grid[0] * grid[1] * grid[2]
        invocations = count * int(np.prod(kernel.workgroup_size))
        if invocations > self.max_invocations:
            raise MLTypeError(
                "the kernel has more invocations than are to be interpreted",
                operator="interpret",
                label=name,
                got=f"{invocations}, in {count} workgroups",
                allowed=f"max_invocations={self.max_invocations}",
                hint="Choose some of its workgroups, or give a higher max_invocations",
            )
        stopper = None
        if self.on_stop is not None:
            stopper = Stopper(name, kernel.source, self.breakpoints, self.invocation, self._stop)
        self.kernels.append(name)
        self.invocations += invocations
        budget = Budget(self.max_steps, self.max_steps)
        try:
            self.findings += kernel.run(
                resources, grid, workgroups=self.workgroups, subgroup_size=self.subgroup_size, budget=budget, debugger=stopper
            )
        except Quit:
            self.complete = False

    def _stop(self, stop: Stop) -> None:
        self.stops += 1
        assert self.on_stop is not None
        self.on_stop(stop)

    def _no_stop(self) -> str:
        """Return the reason why no invocation stopped, or "" after a stop or without a request to stop."""
        if self.on_stop is None or self.stops:
            return ""
        lines = ", ".join(map(str, self.breakpoints))
        if self.invocation is not None:
            return f"invocation {self.invocation} ran no statement{f' at line {lines}' if lines else ''}"
        return f"no statement was run at line {lines}" if lines else "neither breakpoints nor an invocation are given"

    def result(self, outputs: Mapping[str, Array]) -> Interpretation:
        """Return the collected results."""
        found = tuple(f for f in self.findings if not f.harmless)
        harmless = tuple(f for f in self.findings if f.harmless)
        return Interpretation(
            outputs=outputs,
            findings=found,
            harmless=harmless,
            kernels=tuple(self.kernels),
            invocations=self.invocations,
            complete=self.complete,
            no_stop=self._no_stop(),
        )


def interpret(
    what: MLGraph | Kernel | str | os.PathLike[str],
    feeds: Mapping[str, Any] | Sequence[Any],
    *,
    kernel: str | None = None,
    grid: int | Sequence[int] | None = None,
    workgroups: Sequence[Triple] | None = None,
    constants: Mapping[str, Any] | None = None,
    subgroup_size: int | None = None,
    breakpoints: Collection[int] = (),
    invocation: Triple | None = None,
    on_stop: Callable[[Stop], None] | None = None,
    max_invocations: int = 1 << 20,
    max_steps: int = 1_000_000,
) -> Interpretation:
    """Run WGSL in an interpreter that finds accesses out of bounds, races, uninitialized reads and missed barriers.

    The invocations of several workgroups run side by side, statement by statement. The interpreter rounds floats operation by
    operation, while drivers may contract and reorder operations.

    Args:
        what: a graph, whose installed kernels run in order, one of `graph.kernels`, or WGSL. WGSL is a path, or a text if the
            string has a brace. `T`, if the WGSL does not declare it, is the data type of its first buffer, and `T0`, `T1`, ...
            are those of each buffer.
        feeds: the inputs of a graph by name, or the resources of a kernel by name or in order of its bindings. A resource is an
            array, or a number of bytes of uninitialized memory. The outputs of a graph's kernel are uninitialized by default.
            Textures are `[height, width, 4]`.
        kernel: the name or operator of a graph's single kernel to interpret. The kernels before it run on the device.
        grid: the number of workgroups for WGSL: (x, y, z), (x, y) or x.
        workgroups: the positions of the workgroups to run, as (x, y, z). None runs all.
        constants: the values of the WGSL's `override`s, and of its other undeclared constants.
        subgroup_size: the number of invocations of a subgroup. None is the device's number, or 32 without a device.
        breakpoints: the lines before which `invocation` stops.
        invocation: the global_invocation_id of the invocation that stops. None is the first one at a breakpoint. Without
            breakpoints it stops at its first statement.
        on_stop: a function that is called with each `Stop`.
        max_invocations: the maximum number of invocations of a kernel.
        max_steps: the maximum number of statements of a kernel, each counted once for all invocations that run it side by side.

    Returns:
        The outputs and the findings.

    Raises:
        MLTypeError: an invalid argument, or invalid WGSL.
        NotSupportedError: the interpreter does not support the WGSL, or `lark` is not installed: it is in the extra `debug`.
        OperationError: a kernel does not end within `max_steps`.

    Numerics:
        The interpreter implements WGSL's definitions bit by bit: integers, conversions, and single operations on floats. `exp`,
            `sin` and other functions whose last bits WGSL leaves open are rounded from float64, and `fma` rounds twice.

    Example:
        >>> from webnn_wgpu import debug
        >>> source = '''
        ... @group(0) @binding(0) var<storage, read> x: array<f32>;
        ... @group(0) @binding(1) var<storage, read_write> y: array<f32>;
        ... @compute @workgroup_size(4) fn main(@builtin(global_invocation_id) id: vec3<u32>) {
        ...     y[id.x] = 2.0 * x[id.x + 1u];
        ... }'''
        >>> found = debug.interpret(source, [np.float32([1, 2, 3, 4]), 16], grid=1)
        >>> found.outputs["y"]
        array([4., 6., 8., 0.], dtype=float32)
        >>> print(found)
        the kernel: 4 invocations, 1 finding
        out of bounds at line 5: invocation (3, 0, 0) reads x[4]; it has 4 elements (array<f32>)
            y[id.x] = 2.0 * x[id.x + 1u];
    """
    if on_stop is None and (breakpoints or invocation is not None):
        raise MLTypeError(
            "breakpoints and invocation need on_stop",
            operator="interpret",
            got="on_stop=None",
            hint="Pass a function that is called with each stop, for example a Prompt",
        )
    size = subgroup_size or (context_of(what).context.caps.subgroup_size if isinstance(what, MLGraph) else 0) or _SUBGROUP
    session = _Session(
        workgroups=workgroups,
        subgroup_size=size,
        breakpoints=breakpoints,
        invocation=invocation,
        on_stop=on_stop,
        max_invocations=max_invocations,
        max_steps=max_steps,
    )
    if isinstance(what, MLGraph):
        return _of_graph(session, what, feeds, kernel)
    if isinstance(what, Kernel):
        return _of_kernel(session, what, feeds)
    # Statements that trace are for the device.
    text, file = source_text(what)
    name = "" if file == OWN_SOURCE else Path(file).name
    return _of_source(session, map_of_source(text, file), name, feeds, grid, constants or {})


def _of_graph(session: _Session, graph: MLGraph, feeds: Any, chosen: str | None) -> Interpretation:
    arrays = context_of(graph).checked_inputs(graph, feeds, "interpret")
    plan = graph.plan
    if plan is None:
        raise NotSupportedError("the numpy reference has no kernels to interpret", operator="interpret", hint=ON_A_DEVICE)
    memory = PlanMemory(plan, arrays)
    if chosen is not None:
        kernel = graph.kernels.one(chosen, "interpret")
        position = list(graph.kernels).index(kernel.name)
        planned = plan.dispatches[position]
        program: Any = executable_of(graph)
        assert isinstance(program, Program)
        memory.take(position, found_by(program, position, arrays))
        _run_planned(session, kernel, planned, memory)
        written = {b.name: r for b, r in zip(planned.spec.bindings, planned.bindings, strict=True) if b.access == "write"}
        elements = {b.name: b.element for b in kernel.bindings}
        return session.result({name: memory.content(r).view(_numpy(elements[name])) for name, r in written.items()})
    for kernel, planned in zip(graph.kernels.values(), plan.dispatches, strict=True):
        if session.complete:
            _run_planned(session, kernel, planned, memory)
    return session.result({name: memory.output(name) for name in plan.outputs})


def _run_planned(session: _Session, kernel: Kernel, planned: PlannedDispatch, memory: PlanMemory) -> None:
    session.run(_interpreted(kernel), kernel.name, memory.resources(planned), planned.grid)


def _interpreted(kernel: Kernel) -> dispatch.SourceKernel:
    """Return a kernel with the template locations of its lines, which are looked up on demand."""
    return dispatch.SourceKernel(kernel.wgsl, None, kernel.name, lambda line, column: _place(kernel.source_map, line, column))


def _place(source: SourceMap, line: int, column: int) -> str:
    """Return the template location of a line, or "" if that is the line itself."""
    found = source.place(line, column)
    return "" if found.file == OWN_SOURCE else f"{found.file}:{found.line}"


def _of_kernel(session: _Session, kernel: Kernel, feeds: Any) -> Interpretation:
    given = _named(feeds, [b.name for b in kernel.bindings], kernel.name, "bindings")
    resources: dict[int, dispatch.Resource] = {}
    for i, binding in enumerate(kernel.bindings):
        value = given.get(binding.name, binding.size_bytes if binding.access == "write" else None)
        if value is None:
            raise MLTypeError(
                "a buffer that the kernel reads is missing", operator="interpret", label=kernel.name, got=binding.name
            )
        _check_type(value, binding, kernel.name)
        resources[i] = _resource(value, binding.access in TEXTURES, binding.size_bytes)
    uniforms = kernel.spec.packed(list(kernel.constants.values()))
    resources[len(resources)] = _resource(np.frombuffer(uniforms, np.uint8), False, 0)
    session.run(_interpreted(kernel), kernel.name, resources, kernel.grid)
    elements = {b.name: _numpy(b.element) for b in kernel.bindings}
    names = [(i, b.name) for i, b in enumerate(kernel.bindings) if b.access == "write"]
    return session.result({name: _written(resources[i], given.get(name), elements[name]) for i, name in names})


def _check_type(value: Any, binding: KernelBinding, label: str) -> None:
    """Check that an array has the data type of a kernel's buffer. Buffers of bits hold any type of a size."""
    if isinstance(value, int) or binding.access in TEXTURES or binding.element.startswith("bits"):
        return
    wanted, dtype = _numpy(binding.element), np.asarray(value).dtype
    if dtype.itemsize != wanted.itemsize or (dtype.kind == "f") != (wanted.kind == "f"):
        fail = partial(MLTypeError, operator="interpret", label=label)
        raise wrong_elements(binding.name, str(wanted), wanted, dtype, fail)


def _of_source(
    session: _Session, source: SourceMap, name: str, feeds: Any, grid: Any, constants: Mapping[str, Any]
) -> Interpretation:
    def fail(rule: str, **parts: Any) -> MLTypeError:
        return MLTypeError(rule, operator="interpret", label=name, **parts)

    if grid is None:
        raise fail("the number of workgroups must be given for WGSL", allowed="grid=(x, y, z)")
    declared = parse(source.text).declarations
    ids = {k for k in constants if k.isdigit()}
    overrides = ids | {n for n, d in declared.items() if isinstance(d, Global) and d.declaration.kind == "override"}
    free = {n: v for n, v in constants.items() if n not in overrides}
    bound = _bound(declared.values())
    names = [variable.name for variable in bound]
    _named(feeds, names, name)
    in_order = _in_order(feeds, names)
    for variable, value in zip(bound, in_order, strict=False):
        # A type `T` of float64, which WGSL lacks and numpy prefers, has no declaration.
        if variable.declaration.template and np.asarray(value).dtype == np.float64:
            rule = "feeds must have data types of WGSL"
            raise fail(rule, got=f"{variable.name}: float64", hint=f"np.float32({variable.name}) converts it")
    whole, _ = completed(source.text, free, data_types_of(in_order), fail)
    given_overrides = {n: v for n, v in constants.items() if n in overrides}
    kernel = dispatch.SourceKernel(whole, given_overrides, name, lambda line, column: _place(source, line, column))
    wanted = kernel.resources
    given = _named(feeds, [wanted[i].name for i in sorted(wanted)], name)
    if missing := [d.name for d in wanted.values() if d.name not in given]:
        raise fail("feeds must contain every variable of the kernel", got=f"none for {', '.join(missing)}")
    for variable in wanted.values():
        value = given[variable.name]
        if variable.space and not isinstance(value, int):
            check_elements(variable.name, str(variable.type), np.asarray(value).dtype, fail)
    resources = {i: _resource(given[d.name], not d.space, 0) for i, d in wanted.items()}
    session.run(kernel, name, resources, grid_of(grid, Caps(), fail))
    written = {i: d for i, d in wanted.items() if d.access == "read_write"}
    return session.result({d.name: _written(resources[i], given[d.name], _scalar(d.type)) for i, d in written.items()})


def _bound(declared: Iterable[Any]) -> list[Global]:
    """Return the variables with a binding, in the order of the bindings."""
    bindings = [(d, attribute(d, "binding")) for d in declared if isinstance(d, Global)]
    numbers = {d: b.arguments[0].value for d, b in bindings if b is not None and isinstance(b.arguments[0], Literal)}
    return sorted(numbers, key=lambda variable: int(numbers[variable]))


def _in_order(feeds: Any, names: Iterable[str]) -> list[Any]:
    """Return the feeds in the order of the bindings, whose names are given."""
    if not isinstance(feeds, Mapping):
        return list(feeds)
    given = cast("Mapping[str, Any]", feeds)
    return [given.get(name) for name in names]


def _named(feeds: Any, names: list[str], label: str, what: str = "variables") -> dict[str, Any]:
    """Return the feeds by name, where `what` is the kind of things with the names."""
    if not isinstance(feeds, Mapping):
        if len(feeds) > len(names):
            raise MLTypeError(
                "the number of values must not exceed the number of bindings",
                operator="interpret",
                label=label,
                got=f"{len(feeds)} values",
                allowed=f"at most {len(names)}, for {', '.join(names)}",
            )
        return dict(zip(names, feeds, strict=False))
    given: dict[str, Any] = dict(feeds)  # pyright: ignore[reportUnknownArgumentType] - what a caller passes
    if unknown := sorted(set(given) - set(names)):
        raise MLTypeError(
            f"feeds must name {what} of the kernel",
            operator="interpret",
            label=label,
            got=", ".join(unknown),
            allowed=first_few(names) or "none",
        )
    return given


def _resource(value: Any, texture: bool, size_bytes: int) -> dispatch.Resource:
    if isinstance(value, int):
        return dispatch.BufferWindow(BufferBytes.unwritten(value), 0, value)
    array: Array = np.ascontiguousarray(value)
    if texture:
        return array if array.dtype == np.int8 else array.astype(np.float32)
    size = max(-(-array.nbytes // 4) * 4, size_bytes)
    return dispatch.BufferWindow(BufferBytes.of(array, size), 0, size)


def _written(resource: dispatch.Resource, given: Any, dtype: np.dtype[Any]) -> Array:
    assert isinstance(resource, dispatch.BufferWindow)
    data = resource.buffer.data[: resource.size]
    if given is None or isinstance(given, int):
        return data[: data.size // dtype.itemsize * dtype.itemsize].view(dtype)
    like = np.asarray(given)
    return data[: like.nbytes].view(like.dtype).reshape(like.shape)


def _numpy(element: str) -> np.dtype[Any]:
    """Return the numpy type of a kind of elements."""
    name = _PARTS.get(element, element.replace("bits", "uint"))
    return np.dtype("uint8" if name in ("int4", "uint4") else name)


def _scalar(type_: Type) -> np.dtype[Any]:
    """Return the data type of the numbers in a type, or bytes if it has several data types."""
    match type_:
        case Numeric():
            return type_.dtype
        case ArrayType():
            return _scalar(type_.element)
        case StructType():
            found = {_scalar(member.type) for member in type_.members}
            return found.pop() if len(found) == 1 else np.dtype(np.uint8)
        case _:
            return np.dtype(np.uint8)
