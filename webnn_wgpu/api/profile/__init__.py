"""What a run of a graph takes on its device, kernel by kernel: made by `MLGraph.profile`."""

from .comparison import KernelComparison, ProfileComparison
from .measuring import NO_KERNELS, NO_TIMESTAMPS, measure
from .profile import GraphProfile, KernelTime, Limit, Stage, joined

__all__ = [
    "NO_KERNELS",
    "NO_TIMESTAMPS",
    "GraphProfile",
    "KernelComparison",
    "KernelTime",
    "Limit",
    "ProfileComparison",
    "Stage",
    "joined",
    "measure",
]
