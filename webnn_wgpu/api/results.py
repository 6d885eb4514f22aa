"""Results of a context's calls: the result of `compute`, and the reason of a context's loss."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ..ir.graph import Array


@dataclass(frozen=True)
class MLContextLostInfo:
    """The reason for the loss of a context.

    Attributes:
        message: the reason, for people.

    Spec: https://www.w3.org/TR/webnn/#dictdef-mlcontextlostinfo
    """

    message: str


class MLComputeResult(dict[str, Array]):
    """The result of `compute`: a dictionary of arrays by output name.

    Attributes:
        inputs: the inputs of the run, by name.

    Spec: https://www.w3.org/TR/2024/CRD-webnn-20240415/#dictdef-mlcomputeresult
    """

    def __init__(self, inputs: Mapping[str, Any], outputs: Mapping[str, Array]) -> None:
        super().__init__(outputs)
        self.inputs = dict(inputs)

    @property
    def outputs(self) -> dict[str, Array]:
        """The outputs: the dictionary itself."""
        return self

    def __repr__(self) -> str:
        return f"MLComputeResult({', '.join(f'{n}: {a.dtype}{list(a.shape)}' for n, a in self.items())})"


class MLMemory(dict[str, int]):
    """The memory of a context on its device, in bytes by owner. It prints as a table.

    The owners are `weights` (constants of graphs, each once), `slots` (intermediate values), `inputs and outputs` (the graphs'
    own buffers for `compute`), `uniforms`, `staging` (buffers for readback) and `tensors`.

    Attributes:
        borrowed: the bytes of wrapped buffers, which are not part of the total.
    """

    def __init__(self, owners: Mapping[str, int], borrowed: int) -> None:
        super().__init__(owners)
        self.borrowed = borrowed

    @property
    def total(self) -> int:
        """Bytes of all owners together."""
        return sum(self.values())

    def __str__(self) -> str:
        rows = [*self.items(), ("total", self.total), ("borrowed", self.borrowed)]
        return "\n".join(f"{owner:20}{size:>16,}" for owner, size in rows)


class Loss:
    """Whether and why a context is lost. Not the context's own, whose promise would then hold the context."""

    def __init__(self) -> None:
        self.event = threading.Event()
        self.info = MLContextLostInfo("")

    def wait(self) -> MLContextLostInfo:
        """Wait until the context is lost."""
        self.event.wait()
        return self.info
