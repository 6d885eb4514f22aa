"""What was measured, as data: reading and writing it, and what plans make of it."""

from __future__ import annotations

import json
import logging
from collections.abc import Collection, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.support import op_graph
from tests.unit.plans import caps_of, check_plan
from webnn_wgpu.core import cache
from webnn_wgpu.core.caps import Caps
from webnn_wgpu.costs import Target
from webnn_wgpu.costs.tiles import block_tile
from webnn_wgpu.ir.graph import Graph
from webnn_wgpu.kernels import tuning as tunings
from webnn_wgpu.kernels.tuning import Measured, Tuning, tuning_files, tuning_for
from webnn_wgpu.ops import OPS
from webnn_wgpu.plan import make_plan
from webnn_wgpu.tuner import Trial

CAPS = caps_of("lavapipe")
PLAIN = Measured("plain", {"plain": 0.41, "workgroup": 0.6, "subgroup": 0.75})


def arrays(*shapes: tuple[int, ...]) -> list[np.ndarray[Any, Any]]:
    rng = np.random.default_rng(6)
    return [rng.standard_normal(shape).astype(np.float32) for shape in shapes]


def graph_of(
    name: str, inputs: list[np.ndarray[Any, Any]], attrs: Mapping[str, Any] | None = None, constants: Collection[int] = ()
) -> Graph:
    """Return the graph of an operator without its other operands."""
    absent = [None] * (len(OPS[name].operands) - len(inputs))
    return op_graph(name, [*inputs, *absent], attrs, constants)


GRAPHS: Mapping[str, Graph] = {
    "product": graph_of("matmul", arrays((40, 24), (24, 64)), constants={1}),
    "dynamic product": graph_of("matmul", arrays((2, 40, 24), (2, 24, 66))),
    "gemm": graph_of("gemm", arrays((3, 24), (24, 64), (64,)), constants={1, 2}),
    "convolution": graph_of(
        "conv2d",
        arrays((1, 9, 9, 8), (16, 3, 3, 8)),
        {"input_layout": "nhwc", "filter_layout": "ohwi", "padding": [1, 1, 1, 1]},
        constants={1},
    ),
    "pointwise": graph_of("conv2d", arrays((1, 8, 9, 9), (16, 8, 1, 1)), constants={1}),
    "depthwise": graph_of("conv2d", arrays((1, 8, 9, 9), (8, 1, 3, 3)), {"groups": 8}, constants={1}),
    "transposed convolution": graph_of("convTranspose2d", arrays((1, 8, 9, 9), (8, 16, 2, 2)), {"strides": [2, 2]}),
    "softmax": graph_of("softmax", arrays((30, 100)), {"axis": 1}),
    "reduction": graph_of("reduceSum", arrays((30, 100)), {"axes": [1]}),
    "pool": graph_of("maxPool2d", arrays((1, 4, 12, 12)), {"window_dimensions": [3, 3], "strides": [2, 2]}),
    "attention": graph_of("x.attention", arrays((1, 2, 20, 16), (1, 2, 30, 16), (1, 2, 30, 16))),
    "recurrent": graph_of("gru", arrays((4, 2, 8), (1, 48, 8), (1, 48, 16)), {"steps": 4, "hidden_size": 16}, constants={1, 2}),
}


def tuned(caps: Caps, **choices: Measured) -> Tuning:
    return Tuning.of(caps, choices)


def asked(graph: Graph, caps: Caps, choices: Mapping[str, Measured] | None = None) -> dict[str, tuple[str, ...]]:
    """Return the operators that may be chosen for in a graph, and their variants."""
    known = Tuning.of(caps)
    trial = Trial(known.device, known.templates, choices=choices or {})
    make_plan(graph, Target.of(caps), tuning=trial)
    return trial.asked


@pytest.mark.parametrize("device", ["lavapipe", "webgpu-default", "nvidia", "apple"])
@pytest.mark.parametrize("graph", GRAPHS.values(), ids=GRAPHS)
def test_every_variant_that_is_offered_makes_a_plan_and_is_its_reason(graph: Graph, device: str) -> None:
    caps = caps_of(device)
    for operator, variants in asked(graph, caps).items():
        assert len(set(variants)) == len(variants) >= 1
        for variant in variants:
            plan = make_plan(graph, Target.of(caps), tuning=Tuning.of(caps, {operator: Measured(variant, {variant: 0.5})}))
            check_plan(plan, caps, rendered=True)
            assert any("measured: 0.5 ms" in d.reason for d in plan.dispatches)


def test_tiles_reach_the_kernel() -> None:
    ((operator, variants),) = asked(GRAPHS["product"], CAPS).items()
    assert operator == "matmul: float32[40, 24], float32[24, 64] constant"
    assert {"subgroup:16x2", "tiled:128x128", "tiled:32x64", "gemv", "plain:8"} < set(variants)
    tile = block_tile((32, 64))
    for variant, params in (
        ("subgroup:4x1", {"rows": 4, "quads": 1}),
        ("tiled:32x64", {"tile": tile}),
        ("plain:2", {"rows": 2}),
    ):
        plan = make_plan(
            GRAPHS["product"], Target.of(CAPS), tuning=Tuning.of(CAPS, {operator: Measured(variant, {variant: 1.0})})
        )
        spec = plan.dispatches[-1].spec
        assert spec.variant == variant.partition(":")[0]
        assert {name: spec.param(name) for name in params} == params


