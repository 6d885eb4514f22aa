"""CPU time of recording and submitting a run, per dispatch, with each recorder."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import pytest

import webnn_wgpu as wn
from tests.benchmarks.results import Results
from webnn_wgpu.frontends.sentence_encoder import SentenceEncoder
from webnn_wgpu.runtime.program import Program

LENGTH = 200
REPETITIONS = 200


def chain(context: wn.MLContext) -> wn.MLGraph:
    """A chain of small dispatches, alternating between two kernels."""
    builder = wn.MLGraphBuilder(context)
    value = builder.input("x", {"dataType": "float32", "shape": [8, 8]})
    for i in range(LENGTH):
        value = builder.transpose(value) if i % 2 else builder.reverse(value, axes=[0])
    return builder.build({"y": value})


def cpu_us_per_dispatch(graph: wn.MLGraph) -> tuple[float, int]:
    """Return the CPU time of this thread for recording one dispatch, the least of all repetitions, and their number."""
    program: Any = graph._executable
    assert isinstance(program, Program)
    count = len(program.plan.dispatches)
    encode = program.record
    assert program._own is not None
    best = float("inf")
    for _ in range(REPETITIONS):
        begin = time.thread_time_ns()
        encoder = encode(program._own)
        commands = encoder.finish()
        best = min(best, time.thread_time_ns() - begin)
        del encoder, commands
    return best / 1000 / count, count


def report(monkeypatch: pytest.MonkeyPatch, results: Results, what: str, build: Callable[[], wn.MLGraph]) -> None:
    found: dict[str, float] = {}
    for recorder in ("raw", "plain"):
        monkeypatch.setenv("WEBNN_WGPU_RECORDER", recorder)
        graph = build()
        found[recorder], count = cpu_us_per_dispatch(graph)
        graph.destroy()
        results.add("overhead", f"{what}, {recorder}", cpu_us_per_dispatch=found[recorder], dispatches=count)
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
