"""The parameters of TFLite's nodes: C structures in place of the options of a file."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from webnn_wgpu import NotSupportedError

_Row = tuple[tuple[str, Any], ...]
_I, _L, _F, _B = ctypes.c_int32, ctypes.c_int64, ctypes.c_float, ctypes.c_bool
MOST_DIMENSIONS = 8
"""The number of elements of the structures' arrays."""
COUNT = "number of "
"""The beginning of the names of the fields that count an array's elements."""


def _array(name: str, kind: Any) -> _Row:
    return ((name, kind * MOST_DIMENSIONS), (COUNT + name, _I))


_ACTIVATION: _Row = (("FusedActivationFunction", _I),)
_STRIDES: _Row = (("Padding", _I), ("StrideW", _I), ("StrideH", _I))
_POOL: _Row = (*_STRIDES, ("FilterWidth", _I), ("FilterHeight", _I), *_ACTIVATION)
_CLIPS: _Row = (*_ACTIVATION, ("CellClip", _F), ("ProjClip", _F))
_KEEP: _Row = (("KeepDims", _B),)
_RESIZE: _Row = (("AlignCorners", _B), ("HalfPixelCenters", _B))
_BLOCK: _Row = (("BlockSize", _I),)
_DILATIONS: _Row = (("DilationWFactor", _I), ("DilationHFactor", _I))

_CONV_3D: _Row = (
    *_STRIDES,
    ("StrideD", _I),
    *_DILATIONS,
    ("DilationDFactor", _I),
    *_ACTIVATION,
)

ROWS: dict[str, _Row] = {
    "CONV_2D": (*_STRIDES, *_ACTIVATION, *_DILATIONS),
    "DEPTHWISE_CONV_2D": (*_STRIDES, ("DepthMultiplier", _I), *_ACTIVATION, *_DILATIONS),
    "CONV_3D": _CONV_3D,
    "CONV_3D_TRANSPOSE": _CONV_3D,
    "TRANSPOSE_CONV": (*_STRIDES, *_ACTIVATION),
    "AVERAGE_POOL_2D": _POOL,
    "MAX_POOL_2D": _POOL,
    "L2_POOL_2D": _POOL,
    "FULLY_CONNECTED": (*_ACTIVATION, ("WeightsFormat", _I), ("KeepNumDims", _B)),
    "BATCH_MATMUL": (("AdjX", _B), ("AdjY", _B)),
    "SOFTMAX": (("Beta", _F),),
    "LEAKY_RELU": (("Alpha", _F),),
    "GELU": (("Approximate", _B),),
    "CONCATENATION": (("Axis", _I), *_ACTIVATION),
    "PACK": (("ValuesCount", _I), ("Axis", _I)),
    "UNPACK": (("Num", _I), ("Axis", _I)),
    "ONE_HOT": (("Axis", _I),),
    "ADD": _ACTIVATION,
    "SUB": _ACTIVATION,
    "MUL": _ACTIVATION,
    "DIV": _ACTIVATION,
    "L2_NORMALIZATION": _ACTIVATION,
    "RESHAPE": _array("NewShape", _I),
    "SQUEEZE": _array("SqueezeDims", _I),
    "RESIZE_BILINEAR": _RESIZE,
    "RESIZE_NEAREST_NEIGHBOR": _RESIZE,
    "GATHER": (("Axis", _I), ("BatchDims", _I)),
    "SUM": _KEEP,
    "MEAN": _KEEP,
    "REDUCE_PROD": _KEEP,
    "REDUCE_MAX": _KEEP,
    "REDUCE_MIN": _KEEP,
    "REDUCE_ANY": _KEEP,
    "REDUCE_ALL": _KEEP,
    "CUMSUM": (("Exclusive", _B), ("Reverse", _B)),
    "STRIDED_SLICE": (
        *((f"{name}Mask", _I) for name in ("Begin", "End", "Ellipsis", "NewAxis", "ShrinkAxis")),
        ("Offset", _B),
    ),
    "SPACE_TO_DEPTH": _BLOCK,
    "DEPTH_TO_SPACE": _BLOCK,
    "REVERSE_SEQUENCE": (("SeqDim", _I), ("BatchDim", _I)),
    "LSTM": (*_CLIPS, ("KernelType", _I)),
    "UNIDIRECTIONAL_SEQUENCE_LSTM": (*_CLIPS, ("TimeMajor", _B)),
    "BIDIRECTIONAL_SEQUENCE_LSTM": (*_CLIPS, ("MergeOutputs", _B), ("TimeMajor", _B)),
    "RNN": _ACTIVATION,
    "UNIDIRECTIONAL_SEQUENCE_RNN": (("TimeMajor", _B), *_ACTIVATION),
    "BIDIRECTIONAL_SEQUENCE_RNN": (("TimeMajor", _B), *_ACTIVATION, ("MergeOutputs", _B)),
    "SVDF": (("Rank", _I), *_ACTIVATION),
    "STABLEHLO_GATHER": (
        *_array("OffsetDims", _L),
        *_array("CollapsedSliceDims", _L),
        *_array("StartIndexMap", _L),
        ("IndexVectorDim", _L),
        *_array("SliceSizes", _L),
    ),
    "LOCAL_RESPONSE_NORMALIZATION": (("Radius", _I), ("Bias", _F), ("Alpha", _F), ("Beta", _F)),
    "MIRROR_PAD": (("Mode", _I),),
    "FAKE_QUANT": (("Min", _F), ("Max", _F), ("NumBits", _I), ("NarrowRange", _B)),
}
"""The first fields of each operator's structure, with the names of the file's options.

A field whose name begins with COUNT is the number of elements of the array of the rest of the name.
"""

