"""Kernels in the languages of the APIs below WebGPU: HLSL and Metal's by naga, AMD's instructions by its compiler."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import ExitStack
from dataclasses import dataclass
from types import TracebackType
from typing import Self

from ...core.errors import MLTypeError
from ...inspection.kernels import Kernel
from .amd import AmdCompiler
from .naga import HLSL, MSL, Naga

LANGUAGES = "hlsl, msl, amd:FAMILY, for example amd:navi21"

_SUFFIXES = {HLSL: "hlsl", MSL: "metal"}


@dataclass(frozen=True)
class Language:
    """A language that kernels are shown in.

    Attributes:
        name: `hlsl`, `msl`, or `amd`.
        family: the family of GPUs for `amd`, otherwise "".
    """

    name: str
    family: str = ""

    @classmethod
    def of(cls, text: str) -> Language:
        """Return the language that a text such as `amd:navi21` means.

        Raises:
            MLTypeError: it means none.
        """
        name, _, family = text.partition(":")
        if (name in _SUFFIXES and text == name) or (name == "amd" and family):
            return cls(name, family)
        raise MLTypeError("kernels cannot be shown in this language", operator="translate", got=repr(text), allowed=LANGUAGES)

    @property
    def suffix(self) -> str:
        """The suffix of a file in this language, without the dot."""
        return _SUFFIXES.get(self.name, f"{self.family}.txt")

    def __str__(self) -> str:
        return f"{self.name}:{self.family}" if self.family else self.name


class Translator:
    """Translates WGSL to several languages. A context manager: the compilers' processes end with it.

    Attributes:
        languages: the languages, in the order in which they were given.
    """

    def __init__(self, languages: Iterable[str]) -> None:
        """Start the compilers that the languages need.

        Args:
            languages: texts such as `hlsl`, `msl` and `amd:navi21`.

        Raises:
            MLTypeError: a language is unknown.
            NotSupportedError: a compiler is not installed. The message contains the command that installs it.
        """
        self.languages = tuple(Language.of(text) for text in dict.fromkeys(languages))
        self._open = ExitStack()
        self._translate: dict[Language, Callable[[str], str]] = {}
        with ExitStack() as opened:
            naga: Naga | None = None
            for language in self.languages:
                if language.family:
                    self._translate[language] = opened.enter_context(AmdCompiler(language.family)).instructions
                    continue
                naga = naga or opened.enter_context(Naga())
                self._translate[language] = naga.titled_hlsl if language.name == HLSL else naga.titled_msl
            self._open = opened.pop_all()

    def translate(self, wgsl: str, language: Language) -> str:
        """Return a shader in one of the languages.

        Raises:
            OperationError: the compiler refuses the shader.
        """
        return self._translate[language](wgsl)

    def close(self) -> None:
        """End the processes."""
        self._open.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None) -> None:
        self.close()


def translate(kernel: Kernel | str, language: str) -> str:
    """Return a kernel in the language of an API below WebGPU.

    HLSL and Metal's language come from naga, which is the shader compiler inside wgpu. `python -m
    webnn_wgpu.debug.translation` installs naga. The instructions of AMD's GPUs come from the hardware instrument, which a clone
    of the repository builds with `make hardware`.

    Args:
        kernel: a kernel of `MLGraph.kernels`, or WGSL with an entry point `main`.
        language: `hlsl`, `msl`, or `amd:` with a family of GPUs, for example `amd:navi21`.

    Raises:
        MLTypeError: the language is unknown.
        NotSupportedError: the compiler is not installed. The message contains the command that installs it.
        OperationError: the compiler refuses the kernel.

    Example:
        The HLSL of each kernel, with naga installed:

            for name, kernel in graph.kernels.items():
                print(name, debug.translate(kernel, "hlsl"))
    """
    with Translator([language]) as translator:
        return translator.translate(kernel if isinstance(kernel, str) else kernel.wgsl, translator.languages[0])
