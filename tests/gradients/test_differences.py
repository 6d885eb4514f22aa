"""The gradient of every call of a differentiable operator agrees with central differences of the float64 reference."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import webnn_wgpu as wn
from tests.gradients.catalog import STRAIGHT_THROUGH, gradient_calls, operands_of, padded
from tests.random_graphs.check import check_graph
from tests.rotation import part_of
from webnn_wgpu.api.internals import graph_of
from webnn_wgpu.core.data_types import FLOATS
from webnn_wgpu.ops import OPS
from webnn_wgpu.ops.interfaces.family import Family
from webnn_wgpu.testing import check_gradients

if TYPE_CHECKING:
    from tests.kernels.operators import Call
    from webnn_wgpu.api.builder import MLGraphBuilder
    from webnn_wgpu.api.operand import MLOperand
    from webnn_wgpu.runtime.device import Device

CALLS: dict[str, list[Call]] = {}
for found in gradient_calls():
    CALLS.setdefault(found.name, []).append(found)

FEW = 12
"""Operators with more calls, of other options each, have a sixth of them on devices, which the commit picks."""


@pytest.mark.parametrize("name", CALLS)
def test_gradients_agree_with_central_differences(name: str) -> None:
    # The references of recurrent networks round activations to float32.
    recurrent = OPS[name].family is Family.RECURRENT
    precision = {"tolerance": 1e-3, "step": 1e-3} if recurrent else {"tolerance": 1e-5, "step": 1e-6}
    for call in map(padded, CALLS[name]):
        arrays = operands_of(call)

        def build(builder: MLGraphBuilder, *given: MLOperand, call: Call = call, arrays: Any = arrays) -> list[MLOperand]:
            operands = iter(given)
            return builder._operator(
                call.name, [None if array is None else next(operands) for array in arrays], call.attrs, call.what
            )

        check_gradients(build, [array for array in arrays if array is not None], together=True, **precision)


@pytest.mark.parametrize("name", CALLS)
def test_gradients_on_a_device_are_those_of_the_reference(
    profile_device: Device, name: str, pytestconfig: pytest.Config
) -> None:
    reference = wn.ml.create_context(backend="reference")
    calls = CALLS[name] if len(CALLS[name]) <= FEW else part_of(pytestconfig, CALLS[name], 6)
    for call in map(padded, calls):
        given = {str(i): array for i, array in enumerate(operands_of(call)) if array is not None}
        # The reference takes what the graph has: float32.
        feeds = {n: array.astype(np.float32) if array.dtype.kind == "f" else array for n, array in given.items()}
        builder = wn.MLGraphBuilder(reference)
        operands: dict[str, MLOperand] = {n: builder.input(n, array.shape, str(array.dtype)) for n, array in feeds.items()}
        made = builder._operator(call.name, [operands.get(str(i)) for i in range(len(call.inputs))], call.attrs, call.what)
        results = [operand for operand in made if operand.data_type in FLOATS]
        sources = [operand for operand in operands.values() if operand.data_type in FLOATS]
        found = builder.gradients(results, sources)
        graph = graph_of(builder, {f"gradient {i}": builder.identity(operand) for i, operand in enumerate(found)})
        check_graph(profile_device, graph, {n: array for n, array in feeds.items() if n in graph.inputs})


def test_every_differentiable_operator_has_calls() -> None:
    assert {*CALLS, *STRAIGHT_THROUGH} == {op.name for op in OPS.values() if op.gradient is not None}


def test_a_wrong_gradient_is_found() -> None:
    def build(builder: MLGraphBuilder, x: MLOperand) -> MLOperand:
        # Roundings to bfloat16 are steps, which their gradient passes through.
        return builder.ext.round_bfloat16(x)

    with pytest.raises(
        AssertionError, match=r"^the derivative by operand 0 must agree .* differences; got .* 0 by differences$"
    ):
        check_gradients(build, [np.float32([1.1, 2.3])])
