"""Text generation: the caches of keys and values stay on the device, and no number of tokens compiles anew.

Needs the extra `onnx`. The model is a small GPT-2 with random weights, so what it says makes no sense.
"""

import numpy as np
from models import gpt

import webnn_wgpu as wn


def generate(model: wn.Model, prompts: list[list[int]], count: int) -> np.ndarray:
    """Return `count` tokens that follow each prompt, always the likeliest."""
    longest = max(map(len, prompts))
    ids = np.array([[0] * (longest - len(p)) + p for p in prompts])
    mask = np.array([[0] * (longest - len(p)) + [1] * len(p) for p in prompts])
    found = []
    with model.state() as state:
        for _ in range(count):
            logits = model.run({"input_ids": ids, "attention_mask": mask}, state=state)["logits"]
            ids = logits[:, -1:].argmax(-1)
            mask = np.concatenate([mask, np.ones_like(ids)], axis=1)
            found.append(ids)
        print(state)
    return np.concatenate(found, axis=1)


# Room for 64 tokens of prompt and answer together.
with wn.load_onnx(gpt(), kv_cache=64) as model:
    print(*model.inputs, sep="\n")
    answers = generate(model, [[1, 2, 3, 4, 5], [6, 7]], 50)
    print("compiled:", model.compiled, "graphs, one for prompts and one for single tokens")
    print("first answer:", *answers[0, :8])

    # The same without caches: every token goes through the model with all that came before it.
    ids = np.array([[1, 2, 3, 4, 5]])
    for _ in range(8):
        logits = model.run({"input_ids": ids, "attention_mask": np.ones_like(ids)})["logits"]
        ids = np.concatenate([ids, logits[:, -1:].argmax(-1)], axis=1)
    print("without caches:", *ids[0, 5:])
