"""Folders of graphs in a browser: the page, the player on the page's own device and buffers, and what is refused."""

from __future__ import annotations

import json
from importlib.resources import files
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import webnn_wgpu as wn
from examples.models import gpt
from webnn_wgpu.exporters import web

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.browser.chromium import Chromium, Server


@pytest.fixture(scope="module")
def reference() -> Iterator[wn.MLContext]:
    with wn.ml.create_context(backend="reference") as context:
        yield context


def network(context: wn.MLContext) -> wn.MLGraph:
    """Return a graph with weights, several kernels, two outputs, and names that are markup."""
    random = np.random.default_rng(0)
    builder = wn.MLGraphBuilder(context)
    x = builder.input("<b>x</b>", {"dataType": "float32", "shape": [1, 3, 10, 10]})
    weights = builder.constant(random.standard_normal((5, 3, 3, 3)).astype(np.float32))
    maps = builder.relu(builder.conv2d(x, weights), label="<script>")
    sums = builder.reduce_mean(maps, axes=[2, 3])
    scores = builder.matmul(sums, builder.constant(random.standard_normal((5, 7)).astype(np.float32)))
    return builder.build({"scores": builder.softmax(scores, 1), "__proto__": maps})


def opened(browser: Chromium, server: Server, folder: str) -> str:
    """Open the page of a folder, and return its state once it has one."""
    browser.open(f"{server.address}/{folder}/index.html")
    browser.wait("document.documentElement.dataset.state !== 'loading'")
    return browser.evaluate("document.documentElement.dataset.state")


@pytest.fixture(scope="module")
def page(browser: Chromium, server: Server, reference: wn.MLContext) -> str:
    with network(reference) as graph:
        web.write(graph, server.folder / "network", name="<i>A network</i>")
    assert opened(browser, server, "network") == "done", browser.evaluate("document.body.innerText")
    return "network"


def test_a_page_computes_what_was_computed_here(browser: Chromium, page: str) -> None:
    assert float(browser.evaluate("document.documentElement.dataset.difference")) < 1e-6
    assert "numpy reference" in browser.evaluate("document.body.innerText")


def test_names_are_text(browser: Chromium, page: str) -> None:
    assert browser.evaluate("document.querySelector('h1').textContent") == "<i>A network</i>"
    assert browser.evaluate("document.querySelectorAll('i, b').length") == 0
    assert "→ __proto__" in browser.evaluate("document.body.innerText")


def test_a_run_is_encoded_on_buffers_of_the_page(browser: Chromium, page: str) -> None:
    found = browser.evaluate("""(async () => {
      const { load } = await import("./webnn-wgpu-player.js");
      const device = await (await navigator.gpu.requestAdapter()).requestDevice();
      const model = await load("./", { device });
      const { inputs, outputs } = await model.readSample();
      const usage = GPUBufferUsage.STORAGE | GPUBufferUsage.COPY_SRC | GPUBufferUsage.COPY_DST;
      const buffers = (all) => Object.fromEntries(Object.entries(all).map(([name, { bytes }]) => [
        name, device.createBuffer({ size: bytes, usage })]));
      const [given, results] = [buffers(model.inputs), buffers(model.outputs)];
      device.queue.writeBuffer(given["<b>x</b>"], 0, inputs["<b>x</b>"]);
      const staging = device.createBuffer({ size: 32, usage: GPUBufferUsage.MAP_READ | GPUBufferUsage.COPY_DST });
      let submits = 0;
      const submit = device.queue.submit.bind(device.queue);
      device.queue.submit = (all) => { submits++; submit(all); };
      device.pushErrorScope("validation");
      const encoder = device.createCommandEncoder();
      model.encode(encoder, given, results);
      const pass = encoder.beginComputePass();
      model.encode(pass, given, results);
      pass.end();
      encoder.copyBufferToBuffer(results.scores, 0, staging, 0, 32);
      device.queue.submit([encoder.finish()]);
      const error = await device.popErrorScope();
      await staging.mapAsync(GPUMapMode.READ);
      const scores = [...new Float32Array(staging.getMappedRange()).slice(0, 7)];
      let refused = "";
      try { model.encode(device.createCommandEncoder(), given, {}); } catch (thrown) { refused = thrown.message; }
      model.destroy();
      device.destroy();
      return { submits, scores, wanted: [...outputs.scores], refused, error: error && error.message };
    })()""")
    assert found["error"] is None
    assert found["submits"] == 1
    np.testing.assert_allclose(found["scores"], found["wanted"], rtol=1e-5)
    assert found["refused"] == "The output scores must be a GPUBuffer of at least 32 bytes"


