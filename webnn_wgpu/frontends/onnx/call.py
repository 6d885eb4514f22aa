"""The interface of lowering functions to the node that they lower."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, NoReturn, cast

import numpy as np
import onnx_ir

from webnn_wgpu import MLGraphBuilder, MLOperand

from .tensors import OnHost, OnnxTensor, Shape
from .types import HELD, Array, DType, logical

if TYPE_CHECKING:
    from webnn_wgpu.typing import OperandDataType

    from .lowering import StageLowering


class _Labeled:
    """A builder that labels its operators."""

    def __init__(self, builder: Any, label: str) -> None:
        self._builder, self._label = builder, label

    def __getattr__(self, name: str) -> Any:
        member = getattr(self._builder, name)
        if name == "ext":
            return _Labeled(member, self._label)
        return member if name == "constant" else partial(member, label=self._label)


class NodeCall:
    """A node, the tensors of its inputs, and the builder that receives its operators.

    Attributes:
        node: the node.
        inputs: the tensors of its inputs, None for absent ones.
        version: the version of its operator set.
        label: its name, the label of every operator built for it.
        build: the builder, which gives each operator `label`.
    """

    def __init__(self, lowering: StageLowering, node: onnx_ir.Node, inputs: Sequence[OnnxTensor | None], version: int) -> None:
        self.lowering = lowering
        self.node = node
        self.inputs = inputs
        self.version = version
        self.label = node.name or next((o.name for o in node.outputs if o.name), "") or node.op_type
        self.build = cast("MLGraphBuilder", _Labeled(lowering.builder, self.label))

    # facts of the node -------------------------------------------------------------------------------------------

    def __len__(self) -> int:
        return len(self.inputs)

    def has(self, index: int) -> bool:
        """Return whether an input is present."""
        return index < len(self.inputs) and self.inputs[index] is not None

    def wants(self, index: int) -> bool:
        """Return whether an output is requested."""
        return index < len(self.node.outputs) and bool(self.node.outputs[index].name)

    def tensor(self, index: int) -> OnnxTensor:
        """Return the tensor of a required input."""
        tensor = self.inputs[index] if index < len(self.inputs) else None
        return tensor if tensor is not None else self.fail(f"input {index} is missing")

    def attribute(self, name: str, default: Any = None) -> Any:
        """Return an attribute, an int, float, str, list, array or graph, or `default` if it is absent.

        Raises:
            NotSupportedError: the attribute has another kind than `default`. A schema, if there is one, was checked before.
        """
        attribute = self.node.attributes.get(name)
        if attribute is None:
            return default
        if attribute.type == onnx_ir.AttributeType.TENSOR:
            return attribute.value.numpy()
        value = list(attribute.value) if isinstance(attribute.value, tuple) else attribute.value
        wanted = (int, float) if isinstance(default, float) else type(default)
        if default is not None and not isinstance(value, wanted):
            self.fail(f"attribute '{name}' is {value!r}, of another kind than {default!r}")
        return value

    def required(self, name: str) -> int:
        """Return a required positive integer attribute."""
        value = self.attribute(name, 0)
        return value if value > 0 else self.fail(f"attribute '{name}' must be given, and positive; got {value}")

    def integers(self, name: str) -> list[int] | None:
        """Return an attribute that is a list of integers, or None if it is absent."""
        values: Any = self.attribute(name)
        if not isinstance(values, list | None) or not all(isinstance(v, int) for v in values or ()):
            self.fail(f"attribute '{name}' must be a list of integers; got {values!r}")
        return values

    def dtype(self, name: str, default: int = 0) -> DType | None:
        """Return the data type that an attribute names by ONNX's number, or None if it is absent or 0."""
        number = self.attribute(name, default)
        if number not in onnx_ir.DataType.__members__.values():
            self.fail(f"{name} {number} is no element type")
        wanted = onnx_ir.DataType(number)
        if wanted == onnx_ir.DataType.UNDEFINED:
            return None
        return logical(wanted) or self.fail(f"{name} {wanted.name} cannot be held")

    # elements -----------------------------------------------------------------------------------------------------

    def value(self, index: int) -> Array:
        """Return the elements of an input. The graph is then compiled for these elements.

        Raises:
            ValueNeeded: the elements are known only at run time. The lowering continues after their readback.
        """
        self.tensor(index)
        return self.lowering.demand(self.node.inputs[index])

    def ints(self, index: int, attribute: str | None = None) -> list[int] | None:
        """Return integers from input `index` or, in older versions, from an attribute. None if both are absent."""
        if not self.has(index):
            return None if attribute is None else self.integers(attribute)
        array = self.value(index)
        if array.ndim > 1 or array.dtype.kind not in "iu":
            self.fail(f"input {index} must be a list of integers; got {array.dtype} of shape {array.shape}")
        return [int(v) for v in np.atleast_1d(array)]

    def floats(self, index: int) -> list[float]:
        """Return the elements of input `index`, a list of finite numbers."""
        array = self.value(index)
        if array.ndim > 1 or not np.isfinite(array.astype(np.float64)).all():
            self.fail(f"input {index} must be a list of finite numbers; got shape {array.shape}")
        return [float(v) for v in np.atleast_1d(array)]

    def number(self, index: int, default: float | None = None) -> Any:
        """Return an input of one element as a Python number."""
        if not self.has(index):
            return default
        array = self.value(index)
        return array.reshape(-1)[0].item() if array.size == 1 else self.fail(f"input {index} must have one element")

    def integer(self, index: int, default: int | None = None) -> int:
        """Return an input of one integer. Without a default, it is required."""
        value = self.number(index, default)
        return value if isinstance(value, int) else self.fail(f"input {index} must be one integer; got {value!r}")

    # operands -----------------------------------------------------------------------------------------------------

    def operand(self, index: int) -> MLOperand:
        """Return an input on the device.

        Raises:
            OnHost: the input has no elements. Operands cannot be empty.
        """
        return self.hold(self.tensor(index))

    def optional(self, index: int) -> MLOperand | None:
        """Return an input on the device, or None if it is absent."""
        return self.operand(index) if self.has(index) else None

    def hold(self, tensor: OnnxTensor) -> MLOperand:
        """Return the operand of a tensor, or a new constant of its elements."""
        return self.lowering.hold(tensor)

    def constant(self, value: Any, data_type: str) -> MLOperand:
        """Return an array, a list or a number as a constant of a WebNN data type."""
        array = np.asarray(value)
        return self.lowering.constant(array.astype(data_type))

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

    def filled(self, shape: Shape, value: float, dtype: DType) -> MLOperand | OnnxTensor:
        """Return a tensor of one repeated number, or an empty array if it has no elements."""
        if 0 in shape:
            return OnnxTensor.known(np.zeros(shape, dtype))
        scalar = self.constant(value, HELD[dtype])
        return self.build.expand(scalar, list(shape)) if shape else scalar

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

    # caches -------------------------------------------------------------------------------------------------------

    def position(self, index: int) -> MLOperand | None:
        """Return the number of filled rows, int32 [1], of an input that is a cache on the device. None for other inputs."""
        in_place = self.lowering.in_place
        if in_place is None or not self.has(index) or self.node.inputs[index] not in in_place.pasts:
            return None
        return self.hold(self.lowering.tensor(in_place.position))

    def key_count(self) -> MLOperand | None:
        """Return the number of keys, int32 [1], if it can be less than the capacity of the node's caches. Otherwise None."""
        in_place = self.lowering.in_place
        if in_place is None or self.node not in in_place.bounded:
            return None
        return self.hold(self.lowering.tensor(in_place.filled))

    def joined(self, index: int, rows: MLOperand, axis: int) -> MLOperand:
        """Return an input with additional rows behind its own, in place if it is a cache on the device."""
        position = self.position(index)
        if position is None:
            return self.build.concat([self.operand(index), rows], axis)
        return self.build.ext.cache_update(self.operand(index), rows, position, axis=axis)

    # refusals -----------------------------------------------------------------------------------------------------

    def fail(self, reason: str) -> NoReturn:
        """Raise the error of a node that no backend can run.

        Raises:
            NotSupportedError: always. The message names node, operator, operator set and reason.
        """
        raise self.lowering.refusal(self.node, reason)

    def on_host(self, reason: str) -> NoReturn:
        """Request the evaluation of a node by the host.

        Raises:
            OnHost: always.
        """
        raise OnHost(reason)
