"""`webnn-wgpu export`: a model as a folder that browsers run."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import numpy as np

from webnn_wgpu import MLGraph, MLTypeError
from webnn_wgpu.frontends.images import NORMALIZATIONS

from .convert import report
from .inputs import GivenInputs
from .models import (
    device_option,
    failing_well,
    input_options,
    load_model,
    model_argument,
    open_context,
    options,
    shape_options,
    values,
)
from .run import read_labels

if TYPE_CHECKING:
    from collections.abc import Sequence

    from webnn_wgpu.core.data_types import Array
    from webnn_wgpu.exporters.web import PicturePage, SentencesPage
    from webnn_wgpu.frontends.description import ValueInfo

JAVASCRIPT = "webnn-js"


@click.command()
@options(model_argument)
@click.option(
    "--to",
    type=click.Choice(["web", JAVASCRIPT]),
    default="web",
    show_default=True,
    help="A folder that every browser with WebGPU runs, or a JavaScript module for browsers with WebNN.",
)
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path),
    required=True,
    help="The folder, which is created, or the JavaScript module.",
)
@click.option(
    "--record",
    default="webgpu",
    show_default=True,
    metavar="NAME|FILE",
    help="The devices that the folder is for: webgpu has WebGPU's default limits, webgpu-f16 the feature shader-f16 too, and"
    " software runs shaders on the CPU, here is this device. Or a file of capabilities.",
)
@click.option("--name", help="Name of the model.  [default: that of the file]")
@click.option(
    "--page",
    type=click.Choice(["auto", "check", "picture", "sentences"]),
    default="auto",
    show_default=True,
    help="What the page shows besides the check: a form for a picture or for sentences, where the inputs are those.",
)
@click.option(
    "--labels", type=click.Path(exists=True, dir_okay=False, path_type=Path), help="Names of classes, as run takes them."
)
@click.option(
    "--kv-cache",
    type=click.IntRange(1),
    metavar="TOKENS",
    help="Write a decoder with caches of so many tokens, which stay in the page. The page continues a list of tokens.",
)
@options(input_options, shape_options, device_option)
@failing_well
def export(
    model: Path,
    to: str,
    output: Path,
    record: str,
    name: str | None,
    page: str,
    labels: Path | None,
    kv_cache: int | None,
    device: str,
    **given: Any,
) -> None:
    """Write MODEL as a folder with a page, which any browser runs: kernels, plan, packed weights, and a player in JavaScript.

    The page shows the difference to the results of the device here.
    """
    simplify = given.pop("simplify")
    made = values(model, given)
    if to == JAVASCRIPT:
        from webnn_wgpu import convert

        if output.suffix.lower() not in (".mjs", ".js"):
            raise click.BadParameter("a JavaScript module has the suffix .mjs or .js", param_hint="-o")
        sizes = made.sizes
        files = convert(
            model, output, to="js", override_dims=sizes, weights_file=made.weights, manifest=made.manifest, simplify=simplify
        )
        report(files)
        return
    from webnn_wgpu.exporters import web
    from webnn_wgpu.frontends.common.module import writing_file

    options: dict[str, Any] = {"fallback": "error", "simplify": simplify, "kv_cache": kv_cache}
    with writing_file(), open_context(device) as context, load_model(model, context, made, **options) as loaded:
        feeds = made.feeds(loaded.inputs) if kv_cache is None else _one_token(loaded.inputs)
        if not loaded.graphs:
            loaded.run(feeds)  # This compiles a model with symbolic dimensions for these inputs.
        if kv_cache is None:
            form = _form(page, made, labels, loaded.graphs[-1]) if loaded.graphs else None
            written = web.write(loaded, output, record=record, name=name, inputs=feeds, page=form)
        else:
            written = web.write(loaded, output, record=record, name=name)
    for input_name, note in made.notes:
        click.echo(f"input without a value: {input_name}: {note}", err=True)
    report([output])
    click.echo(f"{len(written)} files. To open the page: python -m http.server -d {output}", err=True)


def _one_token(inputs: Sequence[ValueInfo]) -> dict[str, Array]:
    """Return the inputs of a decoder for one token: symbolic dimensions are 1."""
    shapes = {info: [size if isinstance(size, int) else 1 for size in info.shape or ()] for info in inputs}
    return {info.name: np.ones(shape, info.dtype) for info, shape in shapes.items()}


def _form(page: str, made: GivenInputs, labels: Path | None, graph: MLGraph) -> PicturePage | SentencesPage | None:
    """Return the form that the page shows. With "auto", inputs that are neither a picture nor sentences get none."""
    from webnn_wgpu.exporters.web import PicturePage, SentencesPage

    how = made.preprocessing
    mean, std = NORMALIZATIONS[how.normalization]
    names = {} if labels is None else read_labels(labels)
    picture = PicturePage(
        mean=how.mean or mean,
        std=how.std or std,
        fit=how.fit,
        layout=how.layout,
        bgr=how.bgr,
        labels=[names.get(i, "") for i in range(max(names, default=-1) + 1)],
    )
    if page == "sentences" and made.tokenizer is None:
        raise click.BadParameter("sentences need a tokenizer.json: name it with --tokenizer", param_hint="--page")
    forms = {"picture": picture, "sentences": made.tokenizer and SentencesPage(tokenizer=made.tokenizer)}
    if page != "auto":
        return forms.get(page)
    for form in filter(None, forms.values()):
        try:
            form.settings(graph.inputs, graph.outputs)
        except MLTypeError:
            continue
        return form
    return None
