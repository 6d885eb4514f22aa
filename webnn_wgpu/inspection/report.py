"""A profile as a page of HTML."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from jinja2 import Environment, Template

from ..core.errors import MLTypeError, NotSupportedError
from .plots import plot
from .profile import GraphProfile, figures


def report(profile: GraphProfile, title: str) -> str:
    """Return the page of a profile, see `GraphProfile.to_html`."""
    plots: list[str] = []
    note = ""
    for what in ("timeline", "roofline", "memory"):
        try:
            plots.append(plot(profile, what))
        except (MLTypeError, NotSupportedError) as error:
            note = str(error)
    slowest = profile.slowest().kernels
    longest = slowest[0].microseconds if slowest else 0.0
    rows = [(figures(profile, k), k, k.microseconds / longest * 100 if longest else 0.0) for k in slowest]
    shares: dict[str, float] = {}
    for kernel in profile.kernels:
        shares[kernel.shader] = shares.get(kernel.shader, 0.0) + kernel.microseconds
    by_shader = sorted(shares.items(), key=lambda item: -item[1])
    return _template().render(title=title, profile=profile, plots=plots, note=note, rows=rows, by_shader=by_shader)


@cache
def _template() -> Template:
    text = (Path(__file__).parent / "page" / "report.html.j2").read_text(encoding="utf-8")
    return Environment(autoescape=True, keep_trailing_newline=True).from_string(text)
