"""A table of models and families: how many kernels the compiler makes, and which of them it refuses or spills."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.hardware.occupancy import SUBGROUPS, filling_share

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from tests.hardware.report import Row

FILLED = "navi21"
"""The family whose dispatches are compared with the size of a GPU."""


def faults(rows: Iterable[Row]) -> list[str]:
    """Return what is wrong with kernels, in words: refused ones, spilled registers, and bytes of scratch memory."""
    kernels = list({row.dispatch.wgsl: row for row in rows}.values())
    compiled = [row.compiled for row in kernels if row.compiled]
    counts = {
        "refused": len(kernels) - len(compiled),
        "registers spilled": sum(each.spills for each in compiled),
        "bytes of scratch memory": sum(each.scratch_bytes for each in compiled),
    }
    return [f"{count} {what}" for what, count in counts.items() if count]


def summary(rows: Mapping[str, Sequence[Row]], drivers: Mapping[str, str], day: str) -> str:
    """Return a table in Markdown of the kernels of each model, a column for each family, and a sentence on what is wrong.

    Args:
        rows: the dispatches of all models by family.
        drivers: the driver of each family.
        day: the day for people.
    """
    models = list(dict.fromkeys(row.dispatch.model for own in rows.values() for row in own))
    columns = [*rows, *(["work in dispatches that fill a GPU"] if FILLED in rows else [])]
    lines = [f"| Model | {' | '.join(columns)} |", f"| --- |{' ---: |' * len(columns)}"]
    for model in models:
        of_model = {name: [row for row in own if row.dispatch.model == model] for name, own in rows.items()}
        cells = [", ".join([_count(own), *faults(own)]) for own in of_model.values()]
        if FILLED in rows:
            cells.append(f"{filling_share(of_model[FILLED]):.0%}")
        lines.append(f"| {model} | {' | '.join(cells)} |")
    totals = [_count(own) for own in rows.values()] + [""] * (FILLED in rows)
    lines.append(f"| all, each text once | {' | '.join(totals)} |")
    by_driver = {
        driver: [name for name in rows if drivers[name] == driver] for driver in dict.fromkeys(map(drivers.__getitem__, rows))
    }
    compilers = ", ".join(f"{driver} ({', '.join(names)})" for driver, names in by_driver.items())
    wrong = faults(row for own in rows.values() for row in own) or ["no kernel refused, no register spilled, no scratch memory"]
    return "\n".join([f"{day}, {compilers}: {', '.join(wrong)}. A GPU is filled by {SUBGROUPS} subgroups of 32.", "", *lines])


def _count(rows: Iterable[Row]) -> str:
    return str(len({row.dispatch.wgsl for row in rows}))
