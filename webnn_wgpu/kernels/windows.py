"""The division of a call with operands beyond the device's binding limit into calls that bind parts of them.

The module divides a call with a `Work` into ranges of units, each as long as possible, so that the accessed part of each
operand fits one binding. Kernels need not know of it. The access functions of a bound part count from the operand's first
element (`window_access` in `shaders/lib/tensor.wgsl.j2`). Each range numbers its units from its first.

A range may access too much of an operand whose elements are only moved: a transpose reads a column, a gather any row. Then the
call is repeated for each part of that operand in turn. Elements of other parts are read as 0, and the kernels combine the
results bit by bit.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from ..core.caps import Caps
from .element import ELEMENTS, QUAD, STORAGE_ALIGNMENT_BYTES
from .spec import Binding, Interval, KernelCall, Operand, Packed, UniformType, Window, Work

MOST_CALLS = 4096
"""The maximum number of calls for one call. A call that needs more does not fit the device."""


HALF_BYTE = 4
"""Bits of elements of which two share a byte."""


@dataclass(frozen=True)
class _ByteRange:
    """A range of bytes of an operand: the start, at the device's alignment, and the end."""

    start: int
    end: int

    @property
    def size(self) -> int:
        return self.end - self.start


@dataclass(frozen=True)
class _UnitRun:
    """Units of one call, the bound parts by operand, and whether the call adds to the results of an earlier one."""

    first: int
    count: int
    parts: dict[int, _ByteRange]
    keep: bool = False


