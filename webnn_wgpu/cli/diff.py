"""`webnn-wgpu diff`: a model's outputs against those of another implementation."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import click
import numpy as np
from rich import box
from rich.table import Table
from rich.text import Text

from webnn_wgpu import NotSupportedError, ml

from .inputs import Array, GivenInputs
from .models import (
    DEVICES,
    device_option,
    failing_well,
    fallback_option,
    input_options,
    is_tfjs,
    is_webnn,
    json_option,
    load_model,
    model_argument,
    open_context,
    options,
    shape_options,
    values,
)
from .progress import loading
from .text import result_console

AGAINST = ("onnxruntime", "onnx", "reference")


@dataclass(frozen=True, kw_only=True)
class Difference:
    """How far an output is from the expected one.

    Attributes:
        output: its name.
        shape, expected_shape: the sizes.
        absolute: the largest difference of two elements.
        relative: the largest difference in terms of the expected element.
        scaled: the largest difference in terms of the largest expected element.
        cosine: of the angle between the two.
        close: whether every element is within tolerance.
        note: a further fault.
    """

    output: str
    shape: list[int]
    expected_shape: list[int]
    absolute: float
    relative: float
    scaled: float
    cosine: float
    close: bool
    note: str = ""


def _tolerance(_context: click.Context, parameter: click.Parameter, value: float) -> float:
    if math.isnan(value):  # which is in every range
        raise click.BadParameter("nan is no tolerance", param=parameter)
    return value


@click.command()
@options(model_argument, input_options, shape_options, fallback_option, device_option, json_option)
@click.option(
    "--against",
    type=click.Choice(AGAINST),
    help="onnxruntime's CPU, the onnx package's reference, or numpy here.  [default: onnxruntime if installed, else onnx]",
)
@click.option(
    "--rtol",
    default=1e-3,
    show_default=True,
    type=click.FloatRange(0),
    callback=_tolerance,
    help="Tolerance in terms of the expected element.",
)
@click.option(
    "--atol", default=1e-4, show_default=True, type=click.FloatRange(0), callback=_tolerance, help="Tolerance beside it."
)
@click.option("--bisect", is_flag=True, help="Compare operator by operator too, and name the first that is wrong.")
@click.option(
    "--repro", type=click.Path(file_okay=False, path_type=Path), help="Where --bisect writes programs that show what is wrong."
)
@click.pass_context
@failing_well
def diff(
    click_context: click.Context,
    model: Path,
    fallback: Any,
    device: str,
    as_json: bool,
    against: str | None,
    rtol: float,
    atol: float,
    bisect: bool,
    repro: Path | None,
    simplify: Any,
    **rest: Any,
) -> None:
    """Compare the outputs of MODEL with those of another implementation.

    With --bisect also each kernel with the results of the numpy reference for its operands and, with onnxruntime, each
    node. Exits with 0 if all are within tolerance, else with 1.
    """
    if repro is not None and not bisect:
        raise click.UsageError("--repro needs --bisect, which finds the operators to reproduce")
    given = values(model, rest)
    read: dict[str, Any] = {"fallback": fallback, "simplify": simplify}
    name, expect = other(against, given, read)
    with open_context(device) as context, loading(model) as progress:
        with load_model(model, context, given, **read, progress=progress) as loaded:
            feeds = given.feeds(loaded.inputs)
            results = loaded.run(feeds)
            placement = loaded.placement.summary()
            reports = _bisected(loaded, feeds, name, repro) if bisect else []
        adapter = context.description
    expected = expect(model, feeds)
    found = [difference(n, results[n], expected[n], rtol, atol) for n in results]
    if as_json:
        record = {"model": model.name, "adapter": adapter, "against": name, "rtol": rtol, "atol": atol}
        wrong = [{"against": r.against, **_recorded(w)} for r in reports for w in r.wrong]
        record |= {"outputs": [_finite(asdict(d)) for d in found]} | ({"wrong": wrong} if bisect else {})
        click.echo(json.dumps(record, indent=2))
    else:
        console = result_console()
        console.print(_table(f"{model.name} on {adapter}, against {name}", found))
        click.echo(f"nodes: {placement}")
        for input_name, note in given.notes:
            click.echo(f"input without a value: {input_name}: {note}")
        for report in reports:
            click.echo(f"\n{report}")
        if not all(d.close for d in found) and not any(report.wrong for report in reports):
            click.echo(_advice(found, [report.against for report in reports]))
    click_context.exit(0 if all(d.close for d in found) and not any(report.wrong for report in reports) else 1)


def _advice(found: Sequence[Difference], compared: Sequence[str]) -> str:
    """Return the next step for outputs that differ although no operator is known to be wrong.

    Args:
        found: the differences of the outputs.
        compared: the implementations that agree operator by operator.
    """
    beyond_rounding = any(d.note or math.isinf(d.absolute) for d in found)
    tolerances = "--rtol and --atol set the tolerance"
    if not compared:
        narrow = f"\nModels of float16 or 8 bits may differ so far by rounding alone: {tolerances}"
        return f"next: --bisect names the first wrong operator{'' if beyond_rounding else narrow}"
    agreeing = "each node agrees by itself" if "onnxruntime" in compared else "each kernel agrees by itself"
    advice = (
        f"{agreeing}, but the outputs differ by more than rounding"
        if beyond_rounding
        else f"{agreeing}, so rounding errors probably add up, as in models of float16 or 8 bits: {tolerances}"
    )
    if "onnxruntime" not in compared:
        return f"{advice}\nnext: --against onnxruntime --bisect compares the nodes too"
    return f"{advice}: please report it" if beyond_rounding else advice


def _bisected(model: Any, feeds: Mapping[str, Array], against: str, folder: Path | None) -> list[Any]:
    """Return the results of the comparison of a model's nodes and kernels."""
    from webnn_wgpu import debug

    others = ["onnxruntime"] if against.startswith("onnxruntime") else []
    return [debug.diff(model, feeds, other, folder=folder) for other in (*others, "reference")]


