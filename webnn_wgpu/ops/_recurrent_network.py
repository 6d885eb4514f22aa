"""Common parts of all variants of gru, lstm and their cells: sizes, bindings, and the product of all steps' inputs."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType

from ..core.data_types import DATA_TYPES
from ..ir.graph import Node, Value
from ..ir.types import TensorType
from ..kernels.element import padded_bytes
from ..kernels.packing import Permuted
from ..kernels.spec import Binding, KernelCall, KernelTemplate, Operand, Packed, Temp, UniformType, Work, grid_1d
from ..kernels.terms import Symbol, Term
from ._cells import ACTIVATIONS, is_forward
from ._def import Lowering
from ._factors import Factor
from ._product import product_calls
from ._product_kernel import Addend

Field = tuple[str, UniformType, int | float]
"""A uniform: its name, type and value."""


@dataclass(frozen=True, kw_only=True)
class Vector:
    """The position of the recurrent bias or the peepholes in a binding.

    Attributes:
        name: "recurrent_bias" or "peephole_weight".
        binding: the name of the binding that holds it.
        offset: its start in a direction's row of that binding, in hidden sizes.
        row: the length of the row, in hidden sizes.
        length: its own length, in hidden sizes.
    """

    name: str
    binding: str
    offset: int
    row: int
    length: int


@dataclass(frozen=True, kw_only=True)
class CellText:
    """The parameters of a cell's WGSL, for `shaders/lib/recurrent.wgsl.j2`.

    Attributes:
        gates: the gates' letters in the order of the weights: zrn, rzn, iofg or ifgo.
        reset_after: whether the kernel applies gru's reset gate after the product.
        vectors: the vectors that the node has, among recurrent bias and peepholes.
        activations: the activations, as functions of `x`.
        library: the files of `shaders/lib/math` that the activations call.
        held: whether an invocation computes a single unit and loads its elements of the vectors before the first time step.
    """

    gates: str
    reset_after: bool
    vectors: tuple[Vector, ...]
    activations: tuple[Term, ...]
    library: tuple[str, ...]
    held: bool = False


@dataclass(frozen=True, kw_only=True)
class Sizes:
    """Sizes by the names they have in the shaders: directions, steps, batch, hidden units, and gates times units."""

    D: int
    S: int
    B: int
    H: int
    N: int

    @property
    def gates(self) -> int:
        """How many gates there are."""
        return self.N // self.H

    def rows_fit(self, low: Lowering) -> bool:
        """Return whether the projection, and a tensor with an element per step, direction, batch row and unit, can be bound."""
        element_bytes = DATA_TYPES[low.input().data_type].size_bytes
        rows = self.S * self.D * self.B
        limit = low.caps.limit("max-storage-buffer-binding-size")
        return padded_bytes(rows * max(4 * self.N, element_bytes * self.H)) <= limit


@dataclass(frozen=True)
class BoundOperand:
    """A binding with its operand."""

    binding: Binding
    operand: Operand


def with_quads(bound: BoundOperand, quad: bool) -> BoundOperand:
    """Return a bound operand whose elements are read in quads, or one by one."""
    return replace(bound, binding=replace(bound.binding, quad=quad))


@dataclass(frozen=True, kw_only=True)
class Network:
    """The parts of one node that all variants need.

    Attributes:
        low: the node.
        cell: the parameters of the cell's WGSL.
        sizes: the sizes of the node.
        projection: the contribution of all steps' inputs to the gates' sums, [S * B, D, N].
        vectors: the bindings of the cell's vectors.
        initial: the given states before the first time step, by name.
        fields: the uniforms that every kernel has.
    """

    low: Lowering
    cell: CellText
    sizes: Sizes
    projection: BoundOperand
    vectors: tuple[BoundOperand, ...]
    initial: MappingProxyType[str, BoundOperand]
    fields: tuple[Field, ...]

    @property
    def is_lstm(self) -> bool:
        """Whether there is a cell state."""
        return "i" in self.cell.gates

    @property
    def states(self) -> tuple[str, ...]:
        """Names of the states."""
        return ("hidden", "cell") if self.is_lstm else ("hidden",)

    @property
    def outputs(self) -> tuple[BoundOperand, ...]:
        """The outputs: `new_hidden`, with lstm `new_cell`, and `sequence` where it is wanted."""
        names = (*(f"new_{state}" for state in self.states), "sequence")
        data_type = self.low.output().data_type
        return tuple(
            BoundOperand(Binding(name=name, access="write", element=data_type), output)
            for name, output in zip(names, self.low.node.outputs, strict=False)
        )

    def call(
        self,
        template: KernelTemplate,
        bound: Sequence[BoundOperand],
        fields: Sequence[Field],
        workgroups: int,
        reason: str,
        params: Mapping[str, Hashable],
        *,
        work: Work | None = None,
        features: Sequence[str] = (),
    ) -> KernelCall:
        """Return a kernel call with this network's own uniforms and `fields`, and template parameters besides the cell."""
        fields = (*self.fields, *fields)
        uniforms: list[tuple[str, UniformType]] = [(name, type_) for name, type_, _ in fields]
        spec = template.spec([b.binding for b in bound], uniforms, features=features, cell=self.cell, **params)
        operands = tuple(b.operand for b in bound)
        return KernelCall(
            spec=spec,
            operands=operands,
            uniforms=tuple(v for _, _, v in fields),
            grid=grid_1d(workgroups, self.low.caps),
            reason=reason,
            work=work,
        )


