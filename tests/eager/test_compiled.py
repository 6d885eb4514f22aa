"""Compiled functions: placeholders, updates in place, and values that other tensors keep."""

from __future__ import annotations

import pytest

import webnn_wgpu as wn
from webnn_wgpu import eager
from webnn_wgpu.eager import CompiledFunction, placeholder
from webnn_wgpu.eager.engine import Engine


def _descent() -> CompiledFunction:
    """Return a step of gradient descent towards zero: (rate, weight) -> loss."""
    rate, weight = placeholder(()), placeholder((2,))
    loss = eager.ops.reduce_sum(weight * weight)
    (gradient,) = eager.gradients(loss, [weight])
    return CompiledFunction([rate, weight], [loss], {1: weight - rate * gradient})


def test_a_step_compiles_once_and_updates_in_place(engine: Engine) -> None:
    step, weight = _descent(), eager.Variable([1.0, 2.0])
    memory = weight.ml_tensor()
    losses = [step(eager.tensor(rate), weight)[0] for rate in (0.25, 0.5, 0.125)]
    assert [loss.item() for loss in losses] == [5.0, 1.25, 0.0]
    assert weight.tolist() == [0.0, 0.0]
    assert weight.ml_tensor() is memory
    assert (engine.statistics().compilations, engine.statistics().runs) == (1, 3)


def test_values_read_before_a_call_stay(engine: Engine) -> None:
    step, weight = _descent(), eager.Variable([1.0, 2.0])
    kept, lazy = weight.read(), weight * 10
    step(eager.tensor(0.25), weight)
    assert (kept.tolist(), lazy.tolist(), weight.tolist()) == ([1.0, 2.0], [10.0, 20.0], [0.5, 1.0])


def test_a_tape_keeps_values_before_a_call(engine: Engine) -> None:
    step, weight = _descent(), eager.Variable([1.0, 2.0])
    with eager.tape():
        square = weight * weight
        before = weight.read()
        step(eager.tensor(0.25), weight)
        (gradient,) = eager.gradients(square, [before])
    assert (gradient.tolist(), weight.tolist()) == ([2.0, 4.0], [0.5, 1.0])


def test_one_variable_in_two_places(engine: Engine) -> None:
    x, y = placeholder((1,)), placeholder((1,))
    add = CompiledFunction([x, y], [], {0: x + y})
    variable = eager.Variable([3.0])
    add(variable, variable)
    assert variable.tolist() == [6.0]


def test_an_update_that_does_not_read_its_variable(engine: Engine) -> None:
    x, count, other = placeholder((1,)), placeholder((1,)), placeholder((1,))
    replace = CompiledFunction([x, count, other], [count + 1], {1: x * 2, 2: eager.gradients(x, [other])[0]})
    first, second = eager.Variable([7.0]), eager.Variable([8.0])
    assert replace(eager.tensor([3.0]), first, second)[0].tolist() == [8.0]
    assert (first.tolist(), second.tolist()) == ([6.0], [0.0])


def test_other_tensors_are_constants(engine: Engine) -> None:
    x, scale = placeholder((2,)), eager.Variable([1.0, 2.0])
    function = CompiledFunction([x], [x * scale + 1, x, eager.tensor(4.0)])
    scale.assign(eager.tensor([0.0, 0.0]))
    found = [each.tolist() for each in function(eager.tensor([5.0, 6.0]))]
    assert found == [[6.0, 13.0], [5.0, 6.0], 4.0]


def test_unknown_values_cannot_be_read(engine: Engine) -> None:
    x = placeholder((2,), "int32")
    y = x + eager.tensor([1, 2])
    assert (x.known, y.known, y.dtype) == (False, False, "int32")
    for read in (x.numpy, y.tolist, y.data, lambda: bool(eager.ops.reduce_max(y))):
        with pytest.raises(eager.UnknownValueError, match="placeholder"):
            read()
    # Other values are computed as ever.
    assert (eager.tensor([1, 2]) + 1).tolist() == [2, 3]
    assert engine.statistics().pending == 0


def test_many_recorded_operations_keep_a_trace(engine: Engine) -> None:
    x = placeholder((1,))
    y, known = x, eager.tensor([1.0])
    for _ in range(3000):
        y, known = y + 1, known + 1
    assert CompiledFunction([x], [y + known])(eager.tensor([2.0]))[0].tolist() == [6003.0]


def test_arguments_must_fit(engine: Engine) -> None:
    x, y = placeholder((2,)), placeholder((2,))
    with pytest.raises(eager.UnknownValueError, match="must depend on the placeholders"):
        CompiledFunction([x], [x + y])
    with pytest.raises(wn.MLTypeError, match="different placeholders"):
        CompiledFunction([x + 1], [y])
    with pytest.raises(wn.MLTypeError, match="keeps its shape"):
        CompiledFunction([x], [], {0: eager.ops.reduce_sum(x)})
    function = CompiledFunction([x], [], {0: x + 1})
    with pytest.raises(wn.MLTypeError, match="must be a variable"):
        function(eager.tensor([1.0, 2.0]))
    with pytest.raises(wn.MLTypeError, match="placeholder's kind"):
        function(eager.Variable([1.0]))
    with pytest.raises(wn.MLTypeError, match="a tensor for each"):
        function()


def test_what_depends_on_no_placeholder_is_computed_once(engine: Engine) -> None:
    x, sizes = placeholder((2,)), eager.tensor([2, 3])
    function = CompiledFunction([x], [x * eager.cast(eager.ops.reduce_product(sizes), "float32")])
    assert function(eager.tensor([1.0, 2.0]))[0].tolist() == [6.0, 12.0]
    assert engine.statistics().runs == 1


def test_a_graph_has_present_values_as_constants(engine: Engine) -> None:
    x, other, weight = placeholder((2,)), placeholder((2,)), eager.Variable([1.0, 2.0])
    pending = eager.tensor([1.0, 1.0]) + 1
    graph = eager.graph({"x": x}, {"y": x * weight + pending, "same": x, "weight": weight})
    weight.assign([9.0, 9.0])
    found = engine.context.compute(graph, {"x": [3, 4]})
    assert {name: array.tolist() for name, array in found.items()} == {"y": [5, 10], "same": [3, 4], "weight": [1, 2]}
    # The sum of known values is a constant: the operators are the product, the sum and two copies.
    assert graph.operation_count == 4
    with pytest.raises(eager.UnknownValueError, match="graph: outputs must depend on the placeholders that are inputs"):
        eager.graph({"x": x}, {"y": x + other})
    with pytest.raises(wn.MLTypeError, match="graph: inputs must be different placeholders"):
        eager.graph({"x": weight}, {"y": weight * 2})
    with pytest.raises(wn.MLTypeError, match="graph: a graph must have outputs"):
        eager.graph({"x": x}, {})
