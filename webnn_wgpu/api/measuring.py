"""Measurements on a context's device: its peak, and the profile of a graph."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from ..core.errors import MLTypeError, OutOfMemoryError
from ..inspection.measuring import measure, profile_of
from ..inspection.profile import GraphProfile
from ..runtime.peak import Peak
from ..runtime.peak import measured_peak as peak_of_device
from .backend import DeviceBackend, no_device

if TYPE_CHECKING:
    from .context import MLContext
    from .graph import MLGraph


def measured_peak(context: MLContext, *, again: bool = False) -> Peak:
    """Return the maximum operations and bytes per second of the context's device, measured with two probe kernels.

    The measurement takes about a second, and the user's cache stores the result. Other work on the machine lowers the result:
    measure `again` on an idle machine.

    Args:
        context: a context on a device.
        again: whether to measure even if the cache has a result.

    Returns:
        `flops` of float32, `bytes_per_second` read and written, and their `balance`: the operations per byte above which
        arithmetic bounds a kernel.

    Raises:
        NotSupportedError: the context runs graphs in numpy.
        InvalidStateError: the context is lost.
        OutOfMemoryError: the device has no memory for the two buffers of the probes.

    Example:
        >>> peak = wn.measured_peak(context)
        >>> peak.flops > 0 and peak.bytes_per_second > 0
        True
    """
    backend = context._backend
    if not isinstance(backend, DeviceBackend):
        raise no_device()
    with context._guarded("measured_peak"), context._lock:
        return peak_of_device(backend.device, again=again)


def profile_graph(graph: MLGraph, inputs: Mapping[str, Any], runs: int, peak: Peak | None) -> GraphProfile:
    """Return the profile of `runs` runs of a graph (see `MLGraph.profile`)."""
    context = graph._context
    if runs < 1:
        raise MLTypeError("runs must be counted from 1", operator="profile", got=str(runs), allowed="1 and more")
    context._checked_inputs(graph, inputs, "profile")
    with context._guarded("profile"), context._lock:
        measured = measure(
            graph._executable, lambda: context._checked_inputs(graph, inputs, "profile"), list(graph.outputs), runs
        )
    kernels = list(graph.kernels.values())
    return profile_of(measured, graph.plan, kernels, context.description, lambda: peak or _peak_beside_graph(context))


def _peak_beside_graph(context: MLContext) -> Peak | None:
    """Return the measured peak, or None if the device has no free memory for the buffers of the probes."""
    try:
        return measured_peak(context)
    except OutOfMemoryError:
        return None
