from __future__ import annotations

import gc
import mmap
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import webnn_wgpu as wn
from tests.api.graphs import F32X3, X
from tests.support import Device
from webnn_wgpu.api.progress import UPLOADING
from webnn_wgpu.runtime.weights import WeightStore


def values(context: wn.MLContext, builder: wn.MLGraphBuilder, operand: wn.MLOperand) -> Any:
    """Return what a constant holds, by a graph that copies it."""
    return context.compute(builder.build({"y": builder.identity(operand)}), {})["y"]


# constants ------------------------------------------------------------------------------------------------------------

FORMS: dict[str, tuple[tuple[Any, ...], dict[str, Any], str, Any]] = {
    "descriptor": (({"dataType": "int32", "shape": [2]}, np.int32([1, 2])), {}, "int32[2]", [1, 2]),
    "descriptor, snake case": (({"data_type": "int32", "dimensions": [2]}, [1, 2]), {}, "int32[2]", [1, 2]),
    "descriptor, raw bytes": (({"dataType": "int32", "shape": [1]}, b"\1\0\0\0"), {}, "int32[1]", [1]),
    "descriptor, reshaped": (({"dataType": "int8", "shape": [2, 1]}, np.int8([1, 2])), {}, "int8[2, 1]", [[1], [2]]),
    "descriptor by name": ((), {"descriptor": F32X3, "buffer": X}, "float32[3]", X.tolist()),
    "2026 scalar": (("int8", 7), {}, "int8[]", 7),
    "2026 scalar, saturated": (("uint8", 300.5), {}, "uint8[]", 255),
    "2026 scalar, ties to even": (("int32", 2.5), {}, "int32[]", 2),
    "2026 scalar, infinity": (("float32", float("inf")), {}, "float32[]", np.inf),
    "2026 scalar, NaN to integer": (("int32", float("nan")), {}, "int32[]", 0),
    "2026 scalar by name": ((), {"dataType": "float32", "value": 2}, "float32[]", 2),
    "2024 scalar": ((7,), {}, "float32[]", 7),
    "2024 scalar with type": ((7, "int8"), {}, "int8[]", 7),
    "2024 scalar, type by name": ((7,), {"type": "uint32"}, "uint32[]", 7),
    "numpy scalar": ((np.float32(1.5), "float32"), {}, "float32[]", 1.5),
    "range": ((0, 3, 1, "float32"), {}, "float32[3]", [0, 1, 2]),
    "range downwards": ((3, 0, -2, "int32"), {}, "int32[2]", [3, 1]),
    "range of fractions": ((0, 1, 0.5, "float32"), {}, "float32[2]", [0, 0.5]),
    "array": ((np.uint8([[1, 2]]),), {}, "uint8[1, 2]", [[1, 2]]),
    "array with shape and type": ((np.arange(4), [2, 2], "float32"), {}, "float32[2, 2]", [[0, 1], [2, 3]]),
    "array with names": ((np.arange(4),), {"shape": [2, 2], "dtype": np.int32}, "int32[2, 2]", [[0, 1], [2, 3]]),
    "list": (([1, 2.5],), {}, "float32[2]", [1, 2.5]),
    "list of a type": (([1, 2], None, "int8"), {}, "int8[2]", [1, 2]),
    "number with shape": ((2,), {"shape": [3]}, "float32[3]", [2, 2, 2]),
}


@pytest.mark.parametrize("form", FORMS)
def test_forms_of_constant(anywhere: wn.MLContext, form: str) -> None:
    args, kwargs, expected_type, expected = FORMS[form]
    builder = wn.MLGraphBuilder(anywhere)
    constant = builder.constant(*args, **kwargs)
    assert str(constant.type) == expected_type
    assert values(anywhere, builder, constant).tolist() == expected


