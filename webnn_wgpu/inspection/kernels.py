"""The kernels of a compiled graph, as `MLGraph.kernels` shows them, and the sources that override them."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from pathlib import Path
from types import MappingProxyType
from typing import Any

from ..core.errors import MLTypeError, OperationError
from ..core.wording import counted
from ..display.tables import aligned, first_few, rich_table
from ..ir.graph import Graph, Origin, file_places
from ..kernels.dbg import without_dbg
from ..kernels.own import declaring, for_naga, lacking, set_overrides
from ..kernels.source_map import OWN_SOURCE, SourceMap, map_of_kernel, map_of_source
from ..kernels.spec import Grid, KernelSpec
from ..kernels.templates import render, template_file
from ..plan import ExecutionPlan
from ..plan.execution_plan import PlannedDispatch
from ..plan.labels import node_label

_TITLES = ("kernel", "shader", "workgroups", "operators", "why")


def shader_name(template: str, variant: str) -> str:
    """Return a template and its variant in one word: `matmul.subgroup`."""
    return template if not variant or template.endswith(f".{variant}") else f"{template}.{variant}"


def _is_wgsl(given: str | os.PathLike[str]) -> bool:
    return isinstance(given, str) and "{" in given


def source_text(given: str | os.PathLike[str]) -> tuple[str, str]:
    """Return the WGSL of a path, or of a string with a brace, and its name for messages.

    Raises:
        OperationError: the file is no text.
        OSError: the file does not exist.
    """
    if _is_wgsl(given):
        return str(given), OWN_SOURCE
    try:
        return Path(given).read_text(encoding="utf-8"), str(given)
    except UnicodeDecodeError as error:
        raise OperationError(f"{given} is no text in UTF-8", got=str(error)) from error


@dataclass(frozen=True)
class Override:
    """A source that replaces a kernel's own source.

    Attributes:
        wgsl: the source.
        file: its name in messages: the path, or `<wgsl>` for a text.
    """

    wgsl: str
    file: str

    @classmethod
    def of(cls, given: str | os.PathLike[str], spec: KernelSpec) -> Override:
        """Return the override of a path, or of WGSL, which is a string with a brace.

        The declarations of an application's own kernel, for example the constants of `wgsl_op`, precede its override too.
        """
        text, file = source_text(given)
        text, _ = set_overrides(for_naga(text), (declaration for declaration in spec.given if declaration.startswith("const ")))
        missing = lacking(text, spec.given)
        return cls(declaring(text, missing) if missing else text, file)


@dataclass(frozen=True)
class Watched:
    """The last known state of a file.

    Attributes:
        file: the path.
        saved_ns: the time of the last write, in nanoseconds.
        size_bytes: the size in bytes.
    """

    file: Path
    saved_ns: int
    size_bytes: int

    @classmethod
    def of(cls, given: str | os.PathLike[str]) -> Watched:
        """Return the state of a file. Call this before the file is read.

        Raises:
            MLTypeError: the argument is WGSL instead of a path.
            OSError: the file does not exist.
        """
        if _is_wgsl(given):
            raise MLTypeError("only a file can be watched", operator="override", got=OWN_SOURCE)
        stat = Path(given).stat()
        return cls(Path(given), stat.st_mtime_ns, stat.st_size)

    def again(self) -> Watched:
        """Return the current state of the file, or the last one while an editor replaces the file."""
        try:
            return Watched.of(self.file)
        except OSError:
            return self


@dataclass(frozen=True, kw_only=True)
class KernelBinding:
    """A buffer or texture of a kernel.

    Attributes:
        name: its name in the shader.
        access: "read", "write" (and read), "texture", or "sampled" (a texture that is not bound as storage).
        element: the element kind: a data type, or its storage (`bits32` is only moved). float32 in textures.
        bound_to: the graph's input or output by name, a slot or a constant of the plan by number.
        size_bytes: the bound size in bytes.
    """

    name: str
    access: str
    element: str
    bound_to: str
    size_bytes: int


@dataclass(frozen=True, eq=False, kw_only=True)
class Kernel:
    """One kernel of a compiled graph with its resources. `print` shows it.

    Attributes:
        name: the unique name of the dispatch in the plan.
        labels: the operators of the source graph that it computes, each once: the label, else name and number.
        template: the template's path below `shaders/`, or "" for an application's own kernel (`wgsl_op`).
        variant: the variant of the template or its family, or "" if there is only one.
        reason: the reason for the choice of this kernel. For an overridden kernel, the source of the override.
        bindings: the buffers and textures in the order of their binding numbers. The uniforms' number is the next one.
        constants: uniform name -> value.
        grid: the number of workgroups in x, y, z.
        spec: the template with its parameters.
        steps: of a fused kernel, the labels of the operators of each step of its expression.
        places: the lines of a graph file that the operators come from. Empty for other graphs.
        override: the source that replaces the kernel's own, or None.
    """

    name: str
    labels: tuple[str, ...]
    template: str
    variant: str
    reason: str
    bindings: tuple[KernelBinding, ...]
    constants: Mapping[str, int | float]
    grid: Grid
    spec: KernelSpec = field(repr=False)
    steps: tuple[tuple[str, ...], ...] = field(default=(), repr=False)
    places: tuple[str, ...] = field(default=(), repr=False)
    override: Override | None = field(default=None, repr=False)

    @property
    def wgsl(self) -> str:
        """The source without `dbg`: the rendered template, or the caller's source if the kernel is overridden."""
        return render(self.spec) if self.override is None else without_dbg(self.override.wgsl)

    @property
    def source_map(self) -> SourceMap:
        """Where each line of `wgsl` comes from: a template and a line in it, and the operators whose formula it is.

        The template is rendered once more for this.

        Example:
            >>> kernel = b.build({"y": b.relu(b.add(x, y, label="sum"))}).kernels["sum"]
            >>> line = next(i for i, line in enumerate(kernel.wgsl.splitlines(), 1) if "let y1" in line)
            >>> print(kernel.source_map.place(line, 5))
            lib/values.wgsl.j2:20:5 (relu_1)
        """
        return self.map_source()

    def map_source(self, *, dbg: bool = False) -> SourceMap:
        """Return the source map of the kernel.

        Args:
            dbg: whether the source keeps its `dbg` statements. `wgsl` has none.
        """
        if self.override is not None:
            return map_of_source(self.override.wgsl, self.override.file, dbg=dbg)
        return map_of_kernel(self.spec, labels=self.steps or (self.labels,), dbg=dbg)

    @property
    def overridden(self) -> bool:
        """Whether a source of the caller's is installed."""
        return self.override is not None

    @property
    def workgroup_size(self) -> Grid | None:
        """The invocations of a workgroup in x, y, z. None if a caller's source computes them."""
        return _workgroup_size(self.wgsl)

    @property
    def shader(self) -> str:
        """The template and its variant: `matmul.subgroup`."""
        return shader_name(self.spec.template, self.variant)

    @property
    def operators(self) -> str:
        """The first few of `labels`, and the number of the others."""
        return first_few(self.labels)

    def __str__(self) -> str:
        size = self.workgroup_size
        rows = [
            ("operators", ", ".join(self.labels)),
            ("from", ", ".join(self.places)),
            ("template", self.template),
            ("why", self.reason),
            ("grid", " x ".join(map(str, self.grid))),
            ("workgroup", "computed by its source" if size is None else " x ".join(map(str, size))),
            *((f"@binding({i})", f"{b.name}: {b.element}, {b.access}, {b.bound_to}") for i, b in enumerate(self.bindings)),
            ("uniforms", ", ".join(f"{name}={value}" for name, value in self.constants.items())),
        ]
        return "\n".join([f"{self.name}: {self.spec}", *(f"  {name:<11}  {value}" for name, value in rows if value)])


