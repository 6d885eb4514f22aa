"""Looking into graphs that run: what `MLGraph.profile` and `MLGraph.kernels` return."""

from webnn_wgpu.api.kernels import Kernel, KernelBinding, Kernels
from webnn_wgpu.api.profile import GraphProfile, KernelTime

__all__ = ["GraphProfile", "Kernel", "KernelBinding", "KernelTime", "Kernels"]