class _Divider:
    """One call, with the sizes of its operands."""

    def __init__(self, call: KernelCall, work: Work, sizes: Sequence[int], caps: Caps) -> None:
        self.call, self.work, self.sizes = call, work, sizes
        self.limit = caps.limit("max-storage-buffer-binding-size")
        # Parts start at whole quads of any type, besides the alignment of the device.
        self.alignment = max(caps.limit("min-storage-buffer-offset-alignment"), STORAGE_ALIGNMENT_BYTES)
        self.large = [
            i for i, (b, n) in enumerate(zip(call.spec.bindings, sizes, strict=True)) if not b.is_texture and n > self.limit
        ]

    def part(self, operand: int, interval: Interval | None) -> _ByteRange:
        """Return the aligned part of an operand that holds an interval of its elements, or all of it."""
        total = self.sizes[operand]
        if interval is None:
            return _ByteRange(0, total)
        bits = _bits(self.call.spec.bindings[operand])
        start = min(interval[0] * bits // 8, total - STORAGE_ALIGNMENT_BYTES) // self.alignment * self.alignment
        end = -(-max(interval[1] * bits, start * 8 + 1) // (STORAGE_ALIGNMENT_BYTES * 8)) * STORAGE_ALIGNMENT_BYTES
        return _ByteRange(start, min(end, total))

    def parts(self, operands: Sequence[int], first: int, count: int) -> dict[int, _ByteRange] | None:
        """Return the bound parts of some operands for a range of units, or None if they exceed the limit."""
        reach = self.work.reach(first, first + count)
        parts = {i: self.part(i, reach[i]) for i in operands}
        return parts if all(part.size <= self.limit for part in parts.values()) else None

    def runs(self, operands: Sequence[int], most: int) -> list[_UnitRun] | None:
        """Return the longest ranges whose parts of `operands` fit, or None if they are more than `most`."""
        found: list[_UnitRun] = []
        first = 0
        while first < self.work.units:
            count = _largest(self.work.units - first, lambda n, at=first: self.parts(operands, at, n) is not None)
            parts = self.parts(operands, first, count) if count else None
            if parts is None or len(found) == most:
                return None
            found.append(_UnitRun(first, count, parts))
            first += count
        return found

    def passes(self, run: _UnitRun, masked: Sequence[int]) -> Iterator[_UnitRun]:
        """Yield a run once for every window of the operands that are seen in parts."""
        reach = self.work.reach(run.first, run.first + run.count)
        step = self.limit // self.alignment * self.alignment
        whole = {i: self.part(i, reach[i]) for i in masked}
        for number in range(max(-(-part.size // step) for part in whole.values())):
            # An operand that has been seen to its end stays bound at its first window, and counts no element of it.
            starts = {i: part.start + number * step for i, part in whole.items()}
            parts = {
                i: _ByteRange(starts[i], min(starts[i] + step, part.end)) for i, part in whole.items() if starts[i] < part.end
            }
            yield replace(run, parts=run.parts | parts, keep=number > 0)

    def calls(self) -> list[KernelCall]:
        """Return the divided calls, or the original call if it cannot be divided."""
        masked = [i for i in self.large if i in self.work.moved]
        seen: list[_UnitRun] | None = None
        if masked:
            outer = self.runs([i for i in self.large if i not in masked], MOST_CALLS)
            seen = None if outer is None else [again for run in outer for again in self.passes(run, masked)]
        runs = self.runs(self.large, len(seen) - 1 if seen else MOST_CALLS)
        if runs is not None:
            return self._bound(runs, ())
        return [self.call] if seen is None else self._bound(seen, masked)

    def _bound(self, runs: Sequence[_UnitRun], masked: Sequence[int]) -> list[KernelCall]:
        """Return the calls of some ranges of units. Each call binds parts of the `masked` operands."""
        spec, added = self.call.spec, list[tuple[str, UniformType]]()
        bindings = list(spec.bindings)
        for i, binding in enumerate(bindings):
            written = binding.access == "write" and bool(masked)
            if i not in self.large and not written:
                continue
            bindings[i] = replace(binding, window="masked" if written or i in masked else "covering", words=0)
            added += _fields(bindings[i])
        added.append(("first_unit", "u32"))
        spec = replace(spec, bindings=tuple(bindings), uniforms=(*spec.uniforms, *added))
        calls: list[KernelCall] = []
        for number, run in enumerate(runs):
            changed, grid = self.work.launch(run.count)
            values: dict[str, int | float] = {
                name: v for (name, _), v in zip(self.call.spec.uniforms, self.call.uniforms, strict=True)
            }
            values |= changed
            values["first_unit"] = run.first
            operands: list[Operand] = []
            for i, (binding, operand) in enumerate(zip(bindings, self.call.operands, strict=True)):
                part = run.parts.get(i)
                if binding.window:
                    values |= _values(binding, part, run.keep)
                operands.append(operand if i not in self.large else self._window(operand, part))
            reason = f"{self.call.reason}, part {number + 1} of {len(runs)}"
            uniforms = tuple(values[name] for name, _ in spec.uniforms)
            calls.append(KernelCall(spec=spec, operands=tuple(operands), uniforms=uniforms, grid=grid, reason=reason))
        return calls

    def _window(self, operand: Operand, part: _ByteRange | None) -> Window:
        assert isinstance(operand, int | Packed)
        start, size = (part.start, part.size) if part else (0, STORAGE_ALIGNMENT_BYTES)
        if isinstance(operand, Packed):
            return Window(operand.value, start, size, operand.packing)
        return Window(operand, start, size)


def _fields(binding: Binding) -> list[tuple[str, UniformType]]:
    """Return the uniforms that the access functions of a part need."""
    if binding.window == "covering":
        names = ["first"]
    else:
        names = ["first", "keep"] if binding.access == "write" else ["first", "count"]
    return [(f"{binding.name}_{name}", "u32") for name in names]


def _bits(binding: Binding) -> int:
    """Return the bits of one element of an operand."""
    return 8 * ELEMENTS[binding.element].size_bytes or HALF_BYTE


def _values(binding: Binding, part: _ByteRange | None, keep: bool) -> dict[str, int]:
    item = _bits(binding) * (QUAD if binding.quad else 1)
    values = {"first": part.start * 8 // item, "count": part.size * 8 // item} if part else {"first": 0, "count": 0}
    return {f"{binding.name}_{name}": value for name, value in {**values, "keep": int(keep)}.items()}


def _largest(most: int, fits: Callable[[int], bool]) -> int:
    """Return the largest fitting number up to `most`, if all smaller ones fit too, or 0 if not even 1 fits."""
    if fits(most):
        return most
    low, high = 0, most
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if fits(middle) else (low, middle)
    return low


def divided(call: KernelCall, sizes: Sequence[int], caps: Caps) -> list[KernelCall]:
    """Return the calls that together replace `call` and bind no more of an operand than the device allows.

    Args:
        call: a call whose large operands are values.
        sizes: the size of each operand's buffer in bytes.
        caps: the device.

    Returns:
        The calls in order, or `call` alone if everything fits or no division does. Their `work` is None, because none of them
        can be divided again, so they are plain data.
    """
    if call.work is None:
        return [call]
    divider = _Divider(call, call.work, sizes, caps)
    return [replace(each, work=None) for each in (divider.calls() if divider.large else [call])]


# Elements that calls access --------------------------------------------------------------------------------------------


Extent = Callable[[int, int, int], Interval]
"""For a dimension and the first and last of some coordinates along it, the least and greatest offset that they lead to."""


def span(dims: Sequence[int], extent: Extent, first: int, end: int) -> Interval:
    """Return the interval of offsets of the positions first..end-1 of an index space.

    Args:
        dims: the index space, row-major.
        extent: returns the range that coordinates of a dimension add to the offset.
        first: a position.
        end: the position past the last.

    >>> span((3, 4), lambda d, low, high: (low * (1, 3)[d], high * (1, 3)[d]), 2, 6)
    (1, 10)
    """
    sizes = [math.prod(dims[d:]) for d in range(len(dims) + 1)]
    first, end = min(first, sizes[0] - 1), min(end, sizes[0])

    def within(d: int, first: int, last: int) -> Interval:
        if (first, last) == (0, sizes[d] - 1):
            every = [extent(k, 0, dims[k] - 1) for k in range(d, len(dims))]
            return sum(low for low, _ in every), sum(high for _, high in every)
        inner = sizes[d + 1]
        low, high = first // inner, last // inner
        if low == high:
            pieces = [(low, low, first % inner, last % inner)]
        else:
            pieces = [(low, low, first % inner, inner - 1), (high, high, 0, last % inner)]
            if high - low > 1:
                pieces.append((low + 1, high - 1, 0, inner - 1))
        found: list[Interval] = []
        for start, stop, inside, past in pieces:
            (a, b), (x, y) = extent(d, start, stop), within(d + 1, inside, past)
            found.append((a + x, b + y))
        return min(a for a, _ in found), max(b for _, b in found)

    least, greatest = within(0, first, max(first, end - 1))
    return least, greatest + 1


def strided_span(dims: Sequence[int], strides: Sequence[int], first: int, end: int) -> Interval:
    """Return the same for dimensions that are stepped through by strides, which may be negative.

    >>> strided_span((3, 4), (1, 3), 0, 4), strided_span((3, 4), (4, -1), 4, 8)
    ((0, 10), (1, 5))
    """

    def extent(d: int, low: int, high: int) -> Interval:
        a, b = low * strides[d], high * strides[d]
        return min(a, b), max(a, b)

    return span(dims, extent, first, end)


def repeated(count: int, first: int, end: int) -> Interval:
    """Return the positions that first..end-1 lead to modulo `count`.

    >>> repeated(4, 5, 7), repeated(4, 3, 5)
    ((1, 3), (0, 4))
    """
    start = first % count
    return (start, start + end - first) if start + end - first <= count else (0, count)
