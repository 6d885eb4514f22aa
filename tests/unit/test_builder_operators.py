"""The operator methods: what reaches the graph, and what is refused and how."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from webnn_wgpu.api.activation import MLActivation
from webnn_wgpu.api.operand import MLOperand
from webnn_wgpu.api.operators import Operators
from webnn_wgpu.core.errors import MLTypeError
from webnn_wgpu.core.names import snake_case
from webnn_wgpu.ir.types import TensorType
from webnn_wgpu.ops import OPS, OpDef

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

ACTIVATIONS = "clamp elu gelu hard_sigmoid hard_swish leaky_relu linear relu sigmoid softmax softplus softsign tanh".split()


class Recorder(Operators):
    """A builder that checks operators and notes them down, without a device."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, list[MLOperand | None], Mapping[str, Any], str]] = []
        self.count = 0

    def input(self, name: str, data_type: str, shape: Sequence[int]) -> MLOperand:
        return self.new(TensorType(data_type, tuple(shape)), name)

    def new(self, wanted: TensorType, name: str | None = None) -> MLOperand:
        self.count += 1
        return MLOperand(self, self.count - 1, wanted, name)

    def _require_own(self, op: OpDef, operands: Sequence[MLOperand | None], label: str) -> None:
        for operand in operands:
            if operand is not None and operand.builder is not self:
                raise MLTypeError("every operand must belong to this builder", operator=op.python_name, label=label)

    def _operator(
        self, name: str, operands: Sequence[MLOperand | None], attrs: Mapping[str, Any], label: str
    ) -> list[MLOperand]:
        self._require_own(OPS[name], operands, label)
        types, canonical = OPS[name].check([None if o is None else o.type for o in operands], attrs, label)
        self.calls.append((name, list(operands), canonical, label))
        return [self.new(t) for t in types]

    @property
    def names(self) -> list[str]:
        return [name for name, *_ in self.calls]


@pytest.fixture
def b() -> Recorder:
    return Recorder()


@pytest.fixture
def x(b: Recorder) -> MLOperand:
    return b.input("x", "float32", [2, 3])


# what reaches the graph -------------------------------------------------------------------------------------------------


def test_operands_and_attributes_reach_the_graph(b: Recorder, x: MLOperand) -> None:
    y = b.gemm(x, x, b_transpose=True, alpha=2, label="head")
    assert y.shape == (2, 2)
    name, operands, attrs, label = b.calls[0]
    assert (name, operands, label) == ("gemm", [x, x, None], "head")
    assert dict(attrs) == {"alpha": 2.0, "beta": 1.0, "a_transpose": False, "b_transpose": True}


def test_split_returns_a_list(b: Recorder, x: MLOperand) -> None:
    assert [o.shape for o in b.split(x, 3, axis=1)] == [(2, 1)] * 3
    assert [o.shape for o in b.split(x, [2, 1], axis=1)] == [(2, 2), (2, 1)]
    assert [o.shape for o in b.split(x, 1)] == [(2, 3)]


def test_javascript_spelling(b: Recorder, x: MLOperand) -> None:
    js: Any = b
    assert js.reduceMean(x, {"axes": [1], "keepDimensions": True}).shape == [2, 1]
    assert js.clamp(x, {"minValue": 0, "maxValue": 6}).shape == [2, 3]
    assert js.gemm(x, x, {"bTranspose": True}).shape == [2, 2]
    assert js.logicalNot(js.isNaN(x)).dataType() == "uint8"
    assert js.triangular(x, {"upper": False, "diagonal": 1}).shape() == [2, 3]
    assert js.slice(x, [0, 1], [2, 2], {"strides": [1, 2]}).shape == (2, 1)


def test_2024_spelling(b: Recorder, x: MLOperand) -> None:
    condition = b.greater(x, x)
    older: Any = b
    assert older.cast(x, type="int32").data_type == "int32"
    assert older.where(condition, input=x, other=x).shape == (2, 3)
    assert getattr(b, "not")(condition).data_type == "uint8"
    assert b.not_(condition).data_type == "uint8"
    assert b.softmax(x).shape == (2, 3)
    assert b.softplus(x, steepness=2).shape == (2, 3)
    assert b.arg_max(x, axes=[0, 1], select_last_index=True).data_type == "int64"
    assert b.arg_max(x).shape == ()
    assert b.arg_min(x, 1).data_type == "int32"
    assert b.arg_min(x, 1, output_data_type="int64").data_type == "int64"


