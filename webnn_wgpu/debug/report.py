"""What comparing a graph's operators has found."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from html import escape
from pathlib import Path

from webnn_wgpu.display.tables import aligned, first_few

from .comparison import Comparison
from .repro import Repro

_TITLES = ("operator", "kind", "type", "wrong", "max error", "ULP", "of allowed")


@dataclass(frozen=True, kw_only=True)
class OperatorDiff(Comparison):
    """How far the results of an operator, or of operators in one kernel, are from what its operands should give.

    Attributes:
        label: the operator, by label, else by name and number; of several in one kernel, what the plan calls them together.
        op: name of the operator in the specification; of several in one kernel the names, with a plus between them.
        labels: the operators of the source graph that it stands for, each once.
        kernels: names of the kernels that compute it, as `MLGraph.kernels` has them.
        overridden: whether one of them is a source of the caller's.
        output: which of its results the numbers are of: the one that is furthest off.
        repro_path: of the first and of the worst that are wrong, a Python file that shows it on its own; else "".
    """

    label: str
    op: str
    labels: tuple[str, ...]
    kernels: tuple[str, ...]
    overridden: bool = False
    output: int = 0
    repro_path: str = ""

    def __str__(self) -> str:
        return "\n".join(filter(None, [self._title, super().__str__(), f"  repro: {self.repro_path}" * bool(self.repro_path)]))

    @property
    def _title(self) -> str:
        operators = f" of {', '.join(self.labels)}" if len(self.labels) > 1 else ""
        kernels = ", ".join(self.kernels) + (", overridden" if self.overridden else "")
        return f"{self.label} ({self.op}){operators}, kernel {kernels}:" if kernels else f"{self.label} ({self.op}):"

    def html(self) -> str:
        """Return the report as HTML, which notebooks show."""
        repro = f"<p>repro: <code>{escape(self.repro_path)}</code></p>" * bool(self.repro_path)
        return f"<p><b>{escape(self._title)}</b></p>{super()._repr_html_()}{repro}"

    def _repr_html_(self) -> str:
        return self.html()


@dataclass(frozen=True)
class GraphDiff:
    """What `diff` has found. `print` shows the first operator that is wrong, and the others that are.

    Attributes:
        against: what the graph was compared with.
        operators: every operator, or kernel of several, that was compared, in the order in which they ran.
        outputs: how far the graph's outputs are from those of a whole run of what it was compared with, by name. What errors a
            graph may add up is not known, so these are only told.
        uncompared: labels of what could not be compared: for its operands no accuracy is promised, or nothing is known of what
            it should compute.
    """

    against: str
    operators: tuple[OperatorDiff, ...]
    outputs: Mapping[str, Comparison]
    uncompared: tuple[str, ...] = ()

    @property
    def wrong(self) -> tuple[OperatorDiff, ...]:
        """The operators that are wrong, in the order in which they ran."""
        return tuple(each for each in self.operators if not each)

    @property
    def first(self) -> OperatorDiff | None:
        """The first operator that is wrong: earlier errors do not count for it. None where all agree."""
        return next(iter(self.wrong), None)

    @property
    def worst(self) -> OperatorDiff | None:
        """The operator that is furthest off in terms of what it may be. None where all agree."""
        return max(self.wrong, key=badness, default=None)

    def of(self, label: str) -> tuple[OperatorDiff, ...]:
        """Return what was compared of the operator of a label."""
        return tuple(each for each in self.operators if label == each.label or label in each.labels)

    def summary(self) -> str:
        """Return one line: the first operator that is wrong, or how far off the others are."""
        count = f"{len(self.operators)} operator{'s' * (len(self.operators) != 1)} against {self.against}"
        left = f"; not compared: {first_few(self.uncompared)}" if self.uncompared else ""
        if self.first is None:
            nearest = max(self.operators, key=badness, default=None)
            most = f"; {nearest.label} is off by {nearest.share:.2f} of what it may be" if nearest and nearest.share else ""
            return f"{count}: all agree{most}{left}"
        return f"{count}: {len(self.wrong)} wrong, the first is {self.first.label} ({self.first.op}){left}"

    def with_repros(self, repros: Mapping[int, Repro], folder: Path | Callable[[], Path]) -> GraphDiff:
        """Return the report with the programs written that show the first and the worst operator that are wrong.

        Args:
            repros: programs by the position of an operator among `operators`.
            folder: where to write, or what makes the folder if there is anything to write.
        """
        operators = list(self.operators)
        shown = [each for each in (self.first, self.worst) if each is not None]
        for at, repro in repros.items():
            entry = operators[at]
            if any(entry is each for each in shown):
                folder = folder if isinstance(folder, Path) else folder()
                path = repro.write(folder, entry.label, f"{entry.op} '{entry.label}': {entry.verdict}")
                operators[at] = replace(entry, repro_path=str(path))
        return replace(self, operators=tuple(operators))

    def rows(self) -> list[tuple[str, ...]]:
        """Return the lines of a table of what is wrong: operator, kind, type, wrong elements, errors."""
        return [
            (w.label, w.op, w.type, str(w.wrong), f"{w.max_abs_error:.3g}", f"{w.max_ulp:.7g}", f"{w.share:.3g}")
            for w in self.wrong
        ]

    def __str__(self) -> str:
        lines = [self.summary()]
        if self.first is not None:
            lines += ["", str(self.first), "", *aligned([_TITLES, *self.rows()], range(3, len(_TITLES)))]
        for name, output in self.outputs.items():
            lines.append(f"output {name}, end to end: off by {output.max_abs_error:.3g}, {output.max_ulp:.7g} ULP")
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        rows = "".join(f"<tr>{''.join(f'<td>{escape(c)}</td>' for c in row)}</tr>" for row in self.rows())
        head = "".join(f"<th>{title}</th>" for title in _TITLES)
        first = "" if self.first is None else f"{self.first.html()}<table><tr>{head}</tr>{rows}</table>"
        return f"<p><b>{escape(self.summary())}</b></p>{first}"


def badness(found: OperatorDiff) -> tuple[float, float]:
    """Return what the worst has most of."""
    return found.share, found.max_ulp
