"""The layout of a drawn graph: the positions of its boxes, and the lines between them.

The module uses a layered layout. Every box has a rank below those of its producers. Lines that pass ranks get a narrow place in
each. The order within ranks follows the neighbors' mean position, so that few lines cross. Then every rank is laid out as near
to its neighbors as the gaps allow. That is a least-squares problem that pooling of adjacent violators solves exactly.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise

LONGEST = 40
"""The maximum number of ranks that a line passes. A box farther away names its operand instead, as layers with one mask do."""

_GAP_X, _GAP_Y, _LANE = 26.0, 40.0, 14.0
"""Between boxes of a rank, between ranks, and the width of a line that passes a rank."""

_ORDER_SWEEPS, _PLACE_SWEEPS = 6, 14

_PULL = 0.1
"""The weight of a passing line on the box at its end, relative to a box right above or below. Chains stay straight so."""

Point = tuple[float, float]


@dataclass(frozen=True)
class Drawing:
    """A graph's picture, in the units of the boxes' sizes.

    Attributes:
        centers: the center of each box.
        lines: the points of each edge's line, from the bottom of one box to the top of another. () for an edge that is longer
            than `LONGEST` ranks.
        width, height: the size of all boxes together, which are right of and below (0, 0).
    """

    centers: tuple[Point, ...]
    lines: tuple[tuple[Point, ...], ...]
    width: float
    height: float


def draw(sizes: Sequence[Point], edges: Sequence[tuple[int, int]]) -> Drawing:
    """Return the layout of a graph.

    Args:
        sizes: the width and height of each box.
        edges: pairs of boxes, of which the first has the lower number.

    >>> drawing = draw([(50, 20), (50, 20), (50, 20)], [(0, 1), (0, 2)])
    >>> drawing.centers
    ((63.0, 10.0), (25.0, 70.0), (101.0, 70.0))
    """
    if not sizes:
        return Drawing((), tuple(() for _ in edges), 0.0, 0.0)
    layers = _Layers(sizes, edges)
    layers.order()
    return layers.place()


class _Layers:
    """The boxes of each rank and, between them, the places where lines pass it: both are vertices here."""

    def __init__(self, sizes: Sequence[Point], edges: Sequence[tuple[int, int]]) -> None:
        self._sizes, self._edges = sizes, edges
        self._widths = [width for width, _ in sizes]
        self._above: list[list[int]] = [[] for _ in sizes]
        self._below: list[list[int]] = [[] for _ in sizes]
        self._rank = _ranks(len(sizes), edges)
        self._chains = [self._chain(a, b) for a, b in edges]
        self._ranks: list[list[int]] = [[] for _ in range(max(self._rank) + 1)]
        self._x = [0.0] * len(self._widths)

    def _chain(self, a: int, b: int) -> list[int]:
        """Return the vertices of a line with its ends. [] if the line is too long to be drawn."""
        if self._rank[b] - self._rank[a] > LONGEST:
            return []
        chain = [a]
        for rank in range(self._rank[a] + 1, self._rank[b]):
            chain.append(len(self._widths))
            self._widths.append(_LANE)
            self._rank.append(rank)
            self._above.append([])
            self._below.append([])
        chain.append(b)
        for upper, lower in pairwise(chain):
            self._below[upper].append(lower)
            self._above[lower].append(upper)
        return chain

    def order(self) -> None:
        """Order the vertices of each rank."""
        seen = [False] * len(self._widths)
        waiting = [v for v in range(len(self._sizes) - 1, -1, -1) if not self._above[v]]
        while waiting:  # Depth first, so that the boxes of one branch begin side by side.
            vertex = waiting.pop()
            if not seen[vertex]:
                seen[vertex] = True
                self._ranks[self._rank[vertex]].append(vertex)
                waiting += reversed(self._below[vertex])
        position = [0.0] * len(self._widths)
        for rank in self._ranks:
            for i, vertex in enumerate(rank):
                position[vertex] = i
        for sweep in range(_ORDER_SWEEPS):
            ranks, neighbors = (self._ranks, self._above) if sweep % 2 == 0 else (self._ranks[::-1], self._below)
            for rank in ranks:
                means = {v: _mean([position[n] for n in neighbors[v]], position[v]) for v in rank}
                rank.sort(key=means.__getitem__)
                for i, vertex in enumerate(rank):
                    position[vertex] = i

    def place(self) -> Drawing:
        """Choose the coordinates."""
        for rank in self._ranks:
            for vertex, x in zip(rank, accumulate(self._distances(rank), initial=0.0), strict=True):
                self._x[vertex] = x
        for sweep in range(_PLACE_SWEEPS):
            down = sweep % 2 == 0
            both = sweep >= _PLACE_SWEEPS - 2
            for rank in self._ranks if down else self._ranks[::-1]:
                self._align(rank, down or both, not down or both)
        left = min(self._x[v] - self._widths[v] / 2 for v in range(len(self._widths)))
        self._x = [x - left for x in self._x]
        heights = [max((self._sizes[v][1] for v in rank if v < len(self._sizes)), default=0.0) for rank in self._ranks]
        tops = list(accumulate((height + _GAP_Y for height in heights[:-1]), initial=0.0))
        y = [top + height / 2 for top, height in zip(tops, heights, strict=True)]
        centers = tuple((round(self._x[v], 1), y[self._rank[v]]) for v in range(len(self._sizes)))
        width = max(self._x[v] + self._widths[v] / 2 for v in range(len(self._widths)))
        return Drawing(centers, self._lines(y, heights), width, tops[-1] + heights[-1])

    def _distances(self, rank: Sequence[int]) -> list[float]:
        """Return how far apart the centers of neighbors must be."""
        boxes = len(self._sizes)
        return [
            (self._widths[a] + self._widths[b]) / 2 + (_GAP_X if a < boxes and b < boxes else _LANE) for a, b in pairwise(rank)
        ]

    def _align(self, rank: Sequence[int], above: bool, below: bool) -> None:
        """Move the vertices of a rank as near to their neighbors as their order and the gaps allow."""
        wanted: list[Point] = []
        boxes = len(self._sizes)
        offsets = list(accumulate(self._distances(rank), initial=0.0))
        for vertex, offset in zip(rank, offsets, strict=True):
            neighbors = (self._above[vertex] if above else []) + (self._below[vertex] if below else [])
            # Passing lines stay straight. Near a box, lines make way for others.
            passes = vertex >= boxes and all(n >= boxes for n in neighbors)
            weight = 0.1 if not neighbors else 4.0 if passes else 0.5 if vertex >= boxes else 2.0
            pulls = [_PULL if vertex < boxes <= n else 1.0 for n in neighbors]
            wanted.append((_mean([self._x[n] for n in neighbors], self._x[vertex], pulls) - offset, weight))
        for vertex, offset, x in zip(rank, offsets, _not_falling(wanted), strict=True):
            self._x[vertex] = x + offset

    def _lines(self, y: Sequence[float], heights: Sequence[float]) -> tuple[tuple[Point, ...], ...]:
        ports_out, ports_in = self._ports(self._below), self._ports(self._above)
        lines: list[tuple[Point, ...]] = []
        for (a, b), chain in zip(self._edges, self._chains, strict=True):
            if not chain:
                lines.append(())
                continue
            points = [(ports_out[a][chain[1]], y[self._rank[a]] + self._sizes[a][1] / 2)]
            for vertex in chain[1:-1]:
                middle, half = y[self._rank[vertex]], heights[self._rank[vertex]] / 2
                points += [(self._x[vertex], middle - half), (self._x[vertex], middle + half)]
            points.append((ports_in[b][chain[-2]], y[self._rank[b]] - self._sizes[b][1] / 2))
            lines.append(tuple((round(x, 1), round(at, 1)) for x, at in _without_collinear(points)))
        return tuple(lines)

    def _ports(self, neighbors: Sequence[Sequence[int]]) -> list[dict[int, float]]:
        """Return the ports of each box: the position along its side of the line of each neighbor."""
        ports: list[dict[int, float]] = []
        for vertex, (width, _) in enumerate(self._sizes):
            ends = sorted(set(neighbors[vertex]), key=lambda n: self._x[n])
            step = min(12.0, 0.6 * width / max(1, len(ends)))
            first = self._x[vertex] - step * (len(ends) - 1) / 2
            ports.append({end: first + i * step for i, end in enumerate(ends)})
        return ports


def _ranks(count: int, edges: Sequence[tuple[int, int]]) -> list[int]:
    """Return the rank of each box: one below its lowest producer. Inputs are right above their first consumer."""
    rank = [0] * count
    for a, b in sorted(edges):
        rank[b] = max(rank[b], rank[a] + 1)
    read = {b for _, b in edges}
    readers: dict[int, int] = {}
    for a, b in edges:
        readers[a] = min(readers.get(a, rank[b]), rank[b])
    return [readers[v] - 1 if v not in read and v in readers else rank[v] for v in range(count)]


def _mean(values: Sequence[float], default: float, weights: Sequence[float] = ()) -> float:
    if weights and values:
        return sum(v * w for v, w in zip(values, weights, strict=True)) / sum(weights)
    return sum(values) / len(values) if values else default


def _not_falling(wanted: Sequence[Point]) -> list[float]:
    """Return the non-decreasing numbers that are nearest to the given ones with their weights."""
    blocks: list[tuple[float, float, int]] = []
    for value, weight in wanted:
        total, mass, size = value * weight, weight, 1
        while blocks and blocks[-1][0] / blocks[-1][1] > total / mass:
            before = blocks.pop()
            total, mass, size = total + before[0], mass + before[1], size + before[2]
        blocks.append((total, mass, size))
    return [total / mass for total, mass, size in blocks for _ in range(size)]


def _without_collinear(points: Sequence[Point]) -> list[Point]:
    """Return the points of a line without those in the middle of a vertical part."""
    kept = [points[0]]
    for before, here, after in zip(points, points[1:], points[2:], strict=False):
        if not abs(before[0] - here[0]) < 0.5 > abs(after[0] - here[0]):
            kept.append(here)
    return [*kept, points[-1]]
