"""Pages of `to_html` in a browser: they load nothing, begin with names that can be read, and follow the window."""

from __future__ import annotations

from typing import TYPE_CHECKING

import webnn_wgpu as wn
from webnn_wgpu.exporters.html import to_html

if TYPE_CHECKING:
    from tests.browser.chromium import Chromium, Server

SEEN = """(() => {
  const box = graph.boxes[0], {clientWidth: width, clientHeight: height} = canvas;
  const x = (box.x + W / 2 - view.x) * view.scale, y = (box.y - view.y) * view.scale;
  return { centered: Math.abs(x - width / 2) < 2, top: y > 0 && y < height, scale: view.scale };
})()"""
"""Whether the first box is in the middle and visible, and the scale."""


def test_a_drawing_begins_readable_and_follows_the_window(browser: Chromium, server: Server) -> None:
    with wn.ml.create_context(backend="reference") as context:
        builder = wn.MLGraphBuilder(context)
        x = builder.input("x", {"dataType": "float32", "shape": [2]})
        y = x
        for _ in range(100):
            y = builder.relu(y)
        with builder.build({"y": y}) as graph:
            server.contents["/drawing.html"] = to_html(graph, "<b>a graph</b>").encode()
    browser.picture(1100, 800)
    browser.open(f"{server.address}/drawing.html")
    assert browser.evaluate(SEEN) == {"centered": True, "top": True, "scale": 0.4}
    assert browser.evaluate("performance.getEntriesByType('resource').length") == 0
    assert browser.evaluate("document.querySelector('h1').textContent") == "<b>a graph</b>"
    assert browser.evaluate("names({ title: 'add', label: '/encoder/layer.0/attention/output/Add', kind: 'operator' })") == [
        "add",
        "…er.0/attention/output/Add",
    ]
    browser.evaluate("document.querySelector('#fit').click()")
    assert browser.evaluate(SEEN)["scale"] < 0.2
    browser.picture(450, 700)
    assert browser.evaluate(SEEN)["centered"]
    assert browser.evaluate("canvas.clientWidth") == 450
    browser.evaluate("canvas.dispatchEvent(new KeyboardEvent('keydown', { key: 'ArrowRight' }))")
    browser.picture(1100, 800)
    assert not browser.evaluate(SEEN)["centered"]