class Kernels(Mapping[str, Kernel]):
    """Kernels by name, in the order in which they run. `print` shows them as a table.

    Example:
        >>> graph = b.build({"y": b.softmax(b.neg(x, label="minus"), axis=1)})
        >>> list(graph.kernels), graph.kernels.one("minus", "my program").name
        (['minus', 'softmax_1'], 'minus')
    """

    def __init__(self, kernels: Iterable[Kernel]) -> None:
        self._kernels = {kernel.name: kernel for kernel in kernels}

    def __getitem__(self, name: str) -> Kernel:
        if name not in self._kernels:
            raise KeyError(f"no kernel is called {name!r}; there are {first_few(list(self._kernels)) or 'none'}")
        return self._kernels[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._kernels)

    def __len__(self) -> int:
        return len(self._kernels)

    def matching(self, name: str) -> tuple[Kernel, ...]:
        """Return the kernel of a name, or else the kernels that compute the operator with that label, if any.

        Args:
            name: the name of a kernel, or the label of an operator.
        """
        if name in self._kernels:
            return (self._kernels[name],)
        return tuple(kernel for kernel in self.values() if name in kernel.labels)

    def find(self, name: str, operator: str = "kernels") -> tuple[Kernel, ...]:
        """Return the kernels of `matching`, but at least one.

        Args:
            name: the name of a kernel, or the label of an operator.
            operator: the name of the operation in errors.

        Raises:
            MLTypeError: no kernel has this name or computes an operator of this label.
        """
        found = self.matching(name)
        if not found:
            names = dict.fromkeys([*self, *(label for kernel in self.values() for label in kernel.labels)])
            close = get_close_matches(name, names) or list(names)[:5]
            raise MLTypeError(
                "no kernel has this name or computes an operator of this label",
                operator=operator,
                got=repr(name),
                allowed=", ".join(map(repr, close)) or "none: the numpy reference has no kernels",
            )
        return found

    def one(self, name: str, operator: str) -> Kernel:
        """Return the one kernel that a name or label means.

        Args:
            name: the name of a kernel, or the label of an operator.
            operator: the name of the operation in errors.

        Raises:
            MLTypeError: there is none, or several kernels compute the operator of this label.
        """
        found, *more = self.find(name, operator)
        if more:
            raise MLTypeError(
                "several kernels compute the operator of this label",
                operator=operator,
                got=repr(name),
                allowed=", ".join(repr(kernel.name) for kernel in (found, *more)),
            )
        return found

    def dump(self, folder: str | os.PathLike[str]) -> list[Path]:
        """Write each kernel's source into a folder, as `007-NAME.wgsl` by its number in the plan, and return the files.

        Args:
            folder: the folder, which the call creates if it is absent.

        Raises:
            OSError: a file cannot be written.
        """
        root = Path(folder)
        root.mkdir(parents=True, exist_ok=True)
        files: list[Path] = []
        for i, kernel in enumerate(self.values()):
            stem = re.sub(r"[^\w.-]", "_", kernel.name)[:100]
            path = root / f"{i:03}-{stem}.wgsl"
            path.write_text(kernel.wgsl, encoding="utf-8")
            files.append(path)
        return files

    def _rows(self) -> list[tuple[str, ...]]:
        return [_TITLES, *((k.name, k.shader, " x ".join(map(str, k.grid)), k.operators, k.reason) for k in self.values())]

    def __str__(self) -> str:
        return "\n".join(aligned(self._rows()))

    def __rich__(self) -> Any:
        # `--show` takes the whole name.
        return rich_table(counted(len(self), "kernel"), self._rows(), names=(0, 1), sentences=(3, 4), optional=(4, 2))

    def __repr__(self) -> str:
        return f"Kernels({', '.join(self)})"


