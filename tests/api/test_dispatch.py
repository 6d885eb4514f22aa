from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import webnn_wgpu as wn
from tests.api.graphs import F32X3, X, negation, pair, sum_and_difference, tensor


def test_a_chain_without_waiting(anywhere: wn.MLContext) -> None:
    graph = negation(anywhere)
    a, b = pair(anywhere)
    for _ in range(5):
        anywhere.dispatch(graph, {"x": a}, {"y": b})
        anywhere.dispatch(graph, {"x": b}, {"y": a})
    anywhere.dispatch(graph, {"x": a}, {"y": b})
    anywhere.write_tensor(a, [0, 0, 0])
    assert anywhere.read_tensor(b).tolist() == [-1, 2, -3]
    assert anywhere.read_tensor(a).tolist() == [0, 0, 0]


def test_tensors_may_be_neither_readable_nor_writable(anywhere: wn.MLContext) -> None:
    graph = negation(anywhere)
    a, b = pair(anywhere)
    between = anywhere.create_tensor(F32X3)
    anywhere.dispatch(graph, {"x": a}, {"y": between})
    anywhere.dispatch(graph, {"x": between}, {"y": b})
    assert anywhere.read_tensor(b).tolist() == X.tolist()


def test_what_is_destroyed_after_a_dispatch_does_not_disturb_it(anywhere: wn.MLContext) -> None:
    graph = negation(anywhere)
    a, b = pair(anywhere)
    anywhere.dispatch(graph, {"x": a}, {"y": b})
    a.destroy()
    graph.destroy()
    graph.destroy()
    assert anywhere.read_tensor(b).tolist() == [-1, 2, -3]


def test_many_sets_of_tensors(anywhere: wn.MLContext) -> None:
    graph = negation(anywhere)
    sets = [(tensor(anywhere, np.float32([i, i, i])), tensor(anywhere)) for i in range(40)]
    for _ in range(2):
        for a, b in sets:
            anywhere.dispatch(graph, {"x": a}, {"y": b})
    assert [anywhere.read_tensor(b)[0] for _, b in sets] == [-i for i in range(40)]


def wrong_calls(context: wn.MLContext, other: wn.MLContext) -> dict[str, tuple[Any, Any, Any, type[Exception], str]]:
    graph, two = negation(context), sum_and_difference(context)
    a, b = pair(context)
    foreign, small = tensor(other), tensor(context, shape=(2,))
    destroyed, gone = tensor(context), negation(context)
    destroyed.destroy()
    gone.destroy()
    constant = context.create_constant_tensor(F32X3, X)
    whole = context.create_tensor({"dataType": "int32", "shape": [3]})
    shown = "MLTensor(shape=[3], dtype=float32, readable, writable)"
    return {
        "graph of another context": (negation(other), {}, {}, TypeError, "the graph belongs to another context"),
        "no graph": (7, {}, {}, TypeError, "graph must be an MLGraph; got int"),
        "destroyed graph": (gone, {"q": destroyed}, {}, wn.InvalidStateError, "the graph was destroyed"),
        "in place": (
            graph,
            {"x": a},
            {"y": a},
            TypeError,
            "inputs and outputs must be different tensors; got one tensor for 'x' and 'y'",
        ),
        "twice, before anything else": (
            two,
            {"a": destroyed, "nobody": destroyed},
            {},
            TypeError,
            "inputs and outputs must be different tensors; got one tensor for 'a' and 'nobody'",
        ),
        "foreign": (graph, {"x": foreign}, {"y": b}, TypeError, f"the tensor belongs to another context; got {shown}"),
        "destroyed": (graph, {"x": a}, {"nobody": destroyed}, TypeError, f"the tensor was destroyed; got {shown}"),
        "array": (graph, {"x": X}, {"y": b}, TypeError, "a tensor must be an MLTensor; got ndarray; allowed: MLTensor"),
        "missing input": (graph, {}, {"y": b}, TypeError, "the graph's input 'x' is missing; got none; allowed: x"),
        "unknown input": (
            graph,
            {"x": a, "z": b},
            {},
            TypeError,
            "the graph has no input of this name; got 'z'; allowed: x",
        ),
        "missing output": (
            two,
            {"a": a, "b": b},
            {"sum": tensor(context)},
            TypeError,
            "the graph's output 'difference' is missing; got sum; allowed: sum, difference",
        ),
        "constant": (
            graph,
            {"x": constant},
            {"y": b},
            TypeError,
            "a constant tensor is used through MLGraphBuilder.constant only; got MLTensor(shape=[3], dtype=float32, constant)",
        ),
        "shape": (
            graph,
            {"x": small},
            {"y": b},
            TypeError,
            "the tensor of 'x' must have its data type and shape; got MLTensor(shape=[2], dtype=float32, readable, writable);"
            " allowed: float32[3]",
        ),
        "data type": (
            graph,
            {"x": a},
            {"y": whole},
            TypeError,
            "the tensor of 'y' must have its data type and shape; got MLTensor(shape=[3], dtype=int32); allowed: float32[3]",
        ),
        "no mapping": (graph, [a], {"y": b}, TypeError, "inputs must be a mapping of name to tensor; got list"),
    }


CASES = [
    "graph of another context",
    "no graph",
    "destroyed graph",
    "in place",
    "twice, before anything else",
    "foreign",
    "destroyed",
    "array",
    "missing input",
    "unknown input",
    "missing output",
    "constant",
    "shape",
    "data type",
    "no mapping",
]


@pytest.mark.parametrize("case", CASES)
def test_wrong_calls(anywhere: wn.MLContext, fresh: wn.MLContext, case: str) -> None:
    graph, inputs, outputs, kind, message = wrong_calls(anywhere, fresh)[case]
    with pytest.raises(kind) as caught:
        anywhere.dispatch(graph, inputs, outputs)
    assert str(caught.value).startswith(f"dispatch: {message}")


def test_every_wrong_call_is_tried(anywhere: wn.MLContext, fresh: wn.MLContext) -> None:
    assert list(wrong_calls(anywhere, fresh)) == CASES


def test_buffers_that_their_holder_destroys(context: wn.MLContext) -> None:
    graph = negation(context)
    a, b = pair(context)
    context.dispatch(graph, {"x": a}, {"y": b})
    a.buffer.destroy()
    with pytest.raises(wn.InvalidStateError, match="dispatch: the buffer was destroyed"):
        context.dispatch(graph, {"x": a}, {"y": b})
    assert context.compute(graph, {"x": X})["y"].tolist() == [-1, 2, -3]