def test_pywebnn_spelling(b: Recorder, x: MLOperand) -> None:
    other: Any = b
    assert other.pad(x, padding=[0, 1, 2, 3], mode="edge").shape == [4, 7]
    assert other.pad(x, [0, 1, 2, 3]).shape == [4, 7]
    assert b.triangular(x, False, 1).shape == [2, 3]
    assert b.calls[-1][2]["upper"] is False
    assert b.squeeze(b.unsqueeze(x, [0, 3])).shape == [2, 3]
    mask = b.input("mask", "int32", [2, 3])
    assert b.where_(mask, x, x).shape == [2, 3]
    assert b.names[-3:] == ["sub", "notEqual", "where"]
    assert b.where_(b.equal(x, x), x, x).shape == [2, 3]
    assert b.names[-2:] == ["equal", "where"]


POOLS = ("average_pool2d", "l2_pool2d", "max_pool2d")


@pytest.mark.parametrize("name", POOLS)
def test_spellings_of_poolings(b: Recorder, name: str) -> None:
    image = b.input("image", "float32", [1, 2, 7, 8])
    pool = getattr(b, name)
    options = {"window_dimensions": [3, 3], "strides": [2, 2]}
    assert pool(image).shape == [1, 2, 1, 1]
    assert pool(image, **options, padding=[1, 0, 1, 0]).shape == [1, 2, 3, 4]
    assert pool(image, **options, pads=[1, 0, 1, 0], rounding_type="ceil").shape == [1, 2, 4, 4]
    assert pool(image, {"windowDimensions": [3, 3], "roundingType": "ceil", "label": "js"}).shape == [1, 2, 5, 6]
    assert b.calls[-1][3] == "js"
    older = {"roundingType": "ceil", "outputShapeRounding": "floor"}
    with pytest.raises(MLTypeError, match=f"{name}: output_shape_rounding is given twice"):
        pool(image, older)
    with pytest.raises(MLTypeError, match=f"{name}: padding is given twice"):
        pool(image, padding=[0, 0, 0, 0], pads=[1, 0, 0, 0])
    with pytest.raises(ValueError, match="Pool2d input must be 4D"):
        pool(b.input("flat", "float32", [2, 3]))
    with pytest.raises(ValueError, match="Invalid layout"):
        pool(image, layout="chwn")


@pytest.mark.parametrize("name", ["global_average_pool", "global_l2_pool", "global_max_pool"])
def test_helpers_that_pool_whole_images(b: Recorder, name: str) -> None:
    image = b.input("image", "float32", [2, 3, 7, 8])
    pool = getattr(b, name)
    assert pool(image).shape == [2, 3, 1, 1]
    assert pool(image, layout="nhwc", label="head").shape == [2, 1, 1, 8]
    operator, operands, attrs, label = b.calls[-1]
    assert (operator, operands, label) == (f"{snake_case(name)[7:-5]}Pool2d", [image], "head")
    assert (attrs["layout"], attrs["window_dimensions"]) == ("nhwc", (3, 7))
    with pytest.raises(ValueError, match=rf"{name}: Global pooling input must be 4D; got input float32\[2, 3\] of rank 2"):
        pool(b.input("flat", "float32", [2, 3]))
    with pytest.raises(ValueError, match=f"{name}: Invalid layout"):
        pool(image, layout="chwn")
    with pytest.raises(MLTypeError, match=rf"{name}\('x'\): input must be an operand; got 1"):
        pool(1, label="x")
    if name != "global_max_pool":
        with pytest.raises(MLTypeError, match=f"{name}: input data type is not allowed"):
            pool(b.input("whole", "int32", [2, 3, 7, 8]))


def test_spellings_of_resampling_and_cumulative_sums(b: Recorder, x: MLOperand) -> None:
    js: Any = b
    image = b.input("image", "float32", [1, 2, 7, 8])
    assert js.resample2d(image, {"mode": "linear", "sizes": [3, 4], "axes": [3, 2]}).shape == [1, 2, 4, 3]
    assert js.resample2d(image).shape == [1, 2, 7, 8]
    assert js.resample2d(image, scales=np.float32([2, 0.5])).shape == [1, 2, 14, 4]
    assert js.cumulativeSum(x, 1, {"exclusive": True}).shape == [2, 3]
    assert dict(b.calls[-1][2]) == {"axis": 1, "exclusive": True, "reversed": False}
    assert js.cumulative_sum(x, axis=0, reversed=True).shape == [2, 3]


