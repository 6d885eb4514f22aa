"""Layer normalization of the gates of integer LSTMs, as TFLite's kernels compute it: in integers of 32 and 64 bits."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from webnn_wgpu import MLOperand

from ...common.held import Array
from ..call import TfliteCall
from ._fixed_point import divided, high_products, limited, reciprocal_root, rescaled

FRACTION = 10
"""The fraction bits of means and of normalized numbers."""
RESULT = 12
"""The fraction bits of the arguments of gates."""
RESOLUTION = np.float32(10000)
"""The scale of the coefficients times this is the variance of numbers that are equal but for roundings."""


@dataclass(frozen=True, kw_only=True)
class Normalization:
    """The coefficients of a gate's layer normalization.

    Attributes:
        coefficients: the factors, int16 numbers [units].
        scale: the scale of the factors.
        bias: the addends, int32 numbers [units] in steps of the scale and `FRACTION` further bits.
    """

    coefficients: Array
    scale: np.float32
    bias: Array

    @property
    def least_variance(self) -> int:
        """The variance that stands in for one below 1."""
        return max(1, int(RESOLUTION * self.scale))


def normalized(call: TfliteCall, sums: MLOperand, gates: Sequence[Normalization]) -> MLOperand:
    """Return the arguments of gates for their sums, both [batch, columns] with the gates side by side.

    Columns past the last unit of a gate are 0, in the sums and in the results.

    Args:
        call: the node.
        sums: int32 numbers of 16 bits.
        gates: the gates.
    """
    b, units = call.build, len(gates[0].bias)
    batch, width = int(sums.shape[0]), int(sums.shape[1]) // len(gates)
    wide = b.cast(call.reshape(sums, [batch, len(gates), width]), "int64")

    def total(x: MLOperand) -> MLOperand:
        return b.reduce_sum(x, axes=[2], keep_dimensions=True)

    def side_by_side(arrays: Sequence[Array]) -> MLOperand:
        return call.constant(np.stack([np.pad(a, (0, width - units)) for a in arrays]), "int32")

    one = call.constant(1 << FRACTION, "int64")
    mean = b.div(b.mul(total(wide), one), call.constant(units, "int64"))
    squares = b.mul(total(b.mul(wide, wide)), call.constant((1 << 2 * FRACTION) // units, "int64"))
    variance = b.ext.shift_right(b.sub(squares, b.mul(mean, mean)), call.constant(2 * FRACTION, "int64"))
    variance = b.cast(variance, "int32")
    least = call.constant(np.array([[g.least_variance] for g in gates]), "int32")
    variance = b.where(b.lesser(variance, call.constant(1, "int32")), least, variance)
    multipliers, powers = reciprocal_root(call, variance)
    distances = b.sub(b.mul(wide, one), mean)
    y = divided(call, b.cast(high_products(call, distances, multipliers), "int32"), powers)
    y = b.add(b.mul(y, side_by_side([g.coefficients for g in gates])), side_by_side([g.bias for g in gates]))
    y = call.reshape(divided(call, y, FRACTION), [batch, len(gates) * width])
    scales = np.repeat([g.scale for g in gates], width) * np.float32(1 << RESULT)
    return limited(call, rescaled(call, y, scales))
