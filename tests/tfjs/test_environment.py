"""Lifetimes of tensors, measurements, checks of results, and gradients of functions."""

from __future__ import annotations

import asyncio
import gc
from typing import Any

import numpy as np
import pytest

import webnn_wgpu as wn
import webnn_wgpu.tfjs as tf


def test_tidy_disposes_all_but_results_variables_and_kept_tensors() -> None:
    made: list[tf.Tensor] = []

    def work() -> dict[str, Any]:
        made.extend([tf.tensor([1, 2]), tf.keep(tf.tensor([3])), tf.variable([4])])
        made.append(tf.square(made[0]))
        return {"results": [made[3]], "number": 1}

    gc.collect()
    before = tf.memory().num_tensors
    result = tf.tidy(work)
    assert [each.disposed for each in made] == [True, False, False, False]
    assert result["results"][0].tolist() == [1, 4]
    assert tf.memory().num_tensors == before + 3
    tf.dispose([made[1], result, made[2]])
    assert [each.disposed for each in made] == [True, False, True, True]


def test_results_of_an_inner_tidy_end_with_the_outer_one() -> None:
    inner: list[tf.Tensor] = []

    def work() -> None:
        inner.append(tf.tidy("inner", lambda: tf.square([2])))
        assert inner[0].tolist() == [4]

    tf.tidy(work)
    assert inner[0].disposed


def test_tidy_disposes_after_an_error() -> None:
    made: list[tf.Tensor] = []

    def work() -> None:
        made.append(tf.tensor([1]))
        raise KeyError

    with pytest.raises(KeyError):
        tf.tidy(work)
    assert made[0].disposed


def test_memory_counts_tensors_values_and_bytes() -> None:
    gc.collect()
    before = tf.memory()
    x = tf.tensor(np.zeros((4, 5), np.float32))
    variable = tf.variable(x)
    after = tf.memory()
    assert [new - old for new, old in zip(after, before, strict=True)] == [2, 1, 160]
    del x, variable


def test_profile_lists_operations() -> None:
    info = tf.profile(lambda: tf.square(tf.add([1, 2], 1)))
    assert [(kernel.name, kernel.output_shapes) for kernel in info.kernels] == [("add", [(2,)]), ("mul", [(2,)])]
    assert (info.new_tensors, info.new_bytes, info.result.tolist()) == (1, 8, [4, 9])
    assert info.peak_bytes >= 20


def test_time_waits_for_the_device() -> None:
    assert tf.time(lambda: tf.square([1, 2])).wall_ms > 0


def test_debug_mode_names_the_operation() -> None:
    tf.enable_debug_mode()
    try:
        assert tf.add(1, 2).item() == 3
        with pytest.raises(wn.OperationError, match=r"log.*NaN"):
            tf.add(tf.log(tf.tensor([-1, 1])), 1)
    finally:
        tf.enable_prod_mode()
    assert np.isnan(tf.log(tf.tensor([-1])).item())


def test_data_can_be_awaited() -> None:
    async def read() -> list[float]:
        return (await tf.square([1, 2]).data()).tolist()

    assert asyncio.run(read()) == [1, 4]


def test_gradients_of_functions() -> None:
    cube = tf.grad(lambda x: tf.pow(x, 3))
    assert cube([1, 2]).tolist() == [3, 12]
    assert cube([1, 2], [1, 10]).tolist() == [3, 120]
    assert tf.grad(cube)(2).item() == 12
    value, (first, second) = tf.value_and_grads(tf.mul)([[1, 2], 3])
    assert (value.tolist(), first.tolist(), second.item()) == ([3, 6], [3, 3], 3)
    with pytest.raises(wn.MLTypeError, match="shape"):
        cube([1, 2], [1])
    with pytest.raises(wn.MLTypeError, match="depend"):
        tf.grad(lambda _: tf.tensor([1]))([1])

    def nothing(x: tf.Tensor) -> Any:
        return None

    with pytest.raises(wn.MLTypeError, match="grad: the function must return a tensor; got None"):
        tf.grad(nothing)([1])


def test_arguments_of_no_use_are_refused() -> None:
    with pytest.raises(wn.MLTypeError, match="there must be tensors"):
        tf.concat([])
    with pytest.raises(wn.MLTypeError, match=r"shapes must broadcast; got .*float32\[2\].*float32\[3\]"):
        tf.atan2(tf.zeros([2]), tf.zeros([3]))
    with pytest.raises(wn.MLTypeError, match="the data type must be one that tensors have; got float13; allowed: float32"):
        tf.zeros([2], "float13")


def test_stated_gradients_get_saved_tensors() -> None:
    def function(a: tf.Tensor, b: tf.Tensor, save: Any) -> dict[str, Any]:
        save([a, b])
        return {"value": tf.add(a, b), "grad_func": lambda dy, saved: [tf.mul(dy, saved[1]), tf.mul(dy, saved[0])]}

    first, second = tf.grads(tf.custom_grad(function))([[2], [5]])
    assert (first.item(), second.item()) == (5, 2)


def test_names_of_variables_are_new() -> None:
    first = tf.variable([1], name="mine")
    with pytest.raises(wn.MLTypeError, match="mine"):
        tf.variable([1], name="mine")
    first.dispose()
    assert tf.variable([1], name="mine").name == "mine"


def test_data_types_follow_tensorflow_js() -> None:
    assert [tf.tensor(given).dtype for given in ([1], np.int64([1]), [True], 1.5)] == ["float32", "int32", "bool", "float32"]
    assert tf.add(tf.tensor([1], dtype="int32"), 0.5).dtype == "float32"
    assert tf.add(tf.tensor([True]), tf.tensor([True])).tolist() == [2]
    assert tf.mean(tf.tensor([1, 2], dtype="int32")).item() == 1.5


def test_random_numbers_repeat_by_seed() -> None:
    first, second = (tf.random_normal([4], seed=7) for _ in range(2))
    np.testing.assert_array_equal(first.numpy(), second.numpy())
    assert not np.array_equal(tf.random_uniform([4]).numpy(), tf.random_uniform([4]).numpy())
    dropped = tf.dropout(tf.ones([1000]), 0.25, seed=1).numpy()
    assert set(np.unique(dropped)) == {0, np.float32(1 / 0.75)}
    assert 0.2 < np.mean(dropped == 0) < 0.3


def test_a_single_image_stays_one() -> None:
    image, rows = tf.ones([4, 5, 1]), tf.ones([6, 2])
    assert tf.conv2d(image, tf.ones([2, 2, 1, 3]), 1, "same").shape == (4, 5, 3)
    assert tf.conv1d(rows, tf.ones([2, 2, 4]), 2, "valid").shape == (3, 4)
    assert tf.max_pool(image, 2, 2, "same").shape == (2, 3, 1)
    with pytest.raises(wn.MLTypeError, match=r"conv2d.*float32\[6, 2\]"):
        tf.conv2d(rows, tf.ones([2, 2, 1, 3]), 1, "same")


@pytest.mark.parametrize("given", [None, "text", [[1, 2], [3]], [object()]])
def test_elements_must_be_numbers(given: Any) -> None:
    with pytest.raises(wn.MLTypeError, match="must be numbers"):
        tf.tensor(given)
