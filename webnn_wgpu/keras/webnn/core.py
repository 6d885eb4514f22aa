"""The core of the backend: variables, conversions, shapes without numbers, and control flow."""

from __future__ import annotations

import builtins
import contextlib
from collections.abc import Callable, Generator, Sequence
from typing import Any

import numpy as np
from keras.src import tree
from keras.src.backend.common import KerasVariable, standardize_dtype
from keras.src.backend.common.dtypes import result_type
from keras.src.backend.common.keras_tensor import KerasTensor
from keras.src.backend.common.stateless_scope import StatelessScope, get_stateless_scope, in_stateless_scope
from keras.src.backend.common.symbolic_scope import SymbolicScope

from webnn_wgpu import eager

from . import host
from .dtypes import canonical
from .tensor import Tensor, call, moved, of_array, recorded, stored_float, unknown
from .tensor import cast as cast_tensor

SUPPORTS_SPARSE_TENSORS = False
SUPPORTS_RAGGED_TENSORS = False
SUPPORTS_COMPLEX_DTYPES = True
IS_THREAD_SAFE = False


class Variable(KerasVariable):
    """A variable, whose elements lie on the device once a graph has used them."""

    def _initialize(self, value: Any) -> None:
        found = convert_to_tensor(value, dtype=self._dtype)
        self._value: Tensor | None = found if found.value is None else Tensor(eager.Variable(recorded(found)), found.dtype)

    @property
    def value(self) -> Any:
        """The present value, which later assignments do not change."""
        found = super().value
        return Tensor(found.value.read(), found.dtype) if found is self._value and found.value is not None else found

    def _direct_assign(self, value: Any) -> None:
        found = cast(value, self._dtype)
        before = self._value
        if before is None or before.value is None:
            self._initialize(found)
        else:
            recorded(before).assign(recorded(found))

    def _convert_to_tensor(self, value: Any, dtype: Any = None) -> Tensor:
        return convert_to_tensor(value, dtype=dtype)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        return np.asarray(convert_to_tensor(self.value), dtype)


# Conversions -------------------------------------------------------------------------------------------------------


def convert_to_tensor(x: Any, dtype: Any = None, sparse: bool | None = None, ragged: bool | None = None) -> Tensor:
    """Return anything as a tensor."""
    if sparse:
        raise ValueError("`sparse=True` is not supported with the webnn backend")
    if ragged:
        raise ValueError("`ragged=True` is not supported with the webnn backend")
    if isinstance(x, KerasVariable):
        x = x.value
    named = None if dtype is None else canonical(standardize_dtype(dtype))
    if isinstance(x, Tensor):
        return x if named is None else cast_tensor(x, named)
    if isinstance(x, KerasTensor):
        raise ValueError(f"a symbolic KerasTensor has no value: {x}")
    if isinstance(x, (list, tuple)):
        flat = tree.flatten(x)
        if builtins.any(isinstance(each, (Tensor, KerasVariable)) for each in flat):
            return _stacked(x, named or canonical(result_type(*[getattr(each, "dtype", type(each)) for each in flat])))
        if named is None:
            named = canonical(result_type(*[getattr(each, "dtype", type(each)) for each in flat]))
    if named is None:
        named = canonical(standardize_dtype(result_type(getattr(x, "dtype", type(x)))))
    if hasattr(x, "detach"):  # an array of torch, whose device may not be the host
        x = x.detach().cpu()
    elif hasattr(x, "toarray"):  # a sparse matrix of scipy
        x = x.toarray()
    array = np.asarray(x)
    return of_array(array, named)


def _stacked(items: Any, dtype: str) -> Tensor:
    from . import numpy

    if not isinstance(items, (list, tuple)):
        return convert_to_tensor(items, dtype)
    return numpy.stack([_stacked(each, dtype) for each in items])


def convert_to_numpy(x: Any) -> Any:
    """Return the elements as an array of the host."""
    if isinstance(x, (Tensor, KerasVariable)):
        return convert_to_tensor(x).numpy()
    return np.array(x)


def is_tensor(x: Any) -> bool:
    """Return whether an object is a tensor of this backend."""
    return isinstance(x, Tensor)


def shape(x: Any) -> tuple[int, ...]:
    """Return the dimensions."""
    return tuple(x.shape)


def cast(x: Any, dtype: Any) -> Tensor:
    """Return the elements in another data type."""
    return cast_tensor(convert_to_tensor(x), canonical(standardize_dtype(dtype)))


# Shapes without numbers ---------------------------------------------------------------------------------------------

_SIZES = (83, 89)
"""Sizes that stand for an unknown one. A dimension that differs between both is unknown in the result."""


