"""`webnn-wgpu view`: a model as a page to look at."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from webnn_wgpu import MLGraph

from .models import (
    device_option,
    failing_well,
    fallback_option,
    input_options,
    language_option,
    load_model,
    model_argument,
    open_context,
    options,
    shape_options,
    values,
    written_file,
)
from .progress import loading

if TYPE_CHECKING:
    from collections.abc import Sequence


@dataclass
class _ModelRun:
    """A model with the graphs that it ran: bodies of loops whose rounds the host counts are among them."""

    name: str
    graphs: Sequence[MLGraph]
    placement: Sequence[Any]


@click.command()
@options(model_argument, input_options, shape_options, fallback_option, device_option)
@click.option("-o", "--output", type=written_file, help="The page.  [default: MODEL.view.html in this folder]")
@click.option("--profile", is_flag=True, help="Time every kernel, and color the operators by it.")
@click.option("--diff", "compared", is_flag=True, help="Compare every operator with numpy, and color them by their error.")
@click.option("--export-dot", type=written_file, help="Write the graph for Graphviz, too.")
@language_option
@click.option("--open", "opened", is_flag=True, help="Open the page in the browser.")
@failing_well
def view(
    model: Path,
    output: Path | None,
    profile: bool,
    compared: bool,
    export_dot: Path | None,
    languages: tuple[str, ...],
    opened: bool,
    fallback: Any,
    device: str,
    simplify: Any,
    **rest: Any,
) -> None:
    """Write a page that shows MODEL as it was built and as it runs, with all kernels, memory and passes."""
    from webnn_wgpu import debug
    from webnn_wgpu.exporters.graphviz import to_dot
    from webnn_wgpu.frontends.timing import watched

    given = values(model, rest)
    target = output or Path(f"{model.stem}.view.html")  # MODEL.html is the page of `convert`
    with open_context(device) as context, loading(model) as progress:
        loaded = load_model(model, context, given, fallback=fallback, simplify=simplify, progress=progress)
        with loaded, watched() as watch:
            loaded.run(given.feeds(loaded.inputs))
            graphs = [graph for graph in watch.inputs if not graph.destroyed]
            if not graphs:
                raise click.ClickException(f"{model.name} has no graph that runs on the device")
            shown = _ModelRun(loaded.name, graphs, loaded.placement)
            profiles = [graph.profile(watch.inputs[graph], runs=3) for graph in graphs] if profile else None
            diffs = [debug.diff(graph, watch.inputs[graph]) for graph in graphs] if compared else None
            debug.view(shown, target, profile=profiles, diff=diffs, languages=languages)
            dots = [to_dot(graph) for graph in graphs] if export_dot else []
    click.echo(f"written: {target}")
    for i, dot in enumerate(dots):
        assert export_dot is not None
        path = export_dot.with_stem(f"{export_dot.stem}{i}") if len(dots) > 1 else export_dot
        path.write_text(dot + "\n", encoding="utf-8")
        click.echo(f"written: {path}")
    if opened:
        click.launch(str(target))
