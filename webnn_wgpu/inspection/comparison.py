"""The comparison of two profiles, kernel by kernel."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ..display.html import table_html
from ..display.tables import aligned, rich_table
from .profile import GraphProfile, KernelTime

_TITLES = ("before us", "after us", "change", "kernel", "shader")
_NUMBERS = range(3)


@dataclass(frozen=True)
class KernelComparison:
    """A kernel in two profiles.

    Attributes:
        name: its name in the plans.
        before, after: the kernel's record in each profile. None if a profile does not have it.
    """

    name: str
    before: KernelTime | None
    after: KernelTime | None

    @property
    def change_us(self) -> float:
        """The slowdown of the later run in microseconds. Negative if it is faster."""
        return (self.after.microseconds if self.after else 0.0) - (self.before.microseconds if self.before else 0.0)

    @property
    def ratio(self) -> float | None:
        """The later time divided by the earlier one. None if only one exists."""
        return self.after.microseconds / self.before.microseconds if self.after and self.before else None

    @property
    def shader(self) -> str:
        """The shader, or the earlier and the later shader."""
        names = [each.shader for each in (self.before, self.after) if each is not None]
        return " -> ".join(dict.fromkeys(names))


@dataclass(frozen=True)
class ProfileComparison:
    """Two profiles, an earlier and a later one. `print` shows a table, and so do rich and notebooks.

    Attributes:
        before, after: the profiles.
        kernels: every kernel of either profile by name. The kernels with the largest changes come first.
    """

    before: GraphProfile
    after: GraphProfile
    kernels: tuple[KernelComparison, ...]

    @property
    def ratio(self) -> float:
        """The later time divided by the earlier one: of all kernels if both profiles have them, else of the whole runs."""
        if self.before.gpu_ms and self.after.gpu_ms:
            return self.after.gpu_ms / self.before.gpu_ms
        return self.after.wall_ms / self.before.wall_ms

    def summary(self) -> str:
        """Return one line: both times of the device and of a run, and their ratio."""
        gpu = [f"{p.gpu_ms:.3f}" if p.gpu_ms is not None else "?" for p in (self.before, self.after)]
        devices = "" if self.before.device == self.after.device else f"; {self.before.device}, then {self.after.device}"
        return (
            f"GPU {gpu[0]} -> {gpu[1]} ms, wall {self.before.wall_ms:.3f} -> {self.after.wall_ms:.3f} ms: "
            f"{self.ratio:.2f} times{devices}"
        )

    def rows(self) -> list[tuple[str, ...]]:
        """Return the table's lines, one for each kernel."""
        return [
            (
                f"{k.before.microseconds:.1f}" if k.before else "-",
                f"{k.after.microseconds:.1f}" if k.after else "-",
                "gone" if k.after is None else "new" if k.ratio is None else f"x {k.ratio:.2f}",
                k.name,
                k.shader,
            )
            for k in self.kernels
        ]

    def __str__(self) -> str:
        return "\n".join([self.summary(), *aligned([_TITLES, *self.rows()], _NUMBERS)])

    def __rich__(self) -> Any:
        return rich_table(self.summary(), [_TITLES, *self.rows()], _NUMBERS, (3,))

    def _repr_html_(self) -> str:
        return table_html(self.summary(), [_TITLES, *self.rows()], _NUMBERS)


def compare(before: GraphProfile, after: GraphProfile) -> ProfileComparison:
    """Compare a profile with an earlier one. Kernels with the same name correspond to each other."""
    first = {kernel.name: kernel for kernel in before.kernels}
    second = {kernel.name: kernel for kernel in after.kernels}
    found = [KernelComparison(name, first.get(name), second.get(name)) for name in dict.fromkeys([*first, *second])]
    return ProfileComparison(before, after, tuple(sorted(found, key=lambda kernel: -abs(kernel.change_us))))
