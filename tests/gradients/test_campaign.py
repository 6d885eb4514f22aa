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
from tests.random_graphs.check import evaluated
from tests.random_graphs.source import Seeded
from tests.runtime.counting import resident_bytes
from tests.support import PROFILES, profile_context
from webnn_wgpu import train
from webnn_wgpu.ir.text import to_text
from webnn_wgpu.ops import OPS
from webnn_wgpu.ops.interfaces.bounds import EXACT
from webnn_wgpu.reference import interpret
from webnn_wgpu.testing import check_gradients
from webnn_wgpu.testing.gradients import GradientMismatchError, in_float64
from webnn_wgpu.train.step_graphs import scalar_name

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from webnn_wgpu.ir.graph import Array, Graph

SECONDS = float(os.environ.get("CAMPAIGN_SECONDS", "60"))
SEED = int(os.environ.get("CAMPAIGN_SEED", "0"))
STEPS = 3
RENEWED = 40
"""Graphs after which contexts are opened anew: on a software driver each compiled kernel takes up about a megabyte."""
DISTANCES, ROUNDED = (1e-6, 2.5e-7), 1e-9
"""The distances of central differences, and the size of derivatives that they lose in the rounding of float64."""
GROWTH = 800 << 20
"""Bytes that the process may grow by, with the kernels of so many graphs."""

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

    Where differences of two distances do not agree with each other, they cannot tell what the gradient is.
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
        one, other = (error.numeric for error in found)
        far = max(abs(found[-1].analytic), abs(other)) > ROUNDED
        if far and abs(one - other) <= 1e-3 * max(abs(one), abs(other)):
            failure = found[-1]
    if failure is not None:
        raise failure
    tally["gradients that differences cannot tell"] += 1


def tensors_of(step: train.Step) -> dict[str, Array]:
    """Return the parameters and states of a step, as its graph has them."""
    return {name: np.array(step.context.read_tensor(tensor)) for name, tensor in step._tensors.items()}


def trained(case: Case, context: wn.MLContext, reference: wn.MLContext, path: Path, tally: Counter[str]) -> dict[str, Array]:
    """Compare each step with that of the reference from the same checkpoint; return the trained parameters."""
    with case.step(context) as step, case.step(reference) as wanted, case.step(context) as again:
        for _ in range(STEPS):
            step.save(path)
            wanted.load(path)
            before = tensors_of(step)
            for name, array in tensors_of(wanted).items():
                assert array.tobytes() == before[name].tobytes(), f"the checkpoint changed {name}"
            loss, expected = step(case.batch)["loss"], wanted(case.batch)["loss"]
            compare(wanted, case.batch, before, {"loss": np.float32(loss), **tensors_of(step)}, np.float32(expected), tally)
        step.save(path)
        again.load(path)
        np.testing.assert_array_equal(again(case.batch)["loss"], step(case.batch)["loss"])
        for name, array in tensors_of(again).items():
            assert array.tobytes() == tensors_of(step)[name].tobytes(), f"a step after the checkpoint changed {name}"
        return step.parameters()


def rounded_at_random(graph: Graph, feeds: Mapping[str, Array]) -> dict[str, Array]:
    """Return the outputs of a graph in float64, each operator's results moved at random by as much as float32 rounds them.

    Operators without a rounding, such as maxima, give elements of their operands, which gradients compare with them.
    """
    rng = np.random.default_rng(0)
    values: dict[int, Array] = {**graph.constants, **{value: feeds[name] for name, value in graph.inputs.items()}}
    for node in graph.nodes:
        results = evaluated(graph, node, [None if value is None else values[value] for value in node.inputs])
        for output, array in zip(node.outputs, results, strict=True):
            moved = array.dtype == np.float64 and OPS[node.op].bounds is not EXACT
            values[output] = array * (1 + 2.0**-24 * rng.uniform(-1, 1, array.shape)) if moved else array
    return {name: values[value] for name, value in graph.outputs.items()}


def compare(
    wanted: train.Step,
    batch: Mapping[str, Array],
    before: Mapping[str, Array],
    found: Mapping[str, Array],
    loss: Any,
    tally: Any,
) -> None:
    """Compare a step with the reference's, within multiples of what float32 changes in the reference."""
    graph = wanted.graph.source
    scalars = {scalar_name(name): np.float32(n) for name, n in wanted.optimizer.scalars(wanted.steps).items()}
    given: dict[str, Any] = {**batch, **before, **scalars}
    wide = {n: given[n].astype(np.float64) if given[n].dtype == np.float32 else given[n] for n in graph.inputs}
    exact, jittered = interpret(in_float64(graph), wide), rounded_at_random(in_float64(graph), wide)
    narrow = {"loss": loss, **tensors_of(wanted)}
    exact, jittered = (
        {"loss": each["step/metrics"][0], **{name: each[f"next/{name}"] for name in before}} for each in (exact, jittered)
    )
    if not all(np.isfinite(array).all() for array in (*exact.values(), *jittered.values())):
        tally["steps that leave the range of a function"] += 1
        return
    for name, array in found.items():
        rounding = float(np.max(np.abs(narrow[name] - exact[name]), initial=0.0))
        change = float(np.max(np.abs(exact[name] - before.get(name, 0.0)), initial=0.0))
        size = float(np.max(np.abs(exact[name]), initial=0.0))
        if not rounding <= 0.01 * change + 1e-6 * size:  # also where the float32 of the reference is not finite
            tally["steps that float32 cannot tell"] += 1
            return
        # Terms of a sum that cancel leave the rounding of each, which the reference, that rounds once, does not have. An
        # optimizer divides what is left by as little as its epsilon.
        rounding = max(rounding, float(np.max(np.abs(jittered[name] - exact[name]), initial=0.0)))
        allowed = 64 * rounding + 2e-4 * change + 1e-6 * size + 1e-7
        off = float(np.max(np.abs(array - exact[name]), initial=0.0))
        assert off <= allowed, f"{name} is off by {off:.3g} of {change:.3g}, not within {allowed:.3g}"
    tally["steps"] += 1


