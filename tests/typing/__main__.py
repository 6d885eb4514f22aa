"""The type checker: `python -m tests.typing` runs pyright over the modules that changed since it last found no error.

It takes a minute for the whole package. After a change it checks the changed modules and those that import them, directly or
by way of a package. Types that are inferred reach further in rare cases, so `--all`, which `make test` and `make lint` run,
checks all modules. Without a record of an earlier run all modules are checked too.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import subprocess
import sys
from importlib.metadata import distributions
from pathlib import Path
from typing import TYPE_CHECKING

import grimp

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = "webnn_wgpu"
PLUGIN = ".packaging/pytest"

RECORD = ROOT / "build" / "types.json"
"""The modules without errors: digests by path, and a digest of what else decides."""


def sources() -> dict[str, str]:
    """Return digests of all checked modules, by path."""
    paths = sorted(path for folder in (PACKAGE, PLUGIN) for path in (ROOT / folder).rglob("*.py"))
    return {path.relative_to(ROOT).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest() for path in paths}


def surroundings() -> str:
    """Return a digest of the settings, of Python and of all installed packages."""
    packages = sorted(f"{each.name} {each.version}" for each in distributions())
    text = "\n".join([sys.version, *packages, (ROOT / "pyproject.toml").read_text(encoding="utf-8")])
    return hashlib.sha256(text.encode()).hexdigest()


def affected(changed: set[str], importers: Mapping[str, set[str]]) -> set[str]:
    """Return changed modules and those that import them, directly or by way of a package, which only passes names on.

    Args:
        changed: the paths of modules.
        importers: the paths of the modules that import a module.
    """
    found = set(changed)
    open_ = list(changed)
    while open_:
        for importer in importers.get(open_.pop(), set()) - found:
            found.add(importer)
            if importer.endswith("/__init__.py"):
                open_.append(importer)
    return found


def _importers() -> dict[str, set[str]]:
    graph = grimp.build_graph(PACKAGE, exclude_type_checking_imports=False, cache_dir=str(ROOT / ".import_linter_cache"))
    return {_path_of(m): {_path_of(i) for i in graph.find_modules_that_directly_import(m)} for m in graph.modules}


def _path_of(module: str) -> str:
    path = module.replace(".", "/")
    return f"{path}/__init__.py" if (ROOT / path).is_dir() else f"{path}.py"


def to_check(found: Mapping[str, str], record: Mapping[str, str] | None) -> list[str] | None:
    """Return the paths of the modules to check; None for all.

    Args:
        found: the digests of the modules.
        record: those of the last run without errors; None if there was none with these surroundings.
    """
    if record is None or record.keys() - found.keys():
        return None
    return sorted(affected({path for path in found if record.get(path) != found[path]}, _importers()))


def _read(around: str) -> dict[str, str] | None:
    try:
        record = json.loads(RECORD.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return record["modules"] if record["surroundings"] == around else None


def main(arguments: Sequence[str]) -> int:
    """Run the type checker, and return its exit status."""
    parser = argparse.ArgumentParser(prog="python -m tests.typing", description="Run pyright over changed modules.")
    parser.add_argument("--all", action="store_true", help="check all modules")
    options = parser.parse_args(arguments)
    found, around = sources(), surroundings()
    paths = None if options.all else to_check(found, _read(around))
    if paths == []:
        print("types: no module has changed since the last check")
        return 0
    print(f"types: {'all' if paths is None else len(paths)} of {len(found)} modules are checked", flush=True)
    command = [sys.executable, "-m", "pyright", "--pythonpath", sys.executable, *(paths or [])]
    status = subprocess.run(command, cwd=ROOT, check=False).returncode
    if status == 0:
        RECORD.parent.mkdir(exist_ok=True)
        RECORD.write_text(json.dumps({"surroundings": around, "modules": found}), encoding="utf-8")
    return status


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
