"""Lowering of gru, lstm and their cells: the product of all steps' inputs at once, then the steps.

What the inputs of all steps contribute does not depend on the state, so it is one matrix product, kept in float32. The
steps follow in one of two ways. `sequence` is one dispatch: a workgroup per direction and batch row goes through all the
steps with its state in workgroup memory. `steps` is a dispatch per step (two where gru resets before the product), spread
over the whole device. States are kept in float32 between steps; what leaves the operator is rounded once.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType

from ..core.caps import Caps
from ..core.data_types import DATA_TYPES
from ..core.errors import OperationError
from ..ir.graph import Node, Value
from ..ir.types import TensorType
from ..kernels.element import QUAD, STORAGE_ALIGNMENT_BYTES, padded_bytes
from ..kernels.select import Choice
from ..kernels.spec import Binding, Interval, KernelCall, KernelTemplate, Operand, Temp, UniformType, Work, grid_1d
from ._cells import ACTIVATIONS, is_forward
from ._def import Lowering
from ._product import TEMPLATES as PRODUCTS
from ._product import Factor, product_calls, row_major
from ._quads import MOST_ITERATIONS
from .concat import CONCAT
from .strided import STRIDED, strided_call

_SEQUENCE = KernelTemplate("recurrent.sequence", ("cell", "width", "capacity", "invocations"))
_STEPS = KernelTemplate("recurrent.steps", ("cell", "width", "sources", "rows", "shares"))
VARIANTS = ("sequence", "steps")
"""The ways through the steps."""
TEMPLATES = (_SEQUENCE, _STEPS, *PRODUCTS, STRIDED, CONCAT)
"""All templates, those of the product before the steps included."""

SEQUENCE_WEIGHTS = 2**17
"""Recurrent weights of a direction up to which hardware takes `sequence`: one workgroup reads them all in every step, at
some 100 GB/s, and beyond half a megabyte that takes longer than starting a dispatch. An estimate, not a measurement."""

_STATES = ("hidden", "cell", "reset", "new_hidden", "new_cell", "new_reset")
"""Bindings that hold a number per direction, batch row and unit."""

STEPS_WORKGROUP = 64
"""Invocations per workgroup of the `steps` kernel; the template agrees."""

_Field = tuple[str, UniformType, int | float]


@dataclass(frozen=True)
class Vector:
    """Where a kernel finds a bias or the peepholes of a unit.

    Attributes:
        name: "bias", "recurrent_bias" or "peephole_weight".
        binding: the binding that holds it.
        offset: where in a direction's row of that binding it starts, in hidden sizes.
        row: length of the row, in hidden sizes.
    """

    name: str
    binding: str
    offset: int
    row: int


@dataclass(frozen=True)
class CellText:
    """What the text of a cell depends on; `shaders/lib/recurrent.wgsl.j2` writes it.

    Attributes:
        gates: the gates' letters in the order of the weights: zrn, rzn, iofg or ifgo.
        reset_after: whether gru's reset gate is applied after the product.
        vectors: the biases and peepholes that are given.
        activations: WGSL of the activations, expressions of `x`.
        library: files of `shaders/lib/math` that they call.
    """

    gates: str
    reset_after: bool
    vectors: tuple[Vector, ...]
    activations: tuple[str, ...]
    library: tuple[str, ...]

    @property
    def is_lstm(self) -> bool:
        """Whether there is a cell state."""
        return "i" in self.gates


@dataclass(frozen=True)
class _Sizes:
    """Sizes by the names they have in the shaders: directions, steps, batch, hidden units, and gates times units."""

    D: int
    S: int
    B: int
    H: int
    N: int


@dataclass(frozen=True)
class _Bound:
    """A binding with what it refers to."""

    binding: Binding
    operand: Operand


@dataclass(frozen=True)
class _Block:
    """Hidden units first..end-1 and their recurrent weights, [directions, H, gates, units]."""

    first: int
    end: int
    weights: _Bound


@dataclass(frozen=True)
class _Network:
    """One node's parts, as both variants need them.

    Attributes:
        low: the node.
        cell: the cell's text.
        sizes: its sizes.
        common: the bindings that every kernel has: projection, weights, vectors.
        initial: the states before the first step, those that are given, by name.
        fields: uniforms that every kernel has.
        blocks: the units, in blocks whose weights fit a binding; the weights of the first are among `common`.
    """

    low: Lowering
    cell: CellText
    sizes: _Sizes
    common: tuple[_Bound, ...]
    initial: MappingProxyType[str, _Bound]
    fields: tuple[_Field, ...]
    blocks: tuple[_Block, ...]

    @property
    def states(self) -> tuple[str, ...]:
        """Names of the states."""
        return ("hidden", "cell") if self.cell.is_lstm else ("hidden",)

    @property
    def outputs(self) -> tuple[_Bound, ...]:
        """The outputs: `new_hidden`, with lstm `new_cell`, and `sequence` where it is wanted."""
        names = (*(f"new_{state}" for state in self.states), "sequence")
        data_type = self.low.output().data_type
        return tuple(
            _Bound(Binding(name, "write", data_type), output)
            for name, output in zip(names, self.low.node.outputs, strict=False)
        )

    def call(
        self,
        template: KernelTemplate,
        bound: Sequence[_Bound],
        fields: Sequence[_Field],
        workgroups: int,
        reason: str,
        work: Work | None = None,
        **params: Hashable,
    ) -> KernelCall:
        """Return a kernel call with this network's own uniforms and `fields`."""
        fields = (*self.fields, *fields)
        uniforms: list[tuple[str, UniformType]] = [(name, type_) for name, type_, _ in fields]
        spec = template.spec([b.binding for b in bound], uniforms, features=(), cell=self.cell, **params)
        operands = tuple(b.operand for b in bound)
        return KernelCall(spec, operands, tuple(v for _, _, v in fields), grid_1d(workgroups, self.low.caps), reason, work)


