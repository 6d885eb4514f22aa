"""How the commands write their results."""

from __future__ import annotations

import io
from pathlib import Path

import click
import pytest
from click.testing import CliRunner
from rich.console import Console

from webnn_wgpu import cli
from webnn_wgpu.cli.text import result_console
from webnn_wgpu.display.tables import rich_table

LONG = "/encoder/layer.0/attention/self/" * 20


@click.command()
def table() -> None:
    result_console().print(rich_table(LONG, [("operator", "reason"), (LONG, "a word " * 90)], sentences=[1]))


def test_no_cell_is_cut_or_wrapped_in_a_pipe(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    lines = CliRunner().invoke(table).output.splitlines()
    assert [line for line in lines if LONG in line and "a word " * 90 in line]
    assert not [line for line in lines if "…" in line]


def test_a_terminal_limits_the_width(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("TTY_COMPATIBLE", "1")
    assert max(map(len, click.unstyle(CliRunner().invoke(table).output).splitlines())) <= 80


def test_each_command_writes_by_the_console_of_results() -> None:
    makers = {file.stem for file in Path(cli.__file__).parent.rglob("*.py") if " Console(" in file.read_text(encoding="utf-8")}
    assert makers == {"text", "progress"}


@pytest.mark.parametrize(("width", "left_out"), [(200, ""), (62, "reason"), (44, "share, reason")])
def test_a_narrow_terminal_leaves_out_columns_and_cuts_no_operator(width: int, left_out: str) -> None:
    operators = "/blocks.0/attention/MatMul, /blocks.0/attention/Add"
    rows = [("us", "share", "operators", "reason"), ("10.0", "50%", operators, "a word " * 15)]
    console = Console(width=width, file=io.StringIO())
    with console.capture() as captured:
        console.print(rich_table("title", rows, (0,), (2,), names=(1,), optional=(3, 1)))
    written = captured.get()
    table, _, note = written.partition("  A wider")
    assert " ".join(note.split()).partition("shows: ")[2] == left_out
    assert [heading for heading in rows[0] if heading not in table] == [h for h in left_out.split(", ") if h]
    assert operators.replace(" ", "") in "".join(table.split())
    assert max(map(len, table.splitlines())) <= width
