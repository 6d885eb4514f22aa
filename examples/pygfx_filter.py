"""An image filter network drawn live in a pygfx scene: a turning knot on the left, and what the network makes of it beside it.

pygfx draws the knot into a texture. The network reads it there, finds how much each pixel differs from those around it, and
darkens the picture by that, as if contours were drawn in ink. Its answer goes into the texture of an image in a second scene.
All on pygfx's device; no pixel visits the host. With `--live` in a window, which wants glfw or Qt; else one frame is saved
to `drawing.png`, or to the path that is given.
Needs the extra `pygfx`.
"""

import sys
from pathlib import Path

import numpy as np
import pygfx as gfx
from PIL import Image

import webnn_wgpu as wn
from webnn_wgpu.frontends import pygfx as bridge

SIZE = 192

# What is filtered, in a texture that a renderer draws into, and the answer. Both hold numbers as photos do.
photo, answer = (gfx.Texture(dim=2, size=(SIZE, SIZE, 1), format="rgba8unorm", colorspace="tex-srgb") for _ in range(2))
camera = gfx.PerspectiveCamera(45, 1)
camera.local.position = (0, 0, 4.5)
knot = gfx.Mesh(gfx.torus_knot_geometry(0.8, 0.3, 96, 16), gfx.MeshPhongMaterial(color="#d94"))
scene = gfx.Scene().add(gfx.Background.from_color("#9bd"), gfx.AmbientLight(), camera.add(gfx.DirectionalLight()), knot)
painter = gfx.WgpuRenderer(photo)

# The network, on the painter's device.
context = bridge.create_context()
builder = wn.MLGraphBuilder(context)
x = builder.input("photo", [1, 3, SIZE, SIZE], "float32")
row = np.float32([1, 4, 6, 4, 1]) / 16
blur = np.tile(np.outer(row, row), (3, 1, 1, 1))
framed = builder.pad(x, [0, 0, 2, 2], [0, 0, 2, 2], mode="edge")
smooth = builder.conv2d(framed, builder.constant(blur), groups=3)
difference = builder.reduce_l2(builder.sub(x, smooth), axes=[1], keep_dimensions=True)
ink = builder.clamp(builder.linear(difference, alpha=-12, beta=1.4), min_value=0.1, max_value=1)
graph = builder.build({"drawing": builder.mul(smooth, ink)})
pixels, drawing = (context.create_tensor([1, 3, SIZE, SIZE], "float32") for _ in range(2))

# Where it is shown: both textures as images, side by side.
bridge.tensor_to_texture(context, drawing, answer)
left, right = (gfx.Image(gfx.Geometry(grid=t), gfx.ImageBasicMaterial(clim=(0, 255))) for t in (photo, answer))
right.local.x = SIZE
for image in (left, right):
    image.local.scale_y, image.local.y = -1, SIZE
wall = gfx.OrthographicCamera(2 * SIZE, SIZE)
wall.local.position = (SIZE - 0.5, SIZE / 2 + 0.5, 0)
gallery = gfx.Scene().add(left, right)


def frame(angle: float) -> None:
    knot.local.euler = (0.3, angle, 0)
    painter.render(scene, camera)
    bridge.tensor_from_texture(context, photo, into=pixels)
    context.dispatch(graph, {"photo": pixels}, {"drawing": drawing})
    bridge.tensor_to_texture(context, drawing, answer)


def save(file: Path) -> None:
    from rendercanvas.offscreen import RenderCanvas

    canvas = RenderCanvas(size=(2 * SIZE, SIZE), pixel_ratio=1)
    renderer = gfx.WgpuRenderer(canvas)
    canvas.request_draw(lambda: renderer.render(gallery, wall))
    frame(0.6)
    picture = np.asarray(canvas.draw())
    Image.fromarray(picture[..., :3]).save(file)
    print("darkest", picture[..., :3].max(axis=-1).min(), "brightest", picture[..., :3].min(axis=-1).max())
    print(f"written: {file}")


def show() -> None:
    from rendercanvas.auto import RenderCanvas, loop

    canvas = RenderCanvas(size=(4 * SIZE, 2 * SIZE), title="a filter network, live")
    renderer = gfx.WgpuRenderer(canvas)
    angle = 0.0

    def animate() -> None:
        nonlocal angle
        angle += 0.01
        frame(angle)
        renderer.render(gallery, wall)
        canvas.request_draw()

    canvas.request_draw(animate)
    loop.run()


if __name__ == "__main__":
    arguments = sys.argv[1:]
    show() if arguments == ["--live"] else save(Path(arguments[0] if arguments else "drawing.png"))
