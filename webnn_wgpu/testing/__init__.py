"""Utilities for tests: tensors compared by ULP or absolute distance, and the WebNN conformance cases."""

from __future__ import annotations

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
from webnn_wgpu.testing.compare import Metric, Mismatch, absolute_distance, assert_within, compare, ulp_distance

__all__ = [
    "BuiltCase",
    "Call",
    "Case",
    "GraphBuilder",
    "Metric",
    "Mismatch",
    "Ref",
    "Tensor",
    "absolute_distance",
    "assert_within",
    "build_case",
    "compare",
    "load_cases",
    "ulp_distance",
]
