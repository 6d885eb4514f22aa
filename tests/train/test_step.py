"""The training step: learning, metrics, clipping, checkpoints, memory, and the input that it refuses."""

from __future__ import annotations

import gc
import tracemalloc
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

import webnn_wgpu as wn
from tests.runtime.counting import counted, created
from webnn_wgpu import train

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from pathlib import Path

    Operands = Mapping[str, wn.MLOperand]

INPUTS: Mapping[str, Any] = {
    "x": {"dataType": "float32", "shape": [64, 2]},
    "label": {"dataType": "int32", "shape": [64]},
}
VECTOR: Mapping[str, Any] = {"v": {"dataType": "float32", "shape": [3]}}


def moons(b: wn.MLGraphBuilder, p: Operands, i: Operands) -> Operands:
    """The cross-entropy and the accuracy of a classifier with two classes."""
    hidden = b.tanh(b.add(b.matmul(i["x"], p["w1"]), p["b1"]))
    scores = b.add(b.matmul(hidden, p["w2"]), p["b2"])
    column = b.reshape(i["label"], [64, 1])
    loss = b.neg(b.reduce_mean(b.gather_elements(b.ext.log_softmax(scores, 1), column, axis=1)))
    right = b.equal(b.arg_max(scores, 1, output_data_type="int32"), i["label"])
    return {"loss": loss, "accuracy": b.reduce_mean(b.cast(right, "float32"))}


def half_moons() -> dict[str, np.ndarray[Any, Any]]:
    rng = np.random.default_rng(5)
    label = np.arange(64) % 2
    angle = rng.uniform(0, np.pi, 64)
    x = np.stack([np.cos(angle) + label, (1 - 2 * label) * np.sin(angle) + 0.4 * label], 1)
    return {"x": (x + 0.05 * rng.standard_normal(x.shape)).astype(np.float32), "label": label.astype(np.int32)}


def classifier(context: wn.MLContext, optimizer: train.Optimizer | None = None) -> train.Step:
    rng = np.random.default_rng(0)
    weights = {
        "w1": train.glorot_uniform([2, 16], rng),
        "b1": np.zeros(16),
        "w2": train.glorot_uniform([16, 2], rng),
        "b2": np.zeros(2),
    }
    schedule = train.WarmUpSchedule(steps=5, after=train.CosineSchedule(initial=0.1, steps=100, final=0.01))
    return train.Step(context, moons, weights, optimizer or train.AdamW(learning_rate=schedule), inputs=INPUTS)


@pytest.fixture(scope="module")
def step(context: wn.MLContext) -> Iterator[train.Step]:
    """A step with states: for tests that set its parameters, or fail."""
    with classifier(context, train.SGD(momentum=0.5)) as step:
        yield step


@pytest.mark.parametrize("backend", ["device", "reference"])
def test_a_network_learns_and_learns_the_same_again(context: wn.MLContext, backend: str) -> None:
    on = context if backend == "device" else wn.ml.create_context(backend="reference")
    batch = half_moons()
    runs: list[list[Mapping[str, float]]] = []
    for _ in range(2):
        with classifier(on) as step:
            runs.append([step(batch) for _ in range(105)])
            assert step.steps == 105
    assert runs[0] == runs[1]
    assert runs[0][0]["loss"] > 0.4
    assert runs[0][-1]["loss"] < 0.05
    assert runs[0][-1]["accuracy"] == 1


def test_a_checkpoint_continues_with_equal_bits(context: wn.MLContext, tmp_path: Path) -> None:
    batch, path = half_moons(), tmp_path / "moons.safetensors"
    with classifier(context) as step, classifier(context) as other:
        # An odd number of steps ends in the second set of tensors.
        for _ in range(7):
            step(batch)
        step.save(path)
        expected = [step(batch) for _ in range(6)]
        other.load(path)
        assert other.steps == 7
        assert [other(batch) for _ in range(6)] == expected
        step.load(path)
        assert [step(batch) for _ in range(6)] == expected
        for name, array in step.parameters().items():
            assert np.array_equal(array, other.parameters()[name])
    assert [file.name for file in tmp_path.iterdir()] == [path.name]


