"""The report of `check_kernel`: its checks and the faults."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from ..core.data_types import Array
from ..display.tables import aligned

Number: TypeAlias = int | float | bool


@dataclass(frozen=True)
class KernelCase:
    """One case that a kernel is checked for.

    Attributes:
        shapes: the shapes of the inputs.
        dtypes: data types of the inputs.
        constants: name -> number.
    """

    shapes: tuple[tuple[int, ...], ...]
    dtypes: tuple[str, ...]
    constants: Mapping[str, Number] = field(default_factory=dict[str, Number])

    def __str__(self) -> str:
        inputs = ", ".join(f"{t}{list(s)}" for t, s in zip(self.dtypes, self.shapes, strict=True))
        return inputs + "".join(f", {name}={value}" for name, value in self.constants.items())


@dataclass(frozen=True, kw_only=True)
class CheckedCase:
    """The result of a case on an adapter.

    Attributes:
        case: the case.
        adapter: the adapter, driver and backend, for people.
        distance: the largest distance of an element from the reference, in ULP or as a difference.
        faults: the faults, a sentence each.
        inputs: the arrays with which the faults were found, for `debug.interpret` and `debug.trace_wgsl`. Empty without faults.
        notes: the variations, the omitted checks with their reasons, and the limits of the checks.
        skipped: the reason why the case could not run, or "" if it ran.
    """

    case: KernelCase
    adapter: str
    distance: float = 0.0
    faults: tuple[str, ...] = ()
    inputs: tuple[Array, ...] = field(default=(), repr=False, compare=False)
    notes: tuple[str, ...] = ()
    skipped: str = ""


@dataclass(frozen=True)
class KernelReport:
    """The results of `check_kernel`. `print` shows them.

    Attributes:
        label: the kernel's name.
        unit: "ULP", or "" for differences.
        checked: all cases on all adapters.
    """

    label: str
    unit: str
    checked: tuple[CheckedCase, ...]

    @property
    def faults(self) -> tuple[str, ...]:
        """All that is wrong, each once."""
        return tuple(dict.fromkeys(fault for checked in self.checked for fault in checked.faults))

    @property
    def distance(self) -> float:
        """The largest distance of all cases."""
        return max((checked.distance for checked in self.checked if not checked.skipped), default=0.0)

    def __str__(self) -> str:
        rows = [("case", self.unit or "difference", "adapter", "")]
        rows += [
            (str(c.case), "" if c.skipped else f"{c.distance:.4g}", c.adapter, c.skipped or ("FAULT" if c.faults else "ok"))
            for c in self.checked
        ]
        lines = [f"kernel {self.label}".rstrip(), *aligned(rows, (1,))]
        for c in self.checked:
            lines += [f"{c.case}: {fault}" for fault in c.faults]
        lines += dict.fromkeys(f"note: {note}" for c in self.checked for note in c.notes)
        if self.faults:
            constants = ", constants=constants" if any(c.case.constants for c in self.checked) else ""
            call = f"webnn_wgpu.debug.interpret(source, buffers, grid=workgroups{constants})"
            first = next(i for i, c in enumerate(self.checked) if c.faults)
            lines.append(f"next: error.report.checked[{first}].inputs are the arrays of the first case with faults")
            lines.append(f"next: {call} names the lines of races and wrong reads")
            shown = f"webnn_wgpu.debug.trace_wgsl(source, *arrays, workgroups=workgroups{constants})"
            lines.append(f'next: {shown} shows the values of each `dbg(value, "name");` in the source')
        return "\n".join(lines)


class KernelFault(AssertionError):
    """The exception of `check_kernel` for a kernel with faults.

    Attributes:
        report: the report with the faults.
    """

    def __init__(self, report: KernelReport) -> None:
        self.report = report
        super().__init__(str(report))
