"""`WebnnDelegate` in the interpreter of a TFLite runtime: results equal to the CPU's, partitions, failures, lifetimes."""

from __future__ import annotations

import gc
import subprocess
import sys
import tracemalloc
import zlib
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest

import webnn_wgpu as wn
from tests.optional import REPOSITORY
from tests.rotation import SHARES, share_of_today
from tests.tflite.cases import EXPLAINED, TfliteCase, cases, folder_of
from tests.tflite.models import Graph, Op, Tensor, model, single
from tests.tflite.test_programs import loop
from webnn_wgpu.frontends.tflite import TfliteCall
from webnn_wgpu.frontends.tflite.delegate import delegate as delegate_module
from webnn_wgpu.frontends.tflite.delegate import kernel as kernel_module
from webnn_wgpu.frontends.tflite.delegate.callbacks import num_kernels
from webnn_wgpu.frontends.tflite.delegate.kernel import PartitionKernel
from webnn_wgpu.frontends.tflite.delegate.partitions import Candidate, chosen
from webnn_wgpu.tflite import WebnnDelegate

RUNTIMES = ("ai_edge_litert.interpreter", "tflite_runtime.interpreter", "tensorflow.lite.python.interpreter")
"""The modules of the runtimes' interpreters, of which the first that is installed is tested."""

RUNTIME = next((name for name in RUNTIMES if find_spec(name.partition(".")[0]) is not None), RUNTIMES[0])
runtime = pytest.importorskip(RUNTIME, reason="the delegate's tests need ai-edge-litert, tflite-runtime or tensorflow")

REAL = (
    "hello_world_float",
    "keyword_scrambled",
    "kws_ds_cnn_int8",
    "mnist_lstm",
    "multi_signatures",
    "nested_while",
    "odml_sdpa_composite_gqa",
    "q_einsum",
    "resnet8_cifar_int8",
    "simple_quantized_ops",
    "unidirectional_sequence_lstm",
)
"""Models of others, each of which runs in less than a second."""

NEWER = ("odml_sdpa_composite_gqa", "resnet8_cifar_int8")
"""Models that tflite-runtime 2.14 refuses, or computes with other roundings than LiteRT and TensorFlow."""

HALVES = model(
    Graph(
        tensors=[
            Tensor(name="x", shape=[1, 3], signature=[-1, 3]),
            Tensor(name="half", shape=[], data=0.5),
            Tensor(name="halved", shape=[1, 3], signature=[-1, 3]),
            Tensor(name="y", shape=[1, 3], signature=[-1, 3]),
        ],
        ops=[Op(name="MUL", inputs=[0, 1], outputs=[2]), Op(name="NEG", inputs=[2], outputs=[3])],
        inputs=[0],
        outputs=[3],
    )
)
"""Two operators on rows of any number."""

ROWS = model(
    Graph(
        tensors=[
            Tensor(name="x", shape=[4]),
            Tensor(name="half", shape=[], data=0.5),
            Tensor(name="size", shape=[4]),
            Tensor(name="large", shape=[4], dtype="bool"),
            Tensor(name="places", shape=[1, 1], dtype="int64", signature=[-1, 1]),
            Tensor(name="numbers", shape=[1, 1], signature=[-1, 1]),
            Tensor(name="sums", shape=[1, 4], signature=[-1, 4]),
            Tensor(name="y", shape=[1, 4], signature=[-1, 4]),
        ],
        ops=[
            Op(name="ABS", inputs=[0], outputs=[2]),
            Op(name="GREATER", inputs=[2, 1], outputs=[3]),
            Op(name="WHERE", inputs=[3], outputs=[4]),
            Op(name="CAST", inputs=[4], outputs=[5]),
            Op(name="ADD", inputs=[5, 0], outputs=[6]),
            Op(name="NEG", inputs=[6], outputs=[7]),
        ],
        inputs=[0],
        outputs=[7],
    )
)
"""WHERE, whose number of results only a run knows, between two and three operators of the device."""

