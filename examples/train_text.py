"""A character transformer learns a text, and then writes: training steps on the device, and a graph that predicts characters.

The text is the beginning of the license. More layers, wider rows and longer windows learn longer texts.
"""

from pathlib import Path

import numpy as np

import webnn_wgpu as wn
from webnn_wgpu import train

LAYERS, HEADS, WIDTH, LENGTH, BATCH, STEPS = 2, 4, 64, 64, 4, 200
TEXT = " ".join((Path(__file__).parents[1] / "LICENSE").read_text("utf-8").split())[:300]
CHARACTERS = sorted(set(TEXT))
TOKENS = np.array([CHARACTERS.index(character) for character in TEXT], np.int32)


def weights(rng):
    """Return the initial parameters by name."""
    found = {name: rng.normal(0, 0.1, (n, WIDTH)) for name, n in (("characters", len(CHARACTERS)), ("places", LENGTH))}
    shapes = {"qkv": (WIDTH, 3 * WIDTH), "mix": (WIDTH, WIDTH), "up": (WIDTH, 4 * WIDTH), "down": (4 * WIDTH, WIDTH)}
    matrices = {f"{name}{layer}": shape for layer in range(LAYERS) for name, shape in shapes.items()}
    for name, shape in {**matrices, "head": (WIDTH, len(CHARACTERS))}.items():
        found |= {f"{name}/weight": train.glorot_uniform(shape, rng), f"{name}/bias": np.zeros(shape[1])}
    norms = [f"{name}{layer}" for layer in range(LAYERS) for name in ("before_mix", "before_up")]
    for name in (*norms, "before_head"):
        found |= {f"{name}/weight": np.ones(WIDTH), f"{name}/bias": np.zeros(WIDTH)}
    return found


def scores(b, p, tokens):
    """Return the scores [rows, length, characters] of the characters that follow each token."""

    def dense(x, name):
        return b.add(b.matmul(x, p[f"{name}/weight"]), p[f"{name}/bias"])

    def norm(x, name):
        return b.layer_normalization(x, scale=p[f"{name}/weight"], bias=p[f"{name}/bias"], axes=[2])

    x = b.add(b.gather(p["characters"], tokens), p["places"])
    for layer in range(LAYERS):
        query, key, value = b.split(dense(norm(x, f"before_mix{layer}"), f"qkv{layer}"), 3, axis=2)
        x = b.add(x, dense(b.ext.attention(query, key, value, heads=HEADS, causal=True), f"mix{layer}"))
        x = b.add(x, dense(b.gelu(dense(norm(x, f"before_up{layer}"), f"up{layer}")), f"down{layer}"))
    return dense(norm(x, "before_head"), "head")


def forward(b, p, inputs):
    """Return the mean cross-entropy of the next characters."""
    rows = b.reshape(scores(b, p, inputs["tokens"]), [BATCH * LENGTH, len(CHARACTERS)])
    following = b.reshape(inputs["following"], [BATCH * LENGTH, 1])
    return b.neg(b.reduce_mean(b.gather_elements(b.ext.log_softmax(rows, 1), following, axis=1)))


rng = np.random.default_rng(0)
inputs = {name: {"dataType": "int32", "shape": [BATCH, LENGTH]} for name in ("tokens", "following")}
rate = train.WarmUpSchedule(steps=20, after=train.CosineSchedule(initial=0.01, steps=STEPS - 20))
optimizer = train.AdamW(learning_rate=rate, clip_norm=1.0)
context = wn.ml.create_context()

with train.Step(context, forward, weights(rng), optimizer, inputs=inputs) as step:
    for number in range(STEPS):
        windows = rng.integers(0, len(TOKENS) - LENGTH, (BATCH, 1)) + np.arange(LENGTH)
        loss = step({"tokens": TOKENS[windows], "following": TOKENS[windows + 1]})["loss"]
        if number % 50 == 0 or number == STEPS - 1:
            print(f"step {number + 1}: loss {loss:.2f}")
    print(step)
    trained = step.parameters()

# The network that predicts, with the weights as constants. Places after the last token do not influence it.
builder = wn.MLGraphBuilder(context)
constants = {name: builder.constant(array) for name, array in trained.items()}
tokens = builder.input("tokens", [1, LENGTH], "int32")
graph = builder.build({"best": builder.arg_max(scores(builder, constants, tokens), 2, output_data_type="int32")})

written = list(TOKENS[:16])
for _ in range(48):
    window = np.zeros((1, LENGTH), np.int32)
    window[0, : len(written)] = written
    written.append(context.compute(graph, {"tokens": window})["best"][0, len(written) - 1])
print("".join(CHARACTERS[token] for token in written))
