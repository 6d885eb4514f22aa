"""Pages in a browser."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING
from urllib.parse import urlencode

import numpy as np
import pytest

from tests.viewer.graphs import TOKENS, WIDTH, transformer
from webnn_wgpu import debug
from webnn_wgpu.debug import translation

if TYPE_CHECKING:
    from pathlib import Path

    import webnn_wgpu as wn
    from tests.viewer.conftest import Browser


@pytest.fixture(scope="module")
def page(context: wn.MLContext, tmp_path_factory: pytest.TempPathFactory) -> Path:
    with transformer(context, 2) as graph:
        profile = graph.profile({"x": np.ones((TOKENS, WIDTH), np.float32), "mask": np.zeros(TOKENS, np.float32)})
        path = tmp_path_factory.mktemp("pages") / "transformer.html"
        debug.view(graph, path, profile=profile, title="A transformer")
    return path


def test_a_page_opens(browser: Browser, page: Path) -> None:
    document = browser.document(page)
    assert browser.attribute(document, "drawn") > 3
    assert browser.attribute(document, "opened") > 0
    assert '<h1 id="title">A transformer</h1>' in document
    assert 'data-view="run" title=' in document


@pytest.mark.parametrize(
    ("address", "wanted"),
    [
        (
            {"view": "built", "select": "layer.0/softmax"},
            ["<h2>softmax</h2>", "<code>float32[2, 8, 8]</code>", '<span class="keyword">fn</span>'],
        ),
        ({"view": "built", "select": "layer.1/norm"}, ["<h2>add</h2>", "layer.1/norm"]),
        ({"tab": "kernels"}, ["<table>", 'class="link"']),
        ({"tab": "passes"}, ["fuse_elementwise", "one kernel computes element-wise operators of one shape"]),
        ({"search": "residual2", "view": "built"}, ['data-count="2"']),
        ({"search": "no such thing"}, ["nothing found"]),
        ({"kernel": "layer.0/softmax"}, ["<h2>layer.0/softmax</h2>", 'class="row" data-line="1"']),
        ({"theme": "dark"}, ['data-theme="dark"']),
        ({"color": "time"}, ['<i class="ramp"></i>']),
        ({"color": "error"}, ["no differences were given"]),
        ({"view": "memory", "tab": "details"}, ["without sharing"]),
    ],
    ids=lambda value: urlencode(value) if isinstance(value, dict) else "",
)
def test_a_place_can_be_linked_to(browser: Browser, page: Path, address: dict[str, str], wanted: list[str]) -> None:
    document = browser.document(page, urlencode(address))
    shown = document.partition('<script id="data"')[0]
    for text in wanted:
        assert text in shown


def test_kernels_of_one_source_are_counted_once(browser: Browser, page: Path, context: wn.MLContext) -> None:
    with transformer(context, 2) as graph:
        kernels, sources = len(graph.kernels), len({kernel.wgsl for kernel in graph.kernels.values()})
    assert sources < kernels
    assert f"{kernels}, of {sources} distinct sources" in browser.document(page, urlencode({"tab": "details"}))


def test_a_translated_kernel_is_shown_beside_its_wgsl(
    browser: Browser, context: wn.MLContext, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class NamedLines:
        def __init__(self, family: str) -> None:
            pass

        def __enter__(self) -> NamedLines:
            return self

        def __exit__(self, *error: object) -> None:
            pass

        def instructions(self, wgsl: str) -> str:
            return "; loop at BB1, lines 2-3 of the WGSL: figures\ns_endpgm"

    monkeypatch.setattr(translation, "AmdCompiler", NamedLines)
    path = tmp_path / "page.html"
    with transformer(context, 1) as graph:
        debug.view(graph, path, languages=["amd:navi21"])
    for language, others in (("wgsl", 0), ("amd:navi21", 1)):
        document = browser.document(path, urlencode({"kernel": "layer.0/softmax", "language": language}))
        shown = document.partition('<script id="data"')[0]
        assert '<span class="keyword">fn</span>' in shown
        assert shown.count("s_endpgm") == others
        assert shown.count('<a class="link">; loop at BB1, lines 2-3 of the WGSL: figures</a>') == others


@pytest.mark.parametrize("view", ["run", "memory"])
def test_something_is_painted_in_both_themes(browser: Browser, page: Path, tmp_path: Path, view: str) -> None:
    pictures = {
        theme: browser.picture(page, tmp_path / f"{theme}.png", urlencode({"view": view, "theme": theme}))
        for theme in ("light", "dark")
    }
    assert len(set(pictures.values())) == 2
    for png in pictures.values():
        assert struct.unpack(">II", png[16:24]) == (1000, 700)
        assert len(png) > 20_000  # a blank page of this size takes 4 thousand bytes


@pytest.mark.slow
def test_thousands_of_operators_open(browser: Browser, context: wn.MLContext, tmp_path: Path) -> None:
    with transformer(context, 48) as graph:
        assert graph.operation_count > 2000
        document = browser.document(debug.view(graph, tmp_path / "large.html").path or tmp_path, "view=built")
    assert browser.attribute(document, "boxes") > 2000
    assert 3 < browser.attribute(document, "drawn") < 100  # what is in sight
    print(f"{graph.operation_count} operators opened in {browser.attribute(document, 'opened')} ms")
