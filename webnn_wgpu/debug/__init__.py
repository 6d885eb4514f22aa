"""Looking into graphs: what `MLGraph.profile` and `MLGraph.kernels` return, and the values of a run."""

from webnn_wgpu.api.kernels import Kernel, KernelBinding, Kernels
from webnn_wgpu.api.profile import GraphProfile, KernelTime

from .interpret import Interpretation, interpret
from .stops import Prompt, Stop
from .values import GraphValues, ValueStatistics, values
from .wgsl.findings import Finding

__all__ = [
    "Finding",
    "GraphProfile",
    "GraphValues",
    "Interpretation",
    "Kernel",
    "KernelBinding",
    "KernelTime",
    "Kernels",
    "Prompt",
    "Stop",
    "ValueStatistics",
    "interpret",
    "values",
]
