"""Tensors in pygfx scenes, and pygfx's buffers and textures as tensors, on pygfx's device without copies to the host.

Import it beside pygfx under another name: `from webnn_wgpu.frontends import pygfx as bridge`.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import Any

from webnn_wgpu import MLContext, MLTensor, MLTypeError, NotSupportedError, ml
from webnn_wgpu.typing import DataTypeLike, MLOperandDataType, ShapeLike

# Usages by WebGPU's numbers: https://www.w3.org/TR/webgpu/#typedefdef-gpubufferusageflags and #typedefdef-gputextureusageflags
_COPY_SRC, _COPY_DST, _INDEX, _VERTEX, _STORAGE = 0x04, 0x08, 0x10, 0x20, 0x80
_TEXTURE_COPY_SRC, _TEXTURE_BINDING, _RENDER_ATTACHMENT = 0x01, 0x04, 0x10

_PADDING = 32
"""The alignment of buffer sizes in bytes.

Kernels read tensors in aligned buffers directly. Otherwise some runs begin with a copy.
"""

_DATA_TYPES: Mapping[str, MLOperandDataType] = {
    "f4": "float32",
    "f2": "float16",
    "i4": "int32",
    "u4": "uint32",
    "i1": "int8",
    "u1": "uint8",
}
_LETTERS: Mapping[str, str] = {name: letters for letters, name in _DATA_TYPES.items()}


def create_context() -> MLContext:
    """Return a context on the device that all pygfx renderers share.

    Raises:
        NotSupportedError: pygfx is not installed.

    Example:
        >>> from webnn_wgpu.frontends import pygfx as bridge
        >>> gfx_context = bridge.create_context()
        >>> gfx_context.create_tensor([4], "float32")
        MLTensor(shape=[4], dtype=float32)
    """
    return ml.create_context(_pygfx().renderers.wgpu.get_shared().device)


def wrap_buffer(
    context: MLContext, buffer: Any, shape: ShapeLike | None = None, data_type: DataTypeLike | None = None
) -> MLTensor:
    """Return a tensor over the memory of a pygfx buffer, as `MLContext.wrap_buffer` does, after an upload of pending data.

    Graphs that write the tensor change pygfx's drawing from the next frame on. The buffer's `data` on the host does not change.

    Args:
        context: a context on pygfx's device.
        buffer: a `pygfx.Buffer`.
        shape: the tensor's shape. The default is [items], or [items, n] if an item has n elements.
        data_type: its data type. The default is that of the buffer's format.

    Raises:
        MLTypeError: the argument is no buffer, its format has no data type, or the context is on another device. Or pygfx drew
            the buffer before, from memory without the usage STORAGE: wrap it before it is drawn.

    Example:
        >>> import pygfx as gfx
        >>> from webnn_wgpu.frontends import pygfx as bridge
        >>> gfx_context = bridge.create_context()
        >>> positions = gfx.Buffer(np.zeros((5, 3), np.float32))
        >>> bridge.wrap_buffer(gfx_context, positions)
        MLTensor(shape=[5, 3], dtype=float32, readable, writable)
    """
    gfx = _pygfx()
    if not isinstance(buffer, gfx.Buffer):
        raise MLTypeError("buffer must be a pygfx.Buffer", operator="wrap_buffer", got=type(buffer).__name__)
    given: Any = buffer
    if shape is None or data_type is None:
        elements, found = _elements_of(str(given.format))
        data_type = data_type or found
        shape = shape if shape is not None else [given.nitems, *[elements] * (elements > 1)]
    if context.device is not gfx.renderers.wgpu.get_shared().device:
        raise MLTypeError("the context must be on pygfx's device", operator="wrap_buffer", got=repr(context))
    if given._wgpu_object is None:
        # Like a buffer of pygfx, with padding behind it and all usages that graphs and shadows need.
        given._wgpu_usage |= _STORAGE | _VERTEX | _INDEX | _COPY_SRC | _COPY_DST
        size = -(-given.nbytes // _PADDING) * _PADDING
        given._wgpu_object = context.device.create_buffer(size=size, usage=given._wgpu_usage)
        given._gfx_mark_for_sync()
    _engine("update").update_resource(given)
    return context.wrap_buffer(given._wgpu_object, shape, data_type)


def buffer_of(tensor: MLTensor) -> Any:
    """Return a pygfx buffer over a tensor's memory: positions, colors or indices that a graph computes.

    Args:
        tensor: a tensor [items] or [items, 1 to 4] of a context on pygfx's device, at offset 0 of its buffer.

    Returns:
        A `pygfx.Buffer` without data on the host. Objects that cast shadows need memory of pygfx: use `wrap_buffer`.

    Raises:
        MLTypeError: pygfx buffers do not support the tensor's shape, data type or offset.
        MLTensorStateError: the tensor was destroyed, or is a constant.

    Example:
        >>> from webnn_wgpu.frontends import pygfx as bridge
        >>> tensor = bridge.create_context().create_tensor([100, 3], "float32")
        >>> bridge.buffer_of(tensor).format
        '3xf4'
    """
    gfx = _pygfx()
    shape, letters = list(tensor.shape), _LETTERS.get(tensor.data_type)
    if len(shape) not in (1, 2) or (shape[1:] or [1])[0] not in (1, 2, 3, 4) or letters is None or tensor.buffer_offset:
        raise MLTypeError(
            "the tensor must be [items] or [items, 1..4], and lie at the beginning of its buffer",
            operator="buffer_of",
            got=f"{tensor!r} at byte {tensor.buffer_offset}",
            allowed=", ".join(_LETTERS),
        )
    native: Any = tensor.buffer
    elements = (shape[1:] or [1])[0]
    made = gfx.Buffer(
        nbytes=tensor.nbytes,
        nitems=shape[0],
        format=f"{elements}x{letters}" if elements > 1 else letters,
        usage=native.usage,
    )
    made._wgpu_object = native
    return made


def tensor_from_texture(context: MLContext, texture: Any, **how: Any) -> MLTensor:
    """Return a tensor of a pygfx texture: a picture, or the target of a renderer.

    Renderers write linear light to their targets, and networks for photos expect sRGB values. A target of the format
    "rgba8unorm-srgb" contains sRGB values.

    Args:
        context: a context on pygfx's device.
        texture: a two-dimensional `pygfx.Texture` of colors.
        how: the options of `MLContext.tensor_from_texture`: `size`, `mean`, `into`, ...

    Raises:
        MLTypeError: as `MLContext.tensor_from_texture`.
    """
    return context.tensor_from_texture(_gpu_texture(texture, "tensor_from_texture"), **how)


def tensor_to_texture(context: MLContext, tensor: MLTensor, texture: Any, **how: Any) -> None:
    """Draw a tensor over a pygfx texture and update its mipmaps, if any. A scene shows it from the next frame on.

    Args:
        context: a context on pygfx's device.
        tensor: one picture.
        texture: a `pygfx.Texture` made with `size` and `format`. With `colorspace="tex-srgb"`, the tensor contains sRGB values,
            and pygfx shows it as a photo.
        how: the options of `MLContext.tensor_to_texture`: `colormap`, `value_range`, ...

    Raises:
        MLTypeError: as `MLContext.tensor_to_texture`. Or pygfx drew the texture before, and it cannot be a render target: call
            this function before it is drawn.

    Example:
        >>> import pygfx as gfx
        >>> from webnn_wgpu.frontends import pygfx as bridge
        >>> gfx_context = bridge.create_context()
        >>> depth = gfx_context.create_tensor([1, 1, 32, 32], "float32")
        >>> shown = gfx.Texture(dim=2, size=(64, 64, 1), format="rgba8unorm", colorspace="tex-srgb")
        >>> bridge.tensor_to_texture(gfx_context, depth, shown, colormap="viridis")
        >>> image = gfx.Image(gfx.Geometry(grid=shown), gfx.ImageBasicMaterial())
    """
    context.tensor_to_texture(tensor, _gpu_texture(texture, "tensor_to_texture"), **how)
    if texture.generate_mipmaps:
        _engine("mipmapsutil").generate_texture_mipmaps(texture)


def _gpu_texture(texture: Any, operator: str) -> Any:
    if not isinstance(texture, _pygfx().Texture):
        raise MLTypeError("texture must be a pygfx.Texture", operator=operator, got=type(texture).__name__)
    given: Any = texture
    if given._wgpu_object is None:
        given._wgpu_usage |= _TEXTURE_COPY_SRC | _TEXTURE_BINDING | _RENDER_ATTACHMENT
    native = _engine("update").ensure_wgpu_object(given)
    _engine("update").update_resource(given)
    return native


def _elements_of(text: str) -> tuple[int, MLOperandDataType]:
    """Return the number of elements of an item of a pygfx format such as "3xf4", and their data type."""
    count, _, letters = text.rpartition("x")
    if letters not in _DATA_TYPES or not (count or "1").isdigit():
        raise MLTypeError(
            "the buffer's format has no data type here", operator="wrap_buffer", got=text, allowed="[2x, 3x, 4x]f4, f2, i4, ..."
        )
    return int(count or 1), _DATA_TYPES[letters]


def _pygfx() -> Any:
    try:
        return import_module("pygfx")
    except ModuleNotFoundError as error:
        raise NotSupportedError("the bridge needs the package 'pygfx'", hint="pip install 'webnn-wgpu[pygfx]'") from error


def _engine(module: str) -> Any:
    """Return a module of pygfx that manages wgpu's objects."""
    return import_module(f"pygfx.renderers.wgpu.engine.{module}")
