"""`Textures`: pictures that lie in textures as tensors, and the other way round."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, cast

import numpy as np

from ..core.errors import OutOfMemoryError, quoted
from ..ir.types import TensorType
from ..kernels.element import padded_bytes
from ..runtime.textures import Crop, Picture
from .arrays import Fail, failing, is_integer, tensor_type
from .backend import DeviceBackend, no_device
from .colormaps import colors_of
from .context_state import ContextState
from .tensor import MLTensor

if TYPE_CHECKING:
    from .context import MLContext
    from .operand import DataTypeName
    from .types import Number, SupportsArray

_LARGEST = float(np.finfo(np.float32).max)
_COMPONENTS = "rgba"
_ORDERS = {1: "r", 2: "rg", 3: "rgb", 4: "rgba"}


class Textures(ContextState):
    """The part of `MLContext` that reads and draws a caller's textures."""

    def tensor_from_texture(
        self,
        texture: Any,
        *,
        size: Sequence[int] | None = None,
        layout: Literal["nchw", "nhwc"] = "nchw",
        mean: Number | Sequence[Number] = 0.0,
        std: Number | Sequence[Number] = 1.0,
        crop: Sequence[int] | None = None,
        channel_order: str = "rgb",
        data_type: Literal["float32", "float16"] | DataTypeName = "float32",
        filter: Literal["linear", "nearest"] = "linear",
        antialias: bool = True,
        color_space: Literal["srgb", "linear"] = "srgb",
        into: MLTensor | None = None,
        encoder: Any = None,
    ) -> MLTensor:
        """Return a tensor of a texture. One kernel crops, resizes, normalizes and lays it out, without copies to the host.

        Elements are (component - mean) / std, of components from 0 to 1 in formats of fixed range.

        Args:
            texture: a two-dimensional `wgpu.GPUTexture` of colors, with the usage TEXTURE_BINDING. The call reads its first
                level.
            size: (height, width) of the tensor. The default is that of the crop.
            layout: "nchw" for [1, channels, height, width], "nhwc" for [1, height, width, channels].
            mean: a number, or one for each channel.
            std: a number, or one for each channel.
            crop: (top, left, height, width) of the part to read, in texels. The default is the whole texture.
            channel_order: the components that become channels, in order: "rgb", "bgr", "rgba", "r", ...
            data_type: "float32" or "float16".
            filter: "linear" or "nearest".
            antialias: whether "linear" averages all texels that an element of a smaller picture covers, like Pillow. Otherwise
                it averages the nearest four, like PyTorch's interpolate.
            color_space: the meaning of elements of `-srgb` formats: "srgb" for the stored numbers, which networks for photos
                expect, or "linear" for light, as in shaders. Other formats are not converted.
            into: a tensor of the right type and shape to fill instead of a new one.
            encoder: a `wgpu.GPUCommandEncoder` to record into instead of submitting, as for `encode`.

        Returns:
            `into`, or a new tensor, which is readable.

        Raises:
            MLTypeError: another device's texture, one without the usage, of integers or depths, or an argument is wrong.
            InvalidStateError: the texture or tensor was destroyed, or the encoder accepts no commands.
            OutOfMemoryError: the tensor is larger than one storage binding, or the device cannot hold it.
            NotSupportedError: the context has no device.

        Numerics: weights and sums in float32. The numbers that formats of 8 bits store are found exactly, also in `-srgb`
        formats. Where an element covers more than 96 texels in a direction, evenly spaced ones stand for all.

        Example:
            >>> texture = context.device.create_texture(size=(640, 480), format="rgba8unorm", usage="TEXTURE_BINDING")
            >>> context.tensor_from_texture(texture, size=(224, 224), mean=[0.485, 0.456, 0.406], std=[0.229, 0.224, 0.225])
            MLTensor(shape=[1, 3, 224, 224], dtype=float32, readable)
        """
        fail = failing("tensor_from_texture")
        self._check_alive("tensor_from_texture")
        with self._guarded("tensor_from_texture"), self._lock:
            backend = self._device_backend()
            height, width = backend.check_texture(texture, "TEXTURE_BINDING")
            top, left, *part = _integers(crop, 4, "crop", fail) if crop is not None else (0, 0, height, width)
            if min(top, left) < 0 or min(part) < 1 or top + part[0] > height or left + part[1] > width:
                raise fail(
                    "crop must lie within the texture: (top, left, height, width)",
                    got=f"crop={crop}",
                    allowed=f"a texture of height {height}, width {width}",
                )
            rows, columns = _integers(size, 2, "size", fail) if size is not None else part
            if data_type not in ("float32", "float16"):
                raise fail("data_type must be a float type", got=repr(data_type), allowed="float32, float16")
            smooth = _bool(antialias, "antialias", fail)
            components = _components(channel_order, fail)
            means, stds = (_numbers(given, len(components), name, fail) for name, given in (("mean", mean), ("std", std)))
            if 0.0 in stds:
                raise fail("std must not be 0", got=repr(std))
            scales, offsets = [1 / s for s in stds], [-m / s for m, s in zip(means, stds, strict=True)]
            _check_factors(scales, offsets, {"mean": mean, "std": std}, fail)
            picture = Picture(
                data_type=data_type,
                height=rows,
                width=columns,
                components=components,
                channels_last=_one_of(layout, "layout", ("nchw", "nhwc"), fail) == "nhwc",
                scale=tuple(scales),
                offset=tuple(offsets),
                linear=_one_of(color_space, "color_space", ("srgb", "linear"), fail) == "linear",
                nearest=_one_of(filter, "filter", ("linear", "nearest"), fail) == "nearest",
            )
            channels = len(components)
            shape = [1, rows, columns, channels] if picture.channels_last else [1, channels, rows, columns]
            wanted = tensor_type(data_type, shape, fail)
            _check_bound(wanted, backend, "tensor_from_texture")
            target = self._target(into, wanted, fail)
            backend.textures.read(texture, Crop(top, left, *part), target._storage, picture, smooth, encoder)
            return target

    def tensor_to_texture(
        self,
        tensor: MLTensor,
        texture: Any,
        *,
        layout: Literal["nchw", "nhwc"] = "nchw",
        mean: Number | Sequence[Number] = 0.0,
        std: Number | Sequence[Number] = 1.0,
        channel_order: str | None = None,
        colormap: Literal["gray", "viridis", "inferno", "magma"] | SupportsArray | Sequence[Sequence[float]] | None = None,
        value_range: Sequence[float] = (0.0, 1.0),
        filter: Literal["linear", "nearest"] = "linear",
        color_space: Literal["srgb", "linear"] = "srgb",
        encoder: Any = None,
    ) -> None:
        """Draw a tensor over a whole texture, resized to it: one draw call. Nothing goes over the host.

        Components are element * std + mean. Formats of fixed range clamp them to 0..1. Elements of uint8 count as element /
        255.

        Args:
            tensor: float32, float16 or uint8: [1, channels, height, width], [channels, height, width] or [height, width]. Or
                with "nhwc" the channels last. One channel means shades of gray, or the colors of `colormap`.
            texture: a two-dimensional `wgpu.GPUTexture` of colors, with the usage RENDER_ATTACHMENT. The call draws to its
                first level.
            layout: "nchw" or "nhwc".
            mean: a number, or one for each channel.
            std: a number, or one for each channel.
            channel_order: the components of the channels, in order. The default is "rgb" for three, "rgba" for four.
            colormap: for one channel: "gray", "viridis", "inferno", "magma", or evenly spaced colors, [n, 3] or [n, 4].
            value_range: the elements at both ends of the colormap, or of gray.
            filter: "linear" or "nearest", where the sizes differ.
            color_space: the meaning of the colors for formats that end in `-srgb`: "srgb" for the numbers to store, or "linear"
                for light. Other formats store them unchanged.
            encoder: a `wgpu.GPUCommandEncoder` to record into instead of submitting, as for `encode`.

        Raises:
            MLTypeError: another device's texture, one without the usage, or an argument is wrong.
            MLTensorStateError: the tensor was destroyed.
            InvalidStateError: the texture was destroyed, or the encoder accepts no commands.
            OutOfMemoryError: the tensor is larger than one storage binding.
            OperationError: the texture's format cannot be drawn to.
            NotSupportedError: the context has no device.

        Example:
            >>> texture = context.device.create_texture(size=(64, 64), format="rgba8unorm-srgb", usage="RENDER_ATTACHMENT")
            >>> depth = context.create_tensor([1, 1, 32, 32], "float32")
            >>> context.tensor_to_texture(depth, texture, colormap="viridis", value_range=(0.5, 20))
        """
        fail = failing("tensor_to_texture")
        self._check_tensor(tensor, "tensor_to_texture")
        with self._guarded("tensor_to_texture"), self._lock:
            tensor._check_usable("tensor_to_texture")
            backend = self._device_backend()
            backend.check_texture(texture, "RENDER_ATTACHMENT")
            given = tensor._type
            if given.data_type not in ("float32", "float16", "uint8"):
                raise fail("the tensor must be of floats or bytes", got=repr(tensor), allowed="float32, float16, uint8")
            last = _one_of(layout, "layout", ("nchw", "nhwc"), fail) == "nhwc"
            channels, height, width = _sizes(given, last, fail)
            components = _components(_ORDERS[channels] if channel_order is None else channel_order, fail)
            if len(components) != channels:
                raise fail("channel_order must name every channel", got=repr(channel_order), allowed=f"{channels} letters")
            means, stds = (_numbers(n, channels, name, fail) for name, n in (("mean", mean), ("std", std)))
            if colormap is not None and channels != 1:
                raise fail("a colormap is for tensors of one channel", got=repr(tensor))
            unit = 1 / 255 if given.data_type == "uint8" else 1.0
            scales, offsets = [s * unit for s in stds], list(means)
            used = {"mean": mean, "std": std}
            if channels == 1:
                low, high = _numbers(value_range, 2, "value_range", fail)
                if low == high or math.isinf(high - low):
                    raise fail("the ends of value_range must differ, by a finite number", got=quoted(value_range))
                used["value_range"] = value_range
                scales, offsets = [scales[0] / (high - low)], [(offsets[0] - low) / (high - low)]
            _check_factors(scales, offsets, used, fail)
            _check_bound(given, backend, "tensor_to_texture")
            picture = Picture(
                data_type=given.data_type,
                height=height,
                width=width,
                components=(0,) if channels == 1 else components,
                channels_last=last,
                scale=tuple(scales),
                offset=tuple(offsets),
                linear=_one_of(color_space, "color_space", ("srgb", "linear"), fail) == "linear",
                nearest=_one_of(filter, "filter", ("linear", "nearest"), fail) == "nearest",
            )
            backend.textures.draw(tensor._storage, picture, texture, colors_of(colormap, fail), encoder)

    def _device_backend(self) -> DeviceBackend:
        if not isinstance(self._backend, DeviceBackend):
            raise no_device()
        return self._backend

    def _target(self, into: MLTensor | None, wanted: TensorType, fail: Fail) -> MLTensor:
        """Return the tensor to fill: the caller's, if it fits, or a new one."""
        if into is None:
            storage = self._backend.allocate(wanted, "picture")
            made = MLTensor(cast("MLContext", self), wanted, storage, {"readable": True})
            self._tensors.add(made)
            return made
        self._check_tensor(into, "tensor_from_texture")
        if into._type != wanted:
            hint = "size=(height, width) resizes; layout, channel_order and data_type give the rest"
            raise fail("into must have the result's data type and shape", got=repr(into), allowed=str(wanted), hint=hint)
        return into

    if TYPE_CHECKING:
        # camelCase names, which `__getattr__` finds at run time.
        tensorFromTexture = tensor_from_texture
        tensorToTexture = tensor_to_texture