def test_parameters_are_set_and_read(step: train.Step) -> None:
    bias = np.linspace(0, 1, 16, dtype=np.float32)
    step.set_parameters({"b1": bias})
    found = step.parameters()
    assert list(found) == ["w1", "b1", "w2", "b2"]
    assert np.array_equal(found["b1"], bias)


def linear(b: wn.MLGraphBuilder, p: Operands, i: Operands) -> wn.MLOperand:
    """A loss whose gradients are the inputs."""
    return b.add(b.reduce_sum(b.mul(p["a"], i["v"])), b.mul(p["s"], b.constant("float32", 4)))


@pytest.mark.parametrize(
    ("options", "vector", "expected"),
    [
        ({"clip_value": 2.5}, [1, -3, 30], ([1, -2.5, 2.5], 2.5)),
        ({"clip_norm": 6.5}, [0, -12, 3], ([0, -6, 1.5], 2)),
        ({"clip_norm": 14}, [0, -12, 3], ([0, -12, 3], 4)),
        ({"clip_value": 3, "clip_norm": 3}, [9, -9, -9], ([1.5, -1.5, -1.5], 1.5)),
    ],
)
def test_gradients_are_clipped(context: wn.MLContext, options: Any, vector: Any, expected: Any) -> None:
    optimizer = train.SGD(learning_rate=1, **options)
    with train.Step(context, linear, {"a": np.zeros(3), "s": np.array(0.0)}, optimizer, inputs=VECTOR) as step:
        step({"v": np.float32(vector)})
        found = step.parameters()
        np.testing.assert_allclose(-found["a"], expected[0], rtol=1e-6)
        np.testing.assert_allclose(-found["s"], expected[1], rtol=1e-6)


def test_inputs_and_parameters_without_influence_are_allowed(context: wn.MLContext) -> None:
    parameters = {"a": np.ones(3), "s": np.array(0.0), "unused": np.ones(2)}
    inputs = {**VECTOR, "ignored": {"dataType": "int32", "shape": [5]}}
    with train.Step(context, linear, parameters, train.Adam(), inputs=inputs) as step:
        assert step({"v": [1, 2, 3], "ignored": [0] * 5}) == {"loss": 6}
        assert np.array_equal(step.parameters()["unused"], [1, 1])


def test_a_step_creates_nothing_on_the_device_and_keeps_no_memory(context: wn.MLContext) -> None:
    batch = half_moons()
    with classifier(context) as step:
        for _ in range(4):
            step(batch)
        before = context.memory().total
        gc.collect()
        tracemalloc.start()
        start = tracemalloc.get_traced_memory()[0]
        with counted() as calls:
            for _ in range(200):
                step(batch)
        gc.collect()
        grown = tracemalloc.get_traced_memory()[0] - start
        tracemalloc.stop()
        assert created(calls) == {}
        # Two inputs and AdamW's three scalars go up, and one tensor of metrics comes down.
        assert (calls["wgpuQueueWriteBuffer"], calls["wgpuBufferMapAsync"]) == (200 * (2 + 3), 200)
        assert context.memory().total == before
        assert grown < 50_000


def test_the_end_frees_all_memory(context: wn.MLContext) -> None:
    before = context.memory()["tensors"]
    with classifier(context) as step:
        assert context.memory()["tensors"] > before
        assert repr(step) == "Step(AdamW, 82 weights, 0 steps)"
    step.destroy()
    assert context.memory()["tensors"] == before


# refusals -------------------------------------------------------------------------------------------------------------


def build(context: wn.MLContext, forward: Any = linear, parameters: Any = None, optimizer: Any = None) -> train.Step:
    parameters = {"a": np.zeros(3), "s": np.array(0.0)} if parameters is None else parameters
    return train.Step(context, forward, parameters, optimizer or train.SGD(), inputs=VECTOR)


