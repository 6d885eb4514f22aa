"""The differences between the golden plans of two trees."""

from __future__ import annotations

import difflib
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping

_WGSL = "wgsl"
"""The field of a dispatch that names its kernel: kernels are compared by themselves."""


@dataclass(frozen=True, kw_only=True)
class Difference:
    """What differs between the golden plans of one model for one device.

    Attributes:
        totals: "dispatches", "kernels" and "bytes" before and after, of those that differ.
        added: names of the kernels that only the second tree has.
        gone: names of the kernels that only the first tree has.
        changed: of kernels with another text, the name and the WGSL before and after.
        fields: field of the plans, such as "dispatches.grid" -> how often it differs.
        example: one of these differences, for people.
        failure: why one of the sides could not be made.
        new: the operators of the graph that the first tree does not have.
    """

    totals: Mapping[str, tuple[int, int]] = field(default_factory=dict[str, tuple[int, int]])
    added: Collection[str] = ()
    gone: Collection[str] = ()
    changed: Collection[tuple[str, str, str]] = field(default=(), repr=False)
    fields: Mapping[str, int] = field(default_factory=dict[str, int])
    example: str = ""
    failure: str = ""
    new: Collection[str] = ()

    def __bool__(self) -> bool:
        return bool(self.totals or self.added or self.gone or self.changed or self.fields or self.failure or self.new)

    def lines(self, *, diff: bool = False) -> Iterator[str]:
        """Yield the lines to print; `diff` adds unified diffs of the changed kernels."""
        yield from self.failure.splitlines()
        if self.new:
            yield f"new: the first tree does not have {', '.join(self.new)}"
        if self.totals:
            yield ", ".join(f"{name} {before:,} -> {after:,}" for name, (before, after) in self.totals.items())
        yield from (f"+ {name}" for name in self.added)
        yield from (f"- {name}" for name in self.gone)
        for name, before, after in self.changed:
            yield f"~ {name}"
            if diff:
                yield from difflib.unified_diff(before.splitlines(), after.splitlines(), "before", "after", lineterm="")
        if self.fields:
            yield "differing fields: " + ", ".join(f"{name} ({times})" for name, times in sorted(self.fields.items()))
            yield f"for example: {self.example}"


def compare(before: Mapping[str, Any], after: Mapping[str, Any], ignored: Collection[str] = ()) -> Difference:
    """Compare the results of `dump` for two trees.

    Args:
        before: of the first tree.
        after: of the second tree.
        ignored: fields of plans that do not count, such as "params".
    """
    if before.get("missing") and "failure" not in after:
        return Difference(new=before["missing"])
    failures = [
        f"{side} failed:\n{dumped['failure']}"
        for side, dumped in (("the first tree", before), ("the second tree", after))
        if "failure" in dumped
    ]
    if failures:
        return Difference(failure="\n".join(failures))
    old, new = _kernel_names(before), _kernel_names(after)
    changed: list[tuple[str, str, str]] = []
    gone = {key: name for key, name in old.items() if key not in new}
    added = {key: name for key, name in new.items() if key not in old}
    for was, now in _successors(before, after):
        if was in gone and now in added:
            del gone[was]
            changed.append((added.pop(now), before["kernels"][was], after["kernels"][now]))
    found = [
        (name, path, a, b)
        for name, path, a, b in _differences(before["plans"], after["plans"])
        if not set(name.split(".")) & {*ignored, _WGSL}
    ]
    totals = {name: (a, b) for name, a in _totals(before).items() if a != (b := _totals(after)[name])}
    return Difference(
        totals=totals,
        added=list(added.values()),
        gone=list(gone.values()),
        changed=changed,
        fields=Counter(name for name, *_ in found),
        example="{1}: {2!r} -> {3!r}".format(*found[0]) if found else "",
    )


def _totals(dumped: Mapping[str, Any]) -> dict[str, int]:
    plans = [plan for plan in dumped["plans"] if "error" not in plan]
    return {
        "dispatches": sum(len(plan["dispatches"]) for plan in plans),
        "kernels": len(dumped["kernels"]),
        "bytes": sum(plan["total_bytes"] for plan in plans),
    }


def _dispatches(dumped: Mapping[str, Any]) -> Iterator[tuple[tuple[int, str], Mapping[str, Any]]]:
    """Yield the dispatches with the number of their plan and their label, which name them."""
    for i, plan in enumerate(dumped["plans"]):
        for dispatch in plan.get("dispatches", ()):
            yield (i, dispatch["label"]), dispatch


def _kernel_names(dumped: Mapping[str, Any]) -> dict[str, str]:
    """Return key -> name of the kernels: their parameters, and the first dispatch that runs each."""
    names: dict[str, str] = {}
    for (_, label), dispatch in _dispatches(dumped):
        names.setdefault(dispatch[_WGSL], f"{dispatch['kernel']} ({label})")
    return names


def _successors(before: Mapping[str, Any], after: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield kernels before and after that the same dispatch runs."""
    now = {name: dispatch[_WGSL] for name, dispatch in _dispatches(after)}
    for name, dispatch in _dispatches(before):
        if name in now:
            yield dispatch[_WGSL], now[name]


_MAPPINGS = ("inputs", "outputs", "aliases", "params", "bindings", "uniforms")
"""The fields of plans whose keys are names that the graph or a kernel gives, and no fields."""


def _differences(before: Any, after: Any, name: str = "", path: str = "") -> Iterator[tuple[str, str, Any, Any]]:
    """Yield field, place, and value before and after, of what differs."""
    if isinstance(before, dict) and isinstance(after, dict):
        for key in {**before, **after}:
            inner = name if name.rpartition(".")[2] in _MAPPINGS else f"{name}.{key}".strip(".")
            # Below the names there are fields again.
            inner = f"{name}[]" if inner == name else inner
            yield from _differences(before.get(key), after.get(key), inner, f"{path}.{key}".strip("."))
    elif isinstance(before, list) and isinstance(after, list) and len(before) == len(after):
        for i, pair in enumerate(zip(before, after, strict=True)):
            yield from _differences(*pair, name, f"{path}[{i}]")
    elif isinstance(before, list) and isinstance(after, list) and name == "dispatches":
        yield from _differences(*({each["label"]: each for each in side} for side in (before, after)), name, path)
    elif before != after:
        yield name.replace("[]", ""), path, before, after
