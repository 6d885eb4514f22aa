"""The interface of lowering functions to the node that they lower."""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, NoReturn, cast

import numpy as np
from flatbuffers import flexbuffers as _flexbuffers  # pyright: ignore[reportMissingTypeStubs] - the package has none

from webnn_wgpu import MLOperand

from ..common.calls import OperatorCall
from ..common.held import FLOAT32, Array, DType, held_type
from .contents import Quantization, TensorRecord
from .module import TfliteModule
from .reading import BROKEN
from .tensors import PACKED, TfliteNode, TfliteTensor

if TYPE_CHECKING:
    from webnn_wgpu.typing import OperandDataType

    from .lowering import TfliteLowering

flexbuffers: Any = _flexbuffers

ACTIVATIONS = ("none", "RELU", "RELU_N1_TO_1", "RELU6", "TANH", "SIGN_BIT")
"""Fused activations by number."""
LIMITS: dict[str, tuple[float | None, float | None]] = {"RELU": (0, None), "RELU_N1_TO_1": (-1, 1), "RELU6": (0, 6)}
"""The ranges of fused activations that limit their inputs."""
RANGES = {
    "int8": (-128, 127),
    "uint8": (0, 255),
    "int16": (-32768, 32767),
    "uint16": (0, 65535),
    "int32": (-(2**31), 2**31 - 1),
    "int4": (-8, 7),
    "uint4": (0, 15),
    "int2": (-2, 1),
}
"""The ranges of quantized types."""
DIRECT = ("int8", "uint8", "int32")
"""Types that WebNN quantizes to."""


