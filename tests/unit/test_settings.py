from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from tests.support import Sketch
from tests.targets import DEFAULT_TARGET
from webnn_wgpu.core.caps import Caps
from webnn_wgpu.core.errors import MLTypeError
from webnn_wgpu.core.settings import TargetKind, cache_enabled, dump_folder, forced_target, forced_variants, recorder_name
from webnn_wgpu.costs import Target
from webnn_wgpu.ops import OPS
from webnn_wgpu.ops._def import Lowering
from webnn_wgpu.plan import make_plan
from webnn_wgpu.plan.forced import check_forced, forceable


@pytest.mark.parametrize(("value", "enabled"), [(None, True), ("on", True), ("off", False), ("OFF", False), ("0", False)])
def test_cache(monkeypatch: pytest.MonkeyPatch, value: str | None, enabled: bool) -> None:
    monkeypatch.delenv("WEBNN_WGPU_CACHE", raising=False)
    if value is not None:
        monkeypatch.setenv("WEBNN_WGPU_CACHE", value)
    assert cache_enabled() is enabled


def test_recorder(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("WEBNN_WGPU_RECORDER", raising=False)
    assert not recorder_name()
    monkeypatch.setenv("WEBNN_WGPU_RECORDER", "plain")
    assert recorder_name() == "plain"


def test_dump(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("WEBNN_WGPU_DUMP", raising=False)
    assert dump_folder() is None
    monkeypatch.setenv("WEBNN_WGPU_DUMP", "some/folder")
    assert dump_folder() == Path("some/folder")


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("", {}),
        ("matmul=tiled", {"matmul": "tiled"}),
        (" matmul = tiled , softmax=subgroup,", {"matmul": "tiled", "softmax": "subgroup"}),
    ],
)
def test_forced_variants(monkeypatch: pytest.MonkeyPatch, value: str, expected: dict[str, str]) -> None:
    monkeypatch.setenv("WEBNN_WGPU_FORCE", value)
    assert forced_variants() == expected


@pytest.mark.parametrize("value", ["matmul", "=tiled", "matmul=", "matmul=tiled,softmax"])
def test_malformed_forced_variants(monkeypatch: pytest.MonkeyPatch, value: str) -> None:
    monkeypatch.setenv("WEBNN_WGPU_FORCE", value)
    with pytest.raises(MLTypeError) as raised:
        forced_variants()
    item = value.rpartition(",")[2]
    assert str(raised.value) == (f"WEBNN_WGPU_FORCE must hold items operator=variant; got {item!r}; allowed: matmul=tiled")


def test_forced_target(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("WEBNN_WGPU_TARGET", raising=False)
    assert forced_target() is None
    for kind in ("hardware", "software"):
        monkeypatch.setenv("WEBNN_WGPU_TARGET", f" {kind}")
        assert forced_target() == kind
    monkeypatch.setenv("WEBNN_WGPU_TARGET", "Hardware")
    with pytest.raises(MLTypeError) as raised:
        forced_target()
    assert str(raised.value) == "WEBNN_WGPU_TARGET must name a kind of device; got 'Hardware'; allowed: hardware, software"


@pytest.mark.parametrize("adapter_type", ["CPU", "DiscreteGPU"])
def test_a_target_has_the_costs_of_its_kind_or_of_the_forced_one(adapter_type: str) -> None:
    caps, other = Caps(adapter_type=adapter_type), Caps(adapter_type={"CPU": "DiscreteGPU"}.get(adapter_type, "CPU"))
    own, others = Target.of(caps), Target.of(other)
    assert own.costs != others.costs
    kinds: dict[str, TargetKind] = {"CPU": "software", "DiscreteGPU": "hardware"}
    assert Target.of(caps, kinds[caps.adapter_type]) == replace(own, forced=True)
    assert Target.of(caps, kinds[other.adapter_type]) == Target(caps, others.costs, forced=True)


def test_forced_variants_must_exist() -> None:
    with pytest.raises(MLTypeError) as raised:
        check_forced({"matmul": "tilde"})
    assert str(raised.value) == (
        "the forced kernel variant does not exist; got matmul=tilde; "
        "allowed: matmul=gemv, matmul=plain, matmul=subgroup, matmul=tiled"
    )


@pytest.mark.parametrize("name", ["matmull", "add", "reshape", "fused"])
def test_forced_operators_must_have_variants(name: str) -> None:
    with pytest.raises(MLTypeError) as raised:
        check_forced({name: "tiled"})
    assert str(raised.value) == (
        f"a kernel variant is forced for an operator that has none; got {name}=tiled; "
        f"allowed: {', '.join(forceable())}. WEBNN_WGPU_FORCE names operators as the specification does."
    )


def test_a_plan_refuses_forced_variants_that_do_not_exist() -> None:
    s = Sketch()
    graph = s.graph(s.apply("neg", s.input(np.zeros(4, np.float32))))
    with pytest.raises(MLTypeError, match="got matmul=magic"):
        make_plan(graph, DEFAULT_TARGET, {"matmul": "magic"})


def test_a_variant_is_forced_by_operator_before_template() -> None:
    s = Sketch()
    x = s.input(np.ones((4, 4), np.float32))
    s.apply("gemm", x, x)

    def forced(**names: str) -> str | None:
        return Lowering(node=s.nodes[0], graph=s.graph(1), target=DEFAULT_TARGET, ops=OPS, forced=names).forced_variant

    assert forced() is None
    assert forced(softmax="plain") is None
    assert forced(matmul="tiled") == "tiled"
    assert forced(matmul="tiled", gemm="plain") == "plain"


def test_every_template_with_a_variant_says_which_there_are() -> None:
    for template in {t for op in OPS.values() for t in op.templates}:
        assert ("variant" in template.params) == bool(template.variants)
    assert forceable()["softmax"] == forceable()["reduceSum"] == forceable()["reduce"] == ("plain", "subgroup", "workgroup")
