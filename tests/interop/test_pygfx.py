"""Buffers and textures of pygfx's as tensors, and tensors in pygfx's scenes, on the device that pygfx has opened."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING, Any

import numpy as np
import pygfx as gfx
import pytest
from PIL import Image

import webnn_wgpu as wn
from tests.runtime.counting import HOST_COPIES, counted
from tests.support import with_repository
from webnn_wgpu.frontends import pygfx as bridge

from .test_programs_of_ones_own import example

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture(scope="module")
def on_pygfx() -> Iterator[wn.MLContext]:
    with bridge.create_context() as context:
        yield context


def drawn(*things: gfx.WorldObject) -> Any:
    """What an orthographic camera sees of things between -1 and 1, 32 by 32 pixels; row 0 is the uppermost."""
    target = gfx.Texture(dim=2, size=(32, 32, 1), format="rgba8unorm", colorspace="physical")
    renderer = gfx.WgpuRenderer(target, ppaa="none", pixel_filter="nearest", pixel_scale=1)
    camera = gfx.OrthographicCamera(2, 2)
    with bridge.create_context() as context:
        pixels = bridge.tensor_from_texture(context, target)
        renderer.render(gfx.Scene().add(*things), camera)
        bridge.tensor_from_texture(context, target, into=pixels)
        return context.read_tensor(pixels)[0]


def scaled(context: wn.MLContext, by: list[float], shape: list[int]) -> wn.MLGraph:
    builder = context.create_graph_builder()
    x = builder.input("x", shape, "float32")
    return builder.build({"y": builder.mul(x, builder.constant(np.float32(by)))})


TRIANGLE = np.float32([[-1, -1, 0], [1, -1, 0], [-1, 1, 0]])


def red(positions: gfx.Buffer) -> gfx.Mesh:
    """A red triangle."""
    # pygfx would compute normals from positions on the host, which need not be there.
    normals = np.float32([[0, 0, 1]] * 3)
    geometry = gfx.Geometry(indices=np.uint32([[0, 1, 2]]), positions=positions, normals=normals)
    return gfx.Mesh(geometry, gfx.MeshBasicMaterial(color="#f00", side="both"))


def test_a_graph_moves_the_vertices_of_a_mesh(on_pygfx: wn.MLContext) -> None:
    positions = gfx.Buffer(TRIANGLE)
    mesh = red(positions)
    x = bridge.wrap_buffer(on_pygfx, positions)
    assert (list(x.shape), x.data_type) == ([3, 3], "float32")
    np.testing.assert_array_equal(np.asarray(x), TRIANGLE)  # what waited on the host is there already
    lower = drawn(mesh)[0]
    assert lower[3:, 1].min() == 1
    assert lower[0, -1] == 0

    y = on_pygfx.create_tensor([3, 3], "float32")
    graph = scaled(on_pygfx, [-1, 1, 1], [3, 3])
    back = scaled(on_pygfx, [1, 1, 1], [3, 3])
    with counted() as calls:
        on_pygfx.dispatch(graph, {"x": x}, {"y": y})
        on_pygfx.dispatch(back, {"x": y}, {"y": x})
    assert {name: calls[name] for name in HOST_COPIES} == dict.fromkeys(HOST_COPIES, 0)
    mirrored = drawn(mesh)[0]
    assert mirrored[3:, -2].min() == 1
    assert mirrored[0, 0] == 0
    np.testing.assert_array_equal(np.asarray(x), TRIANGLE * np.float32([-1, 1, 1]))


def test_a_tensor_as_positions(on_pygfx: wn.MLContext) -> None:
    x = on_pygfx.create_host_tensor([3, 3], "float32")
    on_pygfx.write_tensor(x, TRIANGLE * np.float32([0.5, 0.5, 1]))
    half = bridge.buffer_of(x)
    assert (half.format, half.nitems, half.itemsize, half.data) == ("3xf4", 3, 12, None)
    seen = drawn(red(half))[0]
    assert seen[11:24, 9].min() == 1
    assert seen[:8].max() == seen[24:].max() == 0
    x.destroy()  # its memory is the scene's too
    assert drawn(red(half))[0].max() == 1


def test_a_texture_goes_through_a_graph_and_back_into_a_scene(on_pygfx: wn.MLContext) -> None:
    rng = np.random.default_rng(5)
    photo = rng.integers(0, 256, (32, 32, 4), np.uint8)
    photo[..., 3] = 255
    x = bridge.tensor_from_texture(on_pygfx, gfx.Texture(photo, dim=2))
    np.testing.assert_allclose(np.asarray(x)[0], photo[..., :3].transpose(2, 0, 1) / np.float32(255), atol=1e-6)
    y = on_pygfx.create_tensor([1, 3, 32, 32], "float32")
    graph = scaled(on_pygfx, [0.5], [1, 3, 32, 32])
    answer = gfx.Texture(dim=2, size=(32, 32, 1), format="rgba8unorm", colorspace="physical")
    with counted() as calls:
        on_pygfx.dispatch(graph, {"x": x}, {"y": y})
        bridge.tensor_to_texture(on_pygfx, y, answer)
    assert not calls["wgpuQueueWriteTexture"] + calls["wgpuBufferMapAsync"]
    image = gfx.Image(gfx.Geometry(grid=answer), gfx.ImageBasicMaterial(clim=(0, 255)))
    image.local.scale = (1 / 16, -1 / 16, 1)
    image.local.position = (-1 + 1 / 32, 1 - 1 / 32, 0)
    np.testing.assert_allclose(drawn(image), np.asarray(x)[0] / 2, atol=1.5 / 255)


def test_a_buffer_that_was_drawn_before(on_pygfx: wn.MLContext) -> None:
    """pygfx makes its buffers as long as what they hold: 36 bytes."""
    positions = gfx.Buffer(TRIANGLE)
    drawn(red(positions))
    y = on_pygfx.create_tensor([3, 3], "float32", readable=True)
    on_pygfx.dispatch(scaled(on_pygfx, [2, 3, 4], [3, 3]), {"x": bridge.wrap_buffer(on_pygfx, positions)}, {"y": y})
    np.testing.assert_array_equal(on_pygfx.read_tensor(y), TRIANGLE * np.float32([2, 3, 4]))


def test_mipmaps_are_of_what_was_drawn(on_pygfx: wn.MLContext) -> None:
    answer = gfx.Texture(dim=2, size=(16, 16, 1), format="rgba8unorm", colorspace="physical", generate_mipmaps=True)
    white = on_pygfx.create_host_tensor([1, 1, 4, 4], "float32")
    on_pygfx.write_tensor(white, np.ones(16, np.float32))
    bridge.tensor_to_texture(on_pygfx, white, answer)
    image = gfx.Image(gfx.Geometry(grid=answer), gfx.ImageBasicMaterial(clim=(0, 255), interpolation="linear"))
    image.local.scale = (1 / 64, 1 / 64, 1)  # four texels to a pixel
    assert drawn(image).max() == 1


def test_what_is_refused(on_pygfx: wn.MLContext, own: wn.MLContext, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(wn.MLTypeError, match=r"wrap_buffer: buffer must be a pygfx\.Buffer; got Texture"):
        bridge.wrap_buffer(on_pygfx, gfx.Texture(np.zeros((2, 2), np.float32), dim=2))
    with pytest.raises(wn.MLTypeError, match="wrap_buffer: the buffer's format has no data type here; got None"):
        bridge.wrap_buffer(on_pygfx, gfx.Buffer(nbytes=64, nitems=4))
    with pytest.raises(wn.MLTypeError, match=r"tensor_to_texture: texture must be a pygfx\.Texture; got Buffer"):
        bridge.tensor_to_texture(on_pygfx, on_pygfx.create_tensor([1, 1, 2, 2], "float32"), gfx.Buffer(TRIANGLE))
    for shape, data_type in (([2, 5], "float32"), ([2, 2, 2], "float32"), ([2], "int64")):
        with pytest.raises(wn.MLTypeError, match=r"buffer_of: the tensor must be \[items\] or \[items, 1\.\.4\]"):
            bridge.buffer_of(on_pygfx.create_tensor(shape, data_type))
    with pytest.raises(wn.MLTypeError, match="wrap_buffer: the context must be on pygfx's device"):
        bridge.wrap_buffer(own, gfx.Buffer(TRIANGLE))
    monkeypatch.setitem(sys.modules, "pygfx", None)
    with pytest.raises(wn.NotSupportedError, match=r"the bridge needs the package 'pygfx'.*webnn-wgpu\[pygfx\]"):
        bridge.create_context()


def filtered(photo: Any) -> Any:
    """What the example's network makes of a photo [height, width, 3]."""
    row = np.float32([1, 4, 6, 4, 1]) / 16
    height, width, _ = photo.shape
    framed = np.pad(photo, ((2, 2), (2, 2), (0, 0)), mode="edge")
    smooth = sum(row[i] * row[j] * framed[i : i + height, j : j + width] for i in range(5) for j in range(5))
    return smooth * np.clip(1.4 - 12 * np.linalg.norm(photo - smooth, axis=-1, keepdims=True), 0.1, 1)


