"""Products of transposed factors: which transposes go on which devices, and that results stay the same."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pytest

from tests.ops.rows import as_hardware
from tests.support import Sketch, run_graph
from tests.unit.plans import caps_of
from tests.unit.rewrites import normal
from webnn_wgpu.costs import Target
from webnn_wgpu.passes import run_passes
from webnn_wgpu.plan import make_plan

if TYPE_CHECKING:
    from collections.abc import Sequence

    from webnn_wgpu.ir.graph import Graph
    from webnn_wgpu.runtime.device import Device


def product(permutation: Sequence[int], *, left: bool = False, right: bool = False) -> tuple[Sketch, Graph]:
    """Return a product of several matrices, some of whose factors are permuted, and an activation of it."""
    s = Sketch()
    a, b = (s.input(normal(24, 24, 24)), s.input(normal(24, 24, 24)))
    a = s.apply("transpose", a, permutation=permutation) if left else a
    b = s.apply("transpose", b, permutation=permutation) if right else b
    return s, s.graph(y=s.apply("relu", s.apply("matmul", a, b)))


@pytest.mark.parametrize(("left", "right"), [(True, False), (False, True), (True, True)])
def test_products_read_transposed_factors(device: Device, left: bool, right: bool) -> None:
    s, graph = product((0, 2, 1), left=left, right=right)
    target = Target.of(as_hardware(device.caps))
    after = run_passes(graph, target)[0]
    assert [d.spec.template for d in make_plan(after, target).dispatches] == ["matmul.tiled"]
    before = run_graph(device, graph, s.feeds)
    np.testing.assert_allclose(run_graph(device, after, s.feeds)["y"], before["y"], rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(("record", "permutation"), [("lavapipe", (1, 0, 2)), ("nvidia", (1, 0, 2)), ("nvidia", (1, 2, 0))])
def test_other_transposes_stay(record: str, permutation: Sequence[int]) -> None:
    _, graph = product(permutation, right=True)
    after = run_passes(graph, Target.of(caps_of(record)))[0]
    assert [node.op for node in after.nodes if node.op != "reshape"] == ["transpose", "fused"]


def test_transposes_stay_on_software_adapters_without_subgroups() -> None:
    _, graph = product((0, 2, 1), right=True)
    caps = caps_of("lavapipe")
    without = replace(caps, subgroup_size=0, features=caps.features - {"subgroup"})
    after = run_passes(graph, Target.of(without))[0]
    assert [node.op for node in after.nodes] == ["transpose", "fused"]