def recurrent_calls(low: Lowering, *vectors: str) -> list[KernelCall]:
    """Return the kernel calls of gru, lstm or one of their cells.

    Args:
        low: the node.
        vectors: names of the operands that hold a vector per direction: biases, then peepholes.

    Raises:
        OperationError: a variant is forced that the device cannot run.
    """
    x, hidden = low.input(0), low.attrs["hidden_size"]
    batch = x.shape[-2]
    steps = x.shape[0] if x.rank == 3 else 1
    directions = low.output().shape[0] if x.rank == 3 else 1
    gates: str = low.attrs["layout"]
    sizes = _Sizes(directions, steps, batch, hidden, len(gates) * hidden)
    choice = _choose(low, sizes)
    calls, projection = _projection(low, sizes)
    blocks = _blocks(low, sizes, calls)
    common = [_Bound(Binding("projection", "read"), projection), blocks[0].weights]
    given = [name for name in vectors if _has(low, name)]
    found, bound = _vectors(low, given, _bindings_besides(low, choice.variant, steps), calls)
    activations, library, fields = _activations(low)
    cell = CellText(gates, low.attrs.get("reset_after", True), found, activations, library)
    sizes_fields: list[_Field] = [(name, "u32", getattr(sizes, name)) for name in ("D", "S", "B", "H", "N")]
    backward = sum(1 << d for d in range(directions) if not is_forward(low.attrs.get("direction", "forward"), d))
    network = _Network(
        low, cell, sizes, (*common, *bound), _initial(low), (*sizes_fields, ("backward", "u32", backward), *fields), blocks
    )
    run = _sequence_calls if choice.variant == "sequence" else _steps_calls
    return [*calls, *run(network, choice.reason)]


# what both variants stand on ----------------------------------------------------------------------------------------------


def _index(low: Lowering, name: str) -> int:
    return next(i for i, operand in enumerate(low.ops[low.node.op].operands) if operand.name == name)


def _has(low: Lowering, name: str) -> bool:
    return any(o.name == name for o in low.ops[low.node.op].operands) and low.has(_index(low, name))


def _initial(low: Lowering) -> MappingProxyType[str, _Bound]:
    names = (("hidden", "initialHiddenState"), ("hidden", "hiddenState"), ("cell", "initialCellState"), ("cell", "cellState"))
    return MappingProxyType(
        {
            state: _Bound(Binding(state, "read", low.input().data_type), low.value(_index(low, name)))
            for state, name in names
            if _has(low, name)
        }
    )


