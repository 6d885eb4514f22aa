"""AMD's instructions for the package, which shows them beside a kernel's WGSL: `python -m tests.hardware.listing FAMILY`.

The first line of stdout is `{"architecture": name}`, or `{"error": text}` where the family is unknown or something is missing.
Each line `{"wgsl": text}` of stdin gets a line `{"facts", "loops", "instructions"}`, or `{"error": text}` for a refused kernel.
"""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Any

from tests.hardware.assembly import assembly, loop_trees
from tests.hardware.compiler import CompileError, Compiler
from tests.hardware.families import FAMILIES

if TYPE_CHECKING:
    from tests.hardware.assembly import LoopTree
    from tests.hardware.compiler import Compiled


def main() -> None:
    """Compile the kernels on stdin."""
    family = FAMILIES.get(sys.argv[1])
    missing = family.missing if family else f"the family must be one of {', '.join(FAMILIES)}"
    if not family or missing:
        _write({"error": missing})
        return
    with Compiler(family) as compiler:
        _write({"architecture": f"{family.name} ({family.architecture})"})
        for line in sys.stdin:
            try:
                _write(listed(compiler.compile(json.loads(line)["wgsl"])))
            except CompileError as error:
                _write({"error": str(error)})


def listed(compiled: Compiled) -> dict[str, Any]:
    """Return the figures of a kernel and its instructions, as data."""
    facts = {
        "vector registers": compiled.registers,
        "spilled registers": compiled.spills,
        "scratch bytes": compiled.scratch_bytes,
        "workgroup memory": f"{compiled.local_bytes} bytes",
        "subgroup": f"{compiled.subgroup} invocations",
        "subgroups per SIMD": compiled.waves,
    }
    return {"facts": facts, "loops": [*map(_loop, loop_trees(compiled.text))], "instructions": assembly(compiled.text)}


def _loop(tree: LoopTree) -> dict[str, Any]:
    """Return the figures of a loop and of those in it. The counts of an outer loop include one iteration of each inner one."""
    loop = tree.loop
    figures = {
        "multiply-adds": loop.multiply_adds,
        "issue slots": loop.slots,
        "local bytes": loop.local_bytes,
        "global bytes": loop.global_bytes,
        "barriers": loop.barriers,
    }
    return {"label": loop.label, "figures": figures, "inner": [*map(_loop, tree.inner)]}


def _write(answer: dict[str, Any]) -> None:
    print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()
