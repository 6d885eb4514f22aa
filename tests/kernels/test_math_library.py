"""Holds every function of shaders/lib/math to the error bound its own first line states."""

from __future__ import annotations

import math
import re
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest
import wgpu
from numpy.typing import NDArray

from webnn_wgpu.cli.op import formula_text
from webnn_wgpu.ops import OPS
from webnn_wgpu.runtime.adapters import adapters

if TYPE_CHECKING:
    from collections.abc import Callable

F32 = NDArray[np.float32]
F64 = NDArray[np.float64]

LIBRARY = Path(__file__).resolve().parents[2] / "shaders" / "lib" / "math"
SUPPORT = {"bits", "trig"}  # no function of their own name; bits has its own tests, trig is seen through sin, cos, tan
SAMPLES = 1 << 16
TINY = float(np.finfo(np.float32).tiny)
INF, NAN = math.inf, math.nan


# ---------------------------------------------------------------------------------------------------- sources


def header(stem: str) -> list[str]:
    return (LIBRARY / f"{stem}.wgsl").read_text().splitlines()[:2]


# The float32 functions; the integer and conversion functions beside them are not this file's matter.
STEMS = sorted(
    stem
    for stem in (path.stem for path in LIBRARY.glob("*.wgsl"))
    if stem in SUPPORT or header(stem)[0].startswith(f"// {stem}_f32:")
)


def uses(stem: str) -> list[str]:
    match = re.fullmatch(r"// uses: (\w+(?:, \w+)*)", header(stem)[1])
    return match[1].split(", ") if match else []


def resolve(stems: list[str]) -> list[str]:
    """The stems and what they use, each once, the used ones first."""
    order: list[str] = []

    def visit(stem: str) -> None:
        if stem not in order:
            for used in uses(stem):
                visit(used)
            order.append(stem)

    for stem in stems:
        visit(stem)
    return order


def source(stems: list[str]) -> str:
    return "\n".join((LIBRARY / f"{stem}.wgsl").read_text() for stem in resolve(stems))


def stated_bound(stem: str) -> float:
    """The maximal error in ULP from the first line: 'At most 1.5 ULP ...' or 'Exact ...'."""
    match = re.fullmatch(
        rf"// {stem}(?:_f32)?: .*?(?:At most (\d+(?:\.\d+)?) ULP|(Exact))\b.* on (?:all|every) .*\.", header(stem)[0]
    )
    assert match, f"{stem}.wgsl: the first line states no bound and domain, as 'At most 1.5 ULP on all x': {header(stem)[0]!r}"
    return float(match[1] or 0.0)


# ---------------------------------------------------------------------------------------------------- device


@pytest.fixture(scope="module")
def device() -> wgpu.GPUDevice:
    return adapters()[0].request_device_sync()


