"""Kernels as AMD's compiler makes them, on a machine without an AMD GPU. `make hardware` installs what it takes.

python -m tests.hardware MODEL.onnx --family navi21       a table of the model's dispatches
python -m tests.hardware --golden --family navi31         all kernels of the golden graphs: refused ones and spills
python -m tests.hardware MODEL.onnx --isa FOLDER          the instructions of each kernel, a file for each
python -m tests.hardware MODEL.onnx --occupancy           the dispatches with too few subgroups for a GPU of 40 compute units
python -m tests.hardware MODEL.onnx --beside onnxruntime  the same beside the kernels of onnxruntime's WebGPU provider
python -m tests.hardware --update                         rewrite the budgets that the tests compare with
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from tests.hardware.beside import VARIABLE, side_by_side, their_rows
from tests.hardware.collecting import caps_of, dispatches, golden_models
from tests.hardware.compiler import Compiler
from tests.hardware.families import FAMILIES, Family
from tests.hardware.occupancy import SUBGROUPS, filling_share, narrow_dispatches
from tests.hardware.report import BUDGETS, Row, compile_all, exceeded, shares_of_work, worst

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; return the exit status: 1 where a kernel is refused or spills registers."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.hardware", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("models", nargs="*", metavar="MODEL", help="ONNX files, or names of golden models")
    parser.add_argument("--golden", action="store_true", help="all golden models")
    parser.add_argument("--family", action="append", choices=sorted(FAMILIES), help="default: navi21; may be repeated")
    parser.add_argument("--top", type=int, default=20, help="how many dispatches to list, those with most work first")
    parser.add_argument("--occupancy", action="store_true", help="list the dispatches that do not fill a GPU instead")
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
    models = [*options.models, *(golden_models() if options.golden else [])]
    if not models:
        parser.error("name a model, or give --golden")
    if options.beside and not all(model.endswith(".onnx") for model in models):
        parser.error("--beside takes ONNX files")
    rows = {name: _rows(FAMILIES[name], models) for name in options.family or ["navi21"]}
    for name, own in rows.items():
        if options.beside:
            _print_beside(FAMILIES[name], own, models, options.top)
        else:
            _print(FAMILIES[name], own, options.top, occupancy=options.occupancy)
        if options.isa:
            _write_instructions(options.isa / name, own)
    if options.json:
        options.json.write_text(json.dumps({name: [row.record() for row in own] for name, own in rows.items()}, indent=1))
    return int(any(_is_faulty(row) for own in rows.values() for row in own))


def _is_faulty(row: Row) -> bool:
    return row.compiled is None or row.compiled.spills > 0 or row.compiled.scratch_bytes > 0


def _rows(family: Family, models: Sequence[str]) -> list[Row]:
    with Compiler(family) as compiler:
        caps = caps_of(compiler.adapter, family.subgroup)
        return compile_all(compiler, dispatches(models, caps), _progress(family.name))


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
    budgets = {}
    for family in FAMILIES.values():
        rows = _rows(family, golden_models())
        budgets[family.name] = worst(rows)
        print("\n".join(exceeded(family, rows, budgets)))
    BUDGETS.write_text(json.dumps(budgets, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
