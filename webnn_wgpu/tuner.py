"""The tuner, which measures the fastest kernel variants for the operators of graphs. `MLGraph.tune` uses it."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Collection, Hashable, Mapping
from dataclasses import dataclass, field
from functools import partial

import numpy as np

from .core.errors import WebNNError
from .core.progress import MEASURING, Progress
from .core.settings import forced_variants
from .costs import Choice
from .ir.graph import Array, Graph, Node
from .kernels.tuning import Measured, Tuning
from .ops import OPS
from .plan import ExecutionPlan, make_plan
from .runtime.device import Device
from .runtime.program import Program

logger = logging.getLogger("webnn_wgpu")

_GAIN = 0.95
"""Share of the time of the heuristics' choice that another one must stay below: less may be chance."""

_SLOW = 3.0
"""The maximum slowdown relative to the fastest variant in the first runs. Slower variants are dropped."""

_FEWEST_ROUNDS, _MOST_ROUNDS, _SECONDS = 5, 25, 0.25
"""Rounds over all variants of an operator: at least so many, then as many as time is left for, and no more than the last."""

_FINAL_ROUNDS = 11
"""Rounds in which the fastest variant has to win against the heuristics' choice."""

_NEGLIGIBLE = 0.003
"""Share of a graph's time below which tuning skips an operator."""

_ALIKE = {2: 1e-2, 4: 1e-3}
"""Share of the largest result by which float16 and float32 results of variants may differ: sums have another order."""

_BORDERLINE = 0.01
"""The share of integers that may differ: variants may round a value between two integers to different ones."""


def single(graph: Graph, node: Node) -> Graph:
    """Return the graph of one node, whose operands are inputs or constants and whose results are outputs."""
    ends = {*node.operands, *node.outputs}
    return Graph(
        values={value: graph.values[value] for value in sorted(ends)},
        inputs={f"in{value}": value for value in dict.fromkeys(node.operands) if value not in graph.constants},
        constants={value: array for value, array in graph.constants.items() if value in ends},
        nodes=(node,),
        outputs={f"out{value}": value for value in node.outputs},
    )


@dataclass(frozen=True)
class Trial(Tuning):
    """A tuning that records its questions: operator -> the existing variants."""

    asked: dict[str, tuple[str, ...]] = field(default_factory=dict[str, tuple[str, ...]])

    def choice(self, operator: str, candidates: Collection[str]) -> Choice | None:
        """Return the choice so far, and record the question."""
        self.asked[operator] = tuple(candidates)
        return super().choice(operator, candidates)


@dataclass(frozen=True)
class _Operator:
    """An operator with certain shapes and types: its graph, its number of uses in the graphs, and its variants."""

    graph: Graph
    times: int
    variants: tuple[str, ...]


class Tuner:
    """A search for the fastest variant of one operator after the other, in the order of their times.

    Attributes:
        choices: the measurements.
    """

    def __init__(self, device: Device) -> None:
        self.choices: dict[str, Measured] = {}
        self._device, self._forced = device, forced_variants()
        self._graphs: list[Graph] = []
        self._done: set[str] = set()

    def add(self, graph: Graph) -> None:
        """Add the operators of a graph after its passes."""
        self._graphs += [single(graph, node) for node in graph.nodes if OPS[node.op].lower is not None]

    def run(self, progress: Progress | None) -> None:
        """Measure until no operator is left. The choice for one operator may raise a question within it."""
        total_us = 0.0
        while operators := self._operators():
            taken_us = {name: self._microseconds(operator.graph) * operator.times for name, operator in operators.items()}
            total_us = total_us or sum(taken_us.values())
            ordered = sorted(operators, key=lambda name: -taken_us[name])
            for i, name in enumerate(ordered):
                tell = partial(progress or _tell_nobody, i, len(ordered), MEASURING + name)
                tell()
                self._done.add(name)
                if taken_us[name] >= _NEGLIGIBLE * total_us:
                    self._choose(name, operators[name], tell)
            if progress is not None:
                progress(len(ordered), len(ordered), MEASURING)

    def _operators(self) -> dict[str, _Operator]:
        """Return the operators that are left to choose for."""
        found: dict[str, _Operator] = {}
        for graph in self._graphs:
            trial = self._trial({})
            make_plan(graph, self._device.target, self._forced, trial)
            for name, variants in trial.asked.items():
                if name not in self._done and len(variants) > 1:
                    before = found.get(name)
                    found[name] = _Operator(graph, before.times + 1 if before else 1, variants)
        return found

    def _trial(self, choices: Mapping[str, Measured]) -> Trial:
        known = Tuning.of(self._device.caps)
        return Trial(known.device, known.templates, choices={**self.choices, **choices})

    def _microseconds(self, graph: Graph) -> float:
        """Return the time of an operator with the choices so far."""
        with _Running(self._device, make_plan(graph, self._device.target, self._forced, self._trial({})), graph) as running:
            running.microseconds()
            return running.microseconds()

    def _choose(self, name: str, operator: _Operator, tell: Callable[[], None]) -> None:
        """Measure the variants of an operator and record the choice, if there is one. `tell` is called before each variant."""
        plans, usual = self._plans(name, operator)
        running: dict[str, _Running] = {}
        try:
            for variant, plan in plans.items():
                tell()  # may raise, to end the measurement
                try:
                    running[variant] = _Running(self._device, plan, operator.graph)
                except WebNNError as error:
                    logger.info("%s cannot be computed by %s: %s", name, variant, error)
            if not running:
                return
            self._leave_out_wrong(name, running, usual)
            times = _rounds(running)
            fastest = min(times, key=lambda variant: times[variant])
            if usual in times and fastest != usual and not _surely_faster(running[fastest], running[usual]):
                fastest = usual
        finally:
            for each in running.values():
                each.close()
        if fastest in operator.variants:
            milliseconds = {variant: float(f"{us / 1e3:.4g}") for variant, us in times.items() if variant in operator.variants}
            self.choices[name] = Measured(fastest, milliseconds)

    def _leave_out_wrong(self, name: str, running: dict[str, _Running], usual: str) -> None:
        """Close the variants whose results differ from those of the heuristics' choice.

        Drivers miscompile kernels, and may give a kernel other subgroups than the probed ones. Wrong kernels are often fast.
        """
        if usual not in running:
            return
        wanted, than = running[usual].results(), usual or "the usual kernel"
        for variant in [variant for variant, each in running.items() if not _alike(each.results(), wanted)]:
            logger.warning("%s: %s computes something else than %s on %s", name, variant, than, self._device.description)
            running.pop(variant).close()

    def _plans(self, name: str, operator: _Operator) -> tuple[dict[str, ExecutionPlan], str]:
        """Return the plan of each variant that differs from the earlier ones, and the name of the heuristics' choice.

        If no named variant is that choice, it is the last of the plans, under a name of no variant.
        """
        target = self._device.target
        plans: dict[str, ExecutionPlan] = {}
        seen: dict[Hashable, str] = {}
        for variant in operator.variants:
            try:
                plan = make_plan(operator.graph, target, self._forced, self._trial({name: Measured(variant, {variant: 0.0})}))
            except WebNNError as error:
                logger.info("%s cannot be computed by %s: %s", name, variant, error)
                continue
            if seen.setdefault(_essence(plan), variant) == variant:
                plans[variant] = plan
        usual = make_plan(operator.graph, target, self._forced, self._trial({}))
        chosen = seen.get(_essence(usual), "")
        if not chosen:
            plans[chosen] = usual
        return plans, chosen


