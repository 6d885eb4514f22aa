"""Utilities for tests: tensors compared by ULP or absolute distance, kernels checked, and the WebNN conformance cases."""

from __future__ import annotations

from webnn_wgpu.accuracy.distance import Metric, Mismatch, absolute_distance, assert_within, compare, ulp_distance
from webnn_wgpu.testing.cases import (
    BuiltCase,
    Call,
    Case,
    GraphBuilder,
    Ref,
    Tensor,
    build_case,
    load_cases,
)
from webnn_wgpu.testing.gradients import check_gradients
from webnn_wgpu.testing.kernel_report import CheckedCase, KernelCase, KernelFault, KernelReport
from webnn_wgpu.testing.kernels import check_kernel

__all__ = [
    "BuiltCase",
    "Call",
    "Case",
    "CheckedCase",
    "GraphBuilder",
    "KernelCase",
    "KernelFault",
    "KernelReport",
    "Metric",
    "Mismatch",
    "Ref",
    "Tensor",
    "absolute_distance",
    "assert_within",
    "build_case",
    "check_gradients",
    "check_kernel",
    "compare",
    "load_cases",
    "ulp_distance",
]
