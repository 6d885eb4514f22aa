"""`keras.ops`'s functions of linear algebra. Decompositions run on the host. See `host.FUNCTIONS`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from keras.src import tree

from webnn_wgpu import eager

from . import core, host
from .elementwise import floating
from .reductions import max as largest
from .reductions import sum as total
from .tensor import Tensor, call, recorded


def norm(x: Any, ord: Any = None, axis: Any = None, keepdims: bool = False) -> Tensor:
    """The norm of vectors, or of matrices where the host has it."""
    found = floating(core.convert_to_tensor(x))
    along = len(axis) if isinstance(axis, (list, tuple)) else 1
    euclidean = ord is None or (ord == 2 and axis is not None and along == 1)
    if euclidean and found.value is not None:
        return call("sqrt", total(found * found, axis, keepdims))
    if axis is not None and along == 1 and found.value is not None:
        if ord == 1:
            return total(call("abs", found), axis, keepdims)
        if ord == float("inf"):
            return largest(call("abs", found), axis, keepdims)
    return host.fall_back("linalg", "norm", found, ord, axis, keepdims)


def jvp(fun: Callable[..., Any], primals: Sequence[Any], tangents: Sequence[Any], has_aux: bool = False) -> tuple[Any, ...]:
    """The result of a function, and its derivative in a direction.

    Gradients are linear in their seeds. So the gradient of gradients by their seeds, in a direction, is the derivative.
    """
    given = tree.map_structure(core.convert_to_tensor, list(primals))
    sources = [recorded(each) for each in tree.flatten(given)]
    directions = [recorded(core.cast(each, x.dtype)) for each, x in zip(tree.flatten(list(tangents)), sources, strict=True)]
    with eager.tape():
        made = fun(*given)
        made, auxiliary = made if has_aux else (made, None)
        results = [recorded(core.convert_to_tensor(each)) for each in tree.flatten(made)]
        seeds = [eager.tensor(np.zeros(each.shape, each.dtype)) for each in results]
        found = eager.gradients(eager.gradients(results, sources, seeds), seeds, directions)
    derivatives = tree.pack_sequence_as(made, [Tensor(each, each.dtype) for each in found])
    return (made, derivatives, auxiliary) if has_aux else (made, derivatives)


globals().update(host.functions("linalg"))
