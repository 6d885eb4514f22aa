"""Kernels side by side: what the compiler made of each dispatch of a model, and the budgets that it must stay within."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.hardware.compiler import Compiled, CompileError, Compiler

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from tests.hardware.collecting import Dispatch
    from tests.hardware.families import Family

BUDGETS = Path(__file__).parent / "budgets.json"


@dataclass(frozen=True, kw_only=True)
class Row:
    """A dispatch, and what the compiler made of its kernel; `error` where it was refused."""

    dispatch: Dispatch
    compiled: Compiled | None
    error: str = ""

    def text(self, share_of_work: float) -> str:
        """Return one line of a table; `share_of_work` is the part of the model's multiply-adds that the dispatch makes."""
        start = f"{share_of_work:6.1%} {self.dispatch.label:32.32} {self.dispatch.kernel:48.48} {self.dispatch.workgroups:6}"
        found = self.compiled
        if found is None:
            return f"{start}  REFUSED: {self.error}"
        loop = found.loop
        told = (
            f"{loop.multiply_adds} multiply-adds in {loop.slots} slots ({loop.share:.2f}), local {loop.local_bytes_each:.2f}, "
            f"global {loop.global_bytes_each:.2f} bytes each"
            if loop
            else "-"
        )
        return (
            f"{start}  {self.dispatch.subgroups(found.subgroup):6} of {found.subgroup}  registers {found.registers:3}"
            f"  spills {found.spills}  scratch {found.scratch_bytes}  local {found.local_bytes:5}  waves {found.waves:2}"
            f" | {told}"
        )

    def record(self) -> dict[str, Any]:
        """Return the row as data."""
        found = self.compiled
        row: dict[str, Any] = {k: v for k, v in asdict(self.dispatch).items() if k not in ("wgsl", "node")}
        if found is None:
            return {**row, "error": self.error}
        row |= {k: v for k, v in asdict(found).items() if k not in ("text", "loop")}
        loop = found.loop
        if loop:
            row["loop"] = {
                "multiply_adds": loop.multiply_adds,
                "slots": loop.slots,
                "share": round(loop.share, 3),
                "local_bytes_each": round(loop.local_bytes_each, 3),
                "global_bytes_each": round(loop.global_bytes_each, 3),
                "barriers": loop.barriers,
            }
        return row


def compile_all(compiler: Compiler, found: Iterable[Dispatch], progress: Callable[[int], None] | None = None) -> list[Row]:
    """Return a row for each dispatch; each kernel is compiled once."""
    made: dict[str, tuple[Compiled | None, str]] = {}
    rows: list[Row] = []
    for dispatch in found:
        if dispatch.wgsl not in made:
            try:
                made[dispatch.wgsl] = compiler.compile(dispatch.wgsl), ""
            except CompileError as error:
                made[dispatch.wgsl] = None, str(error)
            if progress:
                progress(len(made))
        compiled, error_text = made[dispatch.wgsl]
        rows.append(Row(dispatch=dispatch, compiled=compiled, error=error_text))
    return rows


def shares_of_work(rows: Sequence[Row]) -> list[float]:
    """Return which part of a model's operations each row's dispatch makes.

    Several dispatches may compute one node. Those whose loops multiply and add share its operations.
    """

    def works(row: Row) -> bool:
        return bool(row.compiled and row.compiled.loop)

    working = Counter(row.dispatch.node for row in rows if works(row))
    of_node = Counter(row.dispatch.node for row in rows)
    operations = [
        row.dispatch.operations / working[row.dispatch.node] * works(row)
        if working[row.dispatch.node]
        else row.dispatch.operations / of_node[row.dispatch.node]
        for row in rows
    ]
    total = sum(operations) or 1
    return [each / total for each in operations]


# budgets --------------------------------------------------------------------------------------------------------------


def figures(row: Row) -> dict[str, float]:
    """Return the figures that a budget limits: of registers, spills and local bytes the most, of waves and share the least."""
    found = row.compiled
    if found is None:
        return {}
    own: dict[str, float] = {"registers": found.registers, "spills": found.spills + found.scratch_bytes, "waves": found.waves}
    if found.loop:
        own |= {"share": round(found.loop.share, 2), "local_bytes_each": round(found.loop.local_bytes_each, 2)}
    return own


_LEAST = ("waves", "share")


def worst(rows: Iterable[Row]) -> dict[str, dict[str, float]]:
    """Return for each template the worst of each figure over its kernels."""
    found: dict[str, dict[str, float]] = {}
    for row in rows:
        own = found.setdefault(variant_of(row), {})
        for name, value in figures(row).items():
            own[name] = (min if name in _LEAST else max)(own.get(name, value), value)
    return dict(sorted(found.items()))


def variant_of(row: Row) -> str:
    """Return the name that a budget goes by: the template of a kernel, with its variant, tile and normalization."""
    kernel = row.dispatch.kernel
    template, _, params = kernel.partition("[")
    given = dict(item.split("=", 1) for item in params.rstrip("]").split(", ") if "=" in item)
    named = [given[name] for name in ("variant", "tile", "normal") if given.get(name)]
    return ":".join([template, *named])


def exceeded(family: Family, rows: Iterable[Row], budgets: Mapping[str, Any] | None = None) -> list[str]:
    """Return a sentence for each kernel that the compiler refuses, and for each figure that is over its budget."""
    budgets = budgets if budgets is not None else json.loads(BUDGETS.read_text())
    limits: dict[str, dict[str, float]] = budgets.get(family.name, {})
    faults: dict[str, None] = {}
    for row in rows:
        name = variant_of(row)
        if row.compiled is None:
            faults[f"{family.name} refuses {row.dispatch.kernel}: {row.error}"] = None
            continue
        for figure, value in figures(row).items():
            limit = limits.get(name, {}).get(figure, 0 if figure == "spills" else None)
            place = f"{row.dispatch.kernel} of {row.dispatch.model}"
            if limit is None:
                faults[f"{name} has no budget of {figure} on {family.name}: run `python -m tests.hardware --update`"] = None
            elif value < limit if figure in _LEAST else value > limit:
                faults[f"{place} has {figure} {value:g} on {family.name}; budget {limit:g}"] = None
    return list(faults)
