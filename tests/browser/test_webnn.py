"""JavaScript modules in a browser with WebNN: where its build has a backend they run, and what it lacks is named."""

from __future__ import annotations

import base64
import json
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import webnn_wgpu as wn
from tests.exporters.test_javascript import FEW, NO_COMPOSITION
from tests.support import op_graph
from webnn_wgpu.exporters.javascript import to_javascript

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.browser.chromium import Chromium, Server
    from tests.kernels.operators import Call

CALLS = [call for call in FEW.values() if call.name not in NO_COMPOSITION]

NEWER = frozenset({"isNaN", "isInfinite", "roundEven", "notEqual"})
"""Operators of the draft that browsers may not have yet."""


@pytest.fixture(scope="module")
def reference() -> Iterator[wn.MLContext]:
    with wn.ml.create_context(backend="reference") as context:
        yield context


def graph_of(call: Call, context: wn.MLContext) -> wn.MLGraph:
    return context._compile(op_graph(call.name, call.arrays(), call.attrs, call.constants), None, (), "test")


@pytest.fixture(scope="module")
def modules(browser: Chromium, server: Server, reference: wn.MLContext) -> dict[str, str]:
    """The addresses of the modules of each operator, on a page of their server."""
    found: dict[str, str] = {}
    for call in CALLS:
        found[str(call)] = f"/{call}.mjs".replace(" ", "-")
        with graph_of(call, reference) as graph:
            server.contents[found[str(call)]] = to_javascript(graph).encode()
    server.contents["/webnn.html"] = b"<!doctype html><title>WebNN</title>"
    browser.open(f"{server.address}/webnn.html")
    if not browser.evaluate("typeof MLGraphBuilder === 'function'"):
        pytest.skip("the browser has no WebNN")
    return found


def test_operators_are_named_as_the_browser_names_them(browser: Chromium, modules: dict[str, str]) -> None:
    lacking = browser.evaluate(f"""(async () => {{
      const found = new Set();
      for (const address of {json.dumps(list(modules.values()))}) {{
        for (const each of (await import(address)).missing({{}})) found.add(each);
      }}
      return [...found];
    }})()""")
    assert {name.removeprefix("the operator ") for name in lacking} <= NEWER


def test_a_browser_without_a_backend_says_so(browser: Chromium, modules: dict[str, str]) -> None:
    said = browser.evaluate(f"""import({json.dumps(modules[str(CALLS[0])])}).then(({{ load }}) => load("", "", {{}})).then(
      () => "", (error) => error.message)""")
    assert said == "" or said.startswith("this browser's WebNN opens no context: ")


def test_modules_compute_what_the_graph_does(browser: Chromium, modules: dict[str, str], reference: wn.MLContext) -> None:
    said = browser.evaluate("navigator.ml.createContext().then(() => '', (error) => error.message)")
    if said:
        pytest.skip(f"the browser's build has no backend of WebNN: {said}")
    wrong: list[str] = []
    left_out: list[str] = []
    for call in CALLS:
        arrays = {str(i): a for i, a in enumerate(call.arrays()) if a is not None}
        with graph_of(call, reference) as graph:
            feeds = {n: arrays[n] for n in graph.inputs}
            expected = reference.compute(graph, feeds)
        found: Any = browser.evaluate(f"""(async () => {{
          const {{ buildGraph, inputs, missing, run }} = await import({json.dumps(modules[str(call)])});
          const context = await navigator.ml.createContext();
          const lacks = missing(context);
          if (lacks.length) return {{ lacks: lacks.join() }};
          const KINDS = {{ float32: Float32Array, float16: globalThis.Float16Array, int32: Int32Array, uint32: Uint32Array,
            int64: BigInt64Array, uint64: BigUint64Array, int8: Int8Array, uint8: Uint8Array }};
          const feeds = {{}};
          for (const [name, data] of Object.entries({json.dumps({n: encoded(a) for n, a in feeds.items()})})) {{
            const bytes = Uint8Array.from(atob(data), (c) => c.charCodeAt(0));
            feeds[name] = new KINDS[inputs[name].dataType](bytes.buffer);
          }}
          const results = await run(context, await buildGraph(context), feeds);
          return {{ outputs: Object.fromEntries(Object.entries(results).map(([name, array]) => [
            name, btoa(String.fromCharCode(...new Uint8Array(array.buffer)))])) }};
        }})().catch((error) => ({{ error: error.message }}))""")
        if "lacks" in found:
            left_out.append(f"{call}: {found['lacks']}")
        elif "error" in found:
            wrong.append(f"{call}: {found['error']}")
        else:
            for name, array in expected.items():
                result = np.frombuffer(base64.b64decode(found["outputs"][name]), array.dtype).reshape(array.shape)
                if not np.allclose(result, array, rtol=1e-3, atol=1e-4, equal_nan=True):
                    wrong.append(f"{call}: {name}")
    assert not wrong, "\n".join(wrong)
    assert len(left_out) <= 10, "\n".join(left_out)


def encoded(array: Any) -> str:
    return base64.b64encode(np.ascontiguousarray(array).tobytes()).decode()
