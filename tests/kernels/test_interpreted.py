"""Every built-in kernel, run by the interpreter: it computes what the device does, and nothing is found wrong with it.

Kernels as hardware GPUs get them compute what the reference does, with subgroups as large as no software adapter has them.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest

from tests.kernels.operators import Call, calls, indices
from tests.ops.recurrent import SIDE_BY_SIDE
from tests.ops.reduced import REDUCED, Reduced
from tests.support import Sketch, op_graph
from tests.targets import SOFTWARE
from tests.unit.normalized_rows import Rows, planned
from tests.unit.pairs import PAIRS, optimized
from tests.unit.pooled_images import Pooled
from tests.unit.projections import block
from webnn_wgpu.core.caps import Caps
from webnn_wgpu.core.errors import OperationError
from webnn_wgpu.costs import Target
from webnn_wgpu.costs.convolutions import ConvolutionCosts
from webnn_wgpu.costs.products import ProductCosts
from webnn_wgpu.costs.tiles import WINOGRAD_TILES, WinogradTile, block_tile
from webnn_wgpu.debug.plan_memory import PlanMemory
from webnn_wgpu.debug.wgsl.dispatch import SourceKernel
from webnn_wgpu.debug.wgsl.machine import Budget
from webnn_wgpu.kernels.templates import render, shader_root
from webnn_wgpu.plan import make_plan
from webnn_wgpu.plan.forced import forceable
from webnn_wgpu.reference import interpret
from webnn_wgpu.runtime.device import WANTED_FEATURES
from webnn_wgpu.runtime.program import Program

if TYPE_CHECKING:
    from webnn_wgpu.ir.graph import Array, Graph
    from webnn_wgpu.plan import ExecutionPlan
    from webnn_wgpu.runtime.device import Device

NAMES = """
add-all-but-0 cast-all identity-all-float16 reshape-all-uint8 tanh-all erf-all x.mod-all logicalXor-all-but-0
quantizeLinear-8x14 dequantizeLinear-8x14-int8
transpose-all-uint8 reverse-all-float16 concat-all-uint8 pad-all-uint8 triangular-all-float16
gather-all-uint8 gatherND-all-float32 scatterND-rows-int64 scatterElements-table-uint8
argMax-rows-1 reduceSum-rows-0 reduceLogSumExp-one-row softmax-40x41-1 softmax-40x40-0
cumulativeSum-40x41-1-float32-True layerNormalization-rows instanceNormalization-nchw
matmul-rows gemm-columns-transposed matmul-matrices-constant
conv2d-batch-nchw conv2d-groups-nhwc-constant conv2d-depthwise-nhwc-constant conv2d-winograd-nhwc-constant
convTranspose2d-image-nchw averagePool2d-batch-nchw maxPool2d-image-of-quads-nhwc resample2d-linear-float32-2-8-1.5
gru-odd-hidden-both lstmCell-batch
""".split()
"""Calls that are used for other tests too."""

RANDOM = np.random.default_rng(5)
BYTES = RANDOM.integers(0, 256, (5, 40), np.uint8)
SCALES = RANDOM.uniform(0.5, 1.5, (5, 5)).astype(np.float32)
ANGLES = RANDOM.uniform(-3, 3, (2, 5, 4)).astype(np.float32)

LONG = [(1, 2, 1, 8), (1, 1, 600, 8), (1, 1, 600, 8)]
POINTS = np.tanh(RANDOM.standard_normal((1, 3, 7, 2))).astype(np.float32)
TAPS = [RANDOM.integers(0, 5, (6, 3)), RANDOM.random((6, 3), np.float32)]
STEPS = {"steps": 3, "hidden_size": 8}
STACKED = STEPS | {"return_sequence": True}
WEIGHTS = frozenset({1, 2})
FOUR_BITS = {"bits": 4, "block_size": 32}
PACKED = [RANDOM.integers(0, 256, (24, 2, 16), np.uint8), RANDOM.random((24, 2), np.float32), None, None]

BYTES_WHOLE = RANDOM.integers(-128, 128, (64, 23)).astype(np.float32)

EXTENSIONS = (
    Call("matmul", "long sums", [(5, 2048), (2048, 8)]),
    Call("x.attention", "short", [(1, 2, 5, 8), (1, 1, 9, 8), (1, 1, 9, 8), None, None]),
    Call("x.attention_gradient", "groups", [(1, 2, 5, 8), (1, 2, 5, 8), (1, 1, 35, 8), (1, 1, 35, 8), (5, 35), np.int32([34])]),
    Call("x.attention", "long", [*LONG, None, None]),
    Call("x.cache_update", "rows", [(2, 3, 8, 16), (2, 3, 2, 16), np.int32([1])], {"axis": 2}),
    Call("x.gather_block_quantized", "rows", [BYTES, np.int32([4, 0, -1]), SCALES, None], {"bits": 4, "block_size": 16}),
    Call("x.grid_sample", "reflected", [(1, 2, 5, 3), POINTS], {"padding_mode": "reflection"}),
    Call("x.normalization_gradient", "rows", [(3, 30), (3, 30), (30,), (3, 30)], {"axes": [1], "products": True}),
    Call("columnSums", "two", [(40, 64), (40, 64)], {"axes": [0]}),
    Call("columnSums", "pairs of quads", [(40, 128), (40, 128), (40, 128)], {"axes": [0]}),
    Call("transposes", "quads", [(3, 5, 8), (3, 5, 8)], {"permutation": [1, 0, 2]}),
    Call("attentionWeights", "rows", [(3, 5, 40), np.tri(5, 40, 20, dtype=np.uint8)]),
    Call("attentionWeights", "positions", [(3, 5, 40), None], {"diagonal": 20}),
    Call("attentionWeights", "pairs of quads", [(3, 5, 128), None], {"diagonal": 20}),
    Call("weightsGradient", "pairs of quads", [(3, 5, 128), (3, 5, 128)], {"scale": 0.5}),
    Call("weightsGradient", "rows", [(3, 5, 40), (3, 5, 40)], {"scale": 0.5}),
    Call("filterGradient", "quads", [(2, 4, 5, 6), (2, 4, 5, 4)], {"kernel": [3, 3], "padding": [1, 1]}),
    Call("filterGradient", "strides", [(3, 2, 2, 5), (3, 5, 4, 3)], {"kernel": [2, 3], "strides": [2, 1], "dilations": [2, 1]}),
    Call("filterGradient", "small images", [(20, 1, 1, 4), (20, 2, 2, 1)], {"kernel": [2, 2]}),
    Call("x.quantization_parameters", "few", [(3, 30)]),
    Call("x.quantization_parameters", "parts", [(5, 1000)]),
    Call("x.random_bits", "rows", [np.uint32([5, 42])], {"shape": [5, 7]}),
    Call("x.rotary_embedding", "halves", [(2, 3, 5, 8), np.cos(ANGLES), np.sin(ANGLES), None]),
    Call("x.scatter_elements", "add", [(5, 7), indices(5, (9, 7)), (9, 7)], {"reduction": "add"}),
    Call("x.scatter_nd", "max", [(5, 7), indices(5, (6, 1)), (6, 7)], {"reduction": "max"}, "int32"),
    Call("x.top_k", "ties", [RANDOM.integers(0, 50, (2, 300)).astype(np.float32)], {"k": 11}),
    Call("x.weighted_gather", "taps", [(3, 5, 4), *TAPS], {"axis": 1}),
    Call("lstm", "constant", [(3, 2, 4), (1, 32, 4), (1, 32, 8), *[None] * 5], STEPS, constants=WEIGHTS),
    Call("gru", "constant", [(3, 2, 4), (1, 24, 4), (1, 24, 8), *[None] * 3], STEPS, constants=WEIGHTS),
    Call("lstmStack", "two", [(3, 2, 4), (1, 32, 4), (3, 32, 8), (2, 56), (1, 32), (2, 2, 8), (2, 2, 8)], STACKED),
    Call("gruStack", "two", [(3, 2, 4), (1, 24, 4), (3, 24, 8), (2, 32), (1, 24), (2, 2, 8)], STACKED),
    Call("x.matmul_nbits", "row", [(1, 64), *PACKED], FOUR_BITS),
    Call("x.matmul_nbits", "rows", [(9, 64), *PACKED], FOUR_BITS),
    Call("x.matmul_nbits", "row-constant", [(1, 64), *PACKED], FOUR_BITS, constants=WEIGHTS),
    Call("x.matmul_nbits", "rows-constant", [(9, 64), *PACKED], FOUR_BITS, constants=WEIGHTS),
    Call("integerProduct", "signed", [(1, 64), BYTES_WHOLE, np.int8([-3])], {}, "int8", constants=frozenset({1})),
    Call("integerProduct", "unsigned", [(5, 64), BYTES_WHOLE, np.uint8([131])], {}, "uint8", constants=frozenset({1})),
    Call("matmul", "long-sums", [(3, 150), (150, 12)]),
)

PARTS = Call("matmul", "parts", [(16, 8192), (8192, 16)])
"""A product whose sums GPUs divide between workgroups. Software adapters do not, so that the interpreter takes long there."""

NORMALIZED = Rows((16, 36), 2048)
"""Another such product, whose rows are normalized."""

LAST_BITS = 2.0**-20
"""What float32 results may differ by, relative to the largest, where a driver reorders sums or contracts products."""


def cases() -> list[tuple[Call, str]]:
    """Return calls with each of the variants that their operators have, "" for the one that is chosen."""
    known = {str(call): call for call in calls()}
    chosen = [*(known[name] for name in NAMES), *EXTENSIONS]
    return [(call, variant) for call in chosen for variant in ("", *forceable().get(call.name, ()))]


def hardware(subgroup_size: int) -> Caps:
    """Return the capabilities of a GPU."""
    return Caps(features=frozenset(WANTED_FEATURES), subgroup_size=subgroup_size, adapter_type="DiscreteGPU")


def graph_of(call: Call) -> Graph:
    return op_graph(call.name, call.arrays(), call.attrs, call.constants)


def plan_of(caps: Caps, call: Call, variant: str) -> ExecutionPlan | None:
    """Return a plan, None where the capabilities or the call cannot have the variant."""
    try:
        return make_plan(graph_of(call), Target.of(caps), {call.name: variant} if variant else {})
    except OperationError:
        return None


def feeds_of(call: Call) -> dict[str, Array]:
    return {str(i): np.asarray(a) for i, a in enumerate(call.arrays()) if a is not None and i not in call.constants}


def interpreted(plan: ExecutionPlan, feeds: dict[str, Array], subgroup_size: int) -> dict[str, Array]:
    """Return the outputs of a plan, in which nothing must be found wrong."""
    memory = PlanMemory(plan, feeds)
    for dispatch in plan.dispatches:
        found = SourceKernel(render(dispatch.spec), name=dispatch.label).run(
            memory.resources(dispatch),
            dispatch.grid,
            workgroups=None,
            subgroup_size=subgroup_size,
            budget=Budget(100_000, 100_000),
        )
        assert [str(finding) for finding in found if not finding.harmless] == []
    return {name: memory.output(name) for name in plan.outputs}


def assert_alike(found: Array, wanted: Array, exact: bool) -> None:
    if exact or wanted.dtype.kind != "f":
        np.testing.assert_array_equal(found, wanted)
        return
    largest = np.max(np.abs(wanted[np.isfinite(wanted)].astype(np.float64)), initial=0)
    rounding = 2.0**-10 if wanted.dtype == np.float16 else LAST_BITS
    np.testing.assert_allclose(found.astype(np.float64), wanted.astype(np.float64), rtol=0, atol=rounding * largest)


@pytest.mark.repeats
@pytest.mark.parametrize(("call", "variant"), cases(), ids=lambda value: str(value) or "chosen")
def test_the_interpreter_computes_what_the_device_does(device: Device, call: Call, variant: str) -> None:
    plan = plan_of(device.caps, call, variant)
    if plan is None:
        return  # a variant that the device or the call cannot have
    program = Program(device, plan)
    wanted = program.start(feeds_of(call), list(plan.outputs)).result()
    program.destroy()
    for name, array in interpreted(plan, feeds_of(call), device.caps.subgroup_size or 32).items():
        assert_alike(array, wanted[name], device.caps.is_software)


@pytest.mark.repeats
@pytest.mark.parametrize("subgroup_size", [8, 16, 32, 64])
@pytest.mark.parametrize(("call", "variant"), [*cases(), (PARTS, "")], ids=lambda value: str(value) or "chosen")
def test_kernels_for_hardware_compute_what_the_reference_does(call: Call, variant: str, subgroup_size: int) -> None:
    # The kernels that are chosen run with any size, whatever the probe found. Forced ones may be written for the probed size.
    plan = plan_of(hardware(subgroup_size if variant else 32), call, variant)
    if plan is None:
        return  # a variant that the call cannot have
    graph = graph_of(call)
    feeds = feeds_of(call)
    wanted = interpret(graph, feeds)
    for name, array in interpreted(plan, feeds, subgroup_size).items():
        assert_alike(array, wanted[name], exact=False)


@pytest.mark.repeats
@pytest.mark.parametrize("subgroup_size", [8, 16, 32, 64])
@pytest.mark.parametrize("stored", [True, False], ids=["stored", "not stored"])
def test_rows_in_parts_are_normalized_as_in_the_reference(stored: bool, subgroup_size: int) -> None:
    graph, feeds = NORMALIZED.both if stored else NORMALIZED.alone, NORMALIZED.sketch.feeds
    wanted = interpret(graph, feeds)
    for name, array in interpreted(planned(graph, Target.of(hardware(32))), feeds, subgroup_size).items():
        np.testing.assert_allclose(array, wanted[name], rtol=0, atol=2e-5 * float(np.abs(wanted[name]).max()))


@pytest.mark.repeats
@pytest.mark.parametrize("subgroup_size", [8, 16, 32, 64])
def test_projections_are_added_as_in_the_reference(subgroup_size: int) -> None:
    s = Sketch()
    graph = s.graph(block(s))
    plan = planned(graph, Target.of(hardware(32)))
    assert plan.dispatches[0].spec.param("projection")
    wanted = interpret(graph, s.feeds)["0"]
    found = interpreted(plan, s.feeds, subgroup_size)["0"]
    np.testing.assert_allclose(found, wanted, rtol=0, atol=2e-5 * float(np.abs(wanted).max()))


@pytest.mark.repeats
@pytest.mark.parametrize("subgroup_size", [8, 16, 32, 64])
@pytest.mark.parametrize("tile", WINOGRAD_TILES, ids=str)
def test_every_tile_of_winograd_computes_what_the_reference_does(
    tile: WinogradTile, subgroup_size: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ConvolutionCosts, "winograd_tile", lambda *_: tile)
    options = {"padding": [1, 0, 0, 1], "input_layout": "nhwc" if subgroup_size > 16 else "nchw"}
    image = (1, 9, 19, 16) if subgroup_size > 16 else (1, 16, 9, 19)
    call = Call("conv2d", "patches", [image, (36, 16, 3, 3), (36,)], options, constants=frozenset({1, 2}))
    plan = plan_of(hardware(32), call, "winograd_tiled")
    assert plan is not None
    wanted = interpret(graph_of(call), feeds_of(call))
    for name, array in interpreted(plan, feeds_of(call), subgroup_size).items():
        assert_alike(array, wanted[name], exact=False)


@pytest.mark.repeats
@pytest.mark.parametrize("subgroup_size", [8, 16, 32, 64])
@pytest.mark.parametrize("data_type", ["float32", "float16"])
@pytest.mark.parametrize("sides", [(64, 32), (64, 64, 4)], ids=str)
def test_means_over_pixels_are_as_in_the_reference(
    sides: tuple[int, ...], data_type: str, subgroup_size: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ProductCosts, "pooling_tile", lambda *_: block_tile(sides))
    pooled = Pooled((2, 7, 7, 24), 72, data_type=data_type, chain=("residual", "relu"), behind=("tanh",))
    feeds, wanted = pooled.sketch.feeds, interpret(pooled.alone, pooled.sketch.feeds)["0"]
    assert_alike(interpreted(planned(pooled.alone, Target.of(hardware(32))), feeds, subgroup_size)["0"], wanted, exact=False)


@pytest.mark.repeats
@pytest.mark.parametrize("subgroup_size", [8, 16, 32, 64])
@pytest.mark.parametrize("name", PAIRS)
def test_pairs_of_products_are_as_in_the_reference(name: str, subgroup_size: int) -> None:
    graph, feeds = PAIRS[name].graph()
    plan = make_plan(optimized(graph), Target.of(hardware(32)))
    assert [dispatch.spec.template for dispatch in plan.dispatches] == ["product_pair"]
    wanted = interpret(graph, feeds)["0"]
    found = interpreted(plan, feeds, subgroup_size)["0"]
    np.testing.assert_allclose(found, wanted, rtol=0, atol=2e-5 * float(np.abs(wanted).max()))


@pytest.mark.repeats
@pytest.mark.parametrize("subgroup_size", [8, 32])
@pytest.mark.parametrize("variant", ["", "plain", "subgroup", "workgroup"])
@pytest.mark.parametrize("reduced", REDUCED, ids=str)
def test_operators_behind_reductions_are_as_in_the_reference(reduced: Reduced, variant: str, subgroup_size: int) -> None:
    graph, feeds = reduced.graph()
    plan = planned(graph, Target.of(hardware(subgroup_size)), forced={reduced.op: variant} if variant else None)
    assert plan.dispatches[-1].spec.param("expression") is not None
    for name, array in interpreted(plan, feeds, subgroup_size).items():
        assert_alike(array, interpret(graph, feeds)[name], exact=False)


def test_every_template_is_interpreted() -> None:
    kinds = SOFTWARE, hardware(32), replace(hardware(32), **SIDE_BY_SIDE)
    every = [*cases(), (PARTS, "")]
    plans = [plan for call, variant in every for caps in kinds if (plan := plan_of(caps, call, variant)) is not None]
    plans.append(planned(NORMALIZED.both, Target.of(hardware(32))))
    plans.append(make_plan(optimized(PAIRS["images"].graph()[0]), Target.of(hardware(32))))
    ran = {dispatch.spec.template for plan in plans for dispatch in plan.dispatches}
    missing = {file.name.removesuffix(".wgsl.j2") for file in (shader_root() / "ops").iterdir()} - ran
    assert not missing, f"no call runs {', '.join(sorted(missing))}: add one to NAMES or EXTENSIONS in {Path(__file__).name}"
