"""Sentence embeddings from an ONNX model with symbolic batch and sequence, as sentence-transformers exports them.

Needs the extra `onnx`, and for a real model `text`:

    python onnx_sentence_embeddings.py model.onnx tokenizer.json

Without arguments it runs a small model with random weights, with words numbered by their letters.
"""

import sys

import numpy as np
from models import bert

import webnn_wgpu as wn

SENTENCES = ["the cat sleeps", "the cat sleeps now", "stocks fell sharply on monday"]


def letters(sentence: str) -> list[int]:
    """Stand in for a tokenizer: one number for each word."""
    return [sum(map(ord, word)) % 256 for word in sentence.split()]


if len(sys.argv) > 2:
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_file(sys.argv[2])
    tokens = [tokenizer.encode(sentence).ids for sentence in SENTENCES]
    model = wn.load(sys.argv[1])
else:
    tokens = [letters(sentence) for sentence in SENTENCES]
    model = wn.load_onnx(bert())

# Rows are padded to one length; the mask says what is padding.
longest = max(map(len, tokens))
ids = np.array([row + [0] * (longest - len(row)) for row in tokens], np.int64)
mask = np.array([[1] * len(row) + [0] * (longest - len(row)) for row in tokens], np.int64)
feeds = {"input_ids": ids, "attention_mask": mask, "token_type_ids": np.zeros_like(ids)}

with model:
    found = model.run({i.name: feeds[i.name] for i in model.inputs})
    embeddings = next(iter(found.values()))
    if embeddings.ndim == 3:  # one vector for each token: take their mean
        embeddings = (embeddings * mask[:, :, None]).sum(1) / mask.sum(1, keepdims=True)
    embeddings /= np.linalg.norm(embeddings, axis=1, keepdims=True)
    print("embeddings:", embeddings.shape)
    for sentence, row in zip(SENTENCES, embeddings @ embeddings.T, strict=True):
        print(" ".join(f"{value:6.3f}" for value in row), sentence)
