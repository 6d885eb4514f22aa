"""A dispatch: the entry point of a source, run for workgroups of a grid over buffers and textures."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Any, TypeAlias

import numpy as np

from ...core.data_types import Array
from ...core.errors import MLTypeError, WebNNError
from . import syntax
from .expressions import Expressions, Texture
from .findings import Finding, Findings, Site
from .machine import Budget, Debugger, Machine
from .memory import BufferBytes, Clock, MemoryVariable, of_workgroups
from .names import Names
from .parsing import parse
from .places import InvocationVariable
from .syntax import Function, Global, Name, attribute
from .types import TextureType, Type
from .values import concrete, converted, zero
from .wave import Triple, Wave

LANES = 4096
"""Invocations that run side by side, unless a workgroup has more."""

_SLACK = 1000


@dataclass(frozen=True, eq=False)
class BufferWindow:
    """A part of a buffer.

    Attributes:
        buffer: the buffer.
        offset: the offset of the part in bytes.
        size: the size of the part in bytes.
        padding: the number of padding bytes at its end, whose content has no meaning.
    """

    buffer: BufferBytes
    offset: int
    size: int
    padding: int = 0

    @property
    def content(self) -> int:
        """The number of its bytes without the padding."""
        return self.size - self.padding


Resource: TypeAlias = "BufferWindow | Array"
"""The resource of a binding: a part of a buffer, or the texels of a texture, `[height, width, 4]`."""


@dataclass(frozen=True, kw_only=True)
class DeclaredResource:
    """A resource that a source declares in bind group 0: its binding, name, address space ("" for textures) and access."""

    binding: int
    name: str
    space: str
    access: str
    type: Type


class SourceKernel:
    """A source with its constants.

    Args:
        source: the WGSL, with one compute entry point, or one named `main`.
        constants: the values of `override` declarations.
        name: the name in findings.
        template: returns the template location of a line and column of the source.

    Raises:
        MLTypeError: the source is not WGSL, or has no entry point.
    """

    def __init__(
        self,
        source: str,
        constants: Mapping[str, Any] | None = None,
        name: str = "",
        template: Callable[[int, int], str] | None = None,
    ) -> None:
        self.source, self._name, self._template = source, name, template
        self.module = parse(source)
        self.names = Names(self.module, constants or {})
        single = Wave([(0, 0, 0)], (1, 1, 1), (1, 1, 1), 1)
        self._static = Expressions(self.names, single, {}, Findings(source, name, template))
        entries = [f for f in self.module.declarations.values() if isinstance(f, Function) and attribute(f, "compute")]
        named = [f for f in entries if f.name == "main"] or entries
        if len(named) != 1:
            raise MLTypeError(
                "the source must have one compute entry point",
                operator="interpret",
                label=name,
                got=", ".join(f.name for f in named) or "none",
            )
        self.entry = named[0]

    @property
    def workgroup_size(self) -> Triple:
        """Invocations of a workgroup in x, y, z."""
        found = attribute(self.entry, "workgroup_size")
        sizes = [self._integer(a) for a in found.arguments] if found else []
        x, y, z = (*sizes, 1, 1, 1)[:3]
        return x, y, z

    @property
    def resources(self) -> dict[int, DeclaredResource]:
        """The resources that the source declares in bind group 0, by binding."""
        found: dict[int, DeclaredResource] = {}
        for variable in self._globals():
            binding, group = attribute(variable, "binding"), attribute(variable, "group")
            if binding is None or group is None or self._integer(group.arguments[0]) != 0:
                continue
            number = self._integer(binding.arguments[0])
            type_ = self._type(variable)
            space, access = _space(variable)
            found[number] = DeclaredResource(
                binding=number,
                name=variable.name,
                space="" if isinstance(type_, TextureType) else space,
                access=access,
                type=type_,
            )
        return found

    def run(
        self,
        resources: Mapping[int, Resource],
        grid: Triple,
        *,
        workgroups: Sequence[Triple] | None,
        subgroup_size: int,
        budget: Budget,
        debugger: Debugger | None = None,
    ) -> tuple[Finding, ...]:
        """Run workgroups of a grid, or all of them, and return the findings.

        Raises:
            MLTypeError: the source violates WGSL's rules, or a resource is missing.
            OperationError: the source does not end.
        """
        before = _copied(resources)
        used = budget.left
        findings = self._run(resources, grid, workgroups, subgroup_size, budget, debugger, set())
        used -= budget.left
        used = Budget(2 * used + _SLACK, 2 * used + _SLACK)
        sites = {finding.site for finding in findings if finding.harmless}

        def matter(poisoned: set[Site]) -> bool:
            """Return whether the kernel's outputs change if the reads at these sites return other values."""
            again = _copied(before)
            try:
                self._run(again, grid, workgroups, subgroup_size, replace(used), None, poisoned)
            except WebNNError:
                return True
            return not self._alike(resources, again)

        mattering = {site for site in sites if matter({site})} if sites and matter(sites) else set[Site]()
        return tuple(replace(f, harmless=f.harmless and f.site not in mattering) for f in findings)

    def _run(
        self,
        resources: Mapping[int, Resource],
        grid: Triple,
        workgroups: Sequence[Triple] | None,
        subgroup_size: int,
        budget: Budget,
        debugger: Debugger | None,
        poisoned: set[Site],
    ) -> tuple[Finding, ...]:
        findings = Findings(self.source, self._name, self._template)
        size = self.workgroup_size
        per_workgroup = size[0] * size[1] * size[2]
        count = grid[0] * grid[1] * grid[2]
        clocks = {space: Clock(count, per_workgroup, subgroup_size) for space in ("workgroup", "storage")}
        shared = self._shared(resources, clocks["storage"])
        chosen = list(workgroups) if workgroups is not None else _places(grid)
        at_once = max(1, LANES // per_workgroup)
        for first in range(0, len(chosen), at_once):
            wave = Wave(chosen[first : first + at_once], size, grid, subgroup_size)
            variables = {**shared, **self._own(wave, clocks["workgroup"])}
            for variable in variables.values():
                if isinstance(variable, MemoryVariable) and (variable.name,) in poisoned:
                    variable.poison()
            machine = Machine(self.names, wave, variables, findings, clocks, budget, debugger)
            machine.poisoned = poisoned
            machine.run(self.entry)
        return findings.all()

    def _alike(self, one: Mapping[int, Resource], other: Mapping[int, Resource]) -> bool:
        """Return whether two runs wrote the same."""
        for number, declared in self.resources.items():
            a, b = one[number], other[number]
            if declared.access == "read_write" and isinstance(a, BufferWindow) and isinstance(b, BufferWindow):
                part = slice(a.offset, a.offset + a.content)
                wrote = slice(None) if a.buffer.written is None else a.buffer.written[part]
                if not np.array_equal(a.buffer.data[part][wrote], b.buffer.data[part][wrote]):
                    return False
        return True

    def _globals(self) -> Iterator[Global]:
        for declared in self.module.declarations.values():
            if isinstance(declared, Global) and declared.declaration.kind == "var":
                yield declared

    def _type(self, variable: Global) -> Type:
        assert variable.declaration.type is not None
        return self.names.type(variable.declaration.type, self._static.evaluate)

    def _integer(self, expression: syntax.Expression) -> int:
        return int(np.asarray(self._static.evaluate(expression)).reshape(-1)[0])

    def _shared(
        self, resources: Mapping[int, Resource], clock: Clock
    ) -> dict[str, InvocationVariable | MemoryVariable | Texture]:
        """Return the variables that buffers and textures are bound to."""
        found: dict[str, InvocationVariable | MemoryVariable | Texture] = {}
        for number, declared in self.resources.items():
            bound = resources.get(number)
            if bound is None:
                raise MLTypeError(
                    "every variable of the kernel must be bound",
                    operator="interpret",
                    label=self._name,
                    got=f"{declared.name} at binding {number}",
                )
            if isinstance(bound, BufferWindow):
                writable = clock if declared.access == "read_write" else None
                found[declared.name] = MemoryVariable(
                    declared.name, declared.type, declared.space, bound.buffer, bound.offset, bound.size, 1, writable
                )
            else:
                found[declared.name] = Texture(declared.name, bound)
        return found

    def _own(self, wave: Wave, clock: Clock) -> dict[str, InvocationVariable | MemoryVariable]:
        """Return the variables of workgroups and invocations."""
        found: dict[str, InvocationVariable | MemoryVariable] = {}
        for variable in self._globals():
            space, _ = _space(variable)
            if space == "workgroup":
                found[variable.name] = of_workgroups(variable.name, self._type(variable), len(wave.workgroups), clock)
            elif space == "private":
                declaration = variable.declaration
                value = None if declaration.value is None else self._static.evaluate(declaration.value)
                if declaration.type is not None:
                    type_ = self._type(variable)
                    value = zero(type_) if value is None else converted(value, type_)
                found[variable.name] = InvocationVariable(concrete(value))
        return found


def _copied(resources: Mapping[int, Resource]) -> dict[int, Resource]:
    """Return the same resources over copies of the buffers."""
    copies: dict[BufferBytes, BufferBytes] = {}
    found: dict[int, Resource] = {}
    for number, bound in resources.items():
        if isinstance(bound, BufferWindow):
            buffer = copies.setdefault(bound.buffer, bound.buffer.copy())
            found[number] = replace(bound, buffer=buffer)
        else:
            found[number] = bound
    return found


def _space(variable: Global) -> tuple[str, str]:
    """Return the address space and the access of a variable."""
    names = [str(a) for a in variable.declaration.template if isinstance(a, Name)]
    space = names[0] if names else ""
    return space, names[1] if len(names) > 1 else "read_write" if space in ("workgroup", "private") else "read"


def _places(grid: Triple) -> list[Triple]:
    x, y, z = grid
    return [(i, j, k) for k, j, i in product(range(z), range(y), range(x))]
