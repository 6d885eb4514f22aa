"""When operations run, what is compiled once, and what memory stays."""

from __future__ import annotations

import gc
from typing import Any

import numpy as np
import pytest

import webnn_wgpu as wn
from tests.support import profile_context
from webnn_wgpu import eager
from webnn_wgpu.eager import ops
from webnn_wgpu.eager.engine import Engine

VECTOR = [1.0, 2.0, 3.0]


def test_operations_run_when_a_value_is_asked_for(engine: Engine) -> None:
    x = eager.tensor(VECTOR)
    y = ops.exp(x * 2) + 1
    assert (y.shape, y.dtype, y.pending, engine.statistics().runs) == ((3,), "float32", True, 0)
    np.testing.assert_allclose(y.numpy(), np.exp(np.float32(VECTOR) * 2) + 1, rtol=1e-6)
    assert not y.pending
    assert engine.statistics().runs == 1


def test_one_run_computes_all_values_that_are_alive(engine: Engine) -> None:
    x = eager.tensor(VECTOR)
    first, second = x + 1, x * 2
    first.numpy()
    assert not second.pending
    assert (second.tolist(), engine.statistics().runs) == ([2.0, 4.0, 6.0], 1)


def test_dead_results_are_not_outputs(engine: Engine) -> None:
    x = eager.tensor(VECTOR)
    y = ops.sqrt(ops.exp(x) + x)
    y.numpy()
    # The inputs are x and y: results in between have no memory of their own.
    assert engine.statistics().used_bytes == 2 * 12


def test_equal_structures_compile_once(engine: Engine) -> None:
    for number in range(5):
        x = eager.tensor(np.full((4, 4), number, np.float32))
        assert ops.reduce_sum(x @ x).item() == 64 * number**2
    assert engine.statistics().compilations == 1
    ops.reduce_sum(eager.tensor(np.ones((5, 5), np.float32)) @ eager.tensor(np.ones((5, 5), np.float32))).item()
    assert engine.statistics().compilations == 2


def test_numbers_that_change_compile_once_more(engine: Engine) -> None:
    x = eager.tensor(VECTOR)
    for number in range(6):
        np.testing.assert_allclose((x * (0.5 + number) + 1).numpy(), np.float32(VECTOR) * (0.5 + number) + 1)
    assert engine.statistics().compilations == 2


def test_a_changed_sign_of_zero_is_seen(engine: Engine) -> None:
    x = eager.tensor(VECTOR)
    signs = [np.signbit((x * number).numpy()).all() for number in (0.0, -0.0)]
    assert signs == [False, True]


def test_loops_without_reading_stay_bounded(engine: Engine) -> None:
    x = eager.tensor(VECTOR)
    most = 0
    for _ in range(9000):
        x = x * 1.0001 + 0.5
        most = max(most, engine._recorded)
    assert most <= 4000
    statistics = engine.statistics()
    assert statistics.runs >= 4
    assert statistics.compilations <= 2
    assert statistics.used_bytes + statistics.spare_bytes <= 100


def test_garbage_returns_its_memory(engine: Engine) -> None:
    x = eager.tensor(np.ones((64, 64), np.float32))
    (x + 1).numpy()
    held = engine.statistics().used_bytes
    for _ in range(10):
        (x + 1).numpy()
    statistics = engine.statistics()
    assert statistics.used_bytes == held
    assert statistics.spare_bytes <= 64 * 64 * 4
    del x
    gc.collect()
    assert engine.statistics().used_bytes == 0


def test_spare_memory_is_bounded() -> None:
    with wn.ml.create_context(backend="reference") as context:
        engine = Engine(context, most_spare=100)
        eager.set_default_context(None)
        value = engine.value_of(np.ones(64, np.float32))
        tensor = eager.Tensor(value)
        del value
        (tensor + 1).numpy()
        tensor.dispose()
        del tensor
        assert engine.statistics().spare_bytes <= 100