def _sizes(given: TensorType, channels_last: bool, fail: Fail) -> tuple[int, int, int]:
    """Return channels, height and width of a tensor that is a picture."""
    shape = given.shape
    if len(shape) == 2:
        return (1, *shape)
    image = shape[1:] if len(shape) == 4 and shape[0] == 1 else shape
    if len(image) != 3 or (channels := image[2 if channels_last else 0]) not in _ORDERS:
        raise fail(
            "the tensor must be one picture",
            got=str(given),
            allowed="[1, height, width, 1..4]" if channels_last else "[1, 1..4, height, width]",
        )
    height, width = image[:2] if channels_last else image[1:]
    return channels, height, width


def _components(order: Any, fail: Fail) -> tuple[int, ...]:
    if not isinstance(order, str) or not 1 <= len(order) <= 4 or set(order) - set(_COMPONENTS) or len(set(order)) < len(order):
        raise fail("channel_order must be different letters of rgba", got=repr(order), allowed="rgb, bgr, rgba, r, ...")
    return tuple(_COMPONENTS.index(letter) for letter in order)


def _one_of(value: Any, name: str, allowed: tuple[str, ...], fail: Fail) -> str:
    if value not in allowed:
        raise fail(f"Invalid {name}", got=repr(value), allowed=", ".join(allowed))
    return value


