"""Find the objects of a picture with a TFLite model for segmentation, and draw a box around each.

Needs the extras `tflite` and `image`. DeepLab names the class of each pixel. Pixels of one class that touch are an object. Pass
the paths of a model, of a picture and of the labels, or set `WEBNN_WGPU_SHARED` to the folder with the project's test data:

    python tflite_object_boxes.py deeplabv3.tflite cat.bmp labels.txt
"""

import sys
from collections import deque
from pathlib import Path

import numpy as np
from models import shared_files
from PIL import Image, ImageDraw

import webnn_wgpu as wn

NAMES = ("deeplabv3_mnv2_dm05_pascal_quant.tflite", "resized_cat.bmp", "pascal_voc_segmentation_labels.txt")
STEP = 9  # Every ninth pixel is enough for boxes.


def boxes(classes):
    """Yield class, number of pixels, and first and last column and row of each group of neighbors of one class but 0."""
    left = {(int(y), int(x)) for y, x in np.argwhere(classes)}
    while left:
        group, todo = [], deque([left.pop()])
        while todo:
            y, x = todo.popleft()
            group.append((x, y))
            for near in ((y - 1, x), (y + 1, x), (y, x - 1), (y, x + 1)):
                if near in left and classes[near] == classes[y, x]:
                    left.remove(near)
                    todo.append(near)
        xs, ys = zip(*group, strict=True)
        yield int(classes[ys[0], xs[0]]), len(group), (min(xs), min(ys), max(xs), max(ys))


paths = sys.argv[1:4] if len(sys.argv) > 3 else shared_files(*NAMES)
picture = Image.open(paths[1]).convert("RGB")
labels = Path(paths[2]).read_text().splitlines()
with wn.load(paths[0]) as model:
    image = model.inputs[0]
    height, width = image.shape[1:3]
    pixels = np.asarray(picture.resize((width, height), Image.Resampling.BILINEAR))[None]
    (classes,) = model.run({image.name: pixels.astype(image.dtype)}).values()
    print(model.placement.summary())

drawing = ImageDraw.Draw(picture)
scale = np.array([picture.width / width, picture.height / height] * 2) * STEP
for kind, count, box in sorted(boxes(classes[0, ::STEP, ::STEP]), key=lambda found: -found[1])[:5]:
    corners = [int(side) for side in np.array(box) * scale]
    drawing.rectangle(corners, outline=(255, 40, 40), width=3)
    drawing.text((corners[0] + 5, corners[1] + 5), labels[kind], fill=(255, 40, 40))
    print(f"{labels[kind]}: {count} pixels, {corners}")
picture.save("objects.png")
print("written: objects.png")
