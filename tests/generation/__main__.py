"""Writes the operator methods of `webnn_wgpu/api/operators` from the operators' documentation: `python -m tests.generation`.

It also writes the numbers of operators into the README. The definitions in `webnn_wgpu/ops` are edited, and this is run
after it. A test compares the files with the definitions.
"""

from __future__ import annotations

import re
from pathlib import Path

from tests.generation.modules import generated
from tests.generation.readme import counted

REPOSITORY = Path(__file__).resolve().parents[2]


def main() -> None:
    """Write the files that differ, and print their names, with the next step for those of a new group or module."""
    written = False
    missing = unregistered()
    for module in missing:
        print(f"{module}: not registered, so import it in webnn_wgpu/ops/__init__.py, list it in _MODULES, and run this again")
    for path, text in generated().items():
        file = REPOSITORY / path
        if not file.exists() or file.read_text(encoding="utf-8") != text:
            new = not file.exists() and file.parent.is_relative_to(REPOSITORY / "webnn_wgpu" / "api")
            file.write_text(text, encoding="utf-8")
            written = True
            package = Path(path).parent / "__init__.py"
            print(f"{path}: new, so add its class to the bases in {package}" if new else path)
    readme = REPOSITORY / "README.md"
    text = readme.read_text(encoding="utf-8")
    if counted(text) != text:
        readme.write_text(counted(text), encoding="utf-8")
        written = True
        print(readme.name)
    if not written and not missing:
        print("nothing changed: all files agree with the operators")


def unregistered() -> list[str]:
    """Return the modules of operators that `_MODULES` in `webnn_wgpu/ops/__init__.py` does not list."""
    folder = REPOSITORY / "webnn_wgpu" / "ops"
    registry = (folder / "__init__.py").read_text(encoding="utf-8").partition("_MODULES = (")[2].partition("\n)")[0]
    listed = set(re.findall(r"^    (\w+),$", registry, re.MULTILINE))
    return [
        path.relative_to(REPOSITORY).as_posix()
        for path in sorted(folder.glob("[!_]*.py"))
        if path.stem not in listed and re.search(r"^OPS\b", path.read_text(encoding="utf-8"), re.MULTILINE)
    ]


if __name__ == "__main__":
    main()
