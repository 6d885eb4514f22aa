"""The families of AMD GPUs whose compiler the tests read, and the drivers that know them."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]
BUILT = Path(os.environ.get("WEBNN_WGPU_HARDWARE") or REPOSITORY / ".venv" / "hardware")
"""Where `make hardware` puts the layer and the newer Mesa."""

LAYER = BUILT / "libnull_gpu.so"
SYSTEM_DRIVER = Path("/usr/share/vulkan/icd.d/radeon_icd.x86_64.json")
NEWER_DRIVER = BUILT / "mesa-25" / "radeon_icd.json"
NEWER_LIBRARIES = BUILT / "mesa-25" / "usr" / "lib" / "x86_64-linux-gnu"


@dataclass(frozen=True, kw_only=True)
class Family:
    """A family of GPUs.

    Attributes:
        name: the name that RADV_FORCE_FAMILY takes.
        architecture: AMD's name of the instruction set's generation.
        newer: whether it takes Mesa 25, because the system's Mesa 22.3 does not know the family.
        subgroup: invocations of a subgroup on a real device.
        listed: whether the driver prints the family's instructions.
    """

    name: str
    architecture: str
    newer: bool = False
    subgroup: int = 64
    listed: bool = True

    @property
    def driver(self) -> Path:
        """The driver's ICD file."""
        return NEWER_DRIVER if self.newer else SYSTEM_DRIVER

    @property
    def missing(self) -> str:
        """What must be installed before kernels can be compiled for the family; "" where nothing is missing."""
        if not LAYER.is_file():
            return f"the layer {LAYER} is not built: run `make hardware`"
        if not self.driver.is_file():
            return f"the driver {self.driver} is not installed: run `make hardware`"
        return ""


FAMILIES = {
    family.name: family
    for family in (
        Family(name="polaris10", architecture="GCN 4"),
        Family(name="vega20", architecture="GCN 5"),
        Family(name="navi10", architecture="RDNA 1"),
        Family(name="navi21", architecture="RDNA 2"),
        Family(name="navi31", architecture="RDNA 3", newer=True),
        # The LLVM that Debian's Mesa 25 is built with cannot disassemble it: registers are known, instructions are not.
        Family(name="gfx1201", architecture="RDNA 4", newer=True, listed=False),
    )
}
