"""`Target`: the device that a graph is compiled for, with the costs of work on it."""

from __future__ import annotations

from dataclasses import dataclass

from ..core.caps import Caps
from ..core.settings import TargetKind
from . import hardware, software
from .model import Costs


@dataclass(frozen=True)
class Target:
    """The device that a graph is compiled for.

    Attributes:
        caps: what it can do.
        costs: what work takes on it.
        forced: whether the costs are those of a kind of device that was asked for. Results that earlier programs measured on
            the device decide nothing then.
    """

    caps: Caps
    costs: Costs
    forced: bool = False

    @classmethod
    def of(cls, caps: Caps, kind: TargetKind | None = None) -> Target:
        """Return the target of a device, with the costs of its kind.

        Args:
            caps: the device.
            kind: the kind whose costs are taken instead of those of the device's own; None for its own.

        Example:
            >>> from webnn_wgpu.core.caps import Caps
            >>> Target.of(Caps(adapter_type="CPU")).caps.adapter_type
            'CPU'
        """
        is_software = caps.is_software if kind is None else kind == "software"
        return cls(caps, (software if is_software else hardware).costs_of(caps), kind is not None)