def _finite(record: Mapping[str, Any]) -> dict[str, Any]:
    """Return a record with None for NaN and infinity, which JSON does not have."""
    return {name: None if isinstance(v, float) and not math.isfinite(v) else v for name, v in record.items()}


def _recorded(wrong: Any) -> dict[str, Any]:
    """Return the JSON form of a wrong operator."""
    names = ("label", "op", "labels", "kernels", "type", "wrong", "max_abs_error", "max_ulp", "repro_path")
    return _finite({name: getattr(wrong, name) for name in names})


Expect = Callable[[Path, Mapping[str, Array]], dict[str, Array]]


def other(against: str | None, given: GivenInputs, read: Mapping[str, Any]) -> tuple[str, Expect]:
    """Return the implementation of a name, and its name. By default onnxruntime where it is installed.

    Args:
        against: the name.
        given: sizes and files of the model.
        read: how `load` reads the model, for an implementation that has it read.
    """
    if against in (None, "onnxruntime"):
        from webnn_wgpu.debug.onnx_nodes import onnxruntime, run_onnxruntime

        try:
            name = f"onnxruntime {onnxruntime().__version__}"
        except NotSupportedError as error:
            if against is not None:
                hint = "pip install onnxruntime, or compare with another: --against onnx"
                raise NotSupportedError(error.rule, hint=hint) from error
        else:
            return name, lambda model, feeds: run_onnxruntime(_as_onnx(model, given, feeds), feeds)
    if against == "reference":

        def by_reference(model: Path, feeds: Mapping[str, Array]) -> dict[str, Array]:
            with (
                ml.create_context(**DEVICES["reference"]) as context,
                load_model(model, context, given, **read) as loaded,
            ):
                return loaded.run(feeds)

        return "the numpy reference", by_reference

    def by_onnx(model: Path, feeds: Mapping[str, Array]) -> dict[str, Array]:
        from onnx.reference import ReferenceEvaluator

        try:
            evaluator: Any = ReferenceEvaluator(_as_onnx(model, given, feeds))
            results: list[Array] = evaluator.run(None, dict(feeds))
            return dict(zip(evaluator.output_names, results, strict=True))
        except Exception as error:  # the onnx package has a kind of its own for every reason
            hint = "pip install onnxruntime, or compare with --against reference"
            if isinstance(error, IndexError):
                hint = "Give indices by -i, or other sizes by -f NAME=SIZE"
            raise NotSupportedError(
                f"onnx's reference cannot run the model: {type(error).__name__}: {error}", hint=hint
            ) from error

    return "onnx's reference", by_onnx