def sizes_of(low: Lowering) -> Sizes:
    """Return a node's sizes."""
    x, hidden = low.input(0), low.attrs["hidden_size"]
    steps = x.shape[0] if x.rank == 3 else 1
    directions = low.output().shape[0] if x.rank == 3 else 1
    return Sizes(D=directions, S=steps, B=x.shape[-2], H=hidden, N=len(low.attrs["layout"]) * hidden)


def make_network(low: Lowering, sizes: Sizes, others: int, calls: list[KernelCall]) -> Network:
    """Return a node's parts, and add the kernel calls that compute the contribution of the inputs.

    Args:
        low: the node.
        sizes: the sizes of the node.
        others: the maximum number of a kernel's bindings, without its vectors.
        calls: the list that receives the calls.
    """
    projection = BoundOperand(Binding(name="projection", access="read"), _projection(low, sizes, calls))
    vectors, bound = _vectors(low, others, calls)
    activations, library, fields = _activations(low)
    cell = CellText(
        gates=low.attrs["layout"],
        reset_after=low.attrs.get("reset_after", True),
        vectors=vectors,
        activations=activations,
        library=library,
    )
    backward = sum(1 << d for d in range(sizes.D) if not is_forward(low.attrs.get("direction", "forward"), d))
    numbers = {"D": sizes.D, "S": sizes.S, "B": sizes.B, "H": sizes.H, "N": sizes.N, "backward": backward}
    own: list[Field] = [(name, "u32", number) for name, number in numbers.items()]
    return Network(
        low=low,
        cell=cell,
        sizes=sizes,
        projection=projection,
        vectors=bound,
        initial=initial_states(low),
        fields=(*own, *fields),
    )


def initial_states(low: Lowering) -> MappingProxyType[str, BoundOperand]:
    """Return the states before the first step, those that are given, by name."""
    names = (("hidden", "initialHiddenState"), ("hidden", "hiddenState"), ("cell", "initialCellState"), ("cell", "cellState"))
    return MappingProxyType(
        {
            state: BoundOperand(Binding(name=state, access="read", element=low.input().data_type), low.value(_index(low, name)))
            for state, name in names
            if _has(low, name)
        }
    )


def _index(low: Lowering, name: str) -> int:
    return next(i for i, operand in enumerate(low.ops[low.node.op].operands) if operand.name == name)


def _has(low: Lowering, name: str) -> bool:
    return any(o.name == name for o in low.ops[low.node.op].operands) and low.has(_index(low, name))


