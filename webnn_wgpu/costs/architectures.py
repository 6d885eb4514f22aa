"""Facts about the architectures of GPUs, by the names that adapters report.

Figures are those of one core: a compute unit of AMD, a streaming multiprocessor of NVIDIA, an Xe core or subslice of Intel, a
GPU core of Apple and a shader processor of Qualcomm. Sources:

* AMD: the architecture white papers and instruction set guides of Vega, RDNA 2 and RDNA 3, and the occupancy by Mesa's RADV
* Apple, and a comparison of all: github.com/philipturner/metal-benchmarks, layout of a core
* NVIDIA: CUDA C++ Programming Guide, tables of technical specifications and arithmetic throughput by compute capability
* Intel: oneAPI GPU Optimization Guide, chapter on the Xe architecture, and Intel Processor Graphics Gen11 Architecture
* `runs_side_by_side`: T. Sorensen et al., Specifying and Testing GPU Workgroup Progress Models, 2021. In its tests, workgroups
  do on GPUs of NVIDIA, on Intel HD 620 and on Adreno 620, but not on Apple A12 and Mali-G77. Assumed of AMD's.
* assumed: all figures of Qualcomm, `register_bytes` of Apple (that comparison says 384 KiB), and `latency_subgroups`
  everywhere. Of these figures an NVIDIA H200 confirmed the rate of its workgroup memory alone.

Kernels work for subgroups of any size, and compute in float32. Two of their workgroups fit any of these memories. So only the
summary for people has `subgroup_sizes`, `half_rate`, `dot_rate` and `local_bytes`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ..core.caps import Caps


CORE_INVOCATIONS = 2048
"""The maximum number of invocations of a core: that of NVIDIA's, and about that of others."""


@dataclass(frozen=True, kw_only=True)
class Architecture:
    """One architecture of GPUs. Rates are operations per clock and core. A multiply-add counts as one operation.

    Attributes:
        name: the vendor's name.
        pattern: a regular expression that finds it in an adapter's vendor and device.
        subgroup_sizes: sizes that the driver may choose for a kernel.
        multiply_adds: float32 multiply-adds.
        half_rate: float16 multiply-adds, relative to those of float32: the least of the architecture's devices.
        dot_rate: multiply-adds of 8-bit integers (`dot4I8Packed`), relative to those of float32. 1 without an instruction for
            them.
        register_bytes: bytes of the vector registers.
        local_bytes: bytes of workgroup memory.
        local_rate_bytes: bytes that workgroup memory serves.
        latency_subgroups: subgroups of 32 invocations per core that hide the latency of arithmetic and workgroup memory.
        runs_side_by_side: whether a workgroup that has begun goes on, though another one waits for it in a loop.
    """

    name: str
    pattern: str
    subgroup_sizes: tuple[int, ...]
    multiply_adds: int
    half_rate: float
    dot_rate: float
    register_bytes: int
    local_bytes: int
    local_rate_bytes: int
    latency_subgroups: int
    runs_side_by_side: bool = False

    @property
    def summary(self) -> str:
        """The figures for people."""
        sizes = " or ".join(map(str, self.subgroup_sizes))
        return (
            f"{self.name}: subgroups of {sizes}; per core and clock {self.multiply_adds} multiply-adds,"
            f" {self.half_rate:.3g} times as many of float16, {self.dot_rate:.3g} times as many of 8-bit integers;"
            f" {self.register_bytes >> 10} KiB of registers and {self.local_bytes >> 10} KiB of workgroup memory per core"
        )

    @property
    def most_results(self) -> int:
        """The maximum number of results that an invocation of a matrix product keeps in registers, for sufficient occupancy.

        AMD's compiler takes 112 registers for 64 results, and 80 for 32.
        """
        registers = self.register_bytes // (4 * 32 * self.latency_subgroups)
        return next((results for results in (64, 32) if 7 * results <= 4 * registers), 16)