def close(found: Array, wanted: Array, more: float) -> bool:
    """Return whether arrays agree to 1e-4 of each element and 1e-5 of the largest one, and an absolute number more."""
    one, other = found.astype(np.float64), wanted.astype(np.float64)
    return np.allclose(one, other, rtol=1e-4, atol=1e-5 * float(np.max(np.abs(other), initial=0.0)) + more + 1e-7)


def exported(case: Case, parameters: Mapping[str, Array], reference: wn.MLContext, folder: Path, tally: Counter[str]) -> None:
    """Compare what files of the trained graph compute with what the graph computes."""
    builder = wn.MLGraphBuilder(reference)
    held = {name: builder.constant(array) for name, array in parameters.items()}
    inputs = {name: builder.input(name, descriptor) for name, descriptor in case.descriptors.items()}
    outputs = {f"y{i}": builder.identity(o) for i, o in enumerate(case.outputs(builder, held, inputs))}
    graph = builder.build(outputs)
    feeds = {name: case.batch[name] for name in graph.inputs}
    expected = reference.compute(graph, feeds)
    wide = in_float64(graph.source)
    given = {name: array.astype(np.float64) if array.dtype.kind == "f" else array for name, array in feeds.items()}
    exact, jittered = interpret(wide, given), rounded_at_random(wide, given)
    if not all(np.isfinite(array.astype(np.float64)).all() for array in (*exact.values(), *jittered.values())):
        tally["files that leave the range of a function"] += 1
        return
    for kind in ("webnn", "onnx"):
        path = folder / f"trained.{kind}"
        try:
            # What the standard lacks would be composed of other operators, with other roundings.
            graph.save(path, **({"extensions": "keep"} if kind == "webnn" else {}))
        except wn.NotSupportedError:
            tally[f"{kind} refused"] += 1
            continue
        with wn.load(path, reference) as model:
            results = model.run(feeds)
            found = None
            for (name, array), result in zip(expected.items(), results.values(), strict=True):
                if kind == "webnn":
                    assert result.tobytes() == array.tobytes(), f"{kind}: {name} differs"
                    continue
                rounding = float(np.max(np.abs(jittered[name] - exact[name].astype(np.float64)), initial=0.0))
                if not close(result, array, 64 * rounding):
                    # ONNX composes some operators of others, which round elsewhere, but not in float64. A file without
                    # inputs has no graph: the host computes it.
                    if model.graphs:
                        wider = in_float64(model.graph.source)
                        found = found or interpret(wider, {n: given[n] for n in wider.inputs})
                        assert close(found[name], exact[name], 64 * rounding), f"{kind}: {name} is {result}, not {array}"
                    tally["onnx files that round elsewhere"] += 1
        tally[f"{kind} files"] += 1
    graph.destroy()


@pytest.mark.campaign
def test_random_graphs_are_differentiated_trained_and_saved(
    tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    reference = wn.ml.create_context(backend="reference")
    tally, failures, end, number, before = Counter[str](), list[str](), time.monotonic() + SECONDS, 0, 0
    contexts: dict[str, wn.MLContext] = {}
    np.seterr(all="ignore")
    while time.monotonic() < end:
        number += 1
        name = f"training:{SEED}:{number}"
        drawn = differentiable_graph(name)
        if drawn is None:
            continue
        if tally["graphs"] % RENEWED == 0:
            for context in contexts.values():
                context.destroy()
            contexts = {profile: profile_context(profile) for profile in PROFILES}
            gc.collect()
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
        if tally["graphs"] == 2 * RENEWED:
            before = resident_bytes()
    grown = resident_bytes() - before if before else 0
    for each, count in tally.items():
        record_property(each, count)
    print(f"{dict(tally)}, {len(failures)} failures, {grown >> 20} MiB more memory, seed {SEED}", flush=True)
    assert not failures, "\n".join(failures)
    assert tally["graphs"] >= 20
    assert tally["steps"] > tally["steps that float32 cannot tell"]
    assert tally["gradients that differences cannot tell"] < tally["graphs"] / 10
    assert tally["onnx files that round elsewhere"] < tally["onnx files"] / 10
    assert grown < GROWTH