def test_programs_are_bounded() -> None:
    with wn.ml.create_context(backend="reference") as context:
        engine = Engine(context, most_programs=3)
        for size in range(1, 9):
            (eager.Tensor(engine.value_of(np.ones(size, np.float32))) + 1).numpy()
        assert engine.statistics().programs == 3


def test_memory_of_programs_is_bounded(context: wn.MLContext) -> None:
    engine = Engine(context, most_program_bytes=100_000)
    for size in range(100, 106):
        x = eager.Tensor(engine.value_of(np.ones((size, size), np.float32)))
        # The product between has 40 kB.
        assert ops.softmax(x @ x, 1).numpy()[0, 0] == pytest.approx(1 / size)
    assert 1 <= engine.statistics().programs <= 2
    engine.clear()
    assert (engine.statistics().programs, engine.statistics().spare_bytes) == (0, 0)


def test_an_interrupted_run_can_be_repeated(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    y = eager.tensor(VECTOR) + 1

    def interrupt(*_: Any, **__: Any) -> Any:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(wn.MLGraphBuilder, "build", interrupt)
        with pytest.raises(KeyboardInterrupt):
            y.numpy()
    assert y.tolist() == [2.0, 3.0, 4.0]


def test_disposed_tensors_are_refused(engine: Engine) -> None:
    x = eager.tensor(VECTOR)
    y = x + 1
    x.dispose()
    x.dispose()
    assert y.tolist() == [2.0, 3.0, 4.0]
    assert repr(x) == "Tensor(disposed)"
    for use in (lambda: x + 1, x.numpy, lambda: x.shape):
        with pytest.raises(wn.InvalidStateError, match="disposed"):
            use()


def test_errors_come_at_the_call(engine: Engine) -> None:
    x = eager.tensor(VECTOR)
    with pytest.raises(wn.MLTypeError, match=r"matmul.*float32\[3\]"):
        ops.matmul(x, x)
    with pytest.raises(wn.MLTypeError, match=r"add.*Incompatible shapes"):
        x + eager.tensor([1.0, 2.0])
    with pytest.raises(wn.MLTypeError, match=r"add.*int32"):
        x + eager.tensor([1, 2, 3])
    assert engine.statistics().pending == 0


def test_tensors_of_two_contexts_do_not_mix(engine: Engine) -> None:
    with wn.ml.create_context(backend="reference") as other:
        with pytest.raises(wn.MLTypeError, match="one context"):
            eager.tensor(VECTOR) + eager.tensor(VECTOR, context=other)


def test_a_failed_run_leaves_other_values_alone(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    x = eager.tensor(VECTOR)
    lost = x + 1

    def fail(*_: Any, **__: Any) -> Any:
        raise wn.OperationError("out of order", operator="build")

    with monkeypatch.context() as patch:
        patch.setattr(wn.MLGraphBuilder, "build", fail)
        with pytest.raises(wn.OperationError, match="out of order"):
            lost.numpy()
    assert (x + 2).tolist() == [3.0, 4.0, 5.0]
    with pytest.raises(wn.InvalidStateError, match="out of order"):
        lost.numpy()


@pytest.mark.parametrize(
    "index",
    [0, -1, slice(1, None), (slice(None), 1), (..., slice(None, None, -2)), None, (slice(None, None, 2), None, slice(0, 2))],
)
def test_indices_are_those_of_numpy(engine: Engine, index: Any) -> None:
    array = np.arange(12, dtype=np.float32).reshape(3, 4)
    np.testing.assert_array_equal(eager.tensor(array)[index].numpy(), array[index])


@pytest.mark.parametrize("index", [1.5, "x", 3, -4])
def test_other_indices_are_refused(engine: Engine, index: Any) -> None:
    x = eager.tensor([1.0, 2.0, 3.0], context=engine.context)
    with pytest.raises(wn.MLTypeError, match=r"^getitem: an index must"):
        _ = x[index]
    assert x[np.int64(1)].item() == 2


def test_truth_values_stay_truth_values(engine: Engine) -> None:
    x = eager.tensor(VECTOR)
    large = x > 1.5
    assert (large.dtype, large.tolist()) == ("bool", [False, True, True])
    assert ops.reshape(large, [3, 1]).dtype == "bool"
    assert eager.cast(large, "float32").tolist() == [0.0, 1.0, 1.0]
    assert eager.cast(large, "uint8").dtype == "uint8"
    assert eager.cast(x - 1, "bool").tolist() == [False, True, True]
    assert ops.where(large, x, 0).tolist() == [0.0, 2.0, 3.0]


def test_compositions_are_recorded_by_key(engine: Engine) -> None:
    calls = 0

    def norm(b: wn.MLGraphBuilder, x: wn.MLOperand) -> wn.MLOperand:
        nonlocal calls
        calls += 1
        return b.sqrt(b.reduce_sum(b.mul(x, x)))

    for _ in range(3):
        assert eager.apply(norm, eager.tensor([3.0, 4.0]), key="norm").item() == 5
    # Once for its types, and once for the build.
    assert calls == 2


def test_dictionaries_are_arguments(engine: Engine) -> None:
    x = eager.tensor([[1.0, 2.0], [3.0, 4.0]])
    for c in (x, np.float32([[1, 2], [3, 4]])):
        assert ops.gemm(x, x, {"c": c, "alpha": 2.0}).tolist() == [[15, 22], [33, 48]]


def test_constants_of_own_kernels_keep_their_types() -> None:
    x = eager.tensor(VECTOR, context=profile_context("full"))
    source = """
    @group(0) @binding(0) var<storage, read> x: array<T>;
    @group(0) @binding(1) var<storage, read_write> y: array<f32>;
    @compute @workgroup_size(SIZE) fn main(@builtin(local_invocation_index) i: u32) { y[i] = x[i] / f32(VALUE / 2); }"""
    given: dict[str, Any] = {"output_shapes": [3], "output_types": "float32", "workgroups": 1}
    for value, divisor in ((3, 1), (3, 1), (np.float32(3), 1.5), (3.0, 1.5), (8, 4)):
        found = ops.wgsl_op(source, [x], constants={"SIZE": 3, "VALUE": value}, **given)
        np.testing.assert_allclose(found.numpy(), np.float32(VECTOR) / divisor, rtol=1e-6)


def test_data_is_a_promise(engine: Engine) -> None:
    assert (eager.tensor(VECTOR) * 2).data().result().tolist() == [2.0, 4.0, 6.0]


def test_memory_that_garbage_returns_can_be_used(context: wn.MLContext) -> None:
    for _ in range(3):
        cycle: list[Any] = [eager.tensor(VECTOR, context=context) * 2]
        cycle[0].numpy()
        cycle.append(cycle)
        del cycle
        gc.collect()
        assert (eager.tensor(VECTOR, context=context) * 3).tolist() == [3.0, 6.0, 9.0]


def test_the_default_context_is_made_at_first_use(monkeypatch: pytest.MonkeyPatch) -> None:
    eager.set_default_context(None)
    made: list[wn.MLContext] = []

    def create(*_: Any, **__: Any) -> wn.MLContext:
        made.append(wn.ML().create_context(backend="reference"))
        return made[-1]

    monkeypatch.setattr("webnn_wgpu.eager.engine.ml", type("Made", (), {"create_context": staticmethod(create)}))
    assert eager.tensor(VECTOR).context is eager.tensor(VECTOR).context is eager.default_context()
    assert len(made) == 1
    eager.set_default_context(None)
    made[0].destroy()


def test_loops_are_cut_at_the_same_place(engine: Engine) -> None:
    """The length of the loop does not divide the number of operations after which they run."""
    x = eager.tensor(np.ones((3, 3), np.float32))
    for _ in range(3000):
        y = ops.tanh(x @ x)
        x = ops.softmax(y + x, 1) * 0.5
    assert x.shape == (3, 3)
    statistics = engine.statistics()
    assert statistics.runs >= 5
    assert statistics.compilations <= 2
