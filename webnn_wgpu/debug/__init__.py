"""Looking into graphs that run: what `MLGraph.profile` returns."""

from webnn_wgpu.api.profile import GraphProfile, KernelTime

__all__ = ["GraphProfile", "KernelTime"]
