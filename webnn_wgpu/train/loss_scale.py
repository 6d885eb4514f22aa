"""`LossScale`: the factor of the loss of networks in float16."""

from __future__ import annotations

import math
from dataclasses import dataclass

from webnn_wgpu import MLTypeError


@dataclass(frozen=True, kw_only=True)
class LossScale:
    """The factor of the loss of a network in float16, whose gradients would be too small for that type otherwise.

    A step divides the gradients by the factor. Where one of them is not finite, the step changes neither parameters nor states,
    and the factor shrinks. It grows after a number of steps without such a gradient.

    Source: P. Micikevicius et al., Mixed Precision Training, 2018.

    Attributes:
        initial: the factor of the first step.
        growth: the number that the factor is multiplied by when it grows.
        backoff: the number that it is multiplied by when it shrinks.
        interval: the number of steps after which it grows.

    Example:
        >>> from webnn_wgpu import train
        >>> scale = train.LossScale(initial=1024.0, interval=2)
        >>> scale.after(1024.0, finite_steps=1), scale.after(1024.0, finite_steps=2), scale.after(1024.0, finite_steps=0)
        (1024.0, 2048.0, 512.0)
    """

    initial: float = 65536.0
    growth: float = 2.0
    backoff: float = 0.5
    interval: int = 2000

    def __post_init__(self) -> None:
        """Check the options.

        Raises:
            MLTypeError: an option is out of its range.
        """
        for name, fits, allowed in (
            ("initial", 0 < self.initial < math.inf, "above 0, and finite"),
            ("growth", 1 <= self.growth < math.inf, "1 or above, and finite"),
            ("backoff", 0 < self.backoff < 1, "between 0 and 1"),
            ("interval", self.interval >= 1, "1 or above"),
        ):
            if not fits:
                got = f"{getattr(self, name)!r}"
                raise MLTypeError(f"{name} must be in its range", operator="LossScale", got=got, allowed=allowed)

    def after(self, scale: float, finite_steps: int) -> float:
        """Return the factor of the next step.

        Args:
            scale: the factor of the last step.
            finite_steps: the number of steps since the factor changed or a gradient was not finite. 0 stands for a step with
                such a gradient.
        """
        if not finite_steps:
            return scale * self.backoff
        return scale if finite_steps % self.interval else scale * self.growth
