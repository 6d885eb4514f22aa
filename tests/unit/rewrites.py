"""What tests of passes share: running one, and comparing what it makes with what it was given."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tests.support import Sketch, assert_same
from webnn_wgpu.ir.verify import verify
from webnn_wgpu.reference import interpret

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from webnn_wgpu.ir.graph import Array, Graph


def normal(*shape: int, seed: int = 0, dtype: Any = np.float32) -> Array:
    return np.random.default_rng(seed).standard_normal(shape).astype(dtype)


def number(s: Sketch, value: float, dtype: Any = np.float32, shape: tuple[int, ...] = ()) -> int:
    return s.constant(np.full(shape, value, dtype))


def check(
    run: Callable[[Graph], Graph],
    graph: Graph,
    feeds: dict[str, Array],
    ops: Sequence[str],
    *,
    tolerance: float | None = 1e-6,
) -> Graph:
    """Run a pass; compare operators, results, types and origins. `tolerance` is relative to the largest; None is exact."""
    after = verify(run(graph))
    assert [n.op for n in after.nodes] == list(ops)
    expected, actual = interpret(graph, feeds), interpret(after, feeds)
    for name, wanted in expected.items():
        if tolerance is None:
            assert_same({name: actual[name]}, {name: wanted})
            continue
        assert (actual[name].dtype, actual[name].shape) == (wanted.dtype, wanted.shape)
        allowed = tolerance * float(np.max(np.abs(wanted)))
        np.testing.assert_allclose(actual[name].astype(np.float64), wanted.astype(np.float64), rtol=0, atol=allowed)
    before = {o for node in graph.nodes for o in node.origins}
    assert before <= {o for item in (*after.nodes, *after.values.values()) for o in item.origins}
    return after


def unchanged(run: Callable[[Graph], Graph], graph: Graph) -> None:
    assert run(graph) is graph
