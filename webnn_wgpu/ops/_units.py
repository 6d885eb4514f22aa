"""The unit in which a kernel copies runs of elements: 32-bit words if all runs hold whole words, otherwise elements."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ..core.data_types import DATA_TYPES
from ..kernels.element import QUAD, bits_of

if TYPE_CHECKING:
    from collections.abc import Sequence

WORD_BYTES = 4


@dataclass(frozen=True)
class Units:
    """The units in which a kernel copies runs of elements.

    Attributes:
        element: the name of the element kind that the kernel copies.
        lengths: the lengths of the runs, in quads of `element` if `quad` is true, and in elements otherwise.
        quad: whether every run consists of whole, aligned quads of words.
    """

    element: str
    lengths: tuple[int, ...]
    quad: bool


def units_of(data_type: str, lengths: Sequence[int]) -> Units:
    """Return the widest unit that runs of `lengths` elements of a data type are whole multiples of.

    >>> units_of("float16", (8, 16))
    Units(element='bits32', lengths=(1, 2), quad=True)
    >>> units_of("int64", (3,)), units_of("uint8", (5, 4))
    (Units(element='bits32', lengths=(6,), quad=False), Units(element='bits8', lengths=(5, 4), quad=False))
    """
    sizes = [n * DATA_TYPES[data_type].size_bytes for n in lengths]
    for quad, unit in ((True, QUAD * WORD_BYTES), (False, WORD_BYTES)):
        if all(n % unit == 0 for n in sizes):
            return Units("bits32", tuple(n // unit for n in sizes), quad)
    return Units(bits_of(data_type), tuple(lengths), False)