def test_a_choice_may_ask_for_another() -> None:
    graph = GRAPHS["pointwise"]
    both = asked(graph, CAPS)
    assert [name.partition(":")[0] for name in both] == ["conv2d", "matmul in conv2d"]
    outer = next(iter(both))
    assert list(asked(graph, CAPS, {outer: Measured("plain:4", {"plain:4": 1.0})})) == [outer]


def test_what_is_forced_wins() -> None:
    graph = GRAPHS["softmax"]
    (operator,) = asked(graph, CAPS)
    known = Tuning.of(CAPS, {operator: PLAIN})
    assert (
        make_plan(graph, Target.of(CAPS), tuning=known).dispatches[0].reason
        == "measured: 0.41 ms, against 0.6 ms for workgroup"
    )
    plan = make_plan(graph, Target.of(CAPS), {"softmax": "workgroup"}, known)
    assert plan.dispatches[0].reason == "forced"
    assert plan.dispatches[0].spec.variant == "workgroup"


def test_another_shape_type_option_or_constant_is_another_operator() -> None:
    names = [
        *asked(GRAPHS["softmax"], CAPS),
        *asked(graph_of("softmax", arrays((30, 101)), {"axis": 1}), CAPS),
        *asked(graph_of("softmax", arrays((30, 100)), {"axis": 0}), CAPS),
        *asked(graph_of("softmax", [np.ones((30, 100), np.float16)], {"axis": 1}), CAPS),
        *asked(graph_of("matmul", arrays((40, 24), (24, 64))), CAPS),
        *asked(GRAPHS["product"], CAPS),
    ]
    assert len(set(names)) == len(names) == 6


@pytest.mark.parametrize("variant", ["magic", "subgroup:3x7", "subgroup", "tiled:64", ""])
def test_a_variant_that_is_none_is_ignored_and_told_once(variant: str, caplog: pytest.LogCaptureFixture) -> None:
    graph = GRAPHS["product"]
    (operator,) = asked(graph, CAPS)
    known = Tuning.of(CAPS, {operator: Measured(variant, {variant: 0.1})})
    tunings._told.clear()
    with caplog.at_level(logging.INFO, "webnn_wgpu"):
        plans = [make_plan(graph, Target.of(CAPS), tuning=known) for _ in range(2)]
    assert plans[0].dispatches == plans[1].dispatches == make_plan(graph, Target.of(CAPS)).dispatches
    assert [r.getMessage() for r in caplog.records] == [f"tuning for {operator} is ignored: there is no variant {variant}"]


def test_a_variant_that_the_device_lacks_is_ignored() -> None:
    caps = caps_of("webgpu-default")
    (operator,) = asked(GRAPHS["product"], caps)
    known = Tuning.of(caps, {operator: Measured("subgroup:16x2", {"subgroup:16x2": 0.1})})
    assert (
        make_plan(GRAPHS["product"], Target.of(caps), tuning=known).dispatches
        == make_plan(GRAPHS["product"], Target.of(caps)).dispatches
    )


def test_json(tmp_path: Path) -> None:
    known = tuned(CAPS, **{"softmax: float32[8]": PLAIN, "other": Measured("gemv", {"gemv": 1.0})})
    assert Tuning.from_json(known.to_json()) == known
    known.save(tmp_path / "a.json")
    assert Tuning.load(tmp_path / "a.json") == known
    assert json.loads((tmp_path / "a.json").read_text())["choices"]["other"] == {
        "chosen": "gemv",
        "milliseconds": {"gemv": 1.0},
    }


def damaged(**changes: Any) -> str:
    record = json.loads(tuned(CAPS, op=PLAIN).to_json()) | changes
    return json.dumps(record)


DAMAGED = {
    "nothing": "",
    "half": damaged()[:100],
    "a list": "[]",
    "another schema": damaged(schema=2),
    "no device": damaged(device=None),
    "a number as adapter": damaged(adapter=5),
    "choices as a list": damaged(choices=[]),
    "a choice as a text": damaged(choices={"op": "plain"}),
    "a choice without times": damaged(choices={"op": {"chosen": "plain"}}),
    "a choice that was not measured": damaged(choices={"op": {"chosen": "plain", "milliseconds": {"tiled": 1}}}),
    "a list as choice": damaged(choices={"op": {"chosen": ["plain"], "milliseconds": {"plain": 1}}}),
    "a text as time": damaged(choices={"op": {"chosen": "plain", "milliseconds": {"plain": "1"}}}),
    "true as time": damaged(choices={"op": {"chosen": "plain", "milliseconds": {"plain": True}}}),
    "a negative time": damaged(choices={"op": {"chosen": "plain", "milliseconds": {"plain": -1}}}),
    "no number as time": damaged(choices={"op": {"chosen": "plain", "milliseconds": {"plain": float("nan")}}}),
    "an endless time": damaged(choices={"op": {"chosen": "plain", "milliseconds": {"plain": float("inf")}}}),
    "a time larger than any float": damaged(choices={"op": {"chosen": "plain", "milliseconds": {"plain": 10**400}}}),
    "a tile larger than any float": damaged(
        choices={"op": {"chosen": f"plain:{10**400}", "milliseconds": {f"plain:{10**400}": 1}}}
    ),
    "a tile of letters": damaged(choices={"op": {"chosen": "plain:a", "milliseconds": {"plain:a": 1}}}),
    "deep": "[" * 100000,
}


