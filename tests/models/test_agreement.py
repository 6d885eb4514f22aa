"""Whole models, compiled as for a GPU, against onnxruntime on the CPU: the examples', and those of the benchmark."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import onnxruntime
import pytest

import webnn_wgpu as wn
from examples.models import MODELS
from tests.golden import bench
from tests.golden.models import SIZES
from tests.support import profile_context
from webnn_wgpu.cli.inputs import made_up
from webnn_wgpu.frontends.onnx import settle
from webnn_wgpu.testing.suite import relative_difference

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from webnn_wgpu.frontends.onnx import Model
    from webnn_wgpu.ir.graph import Array

TOLERANCES = {"float32": 2e-5, "float16": 1e-2}
"""The largest difference by what a model computes with, as a part of the largest number of an output."""

ROUNDED = 1.5
"""The same for models that round to integers of 8 bits, as a multiple of what onnxruntime's own optimizations change.

There the order of a sum decides to which of two neighbors a number is rounded. onnxruntime's results with and without
optimizations differ by 0.09 to 0.11 for networks of 50 layers.
"""

PROFILE = pytest.mark.parametrize("profile", ["hardware"])


@pytest.fixture
def context(profile: str) -> Iterator[wn.MLContext]:
    with profile_context(profile) as opened:
        yield opened


def feeds_of(model: Model, sizes: Mapping[str, int]) -> dict[str, Array]:
    """Return random inputs."""
    rng = np.random.default_rng(0)
    return {info.name: made_up(info, settle(info.shape, sizes), rng) for info in model.inputs}


def expected_of(source: bytes | str, feeds: Mapping[str, Any], *, optimized: bool) -> dict[str, Array]:
    """Return the results of onnxruntime on the CPU."""
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    # Some optimizations round activations to 8 bits.
    levels = onnxruntime.GraphOptimizationLevel
    options.graph_optimization_level = levels.ORT_ENABLE_ALL if optimized else levels.ORT_DISABLE_ALL
    session = onnxruntime.InferenceSession(source, options, ["CPUExecutionProvider"])
    return dict(zip([o.name for o in session.get_outputs()], session.run(None, dict(feeds)), strict=True))


def check(model: Model, source: bytes | str, feeds: Mapping[str, Any], tolerance: float | None) -> None:
    """Run a model and compare its outputs with onnxruntime's.

    Args:
        model: the model.
        source: its file.
        feeds: its inputs.
        tolerance: the largest difference; None for models that round to integers.
    """
    expected = expected_of(source, feeds, optimized=False)
    actual = {name: np.asarray(array) for name, array in model.run(dict(feeds)).items()}
    assert set(actual) == set(expected)
    for name, wanted in expected.items():
        assert (actual[name].dtype, actual[name].shape) == (wanted.dtype, wanted.shape)
        if wanted.dtype.kind != "f":
            np.testing.assert_array_equal(actual[name], wanted, err_msg=name)
    if tolerance is not None:
        assert relative_difference(actual, expected) <= tolerance
        return
    # Differences, not quotients of them, whose last bits differ where three units are compared with one and a half times two.
    optimized = expected_of(source, feeds, optimized=True)
    for name, wanted in expected.items():
        if wanted.dtype.kind == "f":
            assert _difference(actual[name], wanted) <= ROUNDED * _difference(optimized[name], wanted), name


def _difference(found: Array, wanted: Array) -> float:
    """Return the largest difference of two arrays."""
    return float(np.abs(found.astype(np.float64) - wanted.astype(np.float64)).max(initial=0))


@PROFILE
@pytest.mark.parametrize("name", MODELS)
def test_examples(name: str, context: wn.MLContext) -> None:
    source = MODELS[name]().SerializeToString()
    for sizes in SIZES[name]:
        with wn.load_onnx(source, context, fallback="host", override_dims=sizes, tuning=False) as model:
            check(model, source, feeds_of(model, sizes), None if name == "quantized_8bit" else TOLERANCES["float32"])


if bench.names():

    @PROFILE
    @pytest.mark.slow
    @pytest.mark.parametrize("name", bench.names())
    def test_models_of_the_benchmark(name: str, context: wn.MLContext) -> None:
        path = bench.path(name)
        feeds = dict(np.load(path.with_suffix(".npz")))
        with wn.load_onnx(path, context, fallback="host", tuning=False) as model:
            tolerance = TOLERANCES["float16" if name.endswith("_fp16") else "float32"]
            check(model, str(path), feeds, None if name.endswith("8") else tolerance)


@PROFILE
def test_the_profile_takes_kernels_of_gpus(context: wn.MLContext, profile: str) -> None:
    assert profile == "hardware"
    variants = []
    for device in (context, profile_context("full")):
        b = wn.MLGraphBuilder(device)
        x, y = (b.input(name, {"dataType": "float32", "shape": [256, 256]}) for name in "xy")
        with b.build({"z": b.matmul(x, y)}) as graph:
            assert graph.plan is not None
            variants.append(graph.plan.dispatches[-1].spec.template)
    assert variants[0] == "matmul.tiled"
    if context.caps.is_software:
        assert variants[1] != "matmul.tiled"