def test_hard_swish_with_numbers_of_its_own(b: Recorder, x: MLOperand) -> None:
    b.hard_swish(x, alpha=1 / 6, beta=0.5)
    assert b.names == ["hardSwish"]
    b.hard_swish(x, alpha=0.25)
    assert b.names[1:] == ["hardSigmoid", "mul"]
    assert dict(b.calls[1][2]) == {"alpha": 0.25, "beta": 0.5}
    assert b.calls[2][1][0] is x


@pytest.mark.parametrize(
    ("call", "shape"),
    [
        (lambda b, x: b.squeeze(b.reshape(x, [1, 2, 1, 3])), (2, 3)),
        (lambda b, x: b.squeeze(b.reshape(x, [1, 2, 1, 3]), [2]), (1, 2, 3)),
        (lambda b, x: b.squeeze(b.reshape(x, [1, 2, 1, 3]), axes=[]), (1, 2, 1, 3)),
        (lambda b, x: b.unsqueeze(x, [0, 2]), (1, 2, 1, 3)),
        (lambda b, x: b.unsqueeze(x, axes=[3, 0]), (1, 2, 3, 1)),
        (lambda b, x: b.flatten(b.reshape(x, [1, 2, 3])), (1, 6)),
        (lambda b, x: b.flatten(x, 0), (1, 6)),
        (lambda b, x: b.flatten(x, axis=2), (6, 1)),
    ],
)
def test_helpers_over_reshape(b: Recorder, x: MLOperand, call: Any, shape: tuple[int, ...]) -> None:
    assert call(b, x).shape == shape
    assert b.names[-1] == "reshape"


# activations --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ACTIVATIONS)
def test_a_call_without_an_operand_makes_an_activation(b: Recorder, x: MLOperand, kind: str) -> None:
    activation = getattr(b, kind)()
    assert isinstance(activation, MLActivation)
    assert b.calls == []
    assert activation.apply(x).shape == (2, 3)
    assert [OPS[n].python_name for n in b.names] == [kind]


def test_an_activation_carries_its_options(b: Recorder, x: MLOperand) -> None:
    activation = b.clamp(min_value=0, max_value=6, label="limit")
    assert repr(activation) == "MLActivation(clamp, min_value=0, max_value=6)"
    activation.apply(x)
    assert b.calls == [("clamp", [x], {"min_value": 0, "max_value": 6}, "limit")]
    swish = b.hard_swish(alpha=0.25)
    swish.apply(x)
    assert b.names[1:] == ["hardSigmoid", "mul"]


def test_javascript_activation(b: Recorder) -> None:
    js: Any = b
    assert repr(js.leakyRelu({"alpha": 0.5})) == "MLActivation(leaky_relu, alpha=0.5)"


def vector(b: Recorder, name: str) -> MLOperand:
    return b.input(name, "float32", [3])


def test_batch_normalization_applies_its_activation(b: Recorder, x: MLOperand) -> None:
    mean, variance = vector(b, "mean"), vector(b, "variance")
    assert b.batch_normalization(x, mean, variance, activation=b.softmax()).shape == (2, 3)
    assert b.names == ["batchNormalization", "softmax"]
    assert b.calls[0][1] == [x, mean, variance, None, None]


