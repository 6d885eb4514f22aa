"""`LossCurve`: the losses of a training as a line of text or as a picture, while it runs."""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from typing import TextIO

from webnn_wgpu.typing import TensorData

_BLOCKS = "▁▂▃▄▅▆▇█"
_COLUMNS = 32
_WIDTH, _HEIGHT = 480, 120
_REDRAWN_SECONDS = 0.1


class LossCurve:
    """The losses of a training, in the order of the steps.

    In a terminal, `follow` shows a bar with the curve, the last loss and the time that is left. In a notebook, the object
    itself is a picture of the curve.

    Args:
        loss: the name of the number that is drawn, one of those that a step returns.

    Attributes:
        losses: the numbers so far.

    Example:
        >>> from webnn_wgpu import train
        >>> curve = train.LossCurve()
        >>> for loss in (4.0, 3.0, 2.5, 1.0, 0.0):
        ...     curve.add({"loss": loss})
        >>> curve
        LossCurve(█▆▅▃▁ 5 steps, loss 0)
    """

    def __init__(self, loss: str = "loss") -> None:
        self.losses: list[float] = []
        self._loss = loss

    def add(self, metrics: Mapping[str, float]) -> None:
        """Add the result of a step.

        Args:
            metrics: the numbers that the step returned.
        """
        self.losses.append(float(metrics[self._loss]))

    def follow(
        self,
        step: Callable[[Mapping[str, TensorData]], Mapping[str, float]],
        batches: Iterable[Mapping[str, TensorData]],
        *,
        total: int | None = None,
        file: TextIO | None = None,
    ) -> Generator[Mapping[str, float]]:
        """Run a step for each batch, and show a bar while a terminal is there.

        Args:
            step: the step.
            batches: the batches.
            total: their number. None asks `len`, where the batches have one.
            file: where the bar is written. None is stderr. No bar is written to a file that is no terminal.

        Yields:
            The result of each step.
        """
        out = sys.stderr if file is None else file
        shows = out.isatty()
        total = len(batches) if total is None and isinstance(batches, Sequence) else total
        started = drawn = time.monotonic()
        count = 0
        try:
            for count, batch in enumerate(batches, 1):
                metrics = step(batch)
                self.add(metrics)
                now = time.monotonic()
                if shows and now - drawn >= _REDRAWN_SECONDS:
                    drawn = now
                    out.write(f"\r\x1b[2K{self._bar(count, total, now - started)}")
                    out.flush()
                yield metrics
        finally:
            if shows:
                out.write(f"\r\x1b[2K{self._bar(count, total, time.monotonic() - started)}\n")
                out.flush()

    def __str__(self) -> str:
        return f"{_blocks(_means(self.losses, _COLUMNS))} {len(self.losses)} steps, {self._loss} {self._last()}"

    def __repr__(self) -> str:
        return f"LossCurve({self})"

    def _repr_html_(self) -> str:
        """Return the curve as a picture, for notebooks."""
        values = [value for value in _means(self.losses, _WIDTH // 2) if math.isfinite(value)]
        low, high = (min(values), max(values)) if values else (0.0, 1.0)
        across, span = max(1, len(values) - 1), (high - low) or 1.0
        points = " ".join(f"{i / across * _WIDTH:.1f},{(high - value) / span * _HEIGHT:.1f}" for i, value in enumerate(values))
        return (
            f'<svg viewBox="-4 -4 {_WIDTH + 8} {_HEIGHT + 28}" width="{_WIDTH}" role="img" aria-label="curve of the loss">'
            f'<polyline points="{points}" fill="none" stroke="currentColor" stroke-width="1.5"/>'
            f'<text y="{_HEIGHT + 18}" font-size="13" fill="currentColor">{len(self.losses)} steps, {self._loss} '
            f"{self._last()} ({low:.3g} to {high:.3g})</text></svg>"
        )

    def _last(self) -> str:
        return f"{self.losses[-1]:.4g}" if self.losses else "none"

    def _bar(self, count: int, total: int | None, seconds: float) -> str:
        """Return the line of a terminal."""
        rate = count / seconds if seconds > 0 else 0.0
        parts = [f"{count}/{total}" if total else f"{count}", _blocks(_means(self.losses, _COLUMNS))]
        parts += [f"{self._loss} {self._last()}", f"{rate:.1f} steps/s"]
        if total and rate and count < total:
            parts.append(f"{(total - count) / rate:.0f} s left")
        return "  ".join(parts)


def _means(values: Sequence[float], most: int) -> list[float]:
    """Return means of neighbors, so that there are at most some of them."""
    size = -(-len(values) // most) if values else 1
    return [sum(part) / len(part) for start in range(0, len(values), size) if (part := values[start : start + size])]


def _blocks(values: Sequence[float]) -> str:
    """Return values as blocks of different heights. A value that is not finite is an x."""
    finite = [value for value in values if math.isfinite(value)]
    low, high = (min(finite), max(finite)) if finite else (0.0, 1.0)
    steps = len(_BLOCKS) - 1

    def block(value: float) -> str:
        return _BLOCKS[round((value - low) / ((high - low) or 1.0) * steps)] if math.isfinite(value) else "x"

    return "".join(map(block, values))
