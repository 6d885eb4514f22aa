"""`webnn-wgpu profile`: the times of a model's kernels, and their bounds."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from webnn_wgpu.core.wording import counted
from webnn_wgpu.inspection import GraphProfile, joined

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
    written_file,
)
from .progress import loading
from .text import result_console


@click.command()
@options(model_or_folder, input_options, shape_options, fallback_option, device_option)
@click.option("-r", "--runs", default=5, show_default=True, type=click.IntRange(1), help="Runs; times are medians.")
@click.option("--top", default=20, show_default=True, type=click.IntRange(0), help="Slowest kernels to print.")
@click.option("--html", type=written_file, help="Write a report with tables and plots.")
@click.option("--trace", type=written_file, help="Write a trace for ui.perfetto.dev and chrome://tracing.")
@click.option("--json", "json_path", type=written_file, help="Write the profile as JSON, for --compare.")
@click.option("--plots", type=click.Path(file_okay=False, path_type=Path), help="Write the plots as SVG into this folder.")
@click.option("--compare", type=click.Path(exists=True, dir_okay=False, path_type=Path), help="An earlier profile's JSON.")
@failing_well
def profile(
    model: Path,
    runs: int,
    top: int,
    html: Path | None,
    trace: Path | None,
    json_path: Path | None,
    plots: Path | None,
    compare: Path | None,
    fallback: Any,
    device: str,
    simplify: Any,
    **rest: Any,
) -> None:
    """Time each kernel of MODEL on the device, with bytes and operations per second, and its bound.

    Of a model with several graphs, between which the host computes, it is the kernels of all.
    """
    from webnn_wgpu.frontends.timing import watched
    from webnn_wgpu.inspection.plots import require_matplotlib

    if plots is not None:
        require_matplotlib()
    # What is no UTF-8 is no profile either.
    earlier = None if compare is None else GraphProfile.from_json(compare.read_text(encoding="utf-8", errors="replace"))
    given = values(model, rest)
    with open_context(device) as context, loading(model) as progress:
        loaded = load_model_or_folder(model, context, given, fallback=fallback, simplify=simplify, progress=progress)
        with loaded, watched() as watch:
            loaded.run(given.feeds(loaded.inputs))
            if not watch.inputs:
                raise click.ClickException(f"{model.name} has no graph that runs on the device")
            found = joined([graph.profile(inputs, runs=runs) for graph, inputs in watch.inputs.items()])
    console = result_console()
    console.print(found.slowest(top) if earlier is None else earlier.compare(found))
    if earlier is None and top < len(found.kernels):
        click.echo(f"{top} of {counted(len(found.kernels), 'kernel')}; --top {len(found.kernels)} prints all")
    if earlier is None and found.excess():
        click.echo(found.excess())
    if html is not None:
        found.to_html(html, model.name)
    if trace is not None:
        found.to_perfetto(trace)
    if json_path is not None:
        json_path.write_text(found.to_json() + "\n", encoding="utf-8")
    written = [path for path in (html, trace, json_path) if path is not None]
    if plots is not None:
        plots.mkdir(parents=True, exist_ok=True)
        for what in ("roofline", "timeline", "memory"):
            written.append(plots / f"{what}.svg")
            written[-1].write_text(found.plot(what), encoding="utf-8")
    for path in written:
        click.echo(f"written: {path}")
