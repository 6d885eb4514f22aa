"""Builder of the kernel calls of matrix products, and the addend, epilogue and result that all these kernels share."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field, replace

from ..kernels.spec import Binding, Grid, KernelCall, KernelTemplate, Operand, Temp, UniformType, Work
from ..kernels.terms import OPAQUE_ZERO
from ._def import Lowering
from ._quads import has_wide_words

_Field = tuple[str, UniformType, int | float]


@dataclass(frozen=True)
class Addend:
    """The addend of a single product: `beta` times a value that broadcasts to the matrix."""

    value: Operand
    data_type: str
    shape: tuple[int, ...]
    beta: float


Read = Callable[[Sequence[int]], str]
"""Returns how a kernel addresses an operand of a shape for an element of a result: see `shaders/lib/product.wgsl.j2`."""


@dataclass(kw_only=True)
class ProductKernel:
    """The parts of a kernel call while they are put together."""

    bindings: list[Binding] = field(default_factory=list[Binding])
    operands: list[Operand] = field(default_factory=list[Operand])
    fields: list[_Field] = field(default_factory=list["_Field"])
    params: dict[str, Hashable] = field(default_factory=dict[str, Hashable])
    features: list[str] = field(default_factory=list[str])
    reads: dict[str, str] = field(default_factory=dict[str, str])
    """Where operands besides the factors are found, by binding."""

    def bind(self, binding: Binding, operand: Operand) -> None:
        """Add a binding and its operand."""
        self.bindings.append(binding)
        self.operands.append(operand)

    def bind_weights(self, binding: Binding, operand: Operand, zero_point: int) -> None:
        """Add the binding of weights, and the uniform of their zero point unless it is 0."""
        self.bind(replace(binding, zero_point=zero_point != 0), operand)
        if zero_point:
            self.uniform(f"{binding.name}_zero", zero_point, "f32")

    def uniform(self, name: str, value: int | float, type_: UniformType = "u32") -> None:
        """Add a uniform."""
        self.fields.append((name, type_, value))

    def uniforms(self, **values: int) -> None:
        """Add unsigned uniforms."""
        for name, value in values.items():
            self.uniform(name, value)

    def call(self, template: KernelTemplate, grid: Grid, reason: str, work: Work | None = None) -> KernelCall:
        """Return the call."""
        uniforms: list[tuple[str, UniformType]] = [(name, type_) for name, type_, _ in self.fields]
        spec = template.spec(self.bindings, uniforms, features=self.features, **self.params)
        return KernelCall(
            spec=spec,
            operands=tuple(self.operands),
            uniforms=tuple(value for _, _, value in self.fields),
            grid=grid,
            reason=reason,
            work=work,
        )


def factor_buffer(low: Lowering, name: str, data_type: str, *, in_subgroup: bool, quad: bool, pairs: bool = False) -> Binding:
    """Return the binding of a factor of products that a kernel reads from a buffer.

    Args:
        low: the node.
        name: the name of the binding.
        data_type: the data type of the factor.
        in_subgroup: whether the kernel works in the registers of a subgroup, and may read words of 64 bits.
        quad: whether the kernel reads it in quads.
        pairs: whether it may read two quads at once.
    """
    wide = in_subgroup and has_wide_words(low.target)
    words = 0 if not wide or not quad or data_type != "float32" else 4 if pairs else 2
    return Binding(name=name, access="read", element=data_type, quad=quad, words=words)


def finish(
    kernel: ProductKernel,
    low: Lowering,
    whole: bool,
    read: Read,
    addend: Addend | None,
    *,
    row: int,
    scaled: bool = False,
    into: Temp | None = None,
    octets: bool = False,
) -> None:
    """Declare the addend and the epilogue of a kernel's sums, and the memory of its result.

    Args:
        kernel: the kernel, which receives the parameters `c_read`, `expression` and `extra_reads`.
        low: the node, with its epilogue.
        whole: whether the kernel stores the result in whole quads.
        read: returns how the kernel addresses the addend and the epilogue's operands.
        addend: the addend, or None.
        row: the number of columns of the whole result.
        scaled: whether the kernel scales the sum first.
        into: scratch memory for a float32 result without an epilogue, or None for the node's result.
        octets: whether the kernel has whole pairs of quads. It stores them in words of 64 bits, and reads operands so, unless
            some of these have other data types or the result is a part of a tensor.
    """
    part = None if into else low.part
    kernel.uniforms(row=part.row if part else row, start=part.start if part else 0)
    # Factors of 1 are left out: the product then shares its pipeline with all others that have none.
    kernel.params["c_read"] = c_read = read(addend.shape) if addend else ""
    if addend:
        kernel.reads["c"] = c_read
        kernel.bind(
            Binding(name="c", access="read", element=addend.data_type, quad=whole and c_read in ("full", "columns")),
            addend.value,
        )
        if addend.beta != 1:
            kernel.uniform("beta", addend.beta, "f32")
    epilogue = None if into else low.epilogue
    reads: list[str] = []
    output = epilogue.output if epilogue else low.node.outputs[0]
    operands = epilogue.operands if epilogue else ()
    others = epilogue.others if epilogue else ()
    float32 = {low.graph.type(value).data_type for value in (*operands, output, *others)} == {"float32"}
    words = 4 if octets and (into or (part is None and float32)) else 0
    if epilogue:
        for i, value in enumerate(epilogue.operands):
            own = low.graph.type(value)
            reads.append(read(own.shape))
            kernel.reads[f"extra{i}"] = reads[-1]
            quad = whole and reads[-1] not in ("rows", "one")
            own_words = words if reads[-1] == "full" else 0
            kernel.bind(
                Binding(name=f"extra{i}", access="read", element=own.data_type, quad=quad, words=own_words),
                value,
            )
        kernel.fields += epilogue.uniforms
        if OPAQUE_ZERO not in {name for name, _, _ in epilogue.uniforms} and (scaled or addend):
            kernel.uniform(OPAQUE_ZERO, 0)
        kernel.features += epilogue.expression.features
    kernel.params |= {"expression": epilogue.expression if epilogue else None, "extra_reads": tuple(reads)}
    kernel.reads["output"] = "part" if part else "full"
    for i, value in enumerate(others, 1):
        kernel.reads[f"output{i}"] = "full"
        element = low.graph.type(value).data_type
        kernel.bind(Binding(name=f"output{i}", access="write", element=element, quad=whole, words=words), value)
    if into:
        kernel.bind(Binding(name="output", access="write", element="float32", quad=whole, words=words), into)
        return
    kernel.bind(
        Binding(name="output", access="write", element=low.graph.type(output).data_type, quad=whole, words=words),
        part.value if part else output,
    )
