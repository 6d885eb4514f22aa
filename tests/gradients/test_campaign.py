"""Random graphs that are differentiated, trained and saved.

Gradients must agree with central differences of the float64 reference. A training step on a device must agree with the same
step on the reference backend. What a checkpoint or a graph file gives back must be what was saved.
"""

from __future__ import annotations

import gc
import os
import time
from collections import Counter
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import webnn_wgpu as wn
from tests.gradients.drawn import differentiable_graph, rebuilt
from tests.gradients.roundings import Roundings, distance, roundings
from tests.random_graphs.source import Seeded
from tests.runtime.counting import count_objects, resident_bytes
from tests.support import PROFILES, profile_context
from webnn_wgpu import train
from webnn_wgpu.ir.text import to_text
from webnn_wgpu.testing import check_gradients
from webnn_wgpu.testing.gradients import GradientMismatchError
from webnn_wgpu.train.step_graphs import METRICS, scalar_name

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from webnn_wgpu.ir.graph import Array, Graph

SECONDS = float(os.environ.get("CAMPAIGN_SECONDS", "60"))
SEED = int(os.environ.get("CAMPAIGN_SEED", "0"))
STEPS = 3
RENEWED = 40
"""Graphs after which contexts end with their devices, of which nothing may be left."""
DISTANCES = (4e-6, 1e-6, 2.5e-7)
"""The distances of central differences."""
NEARER = (1e-10, 1e-11)
"""Distances for functions that turn within the others, such as a tangent of large numbers, each followed by its tenth."""
ROUNDED = 2.0**-52 / DISTANCES[-1]
"""The size of derivatives that differences lose in the rounding of float64, for values of 1."""
GROWTH = 100 << 20
"""Bytes that the process may grow by, for what Python, numpy and the driver keep for the next graph."""

# Without a number of some size in the divisor, the update is the sign of a gradient, which roundings turn over.
OPTIMIZERS: list[Callable[[], train.Optimizer]] = [
    lambda: train.SGD(learning_rate=0.05, clip_norm=1.0),
    lambda: train.SGD(learning_rate=0.05, momentum=0.9, nesterov=True, clip_norm=1.0),
    lambda: train.Adam(learning_rate=0.01, epsilon=0.01),
    lambda: train.AdamW(learning_rate=0.01, epsilon=0.01, clip_value=0.5),
    lambda: train.Adagrad(learning_rate=0.01, epsilon=0.01),
    lambda: train.RMSProp(learning_rate=0.001, epsilon=0.01, momentum=0.5),
    lambda: train.Adamax(learning_rate=0.01, epsilon=0.01),
    lambda: train.Adadelta(epsilon=0.01),
]


class Case:
    """A random graph, of which some float values are parameters: the constants, or the inputs where there are none."""

    def __init__(self, name: str, graph: Graph, feeds: Mapping[str, Array]) -> None:
        self.graph = graph
        source = Seeded(f"{name}:optimizer")
        self.make = source.choice(OPTIMIZERS)
        floats = {f"c{value}": value for value, array in graph.constants.items() if array.dtype == np.float32}
        inputs = {name: value for name, value in graph.inputs.items() if feeds[name].dtype == np.float32}
        self.places = floats or inputs
        values = {**graph.constants, **{value: feeds[name] for name, value in graph.inputs.items()}}
        self.parameters = {name: np.array(values[value]) for name, value in self.places.items()}
        self.inputs = {name: value for name, value in graph.inputs.items() if name not in self.places}
        self.batch = {name: feeds[name] for name in self.inputs}
        self.descriptors: dict[str, Any] = {
            name: {"dataType": str(array.dtype), "shape": list(array.shape)} for name, array in self.batch.items()
        }

    def outputs(self, b: wn.MLGraphBuilder, parameters: Any, inputs: Any) -> list[wn.MLOperand]:
        """Return the outputs of the graph."""
        given = {value: parameters[name] for name, value in self.places.items()}
        return rebuilt(self.graph, b, given | {value: inputs[name] for name, value in self.inputs.items()})

    def loss(self, b: wn.MLGraphBuilder, parameters: Any, inputs: Any) -> wn.MLOperand:
        """Return a small loss with a slope everywhere."""
        floats = [o for o in self.outputs(b, parameters, inputs) if o.data_type == "float32"]
        first, *others = (b.reduce_mean(b.softsign(operand)) for operand in floats)
        for each in others:
            first = b.add(first, each)
        return first

    def step(self, context: wn.MLContext) -> train.Step:
        """Return a training step."""
        return train.Step(context, self.loss, self.parameters, self.make(), inputs=self.descriptors)


