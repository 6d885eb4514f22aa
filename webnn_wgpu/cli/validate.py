"""`webnn-wgpu validate`: all faults of a graph file."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click

from webnn_wgpu import MLTypeError, NotSupportedError

from .inputs import pairs, size_of
from .models import failing_well
from .text import amount


@click.command()
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--weights", type=click.Path(exists=True, dir_okay=False, path_type=Path), help="File of weights.")
@click.option("--manifest", type=click.Path(exists=True, dir_okay=False, path_type=Path), help="Manifest of the weights.")
@click.option(
    "-f",
    "--override-dim",
    "dims",
    multiple=True,
    metavar="NAME=SIZE",
    callback=pairs("SIZE", size_of),
    help="Size of a dimension.",
)
@click.option("--format", "form", type=click.Choice(["text", "json"]), default="text", show_default=True)
@click.pass_context
@failing_well
def validate(
    click_context: click.Context, file: Path, weights: Path | None, manifest: Path | None, dims: dict[str, int], form: str
) -> None:
    """Check the .webnn or .json file FILE: names, operators, options, shapes, types and weights. Nothing is run.

    Exits with 0 and one line, or with 1 and all faults, one a line, as FILE:LINE:COLUMN.
    """
    from webnn_wgpu.frontends.loading import SUFFIXES, WEBNN
    from webnn_wgpu.frontends.webnn import check

    if file.suffix.lower() in SUFFIXES - WEBNN:
        raise click.BadParameter(f"{file} is no .webnn or .json file; `webnn-wgpu check` takes models", param_hint="FILE")
    try:
        checked = check(file, weights=weights, manifest=manifest, override_dims=dims)
    except MLTypeError as error:
        faults = [_fault(each) for each in getattr(error, "faults", (error,))]
    except NotSupportedError as error:
        faults = [_fault(error)]
    else:
        faults = []
        line = (
            f"OK {checked.name}: {_count(checked.inputs, 'input')}, {_count(checked.outputs, 'output')},"
            f" {_count(checked.operators, 'operator')}, {_count(checked.constants, 'constant')}"
            f" ({amount(checked.constant_bytes)})"
        )
        click.echo(line if form == "text" else json.dumps({"valid": True, "faults": []}, indent=2))
    if faults:
        lines = [fault["message"] for fault in faults]
        click.echo("\n".join(lines) if form == "text" else json.dumps({"valid": False, "faults": faults}, indent=2))
        click_context.exit(1)


def _fault(error: Any) -> dict[str, str]:
    location = getattr(error, "location", None)
    return {
        "file": "" if location is None else location.file,
        "position": "" if location is None else location.position,
        "rule": error.rule,
        "got": error.got,
        "allowed": error.allowed,
        "hint": error.hint,
        "message": str(error),
    }


def _count(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"
