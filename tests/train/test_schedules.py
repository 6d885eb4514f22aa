"""Schedules of learning rates, initial weights, and the import of the package."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import webnn_wgpu as wn
from webnn_wgpu import train

if TYPE_CHECKING:
    from collections.abc import Callable


@pytest.mark.parametrize(
    ("schedule", "rates"),
    [
        (train.ConstantSchedule(0.5), {1: 0.5, 100: 0.5}),
        (train.CosineSchedule(initial=1, steps=4, final=0.2), {1: 1, 3: 0.6, 5: 0.2, 50: 0.2}),
        (train.ExponentialSchedule(initial=2, steps=10, ratio=0.25), {1: 2, 6: 1, 11: 0.5, 21: 0.125}),
        (train.ExponentialSchedule(initial=2, steps=10, ratio=0.25, staircase=True), {10: 2, 11: 0.5, 20: 0.5, 21: 0.125}),
        (train.PiecewiseSchedule([2, 5], [3, 2, 1]), {1: 3, 2: 3, 3: 2, 5: 2, 6: 1, 99: 1}),
        (train.PiecewiseSchedule([], [7]), {1: 7, 9: 7}),
        (train.WarmUpSchedule(steps=3, after=0.8), {1: 0.2, 2: 0.4, 3: 0.6, 4: 0.8, 9: 0.8}),
        (
            train.WarmUpSchedule(steps=1, initial=1, after=train.PiecewiseSchedule([1], [3, 5])),
            {1: 2, 2: 3, 3: 5},
        ),
    ],
)
def test_a_schedule_gives_the_rates_of_its_steps(schedule: train.Schedule, rates: dict[int, float]) -> None:
    assert {step: schedule(step) for step in rates} == pytest.approx(rates, rel=1e-12)
    assert train.SGD(learning_rate=schedule).scalars(1) == {"rate": schedule(1)}


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: train.CosineSchedule(initial=1, steps=0), r"CosineSchedule: steps must be a positive number; got 0; allowed"),
        (lambda: train.ExponentialSchedule(initial=1, steps=-2, ratio=0.5), r"ExponentialSchedule: steps must .* got -2"),
        (lambda: train.WarmUpSchedule(steps=0, after=1), r"WarmUpSchedule: steps must be a positive number; got 0"),
        (lambda: train.PiecewiseSchedule([3, 3], [1, 2, 3]), r"PiecewiseSchedule: boundaries must ascend; got \[3, 3\]"),
        (lambda: train.PiecewiseSchedule([3], [1]), r"values must be one more than boundaries; got 1 values; allowed: 2"),
        (lambda: train.he_normal([2, 3, 3], np.random.default_rng(0)), r"he_normal: fan_in must be given .* got the shape"),
        (
            lambda: train.glorot_uniform([2, 3, 3], np.random.default_rng(0), fan_in=9),
            r"glorot_uniform: fan_out must be given for weights that are no matrix; got the shape \[2, 3, 3\]",
        ),
    ],
)
def test_options_are_refused(make: Callable[[], object], message: str) -> None:
    with pytest.raises(wn.MLTypeError, match=message):
        make()


def test_initial_weights_have_the_variance_of_their_law_and_repeat() -> None:
    def drawn(seed: int) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
        rng = np.random.default_rng(seed)
        return train.glorot_uniform([200, 100], rng), train.he_normal([30, 20, 5, 5], rng, fan_in=500)

    uniform, normal = drawn(1)
    assert uniform.dtype == normal.dtype == np.float32
    assert uniform.var() == pytest.approx(2 / 300, rel=0.03)
    assert np.abs(uniform).max() <= (6 / 300) ** 0.5
    assert normal.var() == pytest.approx(2 / 500, rel=0.03)
    assert all(map(np.array_equal, drawn(1), (uniform, normal)))
    assert not np.array_equal(drawn(2)[0], uniform)


def test_training_is_imported_when_it_is_first_used() -> None:
    program = "import sys, webnn_wgpu as wn; assert 'webnn_wgpu.train' not in sys.modules; assert callable(wn.train.Step)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
