"""What a context's calls return: the result of `compute`, and why a context was lost."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from ..ir.graph import Array


@dataclass(frozen=True)
class MLContextLostInfo:
    """Why a context became unusable."""

    message: str


class MLComputeResult(Mapping[str, Array]):
    """What `compute` returns: a mapping of output name to array that also carries `.inputs` and `.outputs`."""

    def __init__(self, inputs: Mapping[str, Any], outputs: Mapping[str, Array]) -> None:
        self.inputs, self.outputs = dict(inputs), dict(outputs)

    def __getitem__(self, name: str) -> Array:
        return self.outputs[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.outputs)

    def __len__(self) -> int:
        return len(self.outputs)

    def __repr__(self) -> str:
        return f"MLComputeResult({', '.join(f'{n}: {a.dtype}{list(a.shape)}' for n, a in self.outputs.items())})"


class Loss:
    """Whether and why a context is lost. Not the context's own, whose promise would then hold the context."""

    def __init__(self) -> None:
        self.event = threading.Event()
        self.info = MLContextLostInfo("")

    def wait(self) -> MLContextLostInfo:
        """Wait until the context is lost."""
        self.event.wait()
        return self.info
