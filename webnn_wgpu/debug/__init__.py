"""Looking into graphs: what `MLGraph.profile` and `MLGraph.kernels` return, and the values of a run."""

from webnn_wgpu.api.kernels import Kernel, KernelBinding, Kernels
from webnn_wgpu.api.profile import GraphProfile, KernelTime

from .trace import Trace, TracedValue, trace, trace_wgsl
from .values import GraphValues, ValueStatistics, values

__all__ = [
    "GraphProfile",
    "GraphValues",
    "Kernel",
    "KernelBinding",
    "KernelTime",
    "Kernels",
    "Trace",
    "TracedValue",
    "ValueStatistics",
    "trace",
    "trace_wgsl",
    "values",
]
