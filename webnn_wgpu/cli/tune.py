"""`webnn-wgpu tune`: which kernel variants are the fastest for a model on this device."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from webnn_wgpu import MLContext, Tuning
from webnn_wgpu.kernels.tuning import keep, tuning_files, tuning_for

from .models import (
    device_option,
    failing_well,
    fallback_option,
    input_options,
    load_model,
    open_context,
    options,
    shape_options,
    values,
    written_file,
)
from .progress import loading, progress_bar, progress_lines
from .text import result_console, write_section

CHOSEN = "marks the variant that graphs use: the default, unless the fastest one wins a second comparison with it by 5 %"


@click.command()
@click.argument("model", required=False, type=click.Path(exists=True, dir_okay=False, path_type=Path))
@options(input_options, shape_options, fallback_option, device_option)
@click.option(
    "-o",
    "--output",
    type=written_file,
    help="Write what was measured there, and not to the user's cache; NAME.tuning.json beside NAME.onnx is found by itself.",
)
@click.option("--show", is_flag=True, help="Measure nothing: print what a file says, or what is known of the device.")
@failing_well
def tune(model: Path | None, output: Path | None, show: bool, fallback: Any, device: str, simplify: Any, **rest: Any) -> None:
    """Measure the kernel variants for the operators of MODEL, and keep which are the fastest.

    Graphs that are built from then on use them. With --show, MODEL may be a file of measurements.

    Each variant of each operator is compiled and timed, which takes minutes. An interrupted command keeps nothing.
    """
    if show:
        with open_context(device) as context:
            for title, tuning in shown(model, context):
                write(title, tuning, tuning.mismatch(context.caps))
        return
    if model is None:
        raise click.UsageError("name a MODEL, or give --show for known measurements")
    given = values(model, rest)
    with open_context(device) as context:
        with loading(model) as progress:
            loaded = load_model(model, context, given, fallback=fallback, simplify=simplify, progress=progress)
        with loaded, progress_bar("Measuring") as progress:
            found = loaded.tune(given.feeds(loaded.inputs), save=False, progress=progress or progress_lines())
        if output is not None:
            found.save(output)
        file = output or keep(found, context.caps)
        write(f"written: {file}" if file else "not kept: no cache can be written to, and no -o FILE is given", found)


def shown(file: Path | None, context: MLContext) -> list[tuple[str, Tuning]]:
    """Return the results in a file, or without one those in the files that a device finds by itself."""
    if file is not None:
        beside = file if file.suffix == ".json" else file.with_suffix(".tuning.json")
        if not beside.is_file():
            message = f"{beside} does not exist: `webnn-wgpu tune {file} -o {beside}` writes it"
            raise click.ClickException(f"{message}, and `webnn-wgpu tune --show` prints the measurements in the cache")
        try:
            return [(str(beside), Tuning.load(beside))]
        except ValueError as error:
            raise click.ClickException(f"{beside} is no tuning: {error}") from error
    return [(str(place), tuning_for(context.caps, [place])) for place in tuning_files(context.caps)]


def write(title: str, tuning: Tuning, mismatch: str = "") -> None:
    """Print the choices under a title.

    Args:
        title: the file of the choices.
        tuning: the choices.
        mismatch: the reason why graphs ignore the choices, or an empty text.
    """
    rows = [("adapter", tuning.adapter), ("operators", str(len(tuning.choices))), ("star", CHOSEN)]
    if mismatch:
        rows.append(("ignored", f"{mismatch}: tune again"))
    write_section(result_console(), title, rows)
    for operator, measured in tuning.choices.items():
        times = sorted(measured.milliseconds.items(), key=lambda item: item[1])
        listed = [(f"{name}{' *' if name == measured.chosen else ''}", f"{ms:.4g} ms") for name, ms in times]
        write_section(result_console(), operator, listed)
