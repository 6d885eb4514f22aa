"""Looking into graphs: what `MLGraph.profile` and `MLGraph.kernels` return, the values of a run, and which are wrong."""

from webnn_wgpu.api.kernels import Kernel, KernelBinding, Kernels
from webnn_wgpu.api.profile import GraphProfile, KernelTime, Limit, ProfileComparison, Stage

from .comparison import Comparison, Element, compare
from .diff import GraphDiff, OperatorDiff, diff
from .launch import Bound, Launch, launch
from .trace import Trace, TracedValue, trace, trace_wgsl
from .trial import KernelTrial, ResultError, try_kernel
from .values import GraphValues, ValueStatistics, values
from .viewer import Page, view

__all__ = [
    "Bound",
    "Comparison",
    "Element",
    "GraphDiff",
    "GraphProfile",
    "GraphValues",
    "Kernel",
    "KernelBinding",
    "KernelTime",
    "KernelTrial",
    "Kernels",
    "Launch",
    "Limit",
    "OperatorDiff",
    "Page",
    "ProfileComparison",
    "ResultError",
    "Stage",
    "Trace",
    "TracedValue",
    "ValueStatistics",
    "compare",
    "diff",
    "launch",
    "trace",
    "trace_wgsl",
    "try_kernel",
    "values",
    "view",
]
