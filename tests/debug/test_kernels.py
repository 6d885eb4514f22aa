"""`MLGraph.kernels`, and the sources that WEBNN_WGPU_DUMP writes."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import numpy as np
import pytest

import webnn_wgpu as wn
from tests.api.graphs import negation
from tests.runtime.graphs import network
from webnn_wgpu.debug import Kernels
from webnn_wgpu.inspection.kernels import _workgroup_size
from webnn_wgpu.kernels.templates import render, shader_root
from webnn_wgpu.runtime.adapters import adapters
from webnn_wgpu.runtime.device import Device

if TYPE_CHECKING:
    from pathlib import Path


def test_every_dispatch_of_the_plan_is_a_kernel(context: wn.MLContext) -> None:
    graph = network(context)
    assert graph.plan is not None
    assert list(graph.kernels) == [d.label for d in graph.plan.dispatches]
    for kernel, d in zip(graph.kernels.values(), graph.plan.dispatches, strict=True):
        assert kernel.wgsl == render(d.spec)
        assert (kernel.name, kernel.grid, kernel.reason, kernel.variant) == (d.label, d.grid, d.reason, d.spec.variant)
        assert (shader_root() / kernel.template).is_file()
        assert [(b.name, b.access, b.element) for b in kernel.bindings] == [
            (b.name, b.access, b.element) for b in d.spec.bindings
        ]
        assert [b.bound_to for b in kernel.bindings] == [str(r) for r in d.bindings]
        assert tuple(kernel.constants) == tuple(name for name, _ in d.spec.uniforms)
        assert kernel.workgroup_size is not None
        assert not kernel.overridden


def test_source_maps_name_the_operators_of_fused_formulas(context: wn.MLContext) -> None:
    kernels = network(context).kernels
    for kernel in kernels.values():
        assert kernel.source_map.text == kernel.wgsl
    (kernel,) = kernels.find("add_1")
    assert kernel.labels == ("matmul_0", "add_1", "gelu_2")
    lines = kernel.wgsl.splitlines()
    places = [kernel.source_map.place(i + 1, 9) for i, line in enumerate(lines) if re.match(r"    let y\d:", line)]
    assert [(place.file, place.operators) for place in places] == [
        ("lib/values.wgsl.j2", ("add_1",)),
        ("lib/values.wgsl.j2", ("gelu_2",)),
    ]


def test_source_maps_of_overridden_kernels(context: wn.MLContext, tmp_path: Path) -> None:
    graph = negation(context)
    wgsl = graph.kernels["neg_0"].wgsl
    file = tmp_path / "own.wgsl"
    file.write_text("\n\n" + wgsl, encoding="utf-8")
    kernel = graph.override("neg_0", file)
    assert str(kernel.source_map.place(3, 4)) == f"{file}:3:4"
    kernel = graph.override("neg_0", wgsl)
    assert str(kernel.source_map.place(3, 4)) == "<wgsl>:3:4"


def test_uniforms_have_the_values_of_the_call(context: wn.MLContext) -> None:
    kernels = network(context).kernels
    assert kernels["layer_normalization_3"].constants["epsilon"] == pytest.approx(1e-5)
    assert kernels["layer_normalization_3"].constants["length"] == 32.0
    product = kernels.find("matmul_0")[0]
    assert [product.constants[name] for name in "MNK"] == [4, 32, 16]


def test_kernels_are_found_by_name_and_by_label(context: wn.MLContext) -> None:
    kernels = network(context).kernels
    (product,) = kernels.find("add_1")
    assert product.labels == ("matmul_0", "add_1", "gelu_2")
    assert kernels.find(product.name) == (product,)


def test_an_unknown_name_is_told_what_there_is(context: wn.MLContext) -> None:
    with pytest.raises(wn.MLTypeError) as raised:
        network(context).kernels.find("softmax_9")
    assert str(raised.value).startswith(
        "kernels: no kernel has this name or computes an operator of this label; got 'softmax_9'; allowed: 'softmax_4'"
    )


def test_names_are_unique_where_labels_are_not(context: wn.MLContext) -> None:
    builder = wn.MLGraphBuilder(context)
    x = builder.input("x", {"dataType": "float32", "shape": [2, 3]})
    turned = builder.transpose(x, label="same")
    graph = builder.build({"y": builder.softmax(turned, 1, label="same"), "z": turned})
    assert [(k.name, k.labels) for k in graph.kernels.values()] == [("same#1", ("same",)), ("same#2", ("same",))]
    assert graph.kernels.find("same") == tuple(graph.kernels.values())
    assert [kernel.name for kernel in graph.kernels.find("same#2")] == ["same#2"]


def test_the_numpy_reference_has_none() -> None:
    with wn.ml.create_context(backend="reference") as context:
        graph = negation(context)
        assert len(graph.kernels) == 0
        assert str(graph.kernels) == "kernel  shader  workgroups  operators  why"
        with pytest.raises(wn.MLTypeError, match="allowed: none: the numpy reference has no kernels"):
            graph.kernels.find("neg_0")


def test_what_is_printed(context: wn.MLContext) -> None:
    kernels = negation(context).kernels
    kernel = kernels["neg_0"]
    assert str(kernel).splitlines() == [
        f"neg_0: {kernel.spec}",
        "  operators    neg_0",
        "  template     ops/elementwise.wgsl.j2",
        f"  why          {kernel.reason}",
        "  grid         1 x 1 x 1",
        "  workgroup    64 x 1 x 1",
        "  @binding(0)  input0: float32, read, input x",
        "  @binding(1)  output: float32, write, output y",
        "  uniforms     quads=1, rounds=1",
    ]
    assert str(kernels).splitlines() == [
        "kernel  shader       workgroups  operators  why",
        f"neg_0   elementwise  1 x 1 x 1   neg_0      {kernel.reason}",
    ]
    assert repr(kernels) == "Kernels(neg_0)"


@pytest.mark.parametrize(
    ("source", "size"),
    [
        ("@compute @workgroup_size(8) fn main() {}", (8, 1, 1)),
        ("@workgroup_size(8, 4u) @compute\nfn main() {}", (8, 4, 1)),
        ("const W: u32 = 16u;\n@compute @workgroup_size(W, 1, 2,)\nfn main() {}", (16, 1, 2)),
        ("@compute @workgroup_size(3) fn other() {}\n@compute @workgroup_size(5) fn main() {}", (5, 1, 1)),
        ("// @workgroup_size(3) fn main\n@compute @workgroup_size(5) fn main() {}", (5, 1, 1)),
        ("@compute @workgroup_size(2 * 4) fn main() {}", None),
        ("fn main() {}", None),
    ],
)
def test_workgroup_sizes(source: str, size: tuple[int, int, int] | None) -> None:
    assert _workgroup_size(source) == size


def test_sources_are_written(context: wn.MLContext, tmp_path: Path) -> None:
    kernels = network(context).kernels
    files = kernels.dump(tmp_path / "new")
    assert [file.name for file in files] == [f"{i:03}-{name}.wgsl" for i, name in enumerate(kernels)]
    assert [file.read_text(encoding="utf-8") for file in files] == [kernel.wgsl for kernel in kernels.values()]
    assert sorted(files) == sorted((tmp_path / "new").iterdir())


def test_names_of_files_stay_in_their_folder(context: wn.MLContext, tmp_path: Path) -> None:
    builder = wn.MLGraphBuilder(context)
    x = builder.input("x", {"dataType": "float32", "shape": [3]})
    graph = builder.build({"y": builder.neg(x, label="../a b/" + "c" * 300)})
    (file,) = graph.kernels.dump(tmp_path)
    assert file.parent == tmp_path
    assert file.name.startswith("000-.._a_b_ccc")
    assert isinstance(graph.kernels, Kernels)


def test_compiled_kernels_are_written_where_the_environment_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WEBNN_WGPU_DUMP", str(tmp_path / "dump"))
    device = Device.of(adapters()[0].request_device_sync(), owned=True)
    with wn.ml.create_context(device.gpu) as context:
        graph = negation(context)
        (file,) = (tmp_path / "dump").iterdir()
        assert file.read_text(encoding="utf-8") == graph.kernels["neg_0"].wgsl
        assert file.name.startswith("elementwise-")
        file.unlink()
        negation(context)  # compiled already
        assert not list((tmp_path / "dump").iterdir())
        np.testing.assert_array_equal(context.compute(graph, {"x": np.float32([1, -2, 3])})["y"], [-1, 2, -3])
    device.close()