def _projection(low: Lowering, sizes: _Sizes) -> tuple[list[KernelCall], Temp]:
    """Return the calls that multiply the inputs of all steps by the weights, [directions, steps * batch, gates * units]."""
    temp = Temp("projection", 4 * sizes.D * sizes.S * sizes.B * sizes.N)
    x, weight = low.input(0), low.input(1)
    rows = Factor(low.value(0), x.data_type, (sizes.S * sizes.B, x.shape[-1]))
    columns = Factor(low.value(1), weight.data_type, weight.shape, transposed=True)
    return product_calls(low, rows, columns, into=temp), temp


def _blocks(low: Lowering, sizes: _Sizes, calls: list[KernelCall]) -> tuple[_Block, ...]:
    """Return the units in blocks whose recurrent weights fit a binding; they are read along the units: transposed."""
    weight, limit = low.input(2), low.caps.limit("max-storage-buffer-binding-size")
    element_bytes = DATA_TYPES[weight.data_type].size_bytes
    binding = Binding("recurrent_weight", "read", weight.data_type, quad=sizes.H % QUAD == 0)
    of_direction = sizes.H * sizes.N * element_bytes
    room = limit - STORAGE_ALIGNMENT_BYTES - (0 if sizes.D == 1 else low.caps.limit("min-storage-buffer-offset-alignment"))
    if of_direction <= room or padded_bytes(sizes.D * of_direction) <= limit:
        factor = Factor(low.value(2), weight.data_type, weight.shape, transposed=True)
        return (_Block(0, sizes.H, _Bound(binding, row_major(low, factor, "recurrent_weight", calls))),)
    gates = sizes.N // sizes.H
    width = max(QUAD, room // (sizes.H * gates * element_bytes) // QUAD * QUAD)
    blocks: list[_Block] = []
    for first in range(0, sizes.H, width):
        end = min(sizes.H, first + width)
        dims = (sizes.D, sizes.H, gates, end - first)
        temp = Temp(f"recurrent_weight {first}", math.prod(dims) * element_bytes)
        strides = (sizes.N * sizes.H, 1, sizes.H * sizes.H, sizes.H)
        reason = f"recurrent weights of units {first} to {end}"
        calls.append(strided_call(low.value(2), weight.data_type, first * sizes.H, dims, strides, temp, low.caps, reason))
        blocks.append(_Block(first, end, _Bound(binding, temp)))
    return tuple(blocks)


def _bindings_besides(low: Lowering, variant: str, steps: int) -> int:
    """Return how many bindings the kernel with the most of them has besides its vectors."""
    states = len(_initial(low))
    if variant == "steps" and steps > 1:
        # From the second step on there is a state, also where none was given.
        states = 1 if len(low.attrs["layout"]) == 3 else 2
    reset = variant == "steps" and not low.attrs.get("reset_after", True)
    # Projection and recurrent weights; the states before, r * h, the states after and the sequence.
    return 2 + states + int(reset) + len(low.node.outputs)


def _vectors(
    low: Lowering, names: Sequence[str], others: int, calls: list[KernelCall]
) -> tuple[tuple[Vector, ...], list[_Bound]]:
    """Return where the vectors are found, and the bindings that hold them.

    Each has its own, unless a kernel, which has `others` besides, would then have more than the device allows: then they
    are joined first.
    """
    if not names:
        return (), []
    hidden = low.attrs["hidden_size"]
    types = [low.input(_index(low, name)) for name in names]
    values = [low.value(_index(low, name)) for name in names]
    lengths = [t.shape[-1] // hidden for t in types]
    spelled = {"bias": "bias", "recurrentBias": "recurrent_bias", "peepholeWeight": "peephole_weight"}
    if others + len(names) <= low.caps.limit("max-storage-buffers-per-shader-stage"):
        vectors = tuple(Vector(spelled[n], spelled[n], 0, length) for n, length in zip(names, lengths, strict=True))
        bound = [
            _Bound(Binding(v.binding, "read", t.data_type), value) for v, t, value in zip(vectors, types, values, strict=True)
        ]
        return vectors, bound
    row = sum(lengths)
    # The kernels of concat, as if the graph had one; their result goes to scratch memory.
    type_ = TensorType(types[0].data_type, (*types[0].shape[:-1], row * hidden))
    value = max(low.graph.values) + 1
    graph = replace(low.graph, values={**low.graph.values, value: Value(value, type_)})
    node = Node(low.node.id, "concat", tuple(values), (value,), MappingProxyType({"axis": type_.rank - 1}), low.node.label)
    concat = low.ops["concat"].lower
    assert concat is not None
    temp = Temp("vectors", type_.size_bytes)
    for call in concat(replace(low, graph=graph, node=node)):
        calls.append(replace(call, operands=tuple(temp if o == value else o for o in call.operands)))
    starts = [sum(lengths[:i]) for i in range(len(lengths))]
    vectors = tuple(Vector(spelled[n], "vectors", start, row) for n, start in zip(names, starts, strict=True))
    return vectors, [_Bound(Binding("vectors", "read", type_.data_type), temp)]


def _activations(low: Lowering) -> tuple[tuple[str, ...], tuple[str, ...], list[_Field]]:
    """Return the activations' WGSL, the library files they call, and their uniforms."""
    data_type = low.input().data_type
    texts: list[str] = []
    library: list[str] = []
    fields: list[_Field] = []
    for i, (name, options) in enumerate(low.attrs["activations"]):
        formula_for = ACTIVATIONS[name].elementwise
        assert formula_for is not None
        formula = formula_for([data_type], data_type, dict(options))
        own = {field: f"activation_{i}_{field}" for field, _, _ in formula.uniforms}
        for (_, type_, value), uniform in zip(formula.uniforms, own.values(), strict=True):
            fields.append((uniform, type_, value))
        texts.append(formula.code.format("x", **{field: f"params.{uniform}" for field, uniform in own.items()}))
        library += [file for file in formula.lib if file not in library]
    return tuple(texts), tuple(sorted(library)), fields


# choice -------------------------------------------------------------------------------------------------------------------


def _choose(low: Lowering, sizes: _Sizes) -> Choice:
    """Return the variant to take: the forced one, or the best for the device and the sizes."""
    op = low.ops[low.node.op]
    room = _sequence_memory(low, sizes) <= low.caps.limit("max-compute-workgroup-storage-size")
    forced = low.forced_variant
    if forced is None:
        return choose(low.caps, sizes.S, sizes.H * sizes.N, room, whole=_fits(low, sizes))
    iterations = _sequence_iterations(low.caps, sizes)
    if forced == "sequence" and low.caps.is_cpu and iterations > MOST_ITERATIONS:
        raise OperationError(
            "the forced kernel variant cannot be had",
            operator=op.python_name,
            label=low.node.label,
            got=f"{forced}, steps={sizes.S}, hidden_size={sizes.H}: {iterations} iterations",
            allowed=f"steps; {MOST_ITERATIONS} iterations",
        )
    if forced == "sequence" and not room:
        raise OperationError(
            "the forced kernel variant cannot be had",
            operator=op.python_name,
            label=low.node.label,
            got=f"{forced}, hidden_size={sizes.H}, {_sequence_memory(low, sizes)} bytes of workgroup memory",
            allowed="steps",
        )
    return Choice(forced, "forced")


def choose(caps: Caps, steps: int, weights: int, room: bool, *, whole: bool = True) -> Choice:
    """Return the variant for a device.

    Args:
        caps: the device.
        steps: how many steps there are.
        weights: how many recurrent weights a direction has.
        room: whether workgroup memory holds a batch row's state.
        whole: whether all that all steps read and write can be bound.

    Example:
        >>> choose(Caps(adapter_type="DiscreteGPU"), 20, 4 * 64 * 64, True).variant
        'sequence'
    """
    if steps == 1:
        return Choice("steps", "a single step")
    if not room:
        return Choice("steps", "the state does not fit workgroup memory")
    if not whole:
        return Choice("steps", "the parts of tensors that a step touches fit a binding, the tensors do not")
    if caps.is_cpu:
        # Measured on lavapipe for 16 to 256 units: `sequence` wins by a quarter for 16 units and one batch row, else `steps`,
        # which reads each weight once for several rows, by up to five times.
        return Choice("steps", "software adapter: each weight is read once for several batch rows")
    if weights > SEQUENCE_WEIGHTS:
        return Choice("steps", f"{weights} recurrent weights: a dispatch per step, over the whole device")
    return Choice("sequence", f"{weights} recurrent weights: all {steps} steps in one dispatch")


# all steps in one dispatch ------------------------------------------------------------------------------------------------


def _capacity(hidden: int) -> int:
    """Return for how many units a kernel reserves workgroup memory: a power of two, so that few kernels serve all sizes."""
    return max(64, 1 << (hidden - 1).bit_length())


def _invocations(caps: Caps) -> int:
    """Return the invocations of a workgroup of the `sequence` kernel: few where each barrier costs by their number."""
    return 64 if caps.is_cpu else min(256, caps.limit("max-compute-invocations-per-workgroup"))


def _sequence_memory(low: Lowering, sizes: _Sizes) -> int:
    """Return the bytes of workgroup memory that the `sequence` kernel needs; the template declares as much."""
    gates = sizes.N // sizes.H
    states = {3: 1, 4: 2}[gates] if low.attrs.get("reset_after", True) else 3
    return 4 * (max(4 * _invocations(low.caps), gates * _capacity(sizes.H)) + states * _capacity(sizes.H))


def _sequence_iterations(caps: Caps, sizes: _Sizes) -> int:
    """Return how many iterations the loops of an invocation of the `sequence` kernel make."""
    columns = -(-sizes.N // (_invocations(caps) * (QUAD if sizes.H % QUAD == 0 else 1)))
    units = -(-sizes.H // _invocations(caps))
    # Of a step: products, units, and the sums of what invocations share.
    return sizes.S * (1 + columns * (1 + sizes.H + QUAD) + 2 * units * (1 + sizes.N // sizes.H * QUAD)) + 2 * units


def _fits(low: Lowering, sizes: _Sizes) -> bool:
    """Return whether all that the `sequence` kernel binds can be bound."""
    element_bytes = DATA_TYPES[low.input().data_type].size_bytes
    projection, weights = 4 * sizes.D * sizes.S * sizes.B * sizes.N, element_bytes * sizes.D * sizes.H * sizes.N
    sequence = element_bytes * sizes.S * sizes.D * sizes.B * sizes.H
    return padded_bytes(max(projection, weights, sequence)) <= low.caps.limit("max-storage-buffer-binding-size")


def _sequence_calls(network: _Network, reason: str) -> list[KernelCall]:
    sizes, caps = network.sizes, network.low.caps
    bound = (*network.common, *network.initial.values(), *network.outputs)
    call = network.call(
        _SEQUENCE,
        bound,
        (),
        sizes.D * sizes.B,
        reason,
        width=QUAD if sizes.H % QUAD == 0 else 1,
        capacity=_capacity(sizes.H),
        invocations=_invocations(caps),
    )
    return [call]


# a dispatch per step ------------------------------------------------------------------------------------------------------


def _steps_calls(network: _Network, reason: str) -> list[KernelCall]:
    sizes = network.sizes
    state_bytes = 4 * sizes.D * sizes.B * sizes.H
    quad = sizes.H % QUAD == 0
    calls: list[KernelCall] = []
    before = dict(network.initial)
    outputs = network.outputs
    sequence = outputs[len(network.states) :]
    for step in range(sizes.S):
        after = outputs[: len(network.states)]
        if step + 1 < sizes.S:
            temps = {state: Temp(f"{state} {step % 2}", state_bytes) for state in network.states}
            after = tuple(_Bound(Binding(f"new_{state}", "write"), temp) for state, temp in temps.items())
        reads = list(before.values())
        if "hidden" in before:
            reads[0] = replace(reads[0], binding=replace(reads[0].binding, quad=quad))
        if network.cell.reset_after or "hidden" not in before:
            gates = network.cell.gates if "hidden" in before else ""
            calls += _step_calls(network, step, gates, reads, (*after, *sequence), reason)
        else:
            # Gru that resets before the product: all of r * h must be there before any of it is multiplied.
            reset = Temp("reset", state_bytes)
            calls += _step_calls(network, step, "r", reads, [_Bound(Binding("new_reset", "write"), reset)], reason)
            reads.append(_Bound(Binding("reset", "read", quad=quad), reset))
            calls += _step_calls(network, step, "zn", reads, (*after, *sequence), reason)
        before = {
            state: _Bound(replace(b.binding, name=state, access="read"), b.operand)
            for state, b in zip(network.states, after, strict=True)
        }
    return calls


def _step_calls(
    network: _Network, step: int, gates: str, reads: Sequence[_Bound], writes: Sequence[_Bound], reason: str
) -> list[KernelCall]:
    """Return the calls of one step that multiply the state by the weights of `gates` and finish what `writes` names."""
    sizes, caps = network.sizes, network.low.caps
    width = QUAD if sizes.H % QUAD == 0 else 1
    # Hardware has invocations to spare: they share each sum. A software adapter reuses each weight for more rows instead.
    shares = 1 if caps.is_cpu or not gates else 8
    rows = next((r for r in (1, 2) if sizes.B <= r), 4 if shares == 1 else 2)
    blocks = -(-sizes.B // rows)
    resets = any(b.binding.name == "reset" for b in reads)
    sources = tuple((gate, "reset" if resets and gate == "n" else "hidden") for gate in gates)
    calls: list[KernelCall] = []
    for block in network.blocks:
        units = block.end - block.first
        panels = -(-units // (STEPS_WORKGROUP // shares * width))
        tiles = sizes.D * blocks * panels
        numbers = {"step": step, "blocks": blocks, "panels": panels, "tiles": tiles, "first": block.first, "end": block.end}
        numbers["weight_row"] = units * (sizes.N // sizes.H)
        fields: list[_Field] = [(name, "u32", number) for name, number in numbers.items()]
        bound = [b if b.binding.name != "recurrent_weight" else block.weights for b in (*network.common, *reads, *writes)]
        names = [b.binding.name for b in bound]
        work = _step_work(network, numbers, rows, names)
        calls.append(
            network.call(_STEPS, bound, fields, tiles, reason, work, width=width, sources=sources, rows=rows, shares=shares)
        )
    return calls


def _step_work(network: _Network, numbers: Mapping[str, int], rows: int, names: Sequence[str]) -> Work:
    """Return how a step is divided; its tiles are numbered by direction, then by block of batch rows, then by panel."""
    sizes, caps = network.sizes, network.low.caps
    blocks, panels, step = numbers["blocks"], numbers["panels"], numbers["step"]
    backward = next(int(value) for name, _, value in network.fields if name == "backward")

    def reach(first: int, end: int) -> list[Interval | None]:
        directions = first // (blocks * panels), (end - 1) // (blocks * panels)
        batch = 0, sizes.B
        if directions[0] == directions[1]:
            batch = first // panels % blocks * rows, min(sizes.B, ((end - 1) // panels % blocks + 1) * rows)
        touched: dict[str, list[Interval]] = {}
        for d in directions:
            time = sizes.S - 1 - step if backward >> d & 1 else step
            for name, row, width in (
                ("projection", (d * sizes.S + time) * sizes.B, sizes.N),
                ("sequence", (time * sizes.D + d) * sizes.B, sizes.H),
                ("state", d * sizes.B, sizes.H),
            ):
                touched.setdefault(name, []).append(((row + batch[0]) * width, (row + batch[1]) * width))
        weights = sizes.H * numbers["weight_row"]
        touched["recurrent_weight"] = [(d * weights, (d + 1) * weights) for d in directions]
        touched |= {name: touched["state"] for name in _STATES}
        for vector in network.cell.vectors:
            touched[vector.binding] = [(d * vector.row * sizes.H, (d + 1) * vector.row * sizes.H) for d in directions]
        found = [touched.get(name) for name in names]
        return [None if f is None else (min(low for low, _ in f), max(past for _, past in f)) for f in found]

    return Work(numbers["tiles"], lambda tiles: ({"tiles": tiles}, grid_1d(tiles, caps)), reach)
