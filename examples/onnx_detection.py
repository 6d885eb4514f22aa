"""Object detection with NonMaxSuppression in the model: how many boxes there are is known only when it has run.

Needs the extra `onnx`. The convolutions run on the device. NonMaxSuppression has as many results as it finds boxes, which no
WebNN operator can say, so the host evaluates it between the device and the caller: `placement` shows it, and with
`fallback="error"` the model would be refused.
"""

import numpy as np
from models import detector

import webnn_wgpu as wn

image = np.random.default_rng(1).standard_normal((1, 3, 32, 32)).astype(np.float32)

with wn.load_onnx(detector(), fallback="host") as model:
    found = model.run({"image": image})
    for placed in model.placement.on("host"):
        if placed.op == "NonMaxSuppression":
            print("on the host:", placed.op)
    # Each row of `selected` is the number of the picture, of the class and of the box.
    for picture, kind, box in found["selected"]:
        top, left, bottom, right = found["boxes"][picture, box]
        print(f"class {kind}, score {found['scores'][picture, kind, box]:.2f}: {left:.1f} {top:.1f} {right:.1f} {bottom:.1f}")
