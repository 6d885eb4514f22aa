"""AMD's instructions for a kernel, from the hardware instrument of the repository (`tests/hardware`), which needs no GPU."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from ...core.errors import NotSupportedError, OperationError
from .loops import SourceLoop, lines_of_loops, source_loops
from .programs import LineProgram

_REPOSITORY = Path(__file__).resolve().parents[3]
_INSTRUMENT = "tests.hardware.listing"


class AmdCompiler:
    """A process with AMD's compiler for one family of GPUs. A context manager: leaving it ends the process."""

    def __init__(self, family: str) -> None:
        """Start the process.

        Args:
            family: a family that the instrument knows, such as `navi21`.

        Raises:
            NotSupportedError: the instrument is not built, or does not know the family.
        """
        if not (_REPOSITORY / "tests" / "hardware" / "listing.py").is_file():
            raise NotSupportedError(
                "AMD's instructions need the hardware instrument, which only a clone of the repository contains",
                got=str(_REPOSITORY),
                hint="Clone the repository, and run `make hardware` in it",
            )
        self._program = LineProgram("the hardware instrument", [sys.executable, "-m", _INSTRUMENT, family], _REPOSITORY)
        if "error" in self._program.greeting:
            self.close()
            raise NotSupportedError(self._program.greeting["error"], got=family)
        self.architecture: str = self._program.greeting["architecture"]

    def instructions(self, wgsl: str) -> str:
        """Return the statistics of a kernel and of its loops, with the lines of WGSL of each loop, and the instructions.

        Raises:
            OperationError: the compiler, or wgpu before it, refuses the kernel.
        """
        answer = self._program.ask({"wgsl": wgsl})
        if "error" in answer:
            raise OperationError("AMD's compiler refuses the kernel", got=str(answer["error"]))
        lines = lines_of_loops(answer["loops"], source_loops(wgsl))
        facts = [f"; {name}: {value}" for name, value in answer["facts"].items()]
        head = [f"; {self.architecture}", *facts, *_loops(answer["loops"], lines)]
        return "\n".join([*head, *_marked(answer["instructions"], wgsl, lines)])

    def close(self) -> None:
        """End the process."""
        self._program.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None) -> None:
        self.close()


def _loops(loops: Sequence[Mapping[str, Any]], lines: Mapping[str, SourceLoop], depth: int = 1) -> Iterator[str]:
    """Yield a line of figures for each loop, inner ones indented."""
    for loop in loops:
        label = loop["label"]
        place = f"{label}, {lines[label]} of the WGSL" if label in lines else label
        yield f";{' ' * depth}loop at {place}: " + ", ".join(f"{name} {value}" for name, value in loop["figures"].items())
        yield from _loops(loop["inner"], lines, depth + 2)


def _marked(instructions: str, wgsl: str, lines: Mapping[str, SourceLoop]) -> Iterator[str]:
    """Yield the instructions. Before each loop stands the line of WGSL with which the loop begins."""
    source = wgsl.splitlines()
    for instruction in instructions.splitlines():
        loop = lines.get(instruction.removesuffix(":"))
        if loop:
            yield f"; {loop} of the WGSL: {source[loop.first - 1].strip()}"
        yield instruction