REFUSED = {
    "clamp bounds of an activation": (
        lambda b, x: b.clamp(min_value=2, max_value=1, label="a"),
        "clamp('a'): min_value must be <= max_value, compared as the input's data type; got min_value=2.0, max_value=1.0. "
        "See https://www.w3.org/TR/webnn/#api-mlgraphbuilder-clamp",
    ),
    "axis of an activation": (
        lambda b, x: b.softmax(axis=1),
        "softmax: an activation has no axis: it is applied to the last dimension of a 2-D result; got axis=1. "
        "See https://www.w3.org/TR/webnn/#api-mlgraphbuilder-softmax-method",
    ),
    "not an activation": (
        lambda b, x: b.batch_normalization(x, vector(b, "m"), vector(b, "v"), activation="relu", label="n"),
        "batch_normalization('n'): activation must be an activation; got 'relu' (str); "
        "allowed: MLActivation, as builder.relu() returns it",
    ),
    "activation of another builder": (
        lambda b, x: b.batch_normalization(x, vector(b, "m"), vector(b, "v"), activation=Recorder().relu()),
        "batch_normalization: activation must belong to the builder it is used with; got MLActivation(relu)",
    ),
    "softmax activation that is not 2-D": (
        lambda b, x: b.batch_normalization(b.reshape(x, [1, 3, 2]), vector(b, "m"), vector(b, "v"), activation=b.softmax()),
        "batch_normalization: softmax as an activation takes 2-D results only; got a result of rank 3; allowed: rank 2. "
        "Call builder.softmax(operand, axis) on the result instead",
    ),
    "number as operand": (
        lambda b, x: b.add(x, 2.0, label="sum"),
        "add('sum'): b must be an operand; got 2.0 (float); allowed: MLOperand. "
        "Make a number an operand with builder.constant('float32', 2.0). "
        "See https://www.w3.org/TR/webnn/#api-mlgraphbuilder-binary",
    ),
    "number of the other operand's type": (
        lambda b, x: b.mul(3, b.cast(x, "int8")),
        "mul: a must be an operand; got 3 (int); allowed: MLOperand. "
        "Make a number an operand with builder.constant('int8', 3). "
        "See https://www.w3.org/TR/webnn/#api-mlgraphbuilder-binary",
    ),
    "array as operand": (
        lambda b, x: b.matmul(x, np.ones(2, np.float32)),
        "matmul: b must be an operand; got array([1., 1.], dtype=float32) (ndarray); allowed: MLOperand. "
        "Make an array an operand with builder.constant(array). "
        "See https://www.w3.org/TR/webnn/#api-mlgraphbuilder-matmul",
    ),
    "None as operand": (
        lambda b, x: b.abs(None),
        "abs: input must be an operand; got None (NoneType); allowed: MLOperand. "
        "See https://www.w3.org/TR/webnn/#api-mlgraphbuilder-unary",
    ),
    "number among the operands of concat": (
        lambda b, x: b.concat([x, 1], 0),
        "concat: inputs[1] must be an operand; got 1 (int); allowed: MLOperand. "
        "Make a number an operand with builder.constant('float32', 1). "
        "See https://www.w3.org/TR/webnn/#api-mlgraphbuilder-concat",
    ),
    "one operand to concat": (
        lambda b, x: b.concat(x, 0),
        "concat: inputs must be a list of operands; got MLOperand('x', float32[2, 3]) (MLOperand); "
        "allowed: a sequence of MLOperand. See https://www.w3.org/TR/webnn/#api-mlgraphbuilder-concat",
    ),
    "softmax without axis": (
        lambda b, x: b.softmax(b.reshape(x, [6])),
        "softmax: axis is required unless rank(input) is 2; got input float32[6]; allowed: axis 0..0. "
        "See https://www.w3.org/TR/webnn/#api-mlgraphbuilder-softmax-method",
    ),
    "negative axis": (
        lambda b, x: b.softmax(x, -1),
        "softmax: axis must be an unsigned 32-bit integer; got -1; allowed: 0..4294967295. "
        "An axis counts from the first dimension, which is 0. "
        "See https://www.w3.org/TR/webnn/#api-mlgraphbuilder-softmax-method",
    ),
    "half of the padding": (
        lambda b, x: b.pad(x, [1, 1]),
        "pad: without ending_padding, padding must hold all beginnings and then all ends; "
        "got [1, 1], input float32[2, 3]; allowed: 4 items. See https://www.w3.org/TR/webnn/#api-mlgraphbuilder-pad",
    ),
    "squeeze of a long dimension": (
        lambda b, x: b.squeeze(x, [1]),
        "squeeze: dimensions to squeeze must have size 1; got axis 1 of input float32[2, 3]. "
        "See https://www.w3.org/TR/webnn/#api-mlgraphbuilder-reshape-method",
    ),
    "unsqueeze twice in one place": (
        lambda b, x: b.unsqueeze(x, [0, 0], label="u"),
        "unsqueeze('u'): axes must be unique: Duplicate axis 0; got axes=[0, 0]. "
        "See https://www.w3.org/TR/webnn/#api-mlgraphbuilder-reshape-method",
    ),
    "flatten beyond the rank": (
        lambda b, x: b.flatten(x, 3),
        "flatten: axis must be < rank(input): Axis 3 out of bounds for rank 3; got axis=3, input float32[2, 3]; "
        "allowed: 0..2. See https://www.w3.org/TR/webnn/#api-mlgraphbuilder-reshape-method",
    ),
    "option that is none": (
        lambda b, x: b.transpose(x, permutatoin=[1, 0], label="t"),
        "transpose('t'): unknown option 'permutatoin'; allowed: input, permutation, label. Did you mean permutation?",
    ),
    "option by position": (
        lambda b, x: b.reverse(x, [1, 0]),
        "reverse: too many positional arguments; allowed: reverse(input, *, axes=, label=)",
    ),
    "more options by position than pywebnn takes": (
        lambda b, x: b.transpose(x, [1, 0], "label"),
        "transpose: too many positional arguments; allowed: transpose(input, *, permutation=, label=)",
    ),
    "missing argument": (
        lambda b, x: b.reshape(x),
        "reshape: missing a required argument: 'new_shape'; allowed: reshape(input, new_shape, *, label=)",
    ),
    "hard_swish with infinity": (
        lambda b, x: b.hard_swish(x, alpha=float("inf")),
        f"hard_swish: alpha must be finite; got inf. See https://www.w3.org/TR/webnn/{OPS['hardSwish'].spec}",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_refused_calls_say_why(b: Recorder, x: MLOperand, case: str) -> None:
    call, message = REFUSED[case]
    with pytest.raises(MLTypeError) as raised:
        call(b, x)
    assert str(raised.value) == message


def test_a_refused_composite_adds_nothing(b: Recorder, x: MLOperand) -> None:
    mask, foreign = b.input("mask", "int32", [2, 3]), Recorder().input("f", "float32", [2, 3])
    wide = b.input("wide", "float32", [2, 4])
    for other in (wide, foreign):
        with pytest.raises(MLTypeError, match=r"^where: "):
            b.where_(mask, x, other)
    with pytest.raises(MLTypeError):
        b.batch_normalization(x, vector(b, "m"), vector(b, "v"), activation=Recorder().relu())
    assert b.calls == []


# operands -------------------------------------------------------------------------------------------------------------------


def test_operand_attributes(x: MLOperand, b: Recorder) -> None:
    assert x.shape == (2, 3)
    assert x.shape == [2, 3]
    assert [2, 3] == x.shape
    assert x.shape != [2, 4]
    assert not x.shape != [2, 3]
    assert hash(x.shape) == hash((2, 3))
    assert {x.shape: 1}[(2, 3)] == 1
    assert np.zeros(x.shape).shape == (2, 3)
    assert json.dumps([x.shape, x.data_type]) == '[[2, 3], "float32"]'
    assert (x.shape(), x.data_type(), x.dimensions, x.rank) == ((2, 3), "float32", (2, 3), 2)
    assert x.dataType() == "float32"
    assert (x.name, b.abs(x).name, x.builder) == ("x", None, b)
    assert repr(x) == "MLOperand('x', float32[2, 3])"
    assert repr(b.reshape(x, [6])) == "MLOperand(float32[6])"


@pytest.mark.parametrize("name", ["shape", "data_type", "name", "builder", "value", "color"])
def test_operand_attributes_are_read_only(x: MLOperand, name: str) -> None:
    with pytest.raises(AttributeError):
        setattr(x, name, None)


def test_unknown_names(b: Recorder, x: MLOperand) -> None:
    with pytest.raises(AttributeError, match=r"^'Recorder' object has no attribute 'reduceMeen'\. Did you mean reduce_mean\?$"):
        _ = b.reduceMeen
    with pytest.raises(AttributeError, match=r"^'MLOperand' object has no attribute 'datType'\. Did you mean data_type\?$"):
        _ = x.datType
    with pytest.raises(AttributeError, match=r"^'Recorder' object has no attribute '_secret'$"):
        _ = b._secret
    for name in ("log_softmax", "logSoftmax"):
        with pytest.raises(
            AttributeError, match=rf"^'Recorder' object has no attribute '{name}'\. Did you mean ext\.log_softmax\?$"
        ):
            getattr(b, name)
    assert not hasattr(b, "conv9d")
