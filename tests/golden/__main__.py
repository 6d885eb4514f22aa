"""Golden plans: what a change does to plans and kernels. `python -m tests.golden --help` lists what it can do.

python -m tests.golden --against main            compare the working tree with a revision
python -m tests.golden --against main --diff     the same, with diffs of changed kernels
python -m tests.golden --show example/mlp nvidia print plans and kernels
python -m tests.golden --update                  rewrite tests/golden/digests.json
python -m tests.golden --collect                 rewrite tests/golden/patterns.json, the graphs of tests of passes
python -m tests.golden --list                    list models and records

Models of the benchmark are among them where the environment variable BENCH_MODELS names a folder of ONNX files.
"""

from __future__ import annotations

import argparse
import fnmatch
import json
import sys
from functools import partial
from typing import TYPE_CHECKING

from tests.golden import bench, digests, patterns, trees
from tests.golden.catalog import all_names, graphs
from tests.golden.comparing import compare
from tests.golden.records import RECORDS

if TYPE_CHECKING:
    from collections.abc import Sequence


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; return the exit status: 1 where plans differ."""
    options = _parser().parse_args(arguments)
    if options.collect:
        print(patterns.collect())
        return 0
    models = [name for name in all_names() if _chosen(name, options.models)]
    devices = [name for name in RECORDS if _chosen(name, options.records)]
    tasks = [(model, device) for model in models for device in devices]
    if options.list:
        print("models:", *models, sep="\n  ")
        print("records:", *devices, sep="\n  ")
        print(bench.note())
        return 0
    if options.show:
        return _show(*options.show)
    if options.update:
        print(digests.write())
        return 0
    if not tasks:
        print("no model or no record matches", file=sys.stderr)
        return 2
    try:
        with trees.revision(options.against) as base:
            return _compare(base, tasks, options)
    except (ValueError, RuntimeError) as error:
        print(error, file=sys.stderr)
        return 2


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m tests.golden", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    action = parser.add_mutually_exclusive_group(required=True)
    action.add_argument("--against", metavar="REV", help="print what differs from a git revision; exit with 1 if anything does")
    action.add_argument("--show", nargs=2, metavar=("MODEL", "RECORD"), help="print the plans and kernels of a model")
    action.add_argument("--update", action="store_true", help="rewrite the digests that the tests compare with")
    action.add_argument("--collect", action="store_true", help="take the graphs of tests of passes into patterns.json")
    action.add_argument("--list", action="store_true", help="list models and records")
    parser.add_argument("--models", default="*", metavar="PATTERNS", help="only these models: 'example/*,operator/conv2d'")
    parser.add_argument("--records", default="*", metavar="PATTERNS", help="only these records: 'nvidia,amd'")
    parser.add_argument("--diff", action="store_true", help="show the WGSL of changed kernels as unified diffs")
    parser.add_argument("--ignore", default="", metavar="FIELDS", help="fields of plans that do not count: 'params,reason'")
    parser.add_argument("--jobs", type=int, default=2, help="processes to use; default 2")
    return parser


def _chosen(name: str, patterns: str) -> bool:
    return any(fnmatch.fnmatchcase(name, pattern.strip()) for pattern in patterns.split(","))


def _compare(base: trees.Tree, tasks: Sequence[tuple[str, str]], options: argparse.Namespace) -> int:
    mine = trees.working_tree()
    if mine.key == base.key:
        print(f"nothing changed: package and shaders are those of {base.name}")
        return 0
    for tree in (base, mine):
        trees.make(tree, tasks, options.jobs, partial(_progress, tree.name))
    ignored = [name.strip() for name in options.ignore.split(",")]
    places: dict[str, list[str]] = {}
    new = 0
    for model, device in tasks:
        if found := compare(trees.load(base, model, device), trees.load(mine, model, device), ignored):
            new += bool(found.new)
            places.setdefault("\n".join(found.lines(diff=options.diff)), []).append(f"{model} on {device}")
    for text, found_in in places.items():
        print(f"{', '.join(found_in)}:")
        print("\n".join(f"  {line}" for line in text.splitlines()))
    differing = sum(map(len, places.values()))
    if not differing:
        print(f"nothing changed against {base.name}: {len(tasks)} golden plans are the same")
        return 0
    note = f", of which {new} are new" if new else ""
    print(f"{differing} of {len(tasks)} golden plans differ from {base.name}{note}")
    return 1


def _progress(name: str, done: int, total: int) -> None:
    if sys.stderr.isatty():
        print(f"\r{name}: {done} of {total}", end="\n" if done == total else "", file=sys.stderr, flush=True)


def _show(model: str, device: str) -> int:
    from tests.golden.dumping import dump

    found = dump(model, device, graphs())
    print(json.dumps(found["plans"], indent=2))
    for key, wgsl in found["kernels"].items():
        print(f"\n// kernel {key}\n{wgsl}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
