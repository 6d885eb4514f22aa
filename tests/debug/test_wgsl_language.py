"""What the interpreter makes of WGSL is what a driver makes of it, construct by construct; what it does not know it names."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import webnn_wgpu as wn
from webnn_wgpu import debug

if TYPE_CHECKING:
    from webnn_wgpu.ir.graph import Array

HEADER = """
@group(0) @binding(0) var<storage, read> x: array<f32>;
@group(0) @binding(1) var<storage, read> n: array<u32>;
@group(0) @binding(2) var<storage, read_write> y: array<f32>;
@group(0) @binding(3) var<storage, read_write> m: array<u32>;
struct Pair { first: f32, inner: array<vec2<f32>, 2>, count: u32 }
struct Padded { @align(16) a: f32, b: vec3<f32>, @size(32) c: u32, d: mat2x3<f32> }
alias Quad = vec4<f32>;
const TABLE = array<u32, 4>(7, 11, 13, 17);
const LAST = 3;
var<private> calls: u32 = 5u;
var<workgroup> tile: array<Padded, 8>;
var<workgroup> total: atomic<u32>;
fn add_to(target_: ptr<function, f32>, amount: f32) { *target_ += amount; calls += 1u; }
fn second(list: array<f32, 3>) -> f32 { var copy = list; copy[0] = 9.0; return copy[1]; }
fn sign_of(v: f32) -> i32 { if (v > 0.0) { return 1; } else if (v < 0.0) { return -1; } return 0; }
@compute @workgroup_size(4, 2) fn main(
    @builtin(local_invocation_index) i: u32,
    @builtin(global_invocation_id) id: vec3<u32>,
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3u,
    @builtin(local_invocation_id) local: vec3u,
) {
    let at = (group.y * groups.x + group.x) * 8u + i;
    let v = x[at];
    let k = n[at];
"""


def parts_of(file: str) -> dict[str, str]:
    """Return the parts of a file by name."""
    text = (Path(__file__).parent / file).read_text(encoding="utf-8")
    return {part.partition("\n")[0].strip(): part.partition("\n")[2] for part in text.split("////")[1:]}


CONSTRUCTS = parts_of("constructs.wgsl")
SUBGROUPS = parts_of("constructs.subgroup.wgsl")


def given() -> list[Array]:
    rng = np.random.default_rng(3)
    numbers = rng.integers(0, 1 << 32, 16, np.uint32)
    numbers[:4] = (0, 3, 7, 255)
    return [rng.standard_normal(16, np.float32), numbers, np.zeros(16, np.float32), np.zeros(16, np.uint32)]


QUOTIENTS = 3 * 2.0**-20
"""The error of quotients from 8 to 16: 2.5 ULP, as WGSL allows, and half a one of their dividends. Remainders have it too."""


def compare(context: wn.MLContext, source: str, grid: Any, subgroup_size: int | None = None, atol: float = 0.0) -> None:
    wanted = wn.run_wgsl(source, *given(), workgroups=grid, context=context)
    found = debug.interpret(source, given(), grid=grid, subgroup_size=subgroup_size)
    np.testing.assert_array_equal(found.outputs["m"], wanted[1])
    # Sums may be reordered.
    np.testing.assert_allclose(found.outputs["y"], wanted[0], rtol=4e-7, atol=atol)


@pytest.mark.parametrize("name", CONSTRUCTS)
def test_constructs(context: wn.MLContext, name: str) -> None:
    exact = context.caps.is_software or name != "operators"
    compare(context, f"{HEADER}{CONSTRUCTS[name]}}}", (2, 1), atol=0.0 if exact else QUOTIENTS)


@pytest.mark.parametrize("name", SUBGROUPS)
def test_subgroups(context: wn.MLContext, name: str) -> None:
    if "subgroup" not in context.caps.features:
        pytest.skip("the adapter has no subgroups")
    start = HEADER.index("@compute")
    entry = """@compute @workgroup_size(8)
    fn main(@builtin(global_invocation_id) id: vec3<u32>, @builtin(subgroup_invocation_id) lane: u32) {
    let at = id.x;
    let v = x[at];
    let k = n[at];
    """
    compare(context, HEADER[:start] + entry + SUBGROUPS[name] + "}", 2, context.caps.subgroup_size)


def scalars(expression: str, *values: float, type_: str = "f32") -> list[float]:
    """Evaluate an expression of `v`, for each of some numbers."""
    source = f"""
    {"enable f16;" if type_ == "f16" else ""}
    @group(0) @binding(0) var<storage, read> x: array<{type_}>;
    @group(0) @binding(1) var<storage, read_write> y: array<{type_}>;
    @compute @workgroup_size(1) fn main(@builtin(workgroup_id) id: vec3<u32>) {{ let v = x[id.x]; y[id.x] = {expression}; }}"""
    x = np.array(values, {"f32": np.float32, "f16": np.float16, "i32": np.int32, "u32": np.uint32}[type_])
    found: list[float] = debug.interpret(source, [x, np.zeros_like(x)], grid=x.size).outputs["y"].tolist()
    return found


def test_remainders_have_the_sign_of_the_dividend() -> None:
    assert scalars("v % 7", -13, -7, 13, type_="i32") == [-6, 0, 6]
    assert scalars("v % -7", -13, -7, 13, type_="i32") == [-6, 0, 6]


def test_functions_of_floats() -> None:
    for name in ("exp", "log", "sin", "cos", "tanh", "atan", "exp2", "log2", "sqrt"):
        wanted = getattr(np, {"atan": "arctan"}.get(name, name))(np.float64([0.5, 1.5]))
        assert scalars(f"{name}(v)", 0.5, 1.5) == wanted.astype(np.float32).tolist()
    assert scalars("pow(v, 2.0) + inverseSqrt(v)", 4) == [16.5]
    assert scalars("mix(1.0, 3.0, v) + fma(v, 2.0, 1.0)", 0.5) == [4]
    assert scalars("smoothstep(0.0, 2.0, v) + radians(180.0)", 1) == pytest.approx([0.5 + np.pi])
    assert scalars("length(vec2(v, 4.0)) + distance(vec2(v), vec2(v, 5.0)) + normalize(vec2(v, 4.0)).y", 3) == pytest.approx(
        [7.8]
    )
    assert scalars("frexp(v).fract * 10.0 + f32(frexp(v).exp) + modf(v).whole + ldexp(v, 2)", 6.5) == [8.125 + 3 + 6 + 26]
    assert scalars("quantizeToF16(v)", 1.0001) == [1]
    assert scalars("reflect(vec2(v, 1.0), vec2(0.0, 1.0)).y + faceForward(vec2(v), vec2(1.0), vec2(1.0)).x", 2) == [-3]


def test_float16() -> None:
    assert scalars("v * 3.0h + f16(0.1)", 0.1, type_="f16") == [
        float(np.float16(np.float16(0.1) * np.float16(3) + np.float16(0.1)))
    ]
    assert scalars("v + v", 40000, type_="f16") == [np.inf]


def test_numbers_out_of_range_are_clamped() -> None:
    assert scalars("f32(i32(v))", 3e9, -3e9, np.nan, -1.9) == [2147483520, -2147483648, 0, -1]
    assert scalars("f32(u32(v))", 5e9, -1, np.nan, 1.9) == [4294967040, 0, 0, 1]


def test_overrides_size_workgroups_and_arrays() -> None:
    source = """
    @id(7) override WIDTH: u32 = 2u;
    override SCALE = 1.0;
    var<workgroup> row: array<f32, WIDTH * 2>;
    @group(0) @binding(0) var<storage, read_write> y: array<f32>;
    @compute @workgroup_size(WIDTH, 2) fn main(@builtin(local_invocation_index) i: u32) {
        row[i] = SCALE * f32(i);
        workgroupBarrier();
        y[i] = row[WIDTH * 2u - 1u - i];
    }"""
    found = debug.interpret(source, [32], grid=1, constants={"7": 4, "SCALE": 2.0})
    assert found.findings == ()
    assert found.outputs["y"].tolist() == [14, 12, 10, 8, 6, 4, 2, 0]


def test_atomics() -> None:
    source = """
    struct Counters { low: atomic<i32>, high: atomic<i32>, slots: array<atomic<u32>> }
    @group(0) @binding(0) var<storage, read_write> c: Counters;
    @compute @workgroup_size(8) fn main(@builtin(local_invocation_index) i: u32) {
        atomicMin(&c.low, i32(i) - 3);
        atomicMax(&c.high, i32(i));
        let before = atomicAdd(&c.slots[i % 2u], 1u);
        atomicOr(&c.slots[2u + before], 1u << i);
        let tried = atomicCompareExchangeWeak(&c.slots[6], i, i + 1u);
        if (tried.exchanged) { atomicStore(&c.slots[7], tried.old_value + 10u); }
    }"""
    found = debug.interpret(source, [np.zeros(10, np.uint32)], grid=1)
    assert found.findings == ()
    assert found.outputs["c"].tolist() == [2**32 - 3, 7, 4, 4, 0b11, 0b1100, 0b110000, 0b11000000, 8, 17]


def test_textures() -> None:
    source = """
    @group(0) @binding(0) var image: texture_2d<f32>;
    @group(0) @binding(1) var<storage, read_write> y: array<vec4<f32>>;
    @compute @workgroup_size(1) fn main(@builtin(workgroup_id) id: vec3<u32>) {
        y[id.x] = textureLoad(image, vec2<u32>(id.x, 1u), 0) + f32(textureDimensions(image).x);
    }"""
    texels = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
    found = debug.interpret(source, [texels, np.zeros((4, 4), np.float32)], grid=4)
    np.testing.assert_array_equal(found.outputs["y"][:3], texels[1] + 3)
    assert found.findings[0].message == "invocation (3, 0, 0) reads the texel (3, 1) of image; it has 3 x 2"


def test_textures_of_bytes() -> None:
    source = """
    @group(0) @binding(0) var image: texture_storage_2d<rgba8sint, read>;
    @group(0) @binding(1) var<storage, read_write> y: array<vec4<f32>>;
    @compute @workgroup_size(1) fn main(@builtin(workgroup_id) id: vec3<u32>) {
        y[id.x] = vec4<f32>(textureLoad(image, vec2<u32>(id.x, 1u)));
    }"""
    texels = np.arange(-12, 12, dtype=np.int8).reshape(2, 3, 4)
    found = debug.interpret(source, [texels, np.zeros((3, 4), np.float32)], grid=3)
    np.testing.assert_array_equal(found.outputs["y"], texels[1])


def message(body: str, declarations: str = "") -> str:
    output = "@group(0) @binding(0) var<storage, read_write> y: array<f32>;\n"
    source = f"{declarations}{output}@compute @workgroup_size(4) fn main() {{\n{body}\n}}"
    with pytest.raises(wn.WebNNError) as raised:
        debug.interpret(source, [np.zeros(4, np.float32)], grid=1)
    return str(raised.value)


def test_what_is_not_wgsl() -> None:
    assert message("y[0] = 1.0 2.0;") == (
        "interpret: the interpreter cannot read this WGSL; got '2.0' at line 3, column 12. The line reads: y[0] = 1.0 2.0;"
    )
    assert "got the character '$' at line 3, column 8" in message("y[0] = $;")
    assert "got the end of the source" in message("if (true) {")
    assert "operands have the types i32 and u32, at line 3, column 9" in message("let a = 1i + 2u;")
    assert "no variable, constant or parameter is called z, at line 3" in message("y[0] = z;")
    assert "i32 where f32 is wanted, at line 3" in message("y[0] = 1i;")
    assert "a condition must be a bool, and i32 is given, at line 3, column 5" in message("if (1i) { }")
    assert "min: operands have the types f32 and u32" in message("y[0] = min(1f, 2u);")
    assert "only variables, and parts of them, can be assigned" in message("let a = vec2(1.0); a.x = 2.0;")
    assert "an index must be an integer, and f32 is given" in message("y[1.0] = 1.0;")
    assert "vec2<f32> has no z" in message("y[0] = vec2(1.0).z;".replace("vec2(", "vec2f("))
    assert "max takes other arguments than vec2<f32>, vec3<f32>" in message("y[0] = max(vec2f(1), vec3f(1)).x;")
    assert "the const_assert does not hold" in message("const_assert 1 > 2;")
    assert "f32 where u32 is wanted for the parameter a of g" in message("g(1f);", "fn g(a: u32) { }\n")
    assert "f calls itself, which no function of WGSL may" in message("f();", "fn f() { g(); }\nfn g() { f(); }\n")


def test_what_is_not_covered_is_named() -> None:
    assert "does not know this function; got dpdx at line 3, column 8" in message("y[0] = dpdx(1.0);")
    assert "the interpreter knows no such type; got sampler at line 3" in message("var s: sampler;")