def test_the_filter_of_the_example(repository: Path) -> None:
    program = example(repository, "pygfx_filter")
    program.frame(0.3)
    with counted() as calls:
        program.frame(0.6)
    assert calls["wgpuQueueWriteTexture"] + calls["wgpuBufferMapAsync"] == 0
    pixels, drawing = (
        np.asarray(bridge.tensor_from_texture(program.context, texture))[0].transpose(1, 2, 0)
        for texture in (program.photo, program.answer)
    )
    assert pixels.std() > 0.1  # there is something to see
    np.testing.assert_allclose(drawing, filtered(pixels), rtol=0, atol=0.75 / 255)  # drivers round sRGB so


LIMITED = """
import runpy, sys
import pygfx as gfx
from webnn_wgpu.core.caps import DEFAULT_LIMITS
wanted = {name: n for name, n in DEFAULT_LIMITS.items() if name != "max-bindings-per-bind-group"}
gfx.renderers.wgpu.set_wgpu_limits(**wanted)
limits = gfx.renderers.wgpu.get_shared().device.limits
assert {name: limits[name] for name in wanted} == wanted
program = sys.argv.pop(1)
runpy.run_path(program, run_name="__main__")
"""


@pytest.mark.parametrize("code", [[], ["-c", LIMITED]], ids=["pygfx's device", "default limits"])
def test_the_picture_of_the_example(code: list[str], repository: Path, tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, *code, str(repository / "examples" / "pygfx_filter.py")],
        cwd=tmp_path,
        env=with_repository(repository),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    picture = np.asarray(Image.open(tmp_path / "drawing.png")) / np.float32(255)
    photo, drawing = np.split(picture, 2, axis=1)
    # The window's renderer smooths both pictures a little.
    assert np.abs(drawing - filtered(photo)).mean() < 0.02
    assert (drawing.max(axis=-1) < 0.25).sum() > 300  # there is ink
    assert (photo.max(axis=-1) < 0.25).sum() < 30
