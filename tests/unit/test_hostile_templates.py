"""Templates make text and nothing else, and what programs pass is no template."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import jinja2
import jinja2.sandbox
import pytest

from webnn_wgpu.core.errors import MLTypeError, OperationError
from webnn_wgpu.kernels.own import constant_declarations, own_spec
from webnn_wgpu.kernels.spec import Binding, KernelSpec
from webnn_wgpu.kernels.templates import environment, library, render, shader_root

if TYPE_CHECKING:
    from pathlib import Path

    import webnn_wgpu as wn

HOSTILE = [
    "{{ ''.__class__.__mro__[1].__subclasses__() }}",
    "{{ bindings[0].__class__.__init__.__globals__ }}",
    "{{ lib.__globals__['__builtins__']['open']('/etc/passwd').read() }}",
    "{{ elements.__init__.__globals__ }}",
    "{{ self.__init__.__globals__ }}",
    "{{ cycler.__init__.__globals__.os.system('true') }}",
    "{{ '%s'.__format__.__self__.__class__ }}",
    "{{ '{0.__class__}'.format(bindings) }}",
    "{{ (1).__reduce__() }}",
    "{{ features.append('shader-f16') }}",
    "{{ range(10 ** 9) | list }}",
]
"""What a template could try that is more than text."""


@pytest.mark.parametrize("text", HOSTILE)
def test_python_behind_the_values_is_out_of_reach(text: str) -> None:
    binding = Binding(name="x", access="read")
    with pytest.raises((jinja2.sandbox.SecurityError, OverflowError)):
        environment().from_string(text).render(bindings=(binding,), uniforms=(), features=[])


@pytest.mark.parametrize(
    "text",
    [
        "{% include '../../etc/passwd' %}",
        "{% include '/etc/passwd' %}",
        "{% include '../pyproject.toml' %}",
        "{% import 'lib/../../pyproject.toml' as found %}",
        "{% extends 'ops/../../README.md' %}",
    ],
)
def test_files_elsewhere_are_out_of_reach(text: str) -> None:
    with pytest.raises(jinja2.TemplateNotFound):
        environment().from_string(text).render()


@pytest.mark.parametrize("name", ["../tensor", "../../../pyproject", "/etc/passwd", "", ".", "bits/../bits", "bits\x00"])
def test_the_library_is_no_way_out_either(name: str) -> None:
    with pytest.raises(FileNotFoundError, match="is no name of a library file"):
        library(name)
    with pytest.raises(FileNotFoundError):
        environment().from_string("{{ lib(name) }}").render(name=name)


def test_a_link_in_the_folder_would_be_the_only_way() -> None:
    root = shader_root().resolve()
    assert all(path.resolve().is_relative_to(root) for path in root.rglob("*"))


def test_nothing_that_a_parameter_holds_is_rendered() -> None:
    # Parameters are text that stands in the shader, whatever it looks like.
    template = environment().from_string("// {{ expression }}")
    assert template.render(expression="{{ 7 * 7 }} {% include 'x' %}") == "// {{ 7 * 7 }} {% include 'x' %}"


SOURCE = """// {{ 7 * 7 }} {% include '../../etc/passwd' %} {# gone #}
$$ set x = 1
"""


def test_a_programs_own_source_is_taken_as_it_is() -> None:
    spec = own_spec("mine", SOURCE, [Binding(name="x", access="write", exact=True)])
    assert render(spec) == SOURCE
    with pytest.raises(MLTypeError, match="a constant's name must be an identifier"):
        constant_declarations({"{{ x }}": 1}, MLTypeError)
    with pytest.raises(MLTypeError, match="must be a finite number or a bool"):
        constant_declarations({"x": "{{ 7 * 7 }}"}, MLTypeError)


def test_in_a_graph_too(context: wn.MLContext) -> None:
    source = """// {{ 7 * 7 }} {# stays #}
@group(0) @binding(0) var<storage, read> x: array<f32>;
@group(0) @binding(1) var<storage, read_write> y: array<f32>;
@compute @workgroup_size(1) fn main() {{ y[0] = x[0] + 49; }}"""
    builder = context.create_graph_builder()
    given: Any = {"output_shapes": [1], "output_types": "float32", "workgroups": 1, "label": "{{ label }}/../.."}
    graph = builder.build({"y": builder.wgsl_op(source, [builder.input("x", [1], "float32")], **given)})
    assert context.compute(graph, {"x": [1]})["y"] == 50
    (kernel,) = graph.kernels.values()
    assert kernel.wgsl.startswith(source)


def test_names_of_dumped_files_are_the_packages(context: wn.MLContext, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WEBNN_WGPU_DUMP", str(tmp_path / "dump"))
    builder = context.create_graph_builder()
    x = builder.input("x", [1], "float32")
    source = """@group(0) @binding(0) var<storage, read_write> y: array<f32>;
@compute @workgroup_size(1) fn main() { y[0] = 11.25; }"""
    made = builder.wgsl_op(source, [], output_shapes=[1], output_types="float32", workgroups=1, label="../../elsewhere")
    builder.build({"y": builder.add(x, made)})
    assert [path.parent for path in tmp_path.rglob("*.wgsl")] == [tmp_path / "dump"] * len(list(tmp_path.rglob("*.wgsl")))
    assert any(path.name.startswith("wgsl_op-") for path in tmp_path.rglob("*.wgsl"))


def test_the_name_of_a_template_is_no_path() -> None:
    for name in ("../../pyproject.toml", "/etc/passwd", "../lib/tensor"):
        with pytest.raises(OperationError, match="does not render") as raised:
            render(KernelSpec(template=name, params=(), bindings=()))
        assert isinstance(raised.value.__cause__, jinja2.TemplateNotFound)