X = np.float32([1, -2, 0.25, 3])


def interpreter(source: bytes | str, delegate: WebnnDelegate | None) -> Any:
    given = {"model_content": source} if isinstance(source, bytes) else {"model_path": source}
    found = runtime.Interpreter(**given, experimental_delegates=[delegate] if delegate is not None else None)
    found.allocate_tensors()
    return found


def invoked(found: Any, arrays: Sequence[np.ndarray], runs: int = 1) -> list[np.ndarray]:
    for details, array in zip(found.get_input_details(), arrays, strict=True):
        found.set_tensor(details["index"], array)
    for _ in range(runs):
        found.invoke()
    return [found.get_tensor(details["index"]) for details in found.get_output_details()]


def feeds(found: Any) -> list[np.ndarray]:
    rng = np.random.default_rng(0)
    arrays: list[np.ndarray] = []
    for details in found.get_input_details():
        numbers = rng.standard_normal(details["shape"])
        is_float = np.dtype(details["dtype"]).kind == "f"
        arrays.append((numbers if is_float else np.abs(numbers * 30)).astype(details["dtype"]))
    return arrays


def require_agreement(results: Sequence[np.ndarray], expected: Sequence[np.ndarray]) -> None:
    for result, right in zip(results, expected, strict=True):
        assert (result.dtype, result.shape) == (right.dtype, right.shape)
        if right.dtype.kind in "iu":
            assert np.abs(result.astype(np.int64) - right.astype(np.int64)).max(initial=0) <= 1
        else:
            np.testing.assert_allclose(result, right, rtol=1e-5, atol=1e-5 * float(np.abs(right).max(initial=0)))


@pytest.mark.parametrize("name", REAL if folder_of("real") is not None else ())
def test_a_real_model_agrees_with_litert(name: str, context: wn.MLContext) -> None:
    if RUNTIME.startswith("tflite_runtime") and name in NEWER:
        pytest.skip("tflite-runtime is too old for this model")
    folder = folder_of("real")
    assert folder is not None
    path = str(folder / f"{name}.tflite")
    delegate = WebnnDelegate(context=context)
    plain, delegated = interpreter(path, None), interpreter(path, delegate)
    arrays = feeds(plain)
    # Two runs: models with variables give others in the second.
    require_agreement(invoked(delegated, arrays, 2), invoked(plain, arrays, 2))
    assert any(report.partitions for report in delegate.reports)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "case" not in metafunc.fixturenames:
        return
    # One case of each operator that LiteRT's kernels agree with. A share of them runs; `--profiles=all` runs all.
    found = list({c.op: c for c in reversed(cases()) if c.name not in EXPLAINED}.values())
    if metafunc.config.getoption("--profiles") != "all":
        share = metafunc.config.getoption("--profile-share") or share_of_today(REPOSITORY)[0]
        found = [c for c in found if zlib.crc32(c.name.encode()) % SHARES == share - 1]
    metafunc.parametrize("case", found, ids=str)


def test_an_operator_agrees_with_one_of_tflites_implementations(case: TfliteCase, context: wn.MLContext) -> None:
    delegate = WebnnDelegate(context=context)
    try:
        delegated = interpreter(case.model(), delegate)
    except ValueError as error:
        if "newer model?" not in str(error) or RUNTIME == RUNTIMES[0]:
            raise
        pytest.skip(f"this runtime is older than the model: {error}")
    for run in range(case.runs):
        for index, result in enumerate(invoked(delegated, case.feeds())):
            assert not case.disagreement(run, index, result)
    on_cpu = delegate.reports[0].reasons.values()
    assert not [reason for reason in on_cpu if "does not know the structure" in reason]


