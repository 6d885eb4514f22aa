"""Models of several operators: shapes that are open, variables, custom operators, quantized sums, control flow."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import tflite

import webnn_wgpu as wn
from tests.tflite.models import Graph, Op, Tensor, model, single
from webnn_wgpu.frontends.tflite import TfliteCall, analyze, load_model
from webnn_wgpu.frontends.tflite.contents import Quantization
from webnn_wgpu.frontends.tflite.state import Variables


def test_open_sizes_compile_once_for_each_shape(context: wn.MLContext) -> None:
    tensors = [Tensor(name="x", shape=[1, 3], signature=[-1, 3]), Tensor(name="y", shape=[1, 3])]
    with load_model(single("NEG", tensors, 1), lambda: context) as loaded:
        assert loaded.compiled == 0
        for rows in (2, 5, 2):
            x = np.random.default_rng(rows).standard_normal((rows, 3)).astype(np.float32)
            assert np.array_equal(loaded.run({"x": x})["y"], -x)
        assert loaded.compiled == 2


def test_wrong_feeds_are_refused(context: wn.MLContext) -> None:
    with load_model(single("NEG", [Tensor(name="x", shape=[3]), Tensor(name="y", shape=[3])], 1), lambda: context) as loaded:
        for feeds in ({}, {"z": np.zeros(3, np.float32)}, {"x": np.zeros(4, np.float32)}, {"x": np.zeros(3, np.int32)}):
            with pytest.raises(wn.MLTypeError):
                loaded.run(feeds)


def shape_program() -> bytes:
    """Return a model that reshapes its input by sizes that are its other input, after their sum was computed."""
    return model(
        Graph(
            tensors=[
                Tensor(name="x", shape=[6]),
                Tensor(name="sizes", shape=[2], dtype="int32"),
                Tensor(name="more", shape=[2], dtype="int32"),
                Tensor(name="total", shape=[2], dtype="int32"),
                Tensor(name="y", shape=[1, 1], signature=[-1, -1]),
            ],
            ops=[Op(name="ADD", inputs=[1, 2], outputs=[3]), Op(name="RESHAPE", inputs=[0, 3], outputs=[4])],
            inputs=[0, 1, 2],
            outputs=[4],
        )
    )


def test_shapes_that_the_device_computes_are_read_back(context: wn.MLContext) -> None:
    x = np.arange(6, dtype=np.float32)
    with load_model(shape_program(), lambda: context, fallback="host") as loaded:
        for a, b in (([1, 2], [1, 1]), ([2, 1], [1, 1])):
            feeds = {"x": x, "sizes": np.int32(a), "more": np.int32(b)}
            assert np.array_equal(loaded.run(feeds)["y"], x.reshape(np.add(a, b)))
    with pytest.raises(wn.NotSupportedError, match="it needs the elements of a value that the device computes"):
        load_model(shape_program(), lambda: context, fallback="error")


def cell() -> bytes:
    """Return a model of a recurrent cell that adds its inputs up."""

    def options(b: Any) -> int:
        tflite.RNNOptionsStart(b)
        tflite.RNNOptionsAddFusedActivationFunction(b, 0)
        return tflite.RNNOptionsEnd(b)

    tensors = [
        Tensor(name="x", shape=[1, 2]),
        Tensor(name="w", shape=[2, 2], data=np.eye(2)),
        Tensor(name="r", shape=[2, 2], data=np.eye(2)),
        Tensor(name="b", shape=[2], data=np.zeros(2)),
        Tensor(name="state", shape=[1, 2], variable=True),
        Tensor(name="y", shape=[1, 2]),
    ]
    return single("RNN", tensors, 1, options=options, options_type=tflite.BuiltinOptions.RNNOptions)


def test_a_cell_keeps_its_state_from_run_to_run(context: wn.MLContext) -> None:
    with load_model(cell(), lambda: context) as loaded:
        assert [loaded.run({"x": np.float32([[1, 2]])})["y"].tolist() for _ in range(3)] == [[[1, 2]], [[2, 4]], [[3, 6]]]
        loaded.reset_variables()
        assert loaded.run({"x": np.float32([[1, 2]])})["y"].tolist() == [[1, 2]]


def test_a_profile_of_a_cell_is_one_run_with_its_kernels(context: wn.MLContext) -> None:
    x = {"x": np.float32([[1, 2]])}
    with load_model(cell(), lambda: context) as loaded:
        loaded.run(x)
        profile = loaded.profile(x)
        assert [kernel.shader for span in profile.spans for kernel in span.kernels]
        assert profile.outputs["y"].tolist() == [[2, 4]]
        assert loaded.run(x)["y"].tolist() == [[3, 6]]


def test_a_variable_is_filled_with_the_low_byte_of_its_zero_point(context: wn.MLContext) -> None:
    variables, key = Variables(context), ("tensor", "0", "1")
    quantization = Quantization(scales=np.ones(1, np.float32), zero_points=np.array([256 + 3]))
    variables.tensor(key, (2,), np.dtype(np.int8), quantization)
    found = variables.get(key)
    assert found is not None
    assert found.tolist() == [3, 3]


def test_a_custom_operator_is_built_by_the_users_function(context: wn.MLContext) -> None:
    data = single("Twice", [Tensor(name="x", shape=[3]), Tensor(name="y", shape=[3])], 1, custom=True)

    def twice(call: TfliteCall) -> wn.MLOperand:
        return call.build.add(call.operand(0), call.operand(0))

    with load_model(data, lambda: context, custom_operators={"Twice": twice}) as loaded:
        assert loaded.run({"x": np.float32([1, 2, 3])})["y"].tolist() == [2, 4, 6]
    with pytest.raises(wn.NotSupportedError, match="custom operator Twice, version 1"):
        load_model(data, lambda: context)


@pytest.mark.parametrize("depth", [8, 200, 1500])
def test_quantized_sums_are_exact(depth: int, context: wn.MLContext) -> None:
    rng = np.random.default_rng(depth)
    x, w = rng.integers(-128, 128, (5, depth)), rng.integers(-127, 128, (7, depth))
    bias = rng.integers(-1000, 1000, 7)
    scales = np.float32(0.02), np.float32(0.013), np.float32(0.02 * 0.013 * depth)
    tensors = [
        Tensor(name="x", shape=x.shape, dtype="int8", scale=float(scales[0]), zero_point=-7),
        Tensor(name="w", shape=w.shape, dtype="int8", data=w, scale=float(scales[1])),
        Tensor(name="b", shape=[7], dtype="int32", data=bias, scale=float(scales[0] * scales[1])),
        Tensor(name="y", shape=[5, 7], dtype="int8", scale=float(scales[2]), zero_point=3),
    ]
    with load_model(single("FULLY_CONNECTED", tensors, 1), lambda: context) as loaded:
        found = loaded.run({"x": x.astype(np.int8)})["y"]
    multiplier = (scales[0] * scales[1]) / scales[2]
    sums = ((x + 7) @ w.T + bias).astype(np.float32)
    assert np.array_equal(found, np.clip(np.rint(sums * multiplier) + 3, -128, 127).astype(np.int8))


@pytest.mark.parametrize("point", [0, 112, 128, 143, 255])
def test_weights_of_uint8_stay_bytes_on_the_device(point: int, context: wn.MLContext) -> None:
    rng = np.random.default_rng(point)
    x, w = rng.integers(0, 256, (9, 48)), rng.integers(0, 256, (64, 48))
    w.flat[:2] = 0, 255
    scales = np.float32(0.02), np.float32(0.013), np.float32(0.3)
    tensors = [
        Tensor(name="x", shape=x.shape, dtype="uint8", scale=float(scales[0]), zero_point=121),
        Tensor(name="w", shape=w.shape, dtype="uint8", data=w, scale=float(scales[1]), zero_point=point),
        Tensor(name="y", shape=[9, 64], dtype="uint8", scale=float(scales[2]), zero_point=117),
    ]
    with load_model(single("FULLY_CONNECTED", tensors, 1), lambda: context) as loaded:
        (graph,) = loaded.graphs
        assert [a.dtype.name for a in graph.optimized.constants.values() if a.size == w.size] == ["int8"]
        found = loaded.run({"x": x.astype(np.uint8)})["y"]
    sums = ((x - 121) @ (w - point).T).astype(np.float32)
    assert np.array_equal(found, np.clip(np.rint(sums * (scales[0] * scales[1] / scales[2])) + 117, 0, 255).astype(np.uint8))


@pytest.mark.parametrize("scale", [0.0, -1.0, float("nan"), float("inf")])
def test_outputs_with_a_wrong_scale_have_no_activation(scale: float, context: wn.MLContext) -> None:
    tensors = [
        Tensor(name="x", shape=[2, 4], dtype="int8", scale=0.02),
        Tensor(name="w", shape=[3, 4], dtype="int8", data=np.ones((3, 4)), scale=0.01),
        Tensor(name="y", shape=[2, 3], dtype="int8", scale=scale),
    ]

    def options(b: Any) -> int:
        tflite.FullyConnectedOptionsStart(b)
        tflite.FullyConnectedOptionsAddFusedActivationFunction(b, tflite.ActivationFunctionType.RELU6)
        return tflite.FullyConnectedOptionsEnd(b)

    data = single("FULLY_CONNECTED", tensors, 1, options=options, options_type=tflite.BuiltinOptions.FullyConnectedOptions)
    with pytest.raises(wn.NotSupportedError, match="RELU6 has no limits"):
        load_model(data, lambda: context)


@pytest.mark.parametrize("activations", ["int8", "float32"])
def test_weights_of_eight_bits_stay_bytes_on_the_device(activations: str, context: wn.MLContext) -> None:
    rng = np.random.default_rng(3)
    w = rng.integers(-127, 128, (64, 48))
    quantized = {} if activations == "float32" else {"scale": 0.02, "zero_point": -7}
    tensors = [
        Tensor(name="x", shape=[40, 48], dtype=activations, **quantized),
        Tensor(name="w", shape=w.shape, dtype="int8", data=w, scale=0.013),
        Tensor(name="y", shape=[40, 64], dtype=activations, **quantized),
    ]
    with load_model(single("FULLY_CONNECTED", tensors, 1), lambda: context) as loaded:
        (graph,) = loaded.graphs
        assert [a.dtype.name for a in graph.optimized.constants.values() if a.size == w.size] == ["int8"]
        if activations == "float32":
            x = rng.standard_normal((40, 48)).astype(np.float32)
            np.testing.assert_allclose(loaded.run({"x": x})["y"], x @ (w.T * np.float32(0.013)), rtol=0, atol=2e-5)


def loop(limit_known: bool) -> bytes:
    """Return a model that doubles a value as long as a counter is below a limit."""

    def options(b: Any) -> int:
        tflite.WhileOptionsStart(b)
        tflite.WhileOptionsAddCondSubgraphIndex(b, 1)
        tflite.WhileOptionsAddBodySubgraphIndex(b, 2)
        return tflite.WhileOptionsEnd(b)

    counters = [Tensor(name="i", shape=[], dtype="int32", data=0 if limit_known else None), Tensor(name="x", shape=[2])]
    main = Graph(
        tensors=[*counters, Tensor(name="last", shape=[], dtype="int32"), Tensor(name="y", shape=[2])],
        ops=[
            Op(
                name="WHILE",
                inputs=[0, 1],
                outputs=[2, 3],
                options=options,
                options_type=tflite.BuiltinOptions.WhileOptions,
            )
        ],
        inputs=[1] if limit_known else [0, 1],
        outputs=[3],
    )
    inner = [Tensor(name="i", shape=[], dtype="int32"), Tensor(name="x", shape=[2])]
    condition = Graph(
        tensors=[*inner, Tensor(name="limit", shape=[], dtype="int32", data=3), Tensor(name="less", shape=[], dtype="bool")],
        ops=[Op(name="LESS", inputs=[0, 2], outputs=[3])],
        inputs=[0, 1],
        outputs=[3],
    )
    body = Graph(
        tensors=[
            *inner,
            Tensor(name="one", shape=[], dtype="int32", data=1),
            Tensor(name="next", shape=[], dtype="int32"),
            Tensor(name="twice", shape=[2]),
        ],
        ops=[Op(name="ADD", inputs=[0, 2], outputs=[3]), Op(name="ADD", inputs=[1, 1], outputs=[4])],
        inputs=[0, 1],
        outputs=[3, 4],
    )
    return model(main, condition, body)


def test_a_loop_of_known_length_is_unrolled_on_the_device(context: wn.MLContext) -> None:
    with load_model(loop(limit_known=True), lambda: context, fallback="error") as loaded:
        assert loaded.run({"x": np.float32([1, 3])})["y"].tolist() == [8, 24]
        assert not loaded.placement.on("host")


def test_the_host_counts_other_loops(context: wn.MLContext) -> None:
    with load_model(loop(limit_known=False), lambda: context, fallback="host") as loaded:
        for start, expected in ((0, [8, 24]), (2, [2, 6]), (7, [1, 3])):
            assert loaded.run({"i": np.int32(start), "x": np.float32([1, 3])})["y"].tolist() == expected
        assert [placed.op for placed in loaded.placement.on("host")] == ["WHILE"]


def condition(*, rows: int) -> bytes:
    """Return a model that negates rows of a value, or doubles its first rows if the condition does not hold."""

    def options(b: Any) -> int:
        tflite.IfOptionsStart(b)
        tflite.IfOptionsAddThenSubgraphIndex(b, 1)
        tflite.IfOptionsAddElseSubgraphIndex(b, 2)
        return tflite.IfOptionsEnd(b)

    x = Tensor(name="x", shape=[3, 2])
    main = Graph(
        tensors=[
            x,
            Tensor(name="limit", shape=[], data=0),
            Tensor(name="axes", shape=[2], dtype="int32", data=[0, 1]),
            Tensor(name="sum", shape=[]),
            Tensor(name="holds", shape=[], dtype="bool"),
            Tensor(name="y", shape=[3, 2]),
        ],
        ops=[
            Op(name="SUM", inputs=[0, 2], outputs=[3]),
            Op(name="GREATER", inputs=[3, 1], outputs=[4]),
            Op(name="IF", inputs=[4, 0], outputs=[5], options=options, options_type=tflite.BuiltinOptions.IfOptions),
        ],
        inputs=[0],
        outputs=[5],
    )
    negated = Graph(
        tensors=[x, Tensor(name="y", shape=[3, 2])], ops=[Op(name="NEG", inputs=[0], outputs=[1])], inputs=[0], outputs=[1]
    )
    doubled = Graph(
        tensors=[
            x,
            Tensor(name="begin", shape=[2], dtype="int32", data=[0, 0]),
            Tensor(name="size", shape=[2], dtype="int32", data=[rows, 2]),
            Tensor(name="part", shape=[rows, 2]),
            Tensor(name="y", shape=[rows, 2]),
        ],
        ops=[Op(name="SLICE", inputs=[0, 1, 2], outputs=[3]), Op(name="ADD", inputs=[3, 3], outputs=[4])],
        inputs=[0],
        outputs=[4],
    )
    return model(main, negated, doubled)


@pytest.mark.parametrize("rows", [3, 1])
def test_the_device_selects_results_of_small_branches(rows: int, context: wn.MLContext) -> None:
    with load_model(condition(rows=rows), lambda: context, fallback="host") as loaded:
        x = np.arange(1, 7, dtype=np.float32).reshape(3, 2)
        assert np.array_equal(loaded.run({"x": x})["y"], -x)
        assert np.array_equal(loaded.run({"x": -x})["y"], -2 * x[:rows])
        # Branches of different shapes are not selected from.
        assert [placed.op for placed in loaded.placement.on("host")] == ([] if rows == 3 else ["IF"])
        assert len(loaded.graphs) == 1


def test_results_that_are_no_complex_numbers_are_refused(context: wn.MLContext) -> None:
    data = single("NEG", [Tensor(name="x", shape=[3]), Tensor(name="y", shape=[3], dtype="complex64")], 1)
    with pytest.raises(wn.NotSupportedError, match="no pairs of numbers"):
        load_model(data, lambda: context)


def test_results_of_another_type_than_their_tensor_are_refused(context: wn.MLContext) -> None:
    tensors = [Tensor(name="x", shape=[3, 2], dtype="int8"), Tensor(name="y", shape=[2, 3], dtype="complex64")]
    tensors.insert(1, Tensor(name="order", shape=[2], dtype="int32", data=[1, 0]))
    with pytest.raises(wn.NotSupportedError, match="its result is int8, but tensor 'y' has the type complex64"):
        load_model(single("TRANSPOSE", tensors, 1), lambda: context)


def test_references_to_variables_are_no_outputs(context: wn.MLContext) -> None:
    data = single("VAR_HANDLE", [Tensor(name="x", shape=[3]), Tensor(name="y", shape=[3])], 1)
    with load_model(data, lambda: context) as loaded, pytest.raises(wn.NotSupportedError, match="the elements of 'y'"):
        loaded.run({"x": np.zeros(3, np.float32)})


def test_complex_numbers_keep_their_parts_when_they_are_arranged(context: wn.MLContext) -> None:
    tensors = [
        Tensor(name="x", shape=[2, 1, 8]),
        Tensor(name="length", shape=[2], dtype="int32", data=[1, 8]),
        Tensor(name="spectrum", shape=[2, 1, 5], dtype="complex64"),
        Tensor(name="rows", shape=[2], dtype="int32", data=[2, 5]),
        Tensor(name="flat", shape=[2, 5], dtype="complex64"),
        Tensor(name="order", shape=[2], dtype="int32", data=[1, 0]),
        Tensor(name="turned", shape=[5, 2], dtype="complex64"),
    ]
    ops = [
        Op(name="RFFT2D", inputs=[0, 1], outputs=[2]),
        Op(name="RESHAPE", inputs=[2, 3], outputs=[4]),
        Op(name="TRANSPOSE", inputs=[4, 5], outputs=[6]),
    ]
    x = np.random.default_rng(2).standard_normal((2, 1, 8)).astype(np.float32)
    with load_model(model(Graph(tensors=tensors, ops=ops, inputs=[0], outputs=[6])), lambda: context) as loaded:
        np.testing.assert_allclose(loaded.run({"x": x})["turned"], np.fft.rfft(x[:, 0]).T, rtol=0, atol=1e-5)


def test_a_constant_without_elements_is_known(context: wn.MLContext) -> None:
    tensors = [Tensor(name="x", shape=[1]), Tensor(name="scalar", shape=[0], dtype="int32"), Tensor(name="y", shape=[])]
    with load_model(single("RESHAPE", tensors, 1), lambda: context) as loaded:
        assert loaded.run({"x": np.float32([3])})["y"].shape == ()


def test_residuals_of_eight_bits_are_added_in_one_kernel(context: wn.MLContext) -> None:
    """The readers of quantized sums share centered floats, which the kernel of the product stores."""
    rng = np.random.default_rng(4)
    eight = {"shape": [40, 48], "dtype": "int8"}
    first, second = (rng.integers(-127, 128, (48, 48)) for _ in range(2))
    tensors = [
        Tensor(name="x", scale=0.02, zero_point=5, **eight),
        Tensor(name="v", shape=[48, 48], dtype="int8", data=first, scale=0.001),
        Tensor(name="a", scale=0.03, zero_point=-4, **eight),
        Tensor(name="w", shape=[48, 48], dtype="int8", data=second, scale=0.002),
        Tensor(name="b", scale=0.04, zero_point=9, **eight),
        Tensor(name="y", scale=0.05, zero_point=1, **eight),
    ]
    ops = [
        Op(name="FULLY_CONNECTED", inputs=[0, 1], outputs=[2]),
        Op(name="FULLY_CONNECTED", inputs=[2, 3], outputs=[4]),
        Op(name="ADD", inputs=[2, 4], outputs=[5]),
    ]
    x = rng.integers(-128, 128, (40, 48)).astype(np.int8)

    def steps(numbers: np.ndarray, zero: int) -> np.ndarray:
        return np.clip(np.rint(numbers), -128 - zero, 127 - zero)

    a = steps((x.astype(int) - 5) @ first.T * (np.float32(0.02) * np.float32(0.001) / np.float32(0.03)), -4)
    b = steps(a @ second.T * (np.float32(0.03) * np.float32(0.002) / np.float32(0.04)), 9)
    with load_model(model(Graph(tensors=tensors, ops=ops, inputs=[0], outputs=[5])), lambda: context) as loaded:
        plan = loaded.graph.plan
        assert plan is not None
        # The input as floats, two products, the sum.
        assert len(plan.dispatches) <= 5
        off = np.abs(loaded.run({"x": x})["y"] - (steps(a * 0.6 + b * 0.8, 1) + 1))
    assert off.max() <= 1
    assert (off == 0).mean() > 0.99


def test_leaky_relu_of_eight_bits_has_slopes_of_a_256th(context: wn.MLContext) -> None:
    def options(b: Any) -> int:
        tflite.LeakyReluOptionsStart(b)
        tflite.LeakyReluOptionsAddAlpha(b, 0.2)
        return tflite.LeakyReluOptionsEnd(b)

    tensors = [
        Tensor(name="x", shape=[256], dtype="int8", scale=0.02, zero_point=-3),
        Tensor(name="y", shape=[256], dtype="int8", scale=0.019, zero_point=5),
    ]
    data = single("LEAKY_RELU", tensors, 1, options=options, options_type=tflite.BuiltinOptions.LeakyReluOptions)
    x = np.arange(-128, 128)
    with load_model(data, lambda: context) as loaded:
        found = loaded.run({"x": x.astype(np.int8)})["y"]
    slopes = np.where(x < -3, 54, 269)  # 256 * 0.2 * 0.02 / 0.019 and 256 * 0.02 / 0.019
    assert np.array_equal(found, np.clip(((x + 3) * slopes + 128 >> 8) + 5, -128, 127))


def test_prelu_of_eight_bits_rounds_twice(context: wn.MLContext) -> None:
    """As LiteRT's kernels do. Operators behind it would make two steps of one."""
    alphas = np.array([-49, -71, 100, 0])
    tensors = [
        Tensor(name="x", shape=[4, 4], dtype="int8", scale=0.007628127466887236, zero_point=-1),
        Tensor(name="alpha", shape=[4], dtype="int8", scale=0.0003777259844355285, data=alphas),
        Tensor(name="y", shape=[4, 4], dtype="int8", scale=0.003955335821956396, zero_point=-119),
    ]
    x = np.array([[-15, -15, -15, -15], [-30, -30, -30, -30], [-1, 0, 30, 127], [-128, -128, -128, -128]], np.int8)
    with load_model(single("PRELU", tensors, 1), lambda: context) as loaded:
        found = loaded.run({"x": x})["y"]
        assert loaded.placement.on("host") == []
    # The results of LiteRT 2.3.0. Rounded once, the first number, -118.50027, were -119, and the sixth, -117.50008, were -118.
    expected = [[-118, -118, -120, -119], [-118, -117, -121, -119], [-119, -117, -59, 127], [-114, -112, -128, -119]]
    assert found.tolist() == expected