@pytest.mark.parametrize(
    ("args", "kwargs", "message"),
    [
        ((), {}, "constant: data must be tensor data in the host's memory; got NoneType"),
        ((None,), {}, "constant: data must be tensor data in the host's memory; got NoneType"),
        ((True,), {}, "constant: data must be tensor data in the host's memory; got bool"),
        ((F32X3,), {}, "constant: data must be tensor data in the host's memory; got NoneType"),
        ((F32X3, X[:2]), {}, "constant: data must have exactly the tensor's bytes: Shape mismatch; got float32[2] of 8 bytes;"),
        ((F32X3, np.zeros(3)), {}, "constant: data must have the tensor's data type; got float64 array of shape [3];"),
        ((F32X3, X, "float32"), {}, "constant: too many arguments; got 'float32' as argument 3"),
        (({"dataType": "float32"}, 1.0), {}, "constant: a descriptor must have a shape"),
        (("float32",), {}, "constant: a scalar constant needs a number; got None (NoneType)"),
        (("float32", True), {}, "constant: a scalar constant needs a number; got True (bool)"),
        (("float32", "1"), {}, "constant: a scalar constant needs a number; got '1' (str)"),
        (("float64", 1), {}, "constant: unknown data type; got 'float64'; allowed: float32, float16, int32,"),
        ((1, "int4x"), {}, "constant: unknown data type; got 'int4x'; allowed: float32,"),
        ((0, 3, 0, "float32"), {}, "constant: step must not be 0; got start=0, end=3, step=0"),
        ((0, -3, 1, "float32"), {}, "constant: the sequence has no elements; got start=0, end=-3, step=1"),
        (
            (0, float("inf"), 1, "float32"),
            {},
            "constant: start, end and step must be finite numbers; got start=0, end=inf, step=1",
        ),
        ((np.zeros(2),), {}, "constant: unknown data type; got 'float64'; allowed: float32,"),
        (([[1], [1, 2]],), {}, "constant: data is no array: "),
        (
            (X,),
            {"shape": [2]},
            "constant: data must have exactly the tensor's bytes: Shape mismatch; got float32[3] of 12 bytes;",
        ),
        ((X,), {"size": 3}, "constant: unknown option 'size'; allowed: shape, data_type, data, value, descriptor"),
    ],
)
def test_wrong_constants(anywhere: wn.MLContext, args: Any, kwargs: Any, message: str) -> None:
    builder = wn.MLGraphBuilder(anywhere)
    with pytest.raises(TypeError) as caught:
        builder.constant(*args, **kwargs)
    assert str(caught.value).startswith(message)
    assert not builder._values
    assert not builder._constants


def test_constants_are_copied_at_the_call(anywhere: wn.MLContext) -> None:
    builder = wn.MLGraphBuilder(anywhere)
    data, raw = X.copy(), bytearray(X.tobytes())
    operands = [builder.constant(F32X3, data), builder.constant(F32X3, raw), builder.constant(data)]
    data[:] = 0
    raw[:] = bytes(12)
    graph = builder.build({str(i): builder.identity(o) for i, o in enumerate(operands)})
    assert [a.tolist() for a in anywhere.compute(graph, {}).values()] == [X.tolist()] * 3


def shares(builder: wn.MLGraphBuilder, operand: wn.MLOperand, data: Any) -> bool:
    return np.shares_memory(builder._constants[operand.value], data)


def test_memory_that_nobody_can_write_to_is_not_copied(reference: wn.MLContext, tmp_path: Path) -> None:
    builder = wn.MLGraphBuilder(reference)
    frozen = X.copy()
    frozen.flags.writeable = False
    over_bytes = np.frombuffer(X.tobytes(), np.float32)
    file = tmp_path / "weights"
    file.write_bytes(X.tobytes())
    mapped = np.memmap(file, np.float32, "r")
    with file.open("rb") as opened:
        window = np.frombuffer(mmap.mmap(opened.fileno(), 0, access=mmap.ACCESS_READ), np.float32)
    for data in (frozen, frozen[::-1][::-1], over_bytes, mapped, window):
        assert shares(builder, builder.constant(F32X3, data), data)
        assert shares(builder, builder.constant(data), data)


def test_a_read_only_view_of_writable_memory_is_copied(reference: wn.MLContext, tmp_path: Path) -> None:
    builder = wn.MLGraphBuilder(reference)
    file = tmp_path / "weights"
    file.write_bytes(X.tobytes())
    view = X.copy().view()
    view.flags.writeable = False
    private = np.memmap(file, np.float32, "c")
    private.flags.writeable = False
    over_bytearray = np.frombuffer(memoryview(bytearray(12)).toreadonly(), np.float32)
    for data in (view, private, over_bytearray):
        assert not shares(builder, builder.constant(F32X3, data), data)