@pytest.mark.parametrize(
    ("feeds", "message"),
    [
        ("{}", "The input <b>x</b> must be a Float32Array of 300 elements"),
        ("{'<b>x</b>': new Float32Array(3)}", "The input <b>x</b> must be a Float32Array of 300 elements"),
        ("{'<b>x</b>': new Int32Array(300)}", "The input <b>x</b> must be a Float32Array of 300 elements"),
        ("{y: [1]}", "There is no input y"),
    ],
)
def test_wrong_inputs_are_refused(browser: Chromium, page: str, feeds: str, message: str) -> None:
    found = browser.evaluate(f"""(async () => {{
      const {{ load }} = await import("./webnn-wgpu-player.js");
      globalThis.loaded ??= await load("./");
      try {{ await loaded.run({feeds}); }} catch (error) {{ return error.message; }}
    }})()""")
    assert found == message


def test_a_device_that_is_short_of_a_limit_is_refused(browser: Chromium, server: Server, page: str) -> None:
    content = json.loads((server.folder / page / "model.json").read_text())
    content["requires"]["limits"]["maxBufferSize"] = 2**52
    server.contents["/limited/model.json"] = json.dumps(content).encode()
    found = browser.evaluate("""(async () => {
      const { load } = await import("./webnn-wgpu-player.js");
      try { await load("/limited/"); } catch (error) { return error.message; }
    })()""")
    assert found.startswith("The adapter lacks the limit maxBufferSize of 4503599627370496: it has ")


def test_a_kernel_that_does_not_compile_is_named(browser: Chromium, server: Server, page: str) -> None:
    content = json.loads((server.folder / page / "model.json").read_text())
    for file in content["files"]:
        server.contents[f"/broken/{file}"] = (server.folder / page / file).read_bytes()
    for kernel in content["kernels"]:
        server.contents[f"/broken/{kernel['file']}"] = b"fn main() {\n  nonsense\n}"
    server.contents["/broken/model.json"] = json.dumps(content).encode()
    found = browser.evaluate("""(async () => {
      const { load } = await import("./webnn-wgpu-player.js");
      try { await load("/broken/"); } catch (error) { return error.message; }
    })()""")
    assert found.startswith("kernels/")
    assert " 3:1: " in found


def test_the_player_is_short_and_needs_nothing_else() -> None:
    text = files("webnn_wgpu.exporters.web").joinpath(web.PLAYER).read_text()
    assert text.count("\n") < 400
    assert "import " not in "".join(line for line in text.splitlines() if not line.startswith("//"))


