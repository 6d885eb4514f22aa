"""The base of the methods of extension operators."""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING

from .._base import OperatorMethods

if TYPE_CHECKING:
    from ....core.data_types import Array
    from ...operand import MLOperand


class ExtensionMethods(OperatorMethods):
    """Base of the classes whose methods add constants of their own."""

    @abstractmethod
    def _constant(self, array: Array) -> MLOperand:
        """Return a constant operand of an array's data type and shape."""
