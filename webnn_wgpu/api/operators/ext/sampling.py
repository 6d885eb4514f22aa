"""Extension operators that take values between elements."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from ....core.errors import MLTypeError, quoted
from ....ops._resampling import COORDINATES, MODES, NEAREST, Resampling, Taps, taps
from ...operand import MLOperand
from ...options import with_options
from ._base import ExtensionMethods


class SamplingExtensions(ExtensionMethods):
    """grid_sample, resample, weighted_gather."""

    @with_options()
    def grid_sample(
        self,
        input: MLOperand,
        grid: MLOperand,
        *,
        mode: Literal["linear", "nearest", "cubic"] = "linear",
        padding_mode: Literal["zeros", "border", "reflection"] = "zeros",
        align_corners: bool = False,
        label: str = "",
    ) -> MLOperand:
        """Values of images, or of volumes, at positions between their elements: ONNX's GridSample.

        Args:
            input: float32 or float16; shape [batch, channels, height, width] or [batch, channels, depth, height, width].
            grid: float32 or float16; shape [batch, new height, new width, 2] or [batch, new depth, new height, new width, 3].
                The coordinates, that of the width first, from -1 at one end of the input to 1 at the other.
            mode: "linear", "nearest" or "cubic".
            padding_mode: What lies beyond the ends: "zeros", "border" (the elements there) or "reflection".
            align_corners: Whether -1 and 1 are the middles of the elements at the ends, else their outer edges.
            label: The operator's name in messages.

        Returns:
            An operand of the input's data type; shape [batch, channels, new height, new width], or with a new depth.

        Raises:
            MLTypeError: Shapes that do not fit, a data type or option that is not allowed, or an operand of another builder.

        Numerics: Coordinates, weights and sums are float32. Halves are rounded to even where the mode is "nearest", the cubic
            kernel has a = -0.75, and coordinates that are NaN lie beyond the first element.

        Example:
            >>> places = b.constant(np.zeros((1, 3, 5, 2), np.float32))
            >>> b.ext.grid_sample(image, places, padding_mode="border").shape
            (1, 2, 3, 5)
        """
        options = {"mode": mode, "padding_mode": padding_mode, "align_corners": align_corners}
        return self._output("x.grid_sample", [input, grid], options, label)

    @with_options()
    def resample(
        self,
        input: MLOperand,
        *,
        axes: Sequence[int] | None = None,
        sizes: Sequence[int] | None = None,
        scales: Sequence[float] | None = None,
        mode: Literal["nearest", "linear", "cubic"] = "nearest",
        nearest_mode: Literal["round_prefer_floor", "round_prefer_ceil", "floor", "ceil"] = "round_prefer_floor",
        coordinate_transformation_mode: Literal[
            "half_pixel", "half_pixel_symmetric", "pytorch_half_pixel", "align_corners", "asymmetric", "tf_crop_and_resize"
        ] = "half_pixel",
        cubic_coeff_a: float = -0.75,
        antialias: bool = False,
        exclude_outside: bool = False,
        extrapolation_value: float = 0.0,
        roi: Sequence[float] | None = None,
        label: str = "",
    ) -> MLOperand:
        """Another number of elements along some dimensions, as ONNX's Resize makes them: in all of its modes.

        Args:
            input: float32 or float16, or any data type where `mode` is "nearest"; rank 1 to 8.
            axes: The dimensions, all of them by default; negative numbers count from the last.
            sizes: Elements along each of them afterwards; by default the old ones times `scales`, rounded down.
            scales: Ratios of elements afterwards to elements before, for coordinates; by default those of the sizes.
            mode: "nearest", "linear" or "cubic", along every dimension for itself.
            nearest_mode: "round_prefer_floor", "round_prefer_ceil", "floor" or "ceil".
            coordinate_transformation_mode: "half_pixel", "half_pixel_symmetric", "pytorch_half_pixel", "align_corners",
                "asymmetric" or "tf_crop_and_resize".
            cubic_coeff_a: The parameter of the cubic kernel.
            antialias: Whether the kernel is stretched where fewer elements are made, so that all of them count.
            exclude_outside: Whether elements beyond the ends have no weight; else those at the ends stand for them.
            extrapolation_value: What lies beyond the ends, for "tf_crop_and_resize".
            roi: Where the output starts along each dimension, then where it ends, from 0 to 1; for "tf_crop_and_resize".
            label: The operators' name in messages.

        Returns:
            An operand of the input's data type, with the new sizes.

        Raises:
            MLTypeError: Options that contradict each other or that are not known, a data type that is not allowed, or an
                operand of another builder.

        Numerics: Weights are computed in float64 and rounded to float32; elements of weight 0 do not count, even NaN. One
            dimension after the other, in float32 in between.

        Example:
            >>> b.ext.resample(image, axes=[2, 3], sizes=[8, 3], mode="linear", antialias=True).shape
            (1, 2, 8, 3)
        """
        fail = _failing("ext.resample", label)
        if not isinstance(input, MLOperand):  # pyright: ignore[reportUnnecessaryIsInstance] - callers need not be typed
            raise fail("input must be an operand", got=f"{quoted(input)} ({type(input).__name__})")
        for name, value, allowed in (
            ("mode", mode, MODES),
            ("nearest_mode", nearest_mode, tuple(NEAREST)),
            ("coordinate_transformation_mode", coordinate_transformation_mode, COORDINATES),
        ):
            if value not in allowed:
                raise fail(f"Invalid {name}", got=quoted(value), allowed=", ".join(allowed))
        if mode == "nearest" and antialias:
            raise fail("antialias needs a mode of weights", got="mode='nearest'", allowed="linear, cubic")
        if mode != "nearest" and input.data_type not in ("float32", "float16"):
            raise fail("input data type is not allowed", got=repr(input), allowed="float32, float16, or mode='nearest'")
        options = Resampling(
            mode, nearest_mode, coordinate_transformation_mode, float(cubic_coeff_a), bool(antialias), bool(exclude_outside)
        )
        found = _dimensions(input.shape, axes, sizes, scales, roi, options, fail)
        return self._resampled(input, found, mode, extrapolation_value, label)

    def _resampled(
        self, input: MLOperand, found: dict[int, Taps], mode: str, extrapolation_value: float, label: str
    ) -> MLOperand:
        y = input
        between = "float32" if len(found) > 1 and mode != "nearest" else input.data_type
        if y.data_type != between:
            y = self._output("cast", [y], {"data_type": between}, label)
        outside: MLOperand | None = None
        for axis, along in found.items():
            if mode == "nearest":
                y = self._output("gather", [y, self._constant(along.indices[:, 0])], {"axis": axis}, label)
            else:
                operands = [y, self._constant(along.indices), self._constant(along.weights)]
                y = self._output("x.weighted_gather", operands, {"axis": axis}, label)
            if along.outside.any():
                shape = (-1,) + (1,) * (len(input.shape) - axis - 1)
                mask = self._constant(along.outside.astype(np.uint8).reshape(shape))
                outside = mask if outside is None else self._output("logicalOr", [outside, mask], None, label)
        if y.data_type != input.data_type:
            y = self._output("cast", [y], {"data_type": input.data_type}, label)
        if outside is not None:
            value = self._constant(np.array(extrapolation_value).astype(y.type.numpy))
            y = self._output("where", [outside, value, y], None, label)
        return y if y is not input else self._output("identity", [y], None, label)

    @with_options()
    def weighted_gather(
        self, input: MLOperand, indices: MLOperand, weights: MLOperand, *, axis: int = 0, label: str = ""
    ) -> MLOperand:
        """Weighted sums of elements: output[..., o, ...] = sum over t of weights[o, t] input[..., indices[o, t], ...].

        Args:
            input: float32 or float16; rank 1 to 8.
            indices: int32, uint32 or int64; shape [new size, elements per sum], at most 15000 of them. Negative ones count
                from the end of the dimension; then they are clamped to it.
            weights: float32; the shape of `indices`.
            axis: The dimension.
            label: The operator's name in messages.

        Returns:
            An operand of the input's data type and shape, with the new size along `axis`.

        Raises:
            MLTypeError: Shapes or data types that do not fit, or an operand of another builder.

        Numerics: Summed in float32 in the order of the indices; elements of weight 0 do not count, even NaN.

        Example:
            >>> pairs = b.constant(np.int32([[0, 1], [1, 2]]))
            >>> b.ext.weighted_gather(x, pairs, b.constant(np.full((2, 2), 0.5, np.float32)), axis=1).shape
            (2, 2)
        """
        return self._output("x.weighted_gather", [input, indices, weights], {"axis": axis}, label)

    if TYPE_CHECKING:
        # camelCase names, which `__getattr__` finds at run time.
        gridSample = grid_sample
        weightedGather = weighted_gather


def _failing(operator: str, label: str) -> Any:
    def fail(rule: str, **details: str) -> MLTypeError:
        return MLTypeError(rule, operator=operator, label=label, **details)

    return fail


def _dimensions(
    shape: Sequence[int],
    axes: Sequence[int] | None,
    sizes: Sequence[int] | None,
    scales: Sequence[float] | None,
    roi: Sequence[float] | None,
    options: Resampling,
    fail: Any,
) -> dict[int, Taps]:
    """Return what is to be done along every dimension that changes."""
    rank = len(shape)
    axes = [int(a) for a in axes] if axes is not None else list(range(rank))
    if any(not -rank <= a < rank for a in axes) or len({a % rank for a in axes}) != len(axes):
        raise fail("axes must be dimensions of input, each once", got=f"axes={axes}", allowed=f"{-rank}..{rank - 1}")
    if sizes is None and scales is None:
        raise fail("sizes, scales or both must be given", got="neither")
    for given in (sizes, scales):
        if given is not None and (len(given) != len(axes) or any(not (math.isfinite(n) and n > 0) for n in given)):
            raise fail(
                "sizes or scales must be positive numbers, one per axis", got=quoted(list(given)), allowed=f"{len(axes)}"
            )
    cropped = options.coordinates == "tf_crop_and_resize"
    if cropped and (roi is None or len(roi) != 2 * len(axes)):
        raise fail("roi must have a start and an end for every axis", got=quoted(roi), allowed=f"{2 * len(axes)} numbers")
    found: dict[int, Taps] = {}
    for i, axis in enumerate(a % rank for a in axes):
        size = shape[axis]
        scale = float(scales[i]) if scales is not None else sizes[i] / size if sizes is not None else 1.0
        new = int(sizes[i]) if sizes is not None else math.floor(size * scale)
        if new < 1:
            raise fail("no element would be left", got=f"scale {scale} of dimension {axis} of size {size}")
        part = (float(roi[i]), float(roi[len(axes) + i])) if cropped and roi is not None else (0.0, 1.0)
        if new != size or scale != 1 or part != (0.0, 1.0):
            found[axis] = taps(size, new, scale, part, options)
    return found
