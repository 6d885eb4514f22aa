"""Kernels of the golden graphs, as AMD's compiler makes them: none is refused, none spills, all stay within their budgets."""

from __future__ import annotations

import platform
import sys
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from tests.conftest import REPOSITORY
from tests.hardware.collecting import caps_of, dispatches, golden_models
from tests.hardware.compiler import CompileError, Compiler
from tests.hardware.families import FAMILIES
from tests.hardware.listing import listed
from tests.hardware.report import compile_all, exceeded
from tests.rotation import share_of_today
from webnn_wgpu.debug.translation.loops import lines_of_loops, source_loops

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

ALWAYS = "navi21"
OTHERS = sorted(FAMILIES.keys() - {ALWAYS})

if not (sys.platform == "linux" and platform.machine() == "x86_64"):
    pytest.skip("AMD's compiler is read on Linux for x86_64 alone", allow_module_level=True)


PARTS = 6
"""Into how many parts the models are divided. The commit picks the part."""


def in_turn() -> tuple[list[str], int]:
    """Return the families of this run, one that is always among them and one that the commit picks, and the part of models."""
    share, _ = share_of_today(REPOSITORY, len(OTHERS) * PARTS)
    return [ALWAYS, OTHERS[share % len(OTHERS)]], share % PARTS


def models_of_run(config: pytest.Config) -> Sequence[str]:
    """Return the models whose kernels this run compiles."""
    models = golden_models()
    return models if config.getoption("--profiles") == "all" else models[in_turn()[1] :: PARTS]


@pytest.fixture(scope="module", params=sorted(FAMILIES))
def compiler(request: pytest.FixtureRequest) -> Iterator[Compiler]:
    family = FAMILIES[request.param]
    families, _ = in_turn()
    if request.config.getoption("--profiles") != "all" and family.name not in families:
        pytest.skip(f"another commit's turn: this one's are {', '.join(families)}")
    if family.missing:
        pytest.skip(family.missing)
    with Compiler(family) as compiler:
        yield compiler


def test_kernels_stay_within_their_budgets(compiler: Compiler, pytestconfig: pytest.Config) -> None:
    caps = caps_of(compiler.adapter, compiler.family.subgroup)
    models = models_of_run(pytestconfig)
    rows = compile_all(compiler, dispatches(models, caps))
    assert len({row.dispatch.wgsl for row in rows}) > len(models)
    assert exceeded(compiler.family, rows) == []


def test_hot_loops_have_lines_of_wgsl(compiler: Compiler) -> None:
    if not compiler.family.listed:
        pytest.skip("this driver lists no instructions")
    caps = caps_of(compiler.adapter, compiler.family.subgroup)
    rows = compile_all(compiler, dispatches(["example/gpt", "example/quantized_4bit"], caps))
    hot = [(row.dispatch.wgsl, row.compiled) for row in rows if row.compiled and row.compiled.loop]
    assert len(hot) > 10
    for wgsl, compiled in hot:
        assert compiled.loop
        assert compiled.loop.label in lines_of_loops(listed(compiled)["loops"], source_loops(wgsl))


def test_a_kernel_over_its_budget_is_named(compiler: Compiler) -> None:
    caps = caps_of(compiler.adapter, compiler.family.subgroup)
    rows = compile_all(compiler, dispatches(["example/mlp"], caps))
    tight = {compiler.family.name: {name: {"registers": 1} for name in ("matmul.tiled", "elementwise")}}
    assert any("budget 1" in fault or "no budget" in fault for fault in exceeded(compiler.family, rows, tight))
    row = replace(rows[0], compiled=None, error="made up")
    assert exceeded(compiler.family, [row], tight) == [f"{compiler.family.name} refuses {row.dispatch.kernel}: made up"]


def test_a_faulty_kernel_is_refused_and_the_next_one_compiles(compiler: Compiler) -> None:
    with pytest.raises(CompileError, match="unknown"):
        compiler.compile("@compute @workgroup_size(1) fn main() { unknown(); }")
    assert compiler.compile("@compute @workgroup_size(1) fn main() { }").spills == 0