def kernels_of(plan: ExecutionPlan | None, source: Graph, overrides: Mapping[str, Override]) -> Kernels:
    """Return the kernels of a plan.

    Args:
        plan: the plan. None has no kernels.
        source: the source graph.
        overrides: kernel name -> the source that replaces its own.
    """
    labels = {node.id: node_label(node) for node in source.nodes}
    kernels: list[Kernel] = []
    if plan is None:
        return Kernels(kernels)
    for planned in plan.dispatches:
        kernel = _kernel(planned, plan.uniforms, labels)
        override = overrides.get(planned.label)
        if override is not None:
            kernel = replace(kernel, override=override, reason=f"overridden by {override.file}")
        kernels.append(kernel)
    return Kernels(kernels)


def _kernel(planned: PlannedDispatch, uniforms: bytes, labels: Mapping[int, str]) -> Kernel:
    spec = planned.spec
    values = spec.unpacked(uniforms[planned.uniform_offset : planned.uniform_offset + planned.uniform_size])
    return Kernel(
        name=planned.label,
        labels=_labels(planned.origins, labels),
        template="" if spec.source else template_file(spec),
        variant=spec.variant,
        reason=planned.reason,
        bindings=tuple(
            KernelBinding(name=b.name, access=b.access, element=b.element, bound_to=str(r), size_bytes=r.size_bytes)
            for b, r in zip(spec.bindings, planned.bindings, strict=True)
        ),
        constants=MappingProxyType({name: value for (name, _), value in zip(spec.uniforms, values, strict=True)}),
        grid=planned.grid,
        spec=spec,
        steps=tuple(_labels(step, labels) for step in planned.steps),
        places=file_places(planned.origins),
    )


def _labels(origins: Iterable[Origin], labels: Mapping[int, str]) -> tuple[str, ...]:
    # A stored plan's graph has no nodes. Its origins have the labels.
    return tuple(dict.fromkeys(labels.get(origin.node, origin.label) for origin in origins))


def _workgroup_size(wgsl: str) -> Grid | None:
    """Return the workgroup size of the entry point `main`, whose parts are numbers or constants that are one."""
    text = re.sub(r"//.*", "", wgsl)
    found = re.search(r"@workgroup_size\s*\(([^()]*)\)[^{};]*\bfn\s+main\b", text)
    sizes: list[int] = []
    for part in filter(None, map(str.strip, found[1].split(","))) if found else ():
        constant = re.search(rf"\bconst\s+{re.escape(part)}\b[^=;]*=\s*(\w+)\s*;", text)
        number = re.fullmatch(r"(\d+)[iu]?", constant[1] if constant else part)
        if number is None:
            return None
        sizes.append(int(number[1]))
    x, y, z = (*sizes, 1, 1, 1)[:3]
    return (x, y, z) if sizes else None
