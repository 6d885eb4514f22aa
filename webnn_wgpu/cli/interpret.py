"""`webnn-wgpu interpret`: a kernel of a model, run by the interpreter, statement by statement if wanted."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from .models import (
    device_option,
    failing_well,
    fallback_option,
    input_options,
    load_model_or_folder,
    model_or_folder,
    no_kernel,
    open_context,
    options,
    shape_options,
    values,
)
from .progress import loading


def _triple(_context: click.Context, parameter: click.Parameter, text: str | None) -> tuple[int, int, int] | None:
    if text is None:
        return None
    parts = text.split(",")
    if not 1 <= len(parts) <= 3 or not all(part.strip().isdigit() for part in parts):
        raise click.BadParameter(f"{text!r} is not of the form X,Y,Z", param=parameter)
    x, y, z = (*map(int, parts), 0, 0)[:3]
    return x, y, z


@click.command()
@options(model_or_folder, input_options, shape_options, fallback_option, device_option)
@click.option("--kernel", required=True, metavar="NAME_OR_LABEL", help="The kernel, or the operator that it computes.")
@click.option("--workgroup", callback=_triple, metavar="X,Y,Z", help="Run this workgroup alone.")
@click.option("--break", "lines", type=int, multiple=True, metavar="LINE", help="Stop before this line of the kernel's WGSL.")
@click.option("--invocation", callback=_triple, metavar="X,Y,Z", help="The invocation that stops, by global_invocation_id.")
@failing_well
def interpret(
    model: Path,
    kernel: str,
    workgroup: tuple[int, int, int] | None,
    lines: tuple[int, ...],
    invocation: tuple[int, int, int] | None,
    fallback: Any,
    device: str,
    simplify: Any,
    **rest: Any,
) -> None:
    """Run a kernel of MODEL in an interpreter that finds races and accesses out of bounds.

    The kernels before it run on the device. With --break or --invocation one invocation stops, and a prompt asks for commands.
    Exits with 1 if something is found.
    """
    from webnn_wgpu.debug import Prompt
    from webnn_wgpu.debug import interpret as run
    from webnn_wgpu.frontends.timing import watched

    given = values(model, rest)
    stops = bool(lines) or invocation is not None
    prompt = Prompt(lambda: click.prompt("", default="", prompt_suffix="> ", show_default=False), click.echo)

    with open_context(device) as context, loading(model) as progress:
        loaded = load_model_or_folder(model, context, given, fallback=fallback, simplify=simplify, progress=progress)
        with loaded, watched() as watch:
            loaded.run(given.feeds(loaded.inputs))
            graph = next((graph for _, graph in watch.runs if graph.kernels.matching(kernel)), None)
            if graph is None:
                raise click.BadParameter(no_kernel(kernel), param_hint="--kernel")
            found = run(
                graph,
                watch.inputs[graph],
                kernel=kernel,
                workgroups=None if workgroup is None else [workgroup],
                breakpoints=lines,
                invocation=invocation,
                on_stop=prompt if stops else None,
            )
    click.echo(str(found))
    if found.no_stop:
        click.echo(f"`webnn-wgpu kernels {model} --show {kernel}` prints the WGSL and the workgroups")
    if found.findings:
        raise SystemExit(1)
