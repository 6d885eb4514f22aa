"""The curve of losses: its text, its picture, and the bar in a terminal."""

from __future__ import annotations

import io
import math
from typing import TYPE_CHECKING, Any

import pytest

from webnn_wgpu import train
from webnn_wgpu.train import curve as curve_module

if TYPE_CHECKING:
    from collections.abc import Mapping


class Terminal(io.StringIO):
    """A file that is a terminal."""

    def isatty(self) -> bool:
        return True


def halved(batch: Mapping[str, Any]) -> dict[str, float]:
    return {"loss": 1 / 2 ** batch["n"], "accuracy": 0.5}


def test_text() -> None:
    curve = train.LossCurve()
    assert str(curve) == " 0 steps, loss none"
    for loss in (3.0, 2.0, math.nan, 0.0):
        curve.add({"loss": loss})
    assert str(curve) == "█▆x▁ 4 steps, loss 0"
    # Many losses are means of neighbors.
    for _ in range(200):
        curve.add({"loss": 1.0})
    assert len(str(curve).split(" ", maxsplit=1)[0]) <= 32


def test_picture() -> None:
    curve = train.LossCurve("accuracy")
    assert "none" in curve._repr_html_()
    for value in (0.25, 0.5, math.inf, 1.0):
        curve.add({"accuracy": value})
    found = curve._repr_html_()
    assert 'points="0.0,120.0 240.0,80.0 480.0,0.0"' in found
    assert "4 steps, accuracy 1 (0.25 to 1)" in found


def test_a_bar_is_shown_in_a_terminal_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(curve_module, "_REDRAWN_SECONDS", 0.0)
    terminal, file = Terminal(), io.StringIO()
    batches = [{"n": n} for n in range(3)]
    curve = train.LossCurve()
    results = list(curve.follow(halved, batches, file=terminal))
    assert results == [halved(batch) for batch in batches]
    lines = terminal.getvalue().split("\r\x1b[2K")
    assert [line.split("  ")[0] for line in lines[1:]] == ["1/3", "2/3", "3/3", "3/3"]
    assert lines[-1].endswith(" steps/s\n")
    assert "loss 0.25" in lines[-1]
    assert curve.losses == [1, 0.5, 0.25]
    list(train.LossCurve().follow(halved, iter(batches), file=file))
    assert not file.getvalue()


def test_a_bar_ends_where_the_program_does(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(curve_module, "_REDRAWN_SECONDS", 0.0)
    terminal = Terminal()
    following = train.LossCurve().follow(halved, ({"n": n} for n in range(9)), total=9, file=terminal)
    next(following)
    following.close()
    assert terminal.getvalue().endswith("\n")
    assert "1/9" in terminal.getvalue()
