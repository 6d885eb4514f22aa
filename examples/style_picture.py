"""A picture takes the style of another: gradient steps on its pixels, until the Gram matrices of a network's features agree.

The network is small, random and fixed, and both pictures are drawn here. The content of the first one holds back the steps.
The result goes to `style.png`.
`--window` shows the steps in a pygfx window, which wants glfw or Qt, or off screen where `RENDERCANVAS_FORCE_OFFSCREEN=1`.
Needs the extra `image`, and `pygfx` for the window.
"""

import sys
from itertools import pairwise

import numpy as np
from PIL import Image

import webnn_wgpu as wn
from webnn_wgpu import train

SIZE, STEPS, CONTENT = 64, 120, 0.02
STEPS_PER_FRAME = 5
CHANNELS = (3, 16, 24, 32)


def drawings():
    """Return the picture, a disk before a sky, and the style, waves of two colors: float32 [1, 3, size, size] from 0 to 1."""
    y, x = np.mgrid[0:SIZE, 0:SIZE] / SIZE
    disk = (np.hypot(x - 0.5, y - 0.5) < 0.3)[..., None]
    picture = np.where(disk, [0.9, 0.8, 0.3], np.stack([0.3 + 0.3 * y, 0.4 + 0.3 * y, 0.8 - 0.2 * y], 2))
    waves = (np.sin(40 * x + 5 * np.sin(9 * y)) > 0)[..., None]
    style = np.where(waves, [0.1, 0.2, 0.5], [0.9, 0.5, 0.2])
    return (np.float32(array.transpose(2, 0, 1)[None]) for array in (picture, style))


def features(b, pixels):
    """Return the features of each layer."""
    rng, x, found = np.random.default_rng(0), pixels, []
    for inputs, outputs in pairwise(CHANNELS):
        filters = train.he_normal([outputs, inputs, 3, 3], rng, fan_in=9 * inputs)
        x = b.relu(b.conv2d(x, b.constant(filters), padding=[1, 1, 1, 1]))
        found.append(x)
        x = b.average_pool2d(x, window_dimensions=[2, 2], strides=[2, 2])
    return found


def gram(b, x):
    """Return how often the channels of features occur together: the mean products of all pairs."""
    _, channels, height, width = x.shape
    rows = b.reshape(x, [channels, height * width])
    return b.div(b.matmul(rows, b.transpose(rows)), b.constant("float32", height * width))


def mean_square(b, x, y):
    """Return the mean square of a difference."""
    return b.reduce_mean(b.pow(b.sub(x, y), b.constant("float32", 2)))


if WINDOW := "--window" in sys.argv:
    from webnn_wgpu.frontends import pygfx as bridge

    context = bridge.create_context()
else:
    context = wn.ml.create_context()

# What the steps aim at: the Gram matrices of the style, and the last features of the picture.
picture, style = drawings()
builder = wn.MLGraphBuilder(context)
given = {name: builder.input(name, [1, 3, SIZE, SIZE], "float32") for name in ("picture", "style")}
aims = {f"gram{layer}": gram(builder, x) for layer, x in enumerate(features(builder, given["style"]))}
aims["content"] = features(builder, given["picture"])[-1]
aims = context.compute(builder.build(aims), {"picture": picture, "style": style})


def forward(b, p, inputs):
    """Return the loss of the pixels, and the part of it that is their style's."""
    found = features(b, b.sigmoid(p["pixels"]))
    parts = [mean_square(b, gram(b, x), b.constant(aims[f"gram{layer}"])) for layer, x in enumerate(found)]
    of_style = b.add(b.add(parts[0], parts[1]), parts[2])
    of_content = mean_square(b, found[-1], b.constant(aims["content"]))
    return {"loss": b.add(of_style, b.mul(of_content, b.constant("float32", CONTENT))), "style": of_style}


# The sigmoid keeps the pixels from 0 to 1.
start = {"pixels": np.log(picture / (1 - picture))}
step = train.Step(context, forward, start, train.Adam(learning_rate=0.1), inputs={})


def advance():
    """Run a step, and return the pixels [size, size, 3] of 8 bits."""
    found = step({})["style"]
    if step.steps % 40 == 1 or step.steps == STEPS:
        print(f"step {step.steps}: style {found:.4f}")
    pixels = step.parameters()["pixels"][0].transpose(1, 2, 0)
    return (255 / (1 + np.exp(-pixels))).astype(np.uint8)


def show():
    """Run the steps, some for each frame of a window or of a canvas off screen, and return the last pixels."""
    import pygfx as gfx
    from rendercanvas.auto import RenderCanvas, loop
    from rendercanvas.offscreen import OffscreenRenderCanvas

    canvas = RenderCanvas(size=(6 * SIZE, 6 * SIZE), title="a picture takes a style", update_mode="continuous")
    renderer, camera = gfx.WgpuRenderer(canvas, pixel_ratio=1), gfx.OrthographicCamera(SIZE, SIZE)
    camera.local.position, camera.local.scale_y = (SIZE / 2 - 0.5, SIZE / 2 - 0.5, 0), -1
    texture = gfx.Texture(np.full((SIZE, SIZE, 4), 255, np.uint8), dim=2)
    scene = gfx.Scene().add(gfx.Image(gfx.Geometry(grid=texture), gfx.ImageBasicMaterial(clim=(0, 255))))

    def frame():
        for _ in range(STEPS_PER_FRAME):
            texture.data[..., :3] = advance()
        texture.update_full()
        renderer.render(scene, camera)
        if step.steps == STEPS and not off_screen:
            loop.call_soon(canvas.close)

    canvas.request_draw(frame)
    off_screen = isinstance(canvas, OffscreenRenderCanvas)
    if off_screen:
        while step.steps < STEPS:
            canvas.draw()
    else:
        loop.run()
    return texture.data[..., :3]


if WINDOW:
    pixels = show()
else:
    for _ in range(STEPS):
        pixels = advance()
Image.fromarray(pixels).resize((6 * SIZE, 6 * SIZE)).save("style.png")
print("written: style.png")
