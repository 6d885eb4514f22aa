"""Classify a picture with a TFLite model and the label file that is packed into it, or one beside it.

Needs the extras `tflite` and `image`. The model is a small one that names the color of a picture. Pass the path of another
model, of a picture, and of its labels instead:

    python tflite_image_classification.py mobilenet_v2_1.0_224_quant.tflite grace_hopper.bmp imagenet_labels.txt
"""

import sys
from pathlib import Path

import numpy as np
from models import tflite_classifier
from PIL import Image

import webnn_wgpu as wn
from webnn_wgpu.tflite import Interpreter

path = sys.argv[1] if len(sys.argv) > 1 else tflite_classifier()
picture = Image.open(sys.argv[2]).convert("RGB") if len(sys.argv) > 2 else Image.new("RGB", (40, 30), (20, 200, 90))

with wn.load(path) as model:
    assert isinstance(model, wn.TfliteModel)
    labels = Path(sys.argv[3]).read_text().splitlines() if len(sys.argv) > 3 else model.labels()
    image = model.inputs[0]
    height, width = (int(d or 224) for d in (image.shape or ())[1:3])
    pixels = np.asarray(picture.resize((width, height), Image.Resampling.BILINEAR))[None]
    # Models of 8 bits get the pixels as they are.
    pixels = (pixels / 255 if image.dtype.kind == "f" else pixels).astype(image.dtype)
    (scores,) = model.run({image.name: pixels}).values()
    print(model.placement.summary())
    for i in np.argsort(-scores[0].astype(np.float32), kind="stable")[:3]:
        print(f"{labels[i]}: {scores[0][i]:.3g}")

# The same with the names of LiteRT. Programs for its interpreter need another import only.
interpreter = Interpreter(path)
interpreter.allocate_tensors()
interpreter.set_tensor(interpreter.get_input_details()[0]["index"], pixels)
interpreter.invoke()
again = interpreter.get_tensor(interpreter.get_output_details()[0]["index"])
print("the interpreter's results are equal:", np.array_equal(again, scores))