# partitions ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "partitions"),
    [
        ({}, ((0, 1), (3, 4, 5))),
        ({"max_delegated_partitions": 1}, ((3, 4, 5),)),
        ({"min_nodes_per_partition": 2}, ((0, 1), (3, 4, 5))),
        ({"min_nodes_per_partition": 3}, ((3, 4, 5),)),
        ({"min_nodes_per_partition": 4}, ()),
    ],
    ids=str,
)
def test_an_unsupported_node_cuts_a_model_into_partitions(
    options: dict[str, int], partitions: tuple[tuple[int, ...], ...], context: wn.MLContext
) -> None:
    delegate = WebnnDelegate(**options, context=context)  # pyright: ignore[reportArgumentType] - numbers alone
    delegated = interpreter(ROWS, delegate)
    for x in (X, X * 0, -X):
        places = np.flatnonzero(np.abs(x) > 0.5).astype(np.float32)
        assert np.array_equal(invoked(delegated, [x])[0], -(places[:, None] + x))
    (report,) = delegate.reports
    assert report.partitions == partitions
    assert "WHERE" in report.reasons[2]
    assert sorted([*report.reasons, *(n for p in partitions for n in p)]) == list(range(6))
    assert f"{sum(map(len, partitions))} of 6 nodes" in str(report)


def test_partitions_that_merge_are_chosen_anew() -> None:
    def preview(nodes: Sequence[int]) -> list[Candidate[None]]:
        """Return a partition of 0 and 2 if 1 is missing, else three partitions, and one of 5 and 6."""
        groups = [[0, 2], [5, 6]] if 1 not in nodes else [[0], [1], [2], [5, 6]]
        left = [tuple(n for n in g if n in nodes) for g in groups]
        return [Candidate(nodes=g, item=None) for g in left if g]

    kept, reasons = chosen([0, 1, 2, 5, 6], preview, lambda c: "refused" if c.nodes == (1,) else "")
    assert [c.nodes for c in kept] == [(0, 2), (5, 6)]
    assert reasons == {1: "refused"}


def test_bodies_of_loops_have_partitions_of_their_own(context: wn.MLContext) -> None:
    delegate = WebnnDelegate(context=context)
    delegated = interpreter(loop(limit_known=False), delegate)
    assert invoked(delegated, [np.int32(0), np.float32([1, 3])])[0].tolist() == [8, 24]
    assert [r.partitions for r in delegate.reports] == [(), ((0,),), ((0, 1),)]
    assert "it runs subgraphs" in delegate.reports[0].reasons[0]


WEIGHTS = (
    Tensor(name="x", shape=[4]),
    Tensor(name="stored", shape=[4], dtype="float16", data=np.float16([2, 4, 6, 8])),
    Tensor(name="weights", shape=[4]),
)
"""An input, and constants of float16 that DEQUANTIZE widens."""


