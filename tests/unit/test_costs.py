"""Costs live in one room: what differs by kind of device, and every measured time, is asked of a `Target`."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import webnn_wgpu
from webnn_wgpu.core.caps import Caps
from webnn_wgpu.costs import ConvolutionSize, ProductSize, RecurrentSize, Target
from webnn_wgpu.costs.hardware import HardwareConvolutions

if TYPE_CHECKING:
    from collections.abc import Iterator

PACKAGE = Path(webnn_wgpu.__file__).parent
FILES = {path.relative_to(PACKAGE).as_posix(): path for path in sorted(PACKAGE.rglob("*.py"))}

IDENTITY = ("api", "cli", "debug")
"""Rooms that may ask whether a device is a software adapter: to choose an adapter, to warn, to name it in reports."""


def room(file: str) -> str:
    return file.partition("/")[0]


def findings(text: str, file: str) -> Iterator[str]:
    """Return the lines of a file that decide by kind of device, or hold a measured time, where that has no place."""
    for node in ast.walk(ast.parse(text)):
        name = node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""
        if name == "is_cpu":
            yield f"{file}:{node.lineno}: is_cpu"
        if name == "is_software" and room(file) not in (*IDENTITY, "costs"):
            yield f"{file}:{node.lineno}: is_software"
        if isinstance(node, ast.Compare | ast.Match):
            compared = [node.left, *node.comparators] if isinstance(node, ast.Compare) else [node.subject]
            asked = any(isinstance(n, ast.Attribute) and n.attr == "adapter_type" for n in compared)
            if asked and room(file) != "costs" and file != "core/caps.py":
                yield f"{file}:{node.lineno}: adapter_type"
        if room(file) != "costs":
            for name, value in _given(node):
                if name.lower().endswith(("_ns", "nanoseconds")) and _has_number(value):
                    yield f"{file}:{node.lineno}: {name}"


def _given(node: ast.AST) -> Iterator[tuple[str, ast.expr]]:
    """Return the names that a node gives values to: variables, attributes, arguments."""
    if isinstance(node, ast.Assign):
        for target in node.targets:
            for part in target.elts if isinstance(target, ast.Tuple) else (target,):
                if isinstance(part, ast.Name | ast.Attribute):
                    yield part.id if isinstance(part, ast.Name) else part.attr, node.value
    elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name) and node.value:
        yield node.target.id, node.value
    elif isinstance(node, ast.keyword) and node.arg:
        yield node.arg, node.value


def _has_number(value: ast.expr) -> bool:
    """Return whether a value is a number, or numbers, written out."""
    parts = value.elts if isinstance(value, ast.Tuple | ast.List) else [value]
    return any(isinstance(n, ast.Constant) and type(n.value) in (int, float) for part in parts for n in _terms(part))


def _terms(value: ast.expr) -> Iterator[ast.expr]:
    yield value
    if isinstance(value, ast.BinOp):
        yield from _terms(value.left)
        yield from _terms(value.right)
    elif isinstance(value, ast.UnaryOp):
        yield from _terms(value.operand)


def test_only_costs_decide_by_kind_of_device_and_hold_measured_times() -> None:
    assert [found for file, path in FILES.items() for found in findings(path.read_text(encoding="utf-8"), file)] == []


@pytest.mark.parametrize(
    ("file", "text", "found"),
    [
        ("ops/x.py", "a = low.caps.is_cpu", "is_cpu"),
        ("ops/x.py", "a = low.caps.is_software", "is_software"),
        ("plan/x.py", "if self.target.caps.is_software: pass", "is_software"),
        ("api/x.py", "if caps.is_software: pass", ""),
        ("ops/x.py", "a = 1 if caps.adapter_type == 'CPU' else 2", "adapter_type"),
        ("ops/x.py", "a = caps.adapter_type in ('CPU', 'Unknown')", "adapter_type"),
        ("runtime/x.py", "match caps.adapter_type:\n    case 'CPU': pass", "adapter_type"),
        ("costs/x.py", "a = caps.adapter_type == 'Unknown'", ""),
        ("kernels/x.py", "_TEXTURE_NS, _BUFFER_NS = 5.6, 15.5", "_TEXTURE_NS"),
        ("ops/x.py", "LAUNCH_NS: float = 20 * 1e3", "LAUNCH_NS"),
        ("passes/x.py", "f(transpose_ns=-1.5)", "transpose_ns"),
        ("costs/x.py", "f(transpose_ns=1.5)", ""),
        ("api/x.py", "saved_ns = stat.st_mtime_ns", ""),
    ],
)
def test_findings(file: str, text: str, found: str) -> None:
    assert [line.rpartition(": ")[2] for line in findings(text, file)][:1] == ([found] if found else [])


@pytest.mark.parametrize("kind", ["CPU", "DiscreteGPU", "IntegratedGPU", "Unknown"])
def test_targets_go_by_kind_of_adapter(kind: str) -> None:
    costs = Target.of(Caps(adapter_type=kind)).costs
    assert costs == Target.of(Caps(adapter_type=kind)).costs
    assert (costs.launches.most_rounds == 8) == (kind == "CPU")
    assert costs.convolutions.products is costs.products


@pytest.mark.parametrize(("device", "cores"), [("Intel(R) UHD Graphics 630", 10), ("NVIDIA GeForce RTX 4070", 46), ("", 10)])
def test_products_and_winograd_go_by_the_cores_of_the_device(device: str, cores: int) -> None:
    costs = Target.of(Caps(adapter_type="IntegratedGPU", device=device)).costs
    assert isinstance(costs.convolutions, HardwareConvolutions)
    rates = costs.convolutions.rates
    assert costs.products.blocks.cores == rates.cores == cores
    assert costs.products.blocks.multiply_adds == (64 if "Intel" in device else 128)


def test_an_invocation_has_fewer_depthwise_pixels_where_invocations_are_few() -> None:
    convolutions = Target.of(Caps(adapter_type="DiscreteGPU")).costs.convolutions

    def pixels(side: int, channels: int, taps: int) -> tuple[int, int]:
        size = ConvolutionSize(
            transposed=False,
            nhwc=True,
            images=1,
            groups=channels,
            depth=1,
            columns=1,
            input=(side, side),
            output=(side, side),
            kernel=(taps, taps),
            strides=(1, 1),
            dilations=(1, 1),
            padding=(taps // 2, taps // 2),
        )
        return convolutions.depthwise_pixels(size, 1, [(2, 4), (1, 4), (1, 2), (1, 1)])

    assert pixels(112, 96, 3) == pixels(112, 192, 7) == (2, 4)
    assert pixels(14, 384, 3) == pixels(7, 768, 7) == (1, 2)
    assert convolutions.writes_out_taps(49, 2)
    assert not convolutions.writes_out_taps(49, 8)


def test_rows_of_attention_fill_a_gpu_by_tiles_before_its_keys_are_divided() -> None:
    attention = Target.of(Caps(adapter_type="DiscreteGPU")).costs.attention

    def tile_and_parts(rows: int, keys: int, matrices: int) -> tuple[str, int]:
        tile = attention.tile(rows, keys, 64, matrices)
        return str(tile), attention.parts_of_tiles(-(-rows // tile.rows) * matrices, keys)

    assert tile_and_parts(197, 197, 12) == ("32x64", 1)
    assert tile_and_parts(197, 197, 3) == ("6x256", 1)
    # Keys that fill several blocks would be read too often, and half of a block would be empty.
    assert tile_and_parts(197, 257, 3) == ("32x64", 4)
    assert tile_and_parts(197, 128, 3)[0] != "6x256"


def test_nothing_is_taken_that_is_not_possible() -> None:
    """A device without subgroups, and sizes that suit one variant alone, leave fewer variants to choose from."""
    convolution = ConvolutionSize(
        transposed=False,
        nhwc=True,
        images=1,
        groups=1,
        depth=64,
        columns=64,
        input=(56, 56),
        output=(56, 56),
        kernel=(3, 3),
        strides=(1, 1),
        dilations=(1, 1),
        padding=(1, 1),
    )
    for kind in ("CPU", "DiscreteGPU"):
        costs = Target.of(Caps(adapter_type=kind)).costs
        assert costs.products.choose(ProductSize(64, 64, 64), ("tiled", "gemv", "plain")).variant != "subgroup"
        assert costs.convolutions.choose(convolution, ("tiled", "plain")).variant in ("tiled", "plain")
        assert costs.rows.choose(("workgroup",), 4, 1 << 20, columns=True).variant == "workgroup"
        assert costs.pooling.choose(("workgroup",), 1 << 20, 4).variant == "workgroup"
        assert costs.attention.choose(("plain",), 64, 64, 64).variant == "plain"
        in_way = dict.fromkeys(("sequence", "cooperative", "persistent", "subgroup_sequence", "subgroup_steps"), "missing")
        network = RecurrentSize(steps=20, directions=1, rows=1, hidden=5, gates=4, element_bytes=4, step_dispatches=1)
        assert costs.recurrent.choose(network, several=False, in_way=in_way).variant == "steps"


@pytest.mark.parametrize("kind", ["CPU", "DiscreteGPU"])
def test_rounds_keep_loops_short(kind: str) -> None:
    launches = Target.of(Caps(adapter_type=kind)).costs.launches
    for count in (1, 100, 10**4, 10**7):
        for iterations in (1, 60, 20_000, 10**6):
            for rounds in (launches.rounds_of_quads(count, iterations), launches.rounds_of_rows(count, iterations)):
                assert 1 <= rounds <= launches.most_rounds
                assert rounds == 1 or rounds * iterations <= launches.most_iterations


def test_keys_of_attention_are_divided_where_a_core_would_have_few_workgroups() -> None:
    attention = Target.of(Caps(adapter_type="DiscreteGPU", device="NVIDIA H200")).costs.attention
    # The fastest numbers of parts that were measured, for 6 heads of 1500 rows and 8 of 1024 in tiles of 32 rows.
    assert [attention.parts_of_tiles(6 * 47, 1500), attention.parts_of_tiles(8 * 32, 1024)] == [4, 4]
    assert attention.parts_of_tiles(4 * 132, 1024) == 1
    assert attention.parts_of_tiles(66, 197) == 1
    assert attention.decode_part(1, 2048, 32, 64)[1] == 256
