"""The report of a comparison of a graph's operators."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from html import escape
from pathlib import Path

from webnn_wgpu.core.wording import counted
from webnn_wgpu.display.tables import aligned, first_few

from .comparison import Comparison
from .repro import Repro

_TITLES = ("operator", "kind", "type", "wrong", "max error", "ULP", "of allowed")


@dataclass(frozen=True, kw_only=True)
class OperatorDiff(Comparison):
    """The deviation of the results of an operator, or of the operators in one kernel, from the expected results.

    Attributes:
        label: the operator's label, else its name and number. Several operators in one kernel have the label of the plan.
        op: the name of the operator in the specification, or the names of several operators with a plus between them.
        labels: the operators of the source graph that it stands for, each once.
        kernels: names of the kernels that compute it, as `MLGraph.kernels` has them.
        overridden: whether an `override` replaces one of the kernels.
        output: the number of the result with the largest error, which the figures describe. The first result is 0.
        num_outputs: the number of results.
        repro_path: a Python file that reproduces the error, for the first and for the worst wrong operator. Otherwise "".
        places: the lines of a graph file that the operators come from. Empty for other graphs.
    """

    label: str
    op: str
    labels: tuple[str, ...]
    kernels: tuple[str, ...]
    overridden: bool = False
    output: int = 0
    num_outputs: int = 1
    repro_path: str = ""
    places: tuple[str, ...] = ()

    def __str__(self) -> str:
        places = f"  from {', '.join(self.places)}" * bool(self.places)
        repro = f"  repro: {self.repro_path}" * bool(self.repro_path)
        return "\n".join(filter(None, [self._title, super().__str__(), places, repro]))

    @property
    def _title(self) -> str:
        operators = f" of {', '.join(self.labels)}" if len(self.labels) > 1 else ""
        kernels = ", ".join(self.kernels) + (", overridden" if self.overridden else "")
        title = f"{self.label} ({self.op}){operators}, kernel {kernels}" if kernels else f"{self.label} ({self.op})"
        return f"{title}, output {self.output}, the worst of {self.num_outputs}:" if self.num_outputs > 1 else f"{title}:"

    def html(self) -> str:
        """Return the report as HTML, which notebooks show."""
        repro = f"<p>repro: <code>{escape(self.repro_path)}</code></p>" * bool(self.repro_path)
        places = f"<p>from {escape(', '.join(self.places))}</p>" * bool(self.places)
        return f"<p><b>{escape(self._title)}</b></p>{super()._repr_html_()}{places}{repro}"

    def _repr_html_(self) -> str:
        return self.html()


@dataclass(frozen=True)
class GraphDiff:
    """The report of `diff`. `print` shows the first wrong operator, and the others.

    Attributes:
        against: the name of the oracle.
        operators: every compared operator, or kernel of several, in the order of the run.
        outputs: the deviation of the graph's outputs from those of a whole run of the oracle, by name. The errors that a graph
            may accumulate are unknown, so these are for information only.
        uncompared: the labels of operators without a comparison: their operands have no promised accuracy, or their expected
            results are unknown.
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
        """The first wrong operator, without the effects of earlier errors. None if all agree."""
        return next(iter(self.wrong), None)

    @property
    def worst(self) -> OperatorDiff | None:
        """The operator with the largest error relative to its bound. None if all results agree."""
        return max(self.wrong, key=badness, default=None)

    def of(self, label: str) -> tuple[OperatorDiff, ...]:
        """Return the comparisons of the operator with a label.

        Args:
            label: the label of the operator, or of one of the operators in a kernel.
        """
        return tuple(each for each in self.operators if label == each.label or label in each.labels)

    def summary(self) -> str:
        """Return one line: the first wrong operator and the folder of its repro, or the largest error if none is wrong."""
        repro = self.first.repro_path if self.first is not None else ""
        return self._verdict + (f"; repro in {Path(repro).parent}" if repro else "")

    @property
    def _verdict(self) -> str:
        count = f"{counted(len(self.operators), 'operator')} against {self.against}"
        left = f"; not compared: {first_few(self.uncompared)}" if self.uncompared else ""
        if self.first is None:
            nearest = max(self.operators, key=badness, default=None)
            most = f"; {nearest.label} has {nearest.share:.2f} of its permitted error" if nearest and nearest.share else ""
            return f"{count}: {'all agree' if self.operators else 'nothing to compare'}{most}{left}"
        return f"{count}: {len(self.wrong)} wrong, the first is {self.first.label} ({self.first.op}){left}"

    def with_repros(self, repros: Mapping[int, Repro], folder: Path | Callable[[], Path]) -> GraphDiff:
        """Return the report, and write the programs that show the first and the worst wrong operator.

        Args:
            repros: the programs by the position of an operator among `operators`.
            folder: the folder for the files, or a function that creates the folder if there are files to write.
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
        """Return the rows of a table of wrong operators: operator, kind, type, wrong elements, errors."""
        return [
            (w.label, w.op, w.type, str(w.wrong), f"{w.max_abs_error:.3g}", f"{w.max_ulp:.7g}", f"{w.share:.3g}")
            for w in self.wrong
        ]

    def __str__(self) -> str:
        lines = [self._verdict]
        if self.first is not None:
            lines += ["", str(self.first), "", *aligned([_TITLES, *self.rows()], range(3, len(_TITLES)))]
        for name, output in self.outputs.items():
            lines.append(f"output {name}, end to end: off by {output.max_abs_error:.3g}, {output.max_ulp:.7g} ULP")
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        rows = "".join(f"<tr>{''.join(f'<td>{escape(c)}</td>' for c in row)}</tr>" for row in self.rows())
        head = "".join(f"<th>{title}</th>" for title in _TITLES)
        first = "" if self.first is None else f"{self.first.html()}<table><tr>{head}</tr>{rows}</table>"
        return f"<p><b>{escape(self._verdict)}</b></p>{first}"


def badness(found: OperatorDiff) -> tuple[float, float]:
    """Return the sort key of wrong operators, whose maximum is the worst."""
    return found.share, found.max_ulp