class NodeFacts:
    """The facts of a node that its file states.

    Attributes:
        module: the model.
        node: the node.
        inputs: the records of its inputs, None for absent ones.
        outputs: the records of its outputs.
    """

    def __init__(self, module: TfliteModule, node: TfliteNode) -> None:
        self.module, self.node = module, node
        self.records = [None if v is None else v.record for v in node.inputs]
        self.outputs = [v.record for v in node.outputs]

    def option(self, name: str, default: Any = 0) -> Any:
        """Return an option by the name of its accessor, a number or a list of numbers, or the default.

        Raises:
            NotSupportedError: the options lie outside the file.
        """
        options = self.node.record.options
        accessor = getattr(options, name, None)
        if accessor is None:
            return default
        try:
            if hasattr(options, f"{name}AsNumpy"):
                vector = getattr(options, f"{name}AsNumpy")()
                return default if isinstance(vector, int) else vector.tolist()
            value = accessor()
        except BROKEN as error:
            self.fail(f"its option {name} lies outside the file: {error}")
        return value.decode("utf-8", "replace") if isinstance(value, bytes) else value

    @cached_property
    def attributes(self) -> dict[str, Any]:
        """The options of a custom operator that are a flexbuffer, by name."""
        return self.flexbuffer(self.node.record.custom_options)

    def flexbuffer(self, data: bytes) -> dict[str, Any]:
        """Return a flexbuffer that maps names to values."""
        if not data:
            return {}
        try:
            found: Any = flexbuffers.Loads(data)
        except (*BROKEN, NotImplementedError, RecursionError) as error:
            self.fail(f"its options are no flexbuffer: {error}")
        return cast("dict[str, Any]", found) if isinstance(found, dict) else {}

    def raw_integers(self, count: int) -> list[int]:
        """Return the options of a custom operator that are a C struct of integers, with 0 for missing ones."""
        data = self.node.record.custom_options[: 4 * count]
        found = list(struct.unpack(f"<{len(data) // 4}i", data[: len(data) // 4 * 4]))
        return found + [0] * (count - len(found))

    def fail(self, reason: str) -> NoReturn:
        """Raise the error of a node that no backend can run.

        Raises:
            NotSupportedError: always. The message names model, node, operator, version and reason.
        """
        raise self.module.refusal(self.node, reason)


class TfliteCall(NodeFacts, OperatorCall):
    """A node, the tensors of its inputs, and the builder that receives its operators.

    Attributes:
        inputs: the tensors of its inputs, None for absent ones.
        lowering: the lowering of the graph.
    """

    def __init__(self, lowering: TfliteLowering, node: TfliteNode, inputs: Sequence[TfliteTensor | None]) -> None:
        NodeFacts.__init__(self, lowering.module, node)
        OperatorCall.__init__(self, lowering.builder, node.label)
        self.lowering = lowering
        self.inputs = inputs

    # facts ----------------------------------------------------------------------------------------------------------

    def __len__(self) -> int:
        return len(self.inputs)

    def has(self, index: int) -> bool:
        """Return whether an input is present."""
        return index < len(self.inputs) and self.inputs[index] is not None

    def tensor(self, index: int) -> TfliteTensor:
        """Return the tensor of a required input."""
        tensor = self.inputs[index] if index < len(self.inputs) else None
        return tensor if tensor is not None else self.fail(f"input {index} is missing")

    def shape(self, index: int) -> tuple[int, ...]:
        """Return the shape of a required input."""
        return self.tensor(index).shape

    def output(self, index: int = 0) -> TensorRecord:
        """Return the record of an output."""
        return self.outputs[index] if index < len(self.outputs) else self.fail(f"output {index} is missing")

    # elements -------------------------------------------------------------------------------------------------------

    def value(self, index: int) -> Array:
        """Return the elements of an input. The graph is then compiled for these elements.

        Raises:
            ValueNeeded: the elements are known only at run time. The lowering continues after their readback.
        """
        self.tensor(index)
        value = self.node.inputs[index]
        assert value is not None
        return self.lowering.demand(value)

    def ints(self, index: int) -> list[int]:
        """Return the elements of an input that is a list of integers."""
        array = self.value(index)
        if array.dtype.kind not in "iu":
            self.fail(f"input {index} must be a list of integers; got {array.dtype} of shape {list(array.shape)}")
        return [int(v) for v in array.reshape(-1)]

    def integer(self, index: int) -> int:
        """Return the element of an input that is one integer."""
        found = self.ints(index)
        return found[0] if len(found) == 1 else self.fail(f"input {index} must be one integer; got {len(found)}")

    # operands -------------------------------------------------------------------------------------------------------

    def stored(self, array: Array) -> MLOperand:
        """Return the constant operand of an array of a held data type."""
        return self.lowering.constant(array)

    def operand(self, index: int) -> MLOperand:
        """Return an input on the device, with its integers if it is quantized.

        Raises:
            OnHost: the input has no elements. Operands cannot be empty.
        """
        return self.lowering.hold(self.tensor(index))

    def real(self, index: int) -> MLOperand:
        """Return an input on the device with its numbers: a quantized input is dequantized."""
        return self.dequantized(self.tensor(index))

    def floats(self, index: int) -> MLOperand:
        """Return an input on the device as float32."""
        return self.cast(self.real(index), "float32")

    def dequantized(self, tensor: TfliteTensor) -> MLOperand:
        """Return the numbers of a tensor, as float32 if it is quantized. Constants of 4 bits stay packed."""
        if not tensor.is_quantized:
            return self.lowering.hold(tensor)
        if tensor.real is None:
            assert tensor.quantization is not None
            tensor.real = self.scaled(tensor, tensor.quantization)
        return tensor.real

    def scaled(self, tensor: TfliteTensor, quantization: Quantization) -> MLOperand:
        """Return scale * (integer - zero point)."""
        if quantization.block_scales >= 0:
            return self.lowering.blocks(self, tensor, quantization)
        shape = self.along(tensor, quantization)
        integers = self.integers(tensor)
        scales = self.constant(quantization.scales.reshape(shape), "float32")
        if integers.data_type not in ("int32", "uint32", "int8", "uint8", "int4", "uint4"):
            points = self.constant(quantization.zero_points.reshape(shape), "float32")
            return self.build.mul(self.build.sub(self.build.cast(integers, "float32"), points), scales)
        points = quantization.zero_points.reshape(shape)
        if integers.data_type in ("int4", "uint4"):
            zero = self.stored(points.astype(tensor.dtype))
        else:
            zero = self.constant(points, integers.data_type)
        return self.build.dequantize_linear(integers, scales, zero)

    def integers(self, tensor: TfliteTensor) -> MLOperand:
        """Return the integers of a quantized tensor, constants of 4 bits in packed form."""
        if tensor.array is not None and tensor.dtype in PACKED and tensor.size:
            return self.stored(tensor.array)
        return self.lowering.hold(tensor)

    def along(self, tensor: TfliteTensor, quantization: Quantization) -> tuple[int, ...]:
        """Return the shape of scales that broadcasts to a tensor."""
        if len(quantization.scales) == 1:
            return (1,) * tensor.rank
        if quantization.axis >= tensor.rank or tensor.shape[quantization.axis] != len(quantization.scales):
            self.fail(f"{len(quantization.scales)} scales do not fit dimension {quantization.axis} of {list(tensor.shape)}")
        return tuple(d if i == quantization.axis else 1 for i, d in enumerate(tensor.shape))

    def quantized(self, operand: MLOperand, record: TensorRecord) -> MLOperand:
        """Return float32 numbers as the integers of a quantized tensor: round(number / scale) + zero point."""
        quantization = record.quantization
        assert quantization is not None
        assert record.dtype is not None
        like = TfliteTensor(shape=tuple(int(d) for d in operand.shape), dtype=record.dtype)
        shape = self.along(like, quantization)
        name = record.dtype.name
        held = name if name in DIRECT else "int32"
        scales = self.constant(quantization.scales.reshape(shape), "float32")
        zero = self.constant(quantization.zero_points.reshape(shape), held)
        y = self.build.quantize_linear(self.cast(operand, "float32"), scales, zero)
        return y if name in DIRECT else self.limited(y, record)

    def limited(self, operand: MLOperand, record: TensorRecord) -> MLOperand:
        """Return integers within the range of a tensor's type, in the type that holds it."""
        assert record.dtype is not None
        low, high = RANGES[record.dtype.name]
        return self.cast(self.build.clamp(operand, min_value=low, max_value=high), self.held(record.dtype))

    def same(self, index: int, output: int = 0) -> bool:
        """Return whether an input has the quantization of an output, so that its integers can be moved."""
        tensor, record = self.tensor(index), self.output(output)
        return (
            not tensor.is_quantized
            or record.quantization is None
            or tensor.quantization is record.quantization
            or (tensor.quantization is not None and tensor.quantization.same_as(record.quantization))
        )

    def moved(self, index: int) -> MLOperand:
        """Return an input whose elements are copied to the output: its integers, rescaled if the scales differ."""
        return self.operand(index) if self.same(index) else self.quantized(self.real(index), self.output())

    def table(self, function: Callable[[Array], Array], index: int = 0) -> MLOperand | None:
        """Return a function of a quantized tensor of 8 bits as a table of 256 results. None for other tensors.

        Args:
            function: returns the results of float64 numbers.
            index: the input.
        """
        return self.step_table(lambda steps, x, y: rounded_away(function(x.scale * steps) / y.scale), index)

    def step_table(self, function: Callable[[Array, Quantization, Quantization], Array], index: int = 0) -> MLOperand | None:
        """Return a function of the integers of a tensor of 8 bits as a table of 256 results. None for other tensors.

        Args:
            function: returns whole numbers of steps from the output's zero point, for numbers of steps from the input's, and
                the quantizations of both.
            index: the input.
        """
        tensor, record = self.tensor(index), self.output()
        result = record.quantization
        eight = ("int8", "uint8")
        if not (tensor.is_quantized and tensor.dtype.name in eight and record.dtype is not None and record.dtype.name in eight):
            return None
        if tensor.quantization is None or not tensor.quantization.is_whole or result is None or not result.is_whole:
            return None
        low, high = RANGES[tensor.dtype.name]
        steps = np.arange(low, high + 1, dtype=np.float64)
        with np.errstate(all="ignore"):
            least, most = RANGES[record.dtype.name]
            counts = function(steps - tensor.quantization.zero_point, tensor.quantization, result)
            rounded = np.nan_to_num(counts + result.zero_point, nan=least)
        entries = np.clip(rounded, least, most)
        places = self.cast(self.operand(index), "int32")
        if low:
            places = self.build.sub(places, self.constant(low, "int32"))
        return self.build.gather(self.constant(entries, record.dtype.name), places)

    # activations ----------------------------------------------------------------------------------------------------

    @property
    def activation(self) -> str:
        """The fused activation: "none" or its name."""
        number = int(self.option("FusedActivationFunction"))
        return ACTIVATIONS[number] if 0 <= number < len(ACTIVATIONS) else self.fail(f"activation {number} is unknown")

    def activated(self, operand: MLOperand) -> MLOperand:
        """Return numbers within the range of the fused activation. TFLite's kernels apply no others than those with a range."""
        return self.activate(operand, self.activation) if self.activation in LIMITS else operand

    def activate(self, operand: MLOperand, name: str) -> MLOperand:
        """Return numbers with an activation applied."""
        if name == "none":
            return operand
        if name == "TANH":
            return self.build.tanh(operand)
        if name not in LIMITS:
            self.fail(f"the fused activation {name} is not supported")
        low, high = LIMITS[name]
        if high is None and operand.data_type in ("float32", "float16", "int32", "int64", "int8"):
            return self.build.relu(operand)
        return self.build.clamp(operand, min_value=low, max_value=high)

    # variables ------------------------------------------------------------------------------------------------------

    def update(self, index: int, operand: MLOperand) -> None:
        """Give a variable input new elements, which it keeps for later nodes and runs."""
        value = self.node.inputs[index]
        if value is None or value.variable is None:
            self.fail(f"input {index} must be a variable")
        self.lowering.assign(value.variable, self.typed(operand, value.record), value)

    def bare(self, operand: MLOperand, index: int = 0) -> TfliteTensor:
        """Return the tensor of an operand with an output's type, unless it is quantized: the operand has its elements."""
        record = self.output(index)
        assert record.dtype is not None
        if operand.data_type != self.held(record.dtype):
            self.fail(f"its result is {operand.data_type}, but tensor '{record.name}' has the type {record.type_name}")
        shape = self._logical(operand, record, record.dtype)
        return TfliteTensor(shape=shape, dtype=record.dtype, operand=operand, quantization=record.quantization)

    def held(self, dtype: DType) -> OperandDataType:
        """Return the WebNN data type that holds a logical type."""
        return held_type(dtype)

    def typed(self, operand: MLOperand, record: TensorRecord) -> TfliteTensor:
        """Return the tensor of an operand with the type of a record: numbers are quantized if the record is."""
        dtype = record.dtype if record.dtype is not None else FLOAT32
        tensor = TfliteTensor(shape=(), dtype=dtype, quantization=record.quantization)
        if operand.data_type in ("float32", "float16") and tensor.is_quantized:
            operand = self.quantized(operand, record)
        tensor.operand = self.cast(operand, self.held(dtype))
        tensor.shape = self._logical(operand, record, dtype)
        return tensor

    def _logical(self, operand: MLOperand, record: TensorRecord, dtype: DType) -> tuple[int, ...]:
        """Return the shape of the tensor that an operand holds."""
        shape = tuple(int(d) for d in operand.shape)
        if dtype.kind != "c":
            return shape
        if not shape or shape[-1] != 2:
            self.fail(f"its result {list(shape)} is no pairs of numbers, as tensor '{record.name}' of complex64 is")
        return shape[:-1]


def rounded_away(array: Array) -> Array:
    """Return numbers rounded to integers, halves away from zero."""
    return np.trunc(array + np.copysign(0.5, array))
