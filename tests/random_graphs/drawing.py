"""`Drawing`: a graph while it is drawn at random, with the values of all its tensors, and ways to find operands in it."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from tests.support import Sketch, random_array
from webnn_wgpu.core.data_types import DATA_TYPES, FLOATS, MAX_RANK
from webnn_wgpu.ops import OPS

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tests.random_graphs.source import Source
    from webnn_wgpu.ir.graph import Array
    from webnn_wgpu.ir.types import TensorType

SIZES = (1, 2, 3, 4, 5, 8)
"""Sizes of dimensions: 1 and whole quads are frequent."""

LONG = (7, 16, 33, 64, 130)
"""Sizes of a dimension that is longer than the others."""

SPECIALS = (0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, np.nan, 0.5, 65504.0, 1e-30, 3e38)
INDEX_TYPES = ("int32", "int64", "uint32")

LARGEST = 4096
"""Most elements of a tensor that an operator reads."""

TAME = 64.0
"""Magnitude up to which numbers are taken by operators whose sums and products would otherwise overflow."""

Content = Literal["any", "tame", "positive"]


class Drawing:
    """A graph while it is drawn.

    Attributes:
        source: of all choices.
        sketch: the graph so far.
        arrays: value -> what the reference computes for it.
        data_types: types of inputs and constants; the first is the graph's main one.
    """

    def __init__(self, source: Source, data_types: Sequence[str]) -> None:
        self.source, self.data_types = source, data_types
        self.sketch = Sketch()
        self.arrays: dict[int, Array] = {}
        self._known: set[int] = set()
        """Values that depend on constants alone: operators that read nothing else are folded and run on no device."""
        self._wild: dict[int, bool] = {}

    def type(self, value: int) -> TensorType:
        """Return the type of a value."""
        return self.sketch.type(value)

    def shape(self, value: int) -> tuple[int, ...]:
        """Return the shape of a value."""
        return self.type(value).shape

    # Making values ----------------------------------------------------------------------------------------------------

    def apply(self, name: str, *operands: int | None, **attrs: Any) -> tuple[int, ...]:
        """Add an operator, compute it, and return its results."""
        label = f"n{len(self.sketch.nodes)}" if self.source.chance(4) else ""
        outputs = self.sketch.apply_all(name, operands, label, **attrs)
        reference = OPS[name].reference
        assert reference is not None
        given = [None if i is None else self.arrays[i] for i in self.sketch.nodes[-1].inputs]
        types = tuple(self.type(o) for o in outputs)
        self.arrays.update(zip(outputs, reference(given, self.sketch.nodes[-1].attrs, types), strict=True))
        if all(value in self._known for value in operands if value is not None):
            self._known.update(outputs)
        return outputs

    def given(self, array: Array, *, constant: bool | None = None) -> int:
        """Add an array as an input or a constant; by chance where it is not said."""
        if constant is None:
            constant = self.source.chance(2)
        value = self.sketch.constant(array) if constant else self.sketch.input(array)
        self.arrays[value] = array
        if constant:
            self._known.add(value)
        return value

    def new(self, data_type: str, shape: Sequence[int], content: Content = "any", *, constant: bool | None = None) -> int:
        """Add an input or constant of random elements."""
        return self.given(self._elements(data_type, tuple(shape), content), constant=constant)

    def _elements(self, data_type: str, shape: tuple[int, ...], content: Content) -> Array:
        rng = self.source.generator()
        dtype = DATA_TYPES[data_type].numpy
        if data_type not in FLOATS:
            # Small numbers keep products, powers and indices interesting; the whole range tests that all bits count.
            if content != "any" or self.source.chance(2):
                return rng.integers(0 if DATA_TYPES[data_type].kind == "uint" else -9, 10, shape).astype(dtype)
            return random_array(rng, data_type, shape)
        if content == "positive":
            return rng.uniform(0.5, 2.0, shape).astype(dtype)
        array = random_array(rng, data_type, shape, float(rng.choice((0.5, 1, 1, 4))))
        if content == "any" and self.source.chance(8):
            spots = rng.integers(0, array.size, 1 + array.size // 3)
            with np.errstate(over="ignore"):
                array.reshape(-1)[spots] = rng.choice(SPECIALS, spots.size).astype(dtype)
        return array

    def random_shape(self, min_rank: int = 0, max_rank: int = 4) -> tuple[int, ...]:
        """Return a shape of few elements."""
        rank = self.source.integer(min_rank, max(min_rank, min(4, max_rank)))
        shape = tuple(self.source.choice(SIZES) for _ in range(rank))
        if rank and self.source.chance(6):
            at = self.source.integer(0, rank - 1)
            shape = tuple(self.source.choice(LONG) if d == at else min(n, 4) for d, n in enumerate(shape))
        return (*(1 for _ in shape[:-3]), *shape[-3:]) if math.prod(shape) > LARGEST // 8 else shape

    # Finding operands -------------------------------------------------------------------------------------------------

    def tame(self, value: int) -> bool:
        """Return whether all elements are finite and of ordinary size; integers always are."""
        if value not in self._wild:
            array = self.arrays[value]
            with np.errstate(invalid="ignore"):
                self._wild[value] = array.dtype.kind == "f" and not np.all(np.abs(array) <= TAME)
        return not self._wild[value]

    def operand(
        self,
        data_types: Sequence[str],
        min_rank: int = 0,
        max_rank: int = MAX_RANK,
        *,
        tame: bool = False,
        elements: int = 1,
        most: int = LARGEST,
        fits: Callable[[tuple[int, ...]], bool] = lambda shape: True,
    ) -> int:
        """Find or make a value for an operator to work on, often one of the last, so that chains arise.

        Args:
            data_types: what it may be of.
            min_rank: of its shape.
            max_rank: of its shape.
            tame: whether all elements must be of ordinary size.
            elements: fewest elements it should have.
            most: most elements it may have.
            fits: what else the shape must be.
        """
        usable = [
            i
            for i in self.arrays
            if i not in self._known and elements <= self.type(i).num_elements <= most and (not tame or self.tame(i))
        ]
        of_type = [i for i in usable if self.type(i).data_type in data_types]
        if not of_type and usable and not self.source.chance(3):
            value = self._cast(self._recent(usable), data_types)
            of_type = [value] if not tame or self.tame(value) else []
        whole = [i for i in of_type if min_rank <= self.type(i).rank <= max_rank and fits(self.shape(i))]
        if whole and not self.source.chance(8):
            return self._recent(whole)
        shapes = {i: s for i in of_type[-4:] for s in [self._another_shape(i, min_rank, max_rank)] if s and fits(s)}
        if shapes:
            value = self._recent(list(shapes))
            return self.apply("reshape", value, new_shape=shapes[value])[0]
        data_type = next((t for t in self.data_types if t in data_types), None) or self.source.choice(data_types)
        shape = self.random_shape(min_rank, max_rank)
        for _ in range(8):
            if fits(shape) and math.prod(shape) >= elements:
                break
            shape = self.random_shape(min_rank, max_rank)
        else:
            shape = tuple(4 for _ in range(max(min_rank, 1)))
        return self.new(data_type, shape, "tame" if tame else "any", constant=False)

    def like(self, data_type: str, shape: Sequence[int], content: Content = "any", *, computed: bool = True) -> int:
        """Find or make a further operand of exactly this type and shape."""
        count = math.prod(shape)
        if computed and content != "positive" and self.source.chance(2):
            found = [
                i
                for i in self.arrays
                if self.type(i).data_type == data_type
                and self.type(i).num_elements == count
                and (content == "any" or self.tame(i))
            ]
            if found:
                value = self._recent(found)
                return value if self.shape(value) == tuple(shape) else self.apply("reshape", value, new_shape=shape)[0]
        return self.new(data_type, shape, content)

    def broadcast(self, data_types: Sequence[str], others: Sequence[int]) -> int:
        """Find or make an operand that broadcasts with others without making the result large."""
        shapes = [self.shape(i) for i in others]
        target = np.broadcast_shapes(*shapes)
        found = [
            i
            for i in self.arrays
            if self.type(i).data_type in data_types and _broadcasts([*shapes, self.shape(i)]) and i not in others
        ]
        if found and not self.source.chance(3):
            return self._recent(found)
        if self.type(others[-1]).data_type in data_types and self.source.chance(8):
            return others[-1]
        shape = target
        if self.source.chance(2):
            shape = tuple(1 if one else d for d, one in zip(target, self.source.flags(len(target)), strict=True))
            shape = shape[self.source.integer(0, len(shape)) if self.source.chance(2) else 0 :]
        return self.new(self.source.choice(data_types), shape)

    def index(self, shape: Sequence[int], size: int) -> int:
        """Find or make indices into a dimension of `size`: some negative, some out of range."""
        data_type = self.source.choice(("int32", "int64", "uint32"))
        found = [
            i for i in self.arrays if self.shape(i) == tuple(shape) and self.type(i).data_type in ("int32", "int64", "uint32")
        ]
        if found and self.source.chance(2):
            return self._recent(found)
        low = 0 if data_type == "uint32" else -size - 2
        array = self.source.generator().integers(low, size + 3, tuple(shape)).astype(data_type)
        if self.source.chance(8):
            array.reshape(-1)[0] = np.iinfo(data_type).max
        return self.given(array)

    def _recent(self, values: Sequence[int]) -> int:
        return values[-1] if self.source.chance(2) else self.source.choice(values[-6:])

    def _cast(self, value: int, data_types: Sequence[str]) -> int:
        wanted = next((t for t in self.data_types if t in data_types), None) or self.source.choice(data_types)
        return self.apply("cast", value, data_type=wanted)[0]

    def _another_shape(self, value: int, min_rank: int, max_rank: int) -> tuple[int, ...] | None:
        """Return a shape of a rank between the bounds, of the value's elements; None where none is found."""
        left = self.type(value).num_elements
        rank = self.source.integer(min_rank, max(min_rank, min(4, max_rank)))
        dims: list[int] = []
        for _ in range(rank - 1):
            dims.append(self.source.divisor(left) if left <= LARGEST else 1)
            left //= dims[-1]
        if not rank and left > 1:
            return None
        return tuple(self.source.permutation([*dims, left])) if rank else ()


def _broadcasts(shapes: Sequence[tuple[int, ...]]) -> bool:
    try:
        shape = np.broadcast_shapes(*shapes)
    except ValueError:
        return False
    return math.prod(shape) <= LARGEST
