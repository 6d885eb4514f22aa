"""A texture in, a texture out, and the picture saved: how detailed each part of a picture is, in color.

The source could be what a renderer has just drawn, or a frame of a video; here it is painted by numpy. Reading the texture,
the graph and drawing the answer go into one command encoder and one submit. Needs the extra `image`.
The picture goes to `detail.png`, or to the path that is given.
"""

import sys
from pathlib import Path

import numpy as np
import wgpu
from PIL import Image

import webnn_wgpu as wn

SIZE = 128
device = wgpu.gpu.request_adapter_sync().request_device_sync(label="my device")
context = wn.ml.create_context(device)

# A picture with something in it: rings that get finer towards the right, on a smooth ground.
y, x = np.mgrid[: 2 * SIZE, : 3 * SIZE]
rings = 0.5 + 0.5 * np.sin(np.hypot(x - 300, y - 100) * x / 500)
painting = np.stack([rings, np.clip(y / 256, 0, 1), np.clip(x / 384, 0, 1), np.ones_like(rings)], axis=-1)
source = device.create_texture(
    size=(3 * SIZE, 2 * SIZE),
    format="rgba8unorm-srgb",
    usage=wgpu.TextureUsage.TEXTURE_BINDING | wgpu.TextureUsage.COPY_DST,
)
device.queue.write_texture(
    {"texture": source}, np.uint8(painting * 255), {"bytes_per_row": 3 * SIZE * 4}, (3 * SIZE, 2 * SIZE, 1)
)
target = device.create_texture(
    size=(2 * SIZE, 2 * SIZE),
    format="rgba8unorm-srgb",
    usage=wgpu.TextureUsage.RENDER_ATTACHMENT | wgpu.TextureUsage.COPY_SRC,
)

# The graph: how far each pixel is from the mean of its surroundings, averaged over colors and a neighborhood.
builder = wn.MLGraphBuilder(context)
photo = builder.input("photo", [1, 3, SIZE, SIZE], "float32")
surroundings = builder.average_pool2d(photo, window_dimensions=[7, 7], padding=[3, 3, 3, 3])
detail = builder.reduce_mean(builder.abs(builder.sub(photo, surroundings)), axes=[1], keep_dimensions=True)
graph = builder.build({"detail": builder.average_pool2d(detail, window_dimensions=[5, 5], padding=[2, 2, 2, 2])})

pixels = context.create_tensor([1, 3, SIZE, SIZE], "float32")
answer = context.create_tensor([1, 1, SIZE, SIZE], "float32", readable=True)

encoder = device.create_command_encoder()
context.tensor_from_texture(source, size=(SIZE, SIZE), crop=(0, 128, 256, 256), into=pixels, encoder=encoder)
context.encode(graph, {"photo": pixels}, {"detail": answer}, encoder)
context.tensor_to_texture(answer, target, colormap="inferno", value_range=(0, 0.25), encoder=encoder)
device.queue.submit([encoder.finish()])

data = device.queue.read_texture({"texture": target}, {"bytes_per_row": 2 * SIZE * 4}, (2 * SIZE, 2 * SIZE, 1))
picture = np.frombuffer(data, np.uint8).reshape(2 * SIZE, 2 * SIZE, 4)
file = Path(sys.argv[1] if len(sys.argv) > 1 else "detail.png")
Image.fromarray(picture[..., :3]).save(file)
print("mean color", picture[..., :3].mean(axis=(0, 1)).round().astype(int))
print(f"written: {file}")
