"""Types of the API's arguments, for type checkers: names of data types, shapes, tensor data, descriptors.

The dictionaries have the specification's names and keys. Dictionaries of operators' options are in `operators.dictionaries`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal, NotRequired, Protocol, TypeAlias, TypedDict

import numpy as np

from ..core.data_types import MLOperandDataType
from .operand import DataTypeName

if TYPE_CHECKING:
    from typing_extensions import Buffer

    from .tuning import TuningSource

MLPowerPreference: TypeAlias = Literal["default", "high-performance", "low-power"]

OperandDataType: TypeAlias = MLOperandDataType | DataTypeName
"""A data type by its name: a literal, or the `data_type` of an operand or tensor."""

DataTypeLike: TypeAlias = OperandDataType | type[np.generic] | np.dtype[Any]
"""A data type by its name, or as numpy has it: `np.float32`, `np.dtype("float32")`."""

ConstantDataType: TypeAlias = OperandDataType | Literal["int4", "uint4"]
"""A data type that constants may have, by its name."""

ConstantDataTypeLike: TypeAlias = ConstantDataType | type[np.generic] | np.dtype[Any]
"""A data type that constants may have, by its name, or as numpy has it."""

ShapeLike: TypeAlias = int | Sequence[int]
"""A shape: its dimensions. An integer is the only dimension of a vector."""

Number: TypeAlias = float | np.integer[Any] | np.floating[Any]
"""A number, also as a scalar of numpy's."""

Vector: TypeAlias = Sequence[Number]
Matrix: TypeAlias = Sequence[Vector]
Numbers: TypeAlias = Vector | Matrix | Sequence[Matrix] | Sequence[Sequence[Matrix]]
"""A list of numbers, or of lists of them, of up to four dimensions.

An alias that stands for lists of itself would let strings pass, as the items of a string are strings.
"""


class SupportsArray(Protocol):
    """An object that numpy makes an array of, such as an `MLTensor` or a torch tensor on the CPU."""

    def __array__(self) -> Any:
        """Return the elements."""
        ...


class SupportsDLPack(Protocol):
    """An object that hands out its elements by DLPack."""

    def __dlpack__(self) -> Any:
        """Return the elements."""
        ...


TensorData: TypeAlias = "SupportsArray | SupportsDLPack | Buffer | Numbers | Number"
"""The elements of a tensor: an array, its bytes, an object that can be made an array, nested lists of numbers, or a number."""

WritableArray: TypeAlias = "SupportsArray | SupportsDLPack | Buffer"
"""Memory of the caller's that results are written into."""


class GPUDevice(Protocol):
    """A `wgpu.GPUDevice`. wgpu has no types of its own, so the parts that tell a device from other objects stand here."""

    @property
    def adapter(self) -> Any:
        """The adapter that the device was requested of."""
        ...

    @property
    def queue(self) -> Any:
        """The queue that command buffers are submitted to."""
        ...


class MLOperandDescriptor(TypedDict):
    """Data type and shape of an operand.

    Keys:
        dataType: the data type.
        shape: the dimensions.
        dimensions: another name of `shape`, of the 2024 text.
    """

    dataType: DataTypeLike
    shape: NotRequired[ShapeLike]
    dimensions: NotRequired[ShapeLike]


class MLConstantDescriptor(TypedDict):
    """Data type and shape of a constant, like `MLOperandDescriptor`, but with 4-bit integers too."""

    dataType: ConstantDataTypeLike
    shape: NotRequired[ShapeLike]
    dimensions: NotRequired[ShapeLike]


class MLTensorDescriptor(MLOperandDescriptor, total=False):
    """Data type and shape of a tensor, and how it is used.

    Keys:
        readable: whether `read_tensor` may read it.
        writable: whether `write_tensor` may write it.
        exportableToGPU: whether its buffer may be handed to WebGPU.
    """

    readable: bool
    writable: bool
    exportableToGPU: bool


class CamelCaseContextOptions(TypedDict, total=False):
    """Options of `ML.create_context` whose camelCase names differ from the Python names."""

    powerPreference: MLPowerPreference | None
    deviceType: Literal["auto", "cpu", "gpu"] | None
    gpuDevice: GPUDevice | None


class MLContextOptions(CamelCaseContextOptions, total=False):
    """Options of `ML.create_context` as one dictionary, in either spelling."""

    power_preference: MLPowerPreference | None
    accelerated: bool | None
    device_type: Literal["auto", "cpu", "gpu"] | None
    gpu_device: GPUDevice | None
    backend: Literal["auto", "reference"] | None
    tuning: TuningSource
