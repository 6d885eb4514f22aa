"""Functions of `keras.ops` that move elements without changing them."""

from __future__ import annotations

import builtins
import math as host_math
import operator
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from keras.src.backend.common.dtypes import result_type

from . import core, host
from .dtypes import canonical, numpy_dtype
from .elementwise import chosen, dtype_of, number
from .tensor import Tensor, call, cast, listed, moved, of_array, several, unknown


def axis_of(axis: int, rank: int) -> int:
    """Return an axis counted from 0.

    Raises:
        ValueError: there is no such axis.
    """
    axis = operator.index(axis)
    if not -rank <= axis < rank:
        raise ValueError(f"axis {axis} is out of bounds for array of dimension {rank}")
    return axis % rank


def axes_of(axis: Any, rank: int) -> list[int]:
    """Return axes counted from 0. All of them for None."""
    if axis is None:
        return list(range(rank))
    return sorted({axis_of(each, rank) for each in (axis if isinstance(axis, (list, tuple)) else (axis,))})


def empty_of(shape: Sequence[int], dtype: str) -> Tensor:
    """Return an empty array."""
    return Tensor(np.zeros(tuple(shape), numpy_dtype(dtype)), dtype)


@host.unless_held("numpy")
def reshape(x: Any, newshape: Any) -> Tensor:
    """The elements in another shape."""
    found = core.convert_to_tensor(x)
    sizes = [int(size) for size in (newshape if isinstance(newshape, (list, tuple)) else (newshape,))]
    if -1 in sizes:
        rest = host_math.prod(size for size in sizes if size != -1)
        if rest == 0 or found.size % rest:
            raise ValueError(f"cannot reshape array of size {found.size} into shape {tuple(sizes)}")
        sizes[sizes.index(-1)] = found.size // rest
    if host_math.prod(sizes) != found.size:
        raise ValueError(f"cannot reshape array of size {found.size} into shape {tuple(sizes)}")
    return found if tuple(sizes) == found.shape else moved("reshape", found, new_shape=sizes)


def ravel(x: Any) -> Tensor:
    """The elements in one dimension."""
    return reshape(x, (-1,))


@host.unless_held("numpy")
def transpose(x: Any, axes: Any = None) -> Tensor:
    """The dimensions in another order."""
    found = core.convert_to_tensor(x)
    order = list(range(found.ndim))[::-1] if axes is None else [axis_of(axis, found.ndim) for axis in axes]
    return found if order == sorted(order) else moved("transpose", found, permutation=order)


def swapaxes(x: Any, axis1: int, axis2: int) -> Tensor:
    """The tensor with two dimensions exchanged."""
    found = core.convert_to_tensor(x)
    order = list(range(found.ndim))
    a, b = axis_of(axis1, found.ndim), axis_of(axis2, found.ndim)
    order[a], order[b] = b, a
    return transpose(found, order)


def moveaxis(x: Any, source: Any, destination: Any) -> Tensor:
    """The tensor with dimensions at other places."""
    found = core.convert_to_tensor(x)
    old, new = ([axis_of(a, found.ndim) for a in (g if isinstance(g, (list, tuple)) else (g,))] for g in (source, destination))
    order = [axis for axis in range(found.ndim) if axis not in old]
    for place, axis in sorted(zip(new, old, strict=True)):
        order.insert(place, axis)
    return transpose(found, order)


@host.unless_held("numpy")
def expand_dims(x: Any, axis: Any) -> Tensor:
    """The tensor with further dimensions of size 1."""
    found = core.convert_to_tensor(x)
    axes = list(axis) if isinstance(axis, (list, tuple)) else [axis]
    rank = found.ndim + len(axes)
    places = [axis_of(each, rank) for each in axes]
    sizes = iter(found.shape)
    return reshape(found, [1 if place in places else next(sizes) for place in range(rank)])


@host.unless_held("numpy")
def squeeze(x: Any, axis: Any = None) -> Tensor:
    """The tensor without dimensions of size 1."""
    found = core.convert_to_tensor(x)
    axes = [n for n, size in enumerate(found.shape) if size == 1] if axis is None else axes_of(axis, found.ndim)
    if any(found.shape[each] != 1 for each in axes):
        raise ValueError(f"cannot select an axis to squeeze out which has size not equal to one: {axis} of {found.shape}")
    return reshape(found, [size for n, size in enumerate(found.shape) if n not in axes])