def differentiate(case: Case, tally: Counter[str]) -> None:
    """Compare gradients by parameters and inputs with central differences. Corners are not met thrice by chance.

    The error of a difference is that of a series, which falls with the square of the distance, or a rounding, which grows with
    its reciprocal. So where differences of several distances agree with each other better than with the gradient, the gradient
    is wrong. Where they do not even agree to a hundredth, as for a sine of large numbers, they cannot tell. Nor can they if
    nearer differences approach the gradient: they then agree about the other terms of a sum. The error of a difference is then
    less than a tenth at a tenth of the distance.
    """
    named = {**case.parameters, **case.batch}

    def build(builder: wn.MLGraphBuilder, *given: wn.MLOperand) -> list[wn.MLOperand]:
        operands = dict(zip(named, given, strict=True))
        return case.outputs(builder, operands, operands)

    failure: GradientMismatchError | None = None
    for turn in range(3):
        rng = np.random.default_rng(turn)
        moved = [
            array + 1e-3 * turn * rng.standard_normal(array.shape).astype(array.dtype) if array.dtype.kind == "f" else array
            for array in named.values()
        ]
        found: list[GradientMismatchError] = []
        for step in DISTANCES:
            try:
                check_gradients(build, moved, together=True, step=step, tolerance=1e-4)
            except GradientMismatchError as error:
                found.append(error)
            else:
                return
        last = found[-1]
        numeric = [error.numeric for error in found]
        spread, size = max(numeric) - min(numeric), max(abs(each) for each in numeric)
        told = max(abs(last.analytic), size) > ROUNDED and spread <= min(0.01 * size, abs(last.analytic - last.numeric))
        if told and not any(near(build, moved, step, 0.02) and near(build, moved, step / 10, 0.002) for step in NEARER):
            failure = last
    if failure is not None:
        raise failure
    tally["gradients that differences cannot tell"] += 1


def near(build: Callable[..., Any], inputs: list[Array], step: float, tolerance: float) -> bool:
    """Return whether a difference is within a relative tolerance of the gradient, whatever roundings may add to it."""
    try:
        # This tolerance excludes each difference, so that its size is known.
        check_gradients(build, inputs, together=True, step=step, tolerance=-1)
    except GradientMismatchError as error:
        return abs(error.numeric - error.analytic) <= tolerance * abs(error.analytic)
    return False


def same_numbers(a: Array, b: Array) -> bool:
    """Return whether arrays are equal to the bit, except for the bits of NaN.

    Elements between the parameters of an arena are never saved. Where a gradient is NaN, each backend makes its own NaN there.
    """
    numbers = ~(np.isnan(a) & np.isnan(b))
    return a.shape == b.shape and a[numbers].tobytes() == b[numbers].tobytes()


def tensors_of(step: train.Step) -> dict[str, Array]:
    """Return the parameters and states of a step, as its graph has them."""
    return {name: np.array(step.context.read_tensor(tensor)) for name, tensor in step._tensors.items()}