def test_rules_of_constant_tensors(anywhere: wn.MLContext, fresh: wn.MLContext) -> None:
    builder = wn.MLGraphBuilder(anywhere)
    made, destroyed = (anywhere.create_constant_tensor(F32X3, X) for _ in range(2))
    destroyed.destroy()
    shown = "MLTensor(shape=[3], dtype=float32"
    for tensor, message in (
        (fresh.create_constant_tensor(F32X3, X), f"the tensor belongs to another context; got {shown}, constant)"),
        (destroyed, f"the tensor was destroyed; got {shown}, constant)"),
        (anywhere.create_tensor(F32X3), f"only a tensor made by create_constant_tensor can be a constant; got {shown})"),
    ):
        with pytest.raises(TypeError) as caught:
            builder.constant(tensor)
        assert str(caught.value) == f"constant: {message}"
    builder.build({"y": builder.neg(builder.constant(made))})
    with pytest.raises(wn.InvalidStateError, match="constant: the builder has built its graph"):
        builder.constant(made)
    with pytest.raises(TypeError, match="constant: the tensor was destroyed"):  # before the state of the builder
        builder.constant(destroyed)


def test_a_constant_tensor_destroyed_before_the_build(anywhere: wn.MLContext) -> None:
    made, unused = (anywhere.create_constant_tensor(F32X3, X) for _ in range(2))
    builder = wn.MLGraphBuilder(anywhere)
    y = builder.neg(builder.constant(made))
    builder.neg(builder.constant(unused))
    unused.destroy()
    made.destroy()
    with pytest.raises(TypeError, match="build: a constant tensor was destroyed"):
        builder.build({"y": y})
    other = builder.neg(builder.constant(X))
    assert builder.build({"y": other}) is not None


# inputs ---------------------------------------------------------------------------------------------------------------


def test_spellings_of_input(anywhere: wn.MLContext) -> None:
    builder = wn.MLGraphBuilder(anywhere)
    for i, operand in enumerate(
        (
            builder.input("0", {"dataType": "int8", "shape": [2, 3]}),
            builder.input("1", {"data_type": "int8", "dimensions": (2, 3)}),
            builder.input("2", [2, 3], "int8"),
            builder.input("3", shape=[2, 3], dtype="int8"),
            builder.input("4", (2, 3), np.dtype(np.int8)),
        )
    ):
        assert (operand.name, operand.data_type, operand.shape) == (str(i), "int8", [2, 3])


def test_errors_of_input_in_order(anywhere: wn.MLContext) -> None:
    builder = wn.MLGraphBuilder(anywhere)
    x = builder.input("x", F32X3)
    before = dict(builder._values)
    for name, descriptor, message in (
        ("", {}, "input: name must not be empty"),
        (7, {}, "input: name must be a string; got 7"),
        ("x", {}, "input: name must be unique among the inputs of a builder; got 'x'"),
        ("z", {"shape": [1]}, "input: a descriptor must have a dataType; allowed: float32, float16, int32, uint32, int64,"),
        ("z", {"dataType": "float32"}, "input: a descriptor must have a shape"),
        (
            "z",
            {"dataType": "float32", "shape": [-1]},
            "input: every dimension must be a valid dimension; got shape=[-1]; allowed",
        ),
        ("z", None, "input: unknown data type; got None"),
    ):
        with pytest.raises(TypeError) as caught:
            builder.input(name, descriptor)
        assert str(caught.value).startswith(message)
    assert builder._values == before
    builder.build({"y": builder.neg(x)})
    with pytest.raises(wn.InvalidStateError, match="input: the builder has built its graph"):
        builder.input("", {})


# operators and build --------------------------------------------------------------------------------------------------


def test_nothing_is_added_by_a_call_that_raises(anywhere: wn.MLContext) -> None:
    builder, other = wn.MLGraphBuilder(anywhere), wn.MLGraphBuilder(anywhere)
    x, foreign = builder.input("x", F32X3), other.input("x", F32X3)
    before = (dict(builder._values), list(builder._nodes), dict(builder._constants))
    for call in (
        lambda: builder.add(x, foreign, label="sum"),
        lambda: builder.softmax(x, 5),
        lambda: builder.reshape(x, [4]),
        lambda: builder.split(x, 2),
        lambda: builder.clamp(x, min_value=2, max_value=1),
        lambda: builder.add(x, 2),
        lambda: builder.concat([x, foreign], 0),
    ):
        with pytest.raises(TypeError):
            call()
        assert (builder._values, builder._nodes, builder._constants) == before
    with pytest.raises(TypeError) as caught:
        builder.add(x, foreign, label="sum")
    assert str(caught.value) == "add('sum'): every operand must belong to this builder; got MLOperand('x', float32[3])"


