"""Stacks of recurrent layers: each result is that of the reference and, on devices, that of one layer after the other."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from tests.ops.movers import refusal, typed
from tests.ops.recurrent import GATES, STATES
from tests.support import Sketch, check_bounded, open_profile, run_graph
from webnn_wgpu.reference import interpret

if TYPE_CHECKING:
    from webnn_wgpu.ir.graph import Array, Graph

KINDS = ("lstm", "gru")
PROFILES = ("hardware", "default-limits")


@dataclass(frozen=True)
class Sizes:
    """Sizes of a stack."""

    layers: int = 2
    steps: int = 3
    batch: int = 1
    inputs: int = 5
    hidden: int = 8


def operands(kind: str, sizes: Sizes, data_type: str = "float32", *, bias: bool = True, peepholes: bool = False) -> list[Any]:
    """Return random operands of a stack."""
    rng = np.random.default_rng(0)
    columns, hidden, layers = GATES[kind] * sizes.hidden, sizes.hidden, sizes.layers

    def array(*shape: int, scale: float = 1.0) -> Array:
        return (rng.standard_normal(shape) * scale).astype(data_type)

    vectors = array(layers, 2 * columns + (3 * hidden if peepholes else 0))
    vectors[0, :columns] = 0
    return [
        array(sizes.steps, sizes.batch, sizes.inputs),
        array(1, columns, sizes.inputs, scale=sizes.inputs**-0.5),
        array(2 * layers - 1, columns, hidden, scale=hidden**-0.5),
        vectors,
        array(1, columns) if bias else None,
        *(array(layers, sizes.batch, hidden) for _ in STATES[kind]),
    ]


def attributes(sizes: Sizes, **options: Any) -> dict[str, Any]:
    return {"steps": sizes.steps, "hidden_size": sizes.hidden, "return_sequence": True} | options


def layer_by_layer(kind: str, sizes: Sizes, given: list[Any], **options: Any) -> tuple[Graph, dict[str, Array]]:
    """Return the graph that has a node for each layer, and what it is fed. The outputs are in the order of those of a stack."""
    s = Sketch()
    x, weight, stacked, vectors, bias, *states = given
    value, columns = s.input(x), GATES[kind] * sizes.hidden
    lasts: list[tuple[int, ...]] = []
    for layer in range(sizes.layers):
        own, recurrent_bias, peepholes = np.split(vectors[layer : layer + 1], [columns, 2 * columns], axis=1)
        matrices = (weight if layer == 0 else stacked[2 * layer - 1 : 2 * layer], stacked[2 * layer : 2 * layer + 1])
        biases = (bias if layer == 0 else own, recurrent_bias)
        after = (peepholes if peepholes.size else None,) if kind == "lstm" else ()
        arrays = (*matrices, *biases, *after, *(state[layer : layer + 1] for state in states))
        made = [None if array is None else s.input(array) for array in arrays]
        *last, value = s.apply_all(kind, [value, *made], steps=sizes.steps, hidden_size=sizes.hidden, **options)
        lasts.append(tuple(last))
        if layer + 1 < sizes.layers:
            value = s.apply("reshape", value, new_shape=[sizes.steps, sizes.batch, sizes.hidden])
    joined = [s.apply("concat", *each, axis=0) if len(each) > 1 else each[0] for each in zip(*lasts, strict=True)]
    return s.graph(*joined, value), s.feeds


@pytest.mark.parametrize("profile", PROFILES)
@pytest.mark.parametrize("data_type", ["float32", "float16"])
@pytest.mark.parametrize("kind", KINDS)
def test_results(profile: str, kind: str, data_type: str) -> None:
    device = open_profile(profile)
    if device.target.costs.recurrent.shares_of_sums(1) == 1:
        pytest.skip("kernels of a stack share sums, which software adapters do not")
    for sizes, direction, peepholes in (
        (Sizes(), "forward", True),
        (Sizes(layers=3, steps=4, batch=2), "backward", False),
        (Sizes(layers=4, steps=2, batch=5, hidden=7), "forward", False),
        (Sizes(layers=2, steps=1, batch=3, hidden=44, inputs=1), "backward", True),
    ):
        given = operands(kind, sizes, data_type, bias=not peepholes, peepholes=peepholes and kind == "lstm")
        check_bounded(device, f"{kind}Stack", given, attributes(sizes, direction=direction))
