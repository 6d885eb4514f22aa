"""The interface of lowering functions to the node that they lower."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NoReturn, cast

import numpy as np

from webnn_wgpu import MLOperand

from ..common.calls import OperatorCall
from ..common.held import FLOAT32, HELD, Array, DType, Shape
from .tensors import TfjsNode, TfjsTensor

if TYPE_CHECKING:
    from .lowering import TfjsLowering

TYPES: dict[str, DType] = {
    "DT_FLOAT": FLOAT32,
    "DT_HALF": FLOAT32,
    "DT_DOUBLE": FLOAT32,
    "DT_BFLOAT16": FLOAT32,
    "DT_INT32": np.dtype(np.int32),
    "DT_INT64": np.dtype(np.int32),
    "DT_INT16": np.dtype(np.int32),
    "DT_INT8": np.dtype(np.int32),
    "DT_UINT8": np.dtype(np.int32),
    "DT_UINT16": np.dtype(np.int32),
    "DT_BOOL": np.dtype(bool),
    "DT_COMPLEX64": np.dtype(np.complex64),
}
"""TensorFlow's types as TensorFlow.js has them: its tensors are float32, int32, bool or complex64."""

NUMBERS = (
    *("", "DT_FLOAT", "DT_DOUBLE", "DT_INT32", "DT_UINT8", "DT_INT16", "DT_INT8"),
    *("DT_STRING", "DT_COMPLEX64", "DT_INT64", "DT_BOOL"),
)
"""TensorFlow's types by number, as some files have them."""


def text_of(value: Any) -> str:
    """Return a string of an attribute, which files have in base64."""
    if isinstance(value, list):
        return "".join(map(chr, cast("list[int]", value)))
    try:
        return base64.b64decode(str(value), validate=True).decode("utf-8", "replace")
    except ValueError:
        return str(value)


def type_of(value: Any) -> str:
    """Return the name of a type of an attribute."""
    if isinstance(value, int) and 0 <= value < len(NUMBERS):
        return NUMBERS[value]
    return str(value)


class NodeFacts:
    """The attributes of a node.

    Attributes:
        node: the node.
    """

    def __init__(self, node: TfjsNode) -> None:
        self.node = node

    def attribute(self, name: str, kind: str) -> Any:
        """Return a field of an attribute, None if it is absent."""
        entry: Any = self.node.attributes.get(name)
        return entry.get(kind) if isinstance(entry, dict) else None  # pyright: ignore[reportUnknownVariableType, reportUnknownMemberType]

    def integer(self, name: str, default: int = 0) -> int:
        """Return an attribute that is a whole number."""
        value = self.attribute(name, "i")
        return default if value is None else int(value)

    def float(self, name: str, default: float = 0.0) -> float:
        """Return an attribute that is a number."""
        value = self.attribute(name, "f")
        value = self.attribute(name, "i") if value is None else value
        return default if value is None else float(value)

    def flag(self, name: str, default: bool = False) -> bool:
        """Return an attribute that is true or false."""
        value = self.attribute(name, "b")
        return default if value is None else bool(value)

    def text(self, name: str, default: str = "") -> str:
        """Return an attribute that is a string."""
        value = self.attribute(name, "s")
        return default if value is None else text_of(value)

    def integers(self, name: str, default: Sequence[int] = ()) -> list[int]:
        """Return an attribute that is a list of whole numbers."""
        value = self.attribute(name, "list")
        if not isinstance(value, dict):
            return list(default)
        return [int(v) for v in cast("dict[str, list[Any]]", value).get("i") or []]

    def texts(self, name: str) -> list[str]:
        """Return an attribute that is a list of strings."""
        value = self.attribute(name, "list")
        return [text_of(v) for v in cast("dict[str, list[Any]]", value).get("s") or []] if isinstance(value, dict) else []

    def dtype(self, *names: str) -> DType | None:
        """Return the first of some attributes that names a type. None if there is none, or a type that no tensor has."""
        for name in names:
            if (value := self.attribute(name, "type")) is not None:
                return TYPES.get(type_of(value))
        return None

    def shape(self, name: str) -> list[int] | None:
        """Return an attribute that is a shape, with -1 for open sizes, None for an unknown rank."""
        value = self.attribute(name, "shape")
        if not isinstance(value, dict) or cast("dict[str, Any]", value).get("unknownRank"):
            return None
        return [int(d.get("size", -1)) for d in cast("dict[str, list[dict[str, Any]]]", value).get("dim") or []]


