"""Forms of pages for models whose inputs are a picture, sentences or tokens."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, cast

from webnn_wgpu.api.stored_graphs import TokenSteps
from webnn_wgpu.core.errors import MLTypeError

VOCABULARY = "vocabulary.json"
MOST_SCORES = 256
"""The number of scores of each token that a page compares."""
MOST_LENGTH = 100
"""The maximum number of characters of a word that is divided into tokens. Longer words are unknown."""

SENTENCES = (
    "A man is eating food.",
    "A man is eating a piece of bread.",
    "The girl is carrying a baby.",
    "A monkey is playing drums.",
    "Someone in a gorilla costume is playing a set of drums.",
)


@dataclass(frozen=True, kw_only=True)
class PicturePage:
    """A page that classifies a picture dropped on it.

    Attributes:
        input: the name of the input. "" is the only one.
        mean, std: of pixels from 0 to 1, by channel.
        fit: "crop" scales the shorter side and crops to the center, "stretch" changes proportions, "pad" fills with gray.
        layout: the position of the channels. "auto" derives it from the shape.
        bgr: whether channels are in the order blue, green, red.
        labels: the names of the classes, by number.
    """

    input: str = ""
    mean: Sequence[float] = (0.485, 0.456, 0.406)
    std: Sequence[float] = (0.229, 0.224, 0.225)
    fit: Literal["crop", "stretch", "pad"] = "crop"
    layout: Literal["auto", "nchw", "nhwc"] = "auto"
    bgr: bool = False
    labels: Sequence[str] = ()

    modules = ("webnn-wgpu-picture.js",)

    def settings(self, inputs: Mapping[str, Any], outputs: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, bytes]]:
        """Return the settings of the page's form, and further files.

        Args:
            inputs: the types of the graph's inputs by name.
            outputs: the types of its outputs by name.

        Raises:
            MLTypeError: the inputs are no picture.
        """
        if self.input not in inputs and (self.input or len(inputs) != 1):
            raise MLTypeError("the page needs one input for its picture", operator="export", got=repr(self.input))
        name = self.input or next(iter(inputs))
        shape, data_type = inputs[name].shape, inputs[name].data_type
        fits = len(shape) in (3, 4) and (len(shape) == 3 or shape[0] == 1)
        last = fits and (self.layout == "nhwc" or (self.layout == "auto" and shape[-3] != 3))
        channels, height, width = (shape[-1], *shape[-3:-1]) if last else shape[-3:] if fits else (0, 0, 0)
        if channels != 3 or data_type not in ("float32", "uint8"):
            raise MLTypeError(
                "a picture must be an input of three channels",
                operator="export",
                got=f"{name}: {inputs[name]}",
                allowed="float32 or uint8 [1, 3, height, width] or [1, height, width, 3]",
            )
        return {
            "kind": "picture",
            "input": name,
            "output": next(iter(outputs)),
            "width": width,
            "height": height,
            "channelsLast": last,
            "mean": list(self.mean),
            "std": list(self.std),
            "fit": self.fit,
            "bgr": self.bgr,
            "labels": list(self.labels),
        }, {}


@dataclass(frozen=True, kw_only=True)
class SentencesPage:
    """A page that compares sentences by the embeddings of a text encoder with WordPiece tokens.

    Attributes:
        tokenizer: the model's `tokenizer.json`.
        sentences: the sentences that the page begins with.
    """

    tokenizer: str | os.PathLike[str]
    sentences: Sequence[str] = SENTENCES

    modules = ("webnn-wgpu-sentences.js", "webnn-wgpu-wordpiece.js")

    def settings(self, inputs: Mapping[str, Any], outputs: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, bytes]]:
        """Return the settings of the page's form, and the file of the vocabulary.

        Args:
            inputs: the types of the graph's inputs by name.
            outputs: the types of its outputs by name.

        Raises:
            MLTypeError: the inputs are not those of a text encoder, or the tokenizer is not WordPiece.
        """
        roles = {_role(name): name for name in inputs}
        shapes = {type_.shape for type_ in inputs.values()}
        are_tokens = len(shapes) == 1 and all(len(shape) == 2 for shape in shapes)
        are_tokens = are_tokens and all(type_.data_type in ("int32", "int64") for type_ in inputs.values())
        if "ids" not in roles or len(roles) < len(inputs) or not are_tokens:
            got = ", ".join(f"{name}: {type_}" for name, type_ in inputs.items())
            raise MLTypeError(
                "the inputs must be those of a text encoder",
                operator="export",
                got=got,
                allowed="input_ids, attention_mask and token_type_ids of one shape [batch, length]",
            )
        output = next((n for n, t in outputs.items() if len(t.shape) == 2), next(iter(outputs)))
        shown = {"kind": "sentences", **roles, "output": output}
        vocabulary = json.dumps(_vocabulary(Path(self.tokenizer)), ensure_ascii=False).encode()
        return {**shown, "vocabulary": VOCABULARY, "sentences": list(self.sentences)}, {VOCABULARY: vocabulary}


@dataclass(frozen=True, kw_only=True)
class TokensPage:
    """A page that continues a list of tokens by a decoder, and compares its scores with those computed here.

    Attributes:
        tokens: the numbers of the tokens that the page begins with.
        output: the output with the scores of the next token. "" is the first one that updates no cache.
    """

    tokens: Sequence[int] = (1, 2, 3, 4)
    output: str = ""

    modules = ("webnn-wgpu-tokens.js",)

    def settings(self, steps: TokenSteps | None) -> dict[str, Any]:
        """Return the settings of the page's form, with the scores of the first tokens computed here.

        Args:
            steps: the decoder.

        Raises:
            MLTypeError: the model is no decoder.
        """
        if steps is None:
            raise MLTypeError("the page needs a decoder", operator="export", hint="load(..., kv_cache=ROWS) makes one")
        output = self.output or next(name for name in steps.graph.outputs if name not in steps.graph.aliases)
        tokens = [int(token) for token in self.tokens[: steps.rows]]
        scores = [array.reshape(-1).tolist()[:MOST_SCORES] for array in steps.run(tokens, output)]
        device = steps.device
        return {"kind": "tokens", "output": output, "tokens": tokens, "scores": scores, "device": device}


def _role(name: str) -> str:
    """Return the role of an input of a text encoder, by its name."""
    return "mask" if "mask" in name.lower() else "types" if "type" in name.lower() else "ids"


def _vocabulary(path: Path) -> dict[str, Any]:
    """Return the tokens of a `tokenizer.json`, and how it divides texts."""
    try:
        content: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        model = content["model"]
        normalizer: dict[str, Any] = content.get("normalizer") or {}
        known = cast("dict[str, int]", model["vocab"])
        tokens = [token for token, _ in sorted(known.items(), key=lambda item: item[1])]
        if model["type"] != "WordPiece" or [known[token] for token in tokens] != list(range(len(tokens))):
            raise MLTypeError("the tokenizer must be WordPiece", operator="export", got=str(path))
        special = {name: known[f"[{name.upper()}]"] for name in ("cls", "sep", "pad", "unk")}
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise MLTypeError(f"the file is no tokenizer.json of WordPiece: {error!r}", operator="export", got=str(path)) from None
    lowercase = bool(normalizer.get("lowercase", True))
    accents = normalizer.get("strip_accents")
    return {
        "tokens": tokens,
        "prefix": model.get("continuing_subword_prefix", "##"),
        "longest": model.get("max_input_chars_per_word", MOST_LENGTH),
        "lowercase": lowercase,
        "stripAccents": lowercase if accents is None else bool(accents),
        **special,
    }
