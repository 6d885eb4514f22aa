"""Extension operator: values of images, or of volumes, at positions that a grid names, as ONNX's GridSample defines them."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

import numpy as np

from ..core.data_types import FLOATS
from ..ir.graph import Array, Attrs
from ..ir.types import TensorType
from ..kernels.element import QUAD
from ..kernels.spec import Binding, Interval, KernelCall, KernelTemplate, UniformType
from ._attrs import Attr
from ._def import Lowering, OpCall, OpDef, Operand
from ._quads import quad_launch, quad_work
from ._rows import to_type, wide
from .gradients import grids as grids_gradients
from .interfaces.bounds import CONDITIONED
from .interfaces.documentation import SAMPLING_EXTENSIONS, Documentation
from .interfaces.family import Family
from .resample2d import SAMPLED

GRID_SAMPLE = KernelTemplate("grid_sample", ("mode", "padding_mode", "align_corners", "dims"))

TAPS = {"nearest": 1, "linear": 2, "cubic": 4}
"""Elements along each dimension that a value is made of."""

_CUBIC_A = -0.75


def _infer(call: OpCall) -> tuple[TensorType, ...]:
    x, grid = call.input(), call.input(1)
    call.require(grid.rank == x.rank, "Incompatible shapes: grid must have the rank of input")
    call.require(grid.shape[0] == x.shape[0], "Incompatible shapes: grid and input must have the same batch size")
    call.require(
        grid.shape[-1] == x.rank - 2,
        "the last dimension of grid must hold a coordinate for every spatial dimension of input",
        allowed=str(x.rank - 2),
    )
    return (call.output(x.data_type, (*x.shape[:2], *grid.shape[1:-1])),)


def _positions(grid: Array, size: int, attrs: Attrs) -> Array:
    """Return the positions of coordinates among `size` elements, moved into the range that the padding mode requires."""
    c = np.where(np.isnan(grid), -3.0, grid)
    align, padding = attrs["align_corners"], attrs["padding_mode"]
    x = (c + 1) / 2 * (size - 1) if align else ((c + 1) * size - 1) / 2
    if attrs["mode"] == "nearest":
        x = np.rint(x)
    low, high = (0.0, size - 1.0) if align else (-0.5, size - 0.5)
    if padding == "zeros":
        return np.clip(x, -4, size + 4)
    beyond = (x < low) | (x > high)
    if padding == "border":
        return np.where(beyond, np.clip(x, 0, size - 1), x)
    distance = np.where(x < low, low - x, x - high)
    times = np.floor(distance / max(high - low, 0.5))
    rest = np.clip(distance - times * (high - low), 0, high - low)
    from_low = (times % 2 == 0) == (x < low)
    return np.where(beyond, np.where(from_low, low + rest, high - rest), x)


def _places(numbers: Array, size: int, attrs: Attrs) -> Array:
    """Return the elements that stand for numbers beyond the ends too."""
    if attrs["padding_mode"] != "reflection":
        return np.clip(numbers, 0, size - 1)
    period = max(2 * size - 2, 1) if attrs["align_corners"] else 2 * size
    wrapped = numbers % period
    return np.minimum(wrapped, period - wrapped if attrs["align_corners"] else period - 1 - wrapped)


def _weights(t: Array, mode: str) -> list[Array]:
    if mode == "nearest":
        return [np.ones_like(t)]
    if mode == "linear":
        return [1 - t, t]
    a, u = _CUBIC_A, 1 - t
    near = [((a + 2) * d - (a + 3)) * d * d + 1 for d in (t, u)]
    return [a * t * u * u, *near, a * u * t * t]


def _reference(arrays: Sequence[Array | None], attrs: Attrs, out: tuple[TensorType, ...]) -> list[Array]:
    x, grid = arrays
    assert x is not None
    assert grid is not None
    mode, sizes = attrs["mode"], x.shape[2:]
    total = np.zeros(out[0].shape)
    # Batches before channels, which share their positions.
    batch: Array = np.arange(x.shape[0], dtype=np.int64).reshape([-1, *[1] * len(sizes)])
    with np.errstate(all="ignore"):
        # The grid has the last dimension's coordinate first.
        coordinates = [_positions(wide(grid[..., -1 - d]), size, attrs) for d, size in enumerate(sizes)]
        starts = [np.floor(c).astype(np.int64) - (mode == "cubic") for c in coordinates]
        weights = [_weights(c - np.floor(c), mode) for c in coordinates]
        for taps in itertools.product(range(TAPS[mode]), repeat=len(sizes)):
            weight = math.prod(w[k] for w, k in zip(weights, taps, strict=True))
            numbers = [s + k for s, k in zip(starts, taps, strict=True)]
            if attrs["padding_mode"] == "zeros":
                weight = weight * np.all([(n >= 0) & (n < s) for n, s in zip(numbers, sizes, strict=True)], axis=0)
            places = [_places(n, s, attrs) for n, s in zip(numbers, sizes, strict=True)]
            values = np.moveaxis(wide(x)[(batch, slice(None), *places)], -1, 1)
            weight = np.asarray(weight)[:, None]
            total = np.where(weight == 0, total, total + weight * values)
    return [to_type(total, out[0])]


def _lower(low: Lowering) -> list[KernelCall]:
    x, grid, output = low.input(), low.input(1), low.output()
    sizes = x.shape[2:]
    plane, positions = math.prod(sizes), math.prod(output.shape[2:])
    iterations = QUAD * TAPS[low.attrs["mode"]] ** len(sizes)
    launch, workgroups = quad_launch(output.num_elements, low.target, iterations)
    fields: list[tuple[str, UniformType, int]] = [
        *launch,
        ("positions", "u32", positions),
        ("channels", "u32", x.shape[1]),
        *((f"size_{d}", "u32", size) for d, size in enumerate(sizes)),
    ]
    spec = GRID_SAMPLE.spec(
        [
            Binding(name="input", access="read", element=x.data_type),
            Binding(name="grid", access="read", element=grid.data_type),
            Binding(name="output", access="write", element=output.data_type, quad=True),
        ],
        [(name, type_) for name, type_, _ in fields],
        mode=low.attrs["mode"],
        padding_mode=low.attrs["padding_mode"],
        align_corners=low.attrs["align_corners"],
        dims=len(sizes),
    )

    def reach(first: int, end: int) -> list[Interval | None]:
        planes = first // positions, -(-end // positions)
        return [(planes[0] * plane, planes[1] * plane), None, (first, end)]

    work = quad_work(output.num_elements, low.target, reach, iterations=iterations)
    operands = (low.value(0), low.value(1), low.node.outputs[0])
    return [
        KernelCall(
            spec=spec,
            operands=operands,
            uniforms=tuple(v for *_, v in fields),
            grid=workgroups,
            reason=f"{low.attrs['mode']} in {len(sizes)}-D",
            work=work,
        )
    ]


OPS = (
    OpDef(
        name="x.grid_sample",
        operands=(
            Operand(name="input", data_types=FLOATS, min_rank=4, max_rank=5),
            Operand(name="grid", data_types=FLOATS, min_rank=4, max_rank=5),
        ),
        infer=_infer,
        reference=_reference,
        lower=_lower,
        attrs=(
            Attr("mode", "enum", "linear", tuple(TAPS)),
            Attr("padding_mode", "enum", "zeros", ("zeros", "border", "reflection")),
            Attr("align_corners", "bool", False),
        ),
        templates=(GRID_SAMPLE,),
        family=Family.OTHER,
        without=("elementwise", "epilogue", "movement", "layout", "precision"),
        gradient=grids_gradients.GRID_SAMPLE,
        cost=SAMPLED,
        bounds=CONDITIONED,
        documentation=Documentation(
            group=SAMPLING_EXTENSIONS,
            summary="Values of images or volumes at positions between their elements, as ONNX's GridSample computes them.",
            arguments={
                "input": (
                    "{types}, with the shape [batch, channels, height, width] or [batch, channels, depth, height, width]."
                ),
                "grid": (
                    "{types}, with the shape [batch, new height, new width, 2] or [batch, new depth, new height, new "
                    "width, 3]. It holds coordinates, that of the width first, from -1 at one end of the input to 1 at the "
                    "other."
                ),
                "mode": '"linear", "nearest" or "cubic".',
                "padding_mode": 'Values beyond the ends: "zeros", "border" (the elements at the ends) or "reflection".',
                "align_corners": "Whether -1 and 1 are the middles of the elements at the ends instead of their outer edges.",
            },
            returns=(
                "An operand with the input's data type and the shape [batch, channels, new height, new width], or with a "
                "new depth."
            ),
            raises="The shapes do not fit, a data type or option is not allowed",
            numerics=(
                'Coordinates, weights and sums are float32. With the mode "nearest" halves are rounded to even. The '
                "cubic kernel has a = -0.75. Coordinates that are NaN lie beyond the first element."
            ),
            example="""
                >>> places = b.constant(np.zeros((1, 3, 5, 2), np.float32))
                >>> b.ext.grid_sample(image, places, padding_mode="border").shape
                (1, 2, 3, 5)
            """,
        ),
    ),
)