def test_float16_weights_belong_to_each_partition_that_reads_them(
    context: wn.MLContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    tensors = [
        *WEIGHTS,
        Tensor(name="large", shape=[4], dtype="bool"),
        Tensor(name="places", shape=[1, 1], dtype="int64", signature=[-1, 1]),
        Tensor(name="numbers", shape=[1, 1], signature=[-1, 1]),
        Tensor(name="y", shape=[1, 4], signature=[-1, 4]),
    ]
    ops = [
        Op(name="DEQUANTIZE", inputs=[1], outputs=[2], version=3),
        Op(name="GREATER", inputs=[0, 2], outputs=[3]),
        Op(name="WHERE", inputs=[3], outputs=[4]),
        Op(name="CAST", inputs=[4], outputs=[5]),
        Op(name="MUL", inputs=[5, 2], outputs=[6]),
    ]
    delegate = WebnnDelegate(context=context)
    delegated = interpreter(model(Graph(tensors=tensors, ops=ops, inputs=[0], outputs=[6])), delegate)
    assert delegate.reports[0].partitions == ((0, 1), (3, 4))
    copied: list[str] = []
    elements = kernel_module.elements_of
    monkeypatch.setattr(kernel_module, "elements_of", lambda t, v: (copied.append(v.name), elements(t, v))[1])
    assert invoked(delegated, [np.float32([3, 3, 7, 7])])[0].tolist() == [[0, 0, 0, 0], [4, 8, 12, 16]]
    assert copied == ["x", "places"]


def test_float16_weights_of_a_node_on_the_cpu_stay_there(context: wn.MLContext) -> None:
    tensors = [*WEIGHTS, Tensor(name="places", shape=[4, 1], dtype="int64", signature=[-1, 1]), Tensor(name="y", shape=[4])]
    ops = [
        Op(name="DEQUANTIZE", inputs=[1], outputs=[2], version=3),
        Op(name="WHERE", inputs=[2], outputs=[3]),
        Op(name="MUL", inputs=[0, 2], outputs=[4]),
    ]
    delegate = WebnnDelegate(context=context)
    delegated = interpreter(model(Graph(tensors=tensors, ops=ops, inputs=[0], outputs=[3, 4])), delegate)
    places, y = invoked(delegated, [X])
    assert (places.ravel().tolist(), y.tolist()) == ([0, 1, 2, 3], [2, -8, 1.5, 24])
    assert delegate.reports[0].partitions == ((2,),)
    assert "a node on the CPU reads the weights" in delegate.reports[0].reasons[0]


def test_a_custom_operator_is_built_by_the_users_function(context: wn.MLContext) -> None:
    data = single("Twice", [Tensor(name="x", shape=[3]), Tensor(name="y", shape=[3])], 1, custom=True)

    def twice(call: TfliteCall) -> wn.MLOperand:
        return call.build.add(call.operand(0), call.operand(0))

    delegated = interpreter(data, WebnnDelegate(context=context, custom_operators={"Twice": twice}))
    assert invoked(delegated, [np.float32([1, 2, 3])])[0].tolist() == [2, 4, 6]


def test_inputs_get_other_shapes(context: wn.MLContext) -> None:
    delegated = interpreter(HALVES, WebnnDelegate(context=context))
    for rows in (1, 3, 2, 3):
        delegated.resize_tensor_input(0, [rows, 3])
        delegated.allocate_tensors()
        assert delegated.get_output_details()[0]["shape"].tolist() == [rows, 3]
        assert invoked(delegated, [np.ones((rows, 3), np.float32)])[0].tolist() == [[-0.5] * 3] * rows


# failures -----------------------------------------------------------------------------------------------------------


def test_a_model_runs_on_the_cpu_where_there_is_no_device(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(**_options: Any) -> wn.MLContext:
        raise wn.NotSupportedError("there is no adapter")

    monkeypatch.setattr(delegate_module.ml, "create_context", refuse)
    delegate = WebnnDelegate()
    with pytest.warns(RuntimeWarning, match="there is no adapter") as warned:
        found = [interpreter(HALVES, delegate) for _ in range(2)]
    assert [w.filename for w in warned if w.category is RuntimeWarning] == [__file__]
    assert [invoked(i, [np.ones((1, 3), np.float32)])[0].tolist() for i in found] == [[[-0.5] * 3]] * 2


def test_a_driver_that_dies_beside_tensorflow_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "tensorflow", ModuleType("tensorflow"))
    monkeypatch.setattr(delegate_module, "have_own_symbols", lambda: False)
    context: Any = SimpleNamespace(caps=SimpleNamespace(device="llvmpipe (LLVM 15.0.6, 256 bits)"))
    with pytest.warns(RuntimeWarning, match="import tensorflow before the first context"):
        delegated = interpreter(HALVES, WebnnDelegate(context=context))
    assert invoked(delegated, [np.ones((1, 3), np.float32)])[0].tolist() == [[-0.5] * 3]


def test_a_partition_that_cannot_be_compiled_runs_on_the_cpu(context: wn.MLContext, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_arguments: Any) -> Any:
        raise wn.NotSupportedError("the device is too small")

    monkeypatch.setattr(PartitionKernel, "compile", refuse)
    delegate = WebnnDelegate(context=context)
    with pytest.warns(RuntimeWarning, match="too small") as warned:
        delegated = interpreter(ROWS, delegate)
    assert len([w for w in warned if w.category is RuntimeWarning]) == 1
    assert len(invoked(delegated, [X])[0]) == 3
    assert delegate.reports[0].partitions == ()
    assert "too small" in delegate.reports[0].reasons[5]


def test_a_run_that_fails_is_an_error_of_the_runtime(context: wn.MLContext, monkeypatch: pytest.MonkeyPatch) -> None:
    delegated = interpreter(HALVES, WebnnDelegate(context=context))

    def fail(*_arguments: Any) -> None:
        raise ValueError("100 % lost")

    monkeypatch.setattr(PartitionKernel, "invoke", fail)
    with pytest.raises(RuntimeError, match="WebnnDelegate: a run failed: 100 % lost"):
        delegated.invoke()


@pytest.mark.parametrize(
    "options",
    [{"device_preference": "npu"}, {"power_preference": 3}, {"max_delegated_partitions": -1}, {"device_preference": True}],
    ids=str,
)
def test_wrong_options_are_refused(options: dict[str, Any]) -> None:
    with pytest.raises(wn.MLTypeError):
        WebnnDelegate(**options)


# lifetimes ----------------------------------------------------------------------------------------------------------


def test_runs_do_not_grow(context: wn.MLContext) -> None:
    delegated = interpreter(ROWS, WebnnDelegate(context=context))
    kernels = num_kernels()
    invoked(delegated, [X], 10)
    tracemalloc.start()
    try:
        invoked(delegated, [X], 50)
        before = tracemalloc.get_traced_memory()[0]
        invoked(delegated, [X], 50)
        gc.collect()
        grown = tracemalloc.get_traced_memory()[0] - before
    finally:
        tracemalloc.stop()
    assert grown < 50 * 100
    assert num_kernels() == kernels


@pytest.mark.parametrize("first", ["interpreter", "delegate", "both but a view"])
def test_interpreter_and_delegate_may_be_destroyed_in_any_order(first: str, context: wn.MLContext) -> None:
    gc.collect()
    before = num_kernels()
    delegate: WebnnDelegate | None = WebnnDelegate(context=context)
    delegated = interpreter(HALVES, delegate)
    assert num_kernels() == before + 1
    view = None
    if first != "interpreter":
        delegated._delegates.clear()
        delegate = None
        gc.collect()
        assert invoked(delegated, [np.ones((1, 3), np.float32)])[0].tolist() == [[-0.5] * 3]
    if first == "both but a view":
        view = delegated.tensor(3)()
    del delegated
    gc.collect()
    if view is not None:
        assert view.tolist() == [[-0.5] * 3]
        del view
        gc.collect()
    assert num_kernels() == before
    del delegate


def test_a_process_may_end_before_its_interpreter(tmp_path: Path) -> None:
    path = tmp_path / "model.tflite"
    path.write_bytes(HALVES)
    program = (
        "import sys, numpy as np, webnn_wgpu as wn\n"
        f"from {RUNTIME} import Interpreter\n"
        "from webnn_wgpu.tflite import WebnnDelegate\n"
        "context = wn.ml.create_context(backend='reference')\n"
        "interpreter = Interpreter(sys.argv[1], experimental_delegates=[WebnnDelegate(context=context)])\n"
        "interpreter.allocate_tensors()\n"
        "interpreter.set_tensor(0, np.ones((1, 3), np.float32))\n"
        "interpreter.invoke()\n"
        "print(interpreter.get_tensor(3).tolist())\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, str(path)], capture_output=True, text=True, check=False, cwd=REPOSITORY
    )
    assert (done.returncode, done.stdout) == (0, "[[-0.5, -0.5, -0.5]]\n"), done.stderr
    assert "Exception" not in done.stderr
