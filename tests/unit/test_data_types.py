from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support import type_of
from webnn_wgpu.core.data_types import ANY, DATA_TYPES, FLOATS, cast_number, numpy_dtype
from webnn_wgpu.core.errors import MLTypeError
from webnn_wgpu.ir.types import TensorType
from webnn_wgpu.ops import OPS
from webnn_wgpu.ops._attrs import REQUIRED, Attr, AttrKind

INTEGERS = tuple(t for t in ANY if t not in FLOATS)


def test_the_specifications_table() -> None:
    sizes = {t.name: t.size_bytes for t in DATA_TYPES.values()}
    assert sizes == {
        "float32": 4, "float16": 2, "int32": 4, "uint32": 4, "int64": 8, "uint64": 8, "int8": 1, "uint8": 1
    }  # fmt: skip
    assert all(numpy_dtype(name).name == name for name in sizes)
    assert [t.kind for t in DATA_TYPES.values()] == ["float", "float", "int", "uint"] + ["int", "uint"] * 2


# ------------------------------------------------------------------------------- numbers given as options and scalars


@pytest.mark.parametrize(
    ("value", "data_type", "expected"),
    [
        (300, "uint8", 255),
        (-1, "uint8", 0),
        (2.5, "int8", 2),
        (3.5, "int8", 4),
        (-0.5, "int8", 0),
        (-129.0, "int8", -128),
        (math.nan, "int32", 0),
        (math.inf, "int32", 2**31 - 1),
        (-math.inf, "uint64", 0),
        (math.inf, "uint64", 2**64 - 1),
        (4294967295, "uint32", 4294967295),
        (9007199254740995, "int64", 9007199254740995),
        (-(2**70), "int64", -(2**63)),
        (1e300, "int64", 2**63 - 1),
        (65519, "float16", 65504.0),
        (65520, "float16", math.inf),
        (-65520.0, "float16", -math.inf),
        (0.1, "float16", 0.0999755859375),
        (1e39, "float32", math.inf),
        (10**400, "float32", math.inf),
        (-(10**400), "float16", -math.inf),
        (2**24 + 1, "float32", 2.0**24),
        (2**24 + 3, "float32", 2.0**24 + 4),
        # A tie but for the last bit, which float64 would already have lost.
        (2**60 + 2**36 + 1, "float32", 2.0**60 + 2.0**37),
        (-(2**60) - 2**36 - 1, "float32", -(2.0**60) - 2.0**37),
        (2**60 + 2**36, "float32", 2.0**60),
    ],
)
def test_numbers_are_cast(value: float, data_type: str, expected: float) -> None:
    found = cast_number(value, data_type)
    assert found == expected
    assert type(found) is (float if data_type in FLOATS else int)


def test_nan_and_negative_zero_stay() -> None:
    for data_type in FLOATS:
        assert math.isnan(cast_number(math.nan, data_type))
        assert math.copysign(1, cast_number(-1e-60, data_type)) == -1


@settings(max_examples=300)
@given(st.integers(-(2**70), 2**70) | st.floats(allow_infinity=False, allow_nan=False), st.sampled_from(ANY))
def test_casting_is_rounding_the_exact_number_to_nearest_even(value: float, data_type: str) -> None:
    found, exact = cast_number(value, data_type), Fraction(value)
    if data_type in INTEGERS:
        limits = np.iinfo(data_type)
        assert found == min(max(round(exact), int(limits.min)), int(limits.max))
        return
    dtype = np.dtype(data_type)
    limit = Fraction(float(np.finfo(dtype).max))
    if math.isinf(found):
        assert abs(exact) > limit
        return
    here = dtype.type(found)
    for other in (np.nextafter(here, dtype.type(np.inf)), np.nextafter(here, dtype.type(-np.inf))):
        if np.isfinite(other):
            away, near = abs(Fraction(float(other)) - exact), abs(Fraction(found) - exact)
            even = int(np.asarray(here).view(f"u{dtype.itemsize}")) % 2 == 0
            assert near < away or (near == away and even)


# -------------------------------------------------------------------------------------------------- options' conversion


def convert(kind: AttrKind, value: object, **more: object) -> object:
    def fail(rule: str, **parts: str) -> MLTypeError:
        return MLTypeError(rule, operator="op", **parts)

    return Attr("x", kind, **more).convert(value, fail)  # pyright: ignore[reportArgumentType] - defaults of any type


