"""Extension operators on state that stays on the device from run to run.

Generated from the operators' documentation by `python -m tests.generation`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...options import with_options
from .._base import OperatorMethods

if TYPE_CHECKING:
    from ...operand import MLOperand


class CacheExtensions(OperatorMethods):
    """cache_update."""

    @with_options()
    def cache_update(
        self, cache: MLOperand, new: MLOperand, position: MLOperand, *, axis: int = 2, label: str = ""
    ) -> MLOperand:
        """A cache with new rows from a position on, which is known at run time. Its other rows stay as they are.

        If the cache is an input and `build(outputs, aliases={...})` makes the result its alias, nothing is copied: the rows are
        written into the tensor that `dispatch` gets for both. Together with the `length` of `attention`, decoding any number of
        tokens compiles once.

        Args:
            cache: Any data type, with rank 1 to 8. The elements behind an index of `axis` must fill whole words of 4 bytes.
            new: The data type and shape of `cache`, with no more indices along `axis`.
            position: int32 or uint32, with the shape [], [1] or [batch] for a position of each batch (dimension 0). Rows
                outside the cache are left out.
            axis: The dimension along which the cache fills.
            label: Name of the operator in errors, plans and debuggers.

        Returns:
            An operand with the cache's data type and shape.

        Raises:
            MLTypeError: A data type, rank or shape is not allowed, or an operand belongs to another builder.
            InvalidStateError: The builder has built its graph, or its context is lost.

        Example:
            >>> cache = b.input("cache", {"dataType": "float32", "shape": [1, 2, 8, 4]})
            >>> new = b.constant(np.ones((1, 2, 1, 4), np.float32))
            >>> position = b.input("position", {"dataType": "int32", "shape": [1]})
            >>> graph = b.build({"updated": b.ext.cache_update(cache, new, position)}, aliases={"updated": "cache"})
            >>> tensor = context.create_tensor([1, 2, 8, 4], "float32", readable=True)
            >>> at = context.create_tensor([1], "int32", writable=True)
            >>> context.write_tensor(at, [3])
            >>> context.dispatch(graph, {"cache": tensor, "position": at}, {"updated": tensor})
            >>> print(context.read_tensor(tensor)[0, 0, :, 0])
            [0. 0. 0. 1. 0. 0. 0. 0.]
        """
        return self._output("x.cache_update", [cache, new, position], {"axis": axis}, label)

    if TYPE_CHECKING:
        # camelCase names, which `__getattr__` finds at run time.
        cacheUpdate = cache_update