@pytest.mark.parametrize("text", DAMAGED.values(), ids=DAMAGED)
def test_a_damaged_file_is_ignored_with_one_warning(text: str, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    file = tmp_path / "a.json"
    file.write_text(text, encoding="utf-8")
    with pytest.raises(ValueError, match=r"."):
        Tuning.load(file)
    with caplog.at_level(logging.INFO, "webnn_wgpu"):
        assert tuning_for(CAPS, [file]) == tuning_for(CAPS, [file]) == Tuning.of(CAPS)
    (record,) = caplog.records
    assert record.levelno == logging.WARNING
    assert record.getMessage().startswith(f"{file} is no tuning and is ignored: ")


def test_bytes_that_are_no_text(tmp_path: Path) -> None:
    file = tmp_path / "a.json"
    file.write_bytes(b"\xff\xfe\x00")
    assert tuning_for(CAPS, [file]) == Tuning.of(CAPS)


def test_the_first_that_knows_an_operator_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cache, "cache_folder", lambda: tmp_path / "user")
    monkeypatch.setattr(tunings, "PACKAGED", tmp_path / "package")
    user, package = tuning_files(CAPS)
    tuned(CAPS, a=Measured("package", {"package": 1.0}), b=PLAIN, c=PLAIN).save(package)
    tuned(CAPS, a=Measured("user", {"user": 1.0}), b=Measured("user", {"user": 1.0})).save(user)
    given = tuned(CAPS, a=Measured("given", {"given": 1.0}))
    found = tuning_for(CAPS, [given, *tuning_files(CAPS)])
    assert {name: measured.chosen for name, measured in found.choices.items()} == {"a": "given", "b": "user", "c": "plain"}
    monkeypatch.setenv("WEBNN_WGPU_CACHE", "off")
    assert tuning_files(CAPS) == [package]
    assert tunings.keep(given, CAPS) is None


def test_what_is_kept_is_added(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("WEBNN_WGPU_CACHE", raising=False)
    monkeypatch.setattr(cache, "cache_folder", lambda: tmp_path)
    tunings.keep(tuned(CAPS, a=PLAIN, b=PLAIN), CAPS)
    file = tunings.keep(tuned(CAPS, b=Measured("tiled", {"tiled": 1.0})), CAPS)
    assert file == tuning_files(CAPS)[0]
    assert {name: m.chosen for name, m in Tuning.load(file).choices.items()} == {"a": "plain", "b": "tiled"}


@pytest.mark.parametrize(
    "other",
    [
        replace(CAPS, driver="another"),
        replace(CAPS, device="another"),
        replace(CAPS, subgroup_size=16),
        replace(CAPS, features=CAPS.features - {"shader-f16"}),
        replace(CAPS, limits=tuple({**dict(CAPS.limits), "max-storage-buffer-binding-size": 1 << 20}.items())),
    ],
)
def test_another_device_is_not_heard(other: Caps, caplog: pytest.LogCaptureFixture) -> None:
    tunings._told.clear()
    known = tuned(other, a=PLAIN)
    with caplog.at_level(logging.INFO, "webnn_wgpu"):
        assert tuning_for(CAPS, [known, known]) == Tuning.of(CAPS)
    assert [r.getMessage() for r in caplog.records] == [
        f"tuning for {known.adapter} is ignored: it was measured with another device or driver"
    ]
    assert known.name != Tuning.of(CAPS).name


def test_other_kernels_are_not_heard(caplog: pytest.LogCaptureFixture) -> None:
    known = replace(tuned(CAPS, a=PLAIN), templates="of yesterday")
    with caplog.at_level(logging.INFO, "webnn_wgpu"):
        assert tuning_for(CAPS, [known]) == Tuning.of(CAPS)
    assert "another version of the kernels" in caplog.text
    assert known.name != Tuning.of(CAPS).name


def test_reasons() -> None:
    assert Measured("a", {"a": 1.0}).reason == "measured: 1 ms"
    assert Measured("a", {"a": 1.0, "b": 2.5, "c": 2.0}).reason == "measured: 1 ms, against 2 ms for c"
    kept = "measured: 2.51 ms, kept: b with 1.6 ms was not clearly faster in a second comparison"
    assert Measured("a", {"a": 2.51, "b": 1.6}).reason == kept


def test_the_key_of_a_device_is_the_same_in_every_process() -> None:
    # Features are a set, which prints in an order of chance.
    assert cache.key_of(CAPS.to_json()) == cache.key_of(Caps.from_json(CAPS.to_json()).to_json())
