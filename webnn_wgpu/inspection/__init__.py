"""The kernels of compiled graphs with their sources, and profiles of runs: the results of `MLGraph.kernels` and `.profile`."""

from .comparison import KernelComparison, ProfileComparison
from .kernels import Kernel, KernelBinding, Kernels, Override
from .measuring import NO_KERNELS, NO_TIMESTAMPS
from .profile import GraphProfile, KernelTime, Limit, Stage, joined

__all__ = [
    "NO_KERNELS",
    "NO_TIMESTAMPS",
    "GraphProfile",
    "Kernel",
    "KernelBinding",
    "KernelComparison",
    "KernelTime",
    "Kernels",
    "Limit",
    "Override",
    "ProfileComparison",
    "Stage",
    "joined",
]
