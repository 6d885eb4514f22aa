"""Outputs with the memory of an input: all operators read the old elements, whatever the order and the operators are."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import webnn_wgpu as wn

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    Operands = Mapping[str, wn.MLOperand]

SHAPE = [4, 64]


def in_order(b: wn.MLGraphBuilder, w: wn.MLOperand, m: wn.MLOperand) -> Operands:
    """The update of a weight and its moment, after the weight was read."""
    moment = b.add(b.mul(m, b.constant("float32", 0.5)), w)
    return {"y": b.reduce_sum(b.matmul(w, b.transpose(w)), axes=[1]), "m+": moment, "w+": b.sub(w, moment)}


def read_later(b: wn.MLGraphBuilder, w: wn.MLOperand, m: wn.MLOperand) -> Operands:
    """Updates before operators that read the old elements, one of them through a part of the input."""
    updated = {"w+": b.sub(w, m), "m+": b.add(m, m)}
    return {**updated, "y": b.add(b.reduce_sum(b.softmax(w, 1), axes=[1]), b.reduce_max(b.slice(m, [1, 0], [1, 64])))}


def exchanged(b: wn.MLGraphBuilder, w: wn.MLOperand, m: wn.MLOperand) -> Operands:
    """Two tensors that exchange their elements."""
    return {"w+": b.identity(m), "m+": b.identity(w), "y": b.reduce_sum(b.mul(w, m), axes=[1])}


def moved(b: wn.MLGraphBuilder, w: wn.MLOperand, m: wn.MLOperand) -> Operands:
    """Results of operators that read other elements than they store."""
    return {"w+": b.reverse(w, axes=[1]), "m+": b.sub(b.softmax(m, 1), b.reverse(m)), "y": b.reduce_mean(w, axes=[1])}


@pytest.mark.parametrize("backend", ["device", "reference"])
@pytest.mark.parametrize(("build", "copies"), [(in_order, 0), (read_later, 2), (exchanged, 4), (moved, 1)])
def test_an_alias_is_written_after_its_input_was_read(
    context: wn.MLContext, build: Callable[..., Operands], copies: int, backend: str
) -> None:
    on = context if backend == "device" else wn.ml.create_context(backend="reference")
    rng = np.random.default_rng(3)
    feeds = {name: rng.standard_normal(SHAPE).astype(np.float32) for name in ("w", "m")}
    expected = computed(wn.ml.create_context(backend="reference"), build, feeds)
    b, inputs = builder(on)
    graph = b.build(build(b, *inputs), aliases={"w+": "w", "m+": "m"})
    if graph.plan is not None:
        assert sum(dispatch.label.startswith("output ") for dispatch in graph.plan.dispatches) == copies
    tensors = {name: on.create_host_tensor(SHAPE, "float32") for name in feeds}
    y = on.create_tensor([4], "float32", readable=True)
    for name, tensor in tensors.items():
        on.write_tensor(tensor, feeds[name])
    on.dispatch(graph, tensors, {"w+": tensors["w"], "m+": tensors["m"], "y": y})
    np.testing.assert_allclose(on.read_tensor(y), expected["y"], rtol=1e-4)
    for name, tensor in tensors.items():
        np.testing.assert_allclose(on.read_tensor(tensor), expected[f"{name}+"], rtol=1e-5, atol=1e-6)


def builder(context: wn.MLContext) -> tuple[wn.MLGraphBuilder, list[wn.MLOperand]]:
    b = wn.MLGraphBuilder(context)
    return b, [b.input(name, {"dataType": "float32", "shape": SHAPE}) for name in ("w", "m")]


def computed(context: wn.MLContext, build: Callable[..., Operands], feeds: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the results of a graph without aliases."""
    b, inputs = builder(context)
    return context.compute(b.build(build(b, *inputs)), feeds)
