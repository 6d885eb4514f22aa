"""Options and lines that the tasks of `webnn-wgpu evaluate` share."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import click
import numpy as np

FILE = click.Path(exists=True, dir_okay=False, path_type=Path)
"""A file that a task reads."""

PICTURES = click.option(
    "--ground_truth_images_path",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    required=True,
    help="The folder of pictures, which are taken in the order of their names.",
)

OUTPUT = click.option("--output_file_path", type=click.Path(dir_okay=False, path_type=Path), help="A file for the lines, too.")


def pictures_in(folder: Path) -> list[Path]:
    """Return the files of a folder in the order of their names."""
    return sorted(path for path in folder.iterdir() if path.is_file())


def latency(name: str, times: Sequence[float]) -> str:
    """Return the line about the times of a stage, in microseconds."""
    return f"{name} latency: avg={np.mean(times):.6g}(us), std_dev={np.std(times):.0f}(us)"


def report(lines: Sequence[str], path: Path | None) -> None:
    """Print the lines of a task, and write them to a file if there is one."""
    text = "\n".join(lines)
    click.echo(text)
    if path is not None:
        path.write_text(f"{text}\n", encoding="utf-8")