COMPOSITES: dict[str, Callable[[wn.MLGraphBuilder, wn.MLOperand], object]] = {
    "hard_swish": lambda b, x: b.hard_swish(x, alpha=0.25, label="l"),
    "squeeze": lambda b, x: b.squeeze(x, label="l"),
    "unsqueeze": lambda b, x: b.unsqueeze(x, [0], label="l"),
    "flatten": lambda b, x: b.flatten(x, label="l"),
    "where": lambda b, x: b.where_(x, x, x, label="l"),
    "global_average_pool": lambda b, x: b.global_average_pool(x, label="l"),
    "global_l2_pool": lambda b, x: b.global_l2_pool(x, label="l"),
    "global_max_pool": lambda b, x: b.global_max_pool(x, label="l"),
}
"""Methods that add operators of other names."""


@pytest.mark.parametrize("name", COMPOSITES)
def test_methods_made_of_operators_fail_under_their_own_name(anywhere: wn.MLContext, name: str) -> None:
    builder, other = wn.MLGraphBuilder(anywhere), wn.MLGraphBuilder(anywhere)
    x, foreign = (b.input("x", {"dataType": "float32", "shape": [1, 1, 4, 4]}) for b in (builder, other))
    with pytest.raises(TypeError, match=rf"^{name}\('l'\): every operand must belong to this builder; got MLOperand\("):
        COMPOSITES[name](builder, foreign)
    builder.build({"y": builder.neg(x)}).destroy()
    with pytest.raises(wn.InvalidStateError, match=rf"^{name}\('l'\): the builder has built its graph"):
        COMPOSITES[name](builder, x)


def test_errors_of_build_in_order(anywhere: wn.MLContext) -> None:
    builder, other = wn.MLGraphBuilder(anywhere), wn.MLGraphBuilder(anywhere)
    x, constant = builder.input("x", F32X3), builder.constant(F32X3, X)
    y, foreign = builder.neg(x), other.neg(other.input("x", F32X3))
    for outputs, message in (
        ({}, "build: outputs must be a mapping with at least one output; got {}"),
        (None, "build: outputs must be a mapping with at least one output; got None"),
        ({"": foreign}, "build: an output's name must be a string that is not empty; got ''"),
        ({"y": 7}, "build: output 'y' must be an operand; got int"),
        ({"y": foreign}, "build: output 'y' must belong to this builder; got MLOperand(float32[3])"),
        (
            {"y": x},
            "build: output 'y' must be the result of an operator; got MLOperand('x', float32[3])."
            " Put identity() behind an input or constant",
        ),
        (
            {"y": constant},
            "build: output 'y' must be the result of an operator; got MLOperand(float32[3])."
            " Put identity() behind an input or constant",
        ),
    ):
        with pytest.raises(TypeError) as caught:
            builder.build(outputs)
        assert str(caught.value) == message
    with pytest.raises(TypeError, match="build: disabled_passes must name passes; got 'fold'; allowed: drop_dead_nodes"):
        builder.build({"y": y}, disabled_passes=["fold"])
    graph = builder.build({"y": y})  # none of that was a build
    assert anywhere.compute(graph, {"x": X})["y"].tolist() == [-1, 2, -3]
    for call in (lambda: builder.build({}), lambda: builder.neg(x), lambda: builder.constant(1)):
        with pytest.raises(wn.InvalidStateError, match="the builder has built its graph"):
            call()
    assert repr(builder) == f"MLGraphBuilder({anywhere.description}, built)"


