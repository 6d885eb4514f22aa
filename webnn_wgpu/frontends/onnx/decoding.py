"""Runs a model whose caches of keys and values stay on the device: compiled once, however many rows they have."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass
from types import TracebackType
from typing import TYPE_CHECKING, cast

import numpy as np
import onnx_ir

from webnn_wgpu import InvalidStateError, MLContext, MLGraph, MLTensor, MLTypeError, NotSupportedError
from webnn_wgpu.api.arrays import is_integer
from webnn_wgpu.api.stored_graphs import TokenSteps
from webnn_wgpu.typing import MLOperandDataType

from ..common.held import Shape
from ..common.stages import Feed, resolve
from ..description import Placed
from ..timing import span
from .caches import Cache, InPlace, declared_size, find_caches, growing_axes
from .growth import Growth, filled_up, resized
from .lowering import OnnxLowering, OnnxStage
from .module import OnnxModule
from .operators import MICROSOFT
from .probes import Probe, Probes, lower_whole
from .types import HELD, Array, DType, decode, encode

if TYPE_CHECKING:
    from webnn_wgpu.api.progress import Progress


class State:
    """The caches of one conversation: tensors that stay on the device. Made by `Model.state`.

    Its caches are allocated by the first `Model.run` it is given to. It is a context manager, whose exit destroys it.

    Attributes:
        capacity: most rows of a cache: tokens of prompt and answer together.

    Example:
        >>> state = gpt.state()
        >>> logits = gpt.run({"input_ids": [[5, 6, 7]], "attention_mask": [[1, 1, 1]]}, state=state)["logits"]
        >>> logits = gpt.run({"input_ids": [[8]], "attention_mask": [[1, 1, 1, 1]]}, state=state)["logits"]
        >>> logits.shape, state.length
        ((1, 1, 64), 4)
        >>> state.truncate(2)
        >>> state
        State(2 of 32 rows)
    """

    def __init__(self, decoder: Decoder) -> None:
        self.capacity = decoder.rows
        self._decoder = decoder
        self._length = 0
        self.tensors: dict[str, MLTensor] = {}
        """The caches, by the names of the graph's inputs."""
        self.destroyed = False

    @property
    def length(self) -> int:
        """How many rows of the caches are filled."""
        return self._length

    def of(self, decoder: Decoder) -> bool:
        """Whether the caches are those of a decoder."""
        return self._decoder is decoder

    def add(self, count: int) -> None:
        """Count rows that a run has added."""
        self._length += count

    def truncate(self, length: int) -> None:
        """Forget all rows but the first `length`.

        Raises:
            MLTypeError: there are not so many.
        """
        if not is_integer(length) or not 0 <= length <= self._length:
            raise MLTypeError("there are not so many rows", operator="truncate", got=repr(length), allowed=f"0..{self._length}")
        self._length = int(length)

    def reset(self) -> None:
        """Forget all rows."""
        self._length = 0

    def destroy(self) -> None:
        """Free the caches. Idempotent."""
        self.destroyed = True
        for tensor in self.tensors.values():
            tensor.destroy()
        self.tensors.clear()

    def __enter__(self) -> State:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.destroy()

    def __repr__(self) -> str:
        return "State(destroyed)" if self.destroyed else f"State({self._length} of {self.capacity} rows)"


@dataclass(kw_only=True)
class DecodingStep:
    """A compiled graph, and the tensors that stay with it."""

    graph: MLGraph
    growth: Growth
    lowered: OnnxStage
    fed: dict[str, onnx_ir.Value]
    tensors: dict[str, MLTensor]
    caches: dict[str, tuple[Shape, MLOperandDataType]]
    results: dict[str, tuple[onnx_ir.Value, DType]]
    outputs: dict[str, MLTensor]

    def destroy(self) -> None:
        """Free them."""
        self.graph.destroy()
        for tensor in (*self.tensors.values(), *self.outputs.values()):
            tensor.destroy()


