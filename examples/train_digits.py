"""A convolutional network learns to read digits: training steps on the device, a checkpoint, a graph of the trained network.

The digits are drawn: `digits.py`.
"""

import numpy as np
from digits import SIZE, digits

import webnn_wgpu as wn
from webnn_wgpu import train

BATCH, STEPS = 32, 120


def scores(b, p, pictures):
    """Return the scores [count, 10] of pictures: two convolutions with pooling, and a dense layer."""
    hidden = b.relu(b.conv2d(pictures, p["filter1"], bias=p["bias1"], padding=[1, 1, 1, 1]))
    hidden = b.average_pool2d(hidden, window_dimensions=[2, 2], strides=[2, 2])
    hidden = b.relu(b.conv2d(hidden, p["filter2"], bias=p["bias2"], padding=[1, 1, 1, 1]))
    hidden = b.average_pool2d(hidden, window_dimensions=[2, 2], strides=[2, 2])
    return b.add(b.matmul(b.reshape(hidden, [hidden.shape[0], 16 * 9]), p["weight"]), p["bias"])


def forward(b, p, inputs):
    """Return the cross-entropy and the accuracy of a batch."""
    found = scores(b, p, inputs["pictures"])
    labels = b.reshape(inputs["labels"], [BATCH, 1])
    right = b.equal(b.arg_max(found, 1, output_data_type="int32"), inputs["labels"])
    return {
        "loss": b.neg(b.reduce_mean(b.gather_elements(b.ext.log_softmax(found, 1), labels, axis=1))),
        "accuracy": b.reduce_mean(b.cast(right, "float32")),
    }


def initial(rng):
    """Return the initial parameters by name."""
    return {
        "filter1": train.he_normal([8, 1, 3, 3], rng, fan_in=9),
        "bias1": np.zeros(8),
        "filter2": train.he_normal([16, 8, 3, 3], rng, fan_in=72),
        "bias2": np.zeros(16),
        "weight": train.glorot_uniform([144, 10], rng),
        "bias": np.zeros(10),
    }


if __name__ == "__main__":
    rng = np.random.default_rng(0)
    inputs = {
        "pictures": {"dataType": "float32", "shape": [BATCH, 1, SIZE, SIZE]},
        "labels": {"dataType": "int32", "shape": [BATCH]},
    }
    schedule = train.CosineSchedule(initial=0.03, steps=STEPS)
    context = wn.ml.create_context()

    with train.Step(context, forward, initial(rng), train.Adam(learning_rate=schedule), inputs=inputs) as step:
        for number in range(STEPS):
            pictures, labels = digits(rng, BATCH)
            results = step({"pictures": pictures, "labels": labels})
            if number % 40 == 0 or number == STEPS - 1:
                print(f"step {number + 1}: loss {results['loss']:.2f}, accuracy {results['accuracy']:.2f}")
        print(step)
        step.save("digits.safetensors")
        print("written: digits.safetensors")
        trained = step.parameters()

    # The trained network as a graph of its own, with the weights as constants.
    builder = wn.MLGraphBuilder(context)
    weights = {name: builder.constant(array) for name, array in trained.items()}
    graph = builder.build({"scores": scores(builder, weights, builder.input("pictures", [500, 1, SIZE, SIZE], "float32"))})
    pictures, labels = digits(np.random.default_rng(1), 500)
    found = context.compute(graph, {"pictures": pictures})["scores"].argmax(1)
    print(f"held-out accuracy {(found == labels).mean():.3f}")