def compute_output_spec(fn: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """Return the symbolic tensors that a function gives, without running it."""

    def outputs(size: int) -> Any:
        def given(x: Any) -> Any:
            if isinstance(x, KerasTensor):
                return unknown([size if each is None else each for each in x.shape], canonical(standardize_dtype(x.dtype)))
            return x

        found_args, found_kwargs = tree.map_structure(given, (args, kwargs))
        return fn(*found_args, **found_kwargs)

    def symbolic(first: Any, second: Any = None) -> Any:
        if not isinstance(first, Tensor):
            return first
        sizes = first.shape
        if isinstance(second, Tensor):
            sizes = tuple(a if a == b else None for a, b in zip(first.shape, second.shape, strict=True))
        return KerasTensor(sizes, first.dtype)

    with StatelessScope(), SymbolicScope(), host.shapes_only():
        first = outputs(_SIZES[0])
        open_sizes = [isinstance(x, KerasTensor) and None in x.shape for x in tree.flatten((args, kwargs))]
        if not builtins.any(open_sizes):
            return tree.map_structure(symbolic, first)
        return tree.map_structure(symbolic, first, outputs(_SIZES[1]))


# Control flow -------------------------------------------------------------------------------------------------------


class _Branch(StatelessScope):
    """The scope of a function that may not be the one that is chosen. It begins with the values of the scope around it."""

    def __init__(self) -> None:
        super().__init__(initialize_variables=False)
        self.changed: dict[int, Any] = {}
        if in_stateless_scope():
            outer = get_stateless_scope()
            self.state_mapping.update(outer.state_mapping)
            self.losses, self.collect_losses = outer.losses, outer.collect_losses

    def add_update(self, update: tuple[Any, Any]) -> None:
        """Note the new value of a variable."""
        self.changed[id(update[0])] = update[0]
        super().add_update(update)


def cond(pred: Any, true_fn: Callable[[], Any], false_fn: Callable[[], Any]) -> Any:
    """Call one of two functions. Where the condition has no number yet, both run and their results are chosen from."""
    condition = convert_to_tensor(pred, "bool")
    if not condition.unknown:
        return true_fn() if bool(condition) else false_fn()
    results: list[Any] = []
    branches: list[_Branch] = []
    for function in (true_fn, false_fn):
        with _Branch() as branch:
            results.append(function())
        branches.append(branch)
    if in_stateless_scope():
        changed = {**branches[0].changed, **branches[1].changed}
        for identity, variable in changed.items():
            first, second = (branch.state_mapping.get(identity, variable.value) for branch in branches)
            get_stateless_scope().add_update((variable, _chosen(condition, first, second)))
    return tree.map_structure(lambda a, b: _chosen(condition, a, b), results[0], results[1])


def _chosen(condition: Tensor, first: Any, second: Any) -> Any:
    if first is None or first is second:
        return first
    from . import numpy

    return numpy.where(condition, first, second)


def switch(index: Any, branches: Sequence[Callable[..., Any]], *operands: Any) -> Any:
    """Call the function with a number."""
    chosen = convert_to_tensor(index, "int32")
    if not chosen.unknown:
        return branches[min(max(int(chosen), 0), len(branches) - 1)](*operands)
    found = branches[-1](*operands)
    for number in range(len(branches) - 2, -1, -1):
        condition, branch, others = chosen <= number, branches[number], found
        found = cond(condition, lambda branch=branch: branch(*operands), lambda others=others: others)
    return found


def while_loop(
    cond: Callable[..., Any], body: Callable[..., Any], loop_vars: Any, maximum_iterations: int | None = None
) -> Any:
    """Call a function as long as a condition holds. The host asks for the condition in each round."""
    several = isinstance(loop_vars, (list, tuple))
    state = tree.map_structure(convert_to_tensor, tuple(loop_vars) if several else (loop_vars,))
    count = 0
    while (maximum_iterations is None or count < maximum_iterations) and bool(convert_to_tensor(cond(*state), "bool")):
        found = body(*state)
        state = tuple(found) if isinstance(found, (list, tuple)) else (found,)
        count += 1
    return state if several else state[0]


def fori_loop(lower: Any, upper: Any, body_fun: Callable[..., Any], init_val: Any) -> Any:
    """Call a function for each number of a range."""
    found = init_val
    for number in range(int(lower), int(upper)):
        found = body_fun(convert_to_tensor(number), found)
    return found


def map(f: Callable[[Any], Any], xs: Any) -> Any:
    """Call a function for each element of the first dimension, and stack the results."""
    return scan(lambda _, x: ((), f(x)), (), xs)[1]


def scan(
    f: Callable[[Any, Any], Any],
    init: Any,
    xs: Any = None,
    length: int | None = None,
    reverse: bool = False,
    unroll: Any = 1,
) -> Any:
    """Call a function with a carried state for each element of the first dimension. Steps are unrolled in the graph."""
    from . import numpy

    if not callable(f):
        raise TypeError(f"`f` should be a callable. Received: f={f}")
    if not isinstance(unroll, bool) and (not isinstance(unroll, int) or unroll < 1):
        raise ValueError(f"`unroll` must be an positive integer or boolean. Received: unroll={unroll}")
    if xs is None and length is None:
        raise ValueError("Got no `xs` to scan over and `length` not provided.")

    def given(x: Any) -> Any:
        return None if x is None else convert_to_tensor(x)

    elements = tree.map_structure(given, xs)
    count = int(length) if length is not None else shape(tree.flatten(elements)[0])[0]
    carry = tree.map_structure(given, init)
    order = range(count - 1, -1, -1) if reverse else range(count)
    found: list[Any] = []
    for number in order:
        carry, y = f(carry, None if xs is None else tree.map_structure(lambda x, number=number: x[number], elements))
        found.append(tree.map_structure(numpy.zeros_like, carry) if y is None else y)
    if reverse:
        found.reverse()
    return carry, tree.map_structure(lambda *ys: numpy.stack(ys), *found)


def associative_scan(f: Callable[[Any, Any], Any], elems: Any, reverse: bool = False, axis: int = 0) -> Any:
    """Combine elements of a dimension with all before them, in a number of rounds that is the logarithm of their number."""
    from . import numpy

    if not callable(f):
        raise TypeError(f"`f` should be a callable. Received: f={f}")
    flat = [convert_to_tensor(each) for each in tree.flatten(elems)]
    axis = axis % len(flat[0].shape)
    count = flat[0].shape[axis]
    if not builtins.all(each.shape[axis] == count for each in flat):
        raise ValueError(
            f"Array inputs to associative_scan must have the same first dimension. (saw: {[each.shape for each in flat]})"
        )
    flat = [numpy.flip(each, axis) for each in flat] if reverse else flat

    def part(x: Tensor, start: int, stop: int) -> Tensor:
        return x[(builtins.slice(None),) * axis + (builtins.slice(start, stop),)]

    distance = 1
    while distance < count:
        packed = [
            tree.pack_sequence_as(elems, [part(each, *ends) for each in flat])
            for ends in ((0, count - distance), (distance, count))
        ]
        combined = tree.flatten(f(*packed))
        flat = [numpy.concatenate([part(x, 0, distance), y], axis) for x, y in zip(flat, combined, strict=True)]
        distance *= 2
    return tree.pack_sequence_as(elems, [numpy.flip(each, axis) for each in flat] if reverse else flat)


def vectorized_map(function: Callable[[Any], Any], elements: Any) -> Any:
    """Call a function for each element of the first dimension, and stack the results."""
    from . import numpy

    if not isinstance(elements, (list, tuple)):
        found = [function(x) for x in convert_to_tensor(elements)]
    else:
        tensors = [convert_to_tensor(each) for each in elements]
        found = [function([x[number] for x in tensors]) for number in range(tensors[0].shape[0])]
    return tree.map_structure(lambda *ys: numpy.stack(ys), *found)


# Parts of tensors -----------------------------------------------------------------------------------------------------


def scatter(indices: Any, values: Any, shape: Sequence[int]) -> Tensor:
    """Return zeros with values added at coordinates."""
    from . import numpy

    found = convert_to_tensor(values)
    return scatter_update(numpy.zeros(tuple(shape), dtype=found.dtype), indices, found, reduction="add")


def scatter_update(inputs: Any, indices: Any, updates: Any, reduction: str | None = None) -> Tensor:
    """Return a copy with elements at coordinates replaced by or combined with others."""
    from . import numpy

    if reduction not in (None, "add", "max", "min", "mul"):
        raise ValueError(f"Unsupported reduction: {reduction}")
    x, where = convert_to_tensor(inputs), convert_to_tensor(indices, "int32")
    new = cast(updates, x.dtype)
    if x.value is None or new.value is None or where.value is None:
        return host.fall_back("core", "scatter_update", x, where, new, reduction=reduction)
    depth = where.shape[-1]
    new = numpy.broadcast_to(new, where.shape[:-1] + x.shape[depth:])
    if reduction is None:
        return moved("ext.scatter_nd", x, where, new, reduction="none")
    return call("ext.scatter_nd", x, where, new, reduction=reduction, dtype=x.dtype)


def slice(inputs: Any, start_indices: Any, shape: Sequence[int]) -> Tensor:
    """Return a window."""
    x = convert_to_tensor(inputs)
    if len(start_indices) != len(shape):
        raise ValueError(
            f"Length of `start_indices` must match length of `shape`. Received: start_indices={start_indices}, shape={shape}"
        )
    from . import numpy

    for axis, (start, size) in enumerate(zip(_starts(start_indices), shape, strict=True)):
        if isinstance(start, Tensor):
            x = numpy.take(x, numpy.arange(int(size)) + start, axis=axis)
        else:
            key = (builtins.slice(None),) * axis + (builtins.slice(start, start + int(size)),)
            x = x[key]
    return x


def _starts(start_indices: Any) -> list[Any]:
    """Return numbers where they are known, and scalars elsewhere."""
    found = list(start_indices)
    return [x if isinstance(x, Tensor) and x.unknown else int(x) for x in found]


def slice_update(inputs: Any, start_indices: Any, updates: Any) -> Tensor:
    """Return a copy with a window replaced."""
    from . import numpy

    x, new = convert_to_tensor(inputs), convert_to_tensor(updates)
    if not new.shape:
        return cast(new, x.dtype)
    starts = _starts(start_indices)
    places = [numpy.arange(size) + start for size, start in zip(new.shape, starts, strict=True)]
    grid = numpy.stack(numpy.meshgrid(*places, indexing="ij"), axis=-1)
    return scatter_update(x, grid, new)


def unstack(x: Any, num: int | None = None, axis: int = 0) -> list[Tensor]:
    """Return the elements of a dimension."""
    found = convert_to_tensor(x)
    axis = axis % len(found.shape)
    return [found[(builtins.slice(None),) * axis + (number,)] for number in range(found.shape[axis])]


# Gradients ------------------------------------------------------------------------------------------------------------


def stop_gradient(variable: Any) -> Tensor:
    """Return the elements, through which no gradient passes."""
    x = convert_to_tensor(variable)
    return x if x.value is None else moved("stop_gradient", x)


def gradients(output: Any, inputs: Sequence[Any], seed: Any = None) -> list[Any]:
    """Return the gradients of the sum of a tensor, for a `train_step` of one's own.

    Args:
        output: a tensor of floats, such as a loss.
        inputs: variables or tensors of floats, from which the output was computed.
        seed: the gradient of the output. The default is ones.

    Returns:
        A tensor for each of the inputs, with its data type and shape. Inputs without influence have gradients of zeros.

    Raises:
        NotSupportedError: an operator between the inputs and the output has no gradient.
    """
    sources = [convert_to_tensor(each) for each in inputs]
    given = None if seed is None else recorded(convert_to_tensor(seed, output.dtype))
    found = eager.gradients(recorded(convert_to_tensor(output)), [recorded(each) for each in sources], given)
    return [Tensor(value, each.dtype) for value, each in zip(found, sources, strict=True)]


class custom_gradient:  # noqa: N801 - Keras's name
    """A function that states its gradient: it returns its result and a function of the result's gradient."""

    def __init__(self, fun: Callable[..., Any]) -> None:
        self.fun = fun

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Return the results of the function, with the gradient that it states."""
        outputs, gradient = self.fun(*args, **kwargs)
        results = [x for x in tree.flatten(outputs) if isinstance(x, Tensor) and x.value is not None and stored_float(x)]
        sources = [convert_to_tensor(x) if isinstance(x, (Tensor, KerasVariable)) else None for x in args]
        floats = [n for n, x in enumerate(sources) if x is not None and x.value is not None and stored_float(x)]
        if not floats or len(results) != len(tree.flatten(outputs)):
            return outputs

        def stated(*seeds: eager.Tensor) -> list[eager.Tensor | None]:
            found = gradient(*[Tensor(seed, x.dtype) for seed, x in zip(seeds, results, strict=True)])
            given = list(found) if isinstance(found, (list, tuple)) else [found]
            return [None if given[n] is None else recorded(cast(given[n], sources[n].dtype)) for n in floats]

        kept = eager.with_gradient([recorded(x) for x in results], [recorded(sources[n]) for n in floats], stated)
        renamed = {id(x): Tensor(value, x.dtype) for x, value in zip(results, kept, strict=True)}
        return tree.map_structure(lambda x: renamed.get(id(x), x), outputs)


def remat(f: Callable[..., Any]) -> Callable[..., Any]:
    """Return the function: the planner of graphs decides which results it keeps."""
    return f


def random_seed_dtype() -> str:
    """Return the data type of seeds."""
    return "uint32"


@contextlib.contextmanager
def device_scope(device_name: str) -> Generator[None]:
    """Accept a device by name. The context of the backend is the only device. See `webnn_wgpu.keras.use`."""
    yield
