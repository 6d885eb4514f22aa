"""Calls of operators as data: a valid one of every operator, changes to it, and a workplace to try them on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import webnn_wgpu as wn
from webnn_wgpu.ir.types import TensorType
from webnn_wgpu.ops import OPS

if TYPE_CHECKING:
    from collections.abc import Mapping

LABEL = "here"
"""The label that every call carries: messages must repeat it."""

PACKED = ("int4", "uint4")
"""The data types that only constants may have, and that only dequantizeLinear takes."""

ABSENT: Any = object()
"""Stands for an argument that is left out."""


@dataclass(frozen=True)
class Operand:
    """Stands for an operand of a data type and shape, written "float32[2, 3]"; a foreign one is another builder's."""

    text: str
    foreign: bool = False

    @property
    def type(self) -> TensorType:
        data_type, _, dims = self.text.rstrip("]").partition("[")
        return TensorType(data_type, tuple(int(d) for d in dims.split(",") if d))

    def of(self, data_type: str) -> Operand:
        """The same shape of another data type."""
        return Operand(str(self.type.with_data_type(data_type)))

    def shaped(self, *shape: int) -> Operand:
        """The same data type in another shape."""
        return Operand(str(TensorType(self.type.data_type, shape)))

    def ranked(self, rank: int) -> Operand:
        """The last dimensions, or ones in front of them."""
        shape = self.type.shape
        return self.shaped(*([1] * (rank - len(shape))), *shape[len(shape) - min(rank, len(shape)) :])


@dataclass(frozen=True)
class Activation:
    """Stands for an MLActivation; a foreign one is another builder's."""

    kind: str
    foreign: bool = False


def t(text: str) -> Operand:
    return Operand(text)


def foreign(operand: Operand) -> Operand:
    return Operand(operand.text, foreign=True)


UNARY = (
    "abs ceil cos erf exp floor identity log neg reciprocal roundEven sign sin sqrt tan "
    "gelu hardSwish relu sigmoid softsign tanh"
).split()
ARITHMETIC = "add div max min mul pow sub".split()
COMPARISONS = "equal greater greaterOrEqual lesser lesserOrEqual notEqual".split()
LOGICAL = "logicalAnd logicalOr logicalXor".split()
REDUCTIONS = "L1 L2 LogSum LogSumExp Max Mean Min Product Sum SumSquare".split()
POOLS = "averagePool2d l2Pool2d maxPool2d".split()

X = t("float32[2, 3]")

