"""`make_plan`: a graph after its passes becomes an `ExecutionPlan`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import NamedTuple

from ..core.caps import Caps
from ..core.data_types import DATA_TYPES
from ..costs import Target
from ..ir.graph import Graph, Node
from ..kernels.element import padded_bytes
from ..kernels.emulation import emulated
from ..kernels.spec import ForcedVariants, KernelCall, Operand, Packed, Packing, Temp, Window, value_of
from ..kernels.tuning import Tuning
from ..kernels.windows import divided
from ..ops import OPS
from ..ops._def import Lowering, Part
from ..ops._operations import operations_of, touched_bytes
from ..ops._strided_copy import copy_call
from ..ops.fused import steps_of
from .checks import check_call
from .concatenation import parts_in_place, ranges_in_place
from .execution_plan import ConstantUse, ExecutionPlan, Intermediate, PlannedDispatch, Resource, Slot
from .forced import check_forced
from .in_place import replace_operands
from .labels import node_label, unique_names
from .pieces import pieces_in_place
from .sharing import share_kernels
from .slots import Lifetime, Place, assign_slots
from .updates import over_source, updated_values


class _Assigned(NamedTuple):
    """Values by lifetime and place, and the sizes of the slots."""

    lifetimes: Mapping[int, Lifetime]
    places: Mapping[int, Place]
    sizes: Sequence[int]


def _most(assigned: _Assigned) -> int:
    """Return the total size of the slots, which another assignment must not reach to be better."""
    return sum(assigned.sizes)


@dataclass(kw_only=True)
class _Planner:
    graph: Graph
    target: Target
    forced: ForcedVariants
    tuning: Tuning | None = None
    calls: list[tuple[KernelCall, Node | None, str]] = field(default_factory=list[tuple[KernelCall, "Node | None", str]])
    home: dict[int, int] = field(default_factory=dict[int, int])
    """Value -> the value whose memory it shares: its own, except for views."""
    parts: dict[int, Part] = field(default_factory=dict[int, Part])
    """Value -> the part of another value that holds it."""
    pieces: dict[int, int] = field(default_factory=dict[int, int])
    """Value -> the bytes before it in the value that it is a range of, whose memory it shares."""
    temps: dict[int, int] = field(default_factory=dict[int, int])
    """Scratch memory, as values with numbers beyond the graph's, -> bytes."""
    copies: dict[str, int] = field(default_factory=dict[str, int])
    """Output name -> the copy that fills it."""

    @cached_property
    def _first_temp(self) -> int:
        return max(self.graph.values, default=0) + 1

    @property
    def _next_temp(self) -> int:
        return self._first_temp + len(self.temps)

    @property
    def caps(self) -> Caps:
        return self.target.caps

    def lower(self) -> None:
        graph = self.graph
        self.parts = parts_in_place(graph, self.caps)
        pieces = pieces_in_place(graph, self.caps, self.parts)
        ranges = ranges_in_place(graph, self.caps, self.parts)
        self.pieces = {**pieces, **{value: offset for value, (_, offset) in ranges.items()}}
        self.home |= {value: output for value, (output, _) in ranges.items()}
        updated = updated_values(graph, pieces)
        for node in graph.nodes:
            op = OPS[node.op]
            if op.lower is None or node.outputs[0] in pieces:
                self.home |= dict.fromkeys(node.outputs, node.operands[0])
                continue
            sources = {output: updated[output] for output in node.outputs if output in updated}
            in_place = bool(sources) and op.movement is not None and op.movement.updates
            part = self.parts.get(node.outputs[0])
            placed = frozenset(
                i
                for i, value in enumerate(node.inputs)
                if value in self.parts
                or (value is not None and ranges.get(self._viewed(value), (None, 0))[0] == node.outputs[0])
            )
            low = Lowering(
                node=node,
                graph=graph,
                target=self.target,
                ops=OPS,
                forced=self.forced,
                epilogue=None,
                in_place=in_place,
                part=part,
                placed=placed,
                tuning=self.tuning,
                parts=self.parts,
            )
            calls = op.lower(low)
            named: dict[str, int] = {}
            divided = [self._divided(self._with_memory(call, named)) for call in calls]
            for output, source in sources.items():
                divided = self._over_source(divided, output, source, in_place=in_place)
            for i, parts in enumerate(divided):
                suffix = f".{i}" if len(calls) > 1 else ""
                self.calls += ((part, node, node_label(node) + suffix) for part in parts)
        written = {self.root(o) for call, _, _ in self.calls for o in _written(call)}
        taken: set[int] = set()
        for name, value in graph.outputs.items():
            root = self.root(value)
            if name in graph.aliases and root != graph.inputs[graph.aliases[name]]:
                continue
            if root not in written or root in taken:
                # An input, a constant, or a value that already fills another output: it must be copied.
                self._copy_output(name, value)
            taken.add(root)
        self._copy_updates()

    def _over_source(
        self, divided: list[list[KernelCall]], output: int, source: int, *, in_place: bool
    ) -> list[list[KernelCall]]:
        """Return the calls of a node whose result gets the memory of an input, unless they need its old elements."""
        found = divided if in_place else None
        if not in_place and (calls := over_source([call for calls in divided for call in calls], output, source)) is not None:
            found = [calls]
        if found is not None:
            self.home[output] = source
        return divided if found is None else found

    def _copy_updates(self) -> None:
        """Copy the outputs that are aliases and have other memory to their inputs. All old elements are read before."""
        graph = self.graph
        rest = {
            name: source for name, source in graph.aliases.items() if self.root(graph.outputs[name]) != graph.inputs[source]
        }
        inputs = set(graph.inputs.values())
        values: dict[str, int] = {}
        for name in rest:
            values[name] = value = graph.outputs[name]
            if self.root(value) in inputs:
                # The value of an input, which another output may replace.
                self._copy_output(name, value)
                values[name] = self.copies[name]
        for name, source in rest.items():
            target, type_ = graph.inputs[source], graph.type(graph.outputs[name])
            call = copy_call(values[name], type_, target, self.target)
            self.calls += ((part, None, f"output {name}") for part in self._divided(call))
            self.copies[name] = target

    def _divided(self, call: KernelCall) -> list[KernelCall]:
        """Return the calls that together replace `call` and bind no more of a value than the device allows."""
        if self.target.costs.launches.hides_uniforms and not call.spec.source:
            call = replace(call, spec=replace(call.spec, hides_uniforms=True))
        return divided(call, [self._bound_bytes(operand) for operand in call.operands], self.caps)

    def _bound_bytes(self, operand: Operand) -> int:
        """Return the number of bytes of an operand that a call binds."""
        if isinstance(operand, Window):
            return operand.size_bytes
        if isinstance(operand, Packed):
            type_ = self.graph.type(operand.value)
            return padded_bytes(operand.packing.size_bytes(type_.shape, DATA_TYPES[type_.data_type].size_bytes))
        return padded_bytes(self._size(self._viewed(value_of(operand))))

    def _with_memory(self, call: KernelCall, named: dict[str, int]) -> KernelCall:
        """Return a call for this device whose scratch memory is that of its node."""
        operands = tuple(self._temp(o, named) if isinstance(o, Temp) else o for o in call.operands)
        return replace(call, spec=emulated(call.spec, self.caps), operands=operands)

    def _temp(self, temp: Temp, named: dict[str, int]) -> int:
        if temp.key not in named:
            named[temp.key] = self._next_temp
            self.temps[named[temp.key]] = temp.size_bytes
        assert temp.size_bytes <= self.temps[named[temp.key]], f"scratch memory {temp.key!r} has two sizes"
        return named[temp.key]

    def _copy_output(self, name: str, value: int) -> None:
        copy = self._next_temp
        self.temps[copy] = self.graph.type(value).size_bytes
        call = copy_call(value, self.graph.type(value), copy, self.target)
        self.calls += ((part, None, f"output {name}") for part in self._divided(call))
        self.copies[name] = copy

    def root(self, value: int) -> int:
        while value in self.home:
            value = self.home[value]
        return value

    def _viewed(self, value: int) -> int:
        """Return the source of a view: a piece of another value, or a value that has memory of its own."""
        while value in self.home and value not in self.pieces:
            value = self.home[value]
        return value

    def _is_piece(self, value: int) -> bool:
        """Return whether a value is a piece of another, or a view of one."""
        return self._viewed(value) in self.pieces

    def _before(self, value: int) -> int:
        """Return the bytes before a value in the memory that it shares."""
        viewed = self._viewed(value)
        return self.pieces[viewed] + self._before(self.home[viewed]) if viewed in self.pieces else 0

    def plan(self) -> ExecutionPlan:
        graph = self.graph
        self.lower()
        self._change(share_kernels([call for call, _, _ in self.calls], self.target))
        outputs = {self.copies.get(name, self.root(value)): name for name, value in graph.outputs.items()}
        inputs = {value: name for name, value in graph.inputs.items()}
        separate = self._assigned(outputs, inputs)
        unshared_bytes = sum(life.size_bytes for life in separate.lifetimes.values())
        lifetimes, placed, sizes = self._in_place(separate, outputs, inputs)
        places = self._places(inputs, outputs, placed)
        constants: dict[tuple[int, Packing | None], int] = {}
        uniforms = bytearray()
        dispatches: list[PlannedDispatch] = []
        names = unique_names([label for _, _, label in self.calls])
        positions = {id(node): i for i, node in enumerate(graph.nodes)}
        alignment = self.caps.limit("min-uniform-buffer-offset-alignment")
        for (call, node, label), name in zip(self.calls, names, strict=True):
            resources: list[Resource] = []
            for binding, operand in zip(call.spec.bindings, call.operands, strict=True):
                packing = operand.packing if isinstance(operand, Packed | Window) else None
                viewed = self._viewed(value_of(operand))
                value = self.root(viewed)
                offset = self._before(viewed) + (operand.offset_bytes if isinstance(operand, Window) else 0)
                size = -(-self._size(viewed) // 4) * 4 if binding.exact else self._bound_bytes(operand)
                if value in graph.constants:
                    number = constants.setdefault((value, packing), len(constants))
                    resources.append(Resource("constant", number, offset, size))
                else:
                    place = places[value]
                    resources.append(replace(place, offset_bytes=place.offset_bytes + offset, size_bytes=size))
            check_call(call, node, label, resources, self.caps, self._bound_bytes, self._type)
            block = call.spec.packed(call.uniforms)
            uniforms.extend(bytes(-len(uniforms) % alignment))
            offset = len(uniforms)
            uniforms.extend(block)
            origins, steps = (node.origins, steps_of(node, OPS)) if node else ((), ())
            dispatches.append(
                PlannedDispatch(
                    spec=call.spec,
                    bindings=tuple(resources),
                    uniform_offset=offset,
                    uniform_size=len(block),
                    grid=call.grid,
                    label=name,
                    reason=call.reason,
                    origins=origins,
                    node=positions[id(node)] if node else None,
                    operations=operations_of(node, graph) if node else 0,
                    touched_bytes=touched_bytes(node, call, self._touched(node, call, resources)),
                    steps=steps,
                )
            )
        return ExecutionPlan(
            inputs={name: graph.type(v) for name, v in graph.inputs.items()},
            outputs={name: graph.type(v) for name, v in graph.outputs.items()},
            slots=tuple(Slot(size) for size in sizes),
            constants=tuple(ConstantUse(v, graph.type(v), packing) for v, packing in constants),
            dispatches=tuple(dispatches),
            uniforms=bytes(uniforms),
            unshared_bytes=unshared_bytes,
            arrays={v: graph.constants[v] for v, _ in constants},
            aliases=graph.aliases,
            graph=graph,
            places={v: self._place(v, places[root]) for v in graph.values if (root := self.root(v)) in places},
            parts=self.parts,
            intermediates=tuple(
                Intermediate(
                    value=v,
                    slot=placed[v].slot,
                    offset_bytes=placed[v].offset_bytes,
                    size_bytes=life.size_bytes,
                    first=life.first,
                    last=life.last,
                )
                for v, life in lifetimes.items()
            ),
        )

    def _assigned(self, outputs: Mapping[int, str], inputs: Mapping[int, str], below_bytes: int = 1 << 62) -> _Assigned:
        """Assign slots to the values that are neither graph inputs, graph outputs nor constants."""
        lifetimes = self._lifetimes(outputs, inputs)
        places, sizes = assign_slots(
            lifetimes,
            self._apart(lifetimes),
            alignment=self.caps.limit("min-storage-buffer-offset-alignment"),
            largest_bytes=self.caps.limit("max-buffer-size"),
            below_bytes=below_bytes,
        )
        return _Assigned(lifetimes, places, sizes)

    def _in_place(self, separate: _Assigned, outputs: Mapping[int, str], inputs: Mapping[int, str]) -> _Assigned:
        """Let results replace operands if that takes less memory: those of element-wise kernels, or all that can.

        A value that stays in one slot from layer to layer keeps the operands of these layers out of the slot. It may cost more
        slots than it saves.
        """
        plain, home = self.calls, self.home
        calls = [call for call, _, _ in plain]
        found, taken, before = separate, (plain, home), dict[int, int]()
        for products in (False, True):
            changed, replaced = replace_operands(calls, separate.lifetimes, self.root, self._is_piece, products=products)
            if replaced != before:
                self._change(changed)
                self.home = home | replaced
                assigned = self._assigned(outputs, inputs, _most(found))
                if assigned.places:
                    found, taken = assigned, (self.calls, self.home)
                self.calls, self.home, before = plain, home, replaced
        self.calls, self.home = taken
        return found

    def _change(self, calls: Sequence[KernelCall]) -> None:
        self.calls = [(call, node, label) for call, (_, node, label) in zip(calls, self.calls, strict=True)]

    def _places(
        self, inputs: Mapping[int, str], outputs: Mapping[int, str], placed: Mapping[int, Place]
    ) -> dict[int, Resource]:
        """Return the allocation of every value that has memory of its own and is no constant."""
        places = {v: Resource("slot", p.slot, p.offset_bytes, self._size(v)) for v, p in placed.items()}
        places |= {v: Resource("output", name, 0, self._size(v)) for v, name in outputs.items()}
        return places | {v: Resource("input", name, 0, self._size(v)) for v, name in inputs.items()}

    def _place(self, value: int, place: Resource) -> Resource:
        """Return the allocation of a value from that of the value whose memory it shares."""
        if not self._is_piece(value):
            return place
        viewed = self._viewed(value)
        return replace(place, offset_bytes=place.offset_bytes + self._before(viewed), size_bytes=self._size(viewed))

    def _type(self, operand: Operand) -> str:
        """Return the type of an operand for people."""
        value = value_of(operand)
        return "(scratch memory)" if value in self.temps else str(self.graph.type(value))

    def _size(self, value: int) -> int:
        return self.temps[value] if value in self.temps else self.graph.type(value).size_bytes

    def _lifetimes(self, outputs: Mapping[int, str], inputs: Mapping[int, str]) -> dict[int, Lifetime]:
        lifetimes: dict[int, Lifetime] = {}
        for i, (call, _, _) in enumerate(self.calls):
            for operand in call.operands:
                value = self.root(value_of(operand))
                if value in outputs or value in inputs or value in self.graph.constants:
                    continue
                first = lifetimes[value].first if value in lifetimes else i
                lifetimes[value] = Lifetime(first, i, padded_bytes(self._size(value)))
        return lifetimes

    def _apart(self, lifetimes: Mapping[int, Lifetime]) -> set[frozenset[int]]:
        """Return the pairs of values that one dispatch binds, and writes at least one of."""
        pairs: set[frozenset[int]] = set()
        for call, _, _ in self.calls:
            bound = {self.root(value_of(operand)) for operand in call.operands}
            for wrote in {self.root(value) for value in _written(call)} & lifetimes.keys():
                pairs.update(frozenset((wrote, other)) for other in bound & lifetimes.keys() if other != wrote)
        return pairs

    def _touched(self, node: Node | None, call: KernelCall, resources: Sequence[Resource]) -> list[int]:
        """Return the bytes of each operand that a call may access.

        For a part of another value, they are the bytes of the part.
        """
        part = self.parts.get(node.outputs[0]) if node else None
        sizes = [resource.size_bytes for resource in resources]
        if node and part:
            of_part = self._size(node.outputs[0])
            sizes = [of_part if o == part.value else n for o, n in zip(call.operands, sizes, strict=True)]
        own = [isinstance(o, int) and o in self.graph.values and o not in self.graph.constants for o in call.operands]
        return [round(n * call.share) if mine else n for mine, n in zip(own, sizes, strict=True)]


def make_plan(
    graph: Graph, target: Target, forced: ForcedVariants | None = None, tuning: Tuning | None = None
) -> ExecutionPlan:
    """Choose kernels, assign values to slots and lay out constants and uniforms.

    Args:
        graph: a graph after its passes.
        target: the device with its costs.
        forced: operator name -> kernel variant to use instead of the chosen one.
        tuning: the measurements on the device, for operators without a forced variant.

    Raises:
        MLTypeError: `forced` names an operator or variant that does not exist.
        OperationError: the device cannot run a forced variant, or lacks a feature that a kernel needs.
        OutOfMemoryError: a tensor is larger than the device can hold or bind.
    """
    check_forced(forced or {})
    return _Planner(graph=graph, target=target, forced=forced or {}, tuning=tuning).plan()


def _written(call: KernelCall) -> list[int]:
    pairs = zip(call.spec.bindings, call.operands, strict=True)
    return [value_of(o) for b, o in pairs if b.access == "write"]
