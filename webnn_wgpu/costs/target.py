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
        caps: the features, limits and identity of the device.
        costs: the costs of work on the device.
        forced: whether the costs are those of a requested kind of device. Earlier measurements on the device have no effect
            then.
    """

    caps: Caps
    costs: Costs
    forced: bool = False

    @classmethod
    def of(cls, caps: Caps, kind: TargetKind | None = None) -> Target:
        """Return the target of a device, with the costs of its kind.

        Args:
            caps: the device.
            kind: the kind of device whose costs replace those of the device itself. None is the device's own kind.

        Example:
            >>> from webnn_wgpu.core.caps import Caps
            >>> Target.of(Caps(adapter_type="CPU")).caps.adapter_type
            'CPU'
        """
        is_software = caps.is_software if kind is None else kind == "software"
        return cls(caps, (software if is_software else hardware).costs_of(caps), kind is not None)
