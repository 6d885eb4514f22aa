"""The sums of the columns of several tensors in one kernel, which passes make of sums such as the gradients of biases."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from ..core.data_types import FLOATS
from ..core.wording import counted
from ..costs import Target
from ..costs.rows import SHARING_INVOCATIONS, SharedColumns
from ..ir.graph import Array, Attrs
from ..ir.types import TensorType
from ..kernels.element import QUAD, element_of
from ..kernels.spec import Binding, KernelCall, KernelTemplate, grid_1d
from ._attrs import Attr
from ._def import Lowering, OpCall, OpDef, Operand
from ._product_kernel import ProductKernel
from ._quads import OCTET, fits_binding, reads_octets
from ._reduction import reduced_shape
from ._reduction_bounds import SUM
from ._reduction_functions import arithmetic
from ._rows import to_type, wide
from .interfaces.cost import per_element
from .interfaces.family import Family
from .reduce import ReduceTensor, reduce_calls

_TEMPLATE = KernelTemplate("column_sums", ("lanes", "loads"))
_OCTETS = KernelTemplate("column_sums.octets")
"""The kernel whose invocations sum up eight columns each, and share none."""

_INVOCATIONS = 64
"""Invocations of a workgroup of that kernel."""

_AT_ONCE = 4
"""Items that it reads at once."""

MOST_TENSORS = 4
"""Most tensors of a kernel: with their sums they take the 8 storage buffers that WebGPU guarantees."""


def shared_columns(type_: TensorType, axes: Sequence[int], target: Target) -> SharedColumns | None:
    """Return how workgroups share the columns of a tensor whose first dimensions are summed up.

    None if sums take several kernels or another one.
    """
    items = math.prod(type_.shape[: len(axes)])
    columns = type_.num_elements // items
    if tuple(axes) != tuple(range(len(axes))) or columns % QUAD or not fits_binding(type_, target.caps):
        return None
    shares = target.costs.rows.shared_columns(columns // QUAD, items)
    return shares if shares is not None and shares.parts == 1 else None


def _in_octets(type_: TensorType, axes: Sequence[int], target: Target) -> bool:
    """Return whether invocations sum up eight columns each of a tensor whose first dimensions are summed up."""
    items = math.prod(type_.shape[: len(axes)])
    columns = type_.num_elements // items
    if tuple(axes) != tuple(range(len(axes))) or columns % OCTET or items % _AT_ONCE or not reads_octets([type_], target):
        return False
    # As sums of a single tensor: an invocation for neighboring columns, and no parts.
    rows = target.costs.rows
    return columns >= rows.many_rows and items >= rows.short_row and rows.parts(1, items, 1) <= 1


def sums_together(type_: TensorType, axes: Sequence[int], target: Target) -> bool:
    """Return whether a kernel sums up the first dimensions of several tensors of a type."""
    return shared_columns(type_, axes, target) is not None or _in_octets(type_, axes, target)


def _infer(call: OpCall) -> tuple[TensorType, ...]:
    x, axes = call.input(), call.attrs["axes"]
    shape = reduced_shape(x.shape, axes, call.attrs["keep_dimensions"])
    call.require(tuple(axes) == tuple(range(len(axes))), "axes must be the first dimensions", got=str(axes))
    call.require(len(set(call.inputs)) == 1, "inputs must have one data type and shape", allowed=str(x))
    return tuple(call.output(x.data_type, shape) for _ in call.inputs)


def _reference(arrays: Sequence[Array | None], attrs: Attrs, outputs: tuple[TensorType, ...]) -> list[Array]:
    found: list[Array] = []
    for x, type_ in zip(arrays, outputs, strict=True):
        assert x is not None
        with np.errstate(all="ignore"):
            found.append(to_type(wide(x).sum(axis=attrs["axes"]), type_).reshape(type_.shape))
    return found


def _lower(low: Lowering) -> list[KernelCall]:
    x, axes = low.input(), low.attrs["axes"]
    count, element = len(low.node.outputs), element_of(x.data_type, low.caps)
    items = math.prod(x.shape[: len(axes)])
    columns = x.num_elements // items
    reason = f"{counted(items, 'row')} of {counted(count, 'tensor')} of {columns} columns"
    shares, kernel = shared_columns(x, axes, low.target), ProductKernel()
    octets = shares is None and _in_octets(x, axes, low.target)
    words = 4 if octets else 0
    for i in range(count):
        kernel.bind(Binding(name=f"input{i}", access="read", element=element, quad=True, words=words), low.value(i))
    for i, output in enumerate(low.node.outputs):
        kernel.bind(Binding(name=f"output{i}", access="write", element=element, quad=True, words=words), output)
    if octets:
        blocks = -(-columns // OCTET // _INVOCATIONS)
        kernel.uniforms(items=items, octets=columns // OCTET, blocks=blocks, workgroups=count * blocks)
        return [kernel.call(_OCTETS, grid_1d(count * blocks, low.caps), reason)]
    if shares is None:
        step = arithmetic("sum", "f32")
        calls: list[KernelCall] = []
        for i, output in enumerate(low.node.outputs):
            source, target = ReduceTensor(low.value(i), element, x.shape), ReduceTensor(output, element)
            calls += reduce_calls(low, step, source, axes, target, key=f"parts of {i}")
        return calls
    kernel.params |= {"lanes": shares.lanes, "loads": low.target.costs.rows.loads}
    quads = columns // QUAD
    blocks = -(-quads * shares.lanes // SHARING_INVOCATIONS)
    kernel.uniforms(items=items, quads=quads, blocks=blocks, workgroups=count * blocks)
    return [kernel.call(_TEMPLATE, grid_1d(count * blocks, low.caps), reason)]


COLUMN_SUMS = OpDef(
    name="columnSums",
    operands=(Operand(name="inputs", data_types=FLOATS, variadic=True),),
    infer=_infer,
    reference=_reference,
    lower=_lower,
    attrs=(Attr("axes", "uints"), Attr("keep_dimensions", "bool", False)),
    templates=(_TEMPLATE, _OCTETS),
    family=Family.REDUCTION,
    without=("elementwise", "epilogue", "movement", "layout", "precision", "gradient"),
    cost=per_element(1),
    bounds=SUM,
    internal=True,
)
"""The sums of several tensors of one type along their first dimensions."""

OPS = (COLUMN_SUMS,)
