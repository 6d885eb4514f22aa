"""Textures read into tensors and tensors drawn over textures: one kernel, one draw call."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import wgpu

from ..core.data_types import Array
from ..core.errors import InvalidStateError, MLTypeError
from ..kernels.element import QUAD
from ..kernels.emulation import emulated
from ..kernels.spec import Binding, KernelSpec, KernelTemplate, UniformType, grid_1d
from ..kernels.templates import render
from .buffer import Buffer
from .device import Device
from .encoding import check_encoder, recording
from .messages import usage_names, wgpu_message
from .modules import own_module

READ = KernelTemplate("read", ("encode",))
DRAW = KernelTemplate("draw", ("decode",))

_WORKGROUP = 64
"""Invocations of a workgroup of `quad_main` in shaders/lib/tensor.wgsl.j2."""

_MOST_TAPS = 96
"""Texels in a row that an element takes: Mesa's software driver ends the loops of an invocation after 65535 iterations."""

Fields = Mapping[str, tuple[UniformType, int | float]]


@dataclass(frozen=True, kw_only=True)
class Picture:
    """The correspondence between the elements of a tensor and the pixels of a picture.

    Attributes:
        data_type: the data type of the tensor.
        height, width: the size of the picture in pixels.
        components: the color component (0: red) of each channel.
        channels_last: whether the channels of a pixel are adjacent.
        scale, offset: the factors of element = component * scale + offset, by channel. `draw` inverts the formula.
        linear: whether the elements are linear light, not the numbers that sRGB stores for it.
        nearest: whether an element is the nearest pixel instead of a mean of several pixels.
    """

    data_type: str
    height: int
    width: int
    components: tuple[int, ...]
    channels_last: bool
    scale: tuple[float, ...]
    offset: tuple[float, ...]
    linear: bool
    nearest: bool

    @property
    def fields(self) -> dict[str, tuple[UniformType, int | float]]:
        """The uniforms that both directions have."""
        found: dict[str, tuple[UniformType, int | float]] = {
            "height": ("u32", self.height),
            "width": ("u32", self.width),
            "channels": ("u32", len(self.components)),
            "channels_last": ("u32", int(self.channels_last)),
            "nearest": ("u32", int(self.nearest)),
        }
        for c in range(4):
            given = c < len(self.components)
            found[f"component{c}"] = ("u32", self.components[c] if given else 0)
            found[f"scale{c}"] = ("f32", self.scale[c] if given else 1.0)
            found[f"offset{c}"] = ("f32", self.offset[c] if given else 0.0)
        return found


@dataclass(frozen=True)
class Crop:
    """A part of a texture, in texels."""

    top: int
    left: int
    height: int
    width: int


def check_texture(device: Device, texture: Any, usage: str) -> tuple[int, int]:
    """Return height and width of a texture that can be used as `usage` says.

    Raises:
        MLTypeError: the texture belongs to another device, is not two-dimensional, is of integers or depths, or lacks the
            usage.
    """
    if not isinstance(texture, wgpu.GPUTexture):
        raise MLTypeError("texture must be a wgpu.GPUTexture", got=type(texture).__name__)
    name = texture.label
    if texture._device is not device.gpu:
        raise MLTypeError(
            "the texture belongs to another device",
            label=name,
            got=repr(texture._device),
            hint="Create it with the context's device, context.device",
        )
    if not texture.usage & getattr(wgpu.TextureUsage, usage):
        raise MLTypeError(
            f"the texture must have the usage {usage}", label=name, got=usage_names(wgpu.TextureUsage, texture.usage)
        )
    if texture.format.endswith(("uint", "sint")) or texture.format.startswith(("depth", "stencil")):
        raise MLTypeError("the texture must hold colors", label=name, got=texture.format, allowed="unorm and float formats")
    if texture.dimension != "2d" or texture.sample_count != 1:
        got = f"{texture.dimension}, {texture.sample_count} samples"
        raise MLTypeError("the texture must be two-dimensional and of one sample", label=name, got=got)
    width, height, _ = texture.size
    return int(height), int(width)


