"""The transposes of several tensors in one kernel, which passes make of transposes such as those of keys and values."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..core.wording import counted
from ..costs import Target
from ..ir.graph import Array, Attrs
from ..ir.types import TensorType
from ..kernels.element import QUAD, bits_of
from ..kernels.spec import Binding, KernelCall, KernelTemplate, grid_1d
from ._attrs import Attr
from ._def import Lowering, OpCall, OpDef, Operand
from ._product_kernel import ProductKernel
from ._quads import WORKGROUP, fits_binding
from ._shapes import merge_dimensions, strides_of
from ._strided_copy import STRIDED, copies_quads, place_of, strided_call
from .interfaces.bounds import EXACT
from .interfaces.cost import MOVED
from .interfaces.family import Family
from .interfaces.movement import Movement
from .strided import TRANSPOSE

_TEMPLATE = KernelTemplate("transposes", ("rank",))

MOST_TENSORS = 4
"""Most tensors of a kernel: with their transposes they take the 8 storage buffers that WebGPU guarantees."""


def transposed_together(type_: TensorType, permutation: Sequence[int], target: Target) -> bool:
    """Return whether a kernel transposes several tensors of a type: it moves whole quads of neighbors."""
    dims, own = _merged(type_, permutation, strides_of(type_.shape))
    return len(dims) > 1 and copies_quads(0, dims, own) and fits_binding(type_, target.caps)


def _merged(type_: TensorType, permutation: Sequence[int], strides: Sequence[int]) -> tuple[Sequence[int], Sequence[int]]:
    """Return the merged dimensions of a transpose, and the steps along them in a tensor with some strides."""
    dims = [type_.shape[d] for d in permutation]
    space, (_, own) = merge_dimensions(dims, [strides_of(dims), [strides[d] for d in permutation]])
    return space, own


def _infer(call: OpCall) -> tuple[TensorType, ...]:
    x = call.input()
    call.require(len(set(call.inputs)) == 1, "inputs must have one data type and shape", allowed=str(x))
    return TRANSPOSE.infer(call) * len(call.inputs)


def _reference(arrays: Sequence[Array | None], attrs: Attrs, outputs: tuple[TensorType, ...]) -> list[Array]:
    return [np.transpose(x, attrs["permutation"]) for x in arrays if x is not None]


def _lower(low: Lowering) -> list[KernelCall]:
    type_, outputs = low.input(), low.node.outputs
    permutation: tuple[int, ...] = low.attrs["permutation"]
    places = [place_of(low, i) for i in range(len(outputs))]
    dims, own = _merged(type_, permutation, places[0].strides)
    # Parts of larger tensors may begin anywhere, and their rows are as long as those of these tensors.
    together = transposed_together(type_, permutation, low.target) and all(
        place.strides == places[0].strides and copies_quads(place.start, dims, own) for place in places
    )
    if not together:
        shape, target, reason = low.output().shape, low.target, f"permutation {list(permutation)}"
        return [
            strided_call(p.value, type_.data_type, p.start, shape, [p.strides[d] for d in permutation], output, target, reason)
            for p, output in zip(places, outputs, strict=True)
        ]
    kernel, element = ProductKernel(), bits_of(type_.data_type)
    for i, place in enumerate(places):
        kernel.bind(Binding(name=f"input{i}", access="read", element=element, quad=True), place.value)
    for i, output in enumerate(outputs):
        kernel.bind(Binding(name=f"output{i}", access="write", element=element, quad=True), output)
    quads = type_.num_elements // QUAD
    blocks = -(-quads // WORKGROUP)
    kernel.uniforms(quads=quads, blocks=blocks, workgroups=len(outputs) * blocks, row_quads=dims[-1] // QUAD)
    for i, place in enumerate(places):
        kernel.uniforms(**{f"start_{i}": place.start // QUAD})
    for d, (size, step) in enumerate(zip(dims[:-1], own[:-1], strict=True)):
        kernel.uniforms(**{f"dim_{d}": size, f"input_stride_{d}": step // QUAD})
    kernel.params["rank"] = len(dims) - 1
    reason = f"permutation {list(permutation)} of {counted(len(outputs), 'tensor')}"
    return [kernel.call(_TEMPLATE, grid_1d(len(outputs) * blocks, low.caps), reason)]


TRANSPOSES = OpDef(
    name="transposes",
    operands=(Operand(name="inputs", variadic=True),),
    infer=_infer,
    reference=_reference,
    lower=_lower,
    attrs=(Attr("permutation", "uints", None),),
    templates=(_TEMPLATE, STRIDED),
    family=Family.MOVEMENT,
    without=("elementwise", "epilogue", "layout", "precision", "gradient"),
    movement=Movement(reads_parts=True),
    cost=MOVED,
    bounds=EXACT,
    internal=True,
)
"""The transposes of several tensors of one type with one permutation."""

OPS = (TRANSPOSES,)