def test_rounds_of_a_loop_share_their_weights(context: wn.MLContext) -> None:
    rng = np.random.default_rng(5)
    w = rng.integers(-127, 128, (48, 48))

    def options(b: Any) -> int:
        tflite.WhileOptionsStart(b)
        tflite.WhileOptionsAddCondSubgraphIndex(b, 1)
        tflite.WhileOptionsAddBodySubgraphIndex(b, 2)
        return tflite.WhileOptionsEnd(b)

    counter, x = Tensor(name="i", shape=[], dtype="int32"), Tensor(name="x", shape=[3, 48])
    kind = tflite.BuiltinOptions.WhileOptions
    main = Graph(
        tensors=[Tensor(name="i", shape=[], dtype="int32", data=0), x, counter, Tensor(name="y", shape=[3, 48])],
        ops=[Op(name="WHILE", inputs=[0, 1], outputs=[2, 3], options=options, options_type=kind)],
        inputs=[1],
        outputs=[3],
    )
    condition = Graph(
        tensors=[
            counter,
            x,
            Tensor(name="limit", shape=[], dtype="int32", data=4),
            Tensor(name="less", shape=[], dtype="bool"),
        ],
        ops=[Op(name="LESS", inputs=[0, 2], outputs=[3])],
        inputs=[0, 1],
        outputs=[3],
    )
    body = Graph(
        tensors=[
            counter,
            x,
            Tensor(name="one", shape=[], dtype="int32", data=1),
            Tensor(name="next", shape=[], dtype="int32"),
            Tensor(name="w", shape=[48, 48], dtype="int8", data=w, scale=0.002),
            Tensor(name="product", shape=[3, 48]),
        ],
        ops=[Op(name="ADD", inputs=[0, 2], outputs=[3]), Op(name="FULLY_CONNECTED", inputs=[1, 4], outputs=[5])],
        inputs=[0, 1],
        outputs=[3, 5],
    )
    with load_model(model(main, condition, body), lambda: context) as loaded:
        assert [a.dtype.name for a in loaded.graph.optimized.constants.values() if a.size == w.size] == ["int8"]


def test_initializers_with_inputs_are_refused(context: wn.MLContext) -> None:
    data = single("CALL_ONCE", [Tensor(name="x", shape=[3]), Tensor(name="y", shape=[3])], 1)
    with pytest.raises(wn.NotSupportedError, match="subgraph 0, which must have no inputs"):
        load_model(data, lambda: context)


def test_analyze_counts_operators_and_bytes(context: wn.MLContext) -> None:
    tensors = [Tensor(name="x", shape=[4]), Tensor(name="c", shape=[4], data=np.ones(4)), Tensor(name="y", shape=[4])]
    found = analyze(single("ADD", tensors, 1), context)
    assert (dict(found.operators), found.parameters, found.parameter_bytes) == ({"ADD": 1}, 4, 16)
    assert found.placement.summary() == "1 node on the device, 0 on the host, 0 evaluated beforehand"
    assert analyze(loop(limit_known=False), context).placement.on("host")
