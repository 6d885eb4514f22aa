"""Source trees and the golden plans made with them, which are kept in the user's cache."""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
import threading
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import platformdirs

from tests.golden.catalog import graphs
from tests.golden.worker import GRAPHS, file_name

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

REPOSITORY = Path(__file__).resolve().parents[2]

PACKAGE = ("webnn_wgpu", "shaders", "pyproject.toml")
"""The parts of a tree that decide about plans."""

DEFINITIONS = ("tests/golden", "tests/data/caps", "examples/models.py")
"""The parts of this checkout that decide, beside the graphs, about models and about the form of the results."""

KEPT = 30
"""Results of so many trees are kept."""


@dataclass(frozen=True)
class Tree:
    """The package at one state.

    Attributes:
        name: for people.
        folder: where it lies.
        key: a digest of the package, its shaders and the models' definitions: where its results are kept.
    """

    name: str
    folder: Path
    key: str

    @property
    def results(self) -> Path:
        """The folder of its results."""
        return cache_folder() / self.key


def cache_folder() -> Path:
    """Return the folder of all results."""
    return Path(os.environ.get("WEBNN_WGPU_GOLDEN", platformdirs.user_cache_dir("webnn_wgpu_golden")))


def working_tree() -> Tree:
    """Return the checkout as it is, with what is not committed yet."""
    return tree_at(REPOSITORY, "the working tree")


def tree_at(folder: Path, name: str) -> Tree:
    """Return the package that lies in a folder."""
    return Tree(name, folder, _key(folder))


@contextmanager
def revision(name: str) -> Iterator[Tree]:
    """Give the package of a git revision, in a folder that is there inside the `with` block alone.

    Raises:
        ValueError: git knows no such revision.
    """
    done = subprocess.run(
        ["git", "archive", "--format=tar", name, "--", *PACKAGE], cwd=REPOSITORY, capture_output=True, check=False
    )
    if done.returncode:
        raise ValueError(f"{name}: {done.stderr.decode().strip()}")
    with tempfile.TemporaryDirectory(prefix="golden-", ignore_cleanup_errors=True) as folder:
        with tarfile.open(fileobj=io.BytesIO(done.stdout)) as archive:
            # The first releases of Python 3.11 know no filters.
            filters = {"filter": "data"} if hasattr(tarfile, "data_filter") else {}
            archive.extractall(folder, **filters)
        yield tree_at(Path(folder), name)


def make(tree: Tree, tasks: Sequence[tuple[str, str]], jobs: int, progress: Callable[[int, int], None]) -> None:
    """Make the golden plans that are not there yet.

    Args:
        tree: the package to make them with.
        tasks: pairs of model and record.
        jobs: processes to make them in.
        progress: called with the number of finished and of all tasks.

    Raises:
        RuntimeError: a process ended early.
    """
    tree.results.mkdir(parents=True, exist_ok=True)
    (tree.results / GRAPHS).write_bytes(_graphs())
    os.utime(tree.results)
    _forget()
    missing = [task for task in tasks if not (tree.results / file_name(*task)).exists()]
    done = 0
    lock = threading.Lock()

    def follow(process: subprocess.Popen[str], share: Sequence[tuple[str, str]]) -> None:
        nonlocal done
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write("".join(f"{model} {device}\n" for model, device in share))
        process.stdin.close()
        for _ in process.stdout:
            with lock:
                done += 1
                progress(done, len(missing))

    # Neighbors have the same model, whose definition a process keeps; the costly ones are shared out evenly.
    models = sorted({model for model, _ in missing})
    shares = [[task for task in missing if models.index(task[0]) % jobs == i] for i in range(min(jobs, len(models)))]
    processes = [start(tree) for _ in shares]
    threads = [threading.Thread(target=follow, args=pair) for pair in zip(processes, shares, strict=True)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if any(process.wait() for process in processes):
        raise RuntimeError(f"golden plans of {tree.name} could not be made; see above")


def start(tree: Tree, **environment: str) -> subprocess.Popen[str]:
    """Start a worker. What users set for the package is kept from it: plans must not depend on that."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("WEBNN_WGPU_", "PYTHONPATH"))}
    command = [sys.executable, str(Path(__file__).with_name("worker.py")), str(tree.folder), str(tree.results)]
    return subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env={**kept, **environment}, cwd=tree.folder
    )


def load(tree: Tree, model: str, device: str) -> dict[str, Any]:
    """Return golden plans that `make` made."""
    return json.loads(gzip.decompress((tree.results / file_name(model, device)).read_bytes()))


def _key(folder: Path) -> str:
    """Return a digest of a tree's package and this checkout's definitions."""
    found = hashlib.sha256(sys.version.encode())
    found.update(_graphs())
    for root, parts in ((folder, PACKAGE), (REPOSITORY, DEFINITIONS)):
        for part in parts:
            paths = sorted((root / part).rglob("*")) if (root / part).is_dir() else [root / part]
            for path in paths:
                if path.is_file() and "__pycache__" not in path.parts:
                    found.update(f"{path.relative_to(root)}\0{path.stat().st_size}\0".encode())
                    found.update(path.read_bytes())
    return found.hexdigest()[:20]


@cache
def _graphs() -> bytes:
    return gzip.compress(json.dumps(graphs()).encode(), 4, mtime=0)


def _forget() -> None:
    """Remove the results that were used longest ago."""
    folders = sorted((path for path in cache_folder().iterdir() if path.is_dir()), key=lambda path: -path.stat().st_mtime)
    for folder in folders[KEPT:]:
        shutil.rmtree(folder, ignore_errors=True)
