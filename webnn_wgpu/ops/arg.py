"""Index of the smallest and largest element along dimensions. Both forms of the operators are one here.

The 2026 form has one `axis` and returns int32 by default. The 2024 form has any `axes` (all by default) and returns int64. The
canonical form of both has ascending `axes` and an explicit `output_data_type`. Over several axes, the index counts their
elements in row-major order, which the 2024 text leaves open.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ..core.names import method_name
from ..ir.graph import Array, Attrs
from ..ir.types import TensorType
from ..kernels.element import ELEMENTS, element_of
from ..kernels.notation import term
from ..kernels.spec import Binding, KernelCall, KernelTemplate
from ..kernels.spec import Operand as KernelOperand
from ..kernels.terms import Term
from ._attrs import Attr
from ._def import Lower, Lowering, OpCall, OpDef, Operand
from ._reduction import HIGHEST, LOWEST, VARIANTS, choose_variant, reduced_shape, row_call, rows_fit, side_by_side, view_rows
from ._strided_copy import STRIDED
from .interfaces.bounds import EXACT
from .interfaces.cost import per_element
from .interfaces.documentation import ARG_MIN_MAX, Documentation, Method
from .interfaces.family import Family

ARG = KernelTemplate("arg", ("variant", "rows", "key", "last"), VARIANTS)


@dataclass(frozen=True)
class Key:
    """The comparison of elements `x`: their keys, the WGSL type of the keys, its lowest value, and the key of NaN, if any."""

    code: Term
    type: str
    lowest: str
    nan: str


def _key(value: str, largest: bool) -> Key:
    """Return the keys for elements of the WGSL type `value`. Complements turn the smallest element into the largest key."""
    sign = "" if largest else "~"
    if value != "f32":
        return Key(term(f"{sign}x"), value, LOWEST[value], "")
    nan = (HIGHEST if largest else LOWEST)["i32"]
    # Zeros of either sign tie.
    code = term(f"{sign}ordered_f32(select(x, 0.0, abs_bits_f32(x) == 0u), {nan})")
    return Key(code, "i32", LOWEST["i32"], HIGHEST["i32"])


def _infer(call: OpCall) -> tuple[TensorType, ...]:
    x, axis, axes = call.input(), call.attrs["axis"], call.attrs["axes"]
    if axis is not None and axes is not None:
        raise call.fail("only one of axis and axes may be given", got=f"axis={axis}, axes={list(axes)}")
    if call.attrs["output_data_type"] is None:
        call.attrs["output_data_type"] = "int64" if axis is None else "int32"
    if axis is not None:
        axes = (call.axis(axis, x.rank),)
    axes = tuple(range(x.rank)) if axes is None else tuple(sorted(call.axes(axes, x.rank)))
    call.attrs.update(axis=None, axes=axes)
    # No index can exceed int32: that would take a tensor of more elements than the specification allows.
    shape = reduced_shape(x.shape, axes, call.attrs["keep_dimensions"])
    return (call.output(call.attrs["output_data_type"], shape),)


def _index(x: Array, largest: bool, last: bool) -> Array:
    """Return the index along the last dimension."""
    if x.dtype.kind != "f":
        nan = np.zeros(x.shape, bool)
    else:
        nan = np.isnan(x)
    find = np.argmax if largest else np.argmin
    index: Array = x.shape[-1] - 1 - find(x[..., ::-1], axis=-1) if last else find(x, axis=-1)
    return np.where(nan.any(axis=-1), np.argmax(nan, axis=-1), index)


def _reference(largest: bool, arrays: Sequence[Array | None], attrs: Attrs, outputs: tuple[TensorType, ...]) -> list[Array]:
    x = arrays[0]
    assert x is not None
    axes = attrs["axes"]
    kept = [d for d in range(x.ndim) if d not in axes]
    rows = np.transpose(x, [*kept, *axes]).reshape([*(x.shape[d] for d in kept), -1])
    index = _index(rows, largest, attrs["select_last_index"])
    return [index.reshape(outputs[0].shape).astype(outputs[0].numpy)]


def _lower_with(largest: bool) -> Lower:
    def lower(low: Lowering) -> list[KernelCall]:
        x = low.input()
        view = view_rows(x.shape, low.attrs["axes"])
        element = ELEMENTS[element_of(x.data_type, low.caps)]
        calls: list[KernelCall] = []
        source: KernelOperand = low.value(0)
        row_bytes = view.reduced.size * element.size_bytes
        if not rows_fit(view, x.data_type, low.caps) and row_bytes <= low.caps.limit("max-storage-buffer-binding-size"):
            source, copy = side_by_side(view, source, x.data_type, low.target, "rows")
            calls.append(copy)
            view = view_rows((view.kept.size, view.reduced.size), (1,))
        key = _key(element.value, largest)
        quads = view.items_are_quads
        variant = choose_variant(low, view, subgroups=element.size_bytes <= 4, passes=1, quads=quads)
        # The index is always positive and below 2^32: its 64 bits need no 64-bit arithmetic.
        output = "bits64" if low.output().data_type == "int64" else "int32"
        resources = [
            (Binding(name="input", access="read", element=element.name, quad=quads), source),
            (Binding(name="output", access="write", element=output), low.node.outputs[0]),
        ]
        last: bool = low.attrs["select_last_index"]
        shape = variant.shape(view, quads=quads)
        calls.append(row_call(ARG, low, view, variant, shape, resources, one_result=True, key=key, last=last))
        return calls

    return lower


def _arg(name: str, largest: bool) -> OpDef:
    return OpDef(
        name=name,
        operands=(Operand(name="input"),),
        infer=_infer,
        reference=lambda arrays, attrs, outputs: _reference(largest, arrays, attrs, outputs),
        lower=_lower_with(largest),
        attrs=(
            Attr("axis", "uint", None),
            Attr("axes", "uints", None),
            Attr("keep_dimensions", "bool", False),
            Attr("select_last_index", "bool", False),
            Attr("output_data_type", "data_type", None, ("int32", "int64")),
        ),
        templates=(ARG, STRIDED),
        spec="#api-mlgraphbuilder-argminmax",
        family=Family.REDUCTION,
        without=("elementwise", "epilogue", "movement", "layout", "precision", "gradient"),
        cost=per_element(),
        bounds=EXACT,
        documentation=Documentation(
            group=ARG_MIN_MAX,
            summary=f"Position of the {'greatest' if largest else 'least'} element along a dimension.",
            arguments={
                "input": "{types}, with any shape. The rank must be 1 or more if `axis` is given.",
                "axis": "The dimension. The draft requires it. Without it the rules of the 2024 text hold.",
                "axes": (
                    "Several dimensions, in place of `axis`. Without both, all dimensions. The position is then counted "
                    "over them in row-major order."
                ),
                "keep_dimensions": "Whether the reduced dimensions stay, with size 1.",
                "select_last_index": "Whether the last of several equal elements counts instead of the first.",
                "output_data_type": "Data type of the positions. The default is int32 with `axis`, else int64.",
            },
            returns="An operand of int32 or int64, with the input's shape without the reduced dimensions.",
            raises=(
                "Both axis and axes are given, an axis is not a dimension of the input or is repeated, the output data type "
                "is not allowed"
            ),
            numerics="The first NaN wins.",
            example=f"""
                >>> b.{method_name(name)}(x, 1)
                MLOperand(int32[2])
                >>> b.{method_name(name)}(x, axes=[0, 1])
                MLOperand(int64[])
            """,
            method=Method(
                optional=("axis",),
                dictionary="MLArgMinMaxOptions",
                pywebnn=("keep_dimensions", "output_data_type"),
            ),
        ),
    )


OPS = (_arg("argMax", largest=True), _arg("argMin", largest=False))