def trained(case: Case, context: wn.MLContext, reference: wn.MLContext, path: Path, tally: Counter[str]) -> dict[str, Array]:
    """Compare each step, and that of the reference from the same checkpoint, with float64; return the trained parameters."""
    with case.step(context) as step, case.step(reference) as wanted, case.step(context) as again:
        for _ in range(STEPS):
            step.save(path)
            wanted.load(path)
            before = tensors_of(step)
            for name, array in tensors_of(wanted).items():
                assert same_numbers(array, before[name]), f"the checkpoint changed {name}"
            losses = [step(case.batch)["loss"], wanted(case.batch)["loss"]]
            ran = roundings_of(wanted, case.batch, before)
            if ran is None or not ran.finite:
                tally["steps beyond any promise" if ran is None else "steps that leave the range of a function"] += 1
                continue
            both = [{"loss": np.float32([loss]), **tensors_of(each)} for loss, each in zip(losses, (step, wanted), strict=True)]
            decided = [decided_by_roundings(ran, before, found) for found in both]
            tally["steps that roundings decide" if any(decided) else "steps"] += 1
        step.save(path)
        again.load(path)
        np.testing.assert_array_equal(again(case.batch)["loss"], step(case.batch)["loss"])
        for name, array in tensors_of(again).items():
            assert same_numbers(array, tensors_of(step)[name]), f"a step after the checkpoint changed {name}"
        return step.parameters()


def roundings_of(step: train.Step, batch: Mapping[str, Array], before: Mapping[str, Array]) -> Roundings | None:
    """Return what the last step makes of the tensors before it, in float64."""
    scalars = {scalar_name(name): np.float32(n) for name, n in step.optimizer.scalars(step.steps).items()}
    given: dict[str, Any] = {**batch, **before, **scalars}
    graph = step.graph.source
    return roundings(graph, {name: given[name] for name in graph.inputs})


def decided_by_roundings(ran: Roundings, before: Mapping[str, Array], found: Mapping[str, Array]) -> bool:
    """Compare a step with float64, within what its operators' roundings may change, and return whether they decide about it.

    They do where the graph has a corner or a pole at the very numbers that it is given. Such a step depends on the signs of
    elements less their mean, for example, where all elements are equal.
    """
    decided = False
    for name, array in found.items():
        output = METRICS if name == "loss" else f"next/{name}"
        exact, allowed = ran.exact[output], ran.allowed(output)
        off, change = distance(array, exact), distance(exact, before.get(name, 0.0))
        assert off <= allowed, f"{name} is off by {off:.3g} of {change:.3g}, not within {allowed:.3g}"
        decided = decided or off > 1e-3 * change + 1e-6 * distance(exact, 0.0)
    return decided


def exported(case: Case, parameters: Mapping[str, Array], reference: wn.MLContext, folder: Path, tally: Counter[str]) -> None:
    """Compare what files of the trained graph compute with what the graph computes: to the bit, or in ONNX as in float64."""
    builder = wn.MLGraphBuilder(reference)
    held = {name: builder.constant(array) for name, array in parameters.items()}
    inputs = {name: builder.input(name, descriptor) for name, descriptor in case.descriptors.items()}
    outputs = {f"y{i}": builder.identity(o) for i, o in enumerate(case.outputs(builder, held, inputs))}
    graph = builder.build(outputs)
    feeds = {name: case.batch[name] for name in graph.inputs}
    expected = reference.compute(graph, feeds)
    for kind in ("webnn", "onnx"):
        path = folder / f"trained.{kind}"
        try:
            # What the standard lacks would be composed of other operators, with other roundings.
            graph.save(path, **({"extensions": "keep"} if kind == "webnn" else {}))
        except wn.NotSupportedError:
            tally[f"{kind} refused"] += 1
            continue
        with wn.load(path, reference) as model:
            results = dict(zip(expected, model.run(feeds).values(), strict=True))
            if kind == "webnn":
                for name, array in expected.items():
                    assert results[name].tobytes() == array.tobytes(), f"{kind}: {name} differs"
            else:
                compare_onnx(graph, model, feeds, results, tally)
        tally[f"{kind} files"] += 1
    graph.destroy()


