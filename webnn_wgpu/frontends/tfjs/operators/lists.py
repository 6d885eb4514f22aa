"""TensorArray and TensorList."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import repeat

import numpy as np

from webnn_wgpu import MLOperand

from ...common.held import FLOAT32, Shape
from ..call import TfjsCall
from ..lists import MOST_ITEMS, item_shape, list_of
from ..tensors import TfjsTensor
from ._registry import Result, lowers
from .shaping import reshaped, sliced


def _open(sizes: Sequence[int] | None) -> Shape:
    """Return the shape of elements, (0,) where it is not known before the first of them."""
    return tuple(sizes) if sizes is not None and all(d >= 0 for d in sizes) else (0,)


def _declared(call: TfjsCall, index: int) -> Shape:
    array = call.tensor(index).array
    return _open([int(d) for d in array.reshape(-1)] if array is not None and array.ndim == 1 else None)


def _empty(call: TfjsCall, count: int, shape: Shape, *types: str) -> TfjsTensor:
    if not 0 <= count <= MOST_ITEMS:
        call.fail(f"a list of {count} tensors")
    return list_of([None] * count, shape, call.dtype(*types) or FLOAT32)


def _items(call: TfjsCall, tensor: TfjsTensor) -> list[TfjsTensor | None] | None:
    """Return the elements of a list by number, None if the device has it as one tensor."""
    if tensor.items is not None:
        return tensor.items
    empty = tensor.rank and (not tensor.shape[0] or not tensor.size)
    return list(repeat(None, tensor.shape[0])) if empty else None


def _item(call: TfjsCall, tensor: TfjsTensor, index: int, shape: Shape) -> TfjsTensor:
    """Return an element of a list."""
    items = _items(call, tensor)
    if not 0 <= index < (tensor.shape[0] if tensor.rank else 0):
        call.fail(f"element {index} of a list of {tensor.shape[:1]}")
    if items is not None:
        found = items[index]
        return found if found is not None else call.filled(item_shape(items, shape), 0, tensor.dtype)
    part = sliced(call, tensor, [index, *[0] * (tensor.rank - 1)], [1, *tensor.shape[1:]])
    return reshaped(call, part, tensor.shape[1:])


def _changed(call: TfjsCall, tensor: TfjsTensor, index: int, item: TfjsTensor) -> TfjsTensor:
    """Return a list with another element at a place. TensorArrays grow."""
    items = _items(call, tensor)
    if items is None:
        items = [_item(call, tensor, i, ()) for i in range(tensor.shape[0])]
    if not 0 <= index < MOST_ITEMS:
        call.fail(f"element {index} of a list")
    items = [*items, *[None] * (index + 1 - len(items))]
    items[index] = item
    return list_of(items, item.shape, item.dtype)


@lowers("TensorArrayV3", empty=True, folds=False)
def tensor_array(call: TfjsCall) -> Result:
    """A list, which the second result carries from node to node."""
    found = _empty(call, int(call.number(0)), _open(call.shape("element_shape")), "dtype")
    return [call.known(np.zeros((), np.int32)), found]


@lowers("TensorListReserve", empty=True, folds=False)
def reserve(call: TfjsCall) -> Result:
    """A list of elements not yet set."""
    return _empty(call, int(call.number(1)), _declared(call, 0), "element_dtype")


@lowers("EmptyTensorList", empty=True, folds=False)
def empty_list(call: TfjsCall) -> Result:
    """A list without elements."""
    return _empty(call, 0, _declared(call, 0), "element_dtype")


def _written(call: TfjsCall, listed: TfjsTensor, at: int, item: TfjsTensor) -> Result:
    place = call.tensor(at)
    if place.array is not None:
        return _changed(call, listed, int(call.number(at)), item)
    # The device knows the number: it writes a row of the whole.
    count = listed.shape[0] if listed.rank else 0
    if not count:
        return _changed(call, listed, int(call.number(at)), item)
    whole = listed if listed.size else list_of([None] * count, item.shape, item.dtype)
    operand = call.hold(whole)
    index = call.reshape(call.cast(call.operand(at), "int32"), [1, 1])
    rows = call.reshape(call.cast(call.hold(item), operand.data_type), [1, *item.shape])
    return call.typed(call.build.scatter_nd(operand, index, rows), whole.dtype)


@lowers("TensorArrayWriteV3", empty=True, folds=False)
def array_write(call: TfjsCall) -> Result:
    """A list with another element."""
    return _written(call, call.tensor(3), 1, call.tensor(2))


@lowers("TensorListSetItem", empty=True, folds=False)
def set_item(call: TfjsCall) -> Result:
    """A list with another element."""
    return _written(call, call.tensor(0), 1, call.tensor(2))


def _read(call: TfjsCall, listed: TfjsTensor, at: int, shape: Shape) -> Result:
    if call.tensor(at).array is not None or not listed.size:
        return _item(call, listed, int(call.number(at)), shape)
    index = call.reshape(call.cast(call.operand(at), "int32"), [])
    return call.typed(call.build.gather(call.hold(listed), index), listed.dtype)


@lowers("TensorArrayReadV3", empty=True, folds=False)
def array_read(call: TfjsCall) -> Result:
    """An element of a list."""
    return _read(call, call.tensor(2), 1, ())


@lowers("TensorListGetItem", empty=True, folds=False)
def get_item(call: TfjsCall) -> Result:
    """An element of a list."""
    return _read(call, call.tensor(0), 1, _declared(call, 2) if len(call.inputs) > 2 else ())


def _gathered(call: TfjsCall, listed: TfjsTensor, at: int) -> Result:
    places = call.tensor(at)
    items = _items(call, listed)
    if items is None or places.array is None:
        return call.typed(call.build.gather(call.hold(listed), call.cast(call.operand(at), "int32")), listed.dtype)
    shape = item_shape(items, listed.shape[1:])
    return list_of([_item(call, listed, i, shape) for i in call.ints(at)], shape, listed.dtype)


@lowers("TensorArrayGatherV3", empty=True, folds=False)
def array_gather(call: TfjsCall) -> Result:
    """Elements of a list by number."""
    return _gathered(call, call.tensor(2), 1)


@lowers("TensorListGather", empty=True, folds=False)
def list_gather(call: TfjsCall) -> Result:
    """Elements of a list by number."""
    return _gathered(call, call.tensor(0), 1)


@lowers("TensorListStack", empty=True, folds=False)
def stack(call: TfjsCall) -> Result:
    """The elements of a list as one tensor."""
    listed = call.tensor(0)
    shape = _declared(call, 1) if len(call.inputs) > 1 else (0,)
    if not listed.size and 0 not in shape and listed.shape[:1] != (0,):
        return call.filled((listed.shape[0], *shape), 0, listed.dtype)
    return listed


@lowers("TensorListFromTensor", empty=True, folds=False)
def from_tensor(call: TfjsCall) -> Result:
    """A list of the rows of a tensor."""
    return call.tensor(0)


def _scattered(call: TfjsCall, source: TfjsTensor, places: Sequence[int], count: int, base: TfjsTensor | None) -> Result:
    items: list[TfjsTensor | None] = list((_items(call, base) or []) if base is not None else [])
    items += [None] * (max([count, *(p + 1 for p in places)], default=0) - len(items))
    if len(items) > MOST_ITEMS or any(p < 0 for p in places) or len(places) != source.shape[0]:
        call.fail(f"{len(places)} places for {list(source.shape)}")
    for row, place in enumerate(places):
        items[place] = _item(call, source, row, source.shape[1:])
    return list_of(items, source.shape[1:], source.dtype)


@lowers("TensorArrayScatterV3", empty=True, folds=False)
def array_scatter(call: TfjsCall) -> Result:
    """A list with the rows of a tensor at given places."""
    places, source, flow = call.tensor(1), call.tensor(2), call.tensor(3)
    if places.array is not None and places.array.tolist() == list(range(source.shape[0])) and flow.shape[0] <= source.shape[0]:
        return source
    return _scattered(call, source, call.ints(1), flow.shape[0], flow)


@lowers("TensorListScatter", "TensorListScatterV2", empty=True, folds=False)
def list_scatter(call: TfjsCall) -> Result:
    """A list of the rows of a tensor at given places."""
    count = int(call.number(3)) if len(call.inputs) > 3 else 0
    return _scattered(call, call.tensor(0), call.ints(1), count, None)


@lowers("TensorArraySizeV3", empty=True, folds=False)
def array_size(call: TfjsCall) -> Result:
    """The number of elements."""
    return call.known(np.array(call.tensor(1).shape[0], np.int32))


@lowers("TensorListLength", empty=True, folds=False)
def length(call: TfjsCall) -> Result:
    """The number of elements."""
    return call.known(np.array(call.tensor(0).shape[0], np.int32))


@lowers("TensorListPushBack", empty=True, folds=False)
def push_back(call: TfjsCall) -> Result:
    """A list with one element more."""
    listed, item = call.tensor(0), call.tensor(1)
    return _changed(call, listed, listed.shape[0], item)


@lowers("TensorListPopBack", empty=True, folds=False)
def pop_back(call: TfjsCall) -> Result:
    """A list without its last element, and the element."""
    listed = call.tensor(0)
    count = listed.shape[0]
    item = _item(call, listed, count - 1, _declared(call, 1) if len(call.inputs) > 1 else ())
    items = _items(call, listed)
    if items is None:
        items = [_item(call, listed, i, ()) for i in range(count)]
    return [list_of(items[:-1], item.shape, listed.dtype), item]


@lowers("TensorListResize", empty=True, folds=False)
def resize(call: TfjsCall) -> Result:
    """A list of another number of elements."""
    listed, count = call.tensor(0), int(call.number(1))
    if not 0 <= count <= MOST_ITEMS:
        call.fail(f"a list of {count} tensors")
    items = _items(call, listed)
    if items is None:
        items = [_item(call, listed, i, ()) for i in range(listed.shape[0])]
    items = [*items[:count], *[None] * (count - len(items))]
    return list_of(items, item_shape(items, listed.shape[1:]), listed.dtype)


def _concatenated(call: TfjsCall, listed: TfjsTensor) -> list[MLOperand | TfjsTensor]:
    items = _items(call, listed)
    if items is None:
        whole = reshaped(call, listed, [listed.shape[0] * listed.shape[1], *listed.shape[2:]])
        return [whole, call.known(np.full(listed.shape[0], listed.shape[1], np.int32))]
    full = [t for t in items if t is not None and t.rank and t.size]
    if not full:
        call.fail("a list without elements that have a dimension")
    whole = full[0] if len(full) == 1 else call.typed(call.build.concat([call.hold(t) for t in full], 0), listed.dtype)
    lengths = np.array([0 if t is None or not t.rank else t.shape[0] for t in items], np.int32)
    return [whole, call.known(lengths)]


@lowers("TensorArrayConcatV3", empty=True, folds=False)
def array_concat(call: TfjsCall) -> Result:
    """The elements one behind the other, and their lengths."""
    return _concatenated(call, call.tensor(1))


@lowers("TensorListConcat", "TensorListConcatV2", empty=True, folds=False)
def list_concat(call: TfjsCall) -> Result:
    """The elements one behind the other, and their lengths."""
    return _concatenated(call, call.tensor(0))


def _split(call: TfjsCall, source: TfjsTensor, lengths: Sequence[int]) -> Result:
    if sum(lengths) != (source.shape[0] if source.rank else 0) or any(n < 0 for n in lengths):
        call.fail(f"parts of {list(lengths)[:8]} of {list(source.shape)}")
    at, items = 0, list[TfjsTensor | None]()
    for n in lengths:
        items.append(sliced(call, source, [at, *[0] * (source.rank - 1)], [n, *source.shape[1:]]))
        at += n
    found = list_of(items, item_shape(items, source.shape[1:]), source.dtype)
    return replace(found, array=None)


@lowers("TensorArraySplitV3", empty=True, folds=False)
def array_split(call: TfjsCall) -> Result:
    """A list of parts of a tensor."""
    return _split(call, call.tensor(1), call.ints(2))


@lowers("TensorListSplit", empty=True, folds=False)
def list_split(call: TfjsCall) -> Result:
    """A list of parts of a tensor."""
    return _split(call, call.tensor(0), call.ints(2))
