"""`webnn-wgpu ops`: all operators, and their support on the present adapter."""

from __future__ import annotations

import json
from typing import Any

import click
from rich import box
from rich.table import Table

from webnn_wgpu import MLContext, NotSupportedError
from webnn_wgpu.core.data_types import CONSTANT_TYPES
from webnn_wgpu.ops import OPS
from webnn_wgpu.plan.forced import forceable

from .models import context_with
from .text import result_console


@click.command()
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object, operator name to support limits.")
def ops(as_json: bool) -> None:
    """List all operators with the data types their first operand may have on the present adapter.

    Extension operators, those of `builder.ext`, stand last, as x.NAME.
    """
    try:
        context: MLContext = context_with()
    except NotSupportedError as error:
        raise click.ClickException(str(error)) from error
    with context:
        limits = context.op_support_limits()
        extensions = {f"x.{name}": members for name, members in limits["extensions"].items()}
        listed = {op.name: limits[op.name] for op in OPS.values() if not (op.internal or op.extension)} | extensions
        if as_json:
            click.echo(json.dumps(listed))
            return
        console = result_console()
        console.print(_table(context.description, listed))


def _table(title: str, listed: dict[str, Any]) -> Table:
    table = Table(title=title, title_justify="left", box=box.SIMPLE_HEAD)
    table.add_column("operator", no_wrap=True)
    for data_type in CONSTANT_TYPES:
        table.add_column(data_type.replace("float", "f").replace("uint", "u").replace("int", "i"), justify="center")
    table.add_column("kernel variants")
    for name, members in sorted(listed.items(), key=lambda row: (row[0].startswith("x."), row[0])):
        taken: list[str] = next(iter(members.values()))["dataTypes"]
        marks = ["x" if data_type in taken else "" for data_type in CONSTANT_TYPES]
        table.add_row(name, *marks, ", ".join(forceable().get(name, ())))
    return table
