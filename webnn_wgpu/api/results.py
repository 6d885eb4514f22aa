"""What a context's calls return: the result of `compute`, and why a context was lost."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ..ir.graph import Array


@dataclass(frozen=True)
class MLContextLostInfo:
    """Why a context became unusable."""

    message: str


class MLComputeResult(dict[str, Array]):
    """What `compute` returns: a dict of output name to array, which is also its `outputs`, and which carries `inputs`."""

    def __init__(self, inputs: Mapping[str, Any], outputs: Mapping[str, Array]) -> None:
        super().__init__(outputs)
        self.inputs = dict(inputs)

    @property
    def outputs(self) -> dict[str, Array]:
        """The outputs: the dict itself."""
        return self

    def __repr__(self) -> str:
        return f"MLComputeResult({', '.join(f'{n}: {a.dtype}{list(a.shape)}' for n, a in self.items())})"


class Loss:
    """Whether and why a context is lost. Not the context's own, whose promise would then hold the context."""

    def __init__(self) -> None:
        self.event = threading.Event()
        self.info = MLContextLostInfo("")

    def wait(self) -> MLContextLostInfo:
        """Wait until the context is lost."""
        self.event.wait()
        return self.info
