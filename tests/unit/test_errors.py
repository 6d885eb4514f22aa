from __future__ import annotations

import copy
import pickle

import pytest

from webnn_wgpu.core import errors
from webnn_wgpu.core.data_types import numpy_dtype
from webnn_wgpu.core.errors import (
    DeviceLostError,
    DOMException,
    InvalidStateError,
    MLTensorStateError,
    MLTypeError,
    NotSupportedError,
    OperationError,
    OutOfMemoryError,
    SecurityError,
    UnknownError,
    WebNNError,
    printable,
)
from webnn_wgpu.ir.types import TensorType
from webnn_wgpu.ops import OPS

ALL = (
    MLTypeError,
    MLTensorStateError,
    InvalidStateError,
    OperationError,
    NotSupportedError,
    UnknownError,
    SecurityError,
    OutOfMemoryError,
    DeviceLostError,
)


def test_a_whole_message() -> None:
    error = MLTypeError(
        "axis must be < rank(input)",
        operator="softmax",
        label="scores",
        got="axis=3, input float32[2, 4]",
        allowed="0..1",
        hint="Axes count from the outermost",
        spec="#api-mlgraphbuilder-softmax-method",
    )
    assert str(error) == (
        "softmax('scores'): axis must be < rank(input); got axis=3, input float32[2, 4]; allowed: 0..1. "
        "Axes count from the outermost. See https://www.w3.org/TR/webnn/#api-mlgraphbuilder-softmax-method"
    )


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        ({}, "broken"),
        ({"operator": "add"}, "add: broken"),
        ({"label": "x"}, "('x'): broken"),
        ({"got": "1"}, "broken; got 1"),
        ({"allowed": "2"}, "broken; allowed: 2"),
        ({"hint": "Try that."}, "broken. Try that."),
        ({"spec": "#a"}, "broken. See https://www.w3.org/TR/webnn/#a"),
    ],
)
def test_absent_parts_are_left_out(parts: dict[str, str], message: str) -> None:
    assert str(MLTypeError("broken", **parts)) == message


@pytest.mark.parametrize("kind", ALL)
def test_the_fields_stay_on_the_exception(kind: type[WebNNError]) -> None:
    parts = {"operator": "op", "label": "\u202elabel", "got": "g", "allowed": "a", "hint": "h", "spec": "#s"}
    error = kind("rule", **parts)
    for same in (error, copy.copy(error), pickle.loads(pickle.dumps(error))):
        assert {name: getattr(same, name) for name in parts} == parts
        assert same.rule == "rule"
        assert type(same) is kind
        assert str(same) == str(error)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain text, Größe, 名前, 🙂", "plain text, Größe, 名前, 🙂"),
        ("a\nb\tc\x00\x1b[31m", "a\\nb\\tc\\x00\\x1b[31m"),
        ("\u202a\u202b\u202c\u202d\u202e", "\\u202a\\u202b\\u202c\\u202d\\u202e"),
        ("\u2066\u2067\u2068\u2069", "\\u2066\\u2067\\u2068\\u2069"),
        ("\u200e\u200f\u061c\u2028\u00a0", "\\u200e\\u200f\\u061c\\u2028\\xa0"),
        ("lone \ud800", "lone \\ud800"),
    ],
)
def test_control_and_bidirectional_characters_are_escaped(text: str, shown: str) -> None:
    assert printable(text) == shown
    for part in ("operator", "label", "got", "allowed", "hint"):
        assert shown in str(OperationError("rule", **{part: text}))
    assert shown in str(OperationError(text))


@pytest.mark.parametrize("kind", ALL)
def test_kinds_are_pythons_too(kind: type[WebNNError]) -> None:
    assert issubclass(kind, WebNNError)
    bases = {
        MLTypeError: (TypeError, ValueError),
        MLTensorStateError: (MLTypeError, TypeError, ValueError, RuntimeError),
        OutOfMemoryError: (UnknownError, MemoryError, RuntimeError),
        DeviceLostError: (InvalidStateError, RuntimeError),
    }.get(kind, (DOMException, RuntimeError))
    assert all(issubclass(kind, base) for base in bases)
    if issubclass(kind, DOMException):
        name = {OutOfMemoryError: "UnknownError", DeviceLostError: "InvalidStateError"}.get(kind, kind.__name__)
        assert kind("x").name == name


