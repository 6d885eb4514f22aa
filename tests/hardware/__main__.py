"""Kernels as AMD's compiler makes them, on a machine without an AMD GPU. `make hardware` installs what it takes.

python -m tests.hardware MODEL.onnx --family navi21       a table of the model's dispatches
python -m tests.hardware --golden --family navi31         all kernels of the golden graphs: refused ones and spills
python -m tests.hardware MODEL.onnx --isa FOLDER          the instructions of each kernel, a file for each
python -m tests.hardware MODEL.onnx --occupancy           the dispatches with too few subgroups for a GPU of 40 compute units
python -m tests.hardware MODEL.onnx --beside onnxruntime  the same beside the kernels of onnxruntime's WebGPU provider
python -m tests.hardware --bench --family all --summary   a table of the benchmark's models: kernels, spills, scratch memory
python -m tests.hardware --update                         rewrite the budgets that the tests compare with
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.golden import bench
from tests.golden.rewritten import changes
from tests.hardware.beside import VARIABLE, side_by_side, their_rows
from tests.hardware.collecting import caps_of, dispatches, golden_models
from tests.hardware.compiler import Compiler
from tests.hardware.families import FAMILIES, Family
from tests.hardware.occupancy import SUBGROUPS, filling_share, narrow_dispatches
from tests.hardware.report import BUDGETS, Row, compile_all, exceeded, shares_of_work, worst
from tests.hardware.summary import summary

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

ALL = "all"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; return the exit status: 1 where a kernel is refused or spills registers."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.hardware", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("models", nargs="*", metavar="MODEL", help="ONNX files, or names of golden models")
    parser.add_argument("--golden", action="store_true", help="all golden models")
    parser.add_argument("--bench", action="store_true", help=f"all ONNX models of the folder that {bench.VARIABLE} names")
    parser.add_argument(
        "--family", action="append", choices=[*sorted(FAMILIES), ALL], help="default: navi21; may be repeated; all: each family"
    )
    parser.add_argument("--top", type=int, default=20, help="how many dispatches to list, those with most work first")
    parser.add_argument("--occupancy", action="store_true", help="list the dispatches that do not fill a GPU instead")
    parser.add_argument("--summary", action="store_true", help="print a table of the models and families instead")
    parser.add_argument("--isa", type=Path, metavar="FOLDER", help="write the instructions of each kernel there")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all rows there")
    parser.add_argument(
        "--beside",
        choices=["onnxruntime"],
        help=f"compare with the kernels of its WebGPU provider; {VARIABLE} names a Python that has onnxruntime-webgpu",
    )
    parser.add_argument("--update", action="store_true", help="rewrite the budgets from the golden graphs")
    options = parser.parse_args(arguments)
    if options.update:
        return _update()
    if options.bench and not bench.names():
        parser.error(bench.note())
    models = [*options.models, *(golden_models() if options.golden else [])]
    models += [str(bench.path(name)) for name in bench.names()] if options.bench else []
    if not models:
        parser.error("name a model, or give --golden or --bench")
    if options.beside and not all(model.endswith(".onnx") for model in models):
        parser.error("--beside takes ONNX files")
    chosen = options.family or ["navi21"]
    compiled = {name: _compiled(FAMILIES[name], models) for name in (FAMILIES if ALL in chosen else chosen)}
    rows = {name: own for name, (_, own) in compiled.items()}
    if options.summary:
        print(summary(rows, {name: driver for name, (driver, _) in compiled.items()}, datetime.date.today().isoformat()))
    for name, own in rows.items():
        if options.beside:
            _print_beside(FAMILIES[name], own, models, options.top)
        elif not options.summary:
            _print(FAMILIES[name], own, options.top, occupancy=options.occupancy)
        if options.isa:
            _write_instructions(options.isa / name, own)
    if options.json:
        options.json.write_text(json.dumps({name: [row.record() for row in own] for name, own in rows.items()}, indent=1))
    return int(any(_is_faulty(row) for own in rows.values() for row in own))


def _is_faulty(row: Row) -> bool:
    return row.compiled is None or row.compiled.spills > 0 or row.compiled.scratch_bytes > 0


def _compiled(family: Family, models: Sequence[str]) -> tuple[str, list[Row]]:
    """Return the driver of a family, and what its compiler makes of models."""
    with Compiler(family) as compiler:
        caps = caps_of(compiler.adapter, family.subgroup)
        return compiler.adapter["driver"], compile_all(compiler, dispatches(models, caps), _progress(family.name))


def _progress(name: str) -> Callable[[int], None]:
    def show(done: int) -> None:
        if sys.stderr.isatty():
            print(f"\r{name}: {done} kernels", end="", file=sys.stderr, flush=True)

    return show


def _print(family: Family, rows: Sequence[Row], top: int, *, occupancy: bool) -> None:
    kernels = {row.dispatch.wgsl: row for row in rows}
    faulty = [row for row in kernels.values() if _is_faulty(row)]
    print(
        f"{family.name} ({family.architecture}): {len(rows)} dispatches, {len(kernels)} kernels, "
        f"{len(faulty)} refused or spilling"
    )
    if occupancy:
        for model in dict.fromkeys(row.dispatch.model for row in rows):
            own = [row for row in rows if row.dispatch.model == model]
            share = filling_share(own)
            print(f"{model}: dispatches with at least {SUBGROUPS} subgroups of 32 make {share:.0%} of the operations")
            print("".join(f"{line}\n" for line in narrow_dispatches(own)), end="")
        return
    for share, row in sorted(zip(shares_of_work(rows), rows, strict=True), key=lambda pair: -pair[0])[:top]:
        print(row.text(share))
    for row in faulty:
        print(f"fault: {row.text(0)}")


def _print_beside(family: Family, rows: Sequence[Row], models: Sequence[str], top: int) -> None:
    python = os.environ.get(VARIABLE, sys.executable)
    for model in models:
        ours = [row for row in rows if row.dispatch.model == Path(model).stem]
        print(f"{Path(model).stem} on {family.name} ({family.architecture})")
        for line in side_by_side(family, ours, their_rows(family, Path(model).resolve(), python), top):
            print(line)


def _write_instructions(folder: Path, rows: Sequence[Row]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for i, row in enumerate({row.dispatch.wgsl: row for row in rows}.values()):
        if row.compiled:
            name = f"{i:03} {row.dispatch.template} {row.dispatch.label}".replace("/", "_")
            (folder / f"{name[:100]}.txt").write_text(f"{row.dispatch.wgsl}\n{row.compiled.text}")


def _update() -> int:
    before: dict[str, dict[str, Any]] = json.loads(BUDGETS.read_text())
    budgets: dict[str, dict[str, Any]] = {}
    for family in FAMILIES.values():
        _, rows = _compiled(family, golden_models())
        budgets[family.name] = worst(rows)
        for fault in exceeded(family, rows, budgets):
            print(fault)
    BUDGETS.write_text(json.dumps(budgets, indent=1) + "\n")
    print(changes("budgets of kernels", _by_kernel(before), _by_kernel(budgets), BUDGETS))
    return 0


def _by_kernel(budgets: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    return {f"{family} {kernel}": figures for family, own in budgets.items() for kernel, figures in own.items()}


if __name__ == "__main__":
    sys.exit(main())
