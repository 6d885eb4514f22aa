"""`Engine`: records operations on the tensors of a context, and compiles and runs them when a value is needed."""

from __future__ import annotations

import threading
import weakref
from collections import OrderedDict
from collections.abc import Callable, Generator, Hashable, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, ClassVar

import numpy as np

from webnn_wgpu import InvalidStateError, MLContext, MLGraphBuilder, MLOperand, MLPromise, ml

from .pool import Held, Pool
from .programs import Program
from .structure import Structure
from .values import BOOL, Array, Emit, Kind, Node, Number, Operation, StatedRule, UnknownValueError, Value

_MOST_OPERATIONS = 1 << 16
"""How many calls of different types the engine remembers."""


@dataclass(frozen=True)
class Statistics:
    """The work of an engine, and its memory.

    Attributes:
        compilations: the number of compiled graphs.
        runs: the number of runs of graphs.
        programs: the number of compiled programs that are held.
        pending: the number of tensors whose values have yet to be computed.
        tensors: the number of tensors of the program.
        used_bytes: the memory of tensors on the device.
        spare_bytes: memory on the device that is held for later tensors.
    """

    compilations: int
    runs: int
    programs: int
    pending: int
    tensors: int
    used_bytes: int
    spare_bytes: int


class Engine:
    """Records the operations on the tensors of a context.

    Args:
        context: the context.
        most_pending: after how many recorded operations they run, even if no value is needed.
        most_programs: the number of compiled programs that are kept.
        most_program_bytes: the number of bytes that these programs hold for results in between.
        most_spare: the number of bytes of memory that is kept for later tensors.

    Attributes:
        context: the context.
        pool: the memory of tensors.
        pending: the values of tensors that have yet to be computed.
        tensors: the number of tensors of the program.
        tensor_bytes: the size of their elements.
        values: the number of values that they stand for.
        watchers: called after each operation, with its name and the tensors of its results.
        scope: the list that new tensors enter, or None.

    Example:
        >>> from webnn_wgpu import eager
        >>> engine = eager.Engine.of(context)
        >>> engine.context is context
        True
    """

    _all: ClassVar[weakref.WeakValueDictionary[int, Engine]] = weakref.WeakValueDictionary()
    _default: ClassVar[Engine | None] = None

    def __init__(
        self,
        context: MLContext,
        *,
        most_pending: int = 2000,
        most_programs: int = 256,
        most_program_bytes: int = 1 << 30,
        most_spare: int = 1 << 28,
    ) -> None:
        self.context = context
        self.pool = Pool(context, most_spare)
        self.pending: dict[Value, None] = {}
        self.tensors = self.tensor_bytes = 0
        self.values = 0
        self.watchers: list[Callable[[str, Sequence[Any]], None]] = []
        self.scope: list[weakref.ref[Any]] | None = None
        self._lock = threading.RLock()
        self._operations: OrderedDict[Hashable, Operation] = OrderedDict()
        self._programs: OrderedDict[Hashable, Program] = OrderedDict()
        self._most_pending, self._most_programs, self._most_program_bytes = most_pending, most_programs, most_program_bytes
        self._recorded = 0
        self._first: Operation | None = None
        self._compilations, self._runs = 0, 0
        self._tapes, self._retained = 0, list[Value]()
        self._placeholders = 0

    @classmethod
    def of(cls, context: MLContext | None = None) -> Engine:
        """Return the engine of a context, or of the default context, which is made at its first use."""
        if context is None:
            if cls._default is None:
                cls._default = cls.of(ml.create_context())
            return cls._default
        found = cls._all.get(id(context))
        if found is None:
            found = cls._all[id(context)] = cls(context)
        return found

    @classmethod
    def set_default(cls, engine: Engine | None) -> None:
        """Use an engine for tensors that name no context."""
        cls._default = engine

    # recording ----------------------------------------------------------------------------------------------------

    def operation(self, key: Hashable, name: str, kinds: Sequence[Kind], emit: Emit, data_type: str | None) -> Operation:
        """Return the operation of a key, whose types a builder infers at the first call.

        Args:
            key: equal only for equal operations on equal kinds.
            name: the name in messages.
            kinds: the kinds of the operands.
            emit: adds the operation to a builder.
            data_type: "bool" if results that are stored as uint8 are truth values.
        """
        found = self._operations.get(key)
        if found is None:
            builder = MLGraphBuilder(self.context)
            operands = [builder.input(str(number), kind.shape, kind.stored) for number, kind in enumerate(kinds)]
            given = emit(builder, *operands)
            single = isinstance(given, MLOperand)
            results = [given] if isinstance(given, MLOperand) else given
            found = Operation(name, emit, tuple(_kind(operand, data_type) for operand in results), single=single)
            self._operations[key] = found
            if len(self._operations) > _MOST_OPERATIONS:
                self._operations.popitem(last=False)
        return found

    def known(self, key: Hashable) -> Operation | None:
        """Return the operation of a key, if there was one before."""
        return self._operations.get(key)

    def record(self, operation: Operation, inputs: tuple[Value, ...], gradient: StatedRule | None = None) -> list[Value]:
        """Record an operation, and return its results."""
        full = self._recorded >= self._most_pending and not self._placeholders
        if full and (operation is self._first or self._recorded >= 2 * self._most_pending):
            # Programs of loops repeat only if they are cut at the same place of the loop: at the same operation as before.
            self.evaluate()
        if not self._recorded:
            self._first = operation
        self._recorded += 1
        node = Node(operation, inputs, gradient)
        return [Value(self, kind, node, index) for index, kind in enumerate(operation.results)]

    def value_of(self, array: Array) -> Value:
        """Return a value with the elements of an array, which must not change later."""
        value = Value(self, Kind.of(str(array.dtype), array.shape))
        value.array = array
        return value

    def number(self, number: Number, data_type: str) -> Value:
        """Return a scalar."""
        value = Value(self, Kind.of(data_type, ()))
        value.number = number
        return value

    def placeholder(self, kind: Kind) -> Value:
        """Return a value that is not known."""
        value = Value(self, kind)
        value.unknown = True
        return value

    # evaluation ---------------------------------------------------------------------------------------------------

    def evaluate(self) -> None:
        """Compute all pending values that the program can still reach, as one graph. The call does not wait for the device."""
        if self._placeholders:
            raise UnknownValueError(
                "values are not known while a gradient is recorded",
                operator="evaluate",
                hint="Compute with tensors in the function, and read no values",
            )
        with self._lock:
            wanted = [value for value in list(self.pending) if value.handles and value.held is None]
            self.pending.clear()
            self._recorded = 0
            if not wanted:
                return
            try:
                self._run(wanted)
            except Exception as error:
                for value in wanted:
                    value.node, value.error, value.replaces = None, error, None
                raise
            except BaseException:
                # An interrupted program may ask again.
                self.pending |= dict.fromkeys(wanted)
                raise

    def _run(self, wanted: list[Value]) -> None:
        structure = Structure()
        outputs = tuple([structure.visit(value) for value in wanted])
        leaves = structure.leaves
        for leaf in leaves:
            self._upload(leaf)
        aliases = self._aliases(wanted, leaves)
        key = (tuple(structure.key), outputs, aliases)
        program = self._programs.get(key)
        if program is None:
            program = self._programs[key] = self.compile(structure, outputs, aliases)
            self._forget_programs()
        else:
            self._programs.move_to_end(key)
        results = self.run(program, leaves, [value.kind for value in wanted])
        for value, held in zip(wanted, results, strict=True):
            value.held, value.replaces = held, None
            if self._tapes:
                self._retained.append(value)
            else:
                value.node = None

    def compile(
        self,
        structure: Structure,
        outputs: Sequence[int],
        aliases: Sequence[int | None],
        constants: Mapping[int, Array] = MappingProxyType({}),
    ) -> Program:
        """Return the program of a structure. The arguments are those of `Program`."""
        self._compilations += 1
        return Program(self.context, structure, outputs, aliases, constants)

    def run(self, program: Program, leaves: Sequence[Value], kinds: Sequence[Kind]) -> list[Held]:
        """Queue a run of a program, and return the memory of the results. Leaves whose memory results take lose it.

        Args:
            program: the program.
            leaves: the values of the leaves, which have memory or are numbers.
            kinds: the kinds of the results.
        """
        with self._lock:
            before = program.builds
            results = program.run(leaves, kinds, self.pool)
            self._compilations += program.builds - before
            self._runs += 1
            for index in program.aliases:
                if index is not None:
                    leaves[index].held = None
            return results

    def _forget_programs(self) -> None:
        """Free the programs that have not run for longest, if there are too many or their memory is too much."""
        size = sum(program.held_bytes for program in self._programs.values())
        while len(self._programs) > 1 and (len(self._programs) > self._most_programs or size > self._most_program_bytes):
            program = self._programs.popitem(last=False)[1]
            size -= program.held_bytes
            program.destroy()

    def _aliases(self, wanted: Sequence[Value], leaves: Sequence[Value]) -> tuple[int | None, ...]:
        """Return the leaves whose memory results take: earlier values of variables that nothing else can read."""
        if self._tapes or not any(value.replaces is not None for value in wanted):
            return (None,) * len(wanted)
        places = {leaf: index for index, leaf in enumerate(leaves) if leaf.held is not None and not leaf.handles}
        found: list[int | None] = []
        for value in wanted:
            source = value.replaces
            while source is not None and source.pending:
                source = source.replaces
            fits = source is not None and source.kind is value.kind
            found.append(places.pop(source, None) if fits and source is not None else None)
        return tuple(found)

    def _upload(self, value: Value) -> None:
        """Give a leaf memory on the device, unless it is a number."""
        if value.held is not None or value.number is not None:
            return
        if value.array is None:
            raise InvalidStateError(
                "the value of a tensor was lost",
                operator="evaluate",
                got=str(value.kind),
                hint=f"An earlier error was: {value.error}" if value.error else "",
            ) from value.error
        held = self.pool.take(value.kind)
        self.context.write_tensor(held.tensor, value.array.view("uint8") if value.kind.data_type == BOOL else value.array)
        value.held, value.array = held, None

    def read(self, value: Value) -> Array:
        """Return the elements of a value."""
        if value.number is not None:
            return np.array(value.number, value.kind.numpy)
        if value.array is not None:
            return value.array.copy()
        return self._shown(value, self.context.read_tensor(self.ready(value).tensor))

    def read_async(self, value: Value) -> MLPromise[Array]:
        """Return a promise of the elements of a value."""
        if value.number is not None or value.array is not None:
            return MLPromise[Array].resolved(self.read(value))
        return self.context.read_tensor_async(self.ready(value).tensor).then(lambda array: self._shown(value, array))

    def ready(self, value: Value) -> Held:
        """Return the memory of a value on the device, after it was computed."""
        if value.unknown:
            raise UnknownValueError(
                "the value is not known: it depends on a placeholder",
                operator="evaluate",
                got=str(value.kind),
                hint="Compute with tensors in the function, and read no values",
            )
        if value.pending:
            self.evaluate()
        if value.held is None:
            self._upload(value)
        assert value.held is not None
        return value.held

    @staticmethod
    def _shown(value: Value, array: Array) -> Array:
        return array.astype(bool) if value.kind.data_type == BOOL else array

    # tapes --------------------------------------------------------------------------------------------------------

    def start_tape(self) -> None:
        """Keep the operations of values that are computed from now on, so that gradients can follow them."""
        self._tapes += 1

    def end_tape(self) -> None:
        """Forget operations of computed values at the end of the outermost tape."""
        self._tapes -= 1
        if not self._tapes:
            for value in self._retained:
                value.node = None
            self._retained.clear()

    def wait(self) -> None:
        """Compute all pending values, and wait until the device has done so."""
        self.evaluate()
        # The device works in order, so that a read ends after all that was queued before.
        self.context.read_tensor(self.pool.take(Kind.of("float32", ())).tensor)

    @property
    def taping(self) -> bool:
        """Whether a tape keeps operations, so that gradients may read earlier values."""
        return self._tapes > 0

    @property
    def recording_gradient(self) -> bool:
        """Whether operations are recorded on values that are not known yet."""
        return self._placeholders > 0

    @contextmanager
    def placeholders(self) -> Generator[None]:
        """Record operations on values that are not known yet, so that nothing can be computed meanwhile."""
        self._placeholders += 1
        try:
            yield
        finally:
            self._placeholders -= 1

    # bookkeeping --------------------------------------------------------------------------------------------------

    def statistics(self) -> Statistics:
        """Return the work of the engine, and its memory."""
        return Statistics(
            compilations=self._compilations,
            runs=self._runs,
            programs=len(self._programs),
            pending=len(self.pending),
            tensors=self.tensors,
            used_bytes=self.pool.used_bytes,
            spare_bytes=self.pool.spare_bytes,
        )

    def clear(self) -> None:
        """Free compiled programs and spare memory."""
        with self._lock:
            for program in self._programs.values():
                program.destroy()
            self._programs.clear()
            self.pool.clear()


def _kind(operand: MLOperand, data_type: str | None) -> Kind:
    stored = str(operand.data_type)
    return Kind.of(BOOL if data_type == BOOL and stored == "uint8" else stored, tuple(operand.shape))
