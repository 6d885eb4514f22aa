"""Looking into graphs: what `MLGraph.profile` and `MLGraph.kernels` return, the values of a run, and which are wrong."""

from webnn_wgpu.api.kernels import Kernel, KernelBinding, Kernels
from webnn_wgpu.api.profile import GraphProfile, KernelTime, Limit, ProfileComparison, Stage

from .comparison import Comparison, Element, compare
from .diff import diff
from .launch import Bound, Launch, launch
from .report import GraphDiff, OperatorDiff
from .values import GraphValues, ValueStatistics, values
from .viewer import Page, view
from .watch import Alarm, Watch, watch

__all__ = [
    "Alarm",
    "Bound",
    "Comparison",
    "Element",
    "GraphDiff",
    "GraphProfile",
    "GraphValues",
    "Kernel",
    "KernelBinding",
    "KernelTime",
    "Kernels",
    "Launch",
    "Limit",
    "OperatorDiff",
    "Page",
    "ProfileComparison",
    "Stage",
    "ValueStatistics",
    "Watch",
    "compare",
    "diff",
    "launch",
    "values",
    "view",
    "watch",
]
