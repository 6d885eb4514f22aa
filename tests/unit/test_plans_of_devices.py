"""Whole small models planned for the capability records of several devices, without any device."""

from __future__ import annotations

import json
import pickle
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pytest

from tests.support import Sketch, random_array
from tests.unit.plans import DEVICES, caps_of, check_plan
from webnn_wgpu.costs import Target
from webnn_wgpu.ir.verify import verify
from webnn_wgpu.passes import run_passes
from webnn_wgpu.plan import ExecutionPlan, make_plan, planner

if TYPE_CHECKING:
    from collections.abc import Sequence

    from webnn_wgpu.core.caps import Caps
    from webnn_wgpu.ir.graph import Graph, Node
    from webnn_wgpu.kernels.spec import KernelCall

RNG = np.random.default_rng(0)


def weight(s: Sketch, *shape: int, data_type: str = "float32") -> int:
    return s.constant(random_array(RNG, data_type, shape))


def perceptron(data_type: str = "float32") -> Graph:
    s = Sketch()
    x = s.input(np.zeros((32, 64), data_type))
    for width, inner in ((64, 256), (256, 16)):
        product = s.apply("matmul", x, weight(s, width, inner, data_type=data_type), label=f"dense{inner}")
        x = s.apply("relu", s.apply("add", product, weight(s, inner, data_type=data_type)))
    return s.graph(scores=s.apply("softmax", x, axis=1))


