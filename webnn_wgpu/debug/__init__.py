"""Looking into graphs: what `MLGraph.profile` and `MLGraph.kernels` return, the values of a run, and which are wrong."""

from webnn_wgpu.api.kernels import Kernel, KernelBinding, Kernels
from webnn_wgpu.api.profile import GraphProfile, KernelTime, Limit, ProfileComparison, Stage

from .comparison import Comparison, Element, compare
from .diff import GraphDiff, OperatorDiff, diff
from .interpret import Interpretation, interpret
from .launch import Bound, Launch, launch
from .stops import Prompt, Stop
from .values import GraphValues, ValueStatistics, values
from .viewer import Page, view
from .wgsl.findings import Finding

__all__ = [
    "Bound",
    "Comparison",
    "Element",
    "Finding",
    "GraphDiff",
    "GraphProfile",
    "GraphValues",
    "Interpretation",
    "Kernel",
    "KernelBinding",
    "KernelTime",
    "Kernels",
    "Launch",
    "Limit",
    "OperatorDiff",
    "Page",
    "ProfileComparison",
    "Prompt",
    "Stage",
    "Stop",
    "ValueStatistics",
    "compare",
    "diff",
    "interpret",
    "launch",
    "values",
    "view",
]
