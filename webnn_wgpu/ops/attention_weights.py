"""The weights of attention from its scores: one kernel of rows, which passes make."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..ir.graph import Array, Attrs
from ..ir.types import TensorType
from ..kernels.spec import Binding, KernelCall, KernelTemplate
from ._attrs import Attr
from ._def import Lowering, OpCall, OpDef
from ._def import Operand as OperandDef
from ._reduction import VARIANTS, Field, RowView, choose_variant, row_call, view_rows
from ._rows import to_type, wide
from ._shapes import broadcast_strides, unidirectional
from .interfaces.bounds import EPSILON, SMALLEST, Bounds, ReferenceResults
from .interfaces.cost import per_element
from .interfaces.family import Family
from .softmax import SOFTMAX_OPERATIONS

_TEMPLATE = KernelTemplate("attention_weights", ("variant", "rows", "diagonal"), VARIANTS)

_MOST_HELD = 8
"""Items of the scores that an invocation keeps in registers."""

_PASSES = 3
"""The number of times that the kernel reads a row that its registers do not hold."""


def _infer(call: OpCall) -> tuple[TensorType, ...]:
    scores, seen = call.input(0), call.inputs[1]
    call.require(seen is None or call.attrs["diagonal"] is None, "seen and diagonal must not both be given", got=str(seen))
    call.require(
        call.attrs["diagonal"] is None or scores.rank > 1, "scores must be matrices, if there is a diagonal", got=str(scores)
    )
    call.require(
        seen is None or unidirectional(seen.shape, scores.shape),
        "Incompatible shapes: seen must broadcast to scores",
        allowed=f"a shape that broadcasts to {list(scores.shape)}",
    )
    return (scores,)


def _reference(arrays: Sequence[Array | None], attrs: Attrs, outputs: tuple[TensorType, ...]) -> list[Array]:
    scores, seen = arrays
    assert scores is not None
    if attrs["diagonal"] is not None:
        rows, columns = scores.shape[-2:]
        seen = np.tri(rows, columns, attrs["diagonal"], dtype=np.uint8)
    with np.errstate(all="ignore"):
        near = wide(scores) if seen is None else np.where(seen != 0, wide(scores), -np.inf)
        e = np.exp(near - near.max(axis=-1, keepdims=True))
        weights = e / e.sum(axis=-1, keepdims=True)
        return [to_type(weights if seen is None else np.where(seen != 0, weights, 0), outputs[0])]


def _lower(low: Lowering) -> list[KernelCall]:
    x = low.input()
    strides = broadcast_strides(low.input(1).shape, x.shape) if low.has(1) else (0,) * x.rank
    view = view_rows(x.shape, (x.rank - 1,), strides)
    quads = view.items_are_quads and (not low.has(1) or _seen_in_quads(view))
    variant = choose_variant(low, view, passes=_PASSES, quads=quads)
    items, shape = view.items(quads), variant.shape(view, quads=quads)
    if items.size <= _MOST_HELD * shape.lanes:
        shape = shape.holding(items.size)
    fields: list[Field] = []
    resources: list[tuple[Binding, int]] = [(Binding(name="input", access="read", quad=quads), low.value(0))]
    if low.has(1):
        fields = [*view.kept.parameter_fields("kept"), *items.parameter_fields("reduced")]
        resources.append((Binding(name="seen", access="read", element="uint8", quad=quads), low.value(1)))
    diagonal: int | None = low.attrs["diagonal"]
    if diagonal is not None:
        positions: list[Field] = [("queries", "u32", x.shape[-2]), ("diagonal", "i32", diagonal)]
        fields += positions
    resources.append((Binding(name="output", access="write", quad=quads), low.node.outputs[0]))
    shape, of_positions = shape.in_octets(low, view, resources), diagonal is not None
    return [row_call(_TEMPLATE, low, view, variant, shape, resources, fields, passes=_PASSES, diagonal=of_positions)]


def _seen_in_quads(view: RowView) -> bool:
    """Return whether the kernel may read `seen` in quads: those of one row are aligned."""
    return view.reduced.parameter_in_quads and all(s % 4 == 0 for s in view.kept.parameter_strides)


def _bounds(found: ReferenceResults) -> list[Array]:
    scores = found.operand()
    finite = scores[np.isfinite(scores)].astype(np.float64)
    spread = float(np.ptp(finite)) if finite.size else 0.0
    relative = EPSILON * (2 * scores.shape[-1] + 16 + spread)
    return [np.nan_to_num(relative * np.abs(found.expected[0].astype(np.float64))) + SMALLEST]


ATTENTION_WEIGHTS = OpDef(
    name="attentionWeights",
    operands=(
        OperandDef(name="scores", data_types=("float32",), min_rank=1),
        OperandDef(name="seen", data_types=("uint8",), required=False),
    ),
    infer=_infer,
    reference=_reference,
    lower=_lower,
    attrs=(Attr("diagonal", "int", None),),
    templates=(_TEMPLATE,),
    family=Family.ATTENTION,
    without=("elementwise", "epilogue", "movement", "layout", "precision", "gradient"),
    cost=per_element(SOFTMAX_OPERATIONS),
    bounds=Bounds(allowed=_bounds),
    internal=True,
)
"""Softmax of the scores that are seen: where `seen` is not 0, or up to the diagonal. Without either, all are."""

OPS = (ATTENTION_WEIGHTS,)
