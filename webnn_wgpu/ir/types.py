"""`TensorType`: data type and shape of a value."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from ..core.data_types import MLOperandDataType, byte_length, numpy_dtype


@dataclass(frozen=True)
class TensorType:
    """Data type and shape of one value; memory is packed row-major unless the value says otherwise.

    >>> print(TensorType("float32", (2, 4)))
    float32[2, 4]
    """

    data_type: MLOperandDataType
    shape: tuple[int, ...]

    if TYPE_CHECKING:
        # What makes types checks their names itself, and gives constants the packed types too, which no program gets to see.
        def __init__(self, data_type: str, shape: tuple[int, ...]) -> None: ...

    @property
    def rank(self) -> int:
        """Number of dimensions; 0 for a scalar."""
        return len(self.shape)

    @property
    def num_elements(self) -> int:
        """Number of elements; 1 for a scalar."""
        return math.prod(self.shape)

    @property
    def size_bytes(self) -> int:
        """Bytes of the packed elements."""
        return byte_length(self.data_type, self.num_elements)

    @property
    def numpy(self) -> np.dtype[np.generic]:
        """The numpy dtype of the elements."""
        return numpy_dtype(self.data_type)

    def with_data_type(self, data_type: str) -> TensorType:
        """Return this type with another data type."""
        return TensorType(data_type, self.shape)

    def __str__(self) -> str:
        return f"{self.data_type}{list(self.shape)}"
