"""Looking into graphs: what `MLGraph.profile` and `MLGraph.kernels` return, and the values of a run."""

from webnn_wgpu.api.kernels import Kernel, KernelBinding, Kernels
from webnn_wgpu.api.profile import GraphProfile, KernelTime, Limit, ProfileComparison, Stage

from .values import GraphValues, ValueStatistics, values
from .viewer import Page, view

__all__ = [
    "GraphProfile",
    "GraphValues",
    "Kernel",
    "KernelBinding",
    "KernelTime",
    "Kernels",
    "Limit",
    "Page",
    "ProfileComparison",
    "Stage",
    "ValueStatistics",
    "values",
    "view",
]
