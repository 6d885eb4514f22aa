"""Every command shows examples in its help, and their command lines are valid."""

from __future__ import annotations

import shlex
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from webnn_wgpu.cli.app import app
from webnn_wgpu.cli.examples import EXAMPLES, commands

COMMANDS = dict(commands(app))
EXISTING = {
    ".onnx": ["model"],
    ".webnn": ["graph"],
    ".json": ["graph", "model", "before", "after", "model.tuning"],
    ".weights": ["graph", "model"],
    ".safetensors": ["model"],
    ".npz": ["inputs"],
    ".tflite": ["model"],
    ".jpg": ["photo"],
    ".txt": ["classes"],
}
"""The files that examples read."""


def examples(text: str) -> list[str]:
    """Return the command lines of a help text."""
    block = text.partition("Examples:\n\n")[2].partition("\n\n")[0]
    return [line.strip() for line in block.splitlines()]


@pytest.mark.parametrize("name", COMMANDS)
def test_help_shows_examples_on_lines_of_their_own(name: str) -> None:
    result = CliRunner().invoke(app, [*name.split(), "--help"], terminal_width=80)
    shown = examples(result.stdout)
    assert shown
    assert shown == list(EXAMPLES[name])
    assert all(line.startswith(f"webnn-wgpu {name}".rstrip()) for line in shown)


@pytest.mark.parametrize("line", dict.fromkeys(line for lines in EXAMPLES.values() for line in lines))
def test_an_example_parses(line: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for suffix, stems in EXISTING.items():
        for stem in stems:
            Path(f"{stem}{suffix}").touch()
    Path("tensors").mkdir()
    _, *words = shlex.split(line, comments=True)
    command: click.Command = app
    while isinstance(command, click.Group):
        command = command.commands[words.pop(0)]
    with command.make_context(command.name, words) as context:
        assert set(context.params) == {parameter.name for parameter in command.params if parameter.expose_value}


def test_an_example_with_an_unknown_option_would_not_parse() -> None:
    with pytest.raises(click.NoSuchOption):
        COMMANDS["doctor"].make_context("doctor", ["--unknown"])
