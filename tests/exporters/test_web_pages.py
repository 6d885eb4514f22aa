"""Forms of pages: what they accept, and that JavaScript divides texts into the tokens that the tokenizer makes of them."""

from __future__ import annotations

import json
import shutil
import subprocess
from importlib.resources import files
from typing import TYPE_CHECKING, Any

import pytest

import webnn_wgpu as wn
from webnn_wgpu.exporters import web
from webnn_wgpu.exporters.web.pages import VOCABULARY
from webnn_wgpu.ir.types import TensorType

if TYPE_CHECKING:
    from pathlib import Path

NODE = shutil.which("node")

TOKENS = "[PAD] [UNK] [CLS] [SEP] a b man eat ##ing ##s food . , ! ' 中 国 cafe ##e un ##aff ##able $ - 1 ##2 3 ¿ “".split()

TEXTS = (
    "A man, eating foods.",
    "café CAFÉ unaffable unknown",
    "中国 a中b",
    "don't $12-3",
    "¿a “b”",
    "\ta\r\nb\u200b\x07 \u00a0a\ufffd",
    "x" * 101 + " a",
    "",
    "a " * 30,
    "İeating ﬁ",
)


@pytest.fixture
def tokenizer(tmp_path: Path) -> Path:
    tokenizers = pytest.importorskip("tokenizers")
    made = tokenizers.Tokenizer(
        tokenizers.models.WordPiece(
            {token: i for i, token in enumerate(TOKENS)}, unk_token="[UNK]", max_input_chars_per_word=100
        )
    )
    made.normalizer = tokenizers.normalizers.BertNormalizer(lowercase=True)
    made.pre_tokenizer = tokenizers.pre_tokenizers.BertPreTokenizer()
    made.post_processor = tokenizers.processors.BertProcessing(("[SEP]", 3), ("[CLS]", 2))
    made.save(str(tmp_path / "tokenizer.json"))
    return tmp_path / "tokenizer.json"


def encoder_types(**types: TensorType) -> dict[str, TensorType]:
    return types or {"input_ids": TensorType("int64", (1, 24)), "attention_mask": TensorType("int64", (1, 24))}


OUTPUTS = {"y": TensorType("float32", (1, 24, 8))}


@pytest.mark.skipif(NODE is None, reason="node is not installed")
def test_javascript_makes_the_tokens_of_the_tokenizer(tokenizer: Path, tmp_path: Path) -> None:
    from tokenizers import Tokenizer

    _, extra = web.SentencesPage(tokenizer=tokenizer).settings(encoder_types(), OUTPUTS)
    module = files(web.__name__).joinpath("webnn-wgpu-wordpiece.js").read_text()
    (tmp_path / "wordpiece.mjs").write_text(module)
    (tmp_path / "given.json").write_text(json.dumps({"vocabulary": json.loads(extra[VOCABULARY]), "texts": TEXTS}))
    program = """
      import {readFileSync} from "node:fs";
      import {WordPiece} from "./wordpiece.mjs";
      const {vocabulary, texts} = JSON.parse(readFileSync("given.json", "utf8"));
      const tokenizer = new WordPiece(vocabulary);
      console.log(JSON.stringify(texts.map((text) => tokenizer.encode(text, 24))));
    """
    assert NODE is not None
    command = [NODE, "--input-type=module", "-e", program]
    found = json.loads(subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True).stdout)
    known: Any = Tokenizer.from_file(str(tokenizer))
    known.enable_truncation(24)
    known.enable_padding(length=24)
    for text, each in zip(TEXTS, found, strict=True):
        wanted = known.encode(text)
        assert each == {"ids": wanted.ids, "count": sum(wanted.attention_mask)}, text


def test_inputs_of_encoders_are_told_by_their_names(tokenizer: Path) -> None:
    tokens = TensorType("int32", (2, 8))
    settings, _ = web.SentencesPage(tokenizer=tokenizer).settings(
        {"token_type_ids": tokens, "mask": tokens, "input_ids": tokens},
        {"last": TensorType("float32", (2, 8, 4)), "pooled": TensorType("float32", (2, 4))},
    )
    assert {"ids": "input_ids", "mask": "mask", "types": "token_type_ids", "output": "pooled"}.items() <= settings.items()


@pytest.mark.parametrize(
    "types",
    [
        {"x": TensorType("float32", (1, 8))},
        {"x": TensorType("int32", (8,))},
        {"a": TensorType("int32", (1, 8)), "b": TensorType("int32", (1, 8))},
        {"a": TensorType("int32", (1, 8)), "mask": TensorType("int32", (1, 9))},
        {"mask": TensorType("int32", (1, 8))},
    ],
)
def test_other_inputs_are_no_sentences(tokenizer: Path, types: dict[str, TensorType]) -> None:
    with pytest.raises(wn.MLTypeError, match="the inputs must be those of a text encoder"):
        web.SentencesPage(tokenizer=tokenizer).settings(types, OUTPUTS)


@pytest.mark.parametrize("text", ["", "[]", '{"model": {}}', '{"model": {"type": "BPE", "vocab": {"a": 0}}}'])
def test_other_tokenizers_are_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "tokenizer.json").write_text(text)
    with pytest.raises(wn.MLTypeError, match="WordPiece"):
        web.SentencesPage(tokenizer=tmp_path / "tokenizer.json").settings(encoder_types(), OUTPUTS)


@pytest.mark.parametrize(
    ("shape", "data_type", "layout"),
    [((1, 3, 8, 6), "float32", (6, 8, False)), ((1, 8, 6, 3), "uint8", (6, 8, True)), ((3, 8, 6), "float32", (6, 8, False))],
)
def test_the_layout_of_pictures_is_told_by_the_shape(shape: tuple[int, ...], data_type: str, layout: Any) -> None:
    settings, _ = web.PicturePage().settings({"x": TensorType(data_type, shape)}, OUTPUTS)
    assert (settings["width"], settings["height"], settings["channelsLast"]) == layout


@pytest.mark.parametrize("shape", [(2, 3, 8, 6), (1, 4, 8, 6), (3,), (1, 1, 8, 6)])
def test_other_inputs_are_no_pictures(shape: tuple[int, ...]) -> None:
    with pytest.raises(wn.MLTypeError, match="a picture must be an input of three channels"):
        web.PicturePage().settings({"x": TensorType("float32", shape)}, OUTPUTS)
