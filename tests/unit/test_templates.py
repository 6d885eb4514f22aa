from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import jinja2
import numpy as np
import pytest

from tests.shaders import free_variables
from tests.support import Sketch
from tests.unit.plans import caps_of
from webnn_wgpu.core.caps import Caps
from webnn_wgpu.costs import Target
from webnn_wgpu.kernels import templates
from webnn_wgpu.kernels.element import ELEMENTS, bits_of, padded_bytes
from webnn_wgpu.kernels.spec import Binding, KernelCall, KernelTemplate, grid_1d
from webnn_wgpu.kernels.templates import environment, library, render, shader_root
from webnn_wgpu.ops import OPS
from webnn_wgpu.passes import run_passes
from webnn_wgpu.plan import make_plan

DECLARED = {t.name: t for op in OPS.values() for t in op.templates}
LIBRARY = sorted(path.stem for path in (shader_root() / "lib" / "math").glob("*.wgsl"))


@pytest.mark.parametrize("name", sorted(DECLARED))
def test_declared_parameters_are_the_free_variables(name: str) -> None:
    assert set(DECLARED[name].params) == free_variables(name)


@pytest.mark.parametrize("name", sorted(DECLARED))
def test_a_template_is_declared_the_same_everywhere(name: str) -> None:
    assert {t for op in OPS.values() for t in op.templates if t.name == name} == {DECLARED[name]}


@pytest.mark.parametrize("path", sorted((shader_root() / "lib").glob("*.j2")), ids=lambda path: path.name)
def test_shared_templates_hold_macros_alone(path: Path) -> None:
    # Imported without context: whatever they need comes in through arguments, so it cannot escape a kernel's key.
    module = environment().get_template(f"lib/{path.name}").module
    assert not str(module).strip()


@pytest.mark.parametrize("path", sorted(shader_root().rglob("*.j2")), ids=lambda path: path.name)
def test_nothing_comes_in_behind_a_kernels_back(path: Path) -> None:
    tree = environment().parse(path.read_text(encoding="utf-8"))
    assert not list(tree.find_all((jinja2.nodes.Include, jinja2.nodes.FromImport, jinja2.nodes.Extends)))
    assert not [node for node in tree.find_all(jinja2.nodes.Import) if node.with_context]


SOURCES = [*shader_root().rglob("*.wgsl*"), *Path(templates.__file__).parents[1].joinpath("ops").glob("*.py")]


@pytest.mark.parametrize("path", sorted(SOURCES), ids=lambda path: path.name)
def test_truth_values_are_joined_without_branches(path: Path) -> None:
    # `&&` and `||` outside the condition of an `if` become a branch each: slow on GPUs, and SwiftShader takes twice as long to
    # compile a loop for each of them, until it has eaten all memory. `&` and `|` give the same.
    code = [line.partition("//")[0] for line in path.read_text(encoding="utf-8").splitlines()]
    branches = [line for line in code if re.search(r"&&|\|\|", line) and not re.match(r"\s*(\} else )?if \(", line)]
    assert branches == [], "outside the condition of an `if`, write `&` and `|`, with each comparison in parentheses"


@pytest.mark.parametrize("name", LIBRARY)
def test_library_files_name_what_they_use(name: str) -> None:
    text = library(name)
    own = (shader_root() / "lib" / "math" / f"{name}.wgsl").read_text(encoding="utf-8")
    defined = re.findall(r"^fn (\w+)", text, re.MULTILINE)
    assert len(defined) == len(set(defined))
    known = set(defined) | {n for other in LIBRARY for n in re.findall(r"^fn (\w+)", library(other), re.MULTILINE)}
    called = set(re.findall(r"\b(\w+)\(", re.sub(r"//.*", "", own)))
    assert called & known <= set(defined), "a function is called whose file is not named in `// uses:`"


@pytest.mark.parametrize("name", LIBRARY)
def test_library_files_say_what_they_are(name: str) -> None:
    first = (shader_root() / "lib" / "math" / f"{name}.wgsl").read_text(encoding="utf-8").splitlines()[0]
    assert re.fullmatch(rf"// {name}(_f32)?: .*\.", first)


def test_library_gives_each_file_once_and_what_it_uses_first() -> None:
    text = library("exp", "bits", "exp")
    assert text.count("fn exp_f32(") == text.count("fn is_nan_f32(") == 1
    assert text.index("fn is_nan_f32(") < text.index("fn exp_f32(")
    assert not library()
    with pytest.raises(FileNotFoundError):
        library("no_such_function")


def test_undefined_names_are_errors() -> None:
    with pytest.raises(jinja2.UndefinedError):
        environment().from_string("{{ nothing }}").render()


def test_free_variables_leave_out_what_every_template_gets() -> None:
    assert free_variables("elementwise") == {"expression", "octets", "rank", "reads", "whole_quads"}


