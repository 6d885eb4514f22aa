"""`debug.try_kernel`, and files that `override` watches."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import webnn_wgpu as wn
from tests.api.graphs import X, negation
from tests.runtime.graphs import ROWS, network
from webnn_wgpu import debug
from webnn_wgpu.debug.trial import inputs_of

if TYPE_CHECKING:
    from pathlib import Path


def save(file: Path, wgsl: str) -> None:
    """Write a file, later than it was written before by a clock of any resolution."""
    later = file.stat().st_mtime_ns + 10**9 if file.exists() else 10**18
    file.write_text(wgsl, encoding="utf-8")
    os.utime(file, ns=(later, later))


def test_a_source_that_is_right(context: wn.MLContext) -> None:
    graph = negation(context)
    trial = debug.try_kernel(graph, {"x": X}, "neg_0", graph.kernels["neg_0"].wgsl.replace("-(x0)", "0.0 - x0"))
    assert trial
    assert [(r.different, r.max_abs_error, r.max_ulp) for r in trial.results] == [(0, 0.0, 0.0)]
    timed = "timestamp-query" in context.caps.features
    assert (trial.microseconds is not None, trial.original_microseconds is not None) == (timed, timed)
    assert str(trial).splitlines()[1] == "  float32[3]: all 3 elements are the same"


def test_a_source_that_is_wrong(context: wn.MLContext) -> None:
    graph = negation(context)
    wgsl = graph.kernels["neg_0"].wgsl.replace("-(x0)", "select(-(x0), 1.5, x0 > 2.0)")
    trial = debug.try_kernel(graph, {"x": X}, "neg_0", wgsl, runs=0)
    assert not trial
    (result,) = trial.results
    assert (result.type, result.elements, result.different, result.max_abs_error) == ("float32[3]", 3, 1, 4.5)
    times, difference = str(trial).splitlines()
    assert times == "neg_0: no times: the device takes no timestamps"
    assert difference.startswith("  float32[3]: 1 of 3 elements differ from the original's, by at most 4.5, ")
    assert difference.endswith("; 1 disagree with the numpy reference")
    assert not graph.kernels["neg_0"].overridden
    np.testing.assert_array_equal(context.compute(graph, {"x": X})["y"], -X)


def test_a_source_that_is_right_is_told_from_a_wrong_original(context: wn.MLContext) -> None:
    wrong = """
    @group(0) @binding(0) var<storage, read> x: array<f32>;
    @group(0) @binding(1) var<storage, read_write> y: array<f32>;
    @compute @workgroup_size(3) fn main(@builtin(local_invocation_index) i: u32) { y[i] = x[i] + 2.0; }"""

    def reference(array: Any) -> Any:
        return array + 1

    for given, end in ((reference, "; all agree with the numpy reference"), (None, " ULP")):
        builder = context.create_graph_builder()
        x = builder.input("x", {"dataType": "float32", "shape": [3]})
        y = builder.wgsl_op(
            wrong, [builder.abs(x)], output_shapes=[3], output_types="float32", workgroups=1, label="own", reference=given
        )
        graph = builder.build({"y": y})
        trial = debug.try_kernel(graph, {"x": X}, "own", wrong.replace("2.0", "1.0"), runs=0)
        assert trial.results[0].wrong == (None if given is None else 0)
        assert str(trial).endswith(end)


def test_every_kernel_of_a_network_is_what_it_is(context: wn.MLContext) -> None:
    graph = network(context)
    expected = context.compute(graph, {"x": ROWS})
    for name, kernel in graph.kernels.items():
        trial = debug.try_kernel(graph, {"x": ROWS}, name, kernel.wgsl, runs=1)
        assert trial, str(trial)
        assert trial.results
    for name, array in context.compute(graph, {"x": ROWS}).items():
        np.testing.assert_array_equal(array, expected[name])


def test_what_is_installed_is_tried_if_nothing_is_given(context: wn.MLContext) -> None:
    graph = negation(context)
    with pytest.raises(wn.MLTypeError, match=r"try_kernel\('neg_0'\): there is no source to try"):
        debug.try_kernel(graph, {"x": X}, "neg_0")
    graph.override("neg_0", graph.kernels["neg_0"].wgsl.replace("-(x0)", "x0"))
    assert debug.try_kernel(graph, {"x": X}, "neg_0", runs=0).results[0].max_abs_error == 6
    with pytest.raises(wn.MLTypeError, match="runs must not be negative; got -1"):
        debug.try_kernel(graph, {"x": X}, "neg_0", runs=-1)


def test_what_does_not_compile_is_placed(context: wn.MLContext, tmp_path: Path) -> None:
    file = tmp_path / "own.wgsl"
    save(file, "fn main() {\n    foo();\n}")
    with pytest.raises(wn.OperationError, match=r"^try_kernel\('neg_0'\): the source does not compile: .*own.wgsl:2:5: no def"):
        debug.try_kernel(negation(context), {"x": X}, "neg_0", file)


def test_inputs_of_a_graph_within_a_program(context: wn.MLContext) -> None:
    graph = network(context)
    given = inputs_of(graph, lambda: [context.compute(graph, {"x": rows}) for rows in (ROWS, ROWS + 1)])
    assert list(given) == ["x"]
    np.testing.assert_array_equal(given["x"], ROWS)


# watched files ---------------------------------------------------------------------------------------------------------


def test_a_watched_file_is_taken_when_it_is_saved(context: wn.MLContext, tmp_path: Path) -> None:
    graph, file = negation(context), tmp_path / "own.wgsl"
    wgsl = graph.kernels["neg_0"].wgsl

    def result() -> list[float]:
        found: list[float] = context.compute(graph, {"x": X})["y"].tolist()
        return found

    save(file, wgsl.replace("-(x0)", "2.0 * x0"))
    graph.override("neg_0", file, watch=True)
    assert result() == [2, -4, 6]
    save(file, wgsl.replace("-(x0)", "3.0 * x0"))
    assert result() == [3, -6, 9]
    assert "3.0 * x0" in graph.kernels["neg_0"].wgsl
    save(file, wgsl.replace("-(x0)", "foo(x0)"))
    with pytest.warns(RuntimeWarning, match=r"override\('neg_0'\): the source does not compile: .*own.wgsl:\d+:\d+: no def"):
        assert result() == [3, -6, 9]
    assert result() == [3, -6, 9]  # it is told once
    file.write_bytes(b"\xff\xfe of another encoding")
    with pytest.warns(RuntimeWarning, match=r"own.wgsl is no text in UTF-8"):
        assert result() == [3, -6, 9]
    file.unlink()
    assert result() == [3, -6, 9]
    save(file, wgsl.replace("-(x0)", "4.0 * x0"))
    assert result() == [4, -8, 12]
    graph.restore("neg_0")
    save(file, wgsl.replace("-(x0)", "5.0 * x0"))
    assert result() == (-X).tolist()


def test_what_is_not_watched_stays(context: wn.MLContext, tmp_path: Path) -> None:
    graph, file = negation(context), tmp_path / "own.wgsl"
    wgsl = graph.kernels["neg_0"].wgsl
    save(file, wgsl.replace("-(x0)", "2.0 * x0"))
    graph.override("neg_0", file, watch=True)
    graph.override("neg_0", file)
    save(file, wgsl)
    assert context.compute(graph, {"x": X})["y"].tolist() == [2, -4, 6]
    with pytest.raises(wn.MLTypeError, match="override: only a file can be watched; got <wgsl>"):
        graph.override("neg_0", wgsl, watch=True)
    with pytest.raises(FileNotFoundError):
        graph.override("neg_0", tmp_path / "missing.wgsl", watch=True)
