"""`webnn-wgpu convert`: a model file as a file of another kind."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from .inputs import pairs, size_of
from .models import failing_well, options
from .text import amount

PRINTED = ("webnn", "json", "onnx", "js", "html", "py", "dot")
"""Kinds of files that can be printed."""

SUFFIXES = (".dot", ".html", ".js", ".json", ".mjs", ".mlpackage", ".onnx", ".py", ".webnn")


class _Largest(click.ParamType[tuple[str, int]]):
    """NAME=MAX, or "all"."""

    name = "NAME=MAX"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> tuple[str, int]:
        if value == "all":
            return "all", 0
        name, parted, size = str(value).rpartition("=")
        if not parted or not name or not size.isdecimal() or int(size) < 1:
            self.fail(f"{value!r} is not NAME=MAX or all", param, ctx)
        return name, int(size)


def _target(_context: click.Context, parameter: click.Parameter, value: str) -> str:
    suffix = Path(value).suffix.lower()
    if value != "-" and suffix not in SUFFIXES:
        raise click.BadParameter(f"unknown suffix {suffix!r}; there are {', '.join(SUFFIXES)}", param=parameter)
    return value


extension_option = click.option(
    "--extensions",
    type=click.Choice(["standard", "keep", "error"]),
    help="Operators that WebNN does not have: composed of WebNN's (default), kept as x.NAME, or refused.",
)


@click.command()
@click.argument("source", metavar="IN", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.argument("target", metavar="OUT", callback=_target)
@click.option("--to", type=click.Choice(PRINTED), help="Kind of file, where OUT is - for stdout.")
@click.option(
    "-f",
    "--override-dim",
    "dims",
    multiple=True,
    metavar="NAME=SIZE",
    callback=pairs("SIZE", size_of),
    help="Size of a symbolic or dynamic dimension. Others: MODEL.dims.json beside the model, else usual sizes by name.",
)
@click.option(
    "--dynamic",
    multiple=True,
    type=_Largest(),
    metavar="NAME=MAX|all",
    help="Keep the dimension NAME, of at most MAX; or keep all.",
)
@click.option("--weights", type=click.Choice(["auto", "weights", "safetensors", "inline"]), help="Where constants are written.")
@click.option("--weights-file", type=click.Path(exists=True, dir_okay=False, path_type=Path), help="Weights of IN.")
@click.option("--manifest", type=click.Path(exists=True, dir_okay=False, path_type=Path), help="Manifest of IN's weights.")
@click.option("--opset", type=click.IntRange(1), help="ONNX's operator set.  [default: 18, or 21 where it is needed]")
@click.option("--external-data/--no-external-data", default=None, help="Write ONNX initializers to OUT.data.")
@options(extension_option)
@click.option(
    "--operand-options",
    type=click.Choice(["names", "indices"]),
    help="Operands in options as names, or numbers for pywebnn 0.5.",
)
@click.option("--simplify", type=click.Choice(["onnxslim"]), help="Let a package simplify the ONNX model first.")
@click.option("--name", help="Name of the graph.")
@click.option("--quantized", is_flag=True, default=None, help="Remark in the file that the graph is quantized.")
@failing_well
def convert(
    source: Path, target: str, to: str | None, dims: dict[str, int], dynamic: Sequence[tuple[str, int]], **given: Any
) -> None:
    """Write IN, an ONNX model or a WebNN graph, as OUT. The suffix of OUT tells the kind of file. - prints it.

    OUT may be .webnn, .json, .onnx, .mlpackage, .mjs, .js, .html, .py or .dot.
    """
    from webnn_wgpu import convert as written

    kept: Any = "all" if ("all", 0) in dynamic else dict(dynamic)
    settings: dict[str, Any] = {"override_dims": dims, "dynamic": kept, **given}
    if target != "-":
        if to is not None:
            raise click.UsageError("--to is for OUT = -")
        report(written(source, target, **settings))
        return
    if to is None:
        raise click.UsageError("OUT is -: name a kind of file with --to")
    if to in ("webnn", "json", "js", "py"):
        settings["weights"] = settings["weights"] or "inline"
        if settings["weights"] != "inline":
            raise click.UsageError("a printed graph contains its constants: give --weights inline")
    if given["external_data"]:
        raise click.UsageError("a printed graph contains its constants: leave out --external-data")
    with tempfile.TemporaryDirectory() as folder:
        settings["name"] = settings["name"] or (source.stem if to in ("webnn", "json") else None)
        (file,) = written(source, Path(folder) / f"{source.stem}.{to}", to=to, **settings)
        sys.stdout.flush()
        click.echo(file.read_bytes(), nl=False)


def report(files: Sequence[Path]) -> None:
    """Print a line for each file that was written, to stderr."""
    for file in files:
        size = sum(f.stat().st_size for f in file.rglob("*") if f.is_file()) if file.is_dir() else file.stat().st_size
        click.echo(f"written: {file} ({amount(size)})", err=True)