def evaluate(device: wgpu.GPUDevice, stems: list[str], rows: list[tuple[str, F32, F32]]) -> list[F32]:
    """Each row's WGSL expression in x and y at each of its sample pairs, all from one dispatch."""
    cases = "\n".join(f"        case {i}u: {{ result = {expression}; }}" for i, (expression, _, _) in enumerate(rows))
    code = f"""{source(stems)}
@group(0) @binding(0) var<storage, read> xs: array<f32>;
@group(0) @binding(1) var<storage, read> ys: array<f32>;
@group(0) @binding(2) var<storage, read_write> results: array<f32>;
@compute @workgroup_size(64) fn main(@builtin(global_invocation_id) id: vec3u) {{
    let i = id.y * {SAMPLES}u + id.x;
    let x = xs[i];
    let y = ys[i];
    var result = 0.0;
    switch id.y {{
{cases}
        default: {{}}
    }}
    results[i] = result;
}}"""
    usage = wgpu.BufferUsage.STORAGE | wgpu.BufferUsage.COPY_SRC
    inputs = [np.concatenate([row[k] for row in rows]) for k in (1, 2)]
    buffers = [device.create_buffer_with_data(data=data, usage=usage) for data in inputs]
    buffers.append(device.create_buffer(size=inputs[0].nbytes, usage=usage))
    pipeline = device.create_compute_pipeline(
        layout="auto", compute={"module": device.create_shader_module(code=code), "entry_point": "main"}
    )
    entries = [{"binding": i, "resource": {"buffer": buffer}} for i, buffer in enumerate(buffers)]
    encoder = device.create_command_encoder()
    compute_pass = encoder.begin_compute_pass()
    compute_pass.set_pipeline(pipeline)
    compute_pass.set_bind_group(0, device.create_bind_group(layout=pipeline.get_bind_group_layout(0), entries=entries))
    compute_pass.dispatch_workgroups(SAMPLES // 64, len(rows))
    compute_pass.end()
    device.queue.submit([encoder.finish()])
    return list(np.frombuffer(device.queue.read_buffer(buffers[2]), np.float32).reshape(len(rows), SAMPLES))


# ---------------------------------------------------------------------------------------------------- samples


HALVES = [0.5, 1.0, 1.5, 2.0, 2.5, 3.0, 3.5, 6.0, 7.0, 8388607.5, 8388609.0, 16777215.0, 33554433.0]
MAGNITUDES = [0.0, 1e-45, 1e-40, TINY, 1e-30, 1e-8, 0.1, *HALVES, 100.0, 1e10, 1e30, 3e38, 3.4028235e38, INF]
SPECIAL = np.array([sign * m for m in MAGNITUDES for sign in (1, -1)] + [NAN], np.float32)
# Where sine, cosine and tangent are hardest: next to multiples of pi/2. The last is the nearest of all to one.
QUARTER_TURNS = np.append(np.arange(-2000, 2000) * (math.pi / 2), [16367173.0 * 2.0**72]).astype(np.float32)


def fill(parts: list[F32], seed: int) -> F32:
    """SAMPLES values: the parts, and random bit patterns for the rest."""
    rng = np.random.default_rng(seed)
    given = np.concatenate(parts)
    return np.concatenate([given, rng.integers(0, 1 << 32, SAMPLES - given.size, np.uint32).view(np.float32)])


def unary_samples(low: float, high: float, seed: int) -> F32:
    """Special values, random bit patterns, magnitudes spread evenly over the exponents, and [low, high] densely."""
    rng = np.random.default_rng(seed)
    spread = np.exp2(rng.uniform(-126, 127, SAMPLES // 8)) * rng.choice([-1, 1], SAMPLES // 8)
    near_one = 1 + rng.uniform(-1e-3, 1e-3, SAMPLES // 16)
    dense = rng.uniform(low, high, SAMPLES // 2)
    near_zero = rng.uniform(-1, 1, SAMPLES // 8)
    random = [part.astype(np.float32) for part in (spread, near_one, dense, near_zero)]
    return fill([SPECIAL, QUARTER_TURNS, *random], seed)


def binary_samples(seed: int) -> tuple[F32, F32]:
    """All pairs of special values, then moderate random ones, integral exponents, and random bit patterns."""
    rng = np.random.default_rng(seed)
    size = SAMPLES // 8
    x = [
        np.exp(rng.uniform(-5, 5, size)),
        rng.uniform(0.7, 1.45, size),
        rng.uniform(-20, 20, size),
        1 + rng.uniform(-1e-3, 1e-3, size),
        np.exp2(rng.uniform(-126, 127, size)),
    ]
    # The second and the last fill the range of finite powers, where an error of the logarithm weighs most.
    y = [
        rng.uniform(-15, 15, size),
        rng.uniform(-87, 88, size) / np.log(x[1]),
        rng.integers(-30, 31, size),
        rng.uniform(-8e4, 8e4, size),
        rng.uniform(-87, 88, size) / np.log(x[4]),
    ]
    xs, ys = (np.array(grid, np.float32).ravel() for grid in np.meshgrid(SPECIAL, SPECIAL))
    return (
        fill([xs, *(part.astype(np.float32) for part in x)], seed),
        fill([ys, *(part.astype(np.float32) for part in y)], seed + 1),
    )


def moderate_samples(seed: int) -> tuple[F32, F32]:
    """Positive numbers of moderate size: whole ones, whose quotients are exact or next to a half, and any."""
    rng = np.random.default_rng(seed)
    whole = [rng.integers(1, 1 << bits, SAMPLES // 4) for bits in (12, 24, 12, 12)]
    some = np.exp2(rng.uniform(-50, 50, (2, SAMPLES // 2)))
    x, y = (np.concatenate([*whole[2 * i : 2 * i + 2], some[i]]).astype(np.float32) for i in range(2))
    x[:64] = 0
    return x, y


# ---------------------------------------------------------------------------------------------------- references


def each(function: Callable[[float], float]) -> Callable[[F64], F64]:
    return lambda x: np.fromiter(map(function, x.tolist()), np.float64, x.size)


def gelu(x: F64) -> F64:
    return np.where(np.isneginf(x), -0.0, 0.5 * x * each(math.erfc)(-x / math.sqrt(2)))


def softplus(x: F64) -> F64:
    return np.maximum(x, 0) + np.log1p(np.exp(-np.abs(x)))


def hard_swish(x: F64) -> F64:
    return np.where(np.isneginf(x), -0.0, x * np.clip(x + 3, 0, 6) / 6)


def softsign(x: F64) -> F64:
    return np.where(np.isinf(x), np.sign(x), x / (1 + np.abs(x)))


def sign(x: F64) -> F64:
    return np.where(np.isnan(x), 0.0, np.sign(x))


@dataclass(frozen=True)
class Unary:
    reference: Callable[[F64], F64]
    low: float  # the range sampled densely
    high: float
    others: str = ""  # arguments behind x


UNARY = {
    "acos": Unary(np.arccos, -1, 1),
    "acosh": Unary(np.arccosh, 1, 100),
    "asin": Unary(np.arcsin, -1, 1),
    "asinh": Unary(np.arcsinh, -100, 100),
    "atan": Unary(np.arctan, -10, 10),
    "atanh": Unary(np.arctanh, -1, 1),
    "clamp": Unary(lambda x: np.clip(x, -1.5, 2.25), -3, 4, ", -1.5, 2.25"),
    "cos": Unary(np.cos, -100, 100),
    "cosh": Unary(np.cosh, -90, 90),
    "erf": Unary(each(math.erf), -4.5, 4.5),
    "exp": Unary(np.exp, -104, 89),
    "exp_falling": Unary(lambda x: np.where(x < -87, 0.0, np.exp(np.minimum(x, 0))), -90, 1),
    "expm1": Unary(np.expm1, -20, 89),
    "gelu": Unary(gelu, -14.5, 8),
    "half_exp": Unary(lambda x: 0.5 * np.exp(x), -104, 90),
    "hard_swish": Unary(hard_swish, -4, 4),
    "log": Unary(np.log, 0, 4),
    "log1p": Unary(np.log1p, -1, 8),
    "reciprocal": Unary(lambda x: 1 / x, -8, 8),
    "round_even": Unary(np.rint, -1e4, 1e4),
    "sigmoid": Unary(lambda x: 1 / (1 + np.exp(-x)), -90, 20),
    "sign": Unary(sign, -1, 1),
    "sin": Unary(np.sin, -100, 100),
    "sinh": Unary(np.sinh, -90, 90),
    "softplus": Unary(softplus, -90, 20, ", 1.0"),
    "softsign": Unary(softsign, -8, 8),
    "sqrt": Unary(np.sqrt, 0, 100),
    "tan": Unary(np.tan, -100, 100),
    "tanh": Unary(np.tanh, -10, 10),
}
BINARY: dict[str, Callable[[F64, F64], F64]] = {
    "div": np.divide,
    "fmod": np.fmod,
    "max": np.maximum,
    "min": np.minimum,
    "mod": np.mod,
    "pow": np.power,
    "quotient": np.divide,
}


def ulp_error(got: F32, expected: F64) -> F64:
    """Distance from the float64 reference in units of the float32 last place.

    2^128 stands for infinity, so that rounding to it or not at the edge is a matter of ULP; NaN must meet NaN; a
    result below the normal range may be flushed to zero.
    """
    finite_got = np.clip(got.astype(np.float64), -(2.0**128), 2.0**128)
    target = np.clip(expected, -(2.0**128), 2.0**128)
    # The last place of all numbers from 2^127 is the same, but numpy has infinity for that of the largest.
    unit = np.spacing(np.clip(np.abs(target), TINY, 2.0**127).astype(np.float32)).astype(np.float64)
    error = np.abs(finite_got - target) / unit
    error[(np.abs(target) < TINY) & (got == 0)] = 0
    return np.where(np.isnan(got) | np.isnan(expected), np.where(np.isnan(got) & np.isnan(expected), 0, INF), error)


def flushed(x: F32) -> F64:
    return np.where(np.abs(x) < TINY, np.copysign(0.0, x), x).astype(np.float64)


# ---------------------------------------------------------------------------------------------------- tests


@dataclass(frozen=True)
class Measured:
    x: F32
    y: F32
    got: F32
    error: F64


@pytest.fixture(scope="module")
def measured(device: wgpu.GPUDevice) -> dict[str, Measured]:
    rows: list[tuple[str, F32, F32]] = []
    for seed, (stem, case) in enumerate(UNARY.items()):
        x = unary_samples(case.low, case.high, seed)
        rows.append((f"{stem}_f32(x{case.others})", x, x))
    for seed, stem in enumerate(BINARY):
        samples = moderate_samples if stem == "quotient" else binary_samples
        rows.append((f"{stem}_f32(x, y)", *samples(1000 + seed)))
    functions: list[Callable[[F64, F64], F64]] = [lambda x, _, f=case.reference: f(x) for case in UNARY.values()]
    functions += BINARY.values()
    stems = [*UNARY, *BINARY]
    result: dict[str, Measured] = {}
    with np.errstate(all="ignore"):
        for stem, function, (_, x, y), got in zip(stems, functions, rows, evaluate(device, stems, rows), strict=True):
            # A subnormal operand may count as zero.
            error = np.minimum(
                ulp_error(got, function(x.astype(np.float64), y.astype(np.float64))),
                ulp_error(got, function(flushed(x), flushed(y))),
            )
            result[stem] = Measured(x, y, got, error)
    return result


def test_every_function_is_measured() -> None:
    assert set(STEMS) == set(UNARY) | set(BINARY) | SUPPORT, "add a row to UNARY or BINARY"


@pytest.mark.parametrize("stem", [*UNARY, *BINARY])
def test_error_is_within_the_stated_bound(stem: str, measured: dict[str, Measured]) -> None:
    run = measured[stem]
    worst = int(np.argmax(run.error))
    assert run.error[worst] <= stated_bound(stem), (
        f"{stem}_f32({run.x[worst]!r}, {run.y[worst]!r}) = {run.got[worst]!r}: {run.error[worst]:.2f} ULP "
        f"({np.count_nonzero(run.error > stated_bound(stem))} of {SAMPLES} samples beyond the bound)"
    )


INACCURATE = {"quotient": (r"1\.0 / y",), "sqrt": (r"sqrt\(m\)", r"inverseSqrt\(m\)")}
"""What drivers compute inaccurately in functions that correct it."""


@pytest.mark.parametrize("units", [-2, -1, 1, 2])
@pytest.mark.parametrize("stem", INACCURATE)
def test_what_a_driver_computes_inaccurately_is_corrected(
    stem: str, units: int, device: wgpu.GPUDevice, monkeypatch: pytest.MonkeyPatch
) -> None:
    code = source([stem])
    for pattern in INACCURATE[stem]:
        code, found = re.subn(rf"(?<!\w)({pattern})", rf"bitcast<f32>(bitcast<i32>(\1) + ({units}i))", code, flags=re.MULTILINE)
        assert found == 1
    monkeypatch.setattr(sys.modules[__name__], "source", lambda _: code)
    seeds = range(4)
    if stem == "quotient":
        rows = [("quotient_f32(x, y)", *moderate_samples(seed)) for seed in seeds]
    else:
        rows = [("sqrt_f32(x)", x, x) for x in (np.abs(unary_samples(0, 100, seed)) for seed in seeds)]
    for (_, x, y), got in zip(rows, evaluate(device, [stem], rows), strict=True):
        with np.errstate(all="ignore"):
            expected = x.astype(np.float64) / y if stem == "quotient" else np.sqrt(x.astype(np.float64))
            assert ulp_error(got, expected)[np.isnan(x) | (x >= TINY)].max() <= stated_bound(stem)


@pytest.mark.parametrize("units", [-2, -1, 0, 1, 2])
def test_quotients_next_to_halves_are_quantized_exactly(
    units: int, device: wgpu.GPUDevice, monkeypatch: pytest.MonkeyPatch
) -> None:
    inverse = "1.0 / divisor"
    code = source(["quantize_quotient"])
    assert code.count(inverse) == 1
    code = code.replace(inverse, f"bitcast<f32>(bitcast<i32>({inverse}) + ({units}i))")
    monkeypatch.setattr(sys.modules[__name__], "source", lambda _: code)
    rng = np.random.default_rng(units + 2)
    with np.errstate(all="ignore"):
        scale = rng.integers(1 << 23, 255 << 23, SAMPLES, np.uint32).view(np.float32) * rng.choice(np.float32([1, -1]), SAMPLES)
        halves = rng.integers(-260, 260, SAMPLES) + 0.5
        products = (halves * scale.astype(np.float64)).astype(np.float32)
        x = (products.view(np.int32) + rng.integers(-2, 3, SAMPLES, np.int32)).view(np.float32)
        pairs = [*zip(*(grid.ravel() for grid in np.meshgrid(SPECIAL, SPECIAL)), strict=True)]
        x[: len(pairs)], scale[: len(pairs)] = np.array(pairs, np.float32).T
        # A subnormal divisor may count as zero.
        scale[np.abs(scale) < TINY] = 0
        quotient = (x.astype(np.float64) / scale).astype(np.float32).astype(np.float64)
        expected = np.where(np.isnan(quotient), 0, np.clip(np.rint(quotient) + 3, -128, 127))
    (got,) = evaluate(device, ["quantize_quotient"], [("f32(quantize_quotient(x, y, 3, -128, 127))", x, scale)])
    wrong = np.flatnonzero((got != expected) & ((np.abs(x) >= TINY) | (x == 0)))
    assert not wrong.size, [(x[i], scale[i], got[i], expected[i]) for i in wrong[:4]]


@pytest.mark.parametrize("stem", STEMS)
def test_file_compiles_with_what_it_uses(stem: str, device: wgpu.GPUDevice) -> None:
    code = source([stem])
    assert stated_bound(stem) >= 0
    assert set(uses(stem)) <= set(STEMS)
    if stem not in SUPPORT:
        assert re.search(rf"^fn {stem}_f32\(", code, re.MULTILINE)
    device.create_shader_module(code=code)  # raises GPUValidationError


@pytest.mark.parametrize("stem", STEMS)
def test_uses_names_exactly_what_is_called(stem: str) -> None:
    defined = {name: s for s in STEMS for name in re.findall(r"^fn (\w+)\(", (LIBRARY / f"{s}.wgsl").read_text(), re.M)}
    text = re.sub(r"//.*", "", (LIBRARY / f"{stem}.wgsl").read_text())
    called = {defined[name] for name in re.findall(r"\b(\w+)\(", text) if name in defined} - {stem}
    assert called == set(uses(stem))


def test_bit_tests_on_every_kind_of_pattern(device: wgpu.GPUDevice) -> None:
    x = fill([SPECIAL, np.array([0x7F800001, 0xFF800001, 0x7FFFFFFF, 0xFFFFFFFF], np.uint32).view(np.float32)], 7)
    got = evaluate(
        device,
        ["bits"],
        [
            ("f32(is_nan_f32(x))", x, x),
            ("f32(is_inf_f32(x))", x, x),
            ("inf_f32()", x, x),
            ("nan_f32()", x, x),
            ("head_f32(x)", x, x),
            ("keep_nan_f32(x, 1.0)", x, x),
            ("flip_sign_f32(2.0, x)", x, x),
        ],
    )
    head = (x.view(np.uint32) & 0xFFFFF000).view(np.float32)
    expected = [
        np.isnan(x),
        np.isinf(x),
        np.full(x.shape, INF),
        np.full(x.shape, NAN),
        head,
        np.where(np.isnan(x), x, np.float32(1)),
        np.copysign(np.float32(2), x),
    ]
    for result, want in zip(got, expected, strict=True):
        np.testing.assert_array_equal(result, want.astype(np.float32))


def test_two_over_pi_is_right_to_its_last_bit() -> None:
    # Samples cannot tell: the last words only ever decide a rounding.
    def arctan_of_inverse(n: int, one: int) -> int:
        return sum((-1) ** k * one // ((2 * k + 1) * n ** (2 * k + 1)) for k in range(200))

    one = 1 << 400
    pi = 16 * arctan_of_inverse(5, one) - 4 * arctan_of_inverse(239, one)  # Machin
    words = re.search(r"array<u32, 8>\(\s*0u, (.*?)u\)", (LIBRARY / "trig.wgsl").read_text(), re.DOTALL)
    assert words
    assert int("".join(word.removeprefix("0x") for word in words[1].split("u, ")), 16) == (2 * one << 224) // pi


# Expression, x, y, result.
SIGNED = [
    ("round_even_f32(x)", -0.5, 1.0, -0.0),
    ("round_even_f32(x)", -0.0, 1.0, -0.0),
    ("sqrt_f32(x)", -0.0, 1.0, -0.0),
    ("gelu_f32(x)", -INF, 1.0, -0.0),
    ("gelu_f32(x)", 0.0, 1.0, 0.0),
    ("gelu_f32(x)", -0.0, 1.0, -0.0),
    ("hard_swish_f32(x)", -INF, 1.0, -0.0),
    ("sign_f32(x)", -0.0, 1.0, 0.0),
    ("reciprocal_f32(x)", -0.0, 1.0, -INF),
    ("reciprocal_f32(x)", -INF, 1.0, -0.0),
    ("reciprocal_f32(x)", INF, 1, 0.0),
    ("div_f32(x, y)", 1.0, -0.0, -INF),
    ("div_f32(x, y)", -1.0, -0.0, INF),
    ("div_f32(x, y)", 0.0, -2.0, -0.0),
    ("pow_f32(x, y)", -0.0, -3.0, -INF),
    ("pow_f32(x, y)", -0.0, -2.0, INF),
    ("pow_f32(x, y)", -0.0, 3.0, -0.0),
    ("pow_f32(x, y)", -0.0, 0.5, 0.0),
    ("pow_f32(x, y)", -INF, -3.0, -0.0),
    ("pow_f32(x, y)", -INF, 3.0, -INF),
    ("pow_f32(x, y)", -INF, 0.5, INF),
    ("pow_f32(x, y)", -2.0, 3.0, -8.0),
    ("pow_f32(x, y)", -1.0, INF, 1.0),
    ("sin_f32(x)", -0.0, 1.0, -0.0),
    ("tanh_f32(x)", -0.0, 1.0, -0.0),
    ("erf_f32(x)", -0.0, 1.0, -0.0),
    ("asin_f32(x)", -0.0, 1.0, -0.0),
    ("asinh_f32(x)", -0.0, 1.0, -0.0),
    ("asinh_f32(x)", -INF, 1.0, -INF),
    ("atan_f32(x)", -0.0, 1.0, -0.0),
    ("atanh_f32(x)", -0.0, 1.0, -0.0),
    ("atanh_f32(x)", -1.0, 1.0, -INF),
    ("sinh_f32(x)", -0.0, 1.0, -0.0),
    ("sinh_f32(x)", -INF, 1.0, -INF),
    ("cosh_f32(x)", -INF, 1.0, INF),
    ("acosh_f32(x)", 1.0, 1.0, 0.0),
    ("acos_f32(x)", 1.0, 1.0, 0.0),
    ("fmod_f32(x, y)", -4.0, 2.0, -0.0),
    ("fmod_f32(x, y)", -1.0, INF, -1.0),
    ("fmod_f32(x, y)", INF, 2.0, NAN),
    ("fmod_f32(x, y)", 2.0, 0.0, NAN),
    ("mod_f32(x, y)", -4.0, 2.0, 0.0),
    ("mod_f32(x, y)", 4.0, -2.0, -0.0),
    ("mod_f32(x, y)", -1.0, INF, INF),
    ("mod_f32(x, y)", 1.0, INF, 1.0),
    # One operand twice: x / x is 1 and x - x is 0 to a compiler that knows neither NaN nor infinity.
    ("div_f32(x, x)", 0.0, 1.0, NAN),
    ("div_f32(x, x)", INF, 1.0, NAN),
    ("div_f32(x, x)", NAN, 1.0, NAN),
    ("max_f32(x, x)", NAN, 1.0, NAN),
    ("max_f32(x, 0.0)", NAN, 1.0, NAN),
    ("min_f32(0.0, x)", NAN, 1.0, NAN),
    ("pow_f32(x, x)", NAN, 1.0, NAN),
    ("pow_f32(x, x)", 0.0, 1.0, 1.0),
    ("pow_f32(x, 0.0)", NAN, 1.0, 1.0),
    # Fused into one kernel: special values made by one function reach the next.
    ("sigmoid_f32(sqrt_f32(log_f32(x)))", 0.5, 1.0, NAN),
    ("tanh_f32(exp_f32(x))", 1000.0, 1.0, 1.0),
    ("softplus_f32(log_f32(x), 1.0)", 0.0, 1.0, 0.0),
    ("gelu_f32(reciprocal_f32(x))", -0.0, 1.0, -0.0),
    ("erf_f32(tan_f32(x))", INF, 1.0, NAN),
    ("log1p_f32(expm1_f32(x))", -INF, 1.0, -INF),
]


def test_special_values_keep_their_sign_and_survive_fusion(device: wgpu.GPUDevice) -> None:
    # Every expression at every case's operands; each case looks at its own result only.
    x, y = (np.resize(np.array([case[k] for case in SIGNED], np.float32), SAMPLES) for k in (1, 2))
    expressions = sorted({case[0] for case in SIGNED})
    results = dict(zip(expressions, evaluate(device, [*UNARY, *BINARY], [(e, x, y) for e in expressions]), strict=True))
    wrong: list[str] = []
    for lane, (expression, x_value, y_value, want) in enumerate(SIGNED):
        got = results[expression][lane]
        if not (math.isnan(got) if math.isnan(want) else got.tobytes() == np.float32(want).tobytes()):
            wrong.append(f"{expression} at x = {x_value}, y = {y_value}: {got}, expected {want}")
    assert not wrong, "\n".join(wrong)


def test_a_row_of_one_function_permits_the_error_of_the_function() -> None:
    compared = 0
    for op in OPS.values():
        call = re.fullmatch(r"(\w+)_f32\([\w, ]+\)", formula_text(op))
        if call and call[1] in STEMS and op.tolerance:
            compared += 1
            assert op.tolerance >= stated_bound(call[1]), f"{op.name} permits less than {call[1]}.wgsl"
    assert compared >= 15