REFUSED: Mapping[str, tuple[Callable[[wn.MLContext], object], str]] = {
    "no parameters": (lambda c: build(c, parameters={}), r"Step: parameters must not be empty; got no parameters\. Pass "),
    "integers": (
        lambda c: build(c, parameters={"a": np.arange(3)}),
        r"Step\('a'\): parameters must be float32; got int64; allowed: float32, float64",
    ),
    "a reserved name": (
        lambda c: build(c, parameters={"optimizer/mean/a": np.zeros(3)}),
        r"Step: names of parameters must not begin .*; got 'optimizer/mean/a'\. Rename",
    ),
    "no optimizer": (lambda c: build(c, optimizer="adam"), r"Step: optimizer must be an optimizer; got str; allowed: .*"),
    "an unknown parameter": (
        lambda c: build(c, lambda b, p, i: p["b"]),
        r"Step: parameters must have known names; got 'b'; allowed: 'a', 's'",
    ),
    "an unknown input": (
        lambda c: build(c, lambda b, p, i: i["w"]),
        r"Step: inputs must have known names; got 'w'; allowed: 'v'",
    ),
    "no scalar": (
        lambda c: build(c, lambda b, p, i: b.mul(p["a"], i["v"])),
        r"Step\('loss'\): the loss and metrics must be scalars; got MLOperand\(float32\[3\]\)\. Reduce it, .*",
    ),
    "no loss": (
        lambda c: build(c, lambda b, p, i: {"error": linear(b, p, i)}),
        r"Step: forward must return the loss; got 'error'\. Return the loss, .*",
    ),
    "no operand": (
        lambda c: build(c, lambda b, p, i: {"loss": 3.0}),
        r"Step\('loss'\): forward must return operands; got float",
    ),
    "no result": (lambda c: build(c, lambda b, p, i: None), r"Step: forward must return the loss; got NoneType.*"),
    "no inputs": (
        lambda c: train.Step(c, linear, {"a": np.zeros(3)}, train.SGD(), inputs=None),
        r"Step: inputs must be descriptors by name; got NoneType; allowed: \{\"x\"",
    ),
    "no descriptor": (
        lambda c: train.Step(c, linear, {"a": np.zeros(3)}, train.SGD(), inputs={"x": (4, 2)}),
        r"Step\('x'\): an input must be a descriptor; got tuple; allowed",
    ),
    "no rule of the loss's factor": (
        lambda c: train.Step(c, linear, {"a": np.zeros(3)}, train.SGD(), inputs=VECTOR, loss_scale=1024),
        r"Step: loss_scale must be a rule; got int; allowed: None, or",
    ),
    "no gradient": (
        lambda c: build(c, lambda b, p, i: b.reduce_sum(b.floor(p["a"]))),
        r"floor: operators between operands and outputs must have gradients; got the path a -> floor",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_a_step_is_refused(context: wn.MLContext, name: str) -> None:
    make, message = REFUSED[name]
    with pytest.raises(wn.WebNNError, match=message):
        make(context)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"label": None}, r"Step: inputs must be complete; got no 'label'; allowed: 'x', 'label'"),
        ({"other": [1]}, r"Step: inputs must have known names; got 'other'; allowed: 'x', 'label'"),
        (
            {"x": np.zeros((3, 2), np.float32)},
            r"Step\('x'\): an input .* must have its declared shape; got \[3, 2\]; allowed: \[64, 2\]\. .*any_batch=True",
        ),
        ({"x": np.zeros((2, 64), np.float32)}, r"Step\('x'\): .* got \[2, 64\]; allowed: \[64, 2\]$"),
        ({"label": [[0]] * 64}, r"Step\('label'\): .* got \[64, 1\]; allowed: \[64\]$"),
        ({"x": np.zeros((64, 2))}, r"write_tensor\('x'\): data must have the tensor's data type; got float64"),
        ({"x": [[1.0, 2.0], [1.0]]}, r"write_tensor\('x'\): data does not fit the tensor's data type"),
        ({"x": b"\0" * 8}, r"write_tensor\('x'\): data must have exactly the tensor's bytes"),
    ],
)
def test_a_batch_is_refused_and_leaves_the_step_as_it_was(step: train.Step, change: Any, message: str) -> None:
    before, steps = step.parameters(), step.steps
    batch = {name: data for name, data in {**half_moons(), **change}.items() if data is not None}
    with pytest.raises(wn.MLTypeError, match=message):
        step(batch)
    assert step.steps == steps
    for name, array in step.parameters().items():
        assert np.array_equal(array, before[name])


