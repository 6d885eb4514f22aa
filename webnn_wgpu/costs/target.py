"""`Target`: the device that a graph is compiled for, with the costs of work on it."""

from __future__ import annotations

from dataclasses import dataclass

from ..core.caps import Caps
from . import hardware, software
from .model import Costs


@dataclass(frozen=True)
class Target:
    """The device that a graph is compiled for.

    Attributes:
        caps: what it can do.
        costs: what work takes on it.
    """

    caps: Caps
    costs: Costs

    @classmethod
    def of(cls, caps: Caps) -> Target:
        """Return the target of a device, with the costs of its kind.

        Example:
            >>> from webnn_wgpu.core.caps import Caps
            >>> Target.of(Caps(adapter_type="CPU")).caps.adapter_type
            'CPU'
        """
        return cls(caps, (software if caps.is_software else hardware).costs_of(caps))
