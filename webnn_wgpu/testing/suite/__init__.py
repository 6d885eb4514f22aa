"""The benchmark of a device: models, their times and memory, kernels under the roofline, and the gain of tuning.

`webnn-wgpu bench --suite` runs the built-in models. `python -m tests.hardware.measure` runs ONNX models too, conformance cases,
and other runtimes beside the package. Both write the same record and the same page.
"""

from __future__ import annotations

from .figures import Conformance, ModelFigures, PeerFigures, SlowKernel, SuiteRecord
from .measuring import LoadedModel, Loader, measure, relative_difference, timed
from .models import MODELS
from .report import report
from .running import NO_TIME, Job, built_in, left_out, run_suite

__all__ = [
    "MODELS",
    "NO_TIME",
    "Conformance",
    "Job",
    "LoadedModel",
    "Loader",
    "ModelFigures",
    "PeerFigures",
    "SlowKernel",
    "SuiteRecord",
    "built_in",
    "left_out",
    "measure",
    "relative_difference",
    "report",
    "run_suite",
    "timed",
]
