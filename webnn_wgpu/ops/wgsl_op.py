"""`wgslOp`: a kernel of the application, as an operator of its graph."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

import numpy as np

from ..core.errors import NotSupportedError, OperationError
from ..ir.graph import Array, Attrs
from ..ir.types import TensorType
from ..kernels.own import check_elements, declared_bindings, own_spec
from ..kernels.spec import Binding, Grid, KernelCall, KernelSpec
from ._attrs import Attr
from ._def import Lowering, OpCall, OpDef, Operand
from ._rows import to_type
from .interfaces.bounds import OF_LARGEST
from .interfaces.family import Family


@dataclass(frozen=True, kw_only=True)
class OwnKernel:
    """A kernel of the application.

    Attributes:
        label: the operator's name in messages.
        source: the WGSL, constants included.
        given: the declarations of its constants and its inputs' data types.
        outputs: the types of its outputs.
        workgroups: the number of workgroups of a dispatch.
        reference: the numpy function of the inputs that returns the output or a sequence of outputs. None means unknown.
    """

    label: str
    source: str = field(repr=False)
    given: tuple[str, ...] = field(repr=False)
    outputs: tuple[TensorType, ...]
    workgroups: Grid
    reference: Callable[..., Any] | None = None

    def spec(self, inputs: Sequence[TensorType]) -> KernelSpec:
        """Return the kernel for inputs of some types."""
        read = [Binding(name=f"input{i}", access="read", element=t.data_type, exact=True) for i, t in enumerate(inputs)]
        written = [
            Binding(name=f"output{i}", access="write", element=t.data_type, exact=True) for i, t in enumerate(self.outputs)
        ]
        return own_spec("wgsl_op", self.source, [*read, *written], self.given)


def _infer(call: OpCall) -> tuple[TensorType, ...]:
    kernel: OwnKernel = call.attrs["kernel"]
    wanted = [(f"input {i}", "read") for i in range(len(call.inputs))]
    wanted += [(f"output {i}", "read_write") for i in range(len(kernel.outputs))]
    declared = declared_bindings(kernel.source, call.fail)
    if len(declared) != len(wanted):
        raise call.fail(
            "the shader must declare a storage buffer for every input, then for every output",
            got=", ".join(f"{i}: {d.name}" for i, d in enumerate(declared)) or "none",
            allowed=", ".join(f"{i}: {what}" for i, (what, _) in enumerate(wanted)),
        )
    types = [*call.inputs, *kernel.outputs]
    for i, ((what, access), found, type_) in enumerate(zip(wanted, declared, types, strict=True)):
        if found.access != access:
            raise call.fail(
                f"binding {i}, {what}, must be declared var<storage, {access}>",
                got=f"var<storage, {found.access}> {found.name}",
            )
        if type_ is not None:
            hint = f"array<T{i}> fits any data type" if access == "read" else "Change the declaration, or output_types"
            check_elements(found.name, found.type, type_.numpy, call.fail, bits=True, hint=hint)
    return tuple(call.output(t.data_type, t.shape) for t in kernel.outputs)


def _reference(arrays: Sequence[Array | None], attrs: Attrs, out: tuple[TensorType, ...]) -> list[Array]:
    kernel: OwnKernel = attrs["kernel"]
    if kernel.reference is None:
        raise NotSupportedError(
            "the kernel has no reference to compute it without a device",
            operator="wgsl_op",
            label=kernel.label,
            hint="Give wgsl_op a function as reference",
        )
    given: Any = kernel.reference(*arrays)
    several = cast("Sequence[Any]", given) if isinstance(given, tuple | list) else [given]
    made: list[Array] = [np.asarray(r) for r in several]
    # A reference may compute in 64 bits: floats are the more exact then, and numpy counts and sorts in int64.
    kinds = {np.dtype(np.float64): "f", np.dtype(np.int64): "iu", np.dtype(np.uint64): "iu"}
    wide = [t.numpy.kind in kinds.get(r.dtype, "") for r, t in zip(made, out, strict=False)]
    results = [to_type(r, t) if each else r for r, t, each in zip(made, out, wide, strict=False)]
    if len(made) != len(out):
        wrong = "an array for every output"
    elif [r.shape for r in results] != [t.shape for t in out]:
        wrong = "arrays of the outputs' shapes"
    else:
        wrong = "" if [r.dtype for r in results] == [t.numpy for t in out] else "arrays of the outputs' data types"
    if wrong:
        raise OperationError(
            f"the reference must return {wrong}",
            operator="wgsl_op",
            label=kernel.label,
            got=", ".join(f"{r.dtype}{list(r.shape)}" for r in made),
            allowed=", ".join(map(str, out)),
        )
    return results


def _lower(low: Lowering) -> list[KernelCall]:
    kernel: OwnKernel = low.attrs["kernel"]
    spec = kernel.spec([low.input(i) for i in range(len(low.node.inputs))])
    operands = (*low.node.operands, *low.node.outputs)
    return [
        KernelCall(spec=spec, operands=operands, uniforms=(), grid=kernel.workgroups, reason="a kernel of the program's own")
    ]


OPS = (
    OpDef(
        name="wgslOp",
        operands=(Operand(name="inputs", variadic=True),),
        infer=_infer,
        reference=_reference,
        lower=_lower,
        attrs=(Attr("kernel", "made"),),
        family=Family.OTHER,
        without=("elementwise", "epilogue", "movement", "layout", "precision", "cost", "gradient"),
        bounds=OF_LARGEST,
        outputs=("outputs",),
        internal=True,
        opaque=True,
    ),
)
