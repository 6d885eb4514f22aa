"""Kernels in other compilers: naga translates all of them to HLSL and Metal's language, and Tint accepts those of browsers.

A run tests the kernels of a share of the golden plans, which the commit picks. `--profiles=all` tests all.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from tests.conftest import REPOSITORY
from tests.rotation import part_of, share_of_today
from tests.translations import direct3d, tint
from tests.translations.collecting import NATIVE_ONLY, Text, caps_of, tasks, texts
from webnn_wgpu.core.errors import NotSupportedError, OperationError
from webnn_wgpu.debug.translation.naga import FXC_MODEL, HLSL, METAL_VERSION, MSL, Naga, shader_model

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping

    from tests.browser.chromium import Chromium, Server

SHARES = 24
"""One share takes about 12 s on one core, most of it for plans."""

DIRECT3D = "d3d12"
"""The record of a device of Direct3D 12 under FXC."""


@pytest.fixture(scope="module")
def kernels(request: pytest.FixtureRequest) -> dict[str, Text]:
    share = None if request.config.getoption("--profiles") == "all" else share_of_today(REPOSITORY, SHARES)[0]
    return texts(tasks(share, SHARES))


@pytest.fixture(scope="module")
def naga() -> Iterator[Naga]:
    try:
        translator = Naga()
    except NotSupportedError as error:
        pytest.skip(str(error))
    with translator:
        yield translator


@pytest.fixture(scope="module")
def chrome() -> tint.Tint:
    if missing := tint.missing():
        pytest.skip(missing)
    return tint.Tint()


def naga_refusals(naga: Naga, kernels: Collection[Text]) -> list[str]:
    """Return a sentence for each kernel that naga does not translate, or that FXC refuses although it has the shader model.

    Such kernels need no features of WebGPU, so that any device of Direct3D 12 may get them.
    """
    refused: list[str] = []
    for kernel in kernels:
        model = shader_model(kernel.wgsl)
        targets: list[Mapping[str, object]] = [
            {"to": HLSL, "shaderModel": model},
            {"to": MSL, "langVersion": METAL_VERSION},
        ]
        try:
            hlsl, _ = naga.translate(kernel.wgsl, *targets)
        except OperationError as error:
            refused.append(f"{kernel}: {error}")
            continue
        if model == FXC_MODEL:
            caps = caps_of(kernel.device)
            shared_bytes = caps.limit("max-compute-workgroup-storage-size")
            faults = direct3d.faults(hlsl, shared_bytes=shared_bytes, typed_loads=caps.is_software)
            refused += [f"{kernel}: {fault}" for fault in faults]
    return refused


def tint_refusals(chrome: tint.Tint, kernels: Collection[Text]) -> list[str]:
    """Return a sentence for each kernel that browsers may get and that Tint refuses."""
    refusals = {kernel: chrome.refusal(tint.for_tint(kernel.wgsl, kernel.features)) for kernel in kernels if kernel.in_browsers}
    return [f"{kernel}: {refusal}" for kernel, refusal in refusals.items() if refusal]


def test_naga_translates_every_kernel(naga: Naga, kernels: dict[str, Text], pytestconfig: pytest.Config) -> None:
    assert len(kernels) > 300
    assert naga_refusals(naga, part_of(pytestconfig, list(kernels.values()), 6)) == []


def test_tint_accepts_every_kernel_of_browsers(
    chrome: tint.Tint, kernels: dict[str, Text], pytestconfig: pytest.Config
) -> None:
    given = [kernel for kernel in kernels.values() if kernel.in_browsers]
    assert len(given) > 300
    assert tint_refusals(chrome, part_of(pytestconfig, given, 6)) == []


ASK_BROWSER = """(async () => {
  const adapter = await navigator.gpu.requestAdapter();
  const wanted = ["subgroups", "shader-f16"].filter((feature) => adapter.features.has(feature));
  const device = await adapter.requestDevice({ requiredFeatures: wanted });
  device.addEventListener("uncapturederror", (event) => event.preventDefault());
  const sources = await (await fetch("/kernels.json")).json();
  const said = await Promise.all(sources.map(async (code) => {
    const { messages } = await device.createShaderModule({ code }).getCompilationInfo();
    return messages.map(({ type, lineNum, message }) => `${type} in line ${lineNum}: ${message}`).join("; ");
  }));
  device.destroy();
  return { said, features: wanted };
})()"""


def browser_messages(browser: Chromium, server: Server, kernels: Collection[Text]) -> tuple[list[str], int]:
    """Return what a browser's compiler says of kernels, errors and warnings, and the number of kernels that it was asked about.

    A browser on SwiftShader has no shader-f16.
    """
    asked = [kernel for kernel in kernels if kernel.in_browsers and "shader-f16" not in kernel.features]
    server.contents["/kernels.html"] = b"<!doctype html><title>kernels</title>"
    server.contents["/kernels.json"] = json.dumps([tint.for_tint(k.wgsl, k.features) for k in asked]).encode()
    browser.open(f"{server.address}/kernels.html")
    said = browser.evaluate(ASK_BROWSER)["said"]
    return [f"{kernel}: {message}" for kernel, message in zip(asked, said, strict=True) if message], len(asked)


def test_a_browser_accepts_every_kernel_without_a_warning(browser: Chromium, server: Server, kernels: dict[str, Text]) -> None:
    messages, asked = browser_messages(browser, server, kernels.values())
    assert asked > 250
    assert messages == []


def test_kernels_for_direct3d_need_no_newer_shader_model_than_fxc_has() -> None:
    found = texts([(model, DIRECT3D) for model in ("example/bert", "example/quantized_4bit", "operator/lstm", "operator/cast")])
    assert {shader_model(kernel.wgsl) for kernel in found.values()} == {FXC_MODEL}


# That the tests can fail ----------------------------------------------------------------------------------------------


def test_a_kernel_that_a_browser_refuses_is_named(browser: Chromium, server: Server) -> None:
    messages, _ = browser_messages(browser, server, [kernel("y[lane] = 1.0;"), kernel("y[lane] = unknown;")])
    (message,) = messages
    assert message.startswith("made up of none for d3d12: error in line 5: unresolved value 'unknown'")


_STORE = "@group(0) @binding(0) var<storage, read_write> y: array<f32>;\nvar<workgroup> shared_sum: f32;\n"


def kernel(body: str, device: str = DIRECT3D, features: Collection[str] = ()) -> Text:
    wgsl = f"{_STORE}@compute @workgroup_size(64)\nfn main(@builtin(local_invocation_index) lane: u32) {{\n{body}\n}}\n"
    return Text(wgsl, "made up", "none", device, frozenset(features))


@pytest.mark.parametrize(
    ("body", "refusal"),
    [
        ("y[lane] = unknown;", "naga does not translate the shader"),
        ("var v: vec4<f32>; v[lane % 4u] = 1.0; y[lane] = v.x;", "stores components of vectors at literal indices alone"),
    ],
)
def test_a_kernel_that_direct3d_does_not_compile_is_named(naga: Naga, body: str, refusal: str) -> None:
    found = naga_refusals(naga, [kernel("y[lane] = 1.0;"), kernel(body)])
    assert found
    assert all(line.startswith("made up of none for d3d12: ") for line in found)
    assert refusal in found[0]


def test_arrays_may_be_stored_to_at_any_index_on_direct3d(naga: Naga) -> None:
    body = "var a: array<vec4<f32>, 8>; a[lane % 8u] = vec4<f32>(1.0); a[lane % 5u].y = 2.0; y[lane] = a[lane % 7u].x;"
    assert naga_refusals(naga, [kernel(body)]) == []
    assert naga_refusals(naga, [kernel(body.replace("].y", "][lane % 4u]"))]) != []


def test_types_and_operations_of_newer_shader_models_are_named(naga: Naga) -> None:
    body = "y[lane] = f32(u32(i64(lane))) + subgroupAdd(1.0);"
    (hlsl,) = naga.translate(kernel(body).wgsl, {"to": HLSL, "shaderModel": "6_0"})
    assert {fault.split()[-1] for fault in direct3d.faults(hlsl)} >= {"int64_t", "WaveActiveSum"}


def test_workgroup_memory_and_textures_of_direct3d_are_limited() -> None:
    assert direct3d.faults("groupshared float4 a[64][32];\ngroupshared uint b;\n") == [
        "workgroup memory has 32772 bytes; at most 32768 are possible"
    ]
    assert direct3d.faults("groupshared float4 a[64];\n    a[lane] = x;\n    b[3] = x;\n") == []
    assert direct3d.faults("RWTexture2D<float4> t : register(u0);\n") != []
    assert direct3d.faults("RWTexture2D<float4> t : register(u0);\n", typed_loads=True) == []


def test_a_barrier_that_is_not_reached_by_all_is_named(chrome: tint.Tint) -> None:
    bad = kernel("if (lane < 3u) { workgroupBarrier(); }\ny[lane] = shared_sum;")
    (refusal,) = tint_refusals(chrome, [kernel("y[lane] = 1.0;"), bad])
    assert refusal.startswith("made up of none for d3d12: ")
    assert "uniform control flow" in refusal


def test_subgroups_are_enabled_for_tint_alone(naga: Naga, chrome: tint.Tint) -> None:
    whole = kernel("y[lane] = subgroupAdd(1.0);", features=["subgroup"])
    assert tint_refusals(chrome, [whole]) == []
    assert naga_refusals(naga, [Text(whole.wgsl, "", "", "nvidia", whole.features)]) == []
    split = kernel("if (lane < 3u) { y[lane] = subgroupAdd(1.0); }", features=["subgroup"])
    assert "uniform control flow" in tint_refusals(chrome, [split])[0]


@pytest.mark.parametrize("feature", NATIVE_ONLY)
def test_kernels_with_features_of_wgpu_alone_have_counterparts_in_browsers(feature: str) -> None:
    model = {"shader-int64": "operator/cumulativeSum", "subgroup-barrier": "operator/x.attention"}[feature]
    native = texts([(model, "lavapipe")])
    assert any(feature in kernel.features for kernel in native.values())
    found = texts([(model, "lavapipe@browser")])
    assert found
    assert all(kernel.in_browsers for kernel in found.values())