def _projection(low: Lowering, sizes: Sizes, calls: list[KernelCall]) -> Temp:
    """Add the calls that multiply the inputs of all steps by the weights of both directions, and add the bias."""
    x, weight = low.input(0), low.input(1)
    # The weights of the directions follow each other in memory, like those of a single network.
    columns = sizes.D * sizes.N
    temp = Temp("projection", 4 * sizes.S * sizes.B * columns)
    a = Factor(low.value(0), x.data_type, (sizes.S * sizes.B, x.shape[-1]))
    b = Factor(low.value(1), weight.data_type, (columns, x.shape[-1]), transposed=True)
    if low.is_constant(low.value(1)):
        b = Factor(Packed(low.value(1), Permuted(b.shape, (1, 0))), b.data_type, (b.rows, b.columns))
    bias = None
    if _has(low, "bias"):
        index = _index(low, "bias")
        bias = Addend(low.value(index), low.input(index).data_type, (columns,), 1)
    calls += product_calls(low, a, b, addend=bias, into=temp)
    return temp


def _vectors(low: Lowering, others: int, calls: list[KernelCall]) -> tuple[tuple[Vector, ...], tuple[BoundOperand, ...]]:
    """Return where the vectors are found, and the bindings that hold them.

    Each has its own, unless a kernel, which has `others` besides, would then have more than the device allows: then they
    are joined first.
    """
    spelled = {"recurrentBias": "recurrent_bias", "peepholeWeight": "peephole_weight"}
    names = [name for name in spelled if _has(low, name)]
    if not names:
        return (), ()
    hidden = low.attrs["hidden_size"]
    types = [low.input(_index(low, name)) for name in names]
    values = [low.value(_index(low, name)) for name in names]
    lengths = [t.shape[-1] // hidden for t in types]
    if others + len(names) <= low.caps.limit("max-storage-buffers-per-shader-stage"):
        vectors = tuple(
            Vector(name=spelled[n], binding=spelled[n], offset=0, row=length, length=length)
            for n, length in zip(names, lengths, strict=True)
        )
        bound = tuple(
            BoundOperand(Binding(name=v.binding, access="read", element=t.data_type), value)
            for v, t, value in zip(vectors, types, values, strict=True)
        )
        return vectors, bound
    row = sum(lengths)
    # These are the kernels of a concat that the graph does not have. They store its result in scratch memory.
    type_ = TensorType(types[0].data_type, (*types[0].shape[:-1], row * hidden))
    value = max(low.graph.values) + 1
    graph = replace(low.graph, values={**low.graph.values, value: Value(value, type_)})
    node = Node(
        id=low.node.id,
        op="concat",
        inputs=tuple(values),
        outputs=(value,),
        attrs=MappingProxyType({"axis": type_.rank - 1}),
        label=low.node.label,
    )
    concat = low.ops["concat"].lower
    assert concat is not None
    temp = Temp("vectors", type_.size_bytes)
    for call in concat(replace(low, graph=graph, node=node)):
        calls.append(replace(call, operands=tuple(temp if o == value else o for o in call.operands)))
    starts = [sum(lengths[:i]) for i in range(len(lengths))]
    vectors = tuple(
        Vector(name=spelled[n], binding="vectors", offset=start, row=row, length=length)
        for n, start, length in zip(names, starts, lengths, strict=True)
    )
    return vectors, (BoundOperand(Binding(name="vectors", access="read", element=type_.data_type), temp),)


def _activations(low: Lowering) -> tuple[tuple[Term, ...], tuple[str, ...], list[Field]]:
    """Return the activations as functions of `x`, the library files they call, and their uniforms."""
    data_type = low.input().data_type
    terms: list[Term] = []
    library: list[str] = []
    fields: list[Field] = []
    for i, (name, options) in enumerate(low.attrs["activations"]):
        elementwise = ACTIVATIONS[name].elementwise
        assert elementwise is not None
        formula, prefix = elementwise.formula([data_type], data_type, dict(options)), f"activation_{i}_"
        for field, type_, value in formula.uniforms:
            fields.append((prefix + field, type_, value))
        terms.append(formula.applied([Symbol("x")], prefix))
        library += [file for file in formula.lib if file not in library]
    return tuple(terms), tuple(sorted(library)), fields
