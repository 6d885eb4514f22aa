"""Gradients of gathering and scattering. Each is the gradient of the other."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..interfaces.gradient import GradientCall, GradientRule, GradientTerm


def gather(call: GradientCall) -> Sequence[GradientTerm | None]:
    """Return the gradient of a gather of slices: sums over the uses of each slice."""
    x, indices, axis = call.x, call.given(1), call.attrs["axis"]
    count = indices.type.num_elements
    g = call.gradient.reshaped((*x.shape[:axis], count, *x.shape[axis + 1 :]))
    # The scattered slices are those of the first dimension.
    first = [axis, *(d for d in range(x.rank) if d != axis)]
    table = x.filled(0.0, [x.shape[d] for d in first])
    sums = table.apply("x.scatter_nd", indices.reshaped((count, 1)), g.permuted(first), reduction="add")
    return sums.permuted([first.index(d) for d in range(x.rank)]), None


def gather_elements(call: GradientCall) -> Sequence[GradientTerm | None]:
    """Return the gradient of a gather of elements. Of one element of each row, a comparison finds the place."""
    x, indices = call.x, call.given(1)
    axis: int = call.attrs["axis"]
    size, count = x.shape[axis], indices.shape[axis]
    others = (x.shape[:axis], x.shape[axis + 1 :]) == (indices.shape[:axis], indices.shape[axis + 1 :])
    if count == 1 and others and indices.type.data_type == "int32":
        # Negative indices count from the end, and others are clamped.
        places = indices.apply("clamp", min_value=-size, max_value=size - 1)
        places = places.compared("lesser", 0).apply("where", places.apply("add", places.number(size)), places)
        numbers = np.arange(size, dtype=np.int32).reshape((size, *(1 for _ in x.shape[axis + 1 :])))
        return call.gradient.where(call.constant(numbers).apply("equal", places)), None
    zeros, options = x.filled(0.0), {"axis": axis, "reduction": "add"}
    return zeros.apply("x.scatter_elements", call.given(1), call.gradient, **options), None


def gather_nd(call: GradientCall) -> Sequence[GradientTerm | None]:
    """Return the gradient of a gather by coordinates."""
    return call.x.filled(0.0).apply("x.scatter_nd", call.given(1), call.gradient, reduction="add"), None


def top_k(call: GradientCall) -> Sequence[GradientTerm | None]:
    """Return the gradient of the largest elements, at their places."""
    zeros = call.x.filled(0.0)
    options = {"axis": call.attrs["axis"], "reduction": "add"}
    return (zeros.apply("x.scatter_elements", call.results[1], call.gradient, **options),)


@dataclass(frozen=True)
class _Scatter:
    """A scatter: the ways to take the elements or slices at its places, and to put others there."""

    call: GradientCall
    elements: bool

    @property
    def _axis(self) -> dict[str, int]:
        return {"axis": self.call.attrs["axis"] % self.call.x.rank} if self.elements else {}

    @property
    def _indices(self) -> GradientTerm:
        return self.call.given(1)

    def taken(self, source: GradientTerm) -> GradientTerm:
        """Return the elements at the places."""
        return source.apply("gatherElements" if self.elements else "gatherND", self._indices, **self._axis)

    def put(self, target: GradientTerm, updates: GradientTerm, reduction: str) -> GradientTerm:
        """Return `target` with updates at the places."""
        options: dict[str, Any] = {**self._axis, "reduction": reduction}
        return target.apply("x.scatter_elements" if self.elements else "x.scatter_nd", self._indices, updates, **options)

    def replaced(self) -> Sequence[GradientTerm | None]:
        """Return the gradients where updates take the places of elements: those that are overwritten get zeros."""
        call, g, updates = self.call, self.call.gradient, self.call.given(2)
        source = self._same(g, updates.filled(0.0))
        if not call.wants(2):
            return source, None, None
        # Of several updates of one place one remains: the one whose number the same scatter leaves there.
        shape, table = updates.shape, g.shape
        if not self.elements:
            shape, table = self._indices.shape[:-1], g.shape[: self._indices.shape[-1]]
        numbers = call.constant(np.arange(math.prod(shape), dtype=np.int32).reshape(shape))
        remaining = self.taken(self._same(numbers.filled(-1, table), numbers)).apply("equal", numbers)
        remaining = remaining.reshaped((*shape, *(1 for _ in updates.shape[len(shape) :])))
        return source, None, self.taken(g).where(remaining)

    def _same(self, target: GradientTerm, updates: GradientTerm) -> GradientTerm:
        options = dict(self.call.attrs)
        return target.apply(self.call.op, self._indices, updates, **options)

    def multiplied(self) -> Sequence[GradientTerm | None]:
        """Return the gradients where updates are factors. They are NaN for factors of 0."""
        product = self.call.gradient * self.call.y
        return product / self.call.x, None, self.taken(product) / self.call.given(2)

    def compared(self) -> Sequence[GradientTerm | None]:
        """Return the gradients where the largest or smallest remains. Equal ones share the gradient of their place."""
        x, y, updates = self.call.x, self.call.y, self.call.given(2)
        own = x.compared("equal", y).cast(x.type.data_type)
        theirs = updates.compared("equal", self.taken(y)).cast(x.type.data_type)
        share = self.call.gradient / self.put(own, theirs, "add")
        # Elsewhere than at the places, the element itself remains.
        return own * share, None, theirs * self.taken(share)


def _rule(elements: bool) -> GradientRule:
    def rule(call: GradientCall) -> Sequence[GradientTerm | None]:
        scatter = _Scatter(call, elements)
        by_reduction: dict[str, Callable[[], Sequence[GradientTerm | None]]] = {
            "none": scatter.replaced,
            "add": lambda: (call.gradient, None, scatter.taken(call.gradient)),
            "mul": scatter.multiplied,
            "max": scatter.compared,
            "min": scatter.compared,
        }
        return by_reduction[call.attrs.get("reduction", "none")]()

    return rule


SCATTER_ELEMENTS = _rule(elements=True)
SCATTER_ND = _rule(elements=False)