@host.unless_held("numpy")
def broadcast_to(x: Any, shape: Any) -> Tensor:
    """The tensor repeated to a shape."""
    found = core.convert_to_tensor(x)
    sizes = tuple(int(size) for size in (shape if isinstance(shape, (list, tuple)) else (shape,)))
    if sizes == found.shape:
        return found
    if 0 in sizes:
        return empty_of(sizes, found.dtype)
    np.broadcast_shapes(found.shape, sizes)
    return moved("expand", found, new_shape=sizes)


def _together(xs: Sequence[Any]) -> list[Tensor]:
    """Return tensors of the data type that Keras gives their combination."""
    given = [x if hasattr(x, "dtype") else core.convert_to_tensor(x) for x in xs]
    dtype = canonical(result_type(*{dtype_of(x) for x in given})) if given else "float32"
    return [core.convert_to_tensor(x, dtype) for x in given]


@host.unless_held("numpy")
def concatenate(xs: Any, axis: int | None = 0) -> Tensor:
    """Tensors one after the other."""
    found = _together(list(xs))
    if axis is None:
        found, axis = [ravel(x) for x in found], 0
    axis = axis_of(axis, found[0].ndim)
    if any(x.value is None for x in found):
        return host.fall_back("numpy", "concatenate", found, axis)
    return found[0] if len(found) == 1 else listed("concat", found, axis=axis)


@host.unless_held("numpy")
def stack(x: Any, axis: int = 0) -> Tensor:
    """Tensors in a further dimension."""
    found = _together(list(x))
    return concatenate(
        [expand_dims(each, axis_of(axis, found[0].ndim + 1)) for each in found], axis_of(axis, found[0].ndim + 1)
    )


def _atleast(rank: int, xs: Any) -> list[Tensor]:
    found: list[Tensor] = []
    for x in (core.convert_to_tensor(each) for each in xs):
        shape = x.shape
        if rank == 1 and not shape:
            shape = (1,)
        elif rank == 2 and len(shape) < 2:
            shape = (1, *shape) if shape else (1, 1)
        elif rank == 3 and len(shape) < 3:
            shape = {0: (1, 1, 1), 1: (1, *shape, 1), 2: (*shape, 1)}[len(shape)]
        found.append(reshape(x, shape))
    return found


def hstack(xs: Any) -> Tensor:
    """Tensors side by side."""
    found = _atleast(1, xs)
    return concatenate(found, 0 if found[0].ndim == 1 else 1)


def vstack(xs: Any) -> Tensor:
    """Tensors one below the other."""
    return concatenate(_atleast(2, xs), 0)


def dstack(xs: Any) -> Tensor:
    """Tensors one behind the other."""
    return concatenate(_atleast(3, xs), 2)


def append(x1: Any, x2: Any, axis: int | None = None) -> Tensor:
    """A tensor after another."""
    return concatenate([x1, x2], axis)


def _window(x: Tensor, axis: int, start: int, stop: int, step: int = 1) -> Tensor:
    """Return elements of a dimension from start to stop."""
    size = len(range(start, stop, step))
    if size == 0:
        return empty_of([*x.shape[:axis], 0, *x.shape[axis + 1 :]], x.dtype)
    starts, sizes, strides = [0] * x.ndim, list(x.shape), [1] * x.ndim
    starts[axis], sizes[axis], strides[axis] = start, stop - start, step
    return x if size == x.shape[axis] else moved("slice", x, starts=starts, sizes=sizes, strides=strides)


