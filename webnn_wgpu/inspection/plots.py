"""Plots of a profile, as SVG by matplotlib."""

from __future__ import annotations

import io
from collections.abc import Callable, Mapping, Sequence
from itertools import accumulate
from typing import Any

import numpy as np

from ..core.errors import MLTypeError, NotSupportedError
from .profile import GraphProfile, KernelTime

_PALETTE = ("#3b82f6", "#f59e0b", "#14b8a6", "#a855f7", "#ef4444", "#84cc16", "#ec4899", "#0ea5e9", "#78716c", "#6366f1")
_INK, _GRID = "#3c4454", "#d7dce4"
_SHADERS = len(_PALETTE) - 1
"""The maximum number of shaders with a color of their own. The others share the last color."""

_NAMED = 6
"""Most kernels that a plot names."""


def require_matplotlib() -> Any:
    """Return matplotlib, or raise a NotSupportedError that names the extra."""
    try:
        import matplotlib
    except ModuleNotFoundError as error:
        raise NotSupportedError("plots need matplotlib", operator="plot", hint="Run pip install 'webnn-wgpu[viz]'") from error
    return matplotlib


def plot(profile: GraphProfile, what: str) -> str:
    """Return a plot as SVG, see `GraphProfile.plot`."""
    if what not in _PLOTS:
        raise MLTypeError("unknown plot", operator="plot", got=repr(what), allowed=", ".join(map(repr, _PLOTS)))
    library = require_matplotlib()  # whose types list every setting there is
    from matplotlib.figure import Figure

    if not profile.kernels:
        raise MLTypeError("the profile has no kernels to plot", operator="plot", got=profile.summary())
    # Text stays text, and ids do not change from run to run.
    style = {
        "svg.fonttype": "none",
        "svg.hashsalt": "webnn_wgpu",
        "font.size": 10,
        "font.family": "sans-serif",
        "text.color": _INK,
        "axes.labelcolor": _INK,
        "axes.edgecolor": _GRID,
        "xtick.color": _INK,
        "ytick.color": _INK,
        "axes.spines.top": False,
        "axes.spines.right": False,
    }
    with library.rc_context(style):
        figure: Any = Figure(figsize=(9, 4.6 if what == "roofline" else 3.2), layout="constrained")
        _PLOTS[what](profile, figure.subplots())
        text = io.StringIO()
        figure.savefig(text, format="svg", metadata={"Date": None, "Creator": "webnn_wgpu"})
    svg = text.getvalue()
    return svg[svg.index("<svg") :]


def _colors(profile: GraphProfile) -> dict[str, str]:
    """Return a color for each shader, those that take longest first."""
    times: dict[str, float] = {}
    for kernel in profile.kernels:
        times[kernel.shader] = times.get(kernel.shader, 0.0) + kernel.microseconds
    ordered = sorted(times, key=lambda shader: -times[shader])
    return {shader: _PALETTE[min(i, _SHADERS)] for i, shader in enumerate(ordered)}


def _legend(axes: Any, colors: Mapping[str, str], **place: Any) -> None:
    from matplotlib.patches import Patch

    handles = [Patch(color=color, label=shader) for shader, color in list(colors.items())[:_SHADERS]]
    if len(colors) > _SHADERS:
        handles.append(Patch(color=_PALETTE[-1], label=f"{len(colors) - _SHADERS} others"))
    axes.legend(handles=handles, frameon=False, fontsize=8, **place)


def _roofline(profile: GraphProfile, axes: Any) -> None:
    shown = [k for k in profile.kernels if k.intensity and k.gflop_per_s]
    if not shown:
        raise MLTypeError("no kernel's operations are known", operator="plot", got="'roofline'")
    colors = _colors(profile)
    intensities = [k.intensity or 0.0 for k in shown]
    longest = max(k.microseconds for k in shown)
    axes.scatter(
        intensities,
        [k.gflop_per_s for k in shown],
        [12 + 260 * k.microseconds / longest for k in shown],
        [colors[k.shader] for k in shown],
        alpha=0.7,
        linewidths=0.5,
        edgecolors="white",
        zorder=3,
    )
    if profile.peak is not None:
        peak = profile.peak
        low, high = min(*intensities, peak.balance) / 3, max(*intensities, peak.balance) * 3
        x = np.geomspace(low, high, 100)
        axes.plot(x, np.minimum(x * peak.bytes_per_second, peak.flops) / 1e9, color=_INK, linewidth=1.5, zorder=2)
        axes.annotate(
            f"{peak.flops / 1e9:.0f} GFLOP/s", (high, peak.flops / 1e9), (0, 4), textcoords="offset points", ha="right"
        )
        axes.annotate(
            f"{peak.bytes_per_second / 1e9:.0f} GB/s",
            (low, low * peak.bytes_per_second / 1e9),
            (22, -2),
            textcoords="offset points",
        )
    axes.set(xscale="log", yscale="log", xlabel="operations for each byte", ylabel="GFLOP/s")
    axes.set_title("Roofline: area is time", loc="left", fontsize=11)
    axes.grid(color=_GRID, linewidth=0.6)
    _legend(axes, colors, loc="lower right")


def _timeline(profile: GraphProfile, axes: Any) -> None:
    colors = _colors(profile)
    starts = _starts(profile.kernels)
    axes.bar(
        starts,
        [1.0] * len(starts),
        [k.microseconds / 1e3 for k in profile.kernels],
        align="edge",
        color=[colors[k.shader] for k in profile.kernels],
        edgecolor="white",
        linewidth=0.3,
    )
    slowest = sorted(range(len(starts)), key=lambda i: -profile.kernels[i].microseconds)[:_NAMED]
    for i in slowest:
        kernel = profile.kernels[i]
        middle = starts[i] + kernel.microseconds / 2e3
        axes.text(middle, 0.5, kernel.name[-28:], rotation=90, ha="center", va="center", fontsize=7, color="white")
    axes.set(ylim=(0, 1), xlim=(0, starts[-1] + profile.kernels[-1].microseconds / 1e3), yticks=[], xlabel="ms on the device")
    axes.set_title("Kernels in the order in which they run", loc="left", fontsize=11)
    _legend(axes, colors, loc="upper center", bbox_to_anchor=(0.5, -0.22), ncols=5)


def _memory(profile: GraphProfile, axes: Any) -> None:
    starts = _starts(profile.kernels)
    ends = [*starts[1:], starts[-1] + profile.kernels[-1].microseconds / 1e3]
    live = [k.live_bytes / 2**20 for k in profile.kernels]
    edges = [starts[0], *ends]
    axes.stairs(live, edges, fill=True, color=_PALETTE[0], alpha=0.3)
    axes.stairs(live, edges, color=_PALETTE[0], linewidth=1.2)
    axes.set(xlabel="ms on the device", ylabel="MiB", xlim=(0, edges[-1]), ylim=(0, max(*live, 1e-6) * 1.15))
    fixed = profile.fixed_bytes / 2**20
    axes.set_title(f"Intermediate values that are needed; beside them {fixed:.1f} MiB stay", loc="left", fontsize=11)
    axes.grid(axis="y", color=_GRID, linewidth=0.6)


def _starts(kernels: Sequence[KernelTime]) -> list[float]:
    return list(accumulate((k.microseconds / 1e3 for k in kernels), initial=0.0))[:-1]


_PLOTS: Mapping[str, Callable[[GraphProfile, Any], None]] = {"roofline": _roofline, "timeline": _timeline, "memory": _memory}
