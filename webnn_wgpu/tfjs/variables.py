"""Variables, which are known by their names."""

from __future__ import annotations

import itertools
import weakref
from collections.abc import Iterable

from webnn_wgpu import MLTypeError
from webnn_wgpu.eager import Variable

from ._convert import TensorLike, as_tensor

_known: weakref.WeakValueDictionary[str, Variable] = weakref.WeakValueDictionary()
_numbers = itertools.count(1)


def variable(initial_value: TensorLike, trainable: bool = True, name: str | None = None, dtype: str | None = None) -> Variable:
    """Return a variable.

    Args:
        initial_value: its first value.
        trainable: whether optimizers change it.
        name: its name. None makes one.
        dtype: its data type. None is that of the value.

    Raises:
        MLTypeError: another variable has the name.
    """
    own = f"variable_{next(_numbers)}" if name is None else name
    other = _known.get(own)
    if other is not None and not other.disposed:
        raise MLTypeError("the name of a variable must be new", operator="variable", got=repr(own))
    found = Variable(as_tensor(initial_value, dtype), name=own, trainable=trainable)
    _known[own] = found
    return found


def trainable_variables() -> list[Variable]:
    """Return the trainable variables that live, in the order in which they were made."""
    return [each for each in list(_known.values()) if each.trainable and not each.disposed]


def variables_of(names: Iterable[str]) -> list[Variable]:
    """Return variables by name.

    Args:
        names: the names.

    Raises:
        MLTypeError: no variable has a name.
    """
    found: list[Variable] = []
    for name in names:
        each = _known.get(name)
        if each is None or each.disposed:
            raise MLTypeError("a variable must have the name", operator="apply_gradients", got=repr(name))
        found.append(each)
    return found
