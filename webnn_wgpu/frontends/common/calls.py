"""`OperatorCall`: the operations of lowering functions that do not depend on a model's format."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, NoReturn, cast

import numpy as np

from webnn_wgpu import MLGraphBuilder, MLOperand

if TYPE_CHECKING:
    from webnn_wgpu.typing import OperandDataType

    from .held import Array


class OnHost(Exception):
    """An operator cannot run on the device, so the host evaluates it. `str()` is the reason."""


class _Labeled:
    """A builder that labels its operators."""

    def __init__(self, builder: Any, label: str) -> None:
        self._builder, self._label = builder, label

    def __getattr__(self, name: str) -> Any:
        member = getattr(self._builder, name)
        if name == "ext":
            return _Labeled(member, self._label)
        return member if name == "constant" else partial(member, label=self._label)


class OperatorCall(ABC):
    """A node of a model, and the builder that receives its operators.

    Attributes:
        label: the node's name, the label of every operator built for it.
        build: the builder, which gives each operator `label`.
    """

    def __init__(self, builder: MLGraphBuilder, label: str) -> None:
        self.label = label
        self.build = cast("MLGraphBuilder", _Labeled(builder, label))

    # operands -----------------------------------------------------------------------------------------------------

    @abstractmethod
    def stored(self, array: Array) -> MLOperand:
        """Return the constant operand of an array of a held data type."""

    def constant(self, value: Any, data_type: str) -> MLOperand:
        """Return an array, a list or a number as a constant of a WebNN data type."""
        return self.stored(np.asarray(value).astype(data_type))

    def like(self, value: float, operand: MLOperand) -> MLOperand:
        """Return a number as a scalar of an operand's data type."""
        return self.constant(value, operand.data_type)

    def cast(self, operand: MLOperand, data_type: OperandDataType) -> MLOperand:
        """Return an operand cast to a WebNN data type, or the operand itself if it has this type."""
        return operand if operand.data_type == data_type else self.build.cast(operand, data_type)

    def reshape(self, operand: MLOperand, shape: Sequence[int]) -> MLOperand:
        """Return an operand in a shape, or the operand itself if it has this shape."""
        return operand if tuple(operand.shape) == tuple(shape) else self.build.reshape(operand, list(shape))

    def transpose(self, operand: MLOperand, permutation: Sequence[int]) -> MLOperand:
        """Return an operand with its dimensions permuted, or the operand itself if the order stays the same."""
        if list(permutation) == list(range(len(permutation))):
            return operand
        return self.build.transpose(operand, permutation=list(permutation))

    def axis(self, axis: int, rank: int) -> int:
        """Return an axis counted from the front."""
        if not -rank <= axis < max(rank, 1):
            self.fail(f"axis {axis} is out of range of rank {rank}")
        return axis + rank if axis < 0 else axis

    def axes(self, axes: Sequence[int], rank: int) -> list[int]:
        """Return axes counted from the front."""
        return [self.axis(a, rank) for a in axes]

    def fold(self, function: Callable[[MLOperand, MLOperand], MLOperand], operands: Sequence[MLOperand]) -> MLOperand:
        """Combine any number of operands from left to right."""
        result = operands[0]
        for operand in operands[1:]:
            result = function(result, operand)
        return result

    # refusals -----------------------------------------------------------------------------------------------------

    @abstractmethod
    def fail(self, reason: str) -> NoReturn:
        """Raise the error of a node that no backend can run.

        Raises:
            NotSupportedError: always. The message names the node, its operator and the reason.
        """
        raise NotImplementedError

    def on_host(self, reason: str) -> NoReturn:
        """Request the evaluation of a node by the host.

        Raises:
            OnHost: always.
        """
        raise OnHost(reason)
