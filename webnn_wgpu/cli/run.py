"""`webnn-wgpu run`: a model file on arrays, pictures, text or random inputs."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click
import numpy as np

from .inputs import Array
from .models import (
    device_option,
    failing_well,
    fallback_option,
    input_options,
    load_model_or_folder,
    model_or_folder,
    open_context,
    options,
    shape_options,
    values,
)
from .progress import loading
from .text import result_console, write_section

SHOWN = 6
"""Elements of an output that are printed."""
ROWS = 8
"""Rows of classes that are printed of an output, such as those of a batch. Outputs of detectors have many rows."""


class _Run(click.Command):
    """The command, which says how inputs are given where a second file follows the model."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        try:
            return super().parse_args(ctx, args)
        except click.UsageError as error:
            if type(error) is not click.UsageError or ctx.params.get("model") is None:
                raise
            raise click.UsageError(f"{error.message}. An input follows -i: -i FILE, or -i NAME=FILE", ctx) from error


@click.command(cls=_Run)
@options(model_or_folder, input_options, shape_options, fallback_option, device_option)
@click.option(
    "-o", "--output-dir", type=click.Path(file_okay=False, path_type=Path), help="Folder to write each output to, as NAME.npy."
)
@click.option(
    "--labels", type=click.Path(exists=True, dir_okay=False, path_type=Path), help="Names of classes, one a line or JSON."
)
@click.option("--top", type=click.IntRange(1), help="Number of most likely classes to print.  [default: 5 with --labels]")
@click.option("--profile", is_flag=True, help="Run once more, step by step, and print what took how long.")
@failing_well
def run(
    model: Path,
    output_dir: Path | None,
    labels: Path | None,
    top: int | None,
    profile: bool,
    fallback: Any,
    device: str,
    simplify: Any,
    **rest: Any,
) -> None:
    """Run MODEL once and print its outputs."""
    given = values(model, rest)
    names = {} if labels is None else read_labels(labels)
    with open_context(device) as context, loading(model) as progress:
        loaded = load_model_or_folder(model, context, given, fallback=fallback, simplify=simplify, progress=progress)
        with loaded:
            feeds = given.feeds(loaded.inputs)
            results = loaded.run(feeds)
            watched = loaded.profile(feeds) if profile else None
            placement = loaded.placement.summary()
    console = result_console()
    write_section(console, "Model", [("adapter", context.description), ("nodes", placement)])
    write_section(console, "Inputs without a value", given.notes)
    write_section(console, "Outputs", [(name, described(array)) for name, array in results.items()])
    if labels is not None or top is not None:
        scored = {name: array for name, array in results.items() if has_scores(array)}
        for name, scores in scored.items():
            rows = scores.reshape(-1, scores.shape[-1])
            for place, row in zip(np.ndindex(scores.shape[:-1]), rows[:ROWS], strict=False):
                ranked, softmax = classes(row, names, top or 5)
                which = f"{list(place)}" if len(rows) > 1 else ""
                write_section(console, f"Classes by {name}{which}{', after softmax' if softmax else ''}", ranked)
            if len(rows) > ROWS:
                click.echo(
                    f"{name}: the first {ROWS} of {len(rows)} rows of {scores.shape[-1]} classes; -o FOLDER writes all scores"
                )
        most = max((scores.shape[-1] for scores in scored.values()), default=0)
        if not scored:
            click.echo("no output has scores of classes")
        elif labels is not None and len(names) < most:
            click.echo(f"{labels} names {len(names)} of {most} classes")
        elif labels is not None and len(names) > most:
            click.echo(f"{labels} names {len(names)} classes, but the output has {most}: names may be shifted")
    if watched is not None:
        click.echo(watched)
    if output_dir is not None:
        for path in write_arrays(output_dir, results):
            click.echo(f"written: {path}")


def has_scores(array: Array) -> bool:
    """Return whether an output may have scores of classes: wider integers are indices, and truth values are no scores."""
    scored = array.dtype.kind == "f" or (array.dtype.kind != "b" and array.dtype.itemsize == 1)
    return scored and array.ndim > 0 and array.shape[-1] > 1


def described(array: Array) -> str:
    """Return an array's type, its shape and some of its elements."""
    text = f"{array.dtype}{list(array.shape)}"
    if array.size:
        numbers = array.astype(np.float64)
        first = ", ".join(f"{v:.6g}" for v in numbers.ravel()[:SHOWN].tolist())
        text += f"  {first}{', ...' if array.size > SHOWN else ''}"
        if array.size > SHOWN:
            text += f"  (from {numbers.min():.6g} to {numbers.max():.6g}, mean {numbers.mean():.6g})"
    return text


def read_labels(path: Path) -> dict[int, str]:
    """Return the names of classes in a file: one a line, or a JSON list, or a JSON object by number."""
    try:
        text = path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise click.BadParameter(f"{path} is not UTF-8: {error}", param_hint="--labels") from error
    if path.suffix.lower() != ".json":
        return dict(enumerate(line.strip() for line in text.rstrip().splitlines()))
    try:
        content = json.loads(text)
        found: Mapping[Any, Any] = dict(enumerate(content)) if isinstance(content, list) else content  # pyright: ignore[reportUnknownArgumentType] - JSON of any kind
        # A Hugging Face config.json has them under this name; some files give a list of identifier and name.
        found = found.get("id2label", found)
        return {int(i): n[-1] if isinstance(n, list) else str(n) for i, n in found.items()}  # pyright: ignore[reportUnknownVariableType] - JSON of any kind
    except (ValueError, TypeError, AttributeError) as error:
        raise click.BadParameter(f"{path}: neither a list of names nor names by number: {error}") from error


def classes(row: Array, names: Mapping[int, str], top: int) -> tuple[list[tuple[str, str]], bool]:
    """Return probability and name of the best classes of a row of scores, and whether a softmax was needed."""
    given = row.astype(np.float64)
    chances = probabilities(given)
    best = np.argsort(-chances, kind="stable")[:top].tolist()
    ranked = [(f"{chances[i]:.4f}", f"{names[i]} ({i})" if i in names else f"class {i}") for i in best]
    return ranked, chances is not given


def probabilities(scores: Array) -> Array:
    """Return scores as they are if they are probabilities, else their softmax."""
    if np.all(scores >= 0) and abs(scores.sum() - 1) < 1e-3:
        return scores
    raised = np.exp(scores - scores.max())
    return raised / raised.sum()


def write_arrays(folder: Path, arrays: Mapping[str, Array]) -> list[Path]:
    """Write arrays as NAME.npy. Characters that file names cannot have become "_"."""
    folder.mkdir(parents=True, exist_ok=True)
    written: list[Path] = []
    for name, array in arrays.items():
        stem = base = re.sub(r"[^\w.-]", "_", name).lstrip(".") or "output"
        number = 1
        while folder / f"{stem}.npy" in written:
            number += 1
            stem = f"{base}_{number}"
        path = folder / f"{stem}.npy"
        np.save(path, array)
        written.append(path)
    return written