def test_a_build_that_fails_to_compile_was_a_build(context: wn.MLContext, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WEBNN_WGPU_FORCE", "nonsense")
    builder = wn.MLGraphBuilder(context)
    y = builder.neg(builder.input("x", F32X3))
    with pytest.raises(wn.MLTypeError, match="WEBNN_WGPU_FORCE"):
        builder.build({"y": y})
    with pytest.raises(wn.InvalidStateError):
        builder.build({"y": y})


@pytest.mark.parametrize(
    ("args", "message"),
    [
        ((7,), "MLGraphBuilder: context must be an MLContext; got int"),
        ((None, "2025"), "MLGraphBuilder: Invalid profile; got '2025'; allowed: 2026, 2024"),
    ],
)
def test_wrong_builders(reference: wn.MLContext, args: tuple[Any, ...], message: str) -> None:
    with pytest.raises(TypeError) as caught:
        wn.MLGraphBuilder(args[0] or reference, *args[1:])
    assert str(caught.value) == message


def test_progress_counts_kernels_and_then_bytes_of_weights(context: wn.MLContext) -> None:
    seen: list[tuple[int, int, str]] = []
    builder = wn.MLGraphBuilder(context)
    x = builder.input("x", {"dataType": "float32", "shape": [2, 64]})
    for size in (32, 16):
        weights = np.full((x.shape[1], size), 0.123 * size, np.float32)
        x = builder.softmax(builder.matmul(x, builder.constant(weights)), 1)
    builder.build({"y": x}, progress=lambda *step: seen.append(step))
    kernels = [step for step in seen if step[2] != UPLOADING]
    first, second = 64 * 32 * 4, 32 * 16 * 4
    assert seen == kernels + [(done, first + second, UPLOADING) for done in (0, first, first + second)]
    assert kernels[-1][0] == kernels[-1][1] > 0


@pytest.mark.parametrize("at", ["", UPLOADING])
def test_weights_are_let_go_where_progress_stops_the_build(context: wn.MLContext, at: str) -> None:
    def stop(_done: int, _total: int, what: str) -> None:
        if what == at:
            raise KeyboardInterrupt

    store = WeightStore.of(Device.of(context.device))
    before = len(store)
    builder = wn.MLGraphBuilder(context)
    x = builder.input("x", {"dataType": "float32", "shape": [3]})
    with pytest.raises(KeyboardInterrupt):
        builder.build({"y": builder.mul(x, builder.constant(np.float32([1.25, 2.5, 5])))}, progress=stop)
    gc.collect()
    assert len(store) == before


def test_progress_is_called_and_may_stop_the_build(context: wn.MLContext) -> None:
    seen: list[tuple[int, int, str]] = []
    builder = wn.MLGraphBuilder(context)
    y = builder.neg(builder.input("x", F32X3))
    builder.build({"y": y}, progress=lambda *step: seen.append(step))
    assert seen[-1][0] == seen[-1][1]

    def stop(*_: Any) -> None:
        raise KeyboardInterrupt

    builder = wn.MLGraphBuilder(context)
    with pytest.raises(KeyboardInterrupt):
        builder.build({"y": builder.neg(builder.input("x", F32X3))}, progress=stop)


# the rules of 2024 ----------------------------------------------------------------------------------------------------


def test_2024_builders_build_many_times(anywhere: wn.MLContext) -> None:
    builder = wn.MLGraphBuilder(anywhere, profile="2024")
    x = builder.input("x", F32X3)
    y = builder.neg(x)
    first = builder.build({"y": y})
    second = builder.build({"z": builder.add(y, builder.constant(F32X3, [1, 1, 1])), "y": y})
    assert anywhere.compute(first, {"x": X})["y"].tolist() == [-1, 2, -3]
    first.destroy()
    assert anywhere.compute(second, {"x": X})["z"].tolist() == [0, 3, -2]


def test_2024_names_are_compared_when_it_builds(anywhere: wn.MLContext) -> None:
    builder = anywhere.create_graph_builder(profile="2024")
    a, b = (builder.input("x", F32X3) for _ in range(2))
    with pytest.raises(TypeError) as caught:
        builder.build({"y": builder.add(a, b)})
    assert str(caught.value) == "build: two inputs that the outputs depend on share a name; got 'x'"
    assert anywhere.compute(builder.build({"y": builder.neg(b)}), {"x": X})["y"].tolist() == [-1, 2, -3]


def test_2024_descriptor_without_a_shape_is_a_scalar(anywhere: wn.MLContext) -> None:
    builder = wn.MLGraphBuilder(anywhere, "2024")
    x = builder.input("x", {"dataType": "float32"})
    half = builder.constant({"dataType": "float32"}, np.float32([0.5]))
    assert x.shape == half.shape == ()
    assert anywhere.compute(builder.build({"y": builder.mul(x, half)}), {"x": 4})["y"] == 2
