"""The operator methods of `MLGraphBuilder`, one class per kind of operator, and `Operators`, which has them all."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ...core.names import snake_case
from ..options import camel_attribute
from .activations import SmoothActivations
from .argminmax import ArgMinMaxOperators
from .binary import BinaryOperators
from .composed import ComposedOperators
from .convolution import ConvolutionOperators
from .ext import Extensions
from .indexing import IndexingOperators
from .logic import LogicOperators
from .matrix import MatrixOperators
from .movement import MovementOperators
from .normalization import NormalizationOperators
from .piecewise import PiecewiseActivations
from .pooling import PoolingOperators
from .quantization import QuantizationOperators
from .recurrent import RecurrentOperators
from .reductions import ReductionOperators
from .selection import SelectionOperators
from .unary import UnaryOperators
from .views import ViewOperators


class Operators(
    ArgMinMaxOperators,
    BinaryOperators,
    ComposedOperators,
    ConvolutionOperators,
    IndexingOperators,
    LogicOperators,
    MatrixOperators,
    MovementOperators,
    NormalizationOperators,
    PiecewiseActivations,
    PoolingOperators,
    QuantizationOperators,
    RecurrentOperators,
    ReductionOperators,
    SelectionOperators,
    SmoothActivations,
    UnaryOperators,
    ViewOperators,
):
    """Every operator method. Methods also go by the camelCase names of the specification."""

    @property
    def ext(self) -> Extensions:
        """The extension operators, as methods. Importers and applications need them beyond the specification.

        Example:
            >>> b.ext.bitwise_not(b.cast(x, "int32"))
            MLOperand(int32[2, 3])
        """
        return Extensions(self)

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            found = snake_case(name)
            if not name.startswith("_") and found in dir(Extensions) and not hasattr(type(self), found):
                rule = f"{type(self).__name__!r} object has no attribute {name!r}"
                raise AttributeError(f"{rule}. Did you mean ext.{found}?")
            return camel_attribute(self, name)
