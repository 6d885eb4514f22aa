"""Stacks of recurrent layers: each result is that of the reference and, on devices, that of one layer after the other."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from tests.ops.layers import Network, assert_close
from tests.ops.movers import refusal
from tests.ops.recurrent import GATES, STATES, VECTORS
from tests.support import check_bounded, check_op, open_profile, run_graph, type_of
from webnn_wgpu.core.data_types import FLOATS
from webnn_wgpu.ir.types import TensorType
from webnn_wgpu.ops import OPS
from webnn_wgpu.passes import run_passes
from webnn_wgpu.reference import interpret

if TYPE_CHECKING:
    from webnn_wgpu.ir.graph import Array

KINDS = ("lstm", "gru")


@dataclass(frozen=True)
class Sizes:
    """Sizes of a stack."""

    layers: int = 2
    steps: int = 3
    batch: int = 1
    inputs: int = 5
    hidden: int = 8


def operands(kind: str, sizes: Sizes, data_type: str = "float32", *, peepholes: bool = False) -> list[Any]:
    """Return random operands of a stack."""
    rng = np.random.default_rng(0)
    columns, hidden, layers = GATES[kind] * sizes.hidden, sizes.hidden, sizes.layers

    def array(*shape: int, scale: float = 1.0) -> Array:
        return (rng.standard_normal(shape) * scale).astype(data_type)

    vectors = array(layers, columns + hidden * (1 if kind == "gru" else 3 if peepholes else 0)).astype(np.float32)
    return [
        array(sizes.steps, sizes.batch, sizes.inputs),
        array(1, columns, sizes.inputs, scale=sizes.inputs**-0.5),
        array(2 * layers - 1, columns, hidden, scale=hidden**-0.5),
        vectors,
        array(1, columns).astype(np.float32),
        *(array(layers, sizes.batch, hidden) for _ in STATES[kind]),
    ]


def attributes(sizes: Sizes, **options: Any) -> dict[str, Any]:
    return {"steps": sizes.steps, "hidden_size": sizes.hidden, "return_sequence": True} | options


@pytest.mark.parametrize("data_type", FLOATS)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("profile", ["hardware", "default-limits"])
def test_results(profile: str, kind: str, data_type: str) -> None:
    device = open_profile(profile)
    for sizes, direction, peepholes in (
        (Sizes(), "forward", True),
        (Sizes(layers=3, steps=4, batch=2), "backward", False),
        (Sizes(layers=4, steps=2, batch=5, hidden=7), "forward", False),
        (Sizes(layers=2, steps=1, batch=3, hidden=44, inputs=1), "backward", True),
    ):
        given = operands(kind, sizes, data_type, peepholes=peepholes)
        check_bounded(device, f"{kind}Stack", given, attributes(sizes, direction=direction))


@pytest.mark.parametrize("kind", KINDS)
def test_no_sequence(kind: str) -> None:
    sizes = Sizes(layers=3)
    found = check_bounded(
        open_profile("hardware"), f"{kind}Stack", operands(kind, sizes), attributes(sizes, return_sequence=False)
    )
    assert [array.shape for array in found] == [(3, 1, 8)] * len(STATES[kind])


@pytest.mark.parametrize("kind", KINDS)
def test_a_row_with_nan_leaves_the_others(kind: str) -> None:
    sizes = Sizes(batch=3)
    given = operands(kind, sizes)
    given[0][1, 1, 2] = np.nan
    *_, sequence = check_op(open_profile("hardware"), f"{kind}Stack", given, attributes(sizes), atol=1e-5)
    assert np.isnan(sequence.sum(axis=3)[:, 0]).tolist() == [[False] * 3, [False, True, False], [False, True, False]]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("what", ["stackedWeights", "vectors", "bias", "initialHiddenState", "input"])
def test_refusals(kind: str, what: str) -> None:
    sizes = Sizes()
    types: list[TensorType | None] = [type_of(array) for array in operands(kind, sizes)]
    at = [operand.name for operand in OPS[f"{kind}Stack"].operands].index(what)
    wrong = types[at]
    assert wrong is not None
    types[at] = TensorType(wrong.data_type, (wrong.shape[0] + 1, *wrong.shape[1:]))
    expected = "input.shape[0] must equal steps" if what == "input" else "has the wrong shape"
    assert expected in str(refusal(f"{kind}Stack", types, attributes(sizes)))


@pytest.mark.parametrize("count", [2, 3])
@pytest.mark.parametrize("direction", ["forward", "backward"])
@pytest.mark.parametrize("kind", KINDS)
def test_layers_compute_the_same_in_a_stack_and_alone(kind: str, direction: str, count: int) -> None:
    device = open_profile("hardware")
    for batch, all_outputs, data_type in ((1, False, "float32"), (2, True, "float32"), (2, True, "float16")):
        hidden = {"float32": 180, "float16": 256}[data_type]
        network = Network(kind, steps=20, batch=batch, hidden=hidden, data_type=data_type)
        starts = [network.s.input(network.array(1, batch, network.hidden)) for _ in STATES[kind]] if all_outputs else []
        for layer in range(count):
            options: dict[str, Any] = dict(zip(STATES[kind], starts, strict=False)) if layer != 1 else {}
            network.layer(given=VECTORS[kind], direction=direction, **options)
        lasts = [value for results in network.layers for value in results[:-1]] if all_outputs else []
        graph = network.graph(network.value, *lasts)
        optimized, _ = run_passes(graph, device.target)
        assert f"{kind}Stack" in [node.op for node in optimized.nodes]
        found = run_graph(device, graph, network.s.feeds)
        alone = run_graph(device, graph, network.s.feeds, disabled_passes=["stack_recurrent_layers"])
        assert_close(found, alone)
        assert_close(found, interpret(graph, network.s.feeds))
