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
        given = operands(kind, sizes, data_type, peepholes=peepholes)
        check_bounded(device, f"{kind}Stack", given, attributes(sizes, direction=direction))
