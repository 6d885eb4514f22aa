"""Extension methods that are not operators. Each adds other operators."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Literal

import numpy as np

from ....core.errors import MLTypeError, quoted
from ....ops._resampling import COORDINATES, MODES, MOST_TAPS, NEAREST, Resampling, Taps, taps, taps_of_element
from ...operand import MLOperand
from ...options import with_options
from ._base import ExtensionMethods


class ComposedExtensions(ExtensionMethods):
    """resample."""

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
        """Change the number of elements along some dimensions, in all modes of ONNX's Resize.

        Args:
            input: float32 or float16, or any data type if `mode` is "nearest", with rank 1 to 8.
            axes: The dimensions. The default is all dimensions. Negative numbers count from the last.
            sizes: Number of elements along each of them afterwards. The default is the old number times `scales`, rounded
                down.
            scales: Ratios of elements afterwards to elements before, from which coordinates are computed. The default is the
                ratios of the sizes.
            mode: "nearest", "linear" or "cubic", separately along every dimension.
            nearest_mode: "round_prefer_floor", "round_prefer_ceil", "floor" or "ceil".
            coordinate_transformation_mode: "half_pixel", "half_pixel_symmetric", "pytorch_half_pixel", "align_corners",
                "asymmetric" or "tf_crop_and_resize".
            cubic_coeff_a: The parameter of the cubic kernel.
            antialias: Whether the kernel is stretched along dimensions that shrink, so that all elements count.
            exclude_outside: Whether elements beyond the ends have no weight. Otherwise the elements at the ends stand for them.
            extrapolation_value: The value beyond the ends, for "tf_crop_and_resize".
            roi: Start of the output along each dimension, then its end, from 0 to 1, for "tf_crop_and_resize".
            label: Name of the operators in errors, plans and debuggers.

        Returns:
            An operand with the input's data type and the new sizes.

        Raises:
            MLTypeError: Options contradict each other or are unknown, the data type is not allowed, a dimension of the result
                has more than 2^24 taps, or an operand belongs to another builder.
            InvalidStateError: The builder has built its graph, or its context is lost.

        Numerics:
            Weights are computed in float64 and rounded to float32. Elements of weight 0 do not count, even NaN. Dimensions are
            resampled one after the other, with float32 in between.

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
            mode=mode,
            nearest_mode=nearest_mode,
            coordinates=coordinate_transformation_mode,
            cubic_coeff_a=float(cubic_coeff_a),
            antialias=bool(antialias),
            exclude_outside=bool(exclude_outside),
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
    """Return the taps of every dimension that changes."""
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
            if new * taps_of_element(scale, options) > MOST_TAPS:
                count = f"{new} elements of {taps_of_element(scale, options)} taps along dimension {axis}"
                raise fail("the result has too many taps", got=count, allowed=f"at most {MOST_TAPS} taps")
            found[axis] = taps(size, new, scale, part, options)
    return found
