"""Targets to compile for where the device does not matter."""

from __future__ import annotations

from tests.unit.plans import caps_of
from webnn_wgpu.core.caps import Caps
from webnn_wgpu.costs import Target

DEFAULT_TARGET = Target.of(Caps())
"""A device of unknown type with WebGPU's default limits and no features."""

SOFTWARE = caps_of("lavapipe")
"""A software adapter with every feature: what is chosen for one does not depend on the device that tests run on."""