def _as_onnx(model: Path, given: GivenInputs, feeds: Mapping[str, Array]) -> Any:
    """Return a model for onnxruntime: the path of an ONNX model, or the bytes of the model that another one is written as."""
    if not (is_webnn(model) or is_tfjs(model)):
        return str(model)
    from webnn_wgpu.exporters.onnx import to_onnx

    with ml.create_context(**DEVICES["reference"]) as context, load_model(model, context, given) as loaded:
        loaded.run(feeds)
        return to_onnx(loaded.graphs[-1]).SerializeToString()


def difference(name: str, result: Array, expected: Array, rtol: float, atol: float) -> Difference:
    """Compare two arrays: NaN equals NaN, infinities equal themselves, and integers of one type are compared exactly."""
    shapes = (list(result.shape), list(expected.shape))
    if shapes[0] != shapes[1]:
        return Difference(
            output=name, shape=shapes[0], expected_shape=shapes[1], absolute=math.nan, relative=math.nan, scaled=math.nan,
            cosine=math.nan, close=False, note="another shape",
        )  # fmt: skip
    a, b = result.astype(np.float64).ravel(), expected.astype(np.float64).ravel()
    note = "" if result.dtype == expected.dtype else f"{result.dtype}, not {expected.dtype}"
    with np.errstate(invalid="ignore", divide="ignore"):
        if not note and result.dtype.kind in "iu":
            # As float64, large ones that differ may be the same. Differences of 64 bits wrap to what they are.
            more, less = (f(result, expected).ravel().astype(np.uint64) for f in (np.maximum, np.minimum))
            apart = (more - less).astype(np.float64)
            same = apart == 0
            close = same | (apart <= atol + rtol * np.abs(b))
        else:
            same = (a == b) | (np.isnan(a) & np.isnan(b))
            apart = np.where(same, 0.0, np.abs(a - b))
            apart = np.where(np.isnan(apart), np.inf, apart)
            close = np.isclose(a, b, rtol, atol, equal_nan=True)
        relative = np.where(same, 0.0, apart / np.abs(b))
        finite = np.isfinite(a) & np.isfinite(b)
        lengths = np.linalg.norm(a[finite]) * np.linalg.norm(b[finite])
        cosine = float(a[finite] @ b[finite] / lengths) if lengths else float(same.all())
        largest = np.abs(b[finite]).max(initial=0.0)
    absolute = float(apart.max(initial=0.0))
    return Difference(
        output=name,
        shape=shapes[0],
        expected_shape=shapes[1],
        absolute=absolute,
        relative=float(np.nan_to_num(relative, nan=np.inf, posinf=np.inf).max(initial=0.0)),
        scaled=absolute / float(largest) if largest else absolute,
        cosine=cosine,
        close=bool(close.all()) and not note,
        note=note,
    )


def _table(title: str, found: list[Difference]) -> Table:
    table = Table(title=title, title_justify="left", box=box.SIMPLE_HEAD)
    table.add_column("output", overflow="fold")
    for column in ("shape", "absolute", "relative", "to largest", "cosine", "verdict"):
        table.add_column(column, justify="right", no_wrap=True)
    for d in found:
        verdict = "close" if d.close else f"APART{': ' + d.note if d.note else ''}"
        figures = (f"{d.absolute:.3g}", f"{d.relative:.3g}", f"{d.scaled:.3g}", f"{d.cosine:.9f}")
        table.add_row(Text(d.output), Text(str(d.shape)), *figures, verdict)
    return table
