"""`webnn-wgpu kernels`: the kernels that a model runs, and their sources, in WGSL and in the languages below WebGPU."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from webnn_wgpu.core.settings import forced_target

from .models import (
    device_option,
    failing_well,
    fallback_option,
    input_options,
    language_option,
    load_model_or_folder,
    model_or_folder,
    no_kernel,
    open_context,
    options,
    shape_options,
    values,
)
from .progress import loading

if TYPE_CHECKING:
    from collections.abc import Sequence

    from webnn_wgpu import MLGraph
    from webnn_wgpu.debug import Kernel
    from webnn_wgpu.debug.translation import Translator
from .text import result_console


@click.command()
@options(model_or_folder, input_options, shape_options, fallback_option, device_option)
@click.option("--show", metavar="NAME_OR_LABEL", help="Print a kernel, or all that compute an operator, with their sources.")
@click.option("--dump", type=click.Path(file_okay=False, path_type=Path), help="Write all sources into this folder.")
@language_option
@failing_well
def kernels(
    model: Path,
    show: str | None,
    dump: Path | None,
    languages: tuple[str, ...],
    fallback: Any,
    device: str,
    simplify: Any,
    **rest: Any,
) -> None:
    """List the kernels that a run of MODEL starts, in order, with the operators they compute."""
    if languages and show is None and dump is None:
        raise click.UsageError("--as translates the kernels of --show or --dump: give one of them")
    from webnn_wgpu.debug.translation import Translator
    from webnn_wgpu.frontends.timing import watched

    given = values(model, rest)
    with open_context(device) as context, loading(model) as progress:
        loaded = load_model_or_folder(model, context, given, fallback=fallback, simplify=simplify, progress=progress)
        # The run settles which graphs there are: the host may count the rounds of a loop.
        with loaded, watched() as watch:
            loaded.run(given.feeds(loaded.inputs))
        graphs = list(dict.fromkeys(graph for _, graph in watch.runs))
        if languages and context.caps.is_software and forced_target() is None:
            click.echo(
                "note: these are kernels of the software adapter; WEBNN_WGPU_TARGET=hardware shows those of GPUs", err=True
            )
    with Translator(languages) as translator:
        _write(graphs, show, dump, translator)


def _write(graphs: Sequence[MLGraph], show: str | None, dump: Path | None, translator: Translator) -> None:
    if show is not None:
        found = [kernel for graph in graphs for kernel in graph.kernels.matching(show)]
        if not found:
            raise click.BadParameter(no_kernel(show), param_hint="--show")
        # AMD's listings refer to lines of the WGSL.
        is_numbered = any(language.family for language in translator.languages)
        for kernel in found:
            wgsl = numbered(kernel.wgsl) if is_numbered else kernel.wgsl
            click.echo("\n\n".join([str(kernel), wgsl, *_translations(kernel, translator).values()]))
    elif dump is None:
        console = result_console()
        for graph in graphs:
            console.print(graph.kernels)
    if dump is not None:
        for i, graph in enumerate(graphs):
            folder = dump / f"graph{i}" if len(graphs) > 1 else dump
            files = graph.kernels.dump(folder)
            for file, kernel in zip(files, graph.kernels.values(), strict=True):
                for suffix, text in _translations(kernel, translator).items():
                    file.with_suffix(f".{suffix}").write_text(text, encoding="utf-8")
            click.echo(f"written: {len(files)} kernels in {folder}")


def numbered(text: str) -> str:
    r"""Return text with the number of each line.

    >>> print(numbered("a\n\nb"))
       1  a
       2
       3  b
    """
    return "\n".join(f"{number:4}  {line}".rstrip() for number, line in enumerate(text.splitlines(), 1))


def _translations(kernel: Kernel, translator: Translator) -> dict[str, str]:
    """Return the kernel in each language of a translator, by the suffix of the language's files."""
    return {language.suffix: translator.translate(kernel.wgsl, language) for language in translator.languages}
