"""Which kernel matrix products get on which device, decided from recorded capabilities, without a device."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from tests.shaders import free_variables
from tests.support import op_graph
from webnn_wgpu.core.caps import Caps
from webnn_wgpu.costs import Choice, ProductSize, Target
from webnn_wgpu.kernels.packing import PanelTexture, Transposed
from webnn_wgpu.kernels.select import VARIANTS, possible, supports
from webnn_wgpu.kernels.spec import Packed, Temp
from webnn_wgpu.kernels.templates import render
from webnn_wgpu.ops import OPS
from webnn_wgpu.ops._def import Lowering
from webnn_wgpu.ops._product import TEMPLATES

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from webnn_wgpu.costs import ProductCosts
    from webnn_wgpu.kernels.spec import KernelCall

RECORDS = Path(__file__).resolve().parents[1] / "data" / "caps"
DEVICES = ("lavapipe", "webgpu-default", "nvidia", "amd", "intel", "apple")


def caps_of(device: str) -> Caps:
    return Caps.from_json((RECORDS / f"{device}.json").read_text(encoding="utf-8"))


def products_of(device: str) -> ProductCosts:
    return Target.of(caps_of(device)).costs.products


def choose(caps: Caps, size: ProductSize) -> Choice:
    return Target.of(caps).costs.products.choose(size, possible(caps))


def lower(
    name: str,
    shapes: Sequence[tuple[int, ...] | None],
    caps: Caps,
    attrs: Mapping[str, Any] | None = None,
    constants: Collection[int] = (),
    forced: Mapping[str, str] | None = None,
) -> list[KernelCall]:
    graph = op_graph(name, [s if s is None else np.zeros(s, np.float32) for s in shapes], attrs, constants)
    low = Lowering(node=graph.nodes[0], graph=graph, target=Target.of(caps), ops=OPS, forced=forced or {})
    lower_op = OPS[name].lower
    assert lower_op is not None
    return lower_op(low)


@pytest.mark.parametrize(
    ("device", "few_rows", "many_rows"),
    [
        ("lavapipe", "subgroup", "subgroup"),
        ("webgpu-default", "gemv", "tiled"),
        ("nvidia", "gemv", "tiled"),
        ("amd", "gemv", "tiled"),
        ("intel", "gemv", "tiled"),
        ("apple", "gemv", "tiled"),
    ],
)
def test_choice(device: str, few_rows: str, many_rows: str) -> None:
    caps = caps_of(device)
    for M, wanted in ((1, few_rows), (8, few_rows), (9, many_rows), (512, many_rows)):
        assert choose(caps, ProductSize(M, 384, 384)).variant == wanted


def test_software_without_subgroups_is_plain() -> None:
    full = caps_of("lavapipe")
    for caps in (
        replace(full, features=full.features - {"subgroup"}, subgroup_size=0),
        replace(full, subgroup_size=2),
        Caps(adapter_type="CPU"),
    ):
        assert choose(caps, ProductSize(512, 512, 512)).variant == "plain"


def test_software_with_narrow_vectors_has_subgroups_too() -> None:
    narrow = replace(caps_of("lavapipe"), subgroup_size=4)
    assert choose(narrow, ProductSize(512, 512, 512)) == Choice("subgroup", "software adapter with subgroups of 4")


def test_reasons_name_the_device() -> None:
    size = ProductSize(128, 384, 384)
    assert choose(caps_of("lavapipe"), size).reason == "software adapter with subgroups of 8"
    assert choose(caps_of("nvidia"), size).reason == "hardware GPU: tiles in workgroup memory"
    assert choose(caps_of("webgpu-default"), size).reason == "unknown adapter, taken for hardware: tiles in workgroup memory"


def test_only_the_subgroup_variant_needs_a_feature() -> None:
    for device in DEVICES:
        # An Intel GPU has subgroups of 16 as well: the kernel is right there, though never chosen.
        able = {v for v in VARIANTS if supports(caps_of(device), v)}
        assert able == set(VARIANTS) - (set() if device in ("lavapipe", "intel") else {"subgroup"})


@pytest.mark.parametrize(
    ("size", "texture", "tile"),
    [
        (ProductSize(128, 384, 384), True, (16, 2)),
        (ProductSize(128, 384, 384), False, (32, 2)),
        (ProductSize(128, 96, 384), False, (32, 1)),
        (ProductSize(64, 64, 64), False, (32, 1)),
        (ProductSize(128, 32, 128, 12), False, (32, 1)),
        (ProductSize(1, 768, 3072), True, (1, 2)),
        (ProductSize(7, 64, 64), True, (8, 2)),
        (ProductSize(17, 64, 64), True, (8, 2)),
        (ProductSize(3, 20, 64), True, (4, 1)),
        (ProductSize(49, 768, 3072), True, (25, 2)),
        (ProductSize(196, 384, 384), True, (16, 2)),
    ],
)
def test_subgroup_tile(size: ProductSize, texture: bool, tile: tuple[int, int]) -> None:
    assert products_of("lavapipe").subgroup_tile(size, texture=texture) == tile


@pytest.mark.parametrize(
    ("size", "tile"),
    [
        (ProductSize(128, 384, 384), (16, 3)),
        (ProductSize(197, 192, 192), (16, 3)),
        (ProductSize(128, 512, 512), (16, 2)),
        (ProductSize(128, 1000, 512), (16, 2)),
        (ProductSize(196, 96, 576), (16, 3)),
        (ProductSize(8, 384, 384), (8, 2)),
        (ProductSize(49, 768, 3072), (25, 2)),
    ],
)
def test_wider_tiles_are_filled(size: ProductSize, tile: tuple[int, int]) -> None:
    assert products_of("lavapipe").subgroup_tile(size, texture=True, wide=True) == tile


def test_tiles_of_hardware_shrink_for_small_results() -> None:
    def tile(size: ProductSize, most_rows: int = 128) -> str:
        found, parts = products_of("nvidia").tile_and_parts(Choice("tiled", ""), size, most_rows=most_rows, most_parts=1)
        assert parts == 1
        return str(found)

    assert tile(ProductSize(1024, 1024, 1024)) == "128x64"
    assert tile(ProductSize(12544, 64, 576)) == "128x64"
    assert tile(ProductSize(12544, 32, 288)) == "128x32"
    assert tile(ProductSize(64, 16384, 512)) == "64x128"
    assert tile(ProductSize(128, 1536, 384)) == "32x32"
    assert tile(ProductSize(128, 384, 384)) == "16x32x4"
    assert tile(ProductSize(49, 160, 960)) == "16x16x8"
    assert tile(ProductSize(16, 384, 384)) == "16x16x8"
    assert tile(ProductSize(1024, 1024, 1024), most_rows=64) == "64x128"


LAYERS = {
    "ResNet-50": {
        ProductSize(12544, 64, 147): 1,
        ProductSize(3136, 256, 64): 4,
        ProductSize(784, 64, 64, 16): 3,
        ProductSize(784, 128, 512): 3,
        ProductSize(784, 128, 1152): 1,
        ProductSize(784, 512, 128): 4,
        ProductSize(196, 256, 1024): 5,
        ProductSize(196, 1024, 256): 6,
        ProductSize(49, 256, 256, 16): 5,
        ProductSize(49, 512, 2048): 2,
        ProductSize(49, 2048, 512): 3,
        ProductSize(49, 512, 4608): 3,
    },
    "MobileNet V2": {
        ProductSize(12544, 96, 16): 1,
        ProductSize(784, 192, 32): 3,
        ProductSize(196, 64, 384): 3,
        ProductSize(196, 96, 576): 2,
        ProductSize(196, 576, 96): 3,
        ProductSize(49, 160, 960): 2,
        ProductSize(49, 960, 160): 3,
        ProductSize(49, 1280, 320): 1,
    },
    "MiniLM, 128 tokens": {ProductSize(128, 384, 384): 24, ProductSize(128, 1536, 384): 6, ProductSize(128, 384, 1536): 6},
    "MiniLM, 16 tokens": {
        ProductSize(16, 384, 384): 6,
        ProductSize(16, 384, 384, 3): 6,
        ProductSize(16, 1536, 384): 6,
        ProductSize(16, 384, 1536): 6,
    },
    "GPT-2, 64 tokens": {
        ProductSize(64, 768, 768): 12,
        ProductSize(64, 768, 768, 3): 12,
        ProductSize(64, 3072, 768): 12,
        ProductSize(64, 768, 3072): 12,
    },
    "ViT-tiny": {ProductSize(197, 192, 192): 12, ProductSize(197, 576, 192): 12, ProductSize(197, 192, 768): 12},
    "Whisper-tiny": {ProductSize(1500, 384, 384): 16, ProductSize(1500, 1536, 384): 4, ProductSize(1500, 384, 1536): 4},
    "ConvNeXt-tiny": {ProductSize(3136, 96, 384): 3, ProductSize(196, 384, 1536): 9, ProductSize(49, 768, 3072): 3},
}
"""Products of models, and how often each occurs."""


@pytest.mark.parametrize("device", ["amd", "nvidia", "webgpu-default"])
@pytest.mark.parametrize("model", LAYERS)
def test_products_of_models_fill_a_gpu(model: str, device: str) -> None:
    # 16 tokens have too few results. Tiles of more invocations would have less work each, and take as long.
    wanted = 96 if model == "MiniLM, 16 tokens" else 160
    work = {size: size.M * size.N * size.K * size.matrices * count for size, count in LAYERS[model].items()}
    full = 0
    for size in LAYERS[model]:
        tile, parts = products_of(device).tile_and_parts(Choice("tiled", ""), size, most_rows=128, most_parts=64)
        tiles = parts * size.matrices * -(-size.M // tile.rows) * -(-size.N // tile.columns)
        full += work[size] * (tiles * tile.invocations // 32 >= wanted)
    assert full >= 0.9 * sum(work.values())


@pytest.mark.parametrize(
    ("size", "patch_reads", "measured"),
    [
        (ProductSize(49, 512, 4608), 1, ("32x64", 16)),
        (ProductSize(196, 1024, 512), 1, ("32x32x4", 1)),
        (ProductSize(1500, 1536, 384), 0, ("128x64", 1)),
        (ProductSize(1500, 384, 1536), 0, ("128x64", 8)),
        (ProductSize(3136, 256, 64), 0, ("32x64", 1)),
        (ProductSize(784, 256, 512), 0, ("16x32x4", 1)),
    ],
)
def test_large_gpus_get_small_tiles_or_parts(size: ProductSize, patch_reads: int, measured: tuple[str, int]) -> None:
    """The choices are among the fastest ones that were measured on this device."""
    products = Target.of(Caps(adapter_type="DiscreteGPU", vendor="NVIDIA", device="NVIDIA H200")).costs.products
    tile, parts = products.tile_and_parts(Choice("tiled", ""), size, most_rows=128, most_parts=64, patch_reads=patch_reads)
    assert (str(tile), parts) == measured


def test_few_results_of_long_sums_are_computed_in_parts() -> None:
    def parts(size: ProductSize, most_parts: int = 64, device: str = "amd") -> int:
        return products_of(device).tile_and_parts(Choice("tiled", ""), size, most_rows=128, most_parts=most_parts)[1]

    assert parts(ProductSize(16, 64, 16384)) == 16
    assert parts(ProductSize(16, 64, 16384), most_parts=5) == 4
    assert parts(ProductSize(16, 64, 16384), most_parts=1) == 1
    assert parts(ProductSize(4096, 4096, 4096)) == parts(ProductSize(16, 64, 512)) == 1
    assert parts(ProductSize(16, 64, 16384), device="lavapipe") == 1


def test_architectures_with_few_registers_compute_fewer_results_at_once() -> None:
    def results(device: str) -> int:
        products = Target.of(Caps(adapter_type="DiscreteGPU", device=device)).costs.products
        return products.tile_of_workgroup(Choice("tiled", ""), ProductSize(2048, 2048, 2048), most_rows=128).results

    assert results("AMD Radeon RX 580 (RADV POLARIS10)") == 32
    assert results("AMD Radeon RX 6800 (RADV NAVI21)") == results("NVIDIA GeForce RTX 4070") == results("another") == 64


def test_plain_kernel_takes_no_more_rows_than_there_are() -> None:
    assert [products_of("lavapipe").plain_rows(ProductSize(M, 8, 8)) for M in (1, 2, 3, 4, 5, 100)] == [1, 2, 4, 4, 8, 8]


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("variant", VARIANTS)
def test_every_variant_keeps_to_default_limits(device: str, variant: str) -> None:
    caps = caps_of(device)
    if not supports(caps, variant):
        assert variant == "subgroup"
        return
    for shapes in (((128, 384), (384, 384)), ((70000, 3), (3, 5))):
        (call,) = lower("matmul", shapes, caps, constants={1}, forced={"matmul": variant})
        assert all(n <= 65535 for n in call.grid)
        # Software adapters have words of 64 bits, which no limit bounds.
        assert set(call.spec.features) <= ({"subgroup", "shader-int64"} if caps.is_software else {"subgroup"})
        assert "@workgroup_size(" in render(call.spec)


def test_constant_goes_into_a_texture_where_it_fits() -> None:
    caps = caps_of("lavapipe")
    (call,) = lower("matmul", ((128, 384), (384, 384)), caps, constants={1})
    assert call.operands[1] == Packed(1, PanelTexture(lanes=8, quads=3, width=16384, least_wraps=3))
    assert call.reason == "software adapter with subgroups of 8, b packed in a texture"
    narrow = replace(caps, limits=tuple((n, 64 if n == "max-texture-dimension-2d" else v) for n, v in caps.limits))
    (call,) = lower("matmul", ((128, 384), (384, 384)), narrow, constants={1})
    assert call.operands[1] == 1
    (call,) = lower("matmul", ((128, 384), (384, 384)), caps)
    assert call.operands[1] == 1


def test_one_matrix_for_all_folds_the_leading_dimensions_into_rows() -> None:
    caps = caps_of("lavapipe")
    (folded,) = lower("matmul", ((2, 64, 384), (384, 384)), caps, constants={1})
    (flat,) = lower("matmul", ((128, 384), (384, 384)), caps, constants={1})
    assert (folded.spec, folded.uniforms, folded.grid) == (flat.spec, flat.uniforms, flat.grid)


def test_sizes_are_not_part_of_the_shader() -> None:
    for device in DEVICES:
        specs = {
            lower("matmul", ((M, K), (K, N)), caps_of(device), constants={1})[0].spec
            for M, N, K in ((2048, 2048, 1024), (2048, 2048, 2048), (2048, 2048, 4096))
        }
        assert len(specs) == 1


def test_transposed_factors_are_read_as_they_are_stored_or_copied_once() -> None:
    caps = caps_of("nvidia")
    attrs = {"a_transpose": True, "b_transpose": True}
    (product,) = lower("gemm", ((8, 32), (16, 8), None), caps, attrs)
    assert product.spec.param("turned") == "ab"
    assert product.operands[:2] == (0, 1)
    (product,) = lower("gemm", ((8, 32), (16, 8), None), caps, attrs, constants={1})
    assert product.spec.param("turned") == "a"
    assert product.operands[:2] == (0, Packed(1, Transposed()))
    (product,) = lower("gemm", ((8, 32), (16, 8), None), caps_of("lavapipe"), attrs)
    assert product.spec.param("turned") == "ab"
    assert product.operands[:2] == (0, 1)
    first, second, product = lower("gemm", ((8, 32), (16, 8), None), caps_of("lavapipe"), attrs, forced={"gemm": "plain"})
    assert [call.reason for call in (first, second)] == ["a transposed", "b transposed"]
    assert product.operands[:2] == (Temp("a", 1024), Temp("b", 512))
    (product,) = lower("gemm", ((8, 32), (16, 8), None), caps_of("lavapipe"), attrs, constants={0, 1})
    assert product.operands[:2] == (
        Packed(0, Transposed()),
        Packed(1, PanelTexture(lanes=8, quads=1, width=16384, transposed=True, least_wraps=3)),
    )


def test_templates_declare_their_parameters() -> None:
    for template in TEMPLATES:
        assert free_variables(template.name) == set(template.params)


@pytest.mark.parametrize("transposed", [False, True])
@pytest.mark.parametrize("least_wraps", [1, 3])
@pytest.mark.parametrize(("matrices", "K", "N"), [(1, 5, 3), (3, 12, 70), (1, 33, 64), (2, 8, 33)])
def test_panel_texture_holds_every_element_in_its_place(
    matrices: int, K: int, N: int, least_wraps: int, transposed: bool
) -> None:
    packing = PanelTexture(lanes=8, quads=1, width=64, transposed=transposed, least_wraps=least_wraps)
    b = np.arange(1, 1 + matrices * K * N, dtype=np.float32).reshape(matrices, K, N)
    texels = packing.pack(b.swapaxes(1, 2) if transposed else b)
    steps, wraps = packing.wrap_steps(K), packing.wraps(K)
    assert texels.dtype == np.float32
    height, width, _ = texels.shape
    assert packing.height(K, N, matrices) <= height
    assert steps * 8 <= width <= 64
    assert all(side & (side - 1) for side in (height, width))
    for matrix, k, n in np.ndindex(matrices, K, N):
        panel, column = divmod(n, packing.columns)
        row = (matrix * -(-N // packing.columns) + panel) * wraps + k // steps
        assert texels[row, k % steps * 8 + column // 4, column % 4] == b[matrix, k, n]
    assert np.count_nonzero(texels) == b.size
