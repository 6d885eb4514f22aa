"""`TensorType`: data type and shape of a value."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from ..core.data_types import MLOperandDataType, byte_length, numpy_dtype


@dataclass(frozen=True)
class TensorType:
    """Data type and shape of one value. Memory is packed row-major unless the value states otherwise.

    >>> print(TensorType("float32", (2, 4)))
    float32[2, 4]
    """

    data_type: MLOperandDataType
    shape: tuple[int, ...]

    if TYPE_CHECKING:
        # The code that creates types checks their names itself. Constants may have internal packed types too.
        def __init__(self, data_type: str, shape: tuple[int, ...]) -> None: ...

    @property
    def rank(self) -> int:
        """The number of dimensions. 0 for a scalar."""
        return len(self.shape)

    @property
    def num_elements(self) -> int:
        """The number of elements. 1 for a scalar."""
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
