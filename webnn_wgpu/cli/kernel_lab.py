"""`webnn-wgpu kernel-lab`: a kernel is written in an editor and, whenever it is saved, compiled, compared and timed."""

from __future__ import annotations

import re
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from time import sleep, strftime
from typing import Any

import click

from webnn_wgpu import MLGraph, WebNNError

from .inputs import Array
from .models import (
    device_option,
    failing_well,
    fallback_option,
    input_options,
    load_model,
    model_argument,
    no_kernel,
    open_context,
    options,
    shape_options,
    values,
)
from .progress import loading

POLL_S = 0.2
"""How often a file is looked at."""

VALUES = 20
"""Most values of `dbg` statements that are shown."""


@click.command("kernel-lab")
@options(model_argument, input_options, shape_options, fallback_option, device_option)
@click.argument("kernel", metavar="NAME_OR_LABEL")
@click.option("--file", type=click.Path(dir_okay=False, path_type=Path), help="Where the source is, or is put. [NAME.wgsl]")
@click.option("--where", default="all(global == vec3<u32>(0u))", show_default=True, help="Which invocations `dbg` shows.")
@click.option(
    "--once", is_flag=True, help="Try the file as it is, and end; with 1 if it does not compile or its results differ."
)
@click.pass_context
@failing_well
def kernel_lab(
    click_context: click.Context,
    model: Path,
    kernel: str,
    file: Path | None,
    where: str,
    once: bool,
    fallback: Any,
    device: str,
    simplify: Any,
    **rest: Any,
) -> None:
    """Try another source for one kernel of MODEL, whenever it is saved, until it is interrupted.

    The kernel's source is written to a file unless that exists. Each time it is saved it is compiled, its results are compared
    with the original's on the same inputs, and both are timed. An error of compilation is reported with its line.
    """
    given = values(model, rest)
    with open_context(device) as context, ExitStack() as stack:
        with loading(model) as progress:
            loaded = load_model(model, context, given, fallback=fallback, simplify=simplify, progress=progress)
        stack.enter_context(loaded)
        graph, name, feeds = _kernel(loaded, given.feeds(loaded.inputs), kernel)
        path = file or Path(f"{re.sub(r'[^A-Za-z0-9_.-]', '_', name)}.wgsl")
        if not path.exists():
            path.write_text(graph.kernels[name].map_source(dbg=True).text, encoding="utf-8")
            click.echo(f"written: {path}")
        if once:
            click_context.exit(0 if _try(graph, feeds, name, path, where) else 1)
        click.echo(f"{path} is tried whenever it is saved. Ctrl-C ends.")
        seen: object = None
        while True:
            seen = _changed(path, seen)
            click.echo(f"\n{strftime('%H:%M:%S')}")
            _try(graph, feeds, name, path, where)


def _kernel(loaded: Any, feeds: Mapping[str, Any], wanted: str) -> tuple[MLGraph, str, dict[str, Array]]:
    """Run a model and return the graph that a kernel belongs to, the kernel's name, and that graph's inputs."""
    from webnn_wgpu.debug.trial import inputs_of
    from webnn_wgpu.frontends.timing import watched

    with watched() as watch:
        loaded.run(feeds)
    graphs = list(dict.fromkeys(graph for _, graph in watch.runs))
    found = [(graph, each.name) for graph in graphs for each in graph.kernels.matching(wanted)]
    if len(found) != 1:
        names = ", ".join(repr(name) for _, name in found)
        raise click.BadParameter(
            f"{wanted!r} means several kernels: {names}" if found else no_kernel(wanted), param_hint="NAME_OR_LABEL"
        )
    graph, name = found[0]
    return graph, name, inputs_of(graph, lambda: loaded.run(feeds))


def _try(graph: MLGraph, feeds: Mapping[str, Array], name: str, path: Path, where: str) -> bool:
    """Try a file, print the result, and return whether the results are the same."""
    from webnn_wgpu import debug
    from webnn_wgpu.kernels.dbg import dbg_statements

    try:
        trial = debug.try_kernel(graph, feeds, name, path)
        click.echo(str(trial))
        if dbg_statements(path.read_text(encoding="utf-8")):
            found = debug.trace(graph, feeds, name, wgsl=path, where=where)
            click.echo("\n".join(str(found).splitlines()[: VALUES + 2]))
    except (WebNNError, OSError) as error:
        click.secho(str(error), fg="red")
        return False
    return bool(trial)


def _changed(path: Path, seen: object) -> object:
    """Wait until a file is another than it was seen, and return its state for the next call."""
    while True:
        try:
            stat = path.stat()
            found = (stat.st_mtime_ns, stat.st_size)
            if found != seen:
                return found
        except OSError:  # an editor is just about to put another in its place
            pass
        sleep(POLL_S)
