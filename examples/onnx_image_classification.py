"""Classify a picture with an ONNX model of MobileNetV2's layout: preprocessing, one run, the best classes.

Needs the extras `onnx` and `image`. The model is a small one with random weights (`models.py`), so that what it says means
nothing; put the path of a real one, and of a photograph, in place of it:

    python onnx_image_classification.py mobilenetv2.onnx cat.jpg
"""

import sys

import numpy as np
from models import mobilenet_v2

import webnn_wgpu as wn
from webnn_wgpu.frontends.images import Preprocessing, image_tensor

source = wn.load(sys.argv[1]) if len(sys.argv) > 1 else wn.load_onnx(mobilenet_v2())
if len(sys.argv) > 2:
    picture = sys.argv[2]
else:
    # A picture of our own: a bright disc on a gradient.
    y, x = np.mgrid[0:120, 0:160]
    disc = (x - 80) ** 2 + (y - 60) ** 2 < 40**2
    picture = np.stack([np.where(disc, 240, x), np.where(disc, 200, y), np.where(disc, 40, 255 - x)], -1).astype(np.uint8)

with source as model:
    image = model.inputs[0]
    # The shorter side is scaled, the center cut out, pixels are normalized by ImageNet's mean and deviation.
    pixels = image_tensor(picture, image.shape, image.dtype, Preprocessing(normalization="imagenet"))
    (logits,) = model.run({image.name: pixels}).values()
    print("input:", pixels.dtype, pixels.shape)
    print(model.placement.summary().partition(";")[0])
    chances = np.exp(logits[0] - logits[0].max())
    chances /= chances.sum()
    for i in np.argsort(-chances)[:5]:
        print(f"class {i}: {chances[i]:.3f}")