class Decoder:
    """A model whose caches stay on the device.

    Args:
        module: the model.
        context: where it runs.
        rows: capacity of the caches.
        dims: sizes of symbolic dimensions.
        kept: number of sets of shapes whose graphs are kept.

    Raises:
        NotSupportedError: the model has no caches, or some whose rows are not symbolic.
    """

    def __init__(
        self, module: OnnxModule, context: MLContext, rows: int, dims: Mapping[str, int] | None = None, kept: int = 8
    ) -> None:
        if not is_integer(rows) or rows < 1:
            raise MLTypeError(
                "a cache must have room for a row", operator="load", got=f"kv_cache={rows!r}", allowed="1 and more"
            )
        self.module, self.context, self.rows, self.kept = module, context, rows, kept
        self._dims = dict(dims or {})
        graph = module.model.graph
        self.nodes = list(graph)
        self.caches = find_caches(graph, module.name)
        pasts, presents = {c.past for c in self.caches}, {c.output for c in self.caches}
        self.inputs = tuple(v for v in graph.inputs if v.const_value is None and v not in pasts)
        self.outputs = tuple(v for v in graph.outputs if v not in presents)
        self._growing = {v: growing_axes(v, self.caches) for v in self.inputs}
        # Whether the first run is another graph than the later ones.
        self._tells_first = any(n.domain == MICROSOFT and n.op_type == "GroupQueryAttention" for n in self.nodes)
        self._position, self._filled = onnx_ir.Value(name="cache_position"), onnx_ir.Value(name="cache_filled")
        self._steps: OrderedDict[tuple[object, ...], DecodingStep] = OrderedDict()
        self.compiled = 0
        self._lock = threading.Lock()

    # running ------------------------------------------------------------------------------------------------------

    def run(self, feeds: Mapping[onnx_ir.Value, Array], state: State, progress: Progress | None = None) -> list[Array]:
        """Run the model once and leave its new rows in the caches.

        Raises:
            MLTypeError: the caches have no room, were made for other shapes, or are none of this model.
            InvalidStateError: the state was destroyed.
        """
        with self._lock:
            return self._run(feeds, state, progress)

    def _run(self, feeds: Mapping[onnx_ir.Value, Array], state: State, progress: Progress | None) -> list[Array]:
        if not isinstance(state, State) or not state.of(self):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise MLTypeError("not a state of this model", operator="run", got=repr(state), allowed="a result of Model.state()")
        if state.destroyed:
            raise InvalidStateError("the state was destroyed", operator="run")
        step = self._step(feeds, state, progress)
        self._check_room(step.growth.split.count, state)
        caches = self._tensors(step, state)
        with span("host", "masks and positions"):
            values = {**feeds, **step.growth.values(feeds, state.length)}
            values[self._position] = np.array([state.length], np.int32)
            values[self._filled] = values[self._position] + np.int32(step.growth.split.count)
        with span("submit", f"{step.graph.operation_count} operators"):
            for name, value in step.fed.items():
                tensor = step.tensors[name]
                self.context.write_tensor(tensor, filled_up(encode(values[value]), tuple(tensor.shape)))
            updated = {output: caches[source] for output, source in step.graph.aliases.items()}
            self.context.dispatch(step.graph, {**step.tensors, **caches}, {**step.outputs, **updated})
        with span("read back", ", ".join(step.outputs)):
            reads = {name: self.context.read_tensor_async(tensor) for name, tensor in step.outputs.items()}
            arrays = {name: promise.result() for name, promise in reads.items()}
        found: dict[onnx_ir.Value, Array] = {**values, **step.lowered.known}
        for name, (value, dtype) in step.results.items():
            shape = step.growth.probes.shape(value, state.length)
            found[value] = decode(arrays[name], dtype)[tuple(map(slice, shape))]
        state.add(step.growth.split.count)
        wanted = (resolve(v, step.lowered.aliases) for v in self.outputs)
        return [found[v] if v in found else self.module.initializer(v) for v in wanted]

    def _check_room(self, count: int, state: State) -> None:
        if state.length + count > self.rows:
            raise MLTypeError(
                "the caches have no room for so many rows",
                operator="run",
                got=f"{state.length} rows and {count} more",
                allowed=f"kv_cache={self.rows}",
                hint="Load the model with a larger kv_cache, or truncate or reset the state",
            )

    def _tensors(self, step: DecodingStep, state: State) -> dict[str, MLTensor]:
        """Return the caches, made if there are none yet."""
        for name, (shape, data_type) in step.caches.items():
            tensor = state.tensors.get(name)
            if tensor is not None and tuple(tensor.shape) != shape:
                if state.length:
                    raise MLTypeError(
                        "the caches were filled with other shapes",
                        operator="run",
                        got=f"{name}: {list(shape)}",
                        allowed=f"{list(tensor.shape)}",
                        hint="Use another state, or reset this one",
                    )
                tensor.destroy()
                tensor = None
            state.tensors[name] = tensor or self.context.create_tensor(shape, data_type, readable=True)
        return dict(state.tensors)

    # compiling ----------------------------------------------------------------------------------------------------

    def _step(self, feeds: Mapping[onnx_ir.Value, Array], state: State, progress: Progress | None) -> DecodingStep:
        key: list[object] = [self._tells_first and not state.length]
        for value in self.inputs:
            sizes = list(feeds[value].shape)
            if 0 in sizes:
                raise MLTypeError(
                    "an input has no elements", operator="run", got=f"{value.name}: {sizes}", allowed="a new token and more"
                )
            for axis in self._growing[value]:
                sizes[axis] -= state.length
                wanted = self._declared(value, axis, feeds, state)
                if sizes[axis] < 0 or (wanted is not None and wanted != feeds[value].shape[axis]):
                    raise MLTypeError(
                        "an input must grow with the caches",
                        operator="run",
                        got=f"{value.name}: {list(feeds[value].shape)}",
                        allowed=f"in dimension {axis}, {state.length} cached rows and the new ones"
                        + (f": {wanted}" if wanted is not None else ""),
                    )
            key.append(tuple(sizes))
        step = self._steps.get(tuple(key))
        if step is None:
            step = self._steps[tuple(key)] = self._compile(feeds, state, progress)
            while len(self._steps) > self.kept:
                self._steps.popitem(last=False)[1].destroy()
        self._steps.move_to_end(tuple(key))
        return step

    def _declared(self, value: onnx_ir.Value, axis: int, feeds: Mapping[onnx_ir.Value, Array], state: State) -> int | None:
        """Return the size that a growing dimension is declared to have, where that is a sum such as "past + sequence"."""
        sizes = {s: state.length for c in self.caches if isinstance(s := declared_size(c.past, c.axis), str)}
        for other in self.inputs:
            named = ((declared_size(other, i), size) for i, size in enumerate(feeds[other].shape))
            sizes |= {name: size for name, size in named if isinstance(name, str) and name not in sizes}
        parts = [part.strip() for part in str(declared_size(value, axis)).split("+")]
        # Of "past + 1" the 1 is what the exporter had at hand, rather than a rule.
        return sum(sizes[part] for part in parts) if len(parts) > 1 and all(part in sizes for part in parts) else None

    def _probe(self, feeds: Mapping[onnx_ir.Value, Array], shapes: Mapping[Cache, Shape], rows: int, state: State) -> Probe:
        given: dict[onnx_ir.Value, Feed] = {}
        for value in self.inputs:
            array = resized(feeds[value], self._growing[value], rows - state.length)
            given[value] = Feed(array.shape, array.dtype, array)
        for cache in self.caches:
            given[cache.past] = Feed(_with(shapes[cache], cache.axis, rows), _dtype(cache))
        outputs = [*self.outputs, *(c.present for c in self.caches)]
        return Probe.of(self.module, self.context, self.nodes, outputs, given, rows)

    def _compile(self, feeds: Mapping[onnx_ir.Value, Array], state: State, progress: Progress | None) -> DecodingStep:
        shapes = {c: self._shape(c, feeds) for c in self.caches}
        with span("lower", f"{len(self.nodes)} nodes"):
            few = self._probe(feeds, shapes, 1, state)
            first = self.caches[0]
            count = few[first.present].shape[first.axis] - 1
            self._check_room(count, state)
            full = self._probe(feeds, shapes, self.rows - count, state)
            if full.rows == few.rows:
                few = self._probe(feeds, shapes, 2, state)
            growth = Growth(self.module, self.nodes, self.outputs, self._growing, self.caches, Probes(few, full))
            lowered, caches = self._lower(growth, feeds, shapes, not state.length)
        names = {value: name for name, value in lowered.inputs.items()}
        aliases = {name: names[c.past] for name, (v, _) in lowered.outputs.items() for c in self.caches if v is c.present}
        with span("compile", ", ".join(lowered.outputs)):
            graph = lowered.builder.build(lowered.operands, aliases=aliases, progress=progress, tuning=self.module.tuning)
        self.compiled += 1
        fed = {n: v for n, v in lowered.inputs.items() if n in graph.inputs and v not in caches}
        results = {n: (v, t.dtype) for n, (v, t) in lowered.outputs.items() if n not in aliases}
        lowered.outputs.clear()
        make = self.context.create_tensor
        return DecodingStep(
            graph=graph,
            growth=growth,
            lowered=lowered,
            fed=fed,
            tensors={n: make(t.shape, t.data_type, writable=True) for n, t in graph.inputs.items() if n in fed},
            caches={names[v]: (f.shape, HELD[f.dtype]) for v, f in caches.items()},
            results=results,
            outputs={n: make(t.shape, t.data_type, readable=True) for n, t in graph.outputs.items() if n in results},
        )

    def _lower(
        self, growth: Growth, feeds: Mapping[onnx_ir.Value, Array], shapes: Mapping[Cache, Shape], first: bool
    ) -> tuple[OnnxStage, dict[onnx_ir.Value, Feed]]:
        """Lower the device's part for whole caches."""
        split = growth.split
        caches = {c.past: Feed(_with(shapes[c], c.axis, self.rows), _dtype(c)) for c in self.caches}
        given = {v: Feed(feeds[v].shape, feeds[v].dtype) for v in self.inputs}
        given |= {v: Feed(shape, dtype) for v, (shape, dtype) in split.fed.items()}
        given |= {**caches, **dict.fromkeys((self._position, self._filled), Feed((1,), np.dtype(np.int32)))}
        in_place = InPlace(
            pasts=frozenset(caches),
            position=self._position,
            filled=self._filled,
            bounded=split.bounded,
            first=self._tells_first and first,
        )
        lowering = OnnxLowering(self.module, self.context, given, {}, (), known=split.fixed, in_place=in_place)
        return lower_whole(lowering, split.device, [*self.outputs, *(c.present for c in self.caches)]), caches

    def _shape(self, cache: Cache, feeds: Mapping[onnx_ir.Value, Array]) -> Shape:
        """Return a cache's shape, from its declaration and the shapes of other inputs, with 0 rows."""
        sizes = dict(self._dims)
        for value in self.inputs:
            names = (declared_size(value, axis) for axis in range(feeds[value].ndim))
            sizes |= {name: n for name, n in zip(names, feeds[value].shape, strict=True) if isinstance(name, str)}
        found: list[int] = []
        for axis in range(len(cache.past.shape or ())):
            declared = declared_size(cache.past, axis)
            size = declared if isinstance(declared, int) else 0 if axis == cache.axis else sizes.get(declared or "")
            if size is None:
                raise NotSupportedError(
                    f"{self.module.name}: no input tells the size '{declared}' of cache '{cache.past.name}'",
                    operator="run",
                    hint="override_dims pins it",
                )
            found.append(size)
        return tuple(found)

    def token_steps(self) -> TokenSteps:
        """Return the graph of one token, with the inputs that the host computes for each number of cached rows.

        Masks are ones, and positions count the rows. Values that the host computes from tokens cannot be tabulated.

        Raises:
            NotSupportedError: no run of one token, several inputs for tokens, or values that depend on the token's number.
        """
        found = [(k, s) for k, s in reversed(self._steps.items()) if s.growth.split.count == 1]
        if not found:
            raise NotSupportedError(
                "the graph of one token must be compiled", operator="export", hint="Run the model with one token before"
            )
        key, step = next(((k, s) for k, s in found if not k[0]), found[0])
        sizes = dict(zip(self.inputs, cast("tuple[tuple[int, ...], ...]", key[1:]), strict=True))
        if key[0]:
            # The first token has a graph of its own, but that of later ones also runs without rows before them.
            state = State(self)
            state.add(1)
            step = self._step(self._feeds_of_token(sizes, 1, 0), state, None)
        counted = {v for v in self.inputs if self._growing[v] or "position" in (v.name or "")}
        tokens = [name for name, value in step.fed.items() if value in self.inputs and value not in counted]
        if len(tokens) != 1 or not all(np.dtype(_dtype_of(v)).kind in "iu" for v in self.inputs):
            raise NotSupportedError(
                "a decoder must have one input for tokens", operator="export", got=", ".join(tokens) or "none"
            )
        tables: dict[str, list[Array]] = {name: [] for name in step.fed if name not in tokens}
        for rows in range(self.rows):
            values, others = (self._values_of_token(step, sizes, rows, token) for token in (0, 1))
            for name, table in tables.items():
                value = step.fed[name]
                if not np.array_equal(values[value], others[value]):
                    raise NotSupportedError("a mask or position depends on the tokens", operator="export", got=str(value.name))
                table.append(filled_up(encode(values[value]), tuple(step.tensors[name].shape)))
        return TokenSteps(
            graph=step.graph, tokens=tokens[0], tables={n: np.stack(table) for n, table in tables.items()}, rows=self.rows
        )

    def _values_of_token(
        self, step: DecodingStep, sizes: Mapping[onnx_ir.Value, tuple[int, ...]], rows: int, token: int
    ) -> dict[onnx_ir.Value, Array]:
        """Return the values that a run of one token is fed behind so many cached rows."""
        feeds = self._feeds_of_token(sizes, rows, token)
        position = np.array([rows], np.int32)
        return {
            **feeds,
            **step.growth.values(feeds, rows),
            self._position: position,
            self._filled: position + np.int32(step.growth.split.count),
        }

    def _feeds_of_token(
        self, sizes: Mapping[onnx_ir.Value, tuple[int, ...]], rows: int, token: int
    ) -> dict[onnx_ir.Value, Array]:
        """Return the inputs of a run of one token behind so many cached rows: masks of ones, and positions."""
        feeds: dict[onnx_ir.Value, Array] = {}
        for value, shape in sizes.items():
            grown = tuple(size + rows if axis in self._growing[value] else size for axis, size in enumerate(shape))
            content = 1 if self._growing[value] else rows if "position" in (value.name or "") else token
            feeds[value] = np.full(grown, content, _dtype_of(value))
        return feeds

    # what `Model` asks --------------------------------------------------------------------------------------------

    @property
    def staged(self) -> int:
        """How many stages were compiled: each is a graph."""
        return self.compiled

    def placements(self) -> tuple[Placed, ...]:
        """Return where the nodes run, for the graph used last."""
        if not self._steps:
            return ()
        step = next(reversed(self._steps.values()))
        return (*step.lowered.placed, *step.growth.placed())

    def graphs(self) -> list[MLGraph]:
        """Return the graph used last."""
        return [next(reversed(self._steps.values())).graph] if self._steps else []

    def destroy(self) -> None:
        """Free every graph."""
        for step in self._steps.values():
            step.destroy()
        self._steps.clear()


def _with(shape: Shape, axis: int, size: int) -> Shape:
    return (*shape[:axis], size, *shape[axis + 1 :])


def _dtype(cache: Cache) -> DType:
    return _dtype_of(cache.past)


def _dtype_of(value: onnx_ir.Value) -> DType:
    assert value.dtype is not None
    return np.dtype(value.dtype.numpy())