COMPOSITE = "STABLEHLO_COMPOSITE"
"""The operator whose structure has a name and bytes."""

ONE_BASED = ("Padding", "Mode")
"""Enumerations whose numbers are one greater in the runtime than in files."""


def _structure(name: str, row: _Row) -> type[ctypes.Structure]:
    return type(f"Tflite{name.title().replace('_', '')}Struct", (ctypes.Structure,), {"_fields_": row})


STRUCTURES = {name: _structure(name, row) for name, row in ROWS.items()}
"""The C structure of each operator's parameters."""


class TfliteCompositeStruct(ctypes.Structure):
    """TfLiteStablehloCompositeParams."""

    _fields_ = (
        ("name", ctypes.c_char_p),
        ("subgraph_index", _I),
        ("attributes", ctypes.c_void_p),
        ("attributes_size", ctypes.c_size_t),
    )


class _NodeParameters:
    """The parameters of a node, with the accessors of a file's options.

    Args:
        values: numbers and arrays by the names of the options.
    """

    def __init__(self, values: Mapping[str, Any]) -> None:
        self._values = values

    def __getattr__(self, name: str) -> Callable[[], Any]:
        """Return the accessor of an option."""
        values = self._values
        if name in values:
            return lambda: values[name]
        array: Any = values.get(name.removesuffix("AsNumpy"))
        if name.endswith("AsNumpy") and hasattr(array, "tolist"):
            return lambda: array
        raise AttributeError(name)


class _UnknownParameters:
    """The parameters of an operator whose structure has no row. A node whose lowering reads one of them is not supported.

    Args:
        operator: the name of the operator.
    """

    def __init__(self, operator: str) -> None:
        self._operator = operator

    def __getattr__(self, name: str) -> Any:
        """Refuse the option.

        Raises:
            NotSupportedError: always.
        """
        raise NotSupportedError(f"the delegate does not know the structure of the parameters of {self._operator}")


def parameters_at(operator: str, address: int | None) -> Any:
    """Return the parameters of a builtin operator at an address of the runtime."""
    if not address:
        return _NodeParameters({})
    if operator == COMPOSITE:
        composite: Any = TfliteCompositeStruct.from_address(address)
        data = ctypes.string_at(composite.attributes, composite.attributes_size) if composite.attributes else b""
        attributes = np.frombuffer(data, np.uint8)
        found = {"Name": composite.name, "CompositeAttributes": attributes}
        return _NodeParameters(found | {"DecompositionSubgraphIndex": composite.subgraph_index})
    row = ROWS.get(operator)
    if row is None:
        return _UnknownParameters(operator)
    struct = STRUCTURES[operator].from_address(address)
    values: dict[str, Any] = {}
    for name, kind in row:
        if name.startswith(COUNT):
            continue
        value = getattr(struct, name)
        if issubclass(kind, ctypes.Array):
            count: int = getattr(struct, COUNT + name)
            value = np.array(value[: max(count, 0)], np.int64)
        elif name in ONE_BASED:
            value -= 1
        values[name] = value
    return _NodeParameters(values)