@pytest.mark.parametrize(
    ("kind", "value", "expected"),
    [
        ("uint", 3, 3),
        ("uint", np.int64(3), 3),
        ("uint", np.uint8(3), 3),
        ("uint", 3.0, 3),
        ("uint", 2**32 - 1, 2**32 - 1),
        ("int", -3, -3),
        ("int", np.float32(-2), -2),
        ("uints", [1, 2], (1, 2)),
        ("uints", (), ()),
        ("uints", np.array([1, 2]), (1, 2)),
        ("uints", range(3), (0, 1, 2)),
        ("splits", 2, 2),
        ("splits", [1, 2], (1, 2)),
        ("splits", np.array([1, 2]), (1, 2)),
        ("bool", 1, True),
        ("bool", "", False),
        ("float", 1, 1.0),
        ("float", np.float16(0.5), 0.5),
        ("number", 2**70, 2**70),
        ("number", np.int8(-3), -3),
        ("number", math.inf, math.inf),
    ],
)
def test_values_are_made_canonical(kind: AttrKind, value: object, expected: object) -> None:
    found = convert(kind, value)
    assert found == expected
    assert type(found) is type(expected)


@pytest.mark.parametrize(
    ("kind", "value", "message"),
    [
        ("uint", True, "op: x must be an integer; got True (bool)"),
        ("uint", np.True_, f"op: x must be an integer; got {np.True_!r} (bool)"),
        ("uint", "3", "op: x must be an integer; got '3' (str)"),
        ("uint", 1.5, "op: x must be an integer; got 1.5"),
        ("uint", math.nan, "op: x must be an integer; got nan"),
        ("uint", math.inf, "op: x must be an integer; got inf"),
        ("uint", -1, "op: x must be an unsigned 32-bit integer; got -1; allowed: 0..4294967295"),
        ("uint", 2**32, "op: x must be an unsigned 32-bit integer; got 4294967296; allowed: 0..4294967295"),
        ("int", 2**31, "op: x must be a signed 32-bit integer; got 2147483648; allowed: -2147483648..2147483647"),
        ("uints", 3, "op: x must be a list of unsigned integers; got 3 (int)"),
        ("uints", "12", "op: x must be a list of unsigned integers; got '12' (str)"),
        ("uints", [1, -1], "op: x must be an unsigned 32-bit integer; got -1; allowed: 0..4294967295"),
        ("splits", "ab", "op: x must be an integer; got 'ab' (str)"),
        ("float", math.inf, "op: x must be finite; got inf"),
        ("float", 10**400, f"op: x must be finite; got {str(10**400)[:117]}..."),
        ("float", True, "op: x must be a number; got True (bool)"),
        ("number", "1", "op: x must be a number; got '1' (str)"),
        ("number", True, "op: x must be a number; got True (bool)"),
    ],
)
def test_values_are_refused(kind: AttrKind, value: object, message: str) -> None:
    with pytest.raises(MLTypeError) as raised:
        convert(kind, value)
    assert str(raised.value) == message.replace("(bool)", f"({type(value).__name__})")


def test_none_means_absent() -> None:
    assert convert("uint", None, default=7) == 7
    assert convert("uints", None, default=None) is None
    with pytest.raises(MLTypeError, match=r"^op: x is required; got None$"):
        convert("uint", None, default=REQUIRED)


def test_enums() -> None:
    assert convert("enum", "a", allowed=("a", "b")) == "a"
    for wrong in ("c", 1, "A"):
        with pytest.raises(MLTypeError) as raised:
            convert("enum", wrong, allowed=("a", "b"))
        assert str(raised.value) == f"op: Invalid x; got {wrong!r}; allowed: a, b"
    assert convert("data_type", "int8") == "int8"
    with pytest.raises(MLTypeError, match=r"op: x must be a data type; got 'int8'; allowed: int32"):
        convert("data_type", "int8", allowed=("int32",))


# ---------------------------------------------------------------------------------------------------------------- types


def test_tensor_types() -> None:
    t = TensorType("float16", (2, 3))
    assert (t.rank, t.num_elements, t.size_bytes, str(t)) == (2, 6, 12, "float16[2, 3]")
    assert TensorType("int8", ()).num_elements == 1
    assert t.with_data_type("int64").size_bytes == 48
    assert type_of(np.zeros((2, 3), t.numpy)) == t


def test_canonical_attributes_stay_what_they_are() -> None:
    _, attrs = OPS["clamp"].check([TensorType("int8", (2,))], {"min_value": -1000, "max_value": math.nan})
    assert attrs == {"min_value": -128, "max_value": None}
    _, again = OPS["clamp"].check([TensorType("int8", (2,))], attrs)
    assert again == attrs