def test_every_error_is_tested() -> None:
    found = {e for e in vars(errors).values() if isinstance(e, type) and issubclass(e, WebNNError)}
    assert found == {*ALL, WebNNError, DOMException}


SPEC = "See https://www.w3.org/TR/webnn/#api-mlgraphbuilder-"


@pytest.mark.parametrize(
    ("op", "inputs", "attrs", "message"),
    [
        (
            "add",
            ["float32[2, 3]", "float32[4]"],
            {},
            "add('here'): Incompatible shapes: operands must broadcast together, each dimension equal or 1; "
            f"got a float32[2, 3], b float32[4]. {SPEC}binary",
        ),
        (
            "add",
            ["float32[2]", "int32[2]"],
            {},
            f"add('here'): b data type must equal a data type; got b int32[2]; allowed: float32. {SPEC}binary",
        ),
        ("add", ["float32[2]", None], {}, f"add('here'): b is required; got None; allowed: an operand. {SPEC}binary"),
        (
            "exp",
            ["int32[2]"],
            {},
            f"exp('here'): input data type is not allowed; got input int32[2]; allowed: float32, float16. {SPEC}unary",
        ),
        (
            "isNaN",
            ["uint8[]"],
            {},
            f"is_nan('here'): a data type is not allowed; got a uint8[]; allowed: float32, float16. {SPEC}logical",
        ),
        (
            "elu",
            ["float32[2]"],
            {"alpha": float("nan")},
            f"elu('here'): alpha must be finite; got nan. {SPEC}elu",
        ),
        (
            "elu",
            ["float32[2]"],
            {"aplha": 1},
            f"elu('here'): unknown option 'aplha'; allowed: alpha. {SPEC}elu",
        ),
        (
            "clamp",
            ["uint8[2]"],
            {"min_value": 7.5, "max_value": 3},
            "clamp('here'): min_value must be <= max_value, compared as the input's data type; "
            f"got min_value=8, max_value=3. {SPEC}clamp",
        ),
        ("cast", ["uint8[2]"], {}, f"cast('here'): data_type is required; got None. {SPEC}cast"),
        (
            "cast",
            ["uint8[2]"],
            {"data_type": "float64"},
            "cast('here'): data_type must be a data type; got 'float64'; allowed: float32, float16, int32, uint32, "
            f"int64, uint64, int8, uint8. {SPEC}cast",
        ),
        (
            "reshape",
            ["float32[2, 3]"],
            {"new_shape": [4, 2]},
            "reshape('here'): Reshape requires same number of elements; got new_shape=[4, 2] (8 elements), "
            f"input float32[2, 3]; allowed: a shape of 6 elements. {SPEC}reshape-method",
        ),
        (
            "transpose",
            ["float32[2, 3]"],
            {"permutation": [0, 0]},
            f"transpose('here'): permutation must be unique: Duplicate axis 0; got permutation=[0, 0]. {SPEC}transpose",
        ),
        (
            "where",
            ["float32[2]", "int8[2]", "int8[2]"],
            {},
            f"where('here'): condition data type is not allowed; got condition float32[2]; allowed: uint8. {SPEC}where",
        ),
        (
            "expand",
            ["float32[1]"],
            {"new_shape": [1] * 9},
            "expand('here'): output rank is not supported; got float32[1, 1, 1, 1, 1, 1, 1, 1, 1] "
            "from input float32[1], new_shape=[1, 1, 1, 1, 1, 1, 1, 1, 1]; "
            f"allowed: rank 0..8. {SPEC}expand",
        ),
        (
            "expand",
            ["float32[1]"],
            {"new_shape": [65536, 65536]},
            "expand('here'): output dimensions and element count must be valid dimensions; got float32[65536, 65536] "
            "from input float32[1], new_shape=[65536, 65536]; "
            f"allowed: 1..2147483647. {SPEC}expand",
        ),
    ],
)
def test_refusals(op: str, inputs: list[str | None], attrs: dict[str, object], message: str) -> None:
    with pytest.raises(MLTypeError) as raised:
        OPS[op].check([None if text is None else _type(text) for text in inputs], attrs, "here")
    assert str(raised.value) == message
    assert raised.value.operator == OPS[op].python_name


def _type(text: str) -> TensorType:
    data_type, _, dims = text.rstrip("]").partition("[")
    assert numpy_dtype(data_type)
    return TensorType(data_type, tuple(int(d) for d in dims.split(",") if d))
