"""Source maps of kernels, and `dbg` statements taken out of them."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import numpy as np
import pytest

from tests.interop import exact
from tests.kernels.operators import Call, calls
from tests.ops.reduced import REDUCED
from tests.rotation import part_of
from tests.shaders import changed_shaders
from tests.support import Sketch, op_graph
from tests.unit.normalized_rows import GPU, Rows, planned
from tests.unit.pairs import PAIRS, optimized
from tests.unit.plans import caps_of
from tests.unit.pooled_images import Pooled
from webnn_wgpu.core.errors import WebNNError
from webnn_wgpu.costs import Target
from webnn_wgpu.kernels import templates
from webnn_wgpu.kernels.dbg import dbg_statements, without_dbg
from webnn_wgpu.kernels.source_map import OWN_SOURCE, SourceOrigin, map_of_kernel, map_of_source
from webnn_wgpu.kernels.spec import KernelSpec
from webnn_wgpu.kernels.templates import render, shader_root
from webnn_wgpu.ops import OPS
from webnn_wgpu.plan import make_plan
from webnn_wgpu.plan.forced import forceable

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

DEVICES = ("lavapipe", "nvidia", "webgpu-default")

F32, I32, U8 = np.float32, np.int32, np.uint8


def further_calls() -> list[Call]:
    """Calls that `calls` leaves out: other extension operators, internal ones, long sums, constant weights of networks."""
    heads = (1, 2, 9, 32)
    codes, scales = np.zeros((40, 2, 16), U8), np.ones((40, 2), F32)
    stacked = {"steps": 5, "hidden_size": 8, "return_sequence": True}
    gru = [(5, 2, 8), (1, 24, 8), (1, 24, 8), None, None, None]
    return [
        *(found[0] for name, found in exact.calls().items() if OPS[name].extension),
        Call("x.attention", "prompt", [heads, heads, heads, None, None]),
        Call("x.attention", "token", [(1, 2, 1, 32), (1, 2, 300, 32), (1, 2, 300, 32), None, None]),
        *(Call("x.matmul_nbits", f"{n}", [(n, 64), codes, scales, None, None], {"bits": 4, "block_size": 32}) for n in (1, 9)),
        Call("x.attention_gradient", "all", [heads, heads, heads, heads, None, None]),
        Call("x.normalization_gradient", "rows", [(3, 40), (3, 40), (40,), (3, 40)], {"axes": [1], "products": True}),
        Call("x.quantization_parameters", "parts", [(5, 1000)]),
        Call("columnSums", "two", [(40, 64), (40, 64)], {"axes": [0]}),
        Call("transposes", "quads", [(3, 5, 8), (3, 5, 8)], {"permutation": [1, 0, 2]}),
        Call("attentionWeights", "rows", [(3, 40), np.ones(40, U8)]),
        Call("weightsGradient", "rows", [(3, 40), (3, 40)]),
        Call("filterGradient", "taps", [(2, 6, 5, 8), (2, 6, 5, 4)], {"kernel": [3, 3], "padding": [1, 1]}),
        Call("gru", "constant", gru, {"steps": 5, "hidden_size": 8}, constants=frozenset({1, 2})),
        Call("lstmStack", "two", [(5, 2, 8), (1, 32, 8), (3, 32, 8), (2, 32), (1, 32), (2, 2, 8), (2, 2, 8)], stacked),
        Call("gruStack", "two", [(5, 2, 8), (1, 24, 8), (3, 24, 8), (2, 32), (1, 24), (2, 2, 8)], stacked),
        Call("matmul", "sums in parts", [(5, 2048), (2048, 8)]),
        Call("matmul", "sums in parts of workgroups", [(16, 1 << 16), (1 << 16, 16)]),
        Call(
            "integerProduct",
            "signed",
            [(1, 64), np.zeros((64, 8), F32), np.zeros(1, np.int8)],
            {},
            "int8",
            constants=frozenset({1}),
        ),
    ]


def every_kernel() -> Iterator[KernelSpec]:
    """Kernels of every operator in all its variants, as several devices run them."""
    for device in DEVICES:
        caps = caps_of(device)
        for call in (*calls(), *further_calls()):
            graph = op_graph(call.name, call.arrays(), call.attrs, call.constants)
            for variant in (None, *forceable().get(call.name, ())):
                try:
                    plan = make_plan(graph, Target.of(caps), {} if variant is None else {call.name: variant})
                except WebNNError:  # a variant that the device or the call cannot have
                    continue
                yield from (dispatch.spec for dispatch in plan.dispatches)
    pooled = Pooled(behind=("tanh",)), Pooled(data_type="float16", chain=())
    for graph in (Rows((16, 36), 2048).both, *(each.alone for each in pooled), *(each.graph()[0] for each in REDUCED)):
        yield from (dispatch.spec for dispatch in planned(graph, GPU).dispatches)
    for pair in PAIRS.values():
        yield from (dispatch.spec for dispatch in make_plan(optimized(pair.graph()[0]), GPU).dispatches)


@pytest.mark.slow
def test_marks_change_no_kernel_and_every_line_stands_in_its_template(pytestconfig: pytest.Config) -> None:
    specs = list(dict.fromkeys(every_kernel()))
    assert {spec.template for spec in specs} >= {t.name for op in OPS.values() for t in op.templates}
    files: dict[str, list[str]] = {}
    exact = lines = 0
    for spec in part_of(pytestconfig, specs, 6):
        text = render(spec)
        found = map_of_kernel(spec)
        assert found.text == text, spec
        assert len(found) == len(text.splitlines())
        for number, line in enumerate(text.splitlines(), 1):
            place = found.place(number, len(line) - len(line.lstrip()) + 1)
            if place.file not in files:
                files[place.file] = (shader_root() / place.file).read_text(encoding="utf-8").splitlines()
            there = files[place.file][place.line - 1]
            if line.strip():
                text_there = re.split(r"\{[{%#]", there[place.column - 1 :])[0].strip()
                assert line.strip().startswith(text_there), (spec, number, line, there)
                exact += bool(text_there)
                lines += 1
    assert exact > 0.9 * lines


def kernel_of(device: str = "nvidia") -> tuple[KernelSpec, str]:
    s = Sketch()
    graph = s.graph(s.apply("softmax", s.input(np.zeros((4, 8), F32)), axis=1))
    (dispatch,) = make_plan(graph, Target.of(caps_of(device))).dispatches
    return dispatch.spec, render(dispatch.spec)


@pytest.mark.parametrize(
    ("part", "file", "text"),
    [
        ("let start = row_start(i);", "ops/softmax.wgsl.j2", "let start = row_start(i);"),
        ("at + rest * params.kept_stride_0", "lib/rows.wgsl.j2", "at + rest * params."),
        ("kept_stride_0;", "lib/rows.wgsl.j2", "{{ axis }}_{{ steps }}_0;"),
        ("let n = round(", "lib/math/exp.wgsl", "let n = round("),
        ("largest = max(largest, held_1)", "ops/softmax.wgsl.j2", "{{ into }} = max("),
    ],
)
def test_templates_macros_and_included_functions(part: str, file: str, text: str) -> None:
    spec, wgsl = kernel_of()
    offset = wgsl.index(part)
    place = map_of_kernel(spec).place(wgsl.count("\n", 0, offset) + 1, offset - wgsl.rfind("\n", 0, offset))
    line = (shader_root() / file).read_text(encoding="utf-8").splitlines()[place.line - 1]
    assert (place.file, line[place.column - 1 :][: len(text)]) == (file, text)


def test_formulas_tell_their_operators() -> None:
    spec, _ = kernel_of()
    s = Sketch()
    x = s.input(np.zeros(8, F32))
    graph = s.graph(s.apply("exp", x))
    (dispatch,) = make_plan(graph, Target.of(caps_of("nvidia"))).dispatches
    found = map_of_kernel(dispatch.spec, labels=[("grow",)])
    lines = [i for i, line in enumerate(found.text.splitlines(), 1) if found.place(i).operators]
    assert [found.text.splitlines()[i - 1].strip() for i in lines] == ["let y0: f32 = exp_f32(x0);"]
    assert str(found.place(lines[0], 19)).endswith(" (grow)")
    assert not any(map_of_kernel(spec, labels=[("grow",)]).place(i).operators for i in range(1, 20))


def test_lines_that_are_not_there() -> None:
    found = map_of_source("a\nb\n", "own.wgsl")
    assert len(found) == 2
    assert found.place(2, 9) == SourceOrigin("own.wgsl", 2, 2)
    for line in (0, 3):
        with pytest.raises(IndexError, match=rf"the source has lines 1\.\.2; got {line}"):
            found.place(line)


def test_sources_of_a_programs_own() -> None:
    spec = KernelSpec(
        template="wgsl_op",
        params=(),
        bindings=(),
        source='fn main() {\n    dbg(1, "x");\n    let a = 1; dbg(a); let b = 2;\n}\n',
    )
    assert render(spec) == "fn main() {\n    let a = 1; let b = 2;\n}\n"
    found = map_of_kernel(spec)
    assert found.text == render(spec)
    assert [found.place(2, column) for column in (5, 14, 16)] == [SourceOrigin(OWN_SOURCE, 3, c) for c in (5, 14, 24)]
    assert found.place(3) == SourceOrigin(OWN_SOURCE, 4, 1)


# ----------------------------------------------------------------------------------------------------------------- dbg


@pytest.mark.parametrize(
    ("source", "left"),
    [
        ('    a();\n    dbg(x, "x");\n    b();\n', "    a();\n    b();\n"),
        ("a(); dbg(x); b();", "a(); b();"),
        ("    dbg(x); b();\n", "    b();\n"),
        ("a();\n    dbg(x); dbg(y);\t\nb();", "a();\nb();"),
        ("a(); dbg(x); dbg(y);\nb();", "a();\nb();"),
        ('if (c) { dbg(x, "in"); }\n', "if (c) { }\n"),
        ('dbg(\n    vec2<u32>(a[1], f(b)),\n    "pair, \\" (",\n);\nb();\n', "b();\n"),
        ("dbg(/* ) */ x);\n", ""),
        ("a();\n  dbg(x);", "a();\n"),
    ],
)
def test_dbg_leaves_no_trace(source: str, left: str) -> None:
    assert without_dbg(source) == left


@pytest.mark.parametrize(
    "source", ["// dbg(x);\n", "/* dbg(x); */", "mydbg(x);", "dbg_x(y);", "fn dbg(x: f32) {}\nfn f() { dbg(1.0); }", "dbg(x;"]
)
def test_what_is_no_dbg(source: str) -> None:
    assert dbg_statements(source) == []
    assert without_dbg(source) == source


def test_names_of_dbg() -> None:
    (named, bare) = dbg_statements('dbg( a[ f(1, 2) ], "the one" , );\n dbg(x  +\n y);')
    assert (named.value, named.name) == ("a[ f(1, 2) ]", "the one")
    assert (bare.value, bare.name) == ("x  +\n y", "x + y")


def test_dbg_in_a_template_a_macro_and_an_included_function(tmp_path: Path) -> None:
    spec, wgsl = kernel_of()
    lines = (
        ("ops/softmax.wgsl.j2", "    let start = row_start(i);\n", '    dbg(start, "start {{ 1 + 1 }}");\n'),
        ("lib/rows.wgsl.j2", "    var at = 0u;\n", "    dbg(at);\n"),
        ("lib/math/exp.wgsl", "    let n = round((x + lo) * 1.4426950408889634);\n", "    dbg(n);\n"),
    )
    with changed_shaders(tmp_path, *((file, line, line + statement) for file, line, statement in lines)):
        assert render(spec) == wgsl
        names = [statement.name for statement in dbg_statements(templates.render_with_dbg(spec))]
        assert names == ["n", "at", "at", "start 2"]
        found = map_of_kernel(spec)
        assert found.text == wgsl
    library = (tmp_path / "lib/math/exp.wgsl").read_text(encoding="utf-8").splitlines()
    for number, line in enumerate(wgsl.splitlines(), 1):
        place = found.place(number, len(line) - len(line.lstrip()) + 1)
        if place.file == "lib/math/exp.wgsl" and line.strip():
            assert library[place.line - 1] == line