def test_aliases_share_a_buffer(browser: Chromium, server: Server, reference: wn.MLContext) -> None:
    builder = wn.MLGraphBuilder(reference)
    cache = builder.input("cache", {"dataType": "float32", "shape": [4, 2]})
    rows = builder.input("rows", {"dataType": "float32", "shape": [1, 2]})
    place = builder.input("place", {"dataType": "int32", "shape": []})
    updated = builder.ext.cache_update(cache, rows, place, axis=0)
    with builder.build({"updated": updated, "sum": builder.reduce_sum(updated)}, aliases={"updated": "cache"}) as graph:
        written: dict[str, Any] = web.folder_files(graph)
    for file, content in written.items():
        server.contents[f"/alias/{file}"] = content if isinstance(content, bytes) else b"".join(content)
    browser.open(f"{server.address}/network/index.html")
    found = browser.evaluate("""(async () => {
      const { load } = await import("/alias/webnn-wgpu-player.js");
      const model = await load("/alias/");
      const shared = model._ends.inputs.get("cache") === model._ends.outputs.get("updated");
      const result = await model.run({ cache: new Float32Array(8), rows: [1, 2], place: new Int32Array([2]) });
      const next = await model.run({ rows: [3, 4], place: new Int32Array([0]) }, ["sum", "sum", "sum"]);
      const last = await model.run({ rows: [5, 6], place: new Int32Array([1]) }, ["updated"]);
      const said = [{ cache: [] }, {}].map((more) => {
        try { model.run({ rows: [1, 2], ...more }); } catch (error) { return error.message; }
      });
      try { model.run({ rows: [1, 2], place: [0] }, ["none"]); } catch (error) { said.push(error.message); }
      return { shared, first: [[...result.updated], [...result.sum]], next, last: [...last.updated], said };
    })()""")
    assert found == {
        "shared": True,
        "first": [[0, 0, 0, 0, 1, 2, 0, 0], [3]],
        "next": {"sum": {"0": 10}},
        "last": [3, 4, 5, 6, 1, 2, 0, 0],
        "said": [
            "The input cache must be a Float32Array of 8 elements",
            "The input place must be a Int32Array of 1 elements",
            "There is no output none",
        ],
    }


def test_all_types_pass_through(browser: Chromium, server: Server, reference: wn.MLContext) -> None:
    types = ("float32", "float16", "int32", "uint32", "int64", "uint64", "int8", "uint8")
    builder = wn.MLGraphBuilder(reference)
    inputs = {name: builder.input(name, {"dataType": name, "shape": [3]}) for name in types}
    with builder.build({f"{name}-back": builder.concat([x, x], 0) for name, x in inputs.items()}) as graph:
        web.write(graph, server.folder / "types")
    assert opened(browser, server, "types") == "done", browser.evaluate("document.body.innerText")
    assert browser.evaluate("document.documentElement.dataset.difference") == "0"


def test_a_decoder_keeps_its_caches(browser: Chromium, server: Server, context: wn.MLContext) -> None:
    tokens = [1, 2, 3, 4]
    with wn.load_onnx(gpt(), context, kv_cache=16) as model, model.state() as state:
        for i in range(9):
            feeds = {"input_ids": [[tokens[i]]], "attention_mask": [[1] * (i + 1)]}
            scores = model.run(feeds, state=state)["logits"].ravel()
            if i >= 3:
                tokens.append(int(scores.argmax()))
        web.write(model, server.folder / "decoder")
    assert opened(browser, server, "decoder") == "done", browser.evaluate("document.body.innerText")
    assert float(browser.evaluate("document.documentElement.dataset.difference")) < 1e-5
    assert browser.evaluate("document.documentElement.dataset.tokens").split()[:10] == [str(token) for token in tokens]
    found = browser.evaluate("""(async () => {
      const { loadDecoder } = await import("/decoder/webnn-wgpu-decoder.js");
      const decoder = await loadDecoder("/decoder/");
      const said = [];
      try { decoder.truncate(1); } catch (error) { said.push(error.message); }
      const { logits } = await decoder.step(1);
      decoder.truncate(0);
      const again = (await decoder.step(1)).logits;
      for (let i = 1; i < decoder.capacity; i++) await decoder.step(2, []);
      try { decoder.step(3); } catch (error) { said.push(error.message); }
      return { same: logits.every((score, i) => score === again[i]), length: decoder.length, said };
    })()""")
    assert found == {
        "same": True,
        "length": 16,
        "said": ["There are 0 tokens", "The caches are full: they hold 16 tokens"],
    }
