"""gru, lstm and their cells in one dispatch: a workgroup computes all time steps of some batch rows of a direction.

The states are in workgroup memory, in float32 between time steps. A share of the weights stays in registers for all steps. One
core reads the rest in every step, so the costs choose this kernel only for weights up to a limit of about 1 MB.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, replace
from operator import mul

from ..core.data_types import DATA_TYPES
from ..kernels.element import QUAD, padded_bytes
from ..kernels.spec import Binding, KernelCall, KernelTemplate
from ._def import Lowering
from ._factors import Factor, row_major
from ._recurrent_network import BoundOperand, Field, Network, Sizes, initial_states, with_quads

SEQUENCE = KernelTemplate("recurrent.sequence", ("cell", "width", "capacity", "invocations", "rows", "phases"))

_UNROLL = 8
"""Units of the state whose weights an invocation reads at once, as in the template."""

_MOST_SHARES = 8
"""Invocations that share a sum, at most. An invocation adds the shares of a sum up one after the other."""

_FEWEST_INVOCATIONS = 64


@dataclass(frozen=True, kw_only=True)
class _Phase:
    """A phase of a step: columns of the recurrent weights that are multiplied by one state.

    Attributes:
        number: its place among the phases.
        source: the state: "h", or "reset" for r * h.
        first: the first gate whose columns are multiplied.
        gates: how many gates there are of these.
        shares: invocations that share a sum.
        held: units of the state whose weights an invocation holds in registers.
        streams: whether an invocation reads further weights in every step.
        looped: whether an invocation sums up several groups of columns, one after the other.
    """

    number: int
    source: str
    first: int
    gates: int
    shares: int
    held: int
    streams: bool
    looped: bool


@dataclass(frozen=True, kw_only=True)
class _Form:
    """The form of the kernel for some sizes: its parameters, as the template describes them, and the lengths of the phases."""

    width: int
    capacity: int
    invocations: int
    rows: int
    phases: tuple[_Phase, ...]
    lengths: tuple[int, ...]

    @property
    def units(self) -> int:
        """Units that a workgroup has room for."""
        return self.rows * self.capacity

    @property
    def room(self) -> int:
        """Elements of a row of the state, with those past the last unit that shares reach."""
        return self.capacity + max(_UNROLL, *(phase.held for phase in self.phases))

    def memory_bytes(self, gates: int) -> int:
        """Return the workgroup memory that the template declares."""
        states = self.room
        if gates == 4 or len(self.phases) == 2:
            states += self.capacity
        if len(self.phases) == 2:
            states += self.room
        sums = max(self.width * self.invocations, gates * self.capacity) + (self.capacity if gates == 3 else 0)
        return 4 * self.rows * (states + sums)


def _form(low: Lowering, sizes: Sizes) -> _Form:
    """Return the form of the kernel for a node: with as many batch rows per workgroup as the costs want and memory allows."""
    costs, caps = low.target.costs.recurrent, low.caps
    width = QUAD if sizes.N % QUAD == 0 else 1
    most = min(costs.sequence_invocations, caps.limit("max-compute-invocations-per-workgroup"))
    parts = (("h", 0, sizes.gates),) if low.attrs.get("reset_after", True) else (("h", 0, 2), ("reset", 2, 1))
    columns = [gates * sizes.H // width for _, _, gates in parts]
    shares = [max(1, min(_MOST_SHARES, most // c, -(-sizes.H // _UNROLL))) for c in columns]
    lengths = [-(-sizes.H // (_UNROLL * s)) * _UNROLL for s in shares]
    shares = [-(-sizes.H // length) for length in lengths]
    rows = 1
    # Quads of float32: drivers convert the held weights before the first step, so float16 takes as many registers.
    room = costs.sequence_registers // QUAD
    held = [length if c <= most else 0 for c, length in zip(columns, lengths, strict=True)]
    if sum(held) > room or max(columns) > most:
        rows = costs.sequence_rows(sizes.D, sizes.B)
        # Some registers hold the weights that each step reads. Further batch rows take all other registers.
        kept = max(0, room - _UNROLL) if rows == 1 and columns[0] <= most else 0
        held = [min(lengths[0], kept), *(0 for _ in parts[1:])]
    form = _Form(
        width=width,
        # A power of two, so that few kernels serve all sizes.
        capacity=max(64, 1 << (sizes.H - 1).bit_length()),
        invocations=min(most, max(_FEWEST_INVOCATIONS, 1 << (max(map(mul, columns, shares)) - 1).bit_length())),
        rows=rows,
        phases=tuple(
            _Phase(
                number=i,
                source=source,
                first=first,
                gates=gates,
                shares=shares[i],
                held=held[i],
                streams=held[i] < lengths[i],
                looped=columns[i] > most,
            )
            for i, (source, first, gates) in enumerate(parts)
        ),
        lengths=tuple(lengths),
    )
    limit = caps.limit("max-compute-workgroup-storage-size")
    while form.rows > 1 and form.memory_bytes(sizes.gates) > limit:
        form = replace(form, rows=form.rows // 2)
    return form


def obstacle(low: Lowering, sizes: Sizes) -> str:
    """Return why the kernel cannot be had, or nothing."""
    form = _form(low, sizes)
    memory, limit = form.memory_bytes(sizes.gates), low.caps.limit("max-compute-workgroup-storage-size")
    if memory > limit:
        return f"the state does not fit workgroup memory: {memory} bytes of {limit}"
    weights = DATA_TYPES[low.input().data_type].size_bytes * sizes.D * sizes.H * sizes.N
    if not sizes.rows_fit(low) or padded_bytes(weights) > low.caps.limit("max-storage-buffer-binding-size"):
        return "the parts of tensors that a step touches fit a binding, the tensors do not"
    iterations, most = _iterations(form, sizes), low.target.costs.launches.most_iterations
    return f"{iterations} iterations of {most}" if iterations > most else ""


def _iterations(form: _Form, sizes: Sizes) -> int:
    """Return how many iterations the loops of an invocation make, or some more."""
    passes = -(-form.units // form.invocations)
    step = 1 + len(form.phases) * passes
    for phase, length in zip(form.phases, form.lengths, strict=True):
        groups = -(-phase.gates * sizes.H // (form.width * form.invocations))
        step += groups * (1 + (length - phase.held) // _UNROLL)
    return 1 + sizes.S * step + 4 * passes


def bindings_besides(low: Lowering) -> int:
    """Return how many buffers the kernel binds besides its vectors: projection and weights, initial states, outputs."""
    return 2 + len(initial_states(low)) + len(low.node.outputs)


def sequence_calls(network: Network, reason: str, calls: list[KernelCall]) -> None:
    """Add the call that makes all steps."""
    low, sizes = network.low, network.sizes
    form = _form(low, sizes)
    weight = low.input(2)
    # They are read along the columns: transposed.
    factor = Factor(low.value(2), weight.data_type, weight.shape, transposed=True)
    binding = Binding(name="recurrent_weight", access="read", element=weight.data_type, quad=form.width == QUAD)
    weights = BoundOperand(binding, row_major(low, factor, "recurrent_weight", calls))
    projection = with_quads(network.projection, form.width == QUAD)
    bound = (projection, weights, *network.vectors, *network.initial.values(), *network.outputs)
    # Where each invocation has one unit, it loads that unit's bias and peepholes once.
    held = replace(network, cell=replace(network.cell, held=form.units <= form.invocations))
    blocks = -(-sizes.B // form.rows)
    numbers = {"blocks": blocks, "tiles": sizes.D * blocks}
    numbers |= {f"length_{i}": length for i, length in enumerate(form.lengths)}
    fields: list[Field] = [(name, "u32", number) for name, number in numbers.items()]
    params: dict[str, Hashable] = {
        "width": form.width,
        "capacity": form.capacity,
        "invocations": form.invocations,
        "rows": form.rows,
        "phases": form.phases,
    }
    calls.append(held.call(SEQUENCE, bound, fields, sizes.D * blocks, reason, params))
