"""Helpers of the tests of convolutions: cases, their operands in any layout, error bounds, a result by definition."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from tests.ops.products import whole_numbers
from tests.support import op_graph
from webnn_wgpu.costs import Target
from webnn_wgpu.plan import make_plan
from webnn_wgpu.reference import interpret
from webnn_wgpu.runtime.program import Program

if TYPE_CHECKING:
    from collections.abc import Mapping

    from webnn_wgpu.ir.graph import Array
    from webnn_wgpu.runtime.device import Device

INPUT_LAYOUTS = ("nchw", "nhwc")
FILTER_LAYOUTS = {"conv2d": ("oihw", "hwio", "ohwi", "ihwo"), "convTranspose2d": ("iohw", "hwoi", "ohwi")}


@dataclass(frozen=True)
class Case:
    """A convolution: images, groups, input and output channels of a group, extents, taps, options."""

    images: int = 1
    groups: int = 1
    depth: int = 4
    columns: int = 4
    size: tuple[int, int] = (5, 6)
    taps: tuple[int, int] = (3, 3)
    options: Mapping[str, Any] = field(default_factory=dict[str, Any])

    def attrs(self, input_layout: str = "nchw", filter_layout: str = "") -> dict[str, Any]:
        """Return the options, with layouts."""
        layouts = {"input_layout": input_layout} | ({"filter_layout": filter_layout} if filter_layout else {})
        return {"groups": self.groups, **self.options, **layouts}

    def shapes(self, operator: str, input_layout: str = "nchw", filter_layout: str = "") -> list[tuple[int, ...]]:
        """Return the shapes of input, filter and bias."""
        c, o = self.groups * self.depth, self.groups * self.columns
        image = {"n": self.images, "c": c, "h": self.size[0], "w": self.size[1]}
        forward = operator == "conv2d"
        taps = {"o": o if forward else self.columns, "i": self.depth if forward else c, "h": self.taps[0], "w": self.taps[1]}
        filter_layout = filter_layout or FILTER_LAYOUTS[operator][0]
        return [tuple(image[x] for x in input_layout), tuple(taps[x] for x in filter_layout), (o,)]

    def operands(
        self,
        rng: np.random.Generator,
        operator: str,
        input_layout: str = "nchw",
        filter_layout: str = "",
        data_type: str = "float32",
        bias: bool = True,
    ) -> list[Array | None]:
        """Return small whole numbers as operands."""
        image, taps, channels = self.shapes(operator, input_layout, filter_layout)
        given = [whole_numbers(rng, data_type, *shape) for shape in (image, taps, channels)]
        return [*given[:2], given[2] if bias else None]


# Pointwise, depthwise and Winograd take these alone.
POINTWISE = (Case(2, 1, 5, 7, (3, 4), (1, 1)), Case(1, 1, 8, 12, (4, 4), (1, 1)), Case(3, 1, 1, 4, (1, 1), (1, 1)))
DEPTHWISE = (
    Case(2, 6, 1, 1, (7, 8), (3, 3), {"padding": (1, 1, 1, 1)}),
    Case(1, 8, 1, 1, (7, 9), (3, 2), {"padding": (1, 0, 2, 1), "strides": (2, 2)}),
    Case(1, 8, 1, 1, (3, 4), (5, 5), {"padding": (2, 2, 2, 2)}),
    Case(1, 4, 1, 3, (7, 9), (3, 3), {"dilations": (2, 3)}),
    Case(1, 1, 1, 5, (6, 5), (2, 3)),
    Case(1, 3, 1, 1, (1, 1), (1, 1)),
    # Input pixels that two rows of pixels share, with an odd number of rows.
    Case(2, 8, 1, 1, (9, 11), (3, 3), {"padding": (1, 1, 1, 1), "strides": (2, 2)}),
    Case(2, 4, 1, 2, (5, 13), (7, 7), {"padding": (3, 3, 3, 3)}),
    Case(2, 8, 1, 1, (9, 11), (5, 5), {"padding": (2, 1, 1, 2), "strides": (2, 2)}),
    # More taps than are written out: rows of them in a loop, and within a row as well.
    Case(1, 4, 1, 1, (9, 10), (6, 7), {"padding": (1, 0, 0, 1)}),
    Case(1, 4, 1, 1, (2, 14), (2, 9)),
    Case(1, 4, 1, 2, (2, 14), (1, 8), {"strides": (1, 2)}),
)
WINOGRAD = (
    Case(2, 1, 8, 12, (7, 8), (3, 3), {"padding": (1, 1, 1, 1)}),
    Case(1, 1, 4, 4, (6, 5), (3, 3), {"padding": (0, 1, 2, 0)}),
    Case(1, 1, 4, 8, (3, 3), (3, 3)),
)
GENERAL = (
    Case(),
    Case(1, 1, 3, 5, (7, 6), (3, 3), {"padding": (1, 1, 1, 1)}),
    Case(2, 2, 8, 8, (9, 7), (3, 2), {"padding": (0, 1, 2, 0), "strides": (2, 1), "dilations": (1, 2)}),
    Case(1, 3, 2, 3, (6, 5), (2, 2), {"strides": (1, 2)}),
    Case(1, 1, 16, 72, (5, 5), (1, 1), {"strides": (2, 2)}),
    Case(1, 1, 37, 33, (9, 9), (3, 3), {"dilations": (2, 2), "padding": (3, 0, 0, 3)}),
    Case(2, 1, 1, 1, (1, 1), (1, 1), {"padding": (1, 2, 0, 1)}),
    Case(1, 1, 4, 4, (4, 4), (4, 4)),
    Case(1, 1, 4, 64, (7, 7), (2, 2), {"padding": (1, 0, 0, 1)}),
)


def by_definition(operator: str, case: Case, x: Array, weights: Array, bias: Array | None) -> Array:
    """Return the result in the default layouts, term by term as the specification writes the sum."""
    attrs = {"padding": (0, 0, 0, 0), "strides": (1, 1), "dilations": (1, 1), **case.options}
    (sy, sx), (dy, dx), (top, bottom, left, right) = attrs["strides"], attrs["dilations"], attrs["padding"]
    (height, width), (kh, kw) = case.size, case.taps
    forward = operator == "conv2d"
    if forward:
        out_height = (height + top + bottom - (kh - 1) * dy - 1) // sy + 1
        out_width = (width + left + right - (kw - 1) * dx - 1) // sx + 1
    else:
        extra = attrs.get("output_padding", (0, 0))
        out_height = (height - 1) * sy + (kh - 1) * dy + 1 - top - bottom + extra[0]
        out_width = (width - 1) * sx + (kw - 1) * dx + 1 - left - right + extra[1]
        out_height, out_width = attrs.get("output_sizes", (out_height, out_width))
    result = np.zeros((case.images, case.groups * case.columns, out_height, out_width))
    for n, g, o, c in np.ndindex(case.images, case.groups, case.columns, case.depth):
        into, source = g * case.columns + o, g * case.depth + c
        for ky, kx in np.ndindex(kh, kw):
            tap = weights[into, c, ky, kx] if forward else weights[source, o, ky, kx]
            for y, x_ in np.ndindex((out_height, out_width) if forward else (height, width)):
                far = (y * sy + ky * dy - top, x_ * sx + kx * dx - left)
                inside = all(0 <= f < limit for f, limit in zip(far, case.size if forward else result.shape[2:], strict=True))
                if inside and forward:
                    result[n, into, y, x_] += tap * x[n, source, far[0], far[1]]
                elif inside:
                    result[n, into, far[0], far[1]] += tap * x[n, source, y, x_]
    return result if bias is None else result + bias[:, None, None]


def check_folded(device: Device, operator: str, case: Case, layout: str, variant: str) -> None:
    """Check a variant where a dimension of the grid holds 3 workgroups."""
    inputs = case.operands(np.random.default_rng(6), operator, layout)
    limits = tuple((n, 3 if n == "max-compute-workgroups-per-dimension" else v) for n, v in device.caps.limits)
    graph = op_graph(operator, inputs, case.attrs(layout), constants={1})
    plan = make_plan(graph, Target.of(replace(device.caps, limits=limits)), {operator: variant})
    assert all(dispatch.grid[1] > 1 for dispatch in plan.dispatches)
    feeds = {"0": inputs[0], "2": inputs[2]}
    program = Program(device, plan)
    try:
        actual = program.start(feeds, ["0"]).result()["0"]
    finally:
        program.destroy()
    np.testing.assert_array_equal(actual, interpret(graph, feeds)["0"])