class TextureKernels:
    """The pipelines of one device that read and draw textures."""

    def __init__(self, device: Device) -> None:
        self._device = device
        self._made: dict[Hashable, tuple[Any, wgpu.GPUBindGroupLayout]] = {}

    @classmethod
    def of(cls, device: Device) -> TextureKernels:
        """Return those of a device."""
        with device.lock:
            return device.shared.setdefault("textures", cls(device))

    def read(self, texture: Any, crop: Crop, buffer: Buffer, picture: Picture, antialias: bool, encoder: Any = None) -> None:
        """Submit the conversion of a part of a texture to a tensor, or record it into a caller's encoder.

        Raises:
            MLTypeError: the encoder belongs to another device.
            InvalidStateError: texture or buffer was destroyed, or the encoder has ended.
        """
        device = self._device
        quads = -(-picture.height * picture.width * len(picture.components) // QUAD)
        fields: Fields = {
            "quads": ("u32", quads),
            "rounds": ("u32", 1),
            "left": ("i32", crop.left),
            "top": ("i32", crop.top),
            "crop_width": ("i32", crop.width),
            "crop_height": ("i32", crop.height),
            "scale_x": ("f32", crop.width / picture.width),
            "scale_y": ("f32", crop.height / picture.height),
            "antialias": ("u32", int(antialias)),
            "step_x": ("i32", _step(crop.width, picture.width)),
            "step_y": ("i32", _step(crop.height, picture.height)),
            **picture.fields,
        }
        encode = texture.format.endswith("-srgb") and not picture.linear
        output = Binding(name="output", access="write", element=picture.data_type, quad=True)
        if buffer.data_bytes % output.unit_bytes:  # single elements, so that the kernel does not write behind the last one
            output = replace(output, quad=False)
        spec = emulated(READ.spec([output], [(name, type_) for name, (type_, _) in fields.items()], encode=encode), device.caps)
        with device.lock:
            pipeline, layout = self._pipeline(spec)
            group = self._group(layout, spec, fields, buffer, _view(device, texture))
            grid = grid_1d(-(-quads // _WORKGROUP), device.caps)

            def record(encoder: wgpu.GPUCommandEncoder) -> None:
                compute = encoder.begin_compute_pass()
                compute.set_pipeline(pipeline)
                compute.set_bind_group(0, group)
                compute.dispatch_workgroups(*grid)
                compute.end()

            self._run(record, buffer, encoder)

    def draw(self, buffer: Buffer, picture: Picture, texture: Any, colors: Array, encoder: Any = None) -> None:
        """Submit the drawing of a tensor over a texture, or record it into a caller's encoder. Exceptions are those of `read`.

        Args:
            buffer: the tensor.
            picture: the correspondence between elements and pixels.
            texture: the texture to draw over.
            colors: [n, 4], the colors that one channel's 0 to 1 stand for. [1, 4] for shades of gray.
            encoder: the encoder to record into. None submits the drawing.
        """
        device = self._device
        width, height, _ = texture.size
        fields: Fields = {
            "step_x": ("f32", picture.width / width),
            "step_y": ("f32", picture.height / height),
            "target_width": ("u32", width),
            "target_height": ("u32", height),
            **picture.fields,
        }
        decode = texture.format.endswith("-srgb") and not picture.linear
        given = Binding(name="input", access="read", element=picture.data_type)
        spec = emulated(DRAW.spec([given], [(name, type_) for name, (type_, _) in fields.items()], decode=decode), device.caps)
        with device.lock:
            pipeline, layout = self._pipeline(spec, texture.format)
            with device.translated("a colormap"):
                table = device.gpu.create_buffer_with_data(data=np.float32(colors), usage=wgpu.BufferUsage.STORAGE)
            view = _view(device, texture)
            group = self._group(layout, spec, fields, buffer, {"buffer": table, "offset": 0, "size": table.size})

            def record(encoder: wgpu.GPUCommandEncoder) -> None:
                drawing = encoder.begin_render_pass(
                    color_attachments=[{"view": view, "load_op": "clear", "store_op": "store", "clear_value": (0, 0, 0, 0)}]
                )
                drawing.set_pipeline(pipeline)
                drawing.set_bind_group(0, group)
                drawing.draw(3)
                drawing.end()

            self._run(record, buffer, encoder)

    def _run(self, record: Any, buffer: Buffer, encoder: Any) -> None:
        if encoder is None:
            own = self._device.gpu.create_command_encoder()
            with self._device.translated("a texture's pass"):
                record(own)
            self._device.submit(own, (buffer,))
            return
        check_encoder(self._device, encoder, wgpu.GPUCommandEncoder, "encoder")
        buffer.check()
        with recording("encoder"):
            record(encoder)
        buffer.lend()

    def _group(
        self, layout: wgpu.GPUBindGroupLayout, spec: KernelSpec, fields: Fields, buffer: Buffer, other: Any
    ) -> wgpu.GPUBindGroup:
        buffer.check()
        uniforms = spec.packed([value for _, value in fields.values()])
        with self._device.translated("binding a texture"):
            values = self._device.gpu.create_buffer_with_data(data=uniforms, usage=wgpu.BufferUsage.UNIFORM)
            resources: list[Any] = [
                {"buffer": buffer.gpu, "offset": buffer.offset_bytes, "size": buffer.size_bytes},
                {"buffer": values, "offset": 0, "size": len(uniforms)},
                other,
            ]
            return self._device.gpu.create_bind_group(
                layout=layout, entries=[{"binding": i, "resource": r} for i, r in enumerate(resources)]
            )

    def _pipeline(self, spec: KernelSpec, target: str = "") -> tuple[Any, wgpu.GPUBindGroupLayout]:
        """Return the pipeline that reads a texture, or that draws over one of format `target`, and its bind group's layout."""
        key = (spec, target)
        if key not in self._made:
            gpu = self._device.gpu
            stage = wgpu.ShaderStage.FRAGMENT if target else wgpu.ShaderStage.COMPUTE
            first, third = ({"buffer": {"type": "read-only-storage"}},) * 2
            if not target:
                first = {"buffer": {"type": "storage"}}
                third = {"texture": {"sample_type": "unfilterable-float", "view_dimension": "2d"}}
            items = [first, {"buffer": {"type": "uniform"}}, third]
            with self._device.translated(f"compiling textures/{spec.template}.wgsl.j2 for {target or 'reading'}"):
                layout = gpu.create_bind_group_layout(
                    entries=[{"binding": i, "visibility": stage, **item} for i, item in enumerate(items)]
                )
                whole = gpu.create_pipeline_layout(bind_group_layouts=[layout])
                module = own_module(self._device, str(spec), render(spec, "textures"))
                main: Any = {"module": module, "entry_point": "main"}
                pipeline = (
                    gpu.create_render_pipeline(
                        layout=whole,
                        vertex={"module": module, "entry_point": "corner"},
                        fragment={**main, "targets": [{"format": target}]},
                    )
                    if target
                    else gpu.create_compute_pipeline(layout=whole, compute=main)
                )
            self._made[key] = (pipeline, layout)
        return self._made[key]


def _step(texels: int, elements: int) -> int:
    return -(-(2 * texels // elements + 1) // _MOST_TAPS)


def _view(device: Device, texture: wgpu.GPUTexture) -> wgpu.GPUTextureView:
    """Return a new view of a texture's first level and layer. Its creation fails if the texture was destroyed."""
    try:
        return texture.create_view(dimension="2d", mip_level_count=1, array_layer_count=1)
    except wgpu.GPUError as error:
        if device.lost:
            raise
        raise InvalidStateError("the texture was destroyed", label=texture.label, got=wgpu_message(error)) from error
