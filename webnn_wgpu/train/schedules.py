"""Schedules: learning rates that depend on the number of the step. The host computes them, and a step uploads one scalar."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from webnn_wgpu import MLTypeError

Schedule: TypeAlias = Callable[[int], float]
"""A function that returns the learning rate of a step. The first step has the number 1."""


def _check_steps(name: str, steps: int) -> None:
    if steps < 1:
        raise MLTypeError("steps must be a positive number", operator=name, got=f"{steps!r}", allowed="at least 1")


@dataclass(frozen=True)
class ConstantSchedule:
    """The same learning rate at each step.

    Attributes:
        value: the learning rate.
    """

    value: float

    def __call__(self, step: int) -> float:
        """Return the learning rate of a step."""
        return self.value


@dataclass(frozen=True, kw_only=True)
class CosineSchedule:
    """A learning rate that falls along half a period of the cosine, and keeps its final value.

    Attributes:
        initial: the learning rate of the first step.
        steps: the number of steps of the fall.
        final: the learning rate after it.
    """

    initial: float
    steps: int
    final: float = 0.0

    def __post_init__(self) -> None:
        """Check the number of steps.

        Raises:
            MLTypeError: it is not positive.
        """
        _check_steps("CosineSchedule", self.steps)

    def __call__(self, step: int) -> float:
        """Return the learning rate of a step."""
        part = min(step - 1, self.steps) / self.steps
        return self.final + (self.initial - self.final) * (1 + math.cos(math.pi * part)) / 2


@dataclass(frozen=True, kw_only=True)
class ExponentialSchedule:
    """A learning rate that has a constant ratio to that of some steps before.

    Attributes:
        initial: the learning rate of the first step.
        steps: the number of steps in which the learning rate changes by the ratio.
        ratio: the ratio.
        staircase: whether it changes at once after `steps` steps, instead of gradually.
    """

    initial: float
    steps: int
    ratio: float
    staircase: bool = False

    def __post_init__(self) -> None:
        """Check the number of steps.

        Raises:
            MLTypeError: it is not positive.
        """
        _check_steps("ExponentialSchedule", self.steps)

    def __call__(self, step: int) -> float:
        """Return the learning rate of a step."""
        times = (step - 1) // self.steps if self.staircase else (step - 1) / self.steps
        return self.initial * self.ratio**times


@dataclass(frozen=True)
class PiecewiseSchedule:
    """A learning rate that is constant between given steps.

    Attributes:
        boundaries: the numbers of the steps after which the next value holds, in ascending order.
        values: the learning rates, one more than boundaries.
    """

    boundaries: Sequence[int]
    values: Sequence[float]

    def __post_init__(self) -> None:
        """Check the boundaries.

        Raises:
            MLTypeError: they do not ascend, or their number does not fit the values.
        """
        if list(self.boundaries) != sorted(set(self.boundaries)):
            raise MLTypeError("boundaries must ascend", operator="PiecewiseSchedule", got=f"{list(self.boundaries)}")
        if len(self.values) != len(self.boundaries) + 1:
            raise MLTypeError(
                "values must be one more than boundaries",
                operator="PiecewiseSchedule",
                got=f"{len(self.values)} values",
                allowed=f"{len(self.boundaries) + 1}",
            )

    def __call__(self, step: int) -> float:
        """Return the learning rate of a step."""
        return self.values[bisect_right(self.boundaries, step - 1)]


@dataclass(frozen=True, kw_only=True)
class WarmUpSchedule:
    """A learning rate that rises evenly, and then follows another schedule, which begins with its first step.

    Attributes:
        steps: the number of steps of the rise. The step after it has the first learning rate of the other schedule.
        after: the other schedule, or a constant learning rate.
        initial: the learning rate that the rise begins after.
    """

    steps: int
    after: float | Schedule
    initial: float = 0.0

    def __post_init__(self) -> None:
        """Check the number of steps.

        Raises:
            MLTypeError: it is not positive.
        """
        _check_steps("WarmUpSchedule", self.steps)

    def __call__(self, step: int) -> float:
        """Return the learning rate of a step."""
        after = self.after if callable(self.after) else ConstantSchedule(self.after)
        if step > self.steps:
            return after(step - self.steps)
        return self.initial + (after(1) - self.initial) * step / (self.steps + 1)
