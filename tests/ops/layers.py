"""Helpers of the tests of stacks: networks of recurrent layers, drawn layer by layer, and the comparison of their results."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from tests.ops.recurrent import GATES, STATES
from tests.support import Sketch
from webnn_wgpu.ops import OPS

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from webnn_wgpu.ir.graph import Array, Graph

UNITS = {"lstm": 160, "gru": 176}
"""Units from which on a layer alone has a dispatch per step."""


@dataclass
class Network:
    """Layers while they are drawn.

    Attributes:
        kind: lstm or gru.
        steps: the number of time steps.
        batch: the number of batch rows.
        hidden: the number of units. 0 is as few as make a stack worthwhile.
        data_type: the data type of all.
        constant: whether weights and vectors are constants.
        s: the graph.
        layers: the results of each layer.
    """

    kind: str = "lstm"
    steps: int = 3
    batch: int = 1
    hidden: int = 0
    data_type: str = "float32"
    constant: bool = True
    s: Sketch = field(default_factory=Sketch)
    layers: list[tuple[int, ...]] = field(default_factory=list[tuple[int, ...]])

    def __post_init__(self) -> None:
        """Choose the units, and start with an input."""
        self.hidden = self.hidden or UNITS[self.kind]
        self.rng = np.random.default_rng(0)
        self.value = self.s.input(self.array(self.steps, self.batch, 4))

    def array(self, *shape: int, scale: float = 1.0) -> Array:
        """Return random elements."""
        return (self.rng.standard_normal(shape) * scale).astype(self.data_type)

    def layer(self, kind: str = "", *, given: Collection[str] = ("bias", "recurrentBias"), **options: Any) -> Network:
        """Add a layer. `given` names its operands besides the weights; options named like a state are values."""
        kind = kind or self.kind
        directions = 2 if options.get("direction") == "both" else 1
        columns, inputs = GATES[kind] * self.hidden, self.s.type(self.value).shape[2]
        shapes = {
            "weight": (directions, columns, inputs),
            "recurrentWeight": (directions, columns, self.hidden),
            "peepholeWeight": (directions, 3 * self.hidden),
            **dict.fromkeys(("bias", "recurrentBias"), (directions, columns)),
            **dict.fromkeys(STATES[kind], (directions, self.batch, self.hidden)),
        }
        states = {name: options.pop(name) for name in STATES[kind] if name in options}
        make = self.s.constant if self.constant else self.s.input
        made: list[int | None] = [self.value]
        for operand in OPS[kind].operands[1:]:
            wanted = operand.required or operand.name in given
            # Sums stay about as large as one input, however many units there are.
            scale = shapes[operand.name][-1] ** -0.5 if operand.required else 1.0
            drawn = make(self.array(*shapes[operand.name], scale=scale)) if wanted else None
            made.append(states.get(operand.name, drawn))
        options = {"return_sequence": True, "direction": "forward"} | options
        self.layers.append(self.s.apply_all(kind, made, steps=self.steps, hidden_size=self.hidden, **options))
        if options["return_sequence"]:
            shape = [self.steps, self.batch, directions * self.hidden]
            self.value = self.s.apply("reshape", self.layers[-1][-1], new_shape=shape)
        return self

    def graph(self, *outputs: int) -> Graph:
        """Return the graph, with the last sequence as its output unless others are given."""
        return self.s.graph(*(outputs or (self.value,)))


def assert_close(found: Mapping[str, Array], wanted: Mapping[str, Array]) -> None:
    """Compare outputs by name, each within some roundings of its largest element."""
    assert list(found) == list(wanted)
    for name, array in wanted.items():
        assert (found[name].dtype, found[name].shape) == (array.dtype, array.shape)
        off = np.abs(found[name].astype(np.float64) - array.astype(np.float64)).max()
        assert off <= (2.0**-9 if array.dtype == np.float16 else 2.0**-19) * max(1, np.abs(array.astype(np.float64)).max())
