"""Layout: the form of operators for operands whose channels come last instead of second."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from ...ir.graph import Attrs


def to_last(rank: int) -> tuple[int, ...]:
    """Return the permutation that moves dimension 1, the channels, behind the others.

    Example:
        >>> to_last(4)
        (0, 2, 3, 1)
    """
    return (0, *range(2, rank), 1)


def to_first(rank: int) -> tuple[int, ...]:
    """Return the permutation that moves the last dimension to position 1.

    Example:
        >>> to_first(4)
        (0, 3, 1, 2)
    """
    return (0, rank - 1, *range(1, rank - 1))


@dataclass(frozen=True)
class ChannelsLast:
    """The same operator for operands with channels last.

    Attributes:
        changed: the options that differ.
        result: whether its results have their channels last, too. Otherwise the results do not change.
    """

    changed: Mapping[str, Any]
    result: bool = True


Options = Callable[[Attrs, tuple[int, ...]], ChannelsLast | None]
"""Returns the form of the operator if the first operand, of this shape, has its channels last. None means that it has none."""


@dataclass(frozen=True)
class Layout:
    """The form of an operator for operands with channels last.

    Attributes:
        options: returns the options of this form.
        led_by: the operand whose channels must come last, so that a pass rewrites the operator.
        others: the treatment of the other operands: the pass keeps them, moves their channels last as well, or moves the
            channels of operands with several elements.
    """

    options: Options
    led_by: Literal["first", "any"] = "first"
    others: Literal["kept", "moved", "broadcast"] = "kept"


def moved(attrs: Attrs, rank: int, *, items: tuple[str, ...] = (), axes: tuple[str, ...] = ()) -> dict[str, Any]:
    """Return the options that name dimensions, for operands with channels last.

    Args:
        attrs: the options for channels in dimension 1.
        rank: the rank of the operand.
        items: the names of the options that have an item for each dimension.
        axes: the names of the options that are one dimension or several.
    """
    order = to_last(rank)
    changed: dict[str, Any] = {name: tuple(attrs[name][d] for d in order) for name in items}
    for name in axes:
        given = attrs[name]
        changed[name] = order.index(given) if isinstance(given, int) else tuple(order.index(axis) for axis in given)
    return changed


def dimensions(*, items: tuple[str, ...] = (), axes: tuple[str, ...] = ()) -> Layout:
    """Return the layout of an operator of one value whose options name dimensions. The arguments are those of `moved`."""
    return Layout(lambda attrs, shape: ChannelsLast(moved(attrs, len(shape), items=items, axes=axes)))


def option(name: str) -> Layout:
    """Return the layout of an operator with the option `name`, which is "nchw" or "nhwc"."""
    return Layout(lambda attrs, shape: ChannelsLast({name: "nhwc"}) if attrs[name] == "nchw" else None)


def _same(attrs: Attrs, shape: tuple[int, ...]) -> ChannelsLast:
    return ChannelsLast({})


BROADCAST = Layout(_same, led_by="any", others="broadcast")
"""Element-wise operators, whose operands broadcast."""

LED_BROADCAST = Layout(_same, others="broadcast")
"""Operators that are element-wise over their first operand, to which the others are broadcast in blocks."""
