"""`OnnxCall`: one operator of a graph while it is written as ONNX nodes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np
import onnx
from numpy.typing import NDArray

from webnn_wgpu.core.errors import NotSupportedError
from webnn_wgpu.formats.names import UniqueNames

Array: TypeAlias = NDArray[Any]
Shape: TypeAlias = tuple[int, ...]

BITCAST_OPSET = 26
"""The version of the operator set that added BitCast."""

ELEMENT_TYPES: Mapping[str, int] = {
    "float32": onnx.TensorProto.FLOAT,
    "float16": onnx.TensorProto.FLOAT16,
    "float64": onnx.TensorProto.DOUBLE,
    "int64": onnx.TensorProto.INT64,
    "uint64": onnx.TensorProto.UINT64,
    "int32": onnx.TensorProto.INT32,
    "uint32": onnx.TensorProto.UINT32,
    "int8": onnx.TensorProto.INT8,
    "uint8": onnx.TensorProto.UINT8,
    "int4": onnx.TensorProto.INT4,
    "uint4": onnx.TensorProto.UINT4,
    "bool": onnx.TensorProto.BOOL,
    "bfloat16": onnx.TensorProto.BFLOAT16,
    "float8_e4m3fn": onnx.TensorProto.FLOAT8E4M3FN,
    "float8_e4m3fnuz": onnx.TensorProto.FLOAT8E4M3FNUZ,
    "float8_e5m2": onnx.TensorProto.FLOAT8E5M2,
    "float8_e5m2fnuz": onnx.TensorProto.FLOAT8E5M2FNUZ,
}


@dataclass(frozen=True)
class OnnxValue:
    """A value of the model.

    Attributes:
        name: its name.
        data_type: its element type, by numpy's name.
        shape: its shape.
        array: its elements if it is a constant.
    """

    name: str
    data_type: str
    shape: Shape
    array: Array | None = None

    @property
    def rank(self) -> int:
        """The number of dimensions."""
        return len(self.shape)

    @property
    def is_float(self) -> bool:
        """Whether its elements are floats."""
        return self.data_type.startswith("float")


@dataclass(kw_only=True)
class OnnxCall:
    """One operator of a graph while it is written.

    Attributes:
        operator: the operator.
        label: its label.
        base: the prefix of the names of helper values.
        attrs: its canonical attributes.
        operands: its operands, None for absent ones.
        results: data types and shapes of its results.
        opset: the version of ONNX's operator set.
        names: makes names of values.
        nodes: the nodes that were written.
        constants: helper constants that were added.
        types: types of the results of the nodes, by name.
    """

    operator: str
    label: str
    base: str
    attrs: Mapping[str, Any]
    operands: Sequence[OnnxValue | None]
    results: Sequence[tuple[str, Shape]]
    opset: int
    names: UniqueNames
    nodes: list[onnx.NodeProto] = field(default_factory=list[onnx.NodeProto])
    constants: dict[str, Array] = field(default_factory=dict[str, Array])
    types: dict[str, tuple[str, Shape]] = field(default_factory=dict[str, "tuple[str, Shape]"])

    @property
    def given(self) -> list[OnnxValue]:
        """The operands that are there."""
        return [operand for operand in self.operands if operand is not None]

    @property
    def data_type(self) -> str:
        """The data type of the first result."""
        return self.results[0][0]

    @property
    def shape(self) -> Shape:
        """The shape of the first result."""
        return self.results[0][1]

    def node(
        self,
        op_type: str,
        *inputs: OnnxValue | None,
        data_type: str | None = None,
        shape: Shape | None = None,
        domain: str = "",
        **attributes: Any,
    ) -> OnnxValue:
        """Add a node with one result, which has the type and shape of the first input unless others are given."""
        first = inputs[0]
        kind = data_type or (first.data_type if first else self.data_type)
        return self.several(
            op_type, inputs, [(kind, first.shape if shape is None and first else shape or ())], domain, **attributes
        )[0]

    def several(
        self,
        op_type: str,
        inputs: Sequence[OnnxValue | None],
        results: Sequence[tuple[str, Shape] | None],
        domain: str = "",
        **attributes: Any,
    ) -> list[OnnxValue]:
        """Add a node. None among the results is one that is left out."""
        names = [None if v is None else v.name for v in inputs]
        while names and names[-1] is None:  # onnxruntime's optimizer crashes on an empty name at the end
            names.pop()
        values = [OnnxValue("" if r is None else self.names.of(f"{self.base}_{op_type}"), *(r or ("", ()))) for r in results]
        outputs = [v.name for v in values]
        while outputs and not outputs[-1]:
            outputs.pop()
        node = onnx.helper.make_node(op_type, [n or "" for n in names], outputs, domain=domain)
        for name, value in sorted(attributes.items()):
            if value is not None:
                node.attribute.append(onnx.helper.make_attribute(name, value))
        self.nodes.append(node)
        self.types.update({v.name: (v.data_type, v.shape) for v in values if v.name})
        return values

    def constant(self, array: Any, what: str, data_type: str = "") -> OnnxValue:
        """Add a constant."""
        found = np.asarray(array, np.dtype(data_type) if data_type else None)
        name = self.names.of(f"{self.base}_{what}")
        self.constants[name] = found
        return OnnxValue(name, found.dtype.name, found.shape, found)

    def scalar(self, number: Any, like: OnnxValue | str, what: str) -> OnnxValue:
        """Add a scalar of a value's type."""
        return self.constant(np.array(number), what, like if isinstance(like, str) else like.data_type)

    def ints(self, numbers: Sequence[int], what: str) -> OnnxValue:
        """Add a vector of int64."""
        return self.constant(np.array(numbers, np.int64), what)

    def cast(self, value: OnnxValue, data_type: str) -> OnnxValue:
        """Return a value in another type. A cast to its own type is not written: onnxruntime's float16 pass fails on it."""
        if value.data_type == data_type:
            return value
        return self.node("Cast", value, data_type=data_type, to=ELEMENT_TYPES[data_type])

    def reshape(self, value: OnnxValue, shape: Shape) -> OnnxValue:
        """Return a value in another shape."""
        if value.shape == shape:
            return value
        if value.array is not None:
            return self.constant(value.array.reshape(shape), "reshaped")
        return self.node("Reshape", value, self.ints(shape, "shape"), shape=shape)

    def transpose(self, value: OnnxValue, permutation: Sequence[int]) -> OnnxValue:
        """Return a value with its dimensions in another order. A constant is permuted here."""
        if list(permutation) == list(range(value.rank)):
            return value
        if value.array is not None:
            return self.constant(np.ascontiguousarray(value.array.transpose(permutation)), "permuted")
        return self.node("Transpose", value, shape=tuple(value.shape[i] for i in permutation), perm=list(permutation))

    def expand(self, value: OnnxValue, shape: Shape) -> OnnxValue:
        """Return a value broadcast to a shape."""
        if value.shape == shape:
            return value
        return self.node("Expand", value, self.ints(shape, "shape"), shape=shape)

    def logical(self, value: OnnxValue) -> OnnxValue:
        """Return a value as BOOL."""
        return self.cast(value, "bool")

    def refuse(self, why: str) -> NotSupportedError:
        """Return the error of an operator that ONNX does not have."""
        return NotSupportedError(f"{self.operator} cannot be written as ONNX: {why}", operator="to_onnx", label=self.label)

    def need(self, opset: int, why: str) -> None:
        """Refuse the operator where the version of the operator set is too low."""
        if self.opset < opset:
            raise NotSupportedError(
                f"{self.operator} needs a newer operator set: {why}",
                operator="to_onnx",
                label=self.label,
                got=f"opset {self.opset}",
                allowed=f"at least {opset}",
            )


Writer: TypeAlias = Callable[[OnnxCall], "OnnxValue | list[OnnxValue]"]
WRITERS: dict[str, Writer] = {}
"""How each operator is written."""


def writes(*operators: str) -> Callable[[Writer], Writer]:
    """Register a function that writes operators."""

    def register(writer: Writer) -> Writer:
        WRITERS.update(dict.fromkeys(operators, writer))
        return writer

    return register
