"""Pages that show compiled graphs: self-contained HTML files."""

from __future__ import annotations

import html
import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, Protocol

from jinja2 import Environment, Template

from webnn_wgpu import __version__
from webnn_wgpu.api.internals import context_of

from ...api.graph import MLGraph
from ...core.errors import MLTypeError
from ...inspection import GraphProfile
from ..diff import GraphDiff
from ..translation import Translator
from .scene import Record, scene

_SCRIPTS = ("state.js", "graph.js", "memory.js", "panel.js", "main.js")
_FRAME_HEIGHT = 640


class ViewedModel(Protocol):
    """A model with graphs to show, for example the result of `webnn_wgpu.load`."""

    name: str

    @property
    def graphs(self) -> Sequence[MLGraph]:
        """The graphs compiled last."""
        ...

    @property
    def placement(self) -> Sequence[Any]:
        """Where each node runs: records with `op`, `name`, `where` and `note`."""
        ...


@dataclass(frozen=True)
class Page:
    """A page of HTML. Notebooks show it.

    Attributes:
        html: the whole page.
        path: the file of the page, if it was written.
    """

    html: str = field(repr=False)
    path: Path | None = None

    def save(self, path: str | os.PathLike[str]) -> Page:
        """Write the page to a file, and return the page with its path.

        Args:
            path: the file to write.

        Raises:
            OSError: the file cannot be written.
        """
        target = Path(path)
        target.write_text(self.html, encoding="utf-8")
        return Page(self.html, target)

    def _repr_html_(self) -> str:
        source = html.escape(self.html, quote=True)
        return f'<iframe srcdoc="{source}" style="width: 100%; height: {_FRAME_HEIGHT}px; border: 1px solid #8884"></iframe>'


def view(
    graph: MLGraph | ViewedModel,
    path: str | os.PathLike[str] | None = None,
    *,
    profile: GraphProfile | Sequence[GraphProfile] | None = None,
    diff: GraphDiff | Sequence[GraphDiff] | None = None,
    languages: Sequence[str] = (),
    title: str = "",
) -> Page:
    """Return a page that shows a graph, or all graphs of a model: the source graph, the optimized graph and the kernels.

    The page has the operators with types and shapes and the groups that passes fused. It also has kernels with their WGSL and
    bindings, slots and lifetimes, and the effect of each pass. It is one file that loads nothing, and opens in any browser.

    Args:
        graph: a graph, or a model that has been compiled.
        path: the file to write the page to. None writes no file.
        profile: a result of `graph.profile`, to color the operators by their time. A model takes one for each graph.
        diff: a result of `debug.diff`, to color the operators by their error relative to the bound. A model takes one for
            each graph.
        languages: languages besides WGSL that kernels are shown in, as in `translate`: `hlsl`, `msl`, `amd:navi21`.
        title: the title of the page.

    Returns:
        The page. Its attribute `html` is the text, and notebooks show it.

    Raises:
        MLTypeError: the model has no graph yet, there are not as many profiles as graphs, or a language is unknown.
        NotSupportedError: the compiler of a language is not installed.
        OSError: the file cannot be written.

    Example:
        >>> from webnn_wgpu import debug
        >>> page = debug.view(b.build({"y": b.relu(b.add(x, y, label="sum"))}))
        >>> page.html.startswith("<!doctype html>"), '"sum"' in page.html
        (True, True)
    """
    graphs = [graph] if isinstance(graph, MLGraph) else list(graph.graphs)
    if not graphs:
        raise MLTypeError(
            "the model has no graph of its own yet",
            operator="view",
            hint="Run it, or pin its symbolic dimensions. Graphs of loops' bodies alone are shown by `webnn-wgpu view`",
        )
    profiles = [profile] if isinstance(profile, GraphProfile) else list(profile or ())
    diffs = [diff] if isinstance(diff, GraphDiff) else list(diff or ())
    for name, given in (("profile", profiles), ("diff", diffs)):
        if given and len(given) != len(graphs):
            raise MLTypeError(
                f"there must be a {name} for each graph", operator="view", got=str(len(given)), allowed=str(len(graphs))
            )
    with Translator(languages) as translator:
        data = _data(graph, graphs, profiles, diffs, translator, title)
    text = _template().render(
        title=data["title"],
        version=__version__,
        boxes=sum(len(each["built"]["boxes"]) for each in data["graphs"]),
        style=_file("page.css"),
        script="\n".join(map(_file, _SCRIPTS)),
        data=data,
    )
    return Page(text) if path is None else Page(text).save(path)


def _data(
    graph: MLGraph | ViewedModel,
    graphs: Sequence[MLGraph],
    profiles: Sequence[GraphProfile],
    diffs: Sequence[GraphDiff],
    translator: Translator,
    title: str,
) -> Record:
    scenes: list[Record] = []
    for i, each in enumerate(graphs):
        profile = profiles[i] if profiles else None
        found = scene(each, f"Graph {i + 1} of {len(graphs)}", profile, diffs[i] if diffs else None)
        found["translations"] = [_translations(wgsl, translator) for wgsl in found["sources"]]
        scenes.append(found)
    of_model = not isinstance(graph, MLGraph)
    return {
        "title": title or (graph.name if of_model else "MLGraph"),
        "device": context_of(graphs[0]).context.description,
        "graphs": scenes,
        "placement": [[p.op, p.name, p.where, p.note] for p in graph.placement] if of_model else [],
        "profile": "; ".join(each.summary() for each in profiles),
        "diff": "; ".join(each.summary() for each in diffs),
    }


def _translations(wgsl: str, translator: Translator) -> dict[str, str]:
    return {str(language): translator.translate(wgsl, language) for language in translator.languages}


@cache
def _file(name: str) -> str:
    return (Path(__file__).parent / "page" / name).read_text(encoding="utf-8").rstrip()


@cache
def _template() -> Template:
    # `tojson` writes <, > and & of the data as escapes, so that no label ends the script that contains it.
    environment = Environment(autoescape=True, keep_trailing_newline=True)
    environment.policies["json.dumps_kwargs"] = {"sort_keys": False}
    return environment.from_string(_file("page.html.j2"))
