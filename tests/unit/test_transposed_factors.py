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
from webnn_wgpu.reference import interpret

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


def product_of_heads(groups: int, *, stored: bool) -> tuple[Sketch, Graph]:
    """Return a product of queries and keys by head, in groups of heads, or such a product beside each other again."""
    s = Sketch()
    q, k = (s.input(normal(2, 24, 32)) for _ in range(2))
    a, b = (
        s.apply(
            "reshape",
            s.apply("transpose", s.apply("reshape", x, new_shape=(2, 24, 4, 8)), permutation=(0, 2, 1, 3)),
            new_shape=(2, groups, 4 // groups, 24, 8),
        )
        for x in (q, k)
    )
    scores = s.apply("matmul", a, s.apply("transpose", b, permutation=(0, 1, 2, 4, 3)))
    if not stored:
        return s, s.graph(y=scores)
    result = s.apply("reshape", s.apply("matmul", scores, b), new_shape=(2, 4, 24, 8))
    rows = s.apply("transpose", result, permutation=(0, 2, 1, 3))
    return s, s.graph(y=s.apply("reshape", rows, new_shape=(2, 24, 32)))


@pytest.mark.parametrize("groups", [1, 2, 4])
@pytest.mark.parametrize("stored", [False, True])
def test_products_read_and_write_heads_where_they_are(groups: int, stored: bool) -> None:
    s, graph = product_of_heads(groups, stored=stored)
    target = Target.of(caps_of("lavapipe"))
    after = run_passes(graph, target)[0]
    assert [d.spec.template for d in make_plan(after, target).dispatches] == ["matmul.subgroup"] * (1 + stored)
    for found, wanted in zip(interpret(after, s.feeds).values(), interpret(graph, s.feeds).values(), strict=True):
        np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-5)


def test_heads_are_moved_on_gpus_and_if_they_do_not_fit_a_binding() -> None:
    _, graph = product_of_heads(4, stored=True)
    lavapipe = caps_of("lavapipe")
    small = replace(lavapipe, limits=tuple({**dict(lavapipe.limits), "max-storage-buffer-binding-size": 4096}.items()))
    for caps in (caps_of("nvidia"), small):
        after = run_passes(graph, Target.of(caps))[0]
        assert [node.op for node in after.nodes].count("transpose") == 3