BASES: dict[str, dict[str, Any]] = {
    **{name: {"input": X} for name in UNARY},
    **{name: {"a": X, "b": t("float32[3]")} for name in (*ARITHMETIC, *COMPARISONS)},
    **{name: {"a": t("uint8[2, 3]"), "b": t("uint8[3]")} for name in LOGICAL},
    **{name: {"a": t("uint8[2, 3]")} for name in ("logicalNot", "not")},
    **{name: {"a": X} for name in ("isNaN", "isInfinite")},
    **{f"reduce{name}": {"input": X, "axes": [1], "keep_dimensions": False} for name in REDUCTIONS},
    **{
        name: {"input": X, "axis": 1, "keep_dimensions": True, "output_data_type": "int32", "select_last_index": False}
        for name in ("argMax", "argMin")
    },
    **{
        name: {
            "input": t("float32[1, 2, 7, 7]"),
            "window_dimensions": [2, 2],
            "padding": [0, 0, 0, 0],
            "strides": [2, 2],
            "dilations": [1, 1],
            "layout": "nchw",
            "output_shape_rounding": "floor",
        }
        for name in POOLS
    },
    "batchNormalization": {
        "input": X,
        **dict.fromkeys(("mean", "variance", "scale", "bias"), t("float32[3]")),
        "axis": 1,
        "epsilon": 0.5,
        "activation": Activation("relu"),
    },
    "cast": {"input": X, "data_type": "int8"},
    "clamp": {"input": X, "min_value": 0, "max_value": 1},
    "concat": {"inputs": [X, t("float32[2, 4]")], "axis": 1},
    "conv2d": {
        "input": t("float32[1, 4, 7, 7]"),
        "filter": t("float32[6, 2, 3, 3]"),
        "bias": t("float32[6]"),
        "padding": [1, 1, 1, 1],
        "strides": [2, 2],
        "dilations": [1, 1],
        "groups": 2,
        "input_layout": "nchw",
        "filter_layout": "oihw",
        "activation": Activation("relu"),
    },
    "convTranspose2d": {
        "input": t("float32[1, 4, 5, 5]"),
        "filter": t("float32[4, 3, 3, 3]"),
        "bias": t("float32[3]"),
        "padding": [1, 1, 1, 1],
        "strides": [2, 2],
        "dilations": [1, 1],
        "output_padding": [1, 1],
        "groups": 1,
        "input_layout": "nchw",
        "filter_layout": "iohw",
        "activation": Activation("relu"),
    },
    "cumulativeSum": {"input": X, "axis": 1, "exclusive": True, "reversed": False},
    "dequantizeLinear": {"input": t("uint8[4, 6]"), "scale": t("float32[2, 3]"), "zero_point": t("uint8[2, 3]")},
    "elu": {"input": X, "alpha": 0.5},
    "expand": {"input": X, "new_shape": [4, 2, 3]},
    "gather": {"input": X, "indices": t("int32[4]"), "axis": 1},
    "gatherElements": {"input": t("float32[4, 3]"), "indices": t("int32[2, 3]"), "axis": 0},
    "gatherND": {"input": t("float32[4, 3, 2]"), "indices": t("int32[5, 2]")},
    "gemm": {
        "a": X,
        "b": t("float32[4, 3]"),
        "c": t("float32[4]"),
        "alpha": 0.5,
        "beta": 2.0,
        "a_transpose": False,
        "b_transpose": True,
    },
    "gru": {
        "input": t("float32[2, 4, 5]"),
        "weight": t("float32[1, 9, 5]"),
        "recurrent_weight": t("float32[1, 9, 3]"),
        "steps": 2,
        "hidden_size": 3,
        "bias": t("float32[1, 9]"),
        "recurrent_bias": t("float32[1, 9]"),
        "initial_hidden_state": t("float32[1, 4, 3]"),
        "reset_after": False,
        "return_sequence": True,
        "direction": "backward",
        "layout": "rzn",
        "activations": ["sigmoid", "tanh"],
    },
    "gruCell": {
        "input": t("float32[4, 5]"),
        "weight": t("float32[9, 5]"),
        "recurrent_weight": t("float32[9, 3]"),
        "hidden_state": t("float32[4, 3]"),
        "hidden_size": 3,
        "bias": t("float32[9]"),
        "recurrent_bias": t("float32[9]"),
        "reset_after": False,
        "layout": "rzn",
        "activations": ["sigmoid", "tanh"],
    },
    "hardSigmoid": {"input": X, "alpha": 0.5, "beta": 0.25},
    "instanceNormalization": {
        "input": t("float32[1, 3, 4, 2]"),
        "scale": t("float32[3]"),
        "bias": t("float32[3]"),
        "epsilon": 0.5,
        "layout": "nchw",
    },
    "layerNormalization": {
        "input": t("float32[2, 3, 4]"),
        "scale": t("float32[4, 3]"),
        "bias": t("float32[4, 3]"),
        "axes": [2, 1],
        "epsilon": 0.5,
    },
    "leakyRelu": {"input": X, "alpha": 0.5},
    "linear": {"input": X, "alpha": 0.5, "beta": 0.25},
    "lstm": {
        "input": t("float32[2, 4, 5]"),
        "weight": t("float32[1, 12, 5]"),
        "recurrent_weight": t("float32[1, 12, 3]"),
        "steps": 2,
        "hidden_size": 3,
        "bias": t("float32[1, 12]"),
        "recurrent_bias": t("float32[1, 12]"),
        "peephole_weight": t("float32[1, 9]"),
        "initial_hidden_state": t("float32[1, 4, 3]"),
        "initial_cell_state": t("float32[1, 4, 3]"),
        "return_sequence": True,
        "direction": "backward",
        "layout": "ifgo",
        "activations": ["sigmoid", "tanh", "relu"],
    },
    "lstmCell": {
        "input": t("float32[4, 5]"),
        "weight": t("float32[12, 5]"),
        "recurrent_weight": t("float32[12, 3]"),
        "hidden_state": t("float32[4, 3]"),
        "cell_state": t("float32[4, 3]"),
        "hidden_size": 3,
        "bias": t("float32[12]"),
        "recurrent_bias": t("float32[12]"),
        "peephole_weight": t("float32[9]"),
        "layout": "ifgo",
        "activations": ["sigmoid", "tanh", "relu"],
    },
    "matmul": {"a": t("float32[5, 2, 3]"), "b": t("float32[3, 4]")},
    "pad": {"input": X, "beginning_padding": [0, 1], "ending_padding": [1, 2], "mode": "reflection", "value": 0},
    "prelu": {"input": X, "slope": t("float32[3]")},
    "quantizeLinear": {"input": t("float32[4, 6]"), "scale": t("float32[2, 3]"), "zero_point": t("uint8[2, 3]")},
    "resample2d": {"input": t("float32[1, 2, 4, 4]"), "mode": "linear", "scales": [2.0, 2.0], "axes": [2, 3]},
    "reshape": {"input": X, "new_shape": [3, 2]},
    "reverse": {"input": X, "axes": [1]},
    "scatterElements": {"input": t("float32[4, 3]"), "indices": t("int32[2, 3]"), "updates": t("float32[2, 3]"), "axis": 0},
    "scatterND": {"input": t("float32[4, 3, 2]"), "indices": t("int32[5, 2]"), "updates": t("float32[5, 2]")},
    "slice": {"input": X, "starts": [0, 1], "sizes": [2, 2], "strides": [1, 2]},
    "softmax": {"input": X, "axis": 1},
    "softplus": {"input": X, "steepness": 2.0},
    "split": {"input": X, "splits": [1, 2], "axis": 1},
    "tile": {"input": X, "repetitions": [2, 1]},
    "transpose": {"input": X, "permutation": [1, 0]},
    "triangular": {"input": X, "upper": False, "diagonal": 1},
    "where": {"condition": t("uint8[2, 3]"), "true_value": X, "false_value": t("float32[3]")},
}
"""A valid call of every operator, with every operand and most options given, by their Python names."""

