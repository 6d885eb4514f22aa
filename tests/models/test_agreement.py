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

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from webnn_wgpu.frontends.onnx import Model
    from webnn_wgpu.ir.graph import Array

TOLERANCES = {"float32": 2e-5, "float16": 1e-2, "integers": 5e-2}
"""The largest difference by what a model computes with, as a part of the largest number of an output.

Where a model rounds to integers of 8 bits, the order of a sum decides to which of two neighbors.
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


def check(model: Model, source: bytes | str, feeds: Mapping[str, Any], tolerance: float) -> None:
    """Run a model and compare its outputs with onnxruntime's."""
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    # Some optimizations round activations to 8 bits.
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = onnxruntime.InferenceSession(source, options, ["CPUExecutionProvider"])
    expected = dict(zip([o.name for o in session.get_outputs()], session.run(None, dict(feeds)), strict=True))
    actual = model.run(dict(feeds))
    assert set(actual) == set(expected)
    for name, wanted in expected.items():
        found = np.asarray(actual[name])
        assert (found.dtype, found.shape) == (wanted.dtype, wanted.shape)
        if wanted.dtype.kind != "f":
            np.testing.assert_array_equal(found, wanted, err_msg=name)
        elif wanted.size:
            wide = wanted.astype(np.float64)
            difference = float(np.abs(found - wide).max() / (np.abs(wide).max() or 1))
            assert difference <= tolerance, f"{name}: {difference:.2g}"


@PROFILE
@pytest.mark.parametrize("name", MODELS)
def test_examples(name: str, context: wn.MLContext) -> None:
    source = MODELS[name]().SerializeToString()
    for sizes in SIZES[name]:
        with wn.load_onnx(source, context, fallback="host", override_dims=sizes, tuning=False) as model:
            check(model, source, feeds_of(model, sizes), TOLERANCES["integers" if name == "quantized_8bit" else "float32"])


if bench.names():

    @PROFILE
    @pytest.mark.slow
    @pytest.mark.parametrize("name", bench.names())
    def test_models_of_the_benchmark(name: str, context: wn.MLContext) -> None:
        path = bench.path(name)
        feeds = dict(np.load(path.with_suffix(".npz")))
        kind = next((kind for end, kind in (("_fp16", "float16"), ("8", "integers")) if name.endswith(end)), "float32")
        with wn.load_onnx(path, context, fallback="host", tuning=False) as model:
            check(model, str(path), feeds, TOLERANCES[kind])


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
