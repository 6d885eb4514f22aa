"""Rotary position embedding: pairs of elements of every head are turned by an angle that grows with the position.

J. Su et al., RoFormer, 2021.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..core.data_types import FLOATS
from ..ir.graph import Array, Attrs
from ..ir.types import TensorType
from ..kernels.element import QUAD
from ..kernels.spec import Binding, Interval, KernelCall, KernelTemplate, UniformType
from ._attention_operands import HeadsTensor
from ._attrs import Attr
from ._def import Lowering, OpCall, OpDef, Operand
from ._places import INDEX_TYPES, clamped_indices, index_binding
from ._quads import quad_launch, quad_work
from ._rows import to_type, wide
from ._shapes import broadcast_strides, unidirectional
from .gradients import attention as attention_gradients
from .interfaces.bounds import CONDITIONED
from .interfaces.cost import per_element
from .interfaces.documentation import ATTENTION_EXTENSIONS, Documentation
from .interfaces.family import Family

ROTARY_EMBEDDING = KernelTemplate("rotary_embedding", ("interleaved", "quad"))


def _infer(call: OpCall) -> tuple[TensorType, ...]:
    x, cos, sin = (call.input(i) for i in range(3))
    heads = call.attrs["heads"]
    if x.rank == 4:
        heads = x.shape[1] if heads is None else heads
        call.require(heads == x.shape[1], "heads must be input.shape[1]", got=f"heads={heads}, input {x}")
    elif heads is None:
        raise call.fail("heads is required where input has rank 3", got=f"input {x}")
    call.require(heads > 0, "heads must be positive", got=f"heads={heads}", allowed=">= 1")
    call.require(x.rank == 4 or x.shape[2] % heads == 0, "heads must divide input.shape[2]", got=f"heads={heads}, input {x}")
    layout = HeadsTensor.of(x.shape, heads)
    rotary = call.attrs["rotary_dim"] or layout.size
    call.require(
        rotary % 2 == 0 and rotary <= layout.size,
        "rotary_dim must be even and at most the size of a head",
        got=f"rotary_dim={rotary}, heads of {layout.size} elements",
    )
    call.require(
        cos.shape == sin.shape, "Incompatible shapes: cos and sin must have the same shape", allowed=str(list(cos.shape))
    )
    call.require(
        cos.shape[-1] == rotary // 2,
        "Incompatible shapes: the last dimension of cos must be half of rotary_dim",
        allowed=f"{rotary // 2}",
    )
    positions = call.inputs[3]
    places = (layout.batch, layout.length)
    if positions is None:
        call.require(
            unidirectional(cos.shape[:-1], places),
            "Incompatible shapes: cos must broadcast to [batch, length, rotary_dim / 2] where there are no positions",
            allowed=str([*places, rotary // 2]),
        )
    else:
        call.require(cos.rank == 2, "cos must have rank 2 where there are positions", allowed="rank 2")
        call.require(
            unidirectional(positions.shape, places),
            "Incompatible shapes: positions must broadcast to [batch, length]",
            allowed=str(list(places)),
        )
    call.attrs |= {"heads": heads, "rotary_dim": rotary}
    return (x,)


def _reference(arrays: Sequence[Array | None], attrs: Attrs, out: tuple[TensorType, ...]) -> list[Array]:
    x, cos, sin, positions = arrays
    assert x is not None
    assert cos is not None
    assert sin is not None
    layout = HeadsTensor.of(x.shape, attrs["heads"])
    if positions is not None:
        places = clamped_indices(positions, cos.shape[0])
        cos, sin = cos[places], sin[places]
    half = attrs["rotary_dim"] // 2
    shape = (layout.batch, layout.length, half)
    # [batch, 1, length, half]
    c, s = (np.broadcast_to(wide(table), shape)[:, None] for table in (cos, sin))
    result = wide(layout.split(x)).copy()
    first, second = (
        (slice(0, 2 * half, 2), slice(1, 2 * half, 2)) if attrs["interleaved"] else (slice(half), slice(half, 2 * half))
    )
    with np.errstate(all="ignore"):
        a, b = result[..., first].copy(), result[..., second].copy()
        result[..., first], result[..., second] = a * c - b * s, a * s + b * c
    return [to_type(result if x.ndim == 4 else result.swapaxes(1, 2).reshape(x.shape), out[0])]


def _lower(low: Lowering) -> list[KernelCall]:
    x, table = low.input(), low.input(1)
    layout = HeadsTensor.of(x.shape, low.attrs["heads"])
    rotary: int = low.attrs["rotary_dim"]
    interleaved: bool = low.attrs["interleaved"]
    # A quad and its partner are in one head. If kernels read quads of cosines, rows of cosines are whole quads as well.
    quad = layout.size % QUAD == 0 and rotary % (QUAD if interleaved else 2 * QUAD) == 0
    launch, grid = quad_launch(x.num_elements, low.target)
    fields: list[tuple[str, UniformType, int]] = [
        *launch,
        ("D", "u32", layout.size),
        ("S", "u32", layout.length),
        ("heads", "u32", layout.heads),
        ("rotary", "u32", rotary),
        ("row_step", "u32", 1 if x.rank == 4 else layout.heads),
    ]
    resources = [(Binding(name="input", access="read", element=x.data_type, quad=quad), low.value(0))]
    for i, name in ((1, "cos"), (2, "sin")):
        resources.append(
            (Binding(name=name, access="read", element=table.data_type, quad=quad and not interleaved), low.value(i))
        )
    places = (layout.batch, layout.length)
    if low.has(3):
        steps = broadcast_strides(low.input(3).shape, places)
        resources.append((index_binding(low.input(3).data_type, "positions"), low.value(3)))
        named = {"positions_batch": steps[0], "positions_row": steps[1], "table_rows": table.shape[0]}
    else:
        steps = broadcast_strides(table.shape[:-1], places)
        named = {"table_batch": steps[0] * (rotary // 2), "table_row": steps[1] * (rotary // 2)}
    fields.extend((name, "u32", value) for name, value in named.items())
    resources.append((Binding(name="output", access="write", element=x.data_type, quad=True), low.node.outputs[0]))
    spec = ROTARY_EMBEDDING.spec(
        [binding for binding, _ in resources],
        [(name, type_) for name, type_, _ in fields],
        interleaved=interleaved,
        quad=quad,
    )

    def reach(first: int, end: int) -> list[Interval | None]:
        heads = first // layout.size * layout.size, -(-end // layout.size) * layout.size
        return [heads, *(None for _ in resources[1:-1]), (first, end)]

    reason = "whole quads of pairs" if quad else "pair by pair"
    work = quad_work(x.num_elements, low.target, reach)
    values = tuple(value for _, value in resources)
    return [
        KernelCall(spec=spec, operands=values, uniforms=tuple(v for _, _, v in fields), grid=grid, reason=reason, work=work)
    ]


OPS = (
    OpDef(
        name="x.rotary_embedding",
        operands=(
            Operand(name="input", data_types=FLOATS, min_rank=3, max_rank=4),
            Operand(name="cos", same_as="input", min_rank=1, max_rank=3),
            Operand(name="sin", same_as="input", min_rank=1, max_rank=3),
            Operand(name="positions", data_types=INDEX_TYPES, max_rank=2, required=False),
        ),
        infer=_infer,
        reference=_reference,
        lower=_lower,
        attrs=(Attr("heads", "uint", None), Attr("interleaved", "bool", False), Attr("rotary_dim", "uint", 0)),
        templates=(ROTARY_EMBEDDING,),
        family=Family.OTHER,
        without=("elementwise", "epilogue", "movement", "layout", "precision"),
        cost=per_element(3),
        bounds=CONDITIONED,
        documentation=Documentation(
            group=ATTENTION_EXTENSIONS,
            summary=(
                "Rotate pairs (x, y) of elements of every head to `(x cos - y sin, x sin + y cos)`, as ONNX's "
                "RotaryEmbedding does."
            ),
            arguments={
                "input": "{types}, with the shape [batch, heads, length, size] or [batch, length, heads * size].",
                "cos": (
                    "The input's data type, with the shape [rows, rotary_dim / 2]. `positions` names the row of each "
                    "position. Without `positions`, a shape that broadcasts to [batch, length, rotary_dim / 2]."
                ),
                "sin": "The data type and shape of `cos`.",
                "positions": (
                    "{types}, with a shape that broadcasts to [batch, length]. Negative positions count from the end of "
                    "the rows, and positions out of range are clamped."
                ),
                "heads": "Number of heads. It is required if `input` has rank 3.",
                "interleaved": "Whether a pair is two neighbors, instead of one element of each half of the rotated part.",
                "rotary_dim": "Number of elements of a head that are rotated, the first ones. 0 stands for all.",
            },
            returns="An operand with the input's data type and shape.",
            raises="A data type, rank or shape is not allowed, `rotary_dim` is odd or too large",
            example="""
                >>> tokens = b.constant(np.ones([1, 5, 8], np.float32))
                >>> table = b.constant(np.ones([16, 2], np.float32))
                >>> positions = b.constant(np.arange(5, dtype=np.int32))
                >>> b.ext.rotary_embedding(tokens, table, table, positions=positions, heads=2)
                MLOperand(float32[1, 5, 8])
            """,
        ),
        gradient=attention_gradients.ROTARY_EMBEDDING,
    ),
)
