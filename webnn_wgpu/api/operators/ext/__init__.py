"""The extension operators, `MLGraphBuilder.ext`: one class per kind of operator, and `Extensions`, which has them all."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from ...options import camel_attribute
from .attention import AttentionExtensions
from .bitwise import BitwiseExtensions
from .caches import CacheExtensions
from .composed import ComposedExtensions
from .hyperbolic import HyperbolicExtensions
from .normalization import NormalizationExtensions
from .quantized import QuantizedExtensions
from .random import RandomExtensions
from .random_numbers import RandomNumbers
from .remainder import RemainderExtensions
from .rounding import RoundingExtensions
from .sampling import SamplingExtensions
from .scatter import ScatterExtensions
from .sorting import SortingExtensions

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ....core.data_types import Array
    from ....ops import Signature
    from ...builder import MLGraphBuilder
    from ...operand import MLOperand
    from .._base import OperatorMethods


class Extensions(
    AttentionExtensions,
    BitwiseExtensions,
    CacheExtensions,
    ComposedExtensions,
    HyperbolicExtensions,
    NormalizationExtensions,
    QuantizedExtensions,
    RandomExtensions,
    RandomNumbers,
    RemainderExtensions,
    RoundingExtensions,
    SamplingExtensions,
    ScatterExtensions,
    SortingExtensions,
):
    """Operators beyond the specification. The builder checks and fuses them like WebNN's operators.

    The methods return operands of the same builder. Each method also has its camelCase name.

    Args:
        builder: The builder that the operators are added to.

    Example:
        >>> bits = b.cast(x, "int32")
        >>> b.ext.bitwise_and(bits, b.constant("int32", 255))
        MLOperand(int32[2, 3])
    """

    def __init__(self, builder: OperatorMethods) -> None:
        self._builder = builder

    def _require_own(self, op: Signature, operands: Sequence[MLOperand | None], label: str) -> None:
        self._builder._require_own(op, operands, label)

    def _operator(
        self, name: str, operands: Sequence[MLOperand | None], attrs: Mapping[str, Any], label: str
    ) -> list[MLOperand]:
        return self._builder._operator(name, operands, attrs, label)

    def _constant(self, array: Array) -> MLOperand:
        return cast("MLGraphBuilder", self._builder).constant(array)

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            return camel_attribute(self, name)
