"""Pictures as inputs of image models: cropped, scaled, normalized, and in the model's layout."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np
import numpy.typing as npt

from webnn_wgpu import MLTypeError, NotSupportedError

Fit = Literal["crop", "stretch", "pad"]
Layout = Literal["auto", "nchw", "nhwc"]

NORMALIZATIONS: dict[str, tuple[tuple[float, ...], tuple[float, ...]]] = {
    "imagenet": ((0.485, 0.456, 0.406), (0.229, 0.224, 0.225)),
    "unit": ((0.0, 0.0, 0.0), (1.0, 1.0, 1.0)),
    "signed": ((0.5, 0.5, 0.5), (0.5, 0.5, 0.5)),
    "bytes": ((0.0, 0.0, 0.0), (1 / 255, 1 / 255, 1 / 255)),
}
"""Mean and standard deviation of pixels from 0 to 1: torchvision's for ImageNet, and of the ranges 0..1, -1..1 and 0..255."""

CROP = 224 / 256
"""The part of the shorter side in a center crop, as in torchvision's classification presets."""


@dataclass(frozen=True, kw_only=True)
class Preprocessing:
    """The conversion of a picture to a tensor.

    Attributes:
        normalization: a name in `NORMALIZATIONS`. Tensors of integers contain unchanged pixels from 0 to 255.
        mean, std: replacements of the normalization's values, for pixels from 0 to 1.
        fit: "crop" scales the shorter side and crops to the center, "stretch" changes proportions, "pad" fills with gray.
        layout: the position of the channels. "auto" derives it from the shape.
        bgr: whether channels are in the order blue, green, red.
        size: height and width, if the model leaves them open.
    """

    normalization: str = "imagenet"
    mean: tuple[float, ...] | None = None
    std: tuple[float, ...] | None = None
    fit: Fit = "crop"
    layout: Layout = "auto"
    bgr: bool = False
    size: tuple[int, int] = (224, 224)


def image_tensor(
    picture: str | os.PathLike[str] | Any,
    shape: tuple[int | str | None, ...],
    dtype: npt.DTypeLike = np.float32,
    how: Preprocessing | None = None,
) -> npt.NDArray[Any]:
    """Return a picture as a model's input.

    Args:
        picture: the path of a file that Pillow reads, a `PIL.Image.Image`, or an array of uint8 [height, width, 3].
        shape: the input's shape, of rank 3 or 4. Symbolic and unknown sizes become those of `how`, and a batch becomes 1.
        dtype: the input's data type.
        how: the preprocessing.

    Returns:
        An array of `dtype`: [1, 3, height, width], or in the order of `shape`.

    Raises:
        MLTypeError: the shape is invalid for a picture, or the normalization, the fit or the layout is unknown.
        NotSupportedError: Pillow is not installed, or cannot read the file.

    Example:
        >>> from webnn_wgpu.frontends.images import image_tensor
        >>> image_tensor(np.full((40, 60, 3), 255, np.uint8), ("N", 3, 32, 32)).shape
        (1, 3, 32, 32)
    """
    how = how or Preprocessing()
    for name, value, allowed in (
        ("normalization", how.normalization, NORMALIZATIONS),
        ("fit", how.fit, get_args(Fit)),
        ("layout", how.layout, get_args(Layout)),
    ):
        if value not in allowed:
            raise MLTypeError(f"unknown {name}", got=repr(value), allowed=", ".join(allowed))
    channels, height, width, last = _layout(shape, how)
    pixels = _resized(_opened(picture, "L" if channels == 1 else "RGB"), height, width, how.fit)
    if pixels.ndim == 2:
        pixels = pixels[:, :, None]
    if how.bgr:
        pixels = pixels[:, :, ::-1]
    wanted = np.dtype(dtype)
    if wanted.kind in "iu":
        result = pixels.astype(wanted) if wanted != np.int8 else (pixels.astype(np.int16) - 128).astype(np.int8)
    else:
        mean, std = NORMALIZATIONS[how.normalization]
        mean, std = how.mean or mean, how.std or std
        values = pixels.astype(np.float32) / 255
        result = ((values - np.array(mean[:channels], np.float32)) / np.array(std[:channels], np.float32)).astype(wanted)
    if not last:
        result = result.transpose(2, 0, 1)
    return np.ascontiguousarray(result if len(shape) == 3 else result[None])


def _layout(shape: tuple[int | str | None, ...], how: Preprocessing) -> tuple[int, int, int, bool]:
    """Return channels, height, width, and whether channels are last."""
    if len(shape) not in (3, 4):
        raise MLTypeError(
            "an input for a picture must have rank 3 or 4", got=str(list(shape)), allowed="such as [1, 3, height, width]"
        )
    if len(shape) == 4 and isinstance(shape[0], int) and shape[0] != 1:
        raise MLTypeError("one picture is a batch of one", got=str(list(shape)))
    first, middle, end = shape[-3:]
    last = how.layout == "nhwc" or (how.layout == "auto" and first not in (1, 3) and end in (1, 3))
    channels, height, width = (end, first, middle) if last else (first, middle, end)
    channels = channels if isinstance(channels, int) else 3
    if channels not in (1, 3):
        order = "last" if last else "first"
        hint = "Another layout (nchw, nhwc) may fit. Otherwise give the input as an array"
        raise MLTypeError(f"a picture has 1 or 3 channels, here the {order} of three sizes", got=str(list(shape)), hint=hint)
    return (
        channels,
        height if isinstance(height, int) else how.size[0],
        width if isinstance(width, int) else how.size[1],
        last,
    )


def _opened(picture: Any, mode: str) -> Any:
    try:
        from PIL import Image, ImageOps, UnidentifiedImageError
    except ModuleNotFoundError as error:
        raise NotSupportedError("pictures need the package 'pillow'", hint="pip install 'webnn-wgpu[image]'") from error
    if isinstance(picture, (str, os.PathLike)):
        try:
            with Image.open(os.fspath(picture)) as opened:  # pyright: ignore[reportUnknownArgumentType] - a path of any kind
                return ImageOps.exif_transpose(opened).convert(mode)
        except UnidentifiedImageError as error:
            raise NotSupportedError(str(error)) from error
        except OSError as error:
            if error.errno is not None:
                raise
            # The file's content. Pillow does not name the file.
            raise NotSupportedError(f"{os.fspath(picture)}: {error}") from error  # pyright: ignore[reportUnknownArgumentType]
    return (Image.fromarray(picture) if isinstance(picture, np.ndarray) else picture).convert(mode)  # pyright: ignore[reportUnknownArgumentType] - pixels of any kind


def _resized(picture: Any, height: int, width: int, fit: Fit) -> npt.NDArray[Any]:
    from PIL import Image, ImageOps

    bilinear = Image.Resampling.BILINEAR
    if fit == "stretch":
        return np.asarray(picture.resize((width, height), bilinear))
    if fit == "pad":
        gray = 114 if picture.mode == "L" else (114, 114, 114)
        return np.asarray(ImageOps.pad(picture, (width, height), bilinear, color=gray))
    wanted = max(width / picture.width, height / picture.height) / CROP
    scaled = picture.resize((round(picture.width * wanted), round(picture.height * wanted)), bilinear)
    left, top = (scaled.width - width) // 2, (scaled.height - height) // 2
    return np.asarray(scaled.crop((left, top, left + width, top + height)))