def _tell_nobody(_done: int, _total: int, _what: str) -> None:
    pass


def _essence(plan: ExecutionPlan) -> Hashable:
    """Return a key that differs for plans of one operator that differ on the device."""
    return tuple((d.spec, d.grid) for d in plan.dispatches), plan.uniforms, tuple(c.packing for c in plan.constants)


def _rounds(running: Mapping[str, _Running]) -> dict[str, float]:
    """Return the microseconds of each program: medians over rounds in which all have their turn."""
    for each in running.values():
        each.microseconds()
    times = {name: [each.microseconds(), each.microseconds()] for name, each in running.items()}
    fastest = min(min(found) for found in times.values())
    alive = {name: each for name, each in running.items() if min(times[name]) <= _SLOW * fastest}
    end = time.perf_counter() + _SECONDS
    for i in range(_MOST_ROUNDS):
        if i >= _FEWEST_ROUNDS and time.perf_counter() > end:
            break
        for name, each in alive.items():
            times[name].append(each.microseconds())
    return {name: float(np.median(found)) for name, found in times.items()}


def _surely_faster(one: _Running, usual: _Running) -> bool:
    """Return whether a variant wins against the heuristics' choice once more, in turns: among many one looks fast by chance."""
    return float(np.median([one.microseconds() / usual.microseconds() for _ in range(_FINAL_ROUNDS)])) < _GAIN


def _alike(found: Mapping[str, Array], wanted: Mapping[str, Array]) -> bool:
    """Return whether results are the same but for rounding."""
    return all(_close(found[name], array) for name, array in wanted.items())


def _close(found: Array, wanted: Array) -> bool:
    if wanted.dtype.kind != "f":
        return bool(np.count_nonzero(found != wanted) <= _BORDERLINE * wanted.size)
    largest = np.max(np.abs(wanted), initial=0, where=np.isfinite(wanted))
    return np.allclose(found, wanted, rtol=0, atol=_ALIKE[wanted.itemsize] * float(largest), equal_nan=True)


class _Running:
    """A plan of one operator on its device, with inputs made up."""

    def __init__(self, device: Device, plan: ExecutionPlan, graph: Graph) -> None:
        self._program = Program(device, plan)
        self._inputs = _made_up(graph)

    def microseconds(self) -> float:
        """Run and return the time of the kernels, or of the whole run if the device takes no timestamps."""
        times = self._program.kernel_times(self._inputs)
        if times is not None:
            return max(float(times.sum()), 1e-3)
        start = time.perf_counter()
        self.results()
        return (time.perf_counter() - start) * 1e6

    def results(self) -> dict[str, Array]:
        """Run and return the outputs."""
        return self._program.start(self._inputs, list(self._program.plan.outputs)).result()

    def close(self) -> None:
        """Free everything."""
        self._program.destroy()

    def __enter__(self) -> _Running:
        return self

    def __exit__(self, *_error: object) -> None:
        self.close()


def _made_up(graph: Graph) -> dict[str, Array]:
    """Return inputs for the graph of one operator: random numbers, zeros as indices, and full masks and caches."""
    random = np.random.default_rng(0)
    arrays: dict[str, Array] = {}
    for name, value in graph.inputs.items():
        t = graph.type(value)
        if t.numpy.kind == "f":
            arrays[name] = random.standard_normal(t.shape).astype(t.numpy)
        else:
            arrays[name] = np.full(t.shape, int(t.numpy.itemsize == 1), t.numpy)
    (node,) = graph.nodes
    operands = dict(zip(OPS[node.op].operand_names(len(node.inputs)), node.inputs, strict=False))
    length, keys = operands.get("length"), operands.get("key")
    if length is not None and keys is not None:
        arrays[f"in{length}"] = np.full(graph.type(length).shape, graph.type(keys).shape[-2], graph.type(length).numpy)
    return arrays
