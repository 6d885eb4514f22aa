"""The interface of lowering functions to the node that they lower."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np
import onnx_ir

from webnn_wgpu import MLOperand

from ..common.calls import OperatorCall
from ..common.held import Shape
from .tensors import OnnxTensor
from .types import HELD, Array, DType, logical

if TYPE_CHECKING:
    from .lowering import OnnxLowering


class NodeCall(OperatorCall):
    """A node, the tensors of its inputs, and the builder that receives its operators.

    Attributes:
        node: the node.
        inputs: the tensors of its inputs, None for absent ones.
        version: the version of its operator set.
    """

    def __init__(self, lowering: OnnxLowering, node: onnx_ir.Node, inputs: Sequence[OnnxTensor | None], version: int) -> None:
        self.lowering = lowering
        self.node = node
        self.inputs = inputs
        self.version = version
        super().__init__(lowering.builder, node.name or next((o.name for o in node.outputs if o.name), "") or node.op_type)

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

    def stored(self, array: Array) -> MLOperand:
        """Return the constant operand of an array of a held data type."""
        return self.lowering.constant(array)

    def filled(self, shape: Shape, value: float, dtype: DType) -> MLOperand | OnnxTensor:
        """Return a tensor of one repeated number, or an empty array if it has no elements."""
        if 0 in shape:
            return OnnxTensor.known(np.zeros(shape, dtype))
        scalar = self.constant(value, HELD[dtype])
        return self.build.expand(scalar, list(shape)) if shape else scalar

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
