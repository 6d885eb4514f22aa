"""Debugging tools for graphs: profiles, kernels, the values of a run, and comparisons that identify wrong kernels."""

from webnn_wgpu.inspection import GraphProfile, KernelTime, Limit, ProfileComparison, Stage
from webnn_wgpu.inspection.kernels import Kernel, KernelBinding, Kernels

from .comparison import Comparison, Element, compare
from .diff import diff
from .interpret import Interpretation, interpret
from .launch import Bound, Launch, launch
from .report import GraphDiff, OperatorDiff
from .stops import Prompt, Stop
from .trace import Trace, TracedValue, trace, trace_wgsl
from .translation import translate
from .trial import KernelTrial, ResultError, try_kernel
from .values import GraphValues, ValueStatistics, values
from .viewer import Page, view
from .watch import Alarm, Watch, watch
from .wgsl.findings import Finding

__all__ = [
    "Alarm",
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
    "KernelTrial",
    "Kernels",
    "Launch",
    "Limit",
    "OperatorDiff",
    "Page",
    "ProfileComparison",
    "Prompt",
    "ResultError",
    "Stage",
    "Stop",
    "Trace",
    "TracedValue",
    "ValueStatistics",
    "Watch",
    "compare",
    "diff",
    "interpret",
    "launch",
    "trace",
    "trace_wgsl",
    "translate",
    "try_kernel",
    "values",
    "view",
    "watch",
]
