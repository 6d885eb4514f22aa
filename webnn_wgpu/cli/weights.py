"""`webnn-wgpu weights`: files of weights, their content and their conversion."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click
from rich import box
from rich.table import Table
from rich.text import Text

from .convert import report
from .models import failing_well
from .text import amount, result_console

existing = click.Path(exists=True, dir_okay=False, path_type=Path)
output = click.Path(dir_okay=False, path_type=Path)
manifest_option = click.option("--manifest", type=existing, help="Manifest of a .weights file.  [default: searched beside it]")


@click.group()
def weights() -> None:
    """List, pack, unpack and convert files of weights of WebNN graphs."""


@weights.command("list")
@click.argument("file", type=existing)
@manifest_option
@failing_well
def list_weights(file: Path, manifest: Path | None) -> None:
    """List the tensors of FILE: a .weights file, its manifest, or safetensors."""
    from webnn_wgpu.formats.folders import statistics
    from webnn_wgpu.formats.weights import opened

    table = Table(box=box.SIMPLE_HEAD)
    for column in ("key", "type", "shape", "bytes", "smallest", "largest", "NaN"):
        table.add_column(column, justify="left" if column in ("key", "type", "shape") else "right", overflow="fold")
    tensors = opened(file, manifest).tensors
    for key, tensor in tensors.items():
        first = tensor.offset
        smallest, largest, nans = statistics(tensor)
        shape = str(list(tensor.shape))
        table.add_row(
            Text(key),
            tensor.data_type,
            shape,
            f"{first}..{first + len(tensor.data)}",
            f"{smallest:.6g}",
            f"{largest:.6g}",
            str(nans),
        )
    console = result_console()
    console.print(table)
    click.echo(f"{len(tensors)} tensors, {amount(sum(len(t.data) for t in tensors.values()))}")


@weights.command()
@click.argument("source", metavar="IN", type=existing)
@click.argument("target", metavar="OUT", type=output)
@click.option(
    "--weights",
    "kind",
    type=click.Choice(["weights", "safetensors"]),
    default="weights",
    show_default=True,
    help="Kind of file.",
)
@click.option("--min-bytes", default=1024, show_default=True, type=click.IntRange(0), help="Smaller constants stay in OUT.")
@failing_well
def extract(source: Path, target: Path, kind: Any, min_bytes: int) -> None:
    """Write the graph IN as OUT, with its constants in files of weights beside it."""
    from webnn_wgpu.exporters.weights import move_constants
    from webnn_wgpu.formats.reading import ConstantArrays, read

    document = read(source)
    report(move_constants(document, ConstantArrays(document), target, kind, min_bytes))


@weights.command()
@click.argument("source", metavar="IN", type=existing)
@click.argument("target", metavar="OUT", type=output)
@click.option("--weights", "file", type=existing, help="File of weights.  [default: searched beside IN]")
@manifest_option
@failing_well
def inline(source: Path, target: Path, file: Path | None, manifest: Path | None) -> None:
    """Write the graph IN as OUT, with all its constants in it."""
    from webnn_wgpu.exporters.weights import move_constants
    from webnn_wgpu.formats.reading import ConstantArrays, read

    document = read(source)
    report(move_constants(document, ConstantArrays(document, file, manifest), target, "inline", 0))


@weights.command()
@click.argument("folder", metavar="DIR", type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.argument("target", metavar="OUT", type=output)
@failing_well
def pack(folder: Path, target: Path) -> None:
    """Write the tensors of a folder, NAME.bin with NAME.meta.json each, as OUT and its manifest."""
    from webnn_wgpu.exporters.weights import write_tensors
    from webnn_wgpu.formats.folders import folder_tensors

    report(write_tensors(folder_tensors(folder), target))


@weights.command()
@click.argument("file", type=existing)
@click.argument("folder", metavar="DIR", type=click.Path(file_okay=False, path_type=Path))
@manifest_option
@failing_well
def unpack(file: Path, folder: Path, manifest: Path | None) -> None:
    """Write each tensor of FILE into a folder, as NAME.bin and NAME.meta.json."""
    from webnn_wgpu.exporters.weights import unpack_tensors
    from webnn_wgpu.formats.weights import opened

    files = unpack_tensors(opened(file, manifest).tensors, folder)
    click.echo(f"written: {len(files)} files in {folder}", err=True)


@weights.command("convert")
@click.argument("source", metavar="IN", type=existing)
@click.argument("target", metavar="OUT", type=output)
@manifest_option
@failing_well
def convert_weights(source: Path, target: Path, manifest: Path | None) -> None:
    """Write the file of weights IN as OUT: .weights with a manifest, or .safetensors."""
    from webnn_wgpu.exporters.weights import write_tensors
    from webnn_wgpu.formats.weights import opened

    report(write_tensors(opened(source, manifest).tensors, target))
