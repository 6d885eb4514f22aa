"""CPU time of recording and submitting a run, per dispatch, with each recorder."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from typing import Any

import pytest

import webnn_wgpu as wn
from tests.benchmarks.results import Results
from webnn_wgpu.demos.sentence_encoder import SentenceEncoder
from webnn_wgpu.runtime.device import Device
from webnn_wgpu.runtime.program import Program
from webnn_wgpu.runtime.recorder import Recorder

LENGTH = 200
REPETITIONS = 200


def chain(context: wn.MLContext) -> wn.MLGraph:
    """A chain of small dispatches, alternating between two kernels."""
    builder = wn.MLGraphBuilder(context)
    value = builder.input("x", {"dataType": "float32", "shape": [8, 8]})
    for i in range(LENGTH):
        value = builder.transpose(value) if i % 2 else builder.reverse(value, axes=[0])
    return builder.build({"y": value})


def cpu_us(run: Callable[[], object], after: Callable[[Any], object]) -> float:
    """Return the CPU time that this thread takes for something, the median of all repetitions, each followed by `after`."""
    taken: list[int] = []
    for _ in range(REPETITIONS):
        begin = time.thread_time_ns()
        made = run()
        taken.append(time.thread_time_ns() - begin)
        after(made)
    return statistics.median(taken) / 1000


def report(monkeypatch: pytest.MonkeyPatch, results: Results, what: str, build: Callable[[], wn.MLGraph]) -> None:
    """Report what recording takes per dispatch, and what a whole submission takes, each right after a run.

    A run leaves caches cold. What was recorded is submitted: wgpu never gives back what else it takes.
    """
    found: dict[str, float] = {}
    for recorder in ("raw", "plain"):
        monkeypatch.setenv("WEBNN_WGPU_RECORDER", recorder)
        graph = build()
        program: Any = graph._executable
        assert isinstance(program, Program)
        own, device, count = program._own, program.device, len(program.plan.dispatches)
        assert own is not None

        def recorded(program: Program = program, own: Recorder = own) -> object:
            encoder = program.device.gpu.create_command_encoder()
            program.record(own, encoder)
            return encoder.finish()

        def submitted(device: Device = device, own: Recorder = own) -> None:
            own.submit(device.gpu)

        def run(made: Any, device: Device = device) -> None:
            device.gpu.queue.submit([made])
            device.wait()

        found[recorder] = cpu_us(recorded, run) / count
        submission = cpu_us(submitted, lambda _, device=device: device.wait())
        graph.destroy()
        results.add(
            "overhead",
            f"{what}, {recorder}",
            cpu_us_per_dispatch=found[recorder],
            cpu_us_submission=submission,
            dispatches=count,
        )
    print(f"\n{what}: plain takes {found['plain'] / found['raw']:.1f} times as long as raw")


@pytest.mark.bench
def test_encoding_a_chain(context: wn.MLContext, monkeypatch: pytest.MonkeyPatch, results: Results) -> None:
    report(monkeypatch, results, "chain", lambda: chain(context))


@pytest.mark.bench
def test_encoding_the_sentence_encoder(context: wn.MLContext, monkeypatch: pytest.MonkeyPatch, results: Results) -> None:
    try:
        folder = SentenceEncoder.find_model_dir()
    except (OSError, ImportError, RuntimeError) as error:
        pytest.skip(f"the weights of the sentence encoder are not installed: {error}")
    with SentenceEncoder(folder, context) as encoder:
        report(monkeypatch, results, "MiniLM at 128 tokens", lambda: encoder.build(1, 128))


@pytest.mark.bench
def test_dispatch_without_copies(context: wn.MLContext, results: Results) -> None:
    """A small graph between tensors: from the call of `dispatch` to its return, and with the wait for the device."""
    builder = wn.MLGraphBuilder(context)
    x = builder.input("x", [8, 8], "float32")
    graph = builder.build({"y": builder.softmax(builder.matmul(x, x), 1)})
    source, result = (context.create_tensor([8, 8], "float32") for _ in range(2))
    device = Device.of(context.device)
    thread: list[int] = []
    for _ in range(REPETITIONS):
        device.wait()
        begin = time.thread_time_ns()
        context.dispatch(graph, {"x": source}, {"y": result})
        thread.append(time.thread_time_ns() - begin)
    thread.sort()
    results.add(
        "overhead",
        f"dispatch of {len(graph.kernels)} kernels without copies",
        cpu_us_at_best=thread[0] / 1000,
        cpu_us_median=thread[len(thread) // 2] / 1000,
    )
