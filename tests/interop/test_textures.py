from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import wgpu
from PIL import Image

import webnn_wgpu as wn
from tests.runtime.counting import HOST_COPIES, counted
from tests.support import PROFILES, profile_context

WIDTH, HEIGHT = 40, 30
PIXELS = np.random.default_rng(7).integers(0, 256, (HEIGHT, WIDTH, 4), dtype=np.uint8)
NUMBERS = np.float32(PIXELS / 255)
LIGHT = np.where(NUMBERS <= 0.04045, NUMBERS / 12.92, ((NUMBERS + 0.055) / 1.055) ** 2.4)
USAGE = "TEXTURE_BINDING | COPY_DST | COPY_SRC | RENDER_ATTACHMENT"


def texture(gpu: wgpu.GPUDevice, data: Any = PIXELS, format: Any = "rgba8unorm", usage: str = USAGE) -> wgpu.GPUTexture:
    height, width = data.shape[:2]
    made = gpu.create_texture(label="photo", size=(width, height), format=format, usage=usage)
    gpu.queue.write_texture({"texture": made}, data, {"bytes_per_row": data.nbytes // height}, (width, height, 1))
    return made


def pixels(gpu: wgpu.GPUDevice, of: wgpu.GPUTexture, dtype: Any = np.uint8) -> Any:
    width, height, _ = of.size
    row = width * 4 * np.dtype(dtype).itemsize
    data: Any = gpu.queue.read_texture({"texture": of}, {"bytes_per_row": row}, (width, height, 1))
    return np.frombuffer(data, dtype).reshape(height, width, 4)


def resized(image: Any, size: tuple[int, int]) -> Any:
    """What Pillow makes of float planes."""
    planes = [Image.fromarray(np.float32(image[..., c])) for c in range(image.shape[-1])]
    resized = [np.asarray(p.resize(size[::-1], Image.Resampling.BILINEAR)) for p in planes]
    return np.stack(resized, axis=-1)


@pytest.fixture(params=PROFILES)
def anywhere(request: pytest.FixtureRequest) -> wn.MLContext:
    return profile_context(request.param)


@pytest.mark.parametrize("data_type", ["float32", "float16"])
@pytest.mark.parametrize("layout", ["nchw", "nhwc"])
def test_numbers_as_they_are_stored(anywhere: wn.MLContext, data_type: str, layout: str) -> None:
    gpu = anywhere.device
    for format in ("rgba8unorm", "rgba8unorm-srgb"):
        x = anywhere.tensor_from_texture(texture(gpu, format=format), layout=layout, data_type=data_type)
        got = anywhere.read_tensor(x)[0]
        assert got.dtype == data_type
        got = got.transpose(1, 2, 0) if layout == "nchw" else got
        np.testing.assert_allclose(got, NUMBERS[..., :3], atol=1e-7 if data_type == "float32" else 2.5e-4)


def test_components_in_any_order(own: wn.MLContext, gpu: wgpu.GPUDevice) -> None:
    rgba, bgra = texture(gpu), texture(gpu, format="bgra8unorm")
    for order, wanted in (("bgr", [2, 1, 0]), ("r", [0]), ("rgba", [0, 1, 2, 3]), ("ag", [3, 1])):
        got = own.read_tensor(own.tensor_from_texture(rgba, layout="nhwc", channel_order=order))
        np.testing.assert_allclose(got[0], NUMBERS[..., wanted], atol=1e-7)
    got = own.read_tensor(own.tensor_from_texture(bgra, layout="nhwc"))
    np.testing.assert_allclose(got[0], NUMBERS[..., [2, 1, 0]], atol=1e-7)


def test_light(own: wn.MLContext, gpu: wgpu.GPUDevice) -> None:
    stored = own.tensor_from_texture(texture(gpu), color_space="linear", layout="nhwc")
    np.testing.assert_allclose(own.read_tensor(stored)[0], NUMBERS[..., :3], atol=1e-7)
    light = own.tensor_from_texture(
        texture(gpu, format="rgba8unorm-srgb"), color_space="linear", layout="nhwc", channel_order="rgba"
    )
    got = own.read_tensor(light)[0]
    # Hardware decodes sRGB to half a step of a byte: that far may the byte be off that the light stands for.
    bytes_ = 255 * np.where(got <= 0.0031308, got * 12.92, 1.055 * np.maximum(got, 0.0031308) ** (1 / 2.4) - 0.055)
    assert np.abs(bytes_ - PIXELS)[..., :3].max() <= 0.5
    np.testing.assert_allclose(got[..., 3], NUMBERS[..., 3], atol=1e-7)


@pytest.mark.parametrize("size", [(20, 16), (60, 90), (7, 40), (30, 41), (1, 1)])
def test_resized_as_pillow_does(own: wn.MLContext, gpu: wgpu.GPUDevice, size: tuple[int, int]) -> None:
    for format in ("rgba8unorm", "rgba8unorm-srgb"):
        x = own.tensor_from_texture(texture(gpu, format=format), size=size, layout="nhwc")
        np.testing.assert_allclose(own.read_tensor(x)[0], resized(NUMBERS[..., :3], size), atol=1e-5)


def test_shrunk_very_much(own: wn.MLContext, gpu: wgpu.GPUDevice) -> None:
    large = np.zeros((512, 768, 4), np.uint8)
    large[256:] = 255
    got = own.read_tensor(own.tensor_from_texture(texture(gpu, large), size=(2, 2)))
    np.testing.assert_allclose(got[0, 0, :, 0], resized(large[..., :1] / 255, (2, 2))[:, 0, 0], atol=0.03)


def test_without_antialiasing_and_the_nearest(own: wn.MLContext, gpu: wgpu.GPUDevice) -> None:
    source = texture(gpu)
    sparse = own.read_tensor(own.tensor_from_texture(source, size=(10, 10), layout="nhwc", antialias=False))[0]
    rows, columns = np.float32([3 * i + 1 for i in range(10)]).astype(int), [4 * i + 1 for i in range(10)]
    # Positions lie on a row's center, and half way between two columns.
    wanted = (NUMBERS[rows][:, columns] + NUMBERS[rows][:, [c + 1 for c in columns]]) / 2
    np.testing.assert_allclose(sparse, wanted[..., :3], atol=1e-6)
    nearest = own.read_tensor(own.tensor_from_texture(source, size=(60, 20), layout="nhwc", filter="nearest"))[0]
    np.testing.assert_allclose(nearest, NUMBERS[np.arange(60) // 2][:, np.arange(20) * 2 + 1][..., :3], atol=1e-7)


def test_cropped_and_normalized(own: wn.MLContext, gpu: wgpu.GPUDevice) -> None:
    mean, std = [0.485, 0.456, 0.406], [0.229, 0.224, 0.225]
    source = texture(gpu)
    x = own.tensor_from_texture(source, size=(8, 10), crop=(2, 5, 16, 20), mean=mean, std=np.float32(std))
    wanted = (resized(NUMBERS[2:18, 5:25, :3], (8, 10)) - mean) / std
    np.testing.assert_allclose(own.read_tensor(x)[0].transpose(1, 2, 0), wanted, atol=1e-5)
    gray = own.tensor_from_texture(source, crop=[29, 39, 1, 1], mean=0.5, std=0.5)
    np.testing.assert_allclose(own.read_tensor(gray).reshape(3), NUMBERS[29, 39, :3] * 2 - 1, atol=1e-6)


def test_floats(own: wn.MLContext, gpu: wgpu.GPUDevice) -> None:
    values = np.random.default_rng(1).normal(0, 100, (HEIGHT, WIDTH, 4)).astype(np.float32)
    for dtype in (np.float32, np.float16):
        source = texture(gpu, values.astype(dtype), f"rgba{np.dtype(dtype).itemsize * 8}float")
        got = own.read_tensor(own.tensor_from_texture(source, layout="nhwc", channel_order="rgba"))
        np.testing.assert_array_equal(got[0], values.astype(dtype))
        own.tensor_to_texture(own.tensor_from_texture(source, channel_order="rgba"), source)
        np.testing.assert_array_equal(pixels(gpu, source, dtype), values.astype(dtype))


@pytest.mark.parametrize("format", ["rgba8unorm", "rgba8unorm-srgb", "bgra8unorm", "bgra8unorm-srgb"])
def test_there_and_back(anywhere: wn.MLContext, format: str) -> None:
    gpu = anywhere.device
    for data_type in ("float32", "float16"):
        for color_space in ("srgb", "linear") if data_type == "float32" else ("srgb",):
            options: dict[str, Any] = {"mean": [0.1, 0.2, 0.3, 0.4], "std": [2, 3, 4, 5], "color_space": color_space}
            source, target = texture(gpu, format=format), texture(gpu, PIXELS * 0, format)
            x = anywhere.tensor_from_texture(source, channel_order="rgba", data_type=data_type, **options)
            anywhere.tensor_to_texture(x, target, **options)
            off = np.abs(pixels(gpu, target).astype(int) - PIXELS)
            assert off.max() <= (0 if (data_type, color_space) == ("float32", "srgb") else 3)


def test_bytes_and_layouts(own: wn.MLContext, gpu: wgpu.GPUDevice) -> None:
    planes = np.ascontiguousarray(PIXELS[..., :3].transpose(2, 0, 1))
    opaque = PIXELS.copy()
    opaque[..., 3] = 255
    for data, layout in ((PIXELS[..., :3], "nhwc"), (PIXELS[None, ..., :3], "nhwc"), (planes, "nchw"), (planes[None], "nchw")):
        tensor = own.create_tensor(list(data.shape), "uint8", writable=True)
        own.write_tensor(tensor, data)
        target = texture(gpu, PIXELS * 0)
        own.tensor_to_texture(tensor, target, layout=layout)
        assert np.array_equal(pixels(gpu, target), opaque)
        own.tensor_to_texture(tensor, target, layout=layout, channel_order="bgr")
        assert np.array_equal(pixels(gpu, target)[..., :3], PIXELS[..., [2, 1, 0]])


def grid(context: wn.MLContext, values: Any) -> wn.MLTensor:
    tensor = context.create_tensor(list(np.shape(values)), "float32", writable=True)
    context.write_tensor(tensor, np.float32(values))
    return tensor


def test_gray_and_colormaps(own: wn.MLContext, gpu: wgpu.GPUDevice) -> None:
    # No result lies halfway between two bytes, where hardware may take either.
    values = grid(own, [[0, 1], [3, 4]])
    target = texture(gpu, np.zeros((2, 2, 4), np.uint8))
    own.tensor_to_texture(values, target, value_range=(0, 4))
    assert pixels(gpu, target).tolist() == [[[v, v, v, 255] for v in row] for row in ((0, 64), (191, 255))]
    own.tensor_to_texture(values, target, value_range=(4, 0))
    assert pixels(gpu, target)[..., 0].tolist() == [[255, 191], [64, 0]]
    own.tensor_to_texture(values, target, colormap="viridis", value_range=(0, 4))
    assert pixels(gpu, target)[[0, 1], [0, 1]].tolist() == [[0x44, 0x01, 0x54, 255], [0xFD, 0xE7, 0x25, 255]]
    own.tensor_to_texture(values, target, colormap=np.float32([[0, 0, 0, 0], [1, 1, 1, 1]]), value_range=(0, 4))
    assert pixels(gpu, target)[..., 3].tolist() == [[0, 64], [191, 255]]
    colors = np.array([[1, 0, 0], [0, 1, 0], [0, 0, 1.0]])
    own.tensor_to_texture(grid(own, [[0, 1.6], [2, 4]]), target, colormap=colors, value_range=(0, 4))
    assert pixels(gpu, target).reshape(4, 4).tolist() == [
        [255, 0, 0, 255],
        [51, 204, 0, 255],
        [0, 255, 0, 255],
        [0, 0, 255, 255],
    ]


def test_drawn_in_another_size(own: wn.MLContext, gpu: wgpu.GPUDevice) -> None:
    values = np.random.default_rng(3).random((6, 8, 3)).astype(np.float32)
    tensor = grid(own, values)
    target = texture(gpu, np.zeros((15, 24, 4), np.float32), "rgba32float")
    own.tensor_to_texture(tensor, target, layout="nhwc")
    np.testing.assert_allclose(pixels(gpu, target, np.float32)[..., :3], resized(values, (15, 24)), atol=1e-5)
    own.tensor_to_texture(tensor, target, layout="nhwc", filter="nearest")
    wanted = values[(np.arange(15) * 2 + 1) * 6 // 30][:, np.arange(24) // 3]
    np.testing.assert_array_equal(pixels(gpu, target, np.float32)[..., :3], wanted)


def row(gpu: wgpu.GPUDevice, width: int) -> wgpu.GPUTexture:
    return texture(gpu, np.arange(width, dtype=np.float32)[None], "r32float")


def test_ties_of_the_nearest_are_those_of_exact_arithmetic(own: wn.MLContext, gpu: wgpu.GPUDevice) -> None:
    large = [(2, 41), (300, 54), (8192, 8191), (8191, 8192), (8191, 200003)]
    for texels, size in [(c, s) for c in range(1, 13) for s in range(1, 24)] + large:
        wanted = (2 * np.arange(size) + 1) * texels // (2 * size)
        x = own.tensor_from_texture(row(gpu, texels), size=(1, size), filter="nearest", channel_order="r")
        np.testing.assert_array_equal(own.read_tensor(x).reshape(-1), wanted, f"{texels} texels to {size} elements")
        if size > 8192:
            continue
        target = row(gpu, size)
        own.tensor_to_texture(grid(own, [np.arange(texels)]), target, filter="nearest")
        data: Any = gpu.queue.read_texture({"texture": target}, {"bytes_per_row": 4 * size}, (size, 1, 1))
        np.testing.assert_array_equal(np.frombuffer(data, np.float32), wanted, f"{texels} elements to {size} texels")


def test_ties_of_the_nearest_within_a_crop_and_along_columns(own: wn.MLContext, gpu: wgpu.GPUDevice) -> None:
    x = own.tensor_from_texture(row(gpu, 5), size=(1, 41), crop=(0, 2, 1, 2), filter="nearest", channel_order="r")
    wanted = 2 + (2 * np.arange(41) + 1) * 2 // 82
    np.testing.assert_array_equal(own.read_tensor(x).reshape(-1), wanted)
    column = texture(gpu, np.arange(5, dtype=np.float32)[:, None], "r32float")
    x = own.tensor_from_texture(column, size=(41, 1), crop=(2, 0, 2, 1), filter="nearest", channel_order="r")
    np.testing.assert_array_equal(own.read_tensor(x).reshape(-1), wanted)
    target = texture(gpu, np.zeros((41, 1), np.float32), "r32float")
    own.tensor_to_texture(grid(own, [[0], [1]]), target, filter="nearest")
    data: Any = gpu.queue.read_texture({"texture": target}, {"bytes_per_row": 4}, (1, 41, 1))
    np.testing.assert_array_equal(np.frombuffer(data, np.float32), wanted - 2)


def test_a_picture_larger_than_a_binding(own: wn.MLContext, gpu: wgpu.GPUDevice) -> None:
    with pytest.raises(wn.OutOfMemoryError) as raised:
        own.tensor_from_texture(texture(gpu), size=(4096, 4096))
    assert str(raised.value) == (
        "tensor_from_texture: the tensor is larger than the device can bind; got float32[1, 3, 4096, 4096], 201326592 bytes; "
        "allowed: max-storage-buffer-binding-size 134217728 bytes"
    )


def test_numpy_bools(own: wn.MLContext, gpu: wgpu.GPUDevice) -> None:
    plain, smooth = (
        own.read_tensor(own.tensor_from_texture(texture(gpu), size=(7, 7), antialias=np.bool_(v))) for v in (False, True)
    )
    assert not np.array_equal(plain, smooth)


def test_a_frame_is_one_submit(own: wn.MLContext, gpu: wgpu.GPUDevice) -> None:
    builder = own.create_graph_builder()
    x = builder.input("x", [1, 3, HEIGHT, WIDTH], "float32")
    graph = builder.build({"y": builder.sub(builder.constant("float32", 1), x)})
    source, target = texture(gpu), texture(gpu, PIXELS * 0)
    a, b = (own.create_tensor([1, 3, HEIGHT, WIDTH], "float32") for _ in range(2))
    with counted() as calls:
        encoder = gpu.create_command_encoder()
        assert own.tensor_from_texture(source, into=a, encoder=encoder) is a
        own.encode(graph, {"x": a}, {"y": b}, encoder)
        own.tensor_to_texture(b, target, encoder=encoder)
        a.destroy()
        graph.destroy()
        gpu.queue.submit([encoder.finish()])
    assert calls["wgpuQueueSubmit"] == 1
    assert [calls[name] for name in HOST_COPIES if "Mapped" not in name] == [0, 0, 0]
    assert np.array_equal(pixels(gpu, target)[..., :3], 255 - PIXELS[..., :3])


def test_wrong_textures(own: wn.MLContext, reference: wn.MLContext, gpu: wgpu.GPUDevice) -> None:
    elsewhere = wgpu.gpu.request_adapter_sync().request_device_sync()
    gone = texture(gpu)
    gone.destroy()
    whole = np.zeros((4, 4, 4), np.uint8)
    volume = gpu.create_texture(size=(4, 4, 4), dimension="3d", format="rgba8unorm", usage="TEXTURE_BINDING")
    plain = texture(gpu, usage="COPY_DST")
    x = grid(own, np.zeros((2, 2)))
    for given, kind, message in (
        (PIXELS, wn.MLTypeError, ": texture must be a wgpu.GPUTexture; got ndarray"),
        (texture(elsewhere), wn.MLTypeError, r"\('photo'\): the texture belongs to another device"),
        (
            plain,
            wn.MLTypeError,
            r"\('photo'\): the texture must have the usage (TEXTURE_BINDING|RENDER_ATTACHMENT); got COPY_DST$",
        ),
        (texture(gpu, whole, "rgba8uint"), wn.MLTypeError, r"\('photo'\): the texture must hold colors; got rgba8uint"),
        (gone, wn.InvalidStateError, r"\('photo'\): the texture was destroyed"),
    ):
        with pytest.raises(kind, match=f"tensor_from_texture{message}"):
            own.tensor_from_texture(given)
        with pytest.raises(kind, match=f"tensor_to_texture{message}"):
            own.tensor_to_texture(x, given)
    with pytest.raises(wn.MLTypeError, match="the texture must be two-dimensional and of one sample; got 3d, 1 samples"):
        own.tensor_from_texture(volume)
    undrawable = gpu.create_texture(size=(4, 4), format="rgb9e5ufloat", usage="TEXTURE_BINDING")
    assert own.tensor_from_texture(undrawable).shape == (1, 3, 4, 4)
    with pytest.raises(wn.NotSupportedError, match="tensor_from_texture: the context has no WebGPU device"):
        reference.tensor_from_texture(texture(gpu))
    with pytest.raises(wn.NotSupportedError, match="tensor_to_texture: the context has no WebGPU device"):
        reference.tensor_to_texture(grid(reference, [[1]]), texture(gpu))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"size": (0, 4)}, "every dimension must be a valid dimension"),
        ({"size": 224}, "size must be 2 integers; got 224"),
        ({"crop": (0, 0, 31, 40)}, r"crop must lie within the texture: .*; allowed: a texture of height 30, width 40"),
        ({"crop": (-1, 0, 3, 4)}, "crop must lie within the texture"),
        ({"crop": (0, 0, 0, 4)}, "crop must lie within the texture"),
        ({"crop": (0, 0, 3)}, r"crop must be 4 integers; got \(0, 0, 3\)"),
        ({"layout": "hwc"}, "Invalid layout; got 'hwc'; allowed: nchw, nhwc"),
        ({"channel_order": "rgbx"}, "channel_order must be different letters of rgba; got 'rgbx'"),
        ({"channel_order": "rr"}, "channel_order must be different letters of rgba; got 'rr'"),
        ({"channel_order": None}, "channel_order must be different letters of rgba; got None; allowed: rgb, bgr"),
        ({"channel_order": 5}, "channel_order must be different letters of rgba; got 5"),
        ({"mean": [1, 2]}, r"mean must be a finite number, or 3 of them; got \[1, 2\]"),
        ({"std": [1, 0, 1]}, "std must not be 0"),
        ({"std": float("nan")}, "std must be a finite number"),
        ({"mean": 10**400}, "mean must be a finite number, or 3 of them; got 10000"),
        ({"mean": 1e200}, r"mean, std must make finite factors in float32; got mean=1e\+200, std=1.0; allowed: .*3.40282e\+38"),
        ({"std": 1e-45}, "mean, std must make finite factors in float32; got mean=0.0, std=1e-45"),
        ({"std": [1, 1, 1e-320]}, "mean, std must make finite factors"),
        ({"mean": 1e20, "std": 1e-20}, "mean, std must make finite factors"),
        ({"antialias": np.array([1, 2])}, r"antialias must be a bool; got array\(\[1, 2\]\); allowed: True, False"),
        ({"antialias": "no"}, "antialias must be a bool; got 'no'"),
        ({"data_type": "uint8"}, "data_type must be a float type; got 'uint8'; allowed: float32, float16"),
        ({"filter": "cubic"}, "Invalid filter; got 'cubic'; allowed: linear, nearest"),
        ({"color_space": "p3"}, "Invalid color_space; got 'p3'; allowed: srgb, linear"),
    ],
)
def test_wrong_options_of_reading(own: wn.MLContext, gpu: wgpu.GPUDevice, options: dict[str, Any], message: str) -> None:
    with pytest.raises(wn.MLTypeError, match=f"tensor_from_texture: {message}"):
        own.tensor_from_texture(texture(gpu), **options)


def test_wrong_targets(own: wn.MLContext, gpu: wgpu.GPUDevice) -> None:
    source, x = texture(gpu), own.create_tensor([1, 3, 30, 41], "float32")
    with pytest.raises(
        wn.MLTypeError, match=r"into must have the result's data type and shape; .*float32\[1, 3, 30, 40\]. size=\("
    ):
        own.tensor_from_texture(source, into=x)
    encoder = gpu.create_command_encoder()
    encoder.finish()
    for call in (
        lambda: own.tensor_from_texture(source, encoder=encoder),
        lambda: own.tensor_to_texture(grid(own, [[1]]), source, encoder=encoder),
    ):
        with pytest.raises(
            wn.InvalidStateError, match=r"encoder must accept commands; got one that has finished: [^.]*\. Create another one$"
        ):
            call()


@pytest.mark.parametrize(
    ("shape", "options", "message"),
    [
        ([2, 3, 4, 4], {}, r"the tensor must be one picture; got float32\[2, 3, 4, 4\]; allowed: \[1, 1..4, height, width\]"),
        ([4, 4, 5], {"layout": "nhwc"}, r"the tensor must be one picture; .*allowed: \[1, height, width, 1..4\]"),
        ([7], {}, "the tensor must be one picture"),
        ([], {}, r"the tensor must be one picture; got float32\[\]"),
        ([3, 4, 4], {"channel_order": "rg"}, "channel_order must name every channel; got 'rg'; allowed: 3 letters"),
        ([3, 4, 4], {"channel_order": 5}, "channel_order must be different letters of rgba; got 5"),
        ([3, 4, 4], {"mean": 1e200}, r"mean, std must make finite factors in float32; got mean=1e\+200, std=1.0; allowed"),
        ([3, 4, 4], {"std": -1e39}, "mean, std must make finite factors"),
        ([3, 4, 4], {"colormap": "gray"}, "a colormap is for tensors of one channel"),
        ([4, 4], {"colormap": "jet"}, "colormap must be a name or an array of colors; got 'jet'; allowed: gray, viridis"),
        ([4, 4], {"colormap": [[1, 2, 3]]}, "a colormap's colors must be floats from 0 to 1; got int64"),
        ([4, 4], {"colormap": [[0.1, 0.2], [0.3]]}, "a colormap's colors must be an array: .*; allowed: "),
        (
            [4, 4],
            {"colormap": [[1, 0.5, float("nan")]] * 2},
            r"a colormap's colors must be floats from 0 to 1; got nan",
        ),
        ([4, 4], {"colormap": [[1, 0.5, 0], [0, 0, 1.5]]}, "a colormap's colors must be floats from 0 to 1; got 1.5"),
        ([4, 4], {"value_range": (1, 1)}, "the ends of value_range must differ"),
        ([4, 4], {"value_range": (-1e308, 1e308)}, "the ends of value_range must differ, by a finite number"),
        ([4, 4], {"value_range": (0, 1e-320)}, r"mean, std, value_range must make finite factors.* value_range=\(0, 1e-320\)"),
        ([4, 4], {"value_range": "01x"}, "value_range must be"),
    ],
)
def test_wrong_options_of_drawing(
    own: wn.MLContext, gpu: wgpu.GPUDevice, shape: list[int], options: dict[str, Any], message: str
) -> None:
    tensor = own.create_tensor(shape, "float32")
    with pytest.raises(wn.MLTypeError, match=f"tensor_to_texture: {message}"):
        own.tensor_to_texture(tensor, texture(gpu), **options)