def test_a_batch_of_raw_bytes_or_lists_is_taken(context: wn.MLContext) -> None:
    batch = half_moons()
    found: list[dict[str, float]] = []
    for taken in (np.asarray, np.ndarray.tobytes, np.ndarray.tolist, lambda array: np.frombuffer(array.tobytes(), np.uint8)):
        with classifier(context) as step:
            found.append(step({name: taken(array) for name, array in batch.items()}))
    assert all(each == found[0] for each in found)


def test_parameters_of_other_names_and_shapes_are_refused(step: train.Step) -> None:
    before = step.parameters()["b2"]
    with pytest.raises(wn.MLTypeError, match=r"parameters must have known names; got 'b3'; allowed: 'w1', 'b1', 'w2', 'b2'"):
        step.set_parameters({"b2": np.ones(2), "b3": np.ones(2)})
    with pytest.raises(wn.MLTypeError, match=r"Step\('b1'\): a tensor must keep .*; got float32\[2\]; allowed: float32\[16\]"):
        step.set_parameters({"b2": np.ones(2), "b1": np.ones(2)})
    assert np.array_equal(step.parameters()["b2"], before)


def test_checkpoints_of_other_steps_are_refused(context: wn.MLContext, step: train.Step, tmp_path: Path) -> None:
    step.save(tmp_path / "momentum.safetensors")
    with classifier(context, train.SGD()) as plain, classifier(context) as adamw:
        with pytest.raises(
            wn.MLTypeError, match=r"tensors of a checkpoint must have known names; got 'optimizer/velocity/b1', "
        ):
            plain.load(tmp_path / "momentum.safetensors")
        with pytest.raises(wn.MLTypeError, match=r"must be of the step's optimizer; got SGD; allowed: AdamW"):
            adamw.load(tmp_path / "momentum.safetensors")
        plain.save(tmp_path / "plain.safetensors")
    with pytest.raises(wn.MLTypeError, match=r"must be complete; got no 'optimizer/velocity/w1'"):
        step.load(tmp_path / "plain.safetensors")
    half = {name: array.astype(np.float16) for name, array in load_file(tmp_path / "momentum.safetensors").items()}
    save_file(half, tmp_path / "half.safetensors", {"webnn_wgpu.optimizer": "SGD", "webnn_wgpu.steps": "3"})
    with pytest.raises(
        wn.MLTypeError, match=r"a tensor must keep its data type and shape; got float16\[16\]; allowed: float32"
    ):
        step.load(tmp_path / "half.safetensors")
    save_file(half, tmp_path / "foreign.safetensors")
    with pytest.raises(wn.MLTypeError, match=r"the file must be a checkpoint; got a file without the number of steps"):
        step.load(tmp_path / "foreign.safetensors")
    (tmp_path / "broken.safetensors").write_bytes(b"no safetensors")
    with pytest.raises(wn.MLTypeError, match=r"load\('.*broken.safetensors'\): the file must be a checkpoint; got .*; allowed"):
        step.load(tmp_path / "broken.safetensors")
    with pytest.raises(FileNotFoundError):
        step.load(tmp_path / "missing.safetensors")


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: train.SGD(learning_rate=-1), r"SGD: learning_rate must be in its range; got -1; allowed: 0 or above"),
        (lambda: train.SGD(nesterov=True), r"SGD: nesterov must have a momentum; got momentum 0; allowed: above 0"),
        (lambda: train.Adam(beta2=1), r"Adam: beta2 must be in its range; got 1; allowed: 0 or above, and below 1"),
        (lambda: train.Lion(clip_norm=0), r"Lion: clip_norm must be in its range; got 0; allowed: above 0"),
        (lambda: train.RMSProp(epsilon=float("nan")), r"RMSProp: epsilon must be in its range; got nan; allowed: 0 or above"),
        (lambda: train.Adagrad(learning_rate="fast"), r"Adagrad: learning_rate must be in its range; got 'fast'"),
    ],
)
def test_options_out_of_range_are_refused(make: Callable[[], object], message: str) -> None:
    with pytest.raises(wn.MLTypeError, match=message):
        make()