def encoder() -> Graph:
    """One layer of a transformer encoder over 32 tokens, mean-pooled and normalized: what a sentence encoder is made of."""
    s = Sketch()
    tokens, width, heads = 32, 48, 4
    ids, mask = s.input(np.zeros((1, tokens), np.int32)), s.input(np.ones((1, tokens), np.float32))
    x = s.apply("add", s.apply("gather", weight(s, 100, width), ids), weight(s, tokens, width))
    norm = [weight(s, width), weight(s, width)]
    x = s.apply("layerNormalization", x, *norm, axes=[2])

    def dense(value: int, inner: int, outer: int) -> int:
        return s.apply("add", s.apply("matmul", value, weight(s, inner, outer)), weight(s, outer))

    def split(value: int, order: list[int]) -> int:
        parts = s.apply("reshape", value, new_shape=[1, tokens, heads, width // heads])
        return s.apply("transpose", parts, permutation=order)

    q, k, v = (split(dense(x, width, width), order) for order in ([0, 2, 1, 3], [0, 2, 3, 1], [0, 2, 1, 3]))
    bias = s.apply("mul", s.apply("sub", mask, s.constant(np.ones(1, np.float32))), s.constant(np.full(1, 1e4, np.float32)))
    scores = s.apply("div", s.apply("matmul", q, k), s.constant(np.array(3.4, np.float32)))
    scores = s.apply("add", scores, s.apply("reshape", bias, new_shape=[1, 1, 1, tokens]))
    mixed = s.apply("matmul", s.apply("softmax", scores, axis=3), v)
    joined = s.apply("reshape", s.apply("transpose", mixed, permutation=[0, 2, 1, 3]), new_shape=[1, tokens, width])
    x = s.apply("layerNormalization", s.apply("add", x, dense(joined, width, width)), *norm, axes=[2])
    hidden = s.apply("gelu", dense(x, width, 4 * width))
    x = s.apply("layerNormalization", s.apply("add", x, dense(hidden, 4 * width, width)), *norm, axes=[2])
    total = s.apply("reduceSum", x, axes=[1])
    length = s.apply("reduceL2", total, axes=[1], keep_dimensions=True)
    return s.graph(embedding=s.apply("div", total, length))


def mixture() -> Graph:
    """Integers, comparisons, selection, movement; several outputs, one of them an input."""
    s = Sketch()
    x = s.input(np.zeros((3, 5, 7), np.float32))
    bytes_ = s.input(np.zeros((5, 7), np.uint8))
    mask = s.apply("logicalAnd", s.apply("greater", x, s.constant(np.zeros(1, np.float32))), bytes_)
    chosen = s.apply("where", mask, x, s.apply("neg", x))
    turned = s.apply("transpose", s.apply("pad", chosen, beginning_padding=[0, 1, 0], ending_padding=[1, 0, 2]))
    parts = s.apply_all("split", [turned], splits=3)
    whole = s.apply("concat", parts[2], parts[0], axis=1)
    counts = s.apply("reduceSum", s.apply("cast", mask, data_type="int32"), axes=[0, 2])
    best = s.apply("argMax", chosen, axis=2)
    return s.graph(whole=whole, counts=counts, best=best, mask=mask, same=x)


MODELS = {"perceptron": perceptron, "encoder": encoder, "mixture": mixture}


def planned(graph: Graph, device: str) -> ExecutionPlan:
    optimized, _ = run_passes(graph, Target.of(caps_of(device)))
    return make_plan(verify(optimized), Target.of(caps_of(device)))


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("model", MODELS)
def test_plans_are_sound(model: str, device: str) -> None:
    graph = MODELS[model]()
    plan = planned(graph, device)
    check_plan(plan, caps_of(device), rendered=True)
    assert plan.outputs == {name: graph.type(value) for name, value in graph.outputs.items()}
    # Every operator that is left is accounted for.
    optimized, _ = run_passes(graph, Target.of(caps_of(device)))
    computed = {o for d in plan.dispatches for o in d.origins}
    moved = [node for node in optimized.nodes if node.op not in ("reshape", "identity") and not in_place(plan, node)]
    assert {o for node in moved for o in node.origins} <= computed


def in_place(plan: ExecutionPlan, node: Node) -> bool:
    """Whether what a node cuts its operand into lies where that does."""
    lie_in = {(place.kind, place.key) for v in (node.operands[0], *node.outputs) if (place := plan.places.get(v))}
    return node.op in ("split", "slice") and len(lie_in) == 1


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("model", MODELS)
def test_calls_and_kernels_are_plain_data(model: str, device: str, monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[KernelCall] = []

    def noted(given: Sequence[KernelCall], caps: Caps) -> list[KernelCall]:
        calls.extend(given)
        return share_kernels(given, caps)

    share_kernels = planner.share_kernels
    monkeypatch.setattr(planner, "share_kernels", noted)
    plan = planned(MODELS[model](), device)
    assert calls
    for each in (*calls, *((d.spec, d.bindings) for d in plan.dispatches), *plan.constants):
        assert pickle.loads(pickle.dumps(each)) == each  # functions would be refused


@pytest.mark.parametrize("device", DEVICES)
def test_one_model_needs_few_shaders(device: str) -> None:
    plan = planned(encoder(), device)
    assert len({d.spec for d in plan.dispatches}) < len(plan.dispatches)


@pytest.mark.parametrize("device", DEVICES)
def test_a_plan_of_default_limits_runs_on_every_device(device: str) -> None:
    least = caps_of("webgpu-default")
    for model in MODELS.values():
        plan = planned(model(), "webgpu-default")
        caps = replace(caps_of(device), limits=least.limits)
        check_plan(plan, caps)


@pytest.mark.parametrize("device", DEVICES)
def test_summary(device: str) -> None:
    plan = planned(perceptron(), device)
    assert plan.summary() == "2 slots, 0.0 MiB (unshared 0.0 MiB), 3 dispatches, 1 pass"
    assert str(plan).startswith(plan.summary() + "\n   0 dense256: matmul.")
    assert [d.label for d in plan.dispatches] == ["dense256", "dense16", "softmax_6"]
    record = json.loads(plan.to_json())
    assert record["summary"] == plan.summary()
    assert [d["template"].partition(".")[0] for d in record["dispatches"]] == ["matmul", "matmul", "softmax"]
    assert record["constants"][0]["type"] == "float32[64, 256]"


@pytest.mark.parametrize("device", DEVICES)
def test_devices_take_their_own_kernels(device: str) -> None:
    templates = {d.spec.template for d in planned(perceptron(), device).dispatches}
    assert ("matmul.subgroup" in templates) == (device == "lavapipe")


@pytest.mark.parametrize("device", DEVICES)
def test_half_precision_on_every_device(device: str) -> None:
    plan = planned(perceptron("float16"), device)
    check_plan(plan, caps_of(device), rendered=True)
    elements = {b.element for d in plan.dispatches for b in d.spec.bindings if b.access == "write"}
    assert elements == {"float16" if "shader-f16" in caps_of(device).features else "half"}
