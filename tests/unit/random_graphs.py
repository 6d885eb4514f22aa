"""Random graphs for property tests: element-wise operators, views and operators that move data, of odd shapes and types."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from hypothesis import strategies as st

from tests.support import Sketch, random_array
from webnn_wgpu.core.data_types import DATA_TYPES, FLOATS
from webnn_wgpu.ops import OPS
from webnn_wgpu.ops._shapes import broadcast

if TYPE_CHECKING:
    from webnn_wgpu.ir.graph import Array, Graph

SPECIALS = (0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, np.nan, 0.5, 65504.0)
SCALARS = {"alpha": (0.25, 1.0, -0.0), "beta": (0.0, -0.0, 0.5), "steepness": (1.0, 0.5)}
LARGEST = 4096
"""Most elements of any value."""

ELEMENTWISE = tuple(op for op in OPS.values() if op.elementwise is not None and not op.internal)
MOVES = ("reshape", "identity", "transpose", "slice", "split", "expand", "tile", "reverse", "concat", "pad")
COMMON = ("add", "mul", "sub", "relu", "neg", "exp", "max", "cast", "where", "linear", "greater")
ROWS = ("matmul", "softmax", "reduceSum", "reduceMax", "layerNormalization")


def some_array(draw: st.DrawFn, data_type: str, shape: tuple[int, ...]) -> Array:
    """Draw an array, floats with special values among them."""
    rng = np.random.default_rng(draw(st.integers(0, 1000)))
    array = random_array(rng, data_type, shape)
    if data_type in FLOATS and array.size > 1:
        spots = rng.integers(0, array.size, 1 + array.size // 3)
        array.reshape(-1)[spots] = rng.choice(SPECIALS, spots.size)
    return array


def small_shapes(max_rank: int = 4) -> st.SearchStrategy[tuple[int, ...]]:
    """Shapes of few elements; sizes of 1 and whole quads are frequent."""
    return st.lists(st.sampled_from((1, 1, 2, 3, 4, 5, 8)), max_size=max_rank).map(tuple)


@st.composite
def graphs(
    draw: st.DrawFn, operators: tuple[str, ...] | None = None, data_types: tuple[str, ...] = tuple(DATA_TYPES)
) -> tuple[Graph, dict[str, Array]]:
    """Draw a graph and what to feed it. Outputs may name inputs, constants, views, and one value twice.

    Args:
        draw: hypothesis's.
        operators: names of the operators that may occur; every one of this module's by default.
        data_types: types of inputs and constants.
    """
    sketch = Sketch()
    base = draw(small_shapes())
    main = draw(st.sampled_from(data_types))
    for i in range(draw(st.integers(2, 5))):
        shape = base if draw(st.booleans()) else tuple(1 if draw(st.booleans()) else d for d in base)
        shape = shape[draw(st.integers(0, len(shape))) if draw(st.booleans()) else 0 :]
        array = some_array(draw, main if draw(st.booleans()) else draw(st.sampled_from(data_types)), shape)
        (sketch.constant if i and draw(st.booleans()) else sketch.input)(array)
    names = operators or (*(op.name for op in ELEMENTWISE), *COMMON * 5, *MOVES * 2, *[n for n in ROWS if n in OPS] * 4)
    for _ in range(draw(st.integers(3, 14))):
        if sketch.nodes and draw(st.integers(0, 5)) == 5:
            twin = draw(st.sampled_from(sketch.nodes))
            sketch.apply_all(twin.op, twin.inputs, "twin", **twin.attrs)
        else:
            _add(draw, sketch, draw(st.sampled_from(names)))
    ids = st.sampled_from(list(sketch.values))
    last = sketch.nodes[-1].outputs[0] if sketch.nodes else 0
    outputs = [last, *draw(st.lists(ids, max_size=3))]
    return sketch.graph(*outputs), sketch.feeds


def _add(draw: st.DrawFn, sketch: Sketch, name: str) -> None:
    """Add an operator if there are operands for it: often the last value, so that chains arise."""
    op = OPS[name]
    ids = list(sketch.values)
    first = draw(st.sampled_from((ids[-1], ids[-1], *ids)))
    if sketch.type(first).data_type not in op.operands[0].data_types:
        fitting = [i for i in ids if sketch.type(i).data_type in op.operands[0].data_types]
        if not fitting:
            return
        first = draw(st.sampled_from(fitting))
    operands, attrs = [first], dict[str, Any]()
    if op.elementwise is not None:
        if not _elementwise_operands(draw, sketch, name, operands):
            return
        attrs = {a.name: draw(st.sampled_from(SCALARS[a.name])) for a in op.attrs if a.name in SCALARS}
        if name == "cast":
            attrs["data_type"] = draw(st.sampled_from(list(DATA_TYPES)))
        if name == "clamp":
            attrs = {"min_value": draw(st.sampled_from((None, -1, 0.5))), "max_value": draw(st.sampled_from((None, 2, 1e9)))}
    elif not _arguments(draw, sketch, name, operands, attrs):
        return
    sketch.apply_all(name, operands, draw(st.sampled_from(("", "", f"n{len(sketch.nodes)}"))), **attrs)


def _elementwise_operands(draw: st.DrawFn, sketch: Sketch, name: str, operands: list[int]) -> bool:
    for operand in OPS[name].operands[1:]:
        types = (sketch.type(operands[-1]).data_type,) if operand.same_as else operand.data_types
        shapes = [sketch.type(i).shape for i in operands]
        found = [
            i
            for i, v in sketch.values.items()
            if v.type.data_type in types and all(broadcast(v.type.shape, s) is not None for s in shapes)
        ]
        if not found:
            return False
        operands.append(draw(st.sampled_from(found)))
    size = np.broadcast_shapes(*(sketch.type(i).shape for i in operands))
    return int(np.prod(size, dtype=int)) <= LARGEST


def _arguments(draw: st.DrawFn, sketch: Sketch, name: str, operands: list[int], attrs: dict[str, Any]) -> bool:
    """Draw the other arguments of an operator that is not element-wise; False where the operand does not suit it."""
    x = sketch.type(operands[0])
    shape, rank = x.shape, x.rank
    if name == "reshape":
        count = x.num_elements
        pieces = [n for n in (2, 3, 4, 5, 8) if count % n == 0]
        first = draw(st.sampled_from((1, *pieces)))
        attrs["new_shape"] = draw(st.sampled_from(([count], [first, count // first], [1, *shape][:8] if rank < 8 else [count])))
    elif name == "transpose":
        attrs["permutation"] = draw(st.permutations(range(rank)))
    elif name == "slice":
        starts = [draw(st.integers(0, d - 1)) for d in shape]
        attrs["starts"] = starts
        attrs["sizes"] = [draw(st.integers(1, d - s)) for d, s in zip(shape, starts, strict=True)]
        attrs["strides"] = [draw(st.integers(1, 3)) for _ in shape]
    elif name == "expand":
        attrs["new_shape"] = [draw(st.sampled_from((1, 2, 4))) if d == 1 else d for d in shape]
    elif name == "tile":
        attrs["repetitions"] = [draw(st.integers(1, 2)) for _ in shape]
    elif name == "reverse":
        attrs["axes"] = [d for d in range(rank) if draw(st.booleans())]
    elif name == "pad":
        attrs["beginning_padding"] = [draw(st.integers(0, 2)) for _ in shape]
        attrs["ending_padding"] = [draw(st.integers(0, 2)) for _ in shape]
    elif name in ("split", "concat", "softmax"):
        if not rank:
            return False
        axis = draw(st.integers(0, rank - 1))
        attrs["axis"] = axis
        if name == "split":
            at = draw(st.integers(0, shape[axis] - 1))
            attrs["splits"] = [at, shape[axis] - at] if at else [shape[axis]]
        elif name == "concat":
            operands.append(operands[0])
    elif name == "matmul":
        if rank < 2:
            return False
        operands.append(sketch.apply("transpose", operands[0], permutation=[*range(rank - 2), rank - 1, rank - 2]))
    return x.num_elements <= LARGEST // 16
