"""Small models with seeded weights that the examples run: of ONNX, made with `onnx.helper`, TFLite and TensorFlow.js.

    python examples/models.py DIR

writes the ONNX models to a folder. Their architectures are those of well-known models, only narrower. Their
weights are random.
"""

from __future__ import annotations

import base64
import json
import os
import sys
import tempfile
import zlib
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

OPSET = 21
IR_VERSION = 10


class GraphWriter:
    """Collects nodes and weights. Each method appends a node and returns the name of its result."""

    def __init__(self, seed: int) -> None:
        self.random = np.random.default_rng(seed)
        self.nodes: list[onnx.NodeProto] = []
        self.initializers: list[onnx.TensorProto] = []

    def node(self, op: str, *inputs: str, outputs: int = 1, **attributes: object) -> str:
        """Append a node; return the name of its first output."""
        name = f"{op.lower()}_{len(self.nodes)}"
        names = [name, *(f"{name}_{i}" for i in range(1, outputs))]
        self.nodes.append(helper.make_node(op, inputs, names, name, **attributes))
        return name

    def constant(self, values: object, dtype: object = np.float32) -> str:
        """Add an initializer."""
        name = f"weight_{len(self.initializers)}"
        self.initializers.append(numpy_helper.from_array(np.asarray(values, dtype), name))
        return name

    def weights(self, *shape: int, scale: float | None = None) -> str:
        """Add random weights; their scale keeps the variance of what goes through, unless it is given."""
        fan_in = int(np.prod(shape[1:])) if len(shape) > 2 else shape[0]
        return self.constant(self.random.standard_normal(shape) * (scale or np.sqrt(2 / fan_in)))

    def conv(self, x: str, channels: int, out: int, kernel: int = 1, stride: int = 1, group: int = 1) -> str:
        """Append a convolution without bias that keeps the size, but for its stride."""
        pad = kernel // 2
        weight = self.weights(out, channels // group, kernel, kernel)
        return self.node("Conv", x, weight, kernel_shape=[kernel] * 2, strides=[stride] * 2, pads=[pad] * 4, group=group)

    def batch_norm(self, x: str, channels: int) -> str:
        """Append a batch normalization."""
        scale, variance = (self.constant(self.random.uniform(0.8, 1.2, channels)) for _ in range(2))
        shift, mean = (self.constant(self.random.normal(0, 0.1, channels)) for _ in range(2))
        return self.node("BatchNormalization", x, scale, shift, mean, variance)

    def relu6(self, x: str) -> str:
        """Append ReLU6 as exporters write it."""
        return self.node("Clip", x, self.constant(0), self.constant(6))

    def dense(self, x: str, width: int, out: int) -> str:
        """Append a matrix product and a bias."""
        return self.node("Add", self.node("MatMul", x, self.weights(width, out)), self.weights(out, scale=0.02))

    def model(
        self,
        name: str,
        inputs: Sequence[tuple[str, int, Sequence[int | str]]],
        outputs: Sequence[tuple[str, str, int, Sequence[int | str]]],
    ) -> onnx.ModelProto:
        """Return the model: inputs are (name, type, shape), outputs (name, what they are, type, shape)."""
        for result, inner, *_ in outputs:
            self.nodes.append(helper.make_node("Identity", [inner], [result], result))
        graph = helper.make_graph(
            self.nodes,
            name,
            [helper.make_tensor_value_info(*given) for given in inputs],
            [helper.make_tensor_value_info(result, kind, shape) for result, _, kind, shape in outputs],
            self.initializers,
        )
        model = helper.make_model(
            graph, producer_name="webnn-wgpu", opset_imports=[helper.make_opsetid("", OPSET)], ir_version=IR_VERSION
        )
        onnx.checker.check_model(model)
        return model


def mlp(seed: int = 0) -> onnx.ModelProto:
    """Return two dense layers: x [N, 4] -> y [N, 3]."""
    g = GraphWriter(seed)
    hidden = g.node("Relu", g.node("Gemm", "x", g.weights(4, 4), g.weights(4)))
    y = g.node("Gemm", hidden, g.weights(4, 3), g.weights(3))
    return g.model("mlp", [("x", TensorProto.FLOAT, ["N", 4])], [("y", y, TensorProto.FLOAT, ["N", 3])])


def mobilenet_v2(classes: int = 10, size: int = 64, width: int = 8, seed: int = 0) -> onnx.ModelProto:
    """Return MobileNetV2's layout (inverted residuals, depthwise convolutions): image [batch, 3, size, size] -> logits."""
    g = GraphWriter(seed)

    def inverted_residual(x: str, channels: int, out: int, stride: int, expand: int) -> str:
        hidden = channels * expand
        y = x if expand == 1 else g.relu6(g.batch_norm(g.conv(x, channels, hidden), hidden))
        y = g.relu6(g.batch_norm(g.conv(y, hidden, hidden, 3, stride, group=hidden), hidden))
        y = g.batch_norm(g.conv(y, hidden, out), out)
        return g.node("Add", x, y) if stride == 1 and channels == out else y

    x, channels = g.relu6(g.batch_norm(g.conv("image", 3, width, 3, 2), width)), width
    for expand, factor, repeats, stride in [(1, 1, 1, 1), (6, 2, 2, 2), (6, 3, 2, 2), (6, 4, 1, 2)]:
        for i in range(repeats):
            x = inverted_residual(x, channels, factor * width, stride if i == 0 else 1, expand)
            channels = factor * width
    last = 16 * width
    x = g.relu6(g.batch_norm(g.conv(x, channels, last), last))
    x = g.node("Flatten", g.node("GlobalAveragePool", x), axis=1)
    logits = g.node("Gemm", x, g.weights(classes, last), g.weights(classes, scale=0.1), alpha=0.1, transB=1)
    return g.model(
        "mobilenet_v2",
        [("image", TensorProto.FLOAT, ["batch", 3, size, size])],
        [("logits", logits, TensorProto.FLOAT, ["batch", classes])],
    )


def bert(layers: int = 2, width: int = 32, heads: int = 4, vocabulary: int = 256, seed: int = 0) -> onnx.ModelProto:
    """Return a BERT-like encoder with mean pooling, as exporters write it.

    Its inputs are input_ids and attention_mask, int64 [batch, sequence]; its output is embedding, float32 [batch, width].
    """
    g = GraphWriter(seed)
    head, longest = width // heads, 512

    def layer_norm(x: str) -> str:
        return g.node("LayerNormalization", x, g.constant(np.ones(width)), g.constant(np.zeros(width)), axis=-1, epsilon=1e-5)

    def split_heads(x: str, *order: int) -> str:
        return g.node("Transpose", g.node("Reshape", x, g.constant([0, 0, heads, head], np.int64)), perm=order)

    # Positions follow from the sequence's length: arithmetic on shapes, evaluated when the graph is compiled.
    length = g.node("Gather", g.node("Shape", "input_ids"), g.constant(1, np.int64), axis=0)
    positions = g.node("Slice", g.constant(np.arange(longest), np.int64), g.constant([0], np.int64), unsqueezed(g, length))
    x = g.node("Gather", g.weights(vocabulary, width, scale=1.0), "input_ids")
    x = layer_norm(g.node("Add", x, g.node("Gather", g.weights(longest, width, scale=0.1), positions)))
    mask = g.node("Cast", g.node("Unsqueeze", "attention_mask", g.constant([1, 2], np.int64)), to=TensorProto.FLOAT)
    bias = g.node("Mul", g.node("Sub", g.constant(1), mask), g.constant(-1e4))
    for _ in range(layers):
        query, key, value = (g.dense(x, width, width) for _ in range(3))
        scores = g.node("MatMul", split_heads(query, 0, 2, 1, 3), split_heads(key, 0, 2, 3, 1))
        scores = g.node("Add", g.node("Div", scores, g.constant(np.sqrt(head))), bias)
        mixed = g.node("MatMul", g.node("Softmax", scores, axis=-1), split_heads(value, 0, 2, 1, 3))
        mixed = g.node("Reshape", g.node("Transpose", mixed, perm=[0, 2, 1, 3]), g.constant([0, 0, width], np.int64))
        x = layer_norm(g.node("Add", x, g.dense(mixed, width, width)))
        hidden = g.dense(x, width, 4 * width)
        inner = g.node("Erf", g.node("Div", hidden, g.constant(np.sqrt(2))))
        hidden = g.node("Mul", g.node("Mul", hidden, g.node("Add", inner, g.constant(1))), g.constant(0.5))
        x = layer_norm(g.node("Add", x, g.dense(hidden, 4 * width, width)))
    weight = g.node("Cast", g.node("Unsqueeze", "attention_mask", g.constant([2], np.int64)), to=TensorProto.FLOAT)
    axes = g.constant([1], np.int64)
    pooled = g.node(
        "Div", g.node("ReduceSum", g.node("Mul", x, weight), axes, keepdims=0), g.node("ReduceSum", weight, axes, keepdims=0)
    )
    length = g.node("Sqrt", g.node("ReduceSum", g.node("Mul", pooled, pooled), axes, keepdims=1))
    return g.model(
        "bert",
        [(name, TensorProto.INT64, ["batch", "sequence"]) for name in ("input_ids", "attention_mask")],
        [("embedding", g.node("Div", pooled, length), TensorProto.FLOAT, ["batch", width])],
    )


def gpt(layers: int = 2, width: int = 32, heads: int = 4, vocabulary: int = 64, seed: int = 0) -> onnx.ModelProto:
    """Return a GPT-2-like decoder with caches of keys and values, as exporters write it.

    Its inputs are input_ids, int64 [batch, sequence], attention_mask, int64 [batch, past + sequence], 0 for padding at the
    left, and past.LAYER.key and past.LAYER.value, float32 [batch, heads, past, width / heads]. Its outputs are logits,
    float32 [batch, sequence, vocabulary], and present.LAYER.key and present.LAYER.value, with new rows behind the past ones.
    """
    g = GraphWriter(seed)
    head, longest = width // heads, 1024
    one, two = g.constant([1], np.int64), g.constant([2], np.int64)

    def layer_norm(x: str) -> str:
        return g.node("LayerNormalization", x, g.constant(np.ones(width)), g.constant(np.zeros(width)), axis=-1, epsilon=1e-5)

    # Where the new tokens stand among all, from the shapes of the inputs.
    new = g.node("Gather", g.node("Shape", "input_ids"), one, axis=0)
    past = g.node("Gather", g.node("Shape", "past.0.key"), two, axis=0)
    total = g.node("Add", past, new)
    # Tokens of padding have no position, the first behind them has 0.
    positions = g.node("Sub", g.node("CumSum", "attention_mask", g.constant(1, np.int64)), one)
    positions = g.node("Slice", g.node("Clip", positions, g.constant(0, np.int64)), past, total, one)
    x = g.node("Gather", g.weights(vocabulary, width, scale=1.0), "input_ids")
    x = g.node("Add", x, g.node("Gather", g.weights(longest, width, scale=0.3), positions))
    # Tokens see those before them, but no padding.
    causal = g.node("Slice", g.constant(np.tri(longest), np.bool_), past, total, g.constant([0], np.int64))
    causal = g.node("Slice", causal, g.constant([0], np.int64), total, one)
    keep = g.node("Cast", g.node("Unsqueeze", "attention_mask", g.constant([1, 2], np.int64)), to=TensorProto.BOOL)
    bias = g.node("Where", g.node("And", causal, keep), g.constant(0), g.constant(-1e30))
    presents: list[tuple[str, str]] = []
    for layer in range(layers):
        parts = g.node("Split", g.dense(layer_norm(x), width, 3 * width), axis=-1, num_outputs=3, outputs=3)
        query, key, value = (
            g.node("Transpose", g.node("Reshape", part, g.constant([0, 0, heads, head], np.int64)), perm=[0, 2, 1, 3])
            for part in (parts, f"{parts}_1", f"{parts}_2")
        )
        key = g.node("Concat", f"past.{layer}.key", key, axis=2)
        value = g.node("Concat", f"past.{layer}.value", value, axis=2)
        presents += [(f"{layer}.key", key), (f"{layer}.value", value)]
        scores = g.node("MatMul", query, g.node("Transpose", key, perm=[0, 1, 3, 2]))
        scores = g.node("Add", g.node("Div", scores, g.constant(np.sqrt(head))), bias)
        mixed = g.node("Transpose", g.node("MatMul", g.node("Softmax", scores, axis=-1), value), perm=[0, 2, 1, 3])
        mixed = g.node("Reshape", mixed, g.constant([0, 0, width], np.int64))
        x = g.node("Add", x, g.dense(mixed, width, width))
        hidden = g.node("Gelu", g.dense(layer_norm(x), width, 4 * width), approximate="tanh")
        x = g.node("Add", x, g.dense(hidden, 4 * width, width))
    rows = ["batch", heads, "past", head]
    caches = [(f"past.{name}", TensorProto.FLOAT, rows) for name, _ in presents]
    grown = ["batch", heads, "past + sequence", head]
    return g.model(
        "gpt",
        [
            ("input_ids", TensorProto.INT64, ["batch", "sequence"]),
            ("attention_mask", TensorProto.INT64, ["batch", "past + sequence"]),
            *caches,
        ],
        [
            (
                "logits",
                g.node("MatMul", layer_norm(x), g.weights(width, vocabulary)),
                TensorProto.FLOAT,
                ["batch", "sequence", vocabulary],
            ),
            *((f"present.{name}", value, TensorProto.FLOAT, grown) for name, value in presents),
        ],
    )


def unsqueezed(g: GraphWriter, scalar: str) -> str:
    """Append what makes a list of one element of a scalar."""
    return g.node("Unsqueeze", scalar, g.constant([0], np.int64))


def detector(size: int = 32, classes: int = 3, most: int = 5, seed: int = 0) -> onnx.ModelProto:
    """Return a detector with anchors on a grid, and NonMaxSuppression as its last stage.

    Its input is image [1, 3, size, size]. Its outputs are boxes [1, boxes, 4], scores [1, classes, boxes] and selected
    [n, 3], the rows (batch, class, box) that are left, whose number depends on the image.
    """
    g = GraphWriter(seed)
    cells = (size // 4) ** 2
    x, channels = "image", 3
    for out in (8, 16):
        x, channels = g.relu6(g.batch_norm(g.conv(x, channels, out, 3, 2), out)), out
    # A position of the grid gives class scores and how much its box is moved and scaled.
    flat = g.constant([1, -1, cells], np.int64)
    scores = g.node("Sigmoid", g.node("Reshape", g.conv(x, channels, classes, 3), flat))
    moves = g.node("Transpose", g.node("Reshape", g.conv(x, channels, 4, 3), flat), perm=[0, 2, 1])
    moves = g.node("Tanh", moves)
    centers = np.stack(np.meshgrid(*[np.arange(2, size, 4)] * 2, indexing="ij"), -1).reshape(1, cells, 2)
    anchors = g.constant(np.concatenate([centers - 6, centers + 6], -1))
    boxes = g.node("Add", anchors, g.node("Mul", moves, g.constant(4)))
    limits = (g.constant([most], np.int64), g.constant([0.3]), g.constant([0.6]))
    selected = g.node("NonMaxSuppression", boxes, scores, *limits)
    return g.model(
        "detector",
        [("image", TensorProto.FLOAT, [1, 3, size, size])],
        [
            ("boxes", boxes, TensorProto.FLOAT, [1, cells, 4]),
            ("scores", scores, TensorProto.FLOAT, [1, classes, cells]),
            ("selected", selected, TensorProto.INT64, ["found", 3]),
        ],
    )


def quantized(bits: int = 8, width: int = 32, hidden: int = 64, out: int = 8, seed: int = 0) -> onnx.ModelProto:
    """Return two dense layers whose weights are integers of 8 bits (by column) or of 4 (in blocks of 16 rows).

    With 8 bits activations are quantized too, as QDQ pairs. x [batch, width] -> y [batch, out].
    """
    g = GraphWriter(seed)

    def product(x: str, rows: int, columns: int) -> str:
        weight = g.random.standard_normal((rows, columns)) * np.sqrt(2 / rows)
        if bits == 8:
            scale = np.abs(weight).max(0) / 127
            packed = g.constant(np.rint(weight / scale), np.int8)
            restored = g.node("DequantizeLinear", packed, g.constant(scale), g.constant(np.zeros(columns), np.int8), axis=1)
            step, zero = g.constant(8 / 255), g.constant(128, np.uint8)
            x = g.node("DequantizeLinear", g.node("QuantizeLinear", x, step, zero), step, zero)
        else:
            block = 16
            scale = np.abs(weight.reshape(rows // block, block, columns)).max(1) / 7
            values = np.rint(weight / np.repeat(scale, block, 0)).astype(np.int8)
            name = f"weight_{len(g.initializers)}"
            g.initializers.append(helper.make_tensor(name, TensorProto.INT4, values.shape, values.ravel()))
            restored = g.node("DequantizeLinear", name, g.constant(scale), axis=0, block_size=block)
        return g.node("MatMul", x, restored)

    hidden_values = g.node("Relu", product("x", width, hidden))
    y = product(hidden_values, hidden, out)
    return g.model(
        f"quantized_{bits}bit",
        [("x", TensorProto.FLOAT, ["batch", width])],
        [("y", y, TensorProto.FLOAT, ["batch", out])],
    )


MODELS = {
    "mlp": mlp,
    "mobilenet_v2": mobilenet_v2,
    "bert": bert,
    "gpt": gpt,
    "detector": detector,
    "quantized_8bit": quantized,
    "quantized_4bit": lambda: quantized(4),
}


_TFLITE_CLASSIFIER = (
    "eNp1UzFPwlAQvpYWoTbQEKJgGDBxMsaQyOAmkwvGMDg4mJgij9qkQNKCOjI4+BP8IcbFX+CsIz/A0YHBwVjvvXctD4wv/dpe33ff3bu71gDg7PjkoAwV"
    "KIMDNto54MtAGwSmiBmikgHACzSxC/D8E8ecX0O0EEVExMIbf+hd9ljfnQRjwZWaNsIQ2ib5Zzn/ahSyaKG5G8exQRx/4HoMZMxzRJ04p8SxYXn16fuO"
    "sKat5d2/tgGG0OOxHaEnK8DztOnbHPGF+KY8HhEXVBeAAmyRzzr6FKgWuPI1ylcXZlZoZmXcI43Ol5wZwErjWnQuh/YTTlJ3nd557A3BW8Suy9hmA29N"
    "4lRgM9UuUG9VcFlNiQX0NBWb5/2JeEI88HlB7FFeTax5jvJV+6mTv+jdCicYef54hTOL5SzpxOPaXd+NQOHY6XzK/thK79YQt8z3rlE4qRHHuxKbn2nA"
    "3GFE+uq5pb6dzn7yHzgrs5j4JfVL4jRoJvj+B8asytJV5/iep5mwRa8W+lRfrdPOGGWq9TaUXt9KRfqb+DQEbpcF0f74bhyynuWFjA2tbjBhVqet6eXM"
    "/47poGv3GVWm0zazsqwaHOLzRczTLyICZXw="
)


def tflite_classifier() -> str:
    """Write a TFLite model that names the color of a picture [1, 8, 8, 3] of numbers from 0 to 1, and return its path.

    A mean, a matrix product and softmax with one signature. The labels are packed into the file.
    """
    path = Path(tempfile.mkdtemp()) / "colors.tflite"
    path.write_bytes(zlib.decompress(base64.b64decode(_TFLITE_CLASSIFIER)))
    return str(path)


def tfjs_layers() -> str:
    """Write a TensorFlow.js layers model, 4 numbers to 2 through 8 hidden ones, and return the path of its model.json."""
    folder = Path(tempfile.mkdtemp()) / "net"
    folder.mkdir()
    random = np.random.default_rng(1)
    layers: list[dict[str, object]] = []
    weights: list[dict[str, object]] = []
    data = b""
    for name, inputs, units, activation in (("hidden", 4, 8, "tanh"), ("scores", 8, 2, "linear")):
        config: dict[str, object] = {
            "name": name,
            "units": units,
            "activation": activation,
            "use_bias": True,
            "trainable": True,
        }
        if not layers:
            config["batch_input_shape"] = [None, inputs]
        layers.append({"class_name": "Dense", "config": config})
        for kind, shape in (("kernel", (inputs, units)), ("bias", (units,))):
            weights.append({"name": f"{name}/{kind}", "shape": list(shape), "dtype": "float32"})
            data += (random.standard_normal(shape) / 2).astype(np.float32).tobytes()
    document = {
        "format": "layers-model",
        "modelTopology": {"class_name": "Sequential", "config": {"name": "net", "layers": layers}},
        "weightsManifest": [{"paths": ["weights.bin"], "weights": weights}],
    }
    (folder / "weights.bin").write_bytes(data)
    (folder / "model.json").write_text(json.dumps(document))
    return str(folder / "model.json")


def shared_files(*names: str) -> list[str]:
    """Return the paths of models and pictures of the project's test data, or end the program if they are not there."""
    shared = Path(os.environ.get("WEBNN_WGPU_SHARED") or Path(__file__).resolve().parents[2] / "shared")
    paths = [shared / "tflite" / "real" / name for name in names]
    if missing := [str(path) for path in paths if not path.is_file()]:
        raise SystemExit(f"{missing[0]} is not there: pass the paths of models of your own")
    return [str(path) for path in paths]


if __name__ == "__main__":
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    for name, make in MODELS.items():
        onnx.save(make(), folder / f"{name}.onnx")
        print(folder / f"{name}.onnx")
