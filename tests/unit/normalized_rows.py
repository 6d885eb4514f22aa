"""Products whose rows are normalized, as graphs, and their plans."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tests.support import Sketch, random_array
from tests.unit.plans import caps_of
from webnn_wgpu.costs import Target
from webnn_wgpu.passes import run_passes
from webnn_wgpu.plan import make_plan

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from webnn_wgpu.ir.graph import Array, Graph
    from webnn_wgpu.plan import ExecutionPlan

GPU = Target.of(caps_of("amd"))


class Rows:
    """A graph of a product whose rows are normalized.

    Attributes:
        sketch: the graph.
        result: the product with the operators behind it.
        normalized: its normalized rows.
    """

    def __init__(
        self,
        shape: Sequence[int] = (37, 72),
        K: int = 203,
        *,
        data_type: str = "float32",
        op: str = "layerNormalization",
        parameters: Sequence[str] = ("scale", "bias"),
        axes: Sequence[int] | None = None,
        chain: Sequence[str] = ("bias", "residual"),
        late_scale: bool = False,
    ) -> None:
        rng = np.random.default_rng(5)
        self.sketch = s = Sketch()

        def array(*dims: int) -> Array:
            return random_array(rng, data_type, dims, 1)

        x, weights = s.input(array(*shape[:-1], K)), s.constant(array(K, shape[-1]))
        y = s.apply("matmul", x, weights)
        for each in chain:
            if each == "residual":
                y = s.apply("add", y, s.input(array(*shape)))
            elif each == "bias":
                y = s.apply("add", s.constant(array(shape[-1])), y)
            else:
                y = s.apply(each, y)
        self.result = y
        of_items = {name: s.constant(array(*(shape[a] for a in axes or (len(shape) - 1,)))) for name in parameters}
        if late_scale:
            of_items["scale"] = s.apply("reduceSum", y, axes=tuple(range(len(shape) - 1)))
        operands = [of_items.get(name) for name in ("scale", "bias")[: 2 if op == "layerNormalization" else 1]]
        self.normalized = s.apply(op, y, *operands, axes=tuple(axes or (len(shape) - 1,)))

    @property
    def alone(self) -> Graph:
        """The graph whose output is the normalized rows alone."""
        return self.sketch.graph(self.normalized)

    @property
    def both(self) -> Graph:
        """The graph that also has the rows as output."""
        return self.sketch.graph(self.result, self.normalized)


def planned(
    graph: Graph, target: Target, disabled: Sequence[str] = (), forced: Mapping[str, str] | None = None
) -> ExecutionPlan:
    return make_plan(run_passes(graph, target, disabled)[0], target, forced)


def templates(plan: ExecutionPlan) -> list[str]:
    return [dispatch.spec.template for dispatch in plan.dispatches]
