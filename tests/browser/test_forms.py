"""The forms of pages in a browser: a picture that is dropped, and sentences."""

from __future__ import annotations

import io
import json
from base64 import b64encode
from typing import TYPE_CHECKING

import numpy as np
import pytest

import webnn_wgpu as wn
from tests.browser.test_pages import opened
from webnn_wgpu.exporters import web
from webnn_wgpu.frontends.images import Preprocessing, image_tensor

if TYPE_CHECKING:
    from pathlib import Path

    from tests.browser.chromium import Chromium, Server

LABELS = ("<b>red</b>", "green", "blue")


def test_a_picture_is_classified(browser: Chromium, server: Server) -> None:
    pillow = pytest.importorskip("PIL.Image")
    pixels = np.random.default_rng(0).integers(0, 200, (10, 12, 3)).astype(np.uint8)
    pixels[:, :, 1] += 50
    stored = io.BytesIO()
    pillow.fromarray(pixels).save(stored, "PNG")
    with wn.ml.create_context(backend="reference") as context:
        builder = wn.MLGraphBuilder(context)
        x = builder.input("x", {"dataType": "float32", "shape": [1, 3, 10, 12]})
        means = builder.reshape(builder.reduce_mean(x, axes=[2, 3]), [1, 3])
        with builder.build({"means": means}) as graph:
            how = Preprocessing(fit="stretch", normalization="unit")
            page = web.PicturePage(mean=(0, 0, 0), std=(1, 1, 1), fit="stretch", labels=LABELS)
            web.write(graph, server.folder / "picture", page=page)
            wanted = image_tensor(pixels, (1, 3, 10, 12), np.float32, how)
    assert opened(browser, server, "picture") == "done", browser.evaluate("document.body.innerText")
    found = browser.evaluate(f"""(async () => {{
      const data = Uint8Array.from(atob("{b64encode(stored.getvalue()).decode()}"), (c) => c.charCodeAt(0));
      const file = new File([data], "x.png", {{ type: "image/png" }}), dropped = new DataTransfer();
      dropped.items.add(file);
      document.querySelector(".drop").dispatchEvent(new DragEvent("drop", {{ dataTransfer: dropped }}));
      const {{ pictureTensor }} = await import("./webnn-wgpu-picture.js");
      const page = (await (await fetch("./model.json")).json()).page;
      return [...pictureTensor(await createImageBitmap(file), page, "float32")];
    }})()""")
    np.testing.assert_allclose(np.reshape(found, wanted.shape), wanted, atol=1e-6)
    assert browser.wait("document.documentElement.dataset.classified") == "1"
    assert "green" in browser.evaluate("document.body.innerText")
    assert "<b>red</b>" in browser.evaluate("document.body.innerText")


def test_sentences_are_compared(browser: Chromium, server: Server, tmp_path: Path) -> None:
    tokens = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "a", "b", "c"]
    vocabulary = {token: i for i, token in enumerate(tokens)}
    (tmp_path / "tokenizer.json").write_text(json.dumps({"model": {"type": "WordPiece", "vocab": vocabulary}}))
    table = np.eye(7, dtype=np.float32)
    table[[2, 3]] = 0  # so that the ends of a sentence do not count
    with wn.ml.create_context(backend="reference") as context:
        builder = wn.MLGraphBuilder(context)
        ids = builder.input("input_ids", {"dataType": "int64", "shape": [2, 6]})
        mask = builder.input("attention_mask", {"dataType": "int64", "shape": [2, 6]})
        rows = builder.gather(builder.constant(table), ids)
        masked = builder.mul(rows, builder.reshape(builder.cast(mask, "float32"), [2, 6, 1]))
        with builder.build({"rows": masked}) as graph:
            page = web.SentencesPage(tokenizer=tmp_path / "tokenizer.json", sentences=("a b", "B A", "c", "a <i>"))
            web.write(graph, server.folder / "sentences", page=page)
    assert opened(browser, server, "sentences") == "done", browser.evaluate("document.body.innerText")
    likeness = json.loads(browser.evaluate("document.documentElement.dataset.likeness"))
    same = 1 / np.sqrt(2 * (1 + 3**2))  # "a <i>" is a and three unknown tokens
    wanted = [[1, 1, 0, same], [1, 1, 0, same], [0, 0, 1, 0], [same, same, 0, 1]]
    np.testing.assert_allclose(likeness, wanted, atol=1e-6)
    assert browser.evaluate("document.querySelectorAll('i').length") == 0