class TfjsCall(OperatorCall, NodeFacts):
    """A node, the tensors of its inputs, and the builder that receives its operators.

    Attributes:
        node: the node.
        inputs: the tensors of its inputs.
        lowering: the stage.
    """

    def __init__(self, lowering: TfjsLowering, node: TfjsNode, inputs: Sequence[TfjsTensor]) -> None:
        NodeFacts.__init__(self, node)
        OperatorCall.__init__(self, lowering.builder, node.name)
        self.lowering, self.inputs = lowering, inputs

    # tensors --------------------------------------------------------------------------------------------------------

    def tensor(self, index: int) -> TfjsTensor:
        """Return the tensor of an input. Negative numbers count from the end."""
        if not -len(self.inputs) <= index < len(self.inputs):
            self.fail(f"input {index} is missing")
        return self.inputs[index]

    def shape(self, name: str | int = 0) -> Any:
        """Return the sizes of an input, or an attribute that is a shape."""
        return list(self.tensor(name).shape) if isinstance(name, int) else NodeFacts.shape(self, name)

    def operand(self, index: int) -> MLOperand:
        """Return an input on the device.

        Raises:
            OnHost: the input has no elements. Operands cannot be empty.
        """
        return self.hold(self.tensor(index))

    def hold(self, tensor: TfjsTensor) -> MLOperand:
        """Return the operand of a tensor."""
        return self.lowering.hold(tensor)

    def floats(self, index: int) -> MLOperand:
        """Return an input on the device, as float32."""
        return self.cast(self.operand(index), "float32")

    def stored(self, array: Array) -> MLOperand:
        """Return the constant operand of an array of a held data type."""
        return self.lowering.constant(array)

    def typed(self, operand: MLOperand, dtype: DType) -> TfjsTensor:
        """Return the tensor of an operand, cast to a type."""
        return TfjsTensor(shape=tuple(operand.shape), dtype=dtype, operand=self.cast(operand, HELD[dtype]))

    def known(self, array: Array) -> TfjsTensor:
        """Return the tensor of an array."""
        return TfjsTensor.known(array)

    def filled(self, shape: Shape, value: float, dtype: DType) -> TfjsTensor:
        """Return a tensor of one repeated number."""
        if np.prod(shape, dtype=np.float64) <= SMALL:
            return TfjsTensor.known(np.full(shape, value, dtype))
        scalar = self.constant(np.asarray(value, dtype).astype(HELD[dtype]), HELD[dtype])
        return TfjsTensor(shape=shape, dtype=dtype, operand=self.build.expand(scalar, list(shape)))

    # elements -------------------------------------------------------------------------------------------------------

    def value(self, index: int) -> Array:
        """Return the elements of an input. The graph is then compiled for these elements.

        Raises:
            ValueNeeded: the elements are known only at run time. The lowering continues after their readback.
        """
        self.tensor(index)
        return self.lowering.demand(self.node.inputs[index])

    def ints(self, index: int) -> list[int]:
        """Return the elements of an input, which are whole numbers."""
        array = self.value(index)
        if array.ndim > 1 or not np.isfinite(array.astype(np.float64)).all():
            self.fail(f"input {index} must be a list of whole numbers; got {array.dtype} of shape {list(array.shape)}")
        return [int(v) for v in np.atleast_1d(array)]

    def number(self, index: int) -> Any:
        """Return the one element of an input."""
        array = self.value(index)
        return array.reshape(-1)[0].item() if array.size == 1 else self.fail(f"input {index} must have one element")

    def sizes(self, index: int) -> list[int]:
        """Return the elements of an input, which are the sizes of a tensor."""
        sizes = self.ints(index)
        if len(sizes) > 16 or any(d < 0 or d > 1 << 31 for d in sizes):
            self.fail(f"the shape {sizes}")
        return sizes

    # refusals -------------------------------------------------------------------------------------------------------

    def fail(self, reason: str) -> NoReturn:
        """Raise the error of a node that no backend can run.

        Raises:
            NotSupportedError: always. The message names node, operator and reason.
        """
        raise self.lowering.module.refusal(self.node, reason)


SMALL = 64
"""The maximum number of repeated elements that are stored one by one."""
