"""Extension operators: random numbers.

Generated from the operators' documentation by `python -m tests.generation`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...options import with_options
from .._base import OperatorMethods

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ...operand import MLOperand


class RandomExtensions(OperatorMethods):
    """random_bits."""

    @with_options()
    def random_bits(self, key: MLOperand, shape: Sequence[int], *, label: str = "") -> MLOperand:
        """Random words, which depend on a key and on the place of each element alone.

        Every device gives the same words: those of `jax.random.bits(key, shape, 'uint32')`. They are the exclusive or of both
        words of Threefry-2x32 with 20 rounds, whose counter is the number of the element. Different keys give independent
        words.

        Args:
            key: uint32, with two elements.
            shape: The shape of the result, with fewer than 2^32 elements.
            label: Name of the operator in errors, plans and debuggers.

        Returns:
            A uint32 operand of the given shape.

        Raises:
            MLTypeError: The key has another shape, a dimension is not positive, there are too many elements, or an operand
                belongs to another builder.
            InvalidStateError: The builder has built its graph, or its context is lost.

        Numerics:
            Exact.

        Example:
            >>> bits = b.ext.random_bits(b.constant(np.uint32([0, 42])), [2, 2])
            >>> print(context.compute(b.build({"bits": bits}), {})["bits"])
            [[2098992034 2919706841]
             [2646866425 2409546199]]
        """
        return self._output("x.random_bits", [key], {"shape": shape}, label)

    if TYPE_CHECKING:
        # camelCase names, which `__getattr__` finds at run time.
        randomBits = random_bits