def _bool(value: Any, name: str, fail: Fail) -> bool:
    if not isinstance(value, bool | np.bool_):
        raise fail(f"{name} must be a bool", got=quoted(value), allowed="True, False")
    return bool(cast("Any", value))


def _integers(values: Any, count: int, name: str, fail: Fail) -> list[int]:
    given = list(cast("list[Any]", values)) if isinstance(values, list | tuple) else []
    if len(given) != count or not all(is_integer(n) and -(2**31) <= n < 2**31 for n in given):
        raise fail(f"{name} must be {count} integers", got=quoted(cast("object", values)))
    return [int(n) for n in given]


def _numbers(values: Any, count: int, name: str, fail: Fail) -> list[float]:
    """Return `count` numbers: those of a list, or one number as often."""
    try:
        given = [float(values)] * count if not hasattr(values, "__len__") else [float(v) for v in values]
    except (TypeError, ValueError, OverflowError):
        given = []
    if len(given) != count or not all(math.isfinite(v) for v in given):
        raise fail(f"{name} must be a finite number, or {count} of them", got=quoted(values))
    return given


def _check_factors(scales: Sequence[float], offsets: Sequence[float], named: Mapping[str, Any], fail: Fail) -> None:
    """Refuse numbers by which elements would become infinite or NaN in the kernel, which computes in float32."""
    if not all(abs(v) <= _LARGEST for v in (*scales, *offsets)):
        raise fail(
            f"{', '.join(named)} must make finite factors in float32",
            got=", ".join(f"{name}={quoted(value)}" for name, value in named.items()),
            allowed=f"factors and offsets of at most {_LARGEST:.6g}",
        )


def _check_bound(given: TensorType, backend: DeviceBackend, operator: str) -> None:
    """Raise OutOfMemoryError for a tensor that does not fit into one storage binding, as kernel and draw call need it."""
    size = padded_bytes(given.size_bytes)
    for verb, name in (("hold", "max-buffer-size"), ("bind", "max-storage-buffer-binding-size")):
        limit = backend.device.caps.limit(name)
        if size > limit:
            raise OutOfMemoryError(
                f"the tensor is larger than the device can {verb}",
                operator=operator,
                got=f"{given}, {size} bytes",
                allowed=f"{name} {limit} bytes",
            )
