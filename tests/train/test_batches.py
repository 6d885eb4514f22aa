"""Gradients of several batches added up, and a factor of the loss for networks in float16."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import webnn_wgpu as wn
from webnn_wgpu import train

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    Operands = Mapping[str, wn.MLOperand]

ROWS = np.random.default_rng(3).standard_normal((12, 3)).astype(np.float32)
TARGETS = (ROWS @ np.float32([[1], [-2], [0.5]])).astype(np.float32)
WEIGHTS = {"w": np.float32([[0.1], [0.2], [0.3]]), "b": np.zeros(1, np.float32)}


def squares(b: wn.MLGraphBuilder, p: Operands, i: Operands) -> wn.MLOperand:
    error = b.sub(b.add(b.matmul(i["x"], p["w"]), p["b"]), i["y"])
    return b.reduce_mean(b.mul(error, error))


def halves(b: wn.MLGraphBuilder, p: Operands, i: Operands) -> wn.MLOperand:
    """The same network in float16, whose gradients are too small for that type."""
    x, y, w, bias = (b.cast(each, "float16") for each in (i["x"], i["y"], p["w"], p["b"]))
    error = b.cast(b.sub(b.add(b.matmul(x, w), bias), y), "float32")
    return b.mul(b.reduce_mean(b.mul(error, error)), b.constant("float32", 1e-6))


def step_of(context: wn.MLContext, rows: int, forward: Any = squares, optimizer: Any = None, **options: Any) -> train.Step:
    inputs: Any = {"x": {"dataType": "float32", "shape": [rows, 3]}, "y": {"dataType": "float32", "shape": [rows, 1]}}
    return train.Step(context, forward, WEIGHTS, optimizer or train.Adam(learning_rate=0.1), inputs=inputs, **options)


def part(first: int, count: int) -> dict[str, Any]:
    return {"x": ROWS[first : first + count], "y": TARGETS[first : first + count]}


def test_an_update_takes_the_mean_of_the_gradients_of_its_batches(context: wn.MLContext) -> None:
    optimizer = train.AdamW(learning_rate=0.1, clip_norm=1.0)
    with step_of(context, 12, optimizer=optimizer) as whole, step_of(context, 4, optimizer=optimizer, accumulate=3) as parts:
        for _ in range(4):
            loss = whole(part(0, 12))["loss"]
            before = parts.parameters()
            losses = [parts(part(0, 4))["loss"], parts(part(4, 4))["loss"]]
            np.testing.assert_array_equal(before["w"], parts.parameters()["w"])
            losses.append(parts(part(8, 4))["loss"])
            assert np.mean(losses) == pytest.approx(loss, rel=1e-5)
        assert whole.steps == parts.steps == 4
        for name, array in whole.parameters().items():
            np.testing.assert_allclose(parts.parameters()[name], array, rtol=1e-4, atol=1e-6)


def test_sums_that_are_not_finite_are_gone_after_the_update(context: wn.MLContext) -> None:
    with step_of(context, 4, accumulate=2, loss_scale=train.LossScale(initial=2.0)) as step:
        step({"x": np.full((4, 3), np.inf, np.float32), "y": TARGETS[:4]})
        step(part(0, 4))
        assert (step.steps, step.loss_scale) == (0, 1.0)
        for _ in range(2):
            step(part(0, 4))
        assert step.steps == 1
        assert all(np.isfinite(array).all() for array in step.parameters().values())


def test_a_factor_of_the_loss_keeps_small_gradients(context: wn.MLContext) -> None:
    def trained(scale: train.LossScale | None) -> np.ndarray[Any, Any]:
        with step_of(context, 12, halves, train.SGD(learning_rate=1e5), loss_scale=scale) as step:
            for _ in range(60):
                step(part(0, 12))
            return step.parameters()["w"].ravel()

    assert np.abs(trained(train.LossScale(initial=2.0**20)) - [1, -2, 0.5]).max() < 0.02
    assert np.abs(trained(None) - [1, -2, 0.5]).max() > 0.05


def test_a_step_with_gradients_that_are_not_finite_changes_nothing(context: wn.MLContext) -> None:
    with step_of(context, 12, halves, loss_scale=train.LossScale(initial=1e38, backoff=1e-30, interval=2)) as step:
        step(part(0, 12))
        assert (step.steps, step.loss_scale) == (0, pytest.approx(1e8))
        np.testing.assert_array_equal(step.parameters()["w"], WEIGHTS["w"])
        step(part(0, 12))
        step(part(0, 12))
        assert (step.steps, step.loss_scale) == (2, pytest.approx(2e8))
        assert np.all(step.parameters()["w"] != WEIGHTS["w"])


def test_checkpoints_hold_the_factor_and_refuse_parts_of_an_update(context: wn.MLContext, tmp_path: Path) -> None:
    options: Any = {"accumulate": 2, "loss_scale": train.LossScale(initial=8.0, interval=2)}
    path = tmp_path / "step.safetensors"
    with step_of(context, 4, **options) as step, step_of(context, 4, **options) as other:
        for first in (0, 4, 8, 0, 4, 8):
            step(part(first, 4))
        step.save(path)
        other(part(0, 4))
        with pytest.raises(wn.InvalidStateError, match="save must follow an update; got 1 of 2 batches"):
            other.save(path)
        other.load(path)
        assert (other.steps, other.loss_scale) == (3, 16.0)
        assert [other(part(0, 4)) for _ in range(2)] == [step(part(0, 4)) for _ in range(2)]
        for name, array in step.parameters().items():
            np.testing.assert_array_equal(other.parameters()[name], array)


def test_refusals(context: wn.MLContext) -> None:
    with pytest.raises(wn.MLTypeError, match="accumulate must be a number of batches"):
        step_of(context, 4, accumulate=0)
    for options in ({"initial": 0.0}, {"growth": 0.5}, {"backoff": 1.0}, {"interval": 0}):
        with pytest.raises(wn.MLTypeError, match=f"LossScale: {next(iter(options))} must be in its range"):
            train.LossScale(**options)  # pyright: ignore[reportArgumentType]