@host.unless_held("numpy")
def split(x: Any, indices_or_sections: Any, axis: int = 0) -> list[Tensor]:
    """Parts of equal sizes, or between given places."""
    found = core.convert_to_tensor(x)
    axis = axis_of(axis, found.ndim)
    size = found.shape[axis]
    if isinstance(indices_or_sections, (int, np.integer)):
        sections = int(indices_or_sections)
        if size % sections:
            raise ValueError("array split does not result in an equal division")
        ends = [size // sections * number for number in range(1, sections)]
    else:
        ends = [int(end) for end in np.asarray(indices_or_sections)]
    places = [0, *(min(end if end >= 0 else end + size, size) for end in ends), size]
    return [_window(found, axis, start, max(start, stop)) for start, stop in pairwise(places)]


def array_split(x: Any, indices_or_sections: Any, axis: int = 0) -> list[Tensor]:
    """Parts of nearly equal sizes."""
    found = core.convert_to_tensor(x)
    axis = axis_of(axis, found.ndim)
    if not isinstance(indices_or_sections, (int, np.integer)):
        return split(found, indices_or_sections, axis)
    count, rest = divmod(found.shape[axis], int(indices_or_sections))
    ends = np.cumsum([count + (number < rest) for number in range(int(indices_or_sections))])[:-1]
    return split(found, [int(end) for end in ends], axis)


def hsplit(x: Any, indices_or_sections: Any) -> list[Tensor]:
    """Parts side by side."""
    found = core.convert_to_tensor(x)
    return split(found, indices_or_sections, 0 if found.ndim == 1 else 1)


def vsplit(x: Any, indices_or_sections: Any) -> list[Tensor]:
    """Parts one below the other."""
    return split(x, indices_or_sections, 0)


def dsplit(x: Any, indices_or_sections: Any) -> list[Tensor]:
    """Parts one behind the other."""
    return split(x, indices_or_sections, 2)


@host.unless_held("numpy")
def tile(x: Any, repeats: Any) -> Tensor:
    """The tensor repeated along its dimensions."""
    found = core.convert_to_tensor(x)
    counts = [int(count) for count in (repeats if isinstance(repeats, (list, tuple)) else np.atleast_1d(np.asarray(repeats)))]
    rank = max(len(counts), found.ndim)
    counts = [1] * (rank - len(counts)) + counts
    found = reshape(found, [1] * (rank - found.ndim) + list(found.shape))
    if 0 in counts:
        return empty_of([size * count for size, count in zip(found.shape, counts, strict=True)], found.dtype)
    return moved("tile", found, repetitions=counts) if any(count != 1 for count in counts) else found


@host.unless_held("numpy")
def repeat(x: Any, repeats: Any, axis: int | None = None) -> Tensor:
    """Each element repeated."""
    found = core.convert_to_tensor(x)
    if axis is None:
        found, axis = ravel(found), 0
    axis = axis_of(axis, found.ndim)
    counts = np.atleast_1d(np.asarray(repeats)).astype(int)
    if counts.size == 1:
        places = np.repeat(np.arange(found.shape[axis]), counts[0])
    else:
        places = np.repeat(np.arange(found.shape[axis]), counts)
    return take(found, places.astype(np.int32), axis)


@host.unless_held("numpy")
def flip(x: Any, axis: Any = None) -> Tensor:
    """The elements in reverse order."""
    found = core.convert_to_tensor(x)
    axes = axes_of(axis, found.ndim)
    return moved("reverse", found, axes=axes) if axes else found


def fliplr(x: Any) -> Tensor:
    """The columns in reverse order."""
    return flip(x, 1)


def flipud(x: Any) -> Tensor:
    """The rows in reverse order."""
    return flip(x, 0)


def rot90(array: Any, k: int = 1, axes: Sequence[int] = (0, 1)) -> Tensor:
    """The tensor turned by right angles."""
    found = core.convert_to_tensor(array)
    if found.ndim < 2:
        raise ValueError(f"Input array must have at least 2 dimensions. Received: array.ndim={found.ndim}")
    if len(axes) != 2 or axes[0] == axes[1]:
        raise ValueError(f"Invalid axes: {axes}. Axes must be a tuple of two different dimensions.")
    a, b = (axis_of(axis, found.ndim) for axis in axes)
    k %= 4
    if k == 2:
        return flip(found, (a, b))
    if k == 1:
        return swapaxes(flip(found, b), a, b)
    return flip(swapaxes(found, a, b), b) if k == 3 else found


@host.unless_held("numpy")
def roll(x: Any, shift: Any, axis: Any = None) -> Tensor:
    """The elements moved along a dimension, those beyond the end at its start."""
    found = core.convert_to_tensor(x)
    if axis is None:
        return reshape(roll(ravel(found), shift, 0), found.shape)
    axes = list(axis) if isinstance(axis, (list, tuple)) else [axis]
    shifts = list(shift) if isinstance(shift, (list, tuple)) else [shift] * len(axes)
    for distance, each in zip(shifts, axes, strict=True):
        place = axis_of(each, found.ndim)
        size = found.shape[place]
        cut = (size - int(distance)) % size
        if cut:
            found = concatenate([_window(found, place, cut, size), _window(found, place, 0, cut)], place)
    return found


_PADDING = {"constant": "constant", "edge": "edge", "reflect": "reflection", "symmetric": "symmetric"}


@host.unless_held("numpy")
def pad(x: Any, pad_width: Any, mode: str = "constant", constant_values: Any = None) -> Tensor:
    """The tensor with further elements around it."""
    found = core.convert_to_tensor(x)
    widths = np.broadcast_to(np.asarray(pad_width), (found.ndim, 2)).tolist()
    if constant_values is not None and mode != "constant":
        raise ValueError(f"Argument `constant_values` can only be provided when `mode == 'constant'`. Received: mode={mode}")
    if mode not in _PADDING or (found.dtype not in ("float32", "float16", "int32") and constant_values not in (None, 0)):
        return host.fall_back("numpy", "pad", found, pad_width, mode, *([] if constant_values is None else [constant_values]))
    if not any(map(any, widths)):
        return found
    before, after = ([int(width[end]) for width in widths] for end in (0, 1))
    value = {"value": float(constant_values or 0)} if mode == "constant" else {}
    return moved("pad", found, beginning_padding=before, ending_padding=after, mode=_PADDING[mode], **value)


# Parts by numbers ---------------------------------------------------------------------------------------------------


def _places(indices: Any, size: int) -> Tensor:
    """Return indices as int32, counted from 0."""
    if isinstance(indices, (int, np.integer)) or (not isinstance(indices, Tensor) and not hasattr(indices, "assign")):
        array = np.asarray(indices)
        if array.dtype.kind in "iub":
            array = array.astype(np.int32)
            return of_array(np.where(array < 0, array + size, array).astype(np.int32), "int32")
    found = cast(core.convert_to_tensor(indices), "int32")
    if found.value is None:
        return found
    return chosen(call("lesser", found, number(0, found), dtype="bool"), found + size, found)


@host.unless_held("numpy")
def take(x: Any, indices: Any, axis: int | None = None) -> Tensor:
    """Slices of a dimension by their numbers."""
    found = core.convert_to_tensor(x)
    if axis is None:
        found, axis = ravel(found), 0
    axis = axis_of(axis, found.ndim)
    places = _places(indices, found.shape[axis])
    if places.value is None:
        return empty_of([*found.shape[:axis], *places.shape, *found.shape[axis + 1 :]], found.dtype)
    return moved("gather", found, places, axis=axis)


@host.unless_held("numpy")
def take_along_axis(x: Any, indices: Any, axis: int | None = None) -> Tensor:
    """Elements of a dimension by a number for each."""
    found = core.convert_to_tensor(x)
    where = core.convert_to_tensor(indices)
    if axis is None:
        found, where, axis = ravel(found), ravel(where), 0
    axis = axis_of(axis, found.ndim)
    places = _places(where, found.shape[axis])
    sizes = np.broadcast_shapes(
        (*found.shape[:axis], 1, *found.shape[axis + 1 :]), (*places.shape[:axis], 1, *places.shape[axis + 1 :])
    )
    found = broadcast_to(found, (*sizes[:axis], found.shape[axis], *sizes[axis + 1 :]))
    places = broadcast_to(places, (*sizes[:axis], places.shape[axis], *sizes[axis + 1 :]))
    return moved("gather_elements", found, places, axis=axis)


def getitem(x: Tensor, key: Any) -> Tensor:
    """Return the elements that `x[key]` names."""
    keys = list(key) if isinstance(key, tuple) else [key]
    keys = [each.value if hasattr(each, "assign") else each for each in keys]
    if x.value is None or any(_is_mask(each) for each in keys):
        return _of_host(x, keys)
    named = sum(each is not None and each is not Ellipsis for each in keys)
    if named > x.ndim:
        raise IndexError(f"too many indices for array: array is {x.ndim}-dimensional, but {named} were indexed")
    place = next((n for n, each in enumerate(keys) if each is Ellipsis), len(keys))
    keys[place : place + 1] = [slice(None)] * (x.ndim - named)
    lists = [n for n, each in enumerate(keys) if not isinstance(each, slice) and each is not None and not _is_number(each)]
    if len(lists) > 1:
        return _coordinates(x, keys)
    axis, found = 0, x
    for each in keys:
        if each is None:
            found = expand_dims(found, axis)
            axis += 1
        elif isinstance(each, slice):
            found = _sliced(found, axis, each)
            axis += 1
        elif _is_number(each):
            size, index = found.shape[axis], int(each)
            if not -size <= index < size:
                raise IndexError(f"index {index} is out of bounds for axis {axis} with size {size}")
            if found.value is None:
                return _of_host(x, keys)
            found = reshape(
                _window(found, axis, index % size, index % size + 1), [*found.shape[:axis], *found.shape[axis + 1 :]]
            )
        else:
            indices = core.convert_to_tensor(each)
            found = take(found, indices, axis)
            axis += indices.ndim
    return found


def _is_number(key: Any) -> bool:
    if isinstance(key, Tensor):
        return not key.shape and not key.unknown
    return isinstance(key, (int, np.integer)) or (isinstance(key, np.ndarray) and not key.shape)


def _is_mask(key: Any) -> bool:
    if isinstance(key, bool):
        return True
    return not isinstance(key, (slice, int, type(None), type(Ellipsis))) and str(getattr(key, "dtype", "")) == "bool"


def _of_host(x: Tensor, keys: list[Any]) -> Tensor:
    """Index an array of the host. The result of a mask has a shape that its values decide."""
    if x.unknown and not any(_is_mask(key) for key in keys):
        array = np.zeros(x.shape, numpy_dtype(x.dtype))
        return unknown(array[tuple(keys)].shape, x.dtype)
    parts = tuple(key.numpy() if isinstance(key, Tensor) else key for key in keys)
    return of_array(x.numpy()[parts], x.dtype)


def _sliced(x: Tensor, axis: int, key: slice) -> Tensor:
    ends = [None if each is None else int(each) for each in (key.start, key.stop, key.step)]
    start, stop, step = slice(*ends).indices(x.shape[axis])
    if x.value is None or len(range(start, stop, step)) == 0:
        return empty_of([*x.shape[:axis], len(range(start, stop, step)), *x.shape[axis + 1 :]], x.dtype)
    if step > 0:
        return _window(x, axis, start, stop, step)
    numbers = range(start, stop, step)
    return flip(_window(x, axis, numbers[-1], numbers[0] + 1, -step), axis)


def _coordinates(x: Tensor, keys: list[Any]) -> Tensor:
    """Index by several lists, which are broadcast with each other."""
    if any(key is None for key in keys):
        return _of_host(x, keys)
    places = [n for n, key in enumerate(keys) if not isinstance(key, slice)]
    together = places == list(range(places[0], places[-1] + 1))
    lists = [_places(keys[n], x.shape[n]) for n in places]
    shape = np.broadcast_shapes(*(each.shape for each in lists))
    indices = stack([broadcast_to(each, shape) for each in lists], -1)
    rest = [n for n in range(x.ndim) if n not in places]
    for n in rest:
        x = _sliced(x, n, keys[n])
    found = moved("gather_nd", transpose(x, [*places, *rest]), indices)
    if not together:
        return found
    return moveaxis(found, list(range(len(shape))), list(range(places[0], places[0] + len(shape))))


# Triangles and diagonals -----------------------------------------------------------------------------------------------


def _triangle(x: Any, k: Any, upper: bool) -> Tensor:
    found = core.convert_to_tensor(x)
    if found.value is None or found.ndim < 2 or (isinstance(k, Tensor) and k.unknown):
        return host.fall_back("numpy", "triu" if upper else "tril", found, k)
    return moved("triangular", found, upper=upper, diagonal=int(k))


def tril(x: Any, k: int = 0) -> Tensor:
    """The lower triangle."""
    return _triangle(x, k, upper=False)


def triu(x: Any, k: int = 0) -> Tensor:
    """The upper triangle."""
    return _triangle(x, k, upper=True)


@host.unless_held("numpy")
def diagonal(x: Any, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Tensor:
    """The elements of a diagonal, in the last dimension."""
    found = core.convert_to_tensor(x)
    found = moveaxis(found, (axis1, axis2), (-2, -1))
    rows, columns = found.shape[-2:]
    first, second = max(0, -offset), max(0, offset)
    size = min(rows - first, columns - second)
    if size <= 0:
        return empty_of([*found.shape[:-2], 0], found.dtype)
    flat = reshape(found, [*found.shape[:-2], rows * columns])
    places = [(first + n) * columns + second + n for n in range(size)]
    return take(flat, np.int32(places), -1)


@host.unless_held("numpy")
def diag(x: Any, k: int = 0) -> Tensor:
    """A matrix with a diagonal, or the diagonal of a matrix."""
    found = core.convert_to_tensor(x)
    if found.ndim != 1:
        return diagonal(found, k)
    size = found.shape[0] + builtins.abs(k)
    placed = np.zeros((size, size), bool)
    places = np.arange(found.shape[0])
    placed[places + max(0, -k), places + max(0, k)] = True
    numbers = np.clip(np.arange(size) - max(0, -k), 0, found.shape[0] - 1)[:, None] + np.zeros((1, size), int)
    spread = take(found, numbers.astype(np.int32), 0)
    return chosen(of_array(placed, "bool"), spread, number(0, spread))


def diagflat(x: Any, k: int = 0) -> Tensor:
    """A matrix with the elements as its diagonal."""
    return diag(ravel(x), k)


def meshgrid(*x: Any, indexing: str = "xy") -> list[Tensor]:
    """Coordinates of a grid."""
    found = [ravel(each) for each in x]
    if indexing not in ("xy", "ij"):
        raise ValueError(f"Valid values for `indexing` are 'xy' and 'ij', but received {indexing}.")
    order = list(range(len(found)))
    if indexing == "xy" and len(found) > 1:
        order[:2] = [1, 0]
    sizes = [found[n].shape[0] for n in order]
    places = {n: place for place, n in enumerate(order)}
    return [
        broadcast_to(reshape(each, [each.shape[0] if place == places[n] else 1 for place in range(len(found))]), sizes)
        for n, each in enumerate(found)
    ]


# Orders -----------------------------------------------------------------------------------------------------------------


def ordered(x: Tensor, k: int, axis: int, largest: bool) -> tuple[Tensor, Tensor]:
    """Return the first elements of an order, and their places."""
    values, places = several("ext.top_k", x, k=k, axis=axis, largest=largest, sorted=True, indices_data_type="int32")
    return Tensor(values, x.dtype), Tensor(places, "int32")


@host.unless_held("numpy")
def sort(x: Any, axis: int | None = -1) -> Tensor:
    """The elements of a dimension in order."""
    found = core.convert_to_tensor(x)
    if not found.ndim:
        return found
    if axis is None:
        found, axis = ravel(found), 0
    axis = axis_of(axis, found.ndim)
    return ordered(found, found.shape[axis], axis, largest=False)[0]


@host.unless_held("numpy")
def argsort(x: Any, axis: int | None = -1) -> Tensor:
    """The places of the elements of a dimension in order."""
    found = core.convert_to_tensor(x)
    if axis is None or not found.ndim:
        return reshape(argsort(ravel(found), 0), found.shape if not found.ndim else (-1,))
    axis = axis_of(axis, found.ndim)
    return ordered(found, found.shape[axis], axis, largest=False)[1]


def copy(x: Any) -> Tensor:
    """The tensor. Tensors do not change, so that no copy is needed."""
    return core.convert_to_tensor(x)