ARCHITECTURES = (
    Architecture(
        name="AMD GCN",
        pattern=r"polaris|vega|fiji|hawaii|tonga|renoir|raven|gfx[789]|radeon rx (?:4|5)\d0\b|radeon r[579]\b",
        subgroup_sizes=(64,),
        multiply_adds=64,
        half_rate=1,  # 2 in Vega, for packed instructions alone
        dot_rate=1,
        register_bytes=256 << 10,
        local_bytes=64 << 10,
        local_rate_bytes=128,
        # Two of 64 on each of four SIMDs, and another while those wait.
        latency_subgroups=24,
        runs_side_by_side=True,
    ),
    Architecture(
        name="AMD RDNA",
        pattern=r"navi|gfx1[0-9]|radeon|\bradv\b|rembrandt|phoenix|\bamd\b",
        subgroup_sizes=(32, 64),
        multiply_adds=128,  # RDNA 3, two in one instruction. RDNA 1 and 2 make 64.
        half_rate=2,
        dot_rate=4,  # from RDNA 2 on
        register_bytes=256 << 10,  # 384 KiB in RDNA 3
        local_bytes=64 << 10,
        local_rate_bytes=128,
        latency_subgroups=12,
        runs_side_by_side=True,
    ),
    Architecture(
        name="NVIDIA Turing or later",
        pattern=r"(?=.*(?:nvidia|geforce)).*(?:\brtx\b|gtx 16\d\d|\bt4\b|\b[ahl]\d{1,3}\b|\bgb?\d{3}\b)",
        subgroup_sizes=(32,),
        multiply_adds=128,  # Turing makes 64, and twice as many of float16.
        half_rate=1,
        dot_rate=4,
        register_bytes=256 << 10,
        local_bytes=64 << 10,
        local_rate_bytes=128,
        latency_subgroups=12,
        runs_side_by_side=True,
    ),
    Architecture(
        name="NVIDIA before Turing",
        pattern=r"nvidia|geforce|quadro|tesla",
        subgroup_sizes=(32,),
        multiply_adds=128,
        half_rate=1 / 64,
        dot_rate=4,
        register_bytes=256 << 10,
        local_bytes=96 << 10,
        local_rate_bytes=128,
        latency_subgroups=16,
        runs_side_by_side=True,
    ),
    Architecture(
        name="Intel Xe",
        pattern=r"\barc\b|\bxe\b|iris\(r\) xe|\bdg[12]\b|\btgl\b|\badl|\brpl|\bmtl\b|\blnl\b|\bbmg\b",
        subgroup_sizes=(8, 16, 32),
        multiply_adds=128,
        half_rate=2,
        dot_rate=4,
        register_bytes=512 << 10,
        local_bytes=64 << 10,
        local_rate_bytes=128,
        latency_subgroups=16,
        runs_side_by_side=True,
    ),
    Architecture(
        name="Intel Gen9 or Gen11",
        pattern=r"intel",
        subgroup_sizes=(8, 16, 32),
        multiply_adds=64,
        half_rate=2,
        dot_rate=1,
        register_bytes=224 << 10,
        local_bytes=64 << 10,
        local_rate_bytes=64,
        latency_subgroups=14,
        runs_side_by_side=True,
    ),
    Architecture(
        name="Apple",
        pattern=r"apple",
        subgroup_sizes=(32,),
        multiply_adds=128,
        half_rate=1,
        dot_rate=1,
        register_bytes=208 << 10,
        local_bytes=32 << 10,
        local_rate_bytes=128,
        latency_subgroups=12,
    ),
    Architecture(
        name="Qualcomm Adreno",
        pattern=r"adreno|qualcomm",
        subgroup_sizes=(64, 128),
        multiply_adds=128,
        half_rate=2,
        dot_rate=4,
        register_bytes=128 << 10,
        local_bytes=32 << 10,
        local_rate_bytes=64,
        latency_subgroups=12,
        runs_side_by_side=True,
    ),
)
"""The architectures, special names before general ones."""

UNKNOWN = Architecture(
    name="unknown",
    pattern="",
    subgroup_sizes=(4, 8, 16, 32, 64, 128),
    multiply_adds=128,
    half_rate=1,
    dot_rate=1,
    register_bytes=256 << 10,
    local_bytes=32 << 10,
    local_rate_bytes=128,
    latency_subgroups=16,
)
"""The architecture of an adapter with an unknown name: figures in the middle of the others'."""


def architecture_of(caps: Caps) -> Architecture:
    """Return the architecture of a device by its names.

    Example:
        >>> from webnn_wgpu.core.caps import Caps
        >>> architecture_of(Caps(vendor="radv", device="AMD Radeon RX 7800 XT (RADV NAVI32)")).name
        'AMD RDNA'
        >>> architecture_of(Caps(vendor="radv", device="AMD Radeon RX 580 (RADV POLARIS10)")).name
        'AMD GCN'
        >>> architecture_of(Caps()).name
        'unknown'
    """
    names = f"{caps.vendor} {caps.device}".lower()
    return next((known for known in ARCHITECTURES if re.search(known.pattern, names)), UNKNOWN)


def summary_of(caps: Caps) -> str:
    """Return the architecture that the costs take a device for, and its figures, for people.

    Example:
        >>> from webnn_wgpu.core.caps import Caps
        >>> summary_of(Caps(adapter_type="CPU"))
        'a processor'
    """
    return "a processor" if caps.adapter_type == "CPU" else architecture_of(caps).summary
