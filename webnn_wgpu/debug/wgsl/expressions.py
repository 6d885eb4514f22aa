"""Expressions, evaluated for all invocations of a wave at once."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any, ClassVar

import numpy as np

from ...core.data_types import Array
from ...core.errors import MLTypeError, NotSupportedError, WebNNError
from . import syntax
from .conversions import PACKING, bitcast, construct, infer
from .findings import Findings, Kind, Site
from .functions import BITS, EXACT, ROUNDED
from .memory import Conflict, MemoryVariable
from .names import SHAPES, Meaning, Names
from .places import Access, InvocationVariable, LocalPlace, MemoryPlace, Place, Pointer, length_of, part, swizzled
from .syntax import CallExpression, Expression, Function, Name, SyntaxNode
from .types import ArrayType, Numeric, map_tree
from .values import (
    Fault,
    Value,
    binary,
    concrete,
    data_of,
    describe,
    is_abstract,
    merged,
    number,
    of_data,
    poison,
    type_of,
    unary,
    zero,
)
from .wave import Mask, Wave

ASSIGNABLE = "only variables, and parts of them, can be assigned"

NUMERIC = {**EXACT, **ROUNDED, **BITS, **PACKING}


@dataclass(eq=False, kw_only=True)
class Frame:
    """A function while it runs.

    Attributes:
        function: the function. None outside of all functions.
        names: the meanings of its names at this point.
        call: the call. None for the entry point.
        caller: the frame of the caller.
        result: the return values of the lanes that have returned.
    """

    function: Function | None
    names: dict[str, Any] = field(default_factory=dict[str, Any])
    call: SyntaxNode | None = None
    caller: Frame | None = None
    result: Value = None

    def within(self, function: Function) -> bool:
        """Return whether this is a frame of a function, or has one among its callers."""
        return self.function is function or (self.caller is not None and self.caller.within(function))

    @property
    def calls(self) -> tuple[int, ...]:
        """Lines of the calls that lead here, the outermost first."""
        outer = self.caller.calls if self.caller else ()
        return (*outer, self.call.line) if self.call else outer


@dataclass(frozen=True, eq=False)
class Texture:
    """A texture that is read.

    Attributes:
        name: the variable.
        texels: `[height, width, 4]`.
    """

    name: str
    texels: Array


class Expressions:
    """Evaluates expressions, in the active lanes of a wave.

    Args:
        names: the module.
        wave: the invocations.
        variables: the variables of the module by name.
        findings: the collector of faults.
    """

    def __init__(
        self, names: Names, wave: Wave, variables: dict[str, InvocationVariable | MemoryVariable | Texture], findings: Findings
    ) -> None:
        self.names, self.wave, self.variables, self.findings = names, wave, variables, findings
        self.mask: Mask = wave.every
        self.frame = Frame(function=None)
        self.poisoned: set[Site] = set()
        """The sites at which invalid reads return another value than 0."""
        self._raced: Array | None = None
        """The invocations whose last read was in a race."""
        self.quiet = False
        """Whether accesses are not recorded, because no invocation makes them."""

    def evaluate(self, node: Expression) -> Value:
        """Return the value of an expression in the active lanes. Its value in other lanes has no meaning."""
        try:
            return self._EVALUATE[type(node)](self, node)
        except Fault as fault:
            raise located(fault, node) from None

    def _literal(self, node: syntax.Literal) -> Value:
        if node.type == "bool":
            return np.array([node.value])
        return number(node.value, Numeric(node.type).dtype) if node.type else node.value

    def _name(self, node: Name) -> Value:
        found = self._found(node)
        return self.load(found, node) if isinstance(found, LocalPlace | MemoryPlace) else found

    def _binary(self, node: syntax.Binary) -> Value:
        left = self.evaluate(node.left)
        if node.operator in ("&&", "||"):
            return self._short_circuit(node, left)
        return binary(node.operator, left, self.evaluate(node.right))

    def _short_circuit(self, node: syntax.Binary, left: Value) -> Value:
        """Evaluate the right side in those lanes alone in which it decides."""
        if not isinstance(left, np.ndarray) or left.dtype.kind != "b":
            raise Fault(f"the operator {node.operator} takes no {describe(left)}")
        yes, no = self.mask.split(left)
        open_ = yes if node.operator == "&&" else no
        if open_ is None:
            return left
        outer, self.mask = self.mask, open_
        right = self.evaluate(node.right)
        self.mask = outer
        return left & right if node.operator == "&&" else left | right

    def _unary(self, node: syntax.Unary) -> Value:
        if node.operator == "&":
            place = self.reach(node.operand)
            if not isinstance(place, LocalPlace | MemoryPlace):
                raise Fault("& wants a variable, or a part of one")
            return Pointer(place)
        if node.operator == "*":
            place = self.reach(node)
            assert isinstance(place, LocalPlace | MemoryPlace)
            return self.load(place, node)
        return unary(node.operator, self.evaluate(node.operand))

    def _part(self, node: syntax.Member | syntax.Index) -> Value:
        found = self.reach(node)
        return self.load(found, node) if isinstance(found, LocalPlace | MemoryPlace) else found

    def _call(self, node: CallExpression) -> Value:
        meaning = self.names.callees.get(node)
        if meaning is None:
            meaning = self.names.callees[node] = self._meaning(node)
        arguments = node.arguments
        match meaning:
            case Function():
                return self.invoke(meaning, [self.evaluate(a) for a in arguments], node)
            case str():
                return self.intrinsic(node)
            case _:
                return meaning([self.evaluate(a) for a in arguments])

    def _meaning(self, node: CallExpression) -> Meaning:
        """Return the callee: a function of the module, a function of the argument values, or the name of an intrinsic."""
        callee, name = node.callee, node.callee.name
        function = self.names.function(name)
        if function is not None:
            return function
        type_ = self.names.known_type(callee, self.evaluate)
        if type_ is not None:
            return partial(construct, type_)
        if name in SHAPES or name == "array":
            return partial(infer, name, SHAPES.get(name))
        if name == "bitcast" and len(callee.arguments) == 1 and isinstance(callee.arguments[0], Name):
            wanted = self.names.type(callee.arguments[0], self.evaluate)
            assert isinstance(wanted, Numeric)
            return lambda values: bitcast(wanted, values[0])
        return partial(_computed, name, NUMERIC[name]) if name in NUMERIC else name

    _EVALUATE: ClassVar[dict[type[Any], Callable[[Any, Any], Value]]] = {
        syntax.Literal: _literal,
        Name: _name,
        CallExpression: _call,
        syntax.Unary: _unary,
        syntax.Binary: _binary,
        syntax.Member: _part,
        syntax.Index: _part,
    }

    def invoke(self, function: Function, arguments: list[Value], node: SyntaxNode) -> Value:
        """Call a function of the module."""
        raise Fault(f"{function.name} cannot be called in a constant expression")

    def intrinsic(self, node: CallExpression) -> Value:
        """Call a built-in function that does more than compute with numbers."""
        raise NotSupportedError(
            "the interpreter does not know this function",
            operator="interpret",
            got=f"{node.callee} at line {node.line}, column {node.column}",
        )

    # places -----------------------------------------------------------------------------------------------------------

    def _found(self, node: Name) -> Place | Value:
        found = self.frame.names.get(node.name)
        if found is None:
            found = self.variables.get(node.name)
        if isinstance(found, InvocationVariable):
            return LocalPlace(found)
        if isinstance(found, MemoryVariable):
            offsets = found.of_lanes(self.wave)
            return MemoryPlace(found, found.type, np.zeros(1, np.int64) if offsets is None else offsets)
        if found is None:
            found = self.names.constant(node.name, self.evaluate)
        if found is None:
            raise Fault(
                f"no variable, constant or parameter is called {node.name}", "`constants=` defines constants of a source"
            )
        return found

    def reach(self, node: Expression, writing: bool = False) -> Place | Value:
        """Return the place of an expression, or its value if it has no place."""
        try:
            match node:
                case Name():
                    return self._found(node)
                case syntax.Unary(operator="*"):
                    pointer = self.evaluate(node.operand)
                    if not isinstance(pointer, Pointer):
                        raise Fault(f"* wants a pointer, and {describe(pointer)} is given")
                    return pointer.place
                case syntax.Member():
                    return self._member(node, writing)
                case syntax.Index():
                    return self._element(node, writing)
                case _:
                    return self.evaluate(node)
        except Fault as fault:
            raise located(fault, node) from None

    def _base(self, node: syntax.Member | syntax.Index, writing: bool) -> Place | Value:
        base = self.reach(node.base, writing)
        return base.place if isinstance(base, Pointer) else base

    def _member(self, node: syntax.Member, writing: bool) -> Place | Value:
        base = self._base(node, writing)
        type_ = self._type_at(base)
        if not isinstance(type_, Numeric):
            return self._at(base, node.name)
        if writing and len(node.name) == 1 and isinstance(base, LocalPlace | MemoryPlace):
            swizzled(zero(type_), node.name)
            return self._at(base, np.array(["xyzw".find(node.name) if node.name in "xyzw" else "rgba".find(node.name)]))
        if writing:
            rule = "several components cannot be assigned at once"
            raise Fault(rule if isinstance(base, LocalPlace | MemoryPlace) else ASSIGNABLE)
        value = self.load(base, node) if isinstance(base, LocalPlace | MemoryPlace) else base
        return swizzled(value, node.name)

    def _element(self, node: syntax.Index, writing: bool) -> Place | Value:
        base = self._base(node, writing)
        index = concrete(self.evaluate(node.index))
        if not isinstance(index, np.ndarray) or index.ndim != 1 or index.dtype.kind not in "iu":
            raise Fault(f"an index must be an integer, and {describe(index)} is given")
        base = concrete(base)
        type_ = self._type_at(base)
        memory = base.memory if isinstance(base, MemoryPlace) else None
        outside = self._outside(node, index, length_of(type_, memory), str(type_), writing, memory is not None)
        return self._at(base, index, outside)

    def _at(self, base: Place | Value, step: Access, outside: Array | None = None) -> Place | Value:
        if isinstance(base, MemoryPlace):
            return base.at(step, outside)
        if isinstance(base, LocalPlace):
            return LocalPlace(base.variable, (*base.steps, step))
        return part(base, step)

    def _type_at(self, base: Place | Value) -> Any:
        if isinstance(base, MemoryPlace):
            return base.type
        if isinstance(base, tuple):
            return Numeric("f32", (len(base),))
        value = base.load() if isinstance(base, LocalPlace) else base
        if is_abstract(value) or isinstance(value, Pointer | Texture):
            raise Fault(f"{describe(value)} has no parts")
        return type_of(value)

    def _outside(self, node: syntax.Index, index: Array, length: int, what: str, writing: bool, memory: bool) -> Array | None:
        bad = index >= length
        if index.dtype.kind == "i":
            bad = bad | (index < 0)
        if not bad.any():
            return None
        bad = bad & self.mask.lanes
        lanes = np.flatnonzero(bad)
        if not lanes.size:
            return None
        name = _root(node)
        found = int(index[min(int(lanes[0]), index.size - 1)])
        verb = "writes" if writing else "reads"
        message = f"{self._invocation(lanes[0])} {verb} {name}[{found}]; it has {length} elements ({what})"
        self.tell("out of bounds", node, name, message, self.wave.ids[lanes], read=memory and not writing)
        return bad

    # memory -----------------------------------------------------------------------------------------------------------

    def load(self, place: Place, node: SyntaxNode) -> Value:
        """Return the value at a place, or 0 for a place outside of a variable."""
        if isinstance(place, LocalPlace):
            return place.load()
        if isinstance(place.type, ArrayType) and place.type.count is None:
            raise Fault(f"{place.memory.name} has no fixed size, and cannot be a value")
        if isinstance(place.type, Numeric) and place.type.atomic:
            raise Fault(f"{place.memory.name} is atomic, and read by atomicLoad alone")
        self._raced = None
        self.watch(place, node, writing=False)
        value = place.memory.load(place.type, place.offsets)
        poisoned = (node.line, node.column) in self.poisoned
        if poisoned and self._raced is not None:
            value = merged(np.isin(self.wave.ids, self._raced), poison(place.type), value)
        if place.outside is None:
            return value
        return merged(place.outside, poison(place.type) if poisoned else zero(place.type), value)

    def store(self, place: Place, value: Value, node: SyntaxNode) -> None:
        """Store a value at a place in the active lanes. A place outside of a variable stays unchanged."""
        if isinstance(place, LocalPlace):
            place.store(value, self.mask)
            return
        memory = place.memory
        if not memory.writable:
            raise Fault(f"{memory.name} is read-only")
        lanes = self.watch(place, node, writing=True)
        if lanes is None:
            return
        data = map_tree(lambda leaf: _of_lanes(leaf, lanes), data_of(value))
        memory.store(place.type, _of_lanes(place.offsets, lanes), of_data(place.type, data))

    def watch(self, place: MemoryPlace, node: SyntaxNode, *, writing: bool, atomic: bool = False) -> Array | None:
        """Record an access by the active lanes, report its faults, and return the lanes inside the variable."""
        memory = place.memory
        if self.quiet or (memory.shadow is None and memory.written is None):
            return None
        lanes = np.flatnonzero(self.mask.lanes if place.outside is None else self.mask.lanes & ~place.outside)
        if not lanes.size:
            return None
        ids = self.wave.ids[lanes]
        if place.offsets.size == 1 and not writing:
            # Two invocations represent all of them: two accesses are enough to detect that several read a word.
            units, ids = memory.units(place.type, place.offsets), ids[[0, -1]]
            units = np.broadcast_to(units, (len(units), 2))
        else:
            units = memory.units(place.type, np.broadcast_to(_of_lanes(place.offsets, lanes), lanes.shape))
        if writing:
            memory.mark_written(units)
        elif (bare := memory.unwritten(units)).any():
            who = np.broadcast_to(ids, units.shape)[bare]
            name = memory.name_of(int(units[bare][0]))
            # wgpu on Mesa's software driver keeps the content that an earlier workgroup left.
            hint = ": 0 in WGSL, but not on every driver" if memory.space == "workgroup" else ""
            message = f"{self._by_id(who[0])} reads {name}, which was never written{hint}"
            self.tell("uninitialized", node, memory.name, message, who, read=True)
        if memory.shadow is not None and not atomic:
            flat, who = units.reshape(-1), np.broadcast_to(ids, units.shape).reshape(-1)
            conflict = (memory.shadow.write if writing else memory.shadow.read)(flat, who, node.line)
            if conflict is not None:
                everybody = place.offsets.size == 1
                self._raced = np.setdiff1d(self.wave.ids[lanes], conflict.others) if everybody else conflict.ids
                self._tell_race(memory, node, conflict, writing)
        return lanes

    def _tell_race(self, memory: MemoryVariable, node: SyntaxNode, conflict: Conflict, writing: bool) -> None:
        before = "wrote" if conflict.wrote else "read"
        barrier = "storageBarrier" if memory.space == "storage" else "workgroupBarrier"
        one, other = conflict.ids[0], conflict.others[0]
        same = one // self.wave.per_workgroup == other // self.wave.per_workgroup
        missing = f"no {barrier} between" if same else "in another workgroup, which no barrier waits for"
        where = "at the same line" if conflict.line == node.line else f"at line {conflict.line}"
        name = memory.name_of(conflict.unit)
        verb = "writes" if writing else "reads"
        message = f"{self._by_id(one)} {verb} {name}, which {self._by_id(other)} {before} {where}, {missing}"
        self.tell("race", node, memory.name, message, conflict.ids, conflict.others, conflict.line, read=not writing)

    def tell(
        self,
        kind: Kind,
        node: SyntaxNode,
        variable: str,
        message: str,
        ids: Array,
        others: Any = (),
        other_line: int = 0,
        count: int | None = None,
        *,
        read: bool = False,
    ) -> None:
        """Add a finding about invocations. Without a count, it occurs once in each of them."""
        named = [self.wave.invocation(i) for i in dict.fromkeys(ids[:8].tolist())]
        before = [self.wave.invocation(i) for i in dict.fromkeys(list(others[:8]))]
        count = len(np.unique(ids)) if count is None else count
        self.findings.add(kind, node, self.frame.calls, variable, message, named, before, other_line, count, read=read)

    def _invocation(self, lane: Any) -> str:
        return self._by_id(self.wave.ids[int(lane)])

    def _by_id(self, id_: Any) -> str:
        return f"invocation {self.wave.invocation(id_)}"


def _computed(name: str, function: Callable[..., Value], values: list[Value]) -> Value:
    try:
        return function(*values)
    except (TypeError, ValueError):
        given = ", ".join(map(describe, values))
        raise Fault(f"{name} takes other arguments than {given}") from None
    except Fault as fault:
        raise Fault(f"{name}: {fault}") from None


def _of_lanes(values: Array, lanes: Array) -> Array:
    return values if values.shape[-1] == 1 else values[..., lanes]


def _root(node: Expression) -> str:
    """Return the name of the variable that an expression accesses a part of."""
    match node:
        case Name():
            return node.name
        case syntax.Member():
            base = _root(node.base)
            return f"{base}.{node.name}"
        case syntax.Index():
            inner = _root(node.base)
            return f"{inner}[...]" if isinstance(node.base, syntax.Index) else inner
        case syntax.Unary():
            return f"(*{_root(node.operand)})" if node.operator == "*" else _root(node.operand)
        case _:
            return "the value"


def located(fault: Fault, node: SyntaxNode) -> WebNNError:
    """Return the error that a fault in a source is."""
    return MLTypeError(
        "the source must follow the rules of WGSL",
        operator="interpret",
        got=f"{fault}, at line {node.line}, column {node.column}",
        hint=fault.hint,
    )