def compare_onnx(
    graph: wn.MLGraph, model: Any, feeds: Mapping[str, Array], results: Mapping[str, Array], tally: Counter[str]
) -> None:
    """Compare what an ONNX file computes with float64, within what the roundings of the graph's operators may change.

    ONNX composes some operators of others, whose roundings differ. What these others are in float64 must then agree with the
    graph in float64, within the roundings of both, because the constants of the file are rounded once like results.
    """
    ran = roundings(graph.source, feeds)
    if ran is None or not ran.finite:
        tally["files beyond any promise" if ran is None else "files that leave the range of a function"] += 1
        return
    far = [name for name, result in results.items() if distance(result, ran.exact[name]) > ran.allowed(name)]
    if not far:
        return
    found = [each.source for each in model.graphs]
    if len(found) != 1 or not all(name in found[0].outputs for name in far):
        tally["onnx files that the host rounds elsewhere"] += 1
        return
    tally["onnx files that round elsewhere"] += 1
    own = roundings(found[0], {name: feeds[name] for name in found[0].inputs})
    if own is None or not own.finite:
        tally["files that leave the range of a function"] += 1
        return
    for name in far:
        exact, allowed = ran.exact[name], ran.allowed(name) + own.allowed(name)
        off = max(distance(results[name], exact), distance(own.exact[name], exact))
        assert off <= allowed, f"{name} is off by {off:.3g}, not within {allowed:.3g}"


def ended(contexts: Mapping[str, wn.MLContext]) -> dict[str, int]:
    """End contexts with their devices, and return how many of wgpu's objects are left."""
    for context in contexts.values():
        owners = {owner: size for owner, size in context.memory().items() if size and owner != "staging"}
        assert not owners, f"destroyed graphs and tensors occupy {owners}"
        context.destroy()
    gc.collect()
    kept = count_objects()
    return {name: kept[name] for name in ("Buffer", "BindGroup", "ComputePipeline", "Texture")}


@pytest.mark.campaign
def test_random_graphs_are_differentiated_trained_and_saved(
    tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    reference = wn.ml.create_context(backend="reference")
    tally, failures, end, number = Counter[str](), list[str](), time.monotonic() + SECONDS, 0
    contexts: dict[str, wn.MLContext] = {}
    first, before = ended(contexts), 0
    np.seterr(all="ignore")
    while time.monotonic() < end:
        number += 1
        name = f"training:{SEED}:{number}"
        drawn = differentiable_graph(name)
        if drawn is None:
            continue
        if tally["graphs"] % RENEWED == 0:
            assert ended(contexts) == first
            # What begins with the first graphs is no growth.
            before = before or (resident_bytes() if tally["graphs"] > RENEWED else 0)
            contexts = {profile: profile_context(profile, new=True) for profile in PROFILES}
        case, profile = Case(name, *drawn), tuple(PROFILES)[tally["graphs"] % len(PROFILES)]
        tally["graphs"] += 1
        stage = "differentiate"
        try:
            differentiate(case, tally)
            stage = f"train on {profile}"
            parameters = trained(case, contexts[profile], reference, tmp_path / "step.safetensors", tally)
            stage = "export"
            exported(case, parameters, reference, tmp_path, tally)
        # Whatever it is, the campaign goes on and reports it.
        except Exception as error:
            failures.append(f"{name}: {stage}: {type(error).__name__}: {error}\n{to_text(case.graph, '  ')}")
            print(failures[-1], flush=True)
    assert ended(contexts) == first
    grown = resident_bytes() - before if before else 0
    for each, count in tally.items():
        record_property(each, count)
    print(f"{dict(tally)}, {len(failures)} failures, {grown >> 20} MiB more memory, seed {SEED}", flush=True)
    assert not failures, "\n".join(failures)
    assert tally["graphs"] >= 20
    # What is not compared is rare: of some graphs of each hundred, operands are beyond 1e18, where sums may overflow.
    for each, all_, share in (
        ("gradients that differences cannot tell", "graphs", 0.01),
        ("steps that roundings decide", "steps", 0.01),
        ("steps that leave the range of a function", "steps", 0.01),
        ("steps beyond any promise", "steps", 0.05),
        ("files that leave the range of a function", "onnx files", 0.01),
        ("files beyond any promise", "onnx files", 0.05),
        ("onnx files that the host rounds elsewhere", "onnx files", 0.01),
        ("onnx files that round elsewhere", "onnx files", 0.02),
    ):
        assert tally[each] <= 2 * STEPS + share * tally[all_], f"{each}: {tally[each]} of {tally[all_]}"
    assert grown < GROWTH
