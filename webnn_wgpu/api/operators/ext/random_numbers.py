"""Extension methods that make random numbers of random bits, and drop elements at random."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from ....core.errors import MLTypeError
from ...operand import MLOperand
from ...options import with_options
from ._base import ExtensionMethods

_ONE = 0x3F800000
"""The bits of 1. With 23 random bits behind the exponent, they are a number from 1 to 2."""


class RandomNumbers(ExtensionMethods):
    """random_uniform, random_normal, dropout."""

    @with_options()
    def random_uniform(
        self, key: MLOperand, shape: Sequence[int], *, low: float = 0.0, high: float = 1.0, label: str = ""
    ) -> MLOperand:
        """Random numbers of equal probability from `low`, included, to `high`.

        Args:
            key: uint32, with two elements. Different keys give independent numbers.
            shape: The shape of the result, with fewer than 2^32 elements.
            low: The least number.
            high: The number that all others are below.
            label: Name of the operators in errors, plans and debuggers.

        Returns:
            A float32 operand of the given shape.

        Raises:
            MLTypeError: The key has another data type or shape, a dimension is not positive, a bound is not finite, or the key
                belongs to another builder.
            InvalidStateError: The builder has built its graph, or its context is lost.

        Numerics:
            Multiples of 2^-23 from 0 to 1, the same ones on every device. With other bounds, product and sum round.

        Example:
            >>> numbers = b.ext.random_uniform(b.constant(np.uint32([0, 42])), [1000], low=-1.0)
            >>> found = context.compute(b.build({"numbers": numbers}), {})["numbers"]
            >>> bool(found.min() >= -1), bool(found.max() < 1), bool(abs(found.mean()) < 0.1)
            (True, True, True)
        """
        if not (math.isfinite(low) and math.isfinite(high)):
            raise MLTypeError("bounds must be finite", operator="ext.random_uniform", label=label, got=f"{low} and {high}")
        unit = self._uniform(key, shape, label)
        if (low, high) == (0.0, 1.0):
            return unit
        return self._output("linear", [unit], {"alpha": high - low, "beta": low}, label)

    @with_options()
    def random_normal(
        self, key: MLOperand, shape: Sequence[int], *, mean: float = 0.0, deviation: float = 1.0, label: str = ""
    ) -> MLOperand:
        """Random numbers of a normal distribution.

        Source: G. Box, M. Muller, A Note on the Generation of Random Normal Deviates, 1958.

        Args:
            key: uint32, with two elements. Different keys give independent numbers.
            shape: The shape of the result, with fewer than 2^31 elements.
            mean: The mean.
            deviation: The standard deviation.
            label: Name of the operators in errors, plans and debuggers.

        Returns:
            A float32 operand of the given shape.

        Raises:
            MLTypeError: The key has another data type or shape, a dimension is not positive, mean or deviation is not finite,
                or the key belongs to another builder.
            InvalidStateError: The builder has built its graph, or its context is lost.

        Numerics:
            The bits are the same on every device. The numbers differ by the roundings of logarithm and cosine.

        Example:
            >>> numbers = b.ext.random_normal(b.constant(np.uint32([0, 42])), [1000], mean=3.0, deviation=2.0)
            >>> found = context.compute(b.build({"numbers": numbers}), {})["numbers"]
            >>> print(round(float(found.mean())), round(float(found.std())))
            3 2
        """
        if not (math.isfinite(mean) and math.isfinite(deviation)):
            got = f"{mean} and {deviation}"
            raise MLTypeError("mean and deviation must be finite", operator="ext.random_normal", label=label, got=got)
        count = math.prod(shape)
        both = self._uniform(key, [2 * count], label)
        radius, angle = (self._output("slice", [both], {"starts": [start], "sizes": [count]}, label) for start in (0, count))
        # 1 - x is never 0.
        logarithm = self._output("log", [self._output("linear", [radius], {"alpha": -1.0, "beta": 1.0}, label)], None, label)
        length = self._output("sqrt", [self._output("linear", [logarithm], {"alpha": -2.0, "beta": 0.0}, label)], None, label)
        cosine = self._output("cos", [self._output("linear", [angle], {"alpha": 2 * math.pi, "beta": 0.0}, label)], None, label)
        found = self._output("mul", [length, cosine], None, label)
        if (mean, deviation) != (0.0, 1.0):
            found = self._output("linear", [found], {"alpha": deviation, "beta": mean}, label)
        return self._output("reshape", [found], {"new_shape": shape}, label)

    @with_options()
    def dropout(self, input: MLOperand, key: MLOperand, rate: float = 0.5, *, label: str = "") -> MLOperand:
        """Elements that become 0 at random. The others are divided by their share, so that sums keep their mean.

        Args:
            input: float32 or float16.
            key: uint32, with two elements. Each step of a training takes another key.
            rate: The probability that an element becomes 0, from 0 to below 1.
            label: Name of the operators in errors, plans and debuggers.

        Returns:
            An operand with the input's data type and shape.

        Raises:
            MLTypeError: A data type or shape is not allowed, the rate is out of its range, or an operand belongs to another
                builder.
            InvalidStateError: The builder has built its graph, or its context is lost.

        Numerics:
            Every device drops the same elements.

        Example:
            >>> y = b.ext.dropout(b.constant(np.ones(1000, np.float32)), b.constant(np.uint32([0, 42])), 0.2)
            >>> found = context.compute(b.build({"y": y}), {})["y"]
            >>> print(np.unique(found), round(float((found == 0).mean()), 1))
            [0.   1.25] 0.2
        """
        if not 0 <= rate < 1:
            got = f"{rate}"
            raise MLTypeError("rate must be in its range", operator="ext.dropout", label=label, got=got, allowed="[0, 1)")
        number = self._uniform(key, input.shape, label)
        stays = self._output("greaterOrEqual", [number, self._constant(np.array(rate, np.float32))], None, label)
        scaled = self._output("linear", [input], {"alpha": 1 / (1 - rate), "beta": -0.0}, label)
        return self._output("where", [stays, scaled, self._constant(np.zeros((), input.type.numpy))], None, label)

    def _uniform(self, key: MLOperand, shape: Sequence[int], label: str) -> MLOperand:
        """Return multiples of 2^-23 from 0 to below 1."""
        bits = self._output("x.random_bits", [key], {"shape": shape}, label)
        shifted = self._output("x.shift_right", [bits, self._constant(np.array(9, np.uint32))], None, label)
        number = self._output("x.bitwise_or", [shifted, self._constant(np.array(_ONE, np.uint32))], None, label)
        above_one = self._output("x.bitcast", [number], {"data_type": "float32"}, label)
        return self._output("sub", [above_one, self._constant(np.ones((), np.float32))], None, label)

    if TYPE_CHECKING:
        # camelCase names, which `__getattr__` finds at run time.
        randomUniform = random_uniform
        randomNormal = random_normal
