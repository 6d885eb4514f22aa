"""AMD's compiler for a family of GPUs, on a machine without one: WGSL in, registers, memory and loops out."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from tests.hardware.assembly import Loop, hot_loop
from tests.hardware.families import LAYER, NEWER_LIBRARIES, REPOSITORY, Family

if TYPE_CHECKING:
    from collections.abc import Mapping
    from types import TracebackType

_MANIFEST = Path(__file__).parent / "layer" / "null_gpu.json"


@dataclass(frozen=True, kw_only=True)
class Compiled:
    """What the compiler made of a kernel.

    Attributes:
        registers: vector registers of an invocation.
        spills: vector and scalar registers that did not fit and went to memory.
        scratch_bytes: memory of an invocation for spills and for arrays that are indexed dynamically.
        local_bytes: workgroup memory.
        subgroup: invocations of a subgroup.
        waves: subgroups that fit a SIMD at once, by registers and workgroup memory.
        loop: the innermost loop with the most multiply-adds; None where there is none, or no instructions are listed.
        text: the driver's listing of the pipeline.
    """

    registers: int
    spills: int
    scratch_bytes: int
    local_bytes: int
    subgroup: int
    waves: int
    loop: Loop | None
    text: str = field(repr=False)


class CompileError(RuntimeError):
    """The driver, or wgpu before it, refuses a kernel."""


def environment_of(family: Family, folder: Path) -> dict[str, str]:
    """Return the environment variables that give a process a device of a family; the layer writes to the folder.

    Statistics go to the file `statistics`, a line for each pipeline, and instructions to the folder `isa`.
    """
    (folder / "isa").mkdir()
    manifest = json.loads(_MANIFEST.read_text())
    manifest["layer"]["library_path"] = str(LAYER)
    (folder / "null_gpu.json").write_text(json.dumps(manifest))
    libraries = [str(NEWER_LIBRARIES)] if family.newer else []
    libraries += [path for path in [os.environ.get("LD_LIBRARY_PATH")] if path]
    return {
        "RADV_FORCE_FAMILY": family.name,
        "VK_DRIVER_FILES": str(family.driver),
        "VK_ICD_FILENAMES": str(family.driver),
        "VK_LAYER_PATH": str(folder),
        "VK_INSTANCE_LAYERS": "VK_LAYER_WEBNN_null_gpu",
        "NULL_GPU_STATS": str(folder / "statistics"),
        "NULL_GPU_ISA": str(folder / "isa"),
        "MESA_SHADER_CACHE_DISABLE": "true",
        "XDG_RUNTIME_DIR": str(folder),
        "LD_LIBRARY_PATH": ":".join(libraries),
    }


def compiled_of(found: Mapping[str, Any], family: Family) -> Compiled:
    """Return what a line of the layer's statistics says, with the listing of the pipeline as `text`."""
    text: str = found["text"]
    return Compiled(
        registers=found["VGPRs"],
        spills=found["Spilled VGPRs"] + found["Spilled SGPRs"],
        scratch_bytes=found["Scratch size"],
        local_bytes=found["LDS size"],
        subgroup=found["subgroup"],
        waves=found["Subgroups per SIMD"],
        loop=hot_loop(text) if family.listed else None,
        text=text,
    )


class Compiler:
    """A process with a device of one family. A context manager: leaving it ends the process."""

    def __init__(self, family: Family) -> None:
        """Start the process.

        Raises:
            RuntimeError: the layer or the driver is missing, or the device cannot be made; the message says which.
        """
        if family.missing:
            raise RuntimeError(family.missing)
        self.family = family
        self._folder = tempfile.TemporaryDirectory(prefix="hardware-")
        folder = Path(self._folder.name)
        environment = os.environ | environment_of(family, folder)
        self._errors = (folder / "errors").open("w+")
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.hardware.worker"],
            cwd=REPOSITORY,
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            text=True,
        )
        self.adapter = self._read()

    def compile(self, wgsl: str) -> Compiled:
        """Return what the compiler makes of a kernel whose entry point is `main`.

        Raises:
            CompileError: wgpu or the driver refuses it.
            RuntimeError: the process died.
        """
        assert self._process.stdin
        self._process.stdin.write(json.dumps({"wgsl": wgsl}) + "\n")
        self._process.stdin.flush()
        found = self._read()
        if "error" in found:
            raise CompileError(found["error"])
        return compiled_of(found, self.family)

    def _read(self) -> dict[str, Any]:
        assert self._process.stdout
        line = self._process.stdout.readline()
        if not line:
            self._process.wait()
            self._errors.seek(0)
            raise RuntimeError(f"the compiler for {self.family.name} ended: {self._errors.read()[-2000:]}")
        found: dict[str, Any] = json.loads(line)
        return found

    def close(self) -> None:
        """End the process."""
        if self._process.stdin:
            self._process.stdin.close()
        self._process.wait()
        if self._process.stdout:
            self._process.stdout.close()
        self._errors.close()
        self._folder.cleanup()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None) -> None:
        self.close()