def test_templates_are_found_in_a_wheel_and_in_a_checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package = tmp_path / "site" / "webnn_wgpu"
    (package / "kernels").mkdir(parents=True)
    monkeypatch.setattr(templates, "__file__", str(package / "kernels" / "templates.py"))
    find = shader_root.__wrapped__
    with pytest.raises(FileNotFoundError, match=r"neither in .*webnn_wgpu.shaders nor, for a checkout, in .*shaders$"):
        find()
    (package.parent / "shaders").mkdir()
    with pytest.raises(FileNotFoundError):
        find()  # somebody else's
    (package.parent / "pyproject.toml").touch()
    assert find() == package.parent / "shaders"
    (package / "shaders").mkdir()
    assert find() == package / "shaders"


# ---------------------------------------------------------------------------------------------------------------- specs

COPY = KernelTemplate("strided", ("rank", "read"))
BINDINGS = [
    Binding(name="input", access="read", element="float16", quad=True),
    Binding(name="output", access="write", element="float16", quad=True),
]
UNIFORMS = (("quads", "u32"), ("rounds", "u32"), ("input_base", "u32"))


def test_specs_are_keys() -> None:
    one, two = (COPY.spec(BINDINGS, UNIFORMS, rank=0, read="same") for _ in range(2))
    assert one == two
    assert hash(one) == hash(two)
    assert one != COPY.spec(BINDINGS, UNIFORMS, rank=0, read="row")
    assert one.features == ("shader-f16",)
    assert str(one) == "strided[rank=0, read=same]"
    text = render(one)
    assert text.startswith("// op: transpose, slice")
    assert text.count("enable f16;") == 1


def test_specs_give_every_parameter_a_value() -> None:
    with pytest.raises(TypeError, match=r"^template strided declares \['rank', 'read'\]; got \['rank'\]$"):
        COPY.spec(BINDINGS, UNIFORMS, rank=0)
    with pytest.raises(TypeError, match=r"got \['axis', 'rank', 'read'\]"):
        COPY.spec(BINDINGS, UNIFORMS, rank=0, read="same", axis=1)


def test_calls_fit_their_specs() -> None:
    spec = COPY.spec(BINDINGS, UNIFORMS, rank=0, read="same")
    KernelCall(spec=spec, operands=(0, 1), uniforms=(1, 1, 0), grid=(1, 1, 1))
    with pytest.raises(TypeError, match="has 2 bindings; got 1 operands"):
        KernelCall(spec=spec, operands=(0,), uniforms=(1, 1, 0), grid=(1, 1, 1))
    with pytest.raises(TypeError, match="has uniforms"):
        KernelCall(spec=spec, operands=(0, 1), uniforms=(1, 1), grid=(1, 1, 1))
    with pytest.raises(TypeError, match="number of workgroups in z, which must be 1"):
        KernelCall(spec=replace(spec, hides_uniforms=True), operands=(0, 1), uniforms=(1, 1, 0), grid=(1, 1, 2))


@pytest.mark.parametrize("workgroups", [0, 1, 65535, 65536, 65537, 65535 * 2, 10**7, 2**31 // 256])
def test_grids_fold(workgroups: int) -> None:
    x, y, z = grid_1d(workgroups, Caps())
    assert 1 <= x <= 65535
    assert 1 <= y <= 65535
    assert z == 1
    assert max(workgroups, 1) <= x * y < max(workgroups, 1) + y


def test_elements() -> None:
    assert [bits_of(t) for t in ("float32", "float16", "int64", "uint8")] == ["bits32", "bits16", "bits64", "bits8"]
    assert all(ELEMENTS[bits_of(t)].feature == "" for t in ("float16", "int64", "uint64"))
    assert [padded_bytes(n) for n in (1, 32, 33)] == [32, 32, 64]


def test_uniforms_are_hidden_from_drivers_that_compile_for_their_values() -> None:
    s = Sketch()
    a, b = (s.input(np.zeros((40, 64, 64), np.float32)) for _ in range(2))
    whole = s.apply(
        "sub",
        s.apply("mul", s.input(np.zeros((3, 5), np.int32)), s.constant(np.array(3, np.int32))),
        s.input(np.ones((3, 5), np.int32)),
    )
    graph = s.graph(s.apply("elu", s.apply("matmul", a, b), alpha=0.5), whole)
    kinds = set[str]()
    for record, hides in (("lavapipe", True), ("nvidia", False)):
        target = Target.of(caps_of(record))
        for dispatch in make_plan(run_passes(graph, target)[0], target).dispatches:
            assert dispatch.spec.hides_uniforms == hides
            text = render(dispatch.spec)
            assert ("hidden_params(wgs.z - 1u)" in text) == hides
            hidden = re.findall(r"given_params\.(\w+) \^ (?:zero|i32\(zero\)),", text)
            assert hidden == [name for name, type_ in dispatch.spec.uniforms if hides and type_ != "f32"]
            kinds.update(type_ for _, type_ in dispatch.spec.uniforms)
    assert kinds == {"u32", "i32", "f32"}
