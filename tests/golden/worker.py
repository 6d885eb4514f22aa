"""A process that makes golden plans with the package of one source tree: `python worker.py TREE FOLDER`, tasks on stdin.

The tasks are lines "MODEL RECORD". Each becomes a file in FOLDER. The package and its shaders are those of TREE; the models and
this tool are those of the checkout that the worker lies in. FOLDER has GRAPHS, the models that are graphs: what makes them uses
the package of this checkout, which a worker has not.
"""

from __future__ import annotations

import gzip
import importlib
import json
import sys
import traceback
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence

HERE = Path(__file__).resolve().parents[2]

GRAPHS = "graphs.json.gz"


def file_name(model: str, device: str) -> str:
    """Return the name of the file that holds the golden plans of a model for a recorded device."""
    from tests.golden import bench

    kind, _, name = model.partition("/")
    version = f"-{bench.version(name)}" if kind == "bench" else ""
    return f"{kind}.{name}{version}@{device}.json.gz"


def take_package(tree: Path) -> None:
    """Import the package from `tree`, and from then on the tests and examples from this checkout.

    Raises:
        RuntimeError: another package was imported already.
    """
    sys.path[0] = str(tree)
    package = importlib.import_module("webnn_wgpu")
    if not Path(package.__file__ or "").resolve().is_relative_to(tree.resolve()):
        raise RuntimeError(f"webnn_wgpu came from {package.__file__}, not from {tree}")
    sys.path[0] = str(HERE)


def missing_operators(graphs: Sequence[dict[str, Any]]) -> list[str]:
    """Return the operators of graphs that the tree's package does not have."""
    from webnn_wgpu import MLGraphBuilder
    from webnn_wgpu.api.operators.ext import Extensions
    from webnn_wgpu.ops import OPS

    found: set[str] = set()
    for graph in graphs:
        found |= {node["op"] for node in graph.get("nodes", ()) if node["op"] not in OPS}
        method = graph.get("method", "")
        methods: type = Extensions if method.startswith("x.") else MLGraphBuilder
        if method and not hasattr(methods, method.removeprefix("x.")):
            found.add(method)
    return sorted(found)


def main() -> None:
    """Carry out the tasks on stdin."""
    tree, folder = Path(sys.argv[1]), Path(sys.argv[2])
    take_package(tree)
    from tests.golden.dumping import dump

    graphs = json.loads(gzip.decompress((folder / GRAPHS).read_bytes()))
    for line in sys.stdin:
        model, device = line.split()
        try:
            found: dict[str, Any] = dump(model, device, graphs)
        except Exception:  # a revision that lacks what a graph needs, which the comparison must show
            missing = missing_operators(graphs.get(model, ()))
            found = {"plans": [], "kernels": {}, "failure": traceback.format_exc(), "missing": missing}
        unfinished = folder / f".{file_name(model, device)}"
        unfinished.write_bytes(gzip.compress(json.dumps(found).encode(), 4, mtime=0))
        unfinished.replace(folder / file_name(model, device))
        print(model, device, flush=True)


if __name__ == "__main__":
    main()
