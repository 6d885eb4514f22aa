"""The three poolings, one row each: a function of an element, the operation between elements, a function of its result.

Elements outside the input never take part: the average is over the elements within the input. Padding or rounding up can
create a window without any element. Its result is 0, and for the maximum the lowest value of the data type.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

from ..core.data_types import ANY, FLOATS, MAX_DIMENSION
from ..ir.graph import Array, Attrs
from ..ir.types import TensorType
from ..kernels.element import ELEMENTS, PAIRS, QUAD, element_of
from ..kernels.spec import Binding, Interval, KernelCall, KernelTemplate
from ..kernels.terms import Uniform
from ._attrs import Attr
from ._def import Lowering, OpCall, OpDef, Operand
from ._element_epilogue import EPILOGUE_PARAMS
from ._pooling_documentation import pooling_documentation
from ._quads import quad_launch, quad_work
from ._reduction import LOWEST, VARIANTS, Field, RowShape, row_launch, row_work, variant_of
from ._reduction_functions import ReductionStep, arithmetic, extremum
from ._rows import to_type, wide
from .gradients import pooling as pooling_gradients
from .interfaces.bounds import EXACT, Bounds, mean_reached, roots, sums
from .interfaces.cost import Cost
from .interfaces.family import Family
from .interfaces.gradient import GradientRule
from .interfaces.layout import option
from .reduce import REDUCE, REDUCTION_EPILOGUE, ReduceTensor, reduce_calls, result_tensor

POOL2D = KernelTemplate(
    "pool2d",
    ("variant", "channels", "blocks", "down", "across", "rows", "step", *EPILOGUE_PARAMS),
    VARIANTS,
    optional=EPILOGUE_PARAMS,
)

LAYOUTS = ("nchw", "nhwc")
SPATIAL = {"nchw": (2, 3), "nhwc": (1, 2)}
"""The dimensions that windows run over: height, width."""

_LONGEST_LINE = 64
"""Elements up to which a line of a window is summed one after the other, and lines up to which its lines are."""

# The least value among floats as `ordered_f32` orders them: the key of -infinity.
_ORDERED_NEGATIVE_INFINITY = "-2139095041i"
_LOWEST_8_BIT = {"int8": "-128i", "uint8": "0u"}


@dataclass(frozen=True, kw_only=True)
class Windows:
    """Windows along one dimension. Window, stride and dilation are cut to the parts that can reach the input.

    Attributes:
        size: the number of elements of the input.
        output: the number of windows.
        window: the number of elements of a window.
        stride: the distance from one window to the next, in elements.
        dilation: the distance from one element of a window to the next, in elements.
        before: the padding before the input, in elements.
    """

    size: int
    output: int
    window: int
    stride: int
    dilation: int
    before: int

    @classmethod
    def of(cls, size: int, output: int, window: int, stride: int, dilation: int, before: int, after: int) -> Windows:
        """Return windows over an input with padding `before` and `after`, which no coordinate then exceeds twice."""
        padded = before + size + after
        # Elements and windows that start beyond the padded input have no part in it.
        window = min(window, -(-padded // dilation))
        return cls(
            size=size,
            output=output,
            window=window,
            stride=min(stride, padded),
            dilation=dilation if window > 1 else 1,
            before=before,
        )

    @property
    def whole(self) -> bool:
        """Whether there is one window, which contains every element of the input."""
        first, beyond = self.within(0)
        return self.output == 1 and beyond - first == self.size

    def within(self, o: int) -> tuple[int, int]:
        """Return the range of window o's elements within the input. It is empty if the second bound is not greater."""
        before = self.before - o * self.stride
        return max(0, -(-before // self.dilation)), min(self.window, -(-(before + self.size) // self.dilation))

    def rows(self, o: int) -> Interval:
        """Return the interval of input elements that window o spans, at least one element."""
        first, beyond = self.within(o)
        at = o * self.stride - self.before
        start = max(0, min(self.size - 1, at + first * self.dilation))
        return start, max(start, min(self.size - 1, at + (beyond - 1) * self.dilation)) + 1

    @property
    def reach(self) -> int:
        """The maximum number of elements of a window within the input."""
        return min(self.window, -(-self.size // self.dilation))

    def fields(self, axis: str) -> list[Field]:
        """Return the uniforms."""
        names = ("size", "output", "window", "stride", "dilation", "before")
        return [(f"{axis}_{name}", "u32", getattr(self, name)) for name in names]


# Checks ---------------------------------------------------------------------------------------------------------------


def _infer(call: OpCall) -> tuple[TensorType, ...]:
    x, attrs = call.input(), call.attrs
    spatial = SPATIAL[attrs["layout"]]
    sizes = [x.shape[d] for d in spatial]
    if attrs["window_dimensions"] is None:
        attrs["window_dimensions"] = tuple(sizes)
    for name, count in (("window_dimensions", 2), ("padding", 4), ("strides", 2), ("dilations", 2), ("output_sizes", 2)):
        given = attrs[name]
        if given is None:
            continue
        got = f"{name}={list(given)}"
        call.require(len(given) == count, f"{name} must have {count} items", got=got, allowed=f"{count} items")
        if name not in ("padding", "output_sizes"):
            call.require(all(given), f"every item of {name} must be at least 1", got=got, allowed=">= 1")
    padding = attrs["padding"]
    floors: list[int] = []
    ceils: list[int] = []
    for i, size in enumerate(sizes):
        padded = size + padding[2 * i] + padding[2 * i + 1]
        call.require(
            padded <= MAX_DIMENSION,
            "the padded input must have valid dimensions",
            got=f"padding={list(padding)}, input {x}",
            allowed=f"1..{MAX_DIMENSION}",
        )
        slack = padded - ((attrs["window_dimensions"][i] - 1) * attrs["dilations"][i] + 1)
        floors.append(slack // attrs["strides"][i] + 1)
        ceils.append(-(-slack // attrs["strides"][i]) + 1)
    output = attrs["output_sizes"]
    if output is None:
        output = tuple(floors if attrs["output_shape_rounding"] == "floor" else ceils)
    else:
        call.require(
            list(output) in (floors, ceils),
            "output_sizes must be the calculated sizes, both rounded down or both rounded up",
            got=f"output_sizes={list(output)}, input {x}",
            allowed=f"{floors}" if floors == ceils else f"{floors} or {ceils}",
        )
    call.require(
        all(0 < n <= MAX_DIMENSION for n in output),
        "output height and width must be valid dimensions: a window must fit the padded input",
        got=f"output sizes {list(output)} of {_options(attrs)}, input {x}",
        allowed=f"1..{MAX_DIMENSION}",
    )
    shape = list(x.shape)
    for d, n in zip(spatial, output, strict=True):
        shape[d] = n
    return (call.output(x.data_type, shape),)


def _options(attrs: Attrs) -> str:
    names = ("window_dimensions", "padding", "strides", "dilations")
    return ", ".join(f"{name}={list(attrs[name])}" for name in names)


def _windows(attrs: Attrs, shape: Sequence[int], output: Sequence[int]) -> list[Windows]:
    """Return the windows along height and width."""
    return [
        Windows.of(
            shape[d],
            output[d],
            attrs["window_dimensions"][i],
            attrs["strides"][i],
            attrs["dilations"][i],
            attrs["padding"][2 * i],
            attrs["padding"][2 * i + 1],
        )
        for i, d in enumerate(SPATIAL[attrs["layout"]])
    ]


# Reference ------------------------------------------------------------------------------------------------------------


def _pooled(x: Array, axis: int, windows: Windows, operation: Any, start: float) -> Array:
    """Return the operation over windows along one dimension. The reference pools two dimensions one after the other."""
    x = np.moveaxis(x, axis, 0)
    out = np.full((windows.output, *x.shape[1:]), start, x.dtype)
    if windows.output <= windows.window:
        for o in range(windows.output):
            first, beyond = windows.within(o)
            at = o * windows.stride - windows.before
            if first < beyond:
                inside = x[at + first * windows.dilation : at + (beyond - 1) * windows.dilation + 1 : windows.dilation]
                out[o] = operation.reduce(inside, axis=0)
        return np.moveaxis(out, 0, axis)
    for k in range(windows.window):
        # Window o reads element o * stride - before.
        before = windows.before - k * windows.dilation
        first = max(0, -(-before // windows.stride))
        last = min(windows.output - 1, (windows.size - 1 + before) // windows.stride)
        if first <= last:
            begin, end = (o * windows.stride - before for o in (first, last))
            part = out[first : last + 1]
            operation(part, x[begin : end + 1 : windows.stride], out=part)
    return np.moveaxis(out, 0, axis)


# The operators --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class _Pool:
    """One pooling.

    Attributes:
        name: specification name.
        step: the functions of its kernel for the WGSL type elements are read into. `count` in `finish` is the number of
            elements of the window that lie within the input, at least 1.
        operation: numpy's operation between elements.
        prepare: done by numpy to the input.
        finish: done by numpy to the result, which it gets with the numbers of elements.
        bounds: allowed errors.
        gradient: the rule of its gradient.
        summary: first line of the documentation.
        numerics: results for special values, for the documentation.
        data_types: allowed data types.
    """

    name: str
    step: Callable[[str], ReductionStep]
    operation: Any
    prepare: Callable[[Array], Array]
    finish: Callable[[Array, Array], Array]
    bounds: Bounds
    gradient: GradientRule
    summary: str
    numerics: str
    data_types: tuple[str, ...] = FLOATS

    def reference(self, arrays: Sequence[Array | None], attrs: Attrs, outputs: tuple[TensorType, ...]) -> list[Array]:
        x = arrays[0]
        assert x is not None
        result, counts = self.prepare(wide(x)), np.ones((), np.float64)
        start: Any = 0
        if self.operation is np.maximum:
            start = -math.inf if x.dtype.kind == "f" else np.iinfo(str(x.dtype)).min
        with np.errstate(all="ignore"):
            for axis, windows in zip(SPATIAL[attrs["layout"]], _windows(attrs, x.shape, outputs[0].shape), strict=True):
                result = _pooled(result, axis, windows, self.operation, start)
                ones = _pooled(np.ones(windows.size), 0, windows, np.add, 0.0)
                counts = counts * np.expand_dims(ones, tuple(d for d in range(4) if d != axis))
            return [to_type(self.finish(result, np.maximum(counts, 1.0)), outputs[0])]

    def lower(self, low: Lowering) -> list[KernelCall]:
        x, output = low.input(), low.output()
        down, across = _windows(low.attrs, x.shape, output.shape)
        element = element_of(x.data_type, low.caps)
        step = self.step(ELEMENTS[element].value)
        target = result_tensor(low, _channel_axis(low.attrs))
        epilogue = target.epilogue
        if down.whole and across.whole and not {self.name, POOL2D.name} & set(low.forced):
            step = replace(step, finish=step.finish.substituted({"count": Uniform("length")}))
            source = ReduceTensor(low.value(0), element, x.shape)
            return reduce_calls(low, step, source, SPATIAL[low.attrs["layout"]], target, key="parts")
        last = x.shape[3] if low.attrs["layout"] == "nhwc" else 1
        channels: Literal["first", "last", "quads"] = "first" if last == 1 else "last"
        # There are no vectors of pairs.
        if last % QUAD == 0 and step.type not in PAIRS:
            channels = "quads"
        taps, results = down.reach * across.reach, output.num_elements
        subgroups = ELEMENTS[element].size_bytes <= 4
        # An invocation loops over elements in lines, which may be short, or in blocks of 32, for each of its results.
        windows = 1 if channels == "quads" else QUAD
        costs = low.target.costs
        most = min(MAX_DIMENSION, costs.launches.most_iterations // (2 * windows))
        variant = variant_of(
            low, taps, lambda variants: costs.pooling.choose(variants, taps, results), subgroups=subgroups, most_items=most
        )
        rows = RowShape(lanes=variant.lanes)
        # Invocations that share a window take elements at a fixed stride of it anyway.
        blocks = variant.lanes > 1 or max(down.reach, across.reach) > _LONGEST_LINE
        few = down.window * across.window <= costs.pooling.most_written
        written = few and channels == "quads" and variant.lanes == 1 and not blocks
        quads = -(-results // QUAD)

        def reach(first: int, end: int) -> list[Interval | None]:
            return [_touched(down, across, last, first, end), *epilogue.reach(first, end), (first, end)]

        def quads_reach(first: int, end: int) -> list[Interval | None]:
            return reach(first * QUAD, min(end * QUAD, results))

        iterations = 2 * windows * -(-taps // variant.lanes)
        if variant.lanes == 1:
            launch, grid = quad_launch(results, low.target, iterations)
            work = quad_work(results, low.target, reach, iterations=iterations)
        else:
            launch, grid = row_launch(rows, quads, low.target, "quads", iterations)
            work = row_work(rows, quads, low.target, quads_reach, "quads", iterations)
        fields: list[Field] = [*launch, ("outputs", "u32", results)]
        if channels != "first":
            fields.append(("channels", "u32", last // QUAD if channels == "quads" else last))
        fields += [*down.fields("down"), *across.fields("across"), *epilogue.fields]
        spec = POOL2D.spec(
            [
                Binding(name="input", access="read", element=element, quad=channels == "quads"),
                *epilogue.bindings,
                Binding(name="output", access="write", element=target.element, quad=True),
            ],
            [(field, type_) for field, type_, _ in fields],
            features=(*variant.features, *epilogue.features),
            variant=variant.name,
            channels=channels,
            blocks=blocks,
            down=down.window if written else 0,
            across=across.window if written else 0,
            rows=rows,
            step=replace(step, zero=_neutral(step, x.data_type)),
            **epilogue.params,
        )
        reason = f"{variant.reason} ({quads} quads of results, windows of {taps})"
        operands = (low.value(0), *epilogue.operands, target.resource)
        return [
            KernelCall(spec=spec, operands=operands, uniforms=tuple(v for *_, v in fields), grid=grid, reason=reason, work=work)
        ]


def _touched(down: Windows, across: Windows, channels: int, first: int, end: int) -> Interval:
    """Return the elements of the input within the windows of results first..end-1, as whole rows of pixels.

    `channels` is the number of neighboring channels. Images follow each other, and so do the planes of an image in nchw.
    """
    lines = [o // (across.output * channels) for o in (first, end - 1)]
    (low, top), (high, bottom) = ((line // down.output, down.rows(line % down.output)) for line in lines)
    row = across.size * channels
    return (low * down.size + top[0]) * row, max((low * down.size + top[1]), (high * down.size + bottom[1])) * row


def _neutral(step: ReductionStep, data_type: str) -> str:
    """Return the total of an empty window."""
    if step.operation == "sum":
        return step.zero
    if data_type in FLOATS:
        return _ORDERED_NEGATIVE_INFINITY
    return _LOWEST_8_BIT.get(data_type, LOWEST[step.type])


def _channel_axis(attrs: Attrs) -> int:
    return -1 if attrs["layout"] == "nhwc" else -3


def _operations(attrs: Attrs, types: Sequence[TensorType], output: TensorType) -> int:
    height, width = (1, 2) if attrs["layout"] == "nhwc" else (2, 3)
    window = attrs["window_dimensions"] or (types[0].shape[height], types[0].shape[width])
    return output.num_elements * math.prod(window)


def _terms(attrs: Attrs, operands: Sequence[Array | None]) -> int:
    return math.prod(attrs["window_dimensions"]) + 1


_POOLS = (
    _Pool(
        name="averagePool2d",
        step=lambda value: arithmetic("sum", value, finish="t / count"),
        operation=np.add,
        prepare=lambda x: x,
        finish=lambda total, counts: total / counts,
        bounds=replace(sums(_terms), reached=mean_reached),
        gradient=pooling_gradients.average,
        summary="Mean of the elements in each window.",
        numerics="Padding does not count: a mean is taken over the elements that lie within the input, "
        "and is 0 if there is none.",
    ),
    _Pool(
        name="l2Pool2d",
        step=lambda value: arithmetic("sum", value, "x * x", "sqrt_f32(t)"),
        operation=np.add,
        prepare=np.square,
        finish=lambda total, counts: np.sqrt(total),
        bounds=roots(_terms),
        gradient=pooling_gradients.l2,
        summary="Square root of the sum of squares of the elements in each window.",
        numerics="The result is 0 if no element of a window lies within the input.",
    ),
    _Pool(
        name="maxPool2d",
        step=lambda value: extremum("max", value),
        operation=np.maximum,
        prepare=lambda x: x,
        finish=lambda total, counts: total,
        bounds=EXACT,
        gradient=pooling_gradients.maximum,
        summary="Greatest element in each window.",
        numerics="NaN if any element of the window is NaN. Without an element within the input, "
        "-infinity or the least integer.",
        data_types=ANY,
    ),
)

OPS = tuple(
    OpDef(
        name=pool.name,
        operands=(Operand(name="input", data_types=pool.data_types, min_rank=4, max_rank=4),),
        infer=_infer,
        reference=pool.reference,
        lower=pool.lower,
        attrs=(
            Attr("window_dimensions", "uints", None),
            Attr("padding", "uints", (0, 0, 0, 0)),
            Attr("strides", "uints", (1, 1)),
            Attr("dilations", "uints", (1, 1)),
            Attr("layout", "enum", "nchw", LAYOUTS),
            Attr("output_shape_rounding", "enum", "floor", ("floor", "ceil")),
            Attr("output_sizes", "uints", None),
        ),
        templates=(POOL2D, REDUCE),
        spec="#api-mlgraphbuilder-pool2d",
        rank_phrase="Pool2d input must be 4D",
        family=Family.POOLING,
        without=("elementwise", "movement", "precision"),
        epilogue=replace(REDUCTION_EPILOGUE, axis=_channel_axis),
        layout=option("layout"),
        cost=Cost(_operations),
        bounds=pool.bounds,
        gradient=pool.gradient,
        documentation=pooling_documentation(pool.name, pool.summary, pool.numerics),
    )
    for pool in _POOLS
)