ALIASES = {"not": "logicalNot"}
"""Operators of the specification that are another one of ours."""

PRESENT = sorted(name for name in BASES if ALIASES.get(name, name) in OPS)
"""The operators that can be called."""


def changed(op: str, changes: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments of the valid call with some replaced or left out."""
    return {name: value for name, value in {**BASES[op], **changes}.items() if value is not ABSENT}


class Workplace:
    """A builder with operands to call operators on, and another one whose operands do not belong."""

    def __init__(self, context: wn.MLContext) -> None:
        self.builder, self.other = wn.MLGraphBuilder(context), wn.MLGraphBuilder(context)
        self._operands: dict[Operand, wn.MLOperand] = {}

    def value(self, given: Any) -> Any:
        """What `given` stands for."""
        if isinstance(given, Operand):
            return self._operand(given)
        if isinstance(given, Activation):
            return getattr(self.other if given.foreign else self.builder, given.kind)()
        # Some lists of numbers are as long as memory has room for.
        if isinstance(given, list) and not set(map(type, given)) <= {int, float}:
            return [self.value(item) for item in given]
        return given

    def _operand(self, given: Operand) -> wn.MLOperand:
        if given not in self._operands:
            builder = self.other if given.foreign else self.builder
            descriptor = {"dataType": given.type.data_type, "shape": given.type.shape}
            if given.type.data_type in PACKED:
                self._operands[given] = builder.constant(descriptor, bytes(-(-given.type.num_elements // 2)))
            else:
                self._operands[given] = builder.input(f"i{len(self._operands)}", descriptor)
        return self._operands[given]

    def values(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """What the arguments stand for."""
        return {name: self.value(given) for name, given in arguments.items()}

    def call(self, op: str, /, *args: Any, **arguments: Any) -> Any:
        """Call an operator with values."""
        return getattr(self.builder, op)(*args, **{"label": LABEL, **arguments})

    @property
    def state(self) -> tuple[int, int]:
        """How many values and operators the builder holds; no public name tells of those that nothing depends on."""
        return len(self.builder._values), len(self.builder._nodes)
