"""Core ML packages: programs are built, and their values agree where coremltools computes them in numpy."""

from __future__ import annotations

import json
import logging
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import webnn_wgpu as wn
from tests.exporters.operator_calls import first_calls
from tests.support import op_graph

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.kernels.operators import Call

ct = pytest.importorskip("coremltools", reason="the extra `coreml` is not installed")

pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.fixture(scope="module")
def reference() -> Iterator[wn.MLContext]:
    logging.getLogger("coremltools").setLevel(logging.ERROR)
    with wn.ml.create_context(backend="reference") as context:
        yield context


FEW = list(first_calls().values())
REFUSED = frozenset(
    """x.bitcast x.cache_update x.bitwise_and x.bitwise_or x.bitwise_xor x.shift_left x.shift_right x.grid_sample
    x.random_bits x.round_bfloat16 x.round_float8 x.top_k""".split()
)
"""Operators whose first call Core ML does not have."""


@pytest.mark.parametrize("call", [c for c in FEW if c.name not in REFUSED], ids=str)
def test_programs_of_all_operators(call: Call, reference: wn.MLContext) -> None:
    from webnn_wgpu.exporters.coreml.model import program_of

    arrays = call.arrays()
    graph = reference._compile(op_graph(call.name, arrays, call.attrs, call.constants), None, (), "test")
    program, names = program_of(graph)
    outputs = program.functions["main"].outputs
    assert [tuple(o.shape) for o in outputs] == [tuple(t.shape) or (1,) for t in graph.outputs.values()]
    assert sorted(names.values()) == sorted([*graph.inputs, *graph.outputs])
    feeds: dict[str, Any] = {name: arrays[int(name)] for name in graph.inputs}
    computed, _ = program_of(graph, feeds=feeds)
    for found, array in zip(computed.functions["main"].outputs, reference.compute(graph, feeds).values(), strict=True):
        if found.val is None:  # coremltools computes no convolutions, pools and the like
            continue
        largest = np.abs(array[np.isfinite(array)], dtype=np.float64).max(initial=1)
        np.testing.assert_allclose(found.val, array.reshape(found.val.shape), rtol=1e-3, atol=1e-4 * largest)


@pytest.mark.parametrize("call", [c for c in FEW if c.name in REFUSED], ids=str)
def test_operators_that_core_ml_does_not_have_are_refused_by_name(call: Call, reference: wn.MLContext) -> None:
    from webnn_wgpu.exporters.coreml.model import program_of

    graph = reference._compile(op_graph(call.name, call.arrays(), call.attrs, call.constants), None, (), "test")
    with pytest.raises(wn.NotSupportedError, match=rf"\('test'\): {call.name} "):
        program_of(graph)


def test_packages_are_whole_and_the_same_bytes_twice(tmp_path: Path, reference: wn.MLContext) -> None:
    builder = wn.MLGraphBuilder(reference)
    x = builder.input("x:0", {"dataType": "float32", "shape": [4, 64]})
    n = builder.input("n", {"dataType": "int64", "shape": []})
    weights = builder.constant(np.random.default_rng(0).random((64, 8), np.float32))
    y = builder.softmax(builder.matmul(x, weights), 1)
    graph = builder.build({"y": y, "m": builder.add(n, n)})
    contents: list[dict[str, bytes]] = []
    for _ in range(2):
        graph.save(tmp_path / "g.mlpackage")
        files = [p for p in (tmp_path / "g.mlpackage").rglob("*") if p.is_file()]
        contents.append({str(p.relative_to(tmp_path)): p.read_bytes() for p in files})
    assert contents[0] == contents[1]
    assert len(contents[0]) == 3
    model = ct.models.MLModel(str(tmp_path / "g.mlpackage"), skip_model_load=True)
    spec = model.get_spec()
    assert spec.specificationVersion == 8
    assert [list(i.type.multiArrayType.shape) for i in spec.description.input] == [[4, 64], [1]]
    names = json.loads(model.user_defined_metadata["webnn_wgpu.names"])
    assert names == {"x_0": "x:0", "n": "n", "y": "y", "m": "m"}
    assert json.loads(model.user_defined_metadata["webnn_wgpu.types"])["n"] == "int64"


def test_what_core_ml_cannot_hold_is_refused(reference: wn.MLContext) -> None:
    from webnn_wgpu.exporters.coreml import to_coreml

    builder = wn.MLGraphBuilder(reference)
    x = builder.input("x", {"dataType": "int64", "shape": [1]})
    graph = builder.build({"y": builder.add(x, builder.constant(np.array([2**40])))})
    with pytest.raises(wn.NotSupportedError, match="integers that int32 cannot hold"):
        to_coreml(graph)
    with pytest.raises(wn.MLTypeError, match=r"unknown system; got 'iOS3'; allowed: iOS16, iOS17, iOS18"):
        to_coreml(graph, minimum="iOS3")  # pyright: ignore[reportArgumentType]
    builder = wn.MLGraphBuilder(reference)
    x = builder.input("x", {"dataType": "float32", "shape": [1] * 6})
    with pytest.raises(wn.NotSupportedError, match="Core ML has 5 dimensions"):
        to_coreml(builder.build({"y": builder.relu(x)}))
