"""The forms in which constants are uploaded: permuted, transformed, or packed into a texture in the order they are read in."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ..core.data_types import Array, tensor_bytes
from .spec import Packing


def packed_array(array: Array, packing: Packing | None) -> Array:
    """Return a constant in the form that is uploaded, C-contiguous: packed, or its own elements for None.

    >>> packed_array(np.array([[1, 2], [3, 4]]), Transposed())
    array([1, 3, 2, 4])
    """
    return np.ascontiguousarray(tensor_bytes(array) if packing is None else packing.pack(array))


@dataclass(frozen=True)
class Transposed(Packing):
    """A constant with its last two dimensions exchanged, row-major, in its own data type.

    Example:
        >>> Transposed().pack(np.array([[1, 2, 3], [4, 5, 6]]))
        array([1, 4, 2, 5, 3, 6])
    """

    def packed_shape(self, shape: Sequence[int]) -> tuple[int, ...]:
        """Return the shape of the transposed elements, 1-D."""
        return (math.prod(shape),)

    def pack(self, array: Any) -> Any:
        """Return the transposed elements, 1-D."""
        return np.swapaxes(array, -1, -2).reshape(-1)


@dataclass(frozen=True)
class Columns(Packing):
    """Columns first..end-1 of a matrix, row-major, in its own data type.

    Attributes:
        first: the first column.
        end: the column past the last.
        rows: the number of rows of the matrix. The constant may have other dimensions.
        transposed: whether the constant holds the matrix transposed.

    Example:
        >>> Columns(1, 3, rows=2).pack(np.array([[1, 2, 3], [4, 5, 6]]))
        array([[2, 3],
               [5, 6]])
    """

    first: int
    end: int
    rows: int
    transposed: bool = False

    def packed_shape(self, shape: Sequence[int]) -> tuple[int, ...]:
        """Return the shape of the columns, [rows, end - first]."""
        return self.rows, self.end - self.first

    def size_bytes(self, shape: Sequence[int], element_bytes: int) -> int:
        """Return the bytes of the columns."""
        return math.prod(self.packed_shape(shape)) * element_bytes

    def pack(self, array: Any) -> Any:
        """Return the columns, [rows, end - first]."""
        matrix = np.reshape(array, (-1, self.rows)).T if self.transposed else np.reshape(array, (self.rows, -1))
        return matrix[:, self.first : self.end]


_WORTH_ROWS = 0.9
"""The share of a texture from which on three rows to a panel pay: the loop over rows takes a little time."""


@dataclass(frozen=True, kw_only=True)
class PanelTexture(Packing):
    """Matrices as a texture of panels of columns, for the subgroup kernel of matrix products.

    A panel is `quads` * `lanes` * 4 columns wide. A step of the sum (one row of the matrix) is `quads` * `lanes` texels of four
    columns each. `wrap_steps` steps fill a row of the texture, and a panel takes as many rows as it needs. The panels of the
    first matrix precede those of the second, and so on. If `quads` ends in a half, each lane has two columns behind those of
    its whole quads. Their texels follow those of four steps, and each texel holds the two columns in two steps.

    Mesa's software driver compiles a kernel anew for textures with a side that is a power of two. The texture therefore has
    padding behind the rows and below the last.

    Attributes:
        lanes: the number of invocations of a subgroup.
        quads: the quads of columns per lane, a multiple of 0.5.
        width: the maximum number of texels per row of a texture.
        transposed: whether the constant holds the matrices transposed, [..., N, K].
        least_wraps: the minimum number of texture rows of a panel, if it has steps for as many.
    """

    lanes: int
    quads: float
    width: int
    transposed: bool = False
    least_wraps: int = 1

    @property
    def texture(self) -> bool:
        """Whether the packed form is a texture: yes."""
        return True

    @property
    def columns(self) -> int:
        """Columns of a panel."""
        return int(self.lanes * self.quads * 4)

    def wrap_steps(self, K: int) -> int:
        """Return the number of steps of a sum over K in a row of the texture: a multiple of 4.

        All rows are about equally full.
        """
        quads, most = -(-K // 4), max(1, (self.width - 1) // self.columns)
        return -(-quads // max(self.least_wraps, -(-quads // most))) * 4

    def wraps(self, K: int) -> int:
        """Return the number of texture rows of a panel."""
        return -(-K // self.wrap_steps(K))

    def height(self, K: int, N: int, matrices: int) -> int:
        """Return the number of texture rows of all matrices."""
        return matrices * -(-N // self.columns) * self.wraps(K)

    def smallest(self, K: int, N: int, matrices: int) -> PanelTexture:
        """Return this packing, or one with three rows to a panel if the padding below the last row would be large."""
        other = replace(self, least_wraps=3)
        if other.height(K, N, matrices) > self.width:
            return self
        texels, least = (math.prod(packing._sides(K, N, matrices)) for packing in (self, other))
        return other if least < _WORTH_ROWS * texels else self

    def packed_shape(self, shape: Sequence[int]) -> tuple[int, ...]:
        """Return the shape of the texels, [height, width, 4]."""
        K, N = shape[:-3:-1] if self.transposed else shape[-2:]
        return (*self._sides(K, N, math.prod(shape[:-2])), 4)

    def _sides(self, K: int, N: int, matrices: int) -> tuple[int, int]:
        """Return height and width of the texture."""
        sides = self.height(K, N, matrices), self.wrap_steps(K) * self.columns // 4
        height, width = (min(_no_power_of_two(side), self.width) for side in sides)
        return height, width

    def pack(self, array: Any) -> Any:
        """Return the texels, `[height, width, 4]`, int8 for an array of int8 and float32 for others. The padding is 0.

        Args:
            array: the constant in float32, float16 or int8, [..., K, N] or, if `transposed`, [..., N, K].
        """
        shape: Sequence[int] = array.shape
        matrices = array.reshape(-1, *shape[-2:])
        if self.transposed:
            matrices = matrices.swapaxes(1, 2)
        count, K, N = matrices.shape
        panels, steps, wraps = -(-N // self.columns), self.wrap_steps(K), self.wraps(K)
        texels = np.zeros(self.packed_shape(shape), np.int8 if array.dtype == np.int8 else np.float32)
        rows = texels[: count * panels * wraps, : steps * self.columns // 4].reshape(count, panels, wraps, -1)
        for panel, wrap in np.ndindex(panels, wraps):
            part = matrices[:, wrap * steps : (wrap + 1) * steps, panel * self.columns : (panel + 1) * self.columns]
            padded = np.zeros((count, steps, self.columns), texels.dtype)
            padded[:, : part.shape[1], : part.shape[2]] = part
            rows[:, panel, wrap] = self._ordered(padded).reshape(count, -1)
        return texels

    def _ordered(self, panel: Any) -> Any:
        """Return the columns of a panel, [matrices, steps, columns], in the order in which texels hold them."""
        whole = int(self.quads) * self.lanes * 4
        if whole == self.columns:
            return panel
        fours = panel.reshape(len(panel), -1, 4, self.columns)
        quads = fours[..., :whole].reshape(*fours.shape[:2], -1)
        # From [pair of steps, step, lane, column] to [pair, lane, step, column].
        halves = fours[..., whole:].reshape(*fours.shape[:2], 2, 2, self.lanes, 2).swapaxes(-2, -3)
        return np.concatenate((quads, halves.reshape(*fours.shape[:2], -1)), -1)


def _no_power_of_two(n: int) -> int:
    """Return the smallest number from n on that is no power of two."""
    while n & (n - 1) == 0:
        n += 1
    return n


@dataclass(frozen=True)
class UnitTexture(Packing):
    """Recurrent weights as a texture, in the order in which the subgroup kernel reads them.

    A panel is `lanes` * 4 hidden units wide. A unit of the state is `gates` * `lanes` texels of a panel's row: for each gate, a
    texel of four hidden units for each lane. `wrap_units` units of the state fill a row of the texture, and a panel takes
    `wraps` rows. The panels of the first direction precede those of the second. The padding is 0.

    Attributes:
        lanes: the number of invocations of a subgroup.
        gates: the number of gates.
        hidden: the number of hidden units.
        width: the maximum number of texels per row of a texture.
    """

    lanes: int
    gates: int
    hidden: int
    width: int

    @property
    def texture(self) -> bool:
        """Whether the packed form is a texture: yes."""
        return True

    @property
    def panels(self) -> int:
        """Panels of a direction."""
        return -(-self.hidden // (self.lanes * 4))

    @property
    def units(self) -> int:
        """Units of all panels of a direction."""
        return self.panels * self.lanes * 4

    @property
    def wrap_units(self) -> int:
        """The number of units of the state in a row of the texture."""
        return min(self.units, self.width // (self.gates * self.lanes * self.lanes * 4) * self.lanes * 4)

    @property
    def wraps(self) -> int:
        """The number of texture rows of a panel."""
        return -(-self.units // self.wrap_units)

    def packed_shape(self, shape: Sequence[int]) -> tuple[int, ...]:
        """Return the shape of the texels, [height, width, 4]."""
        directions = math.prod(shape) // (self.gates * self.hidden * self.hidden)
        return directions * self.panels * self.wraps, self.wrap_units * self.gates * self.lanes, 4

    def pack(self, array: Any) -> Any:
        """Return the texels, `[height, width, 4]` float32.

        Args:
            array: the weights in float32 or float16, [..., gates * hidden, hidden].
        """
        weights = np.reshape(array, (-1, self.gates, self.hidden, self.hidden))
        directions = len(weights)
        rows = self.wraps * self.wrap_units
        padded = np.zeros((directions, self.gates, self.units, rows), np.float32)
        padded[:, :, : self.hidden, : self.hidden] = weights
        panels = padded.reshape(directions, self.gates, self.panels, self.lanes * 4, rows)
        return panels.transpose(0, 2, 4, 1, 3).reshape(self.packed_shape(np.shape(array)))


@dataclass(frozen=True)
class PersistentTexture(Packing):
    """Recurrent weights as a texture, a row of texels for every `lanes` hidden units.

    The texels of a hidden unit are `lanes` texels apart. For each gate, the first texel has the weights of the first four units
    of the state, the next texel those of the next four. The padding is 0.

    Attributes:
        lanes: the number of hidden units side by side: one for each invocation of a subgroup, if the device has subgroups.
        gates: the number of gates.
        hidden: the number of hidden units.
    """

    lanes: int
    gates: int
    hidden: int

    @property
    def texture(self) -> bool:
        """Whether the packed form is a texture: yes."""
        return True

    @property
    def rows(self) -> int:
        """Rows of the texture of a direction."""
        return -(-self.hidden // self.lanes)

    @property
    def width(self) -> int:
        """Texels per row."""
        return self.quads * self.gates * self.lanes

    @property
    def quads(self) -> int:
        """Texels of a unit's gate."""
        return -(-self.hidden // 4)

    def packed_shape(self, shape: Sequence[int]) -> tuple[int, ...]:
        """Return the shape of the texels, [height, width, 4]."""
        return math.prod(shape) // (self.gates * self.hidden * self.hidden) * self.rows, self.width, 4

    def pack(self, array: Any) -> Any:
        """Return the texels, `[height, width, 4]` float32.

        Args:
            array: the weights in float32 or float16, [..., gates * hidden, hidden].
        """
        weights = np.reshape(array, (-1, self.gates, self.hidden, self.hidden))
        padded = np.zeros((len(weights), self.gates, self.rows * self.lanes, self.quads * 4), np.float32)
        padded[:, :, : self.hidden, : self.hidden] = weights
        units = padded.reshape(-1, self.gates, self.rows, self.lanes, self.quads, 4)
        return units.transpose(0, 2, 4, 1, 3, 5).reshape(self.packed_shape(np.shape(array)))


@dataclass(frozen=True)
class Permuted(Packing):
    """A constant with dimensions `dims` in the order `axes`, in its own data type.

    Example:
        >>> Permuted((2, 3), (1, 0)).pack(np.array([1, 2, 3, 4, 5, 6]))
        array([[1, 4],
               [2, 5],
               [3, 6]])
    """

    dims: tuple[int, ...]
    axes: tuple[int, ...]

    def packed_shape(self, shape: Sequence[int]) -> tuple[int, ...]:
        """Return the permuted dimensions."""
        return tuple(self.dims[axis] for axis in self.axes)

    def pack(self, array: Any) -> Any:
        """Return the permuted array."""
        return np.transpose(np.reshape(array, self.dims), self.axes)


@dataclass(frozen=True)
class PhasedFilter(Packing):
    """The filter of a transposed convolution in phases: for each, the taps that are whole strides apart, and zeros behind them.

    Attributes:
        kernel: rows and columns of taps.
        strides: distances of the taps of one phase.
        zero: the element past the last tap, which stands for 0.

    Example:
        >>> PhasedFilter((1, 3), (1, 2)).pack(np.array([1, 2, 3]).reshape(1, 3, 1, 1)).reshape(2, 2)
        array([[1, 3],
               [2, 0]])
    """

    kernel: tuple[int, int]
    strides: tuple[int, int]
    zero: int = 0

    @property
    def taps(self) -> tuple[int, int]:
        """Rows and columns of a phase's taps."""
        rows, columns = (-(-k // s) for k, s in zip(self.kernel, self.strides, strict=True))
        return rows, columns

    def packed_shape(self, shape: Sequence[int]) -> tuple[int, ...]:
        """Return [phases, rows of taps, columns of taps, channels, output channels]."""
        return math.prod(self.strides), *self.taps, *shape[-2:]

    def size_bytes(self, shape: Sequence[int], element_bytes: int) -> int:
        """Return the bytes of the taps of all phases."""
        return math.prod(self.packed_shape(shape)) * element_bytes

    def pack(self, array: Any) -> Any:
        """Return the taps of all phases.

        Args:
            array: the filter, [..., rows of taps, columns of taps, channels, output channels]. Leading dimensions are 1.
        """
        shape, (rows, columns), (down, right) = np.shape(array), self.taps, self.strides
        taps = np.reshape(array, (*self.kernel, *shape[-2:]))
        padded = np.full((rows * down, columns * right, *shape[-2:]), self.zero, taps.dtype)
        padded[: self.kernel[0], : self.kernel[1]] = taps
        phases = padded.reshape(rows, down, columns, right, *shape[-2:]).transpose(1, 3, 0, 2, 4, 5)
        return phases.reshape(self.packed_shape(shape))


@dataclass(frozen=True)
class Chain(Packing):
    """Two packings in sequence: the second packs the result of the first."""

    first: Packing
    second: Packing

    @property
    def texture(self) -> bool:
        """Whether the packed form is a texture: whether the second's is."""
        return self.second.texture

    def packed_shape(self, shape: Sequence[int]) -> tuple[int, ...]:
        """Return the shape of the result of the second packing."""
        return self.second.packed_shape(self.first.packed_shape(shape))

    def size_bytes(self, shape: Sequence[int], element_bytes: int) -> int:
        """Return the size of the result of the second packing in bytes."""
        return self.second.size_bytes(self.first.packed_shape(shape), element_bytes)

    def pack(self, array: Any) -> Any:
        """Return the array after both packings."""
        return self.second.pack(self.first.pack(array))


_WINOGRAD_FILTER = np.array([[1, 0, 0], [0.5, 0.5, 0.5], [0.5, -0.5, 0.5], [0, 0, 1]])
"""G of Winograd F(2, 3): A. Lavin, S. Gray, Fast Algorithms for Convolutional Neural Networks, 2015, section 4.1."""


@dataclass(frozen=True)
class WinogradFilter(Packing):
    """3 x 3 filters as Winograd F(2x2, 3x3) multiplies them: G g G', computed in float64, stored in float32.

    Attributes:
        zero_point: the number that is subtracted from the elements first.
    """

    zero_point: int = 0

    def packed_shape(self, shape: Sequence[int]) -> tuple[int, ...]:
        """Return the shape of the transformed filters: 16 numbers for each 9 taps."""
        return 16, *shape[-2:]

    def size_bytes(self, shape: Sequence[int], element_bytes: int) -> int:
        """Return the bytes of the transformed filters, float32."""
        return math.prod(self.packed_shape(shape)) * 4

    def pack(self, array: Any) -> Any:
        """Return the transformed filters, [16, channels, output channels].

        Args:
            array: the filters, [..., 3, 3, channels, output channels] where the leading dimensions are 1.
        """
        taps = np.reshape(array, (3, 3, *np.shape(array)[-2:])).astype(np.float64) - self.zero_point
        transformed = np.einsum("ay,bx,yxio->abio", _WINOGRAD_FILTER, _WINOGRAD_FILTER, taps)
        return transformed.reshape(self.packed_shape(np.shape(array))).astype(np.float32)
