"""The invocations that run side by side, and the masks of active ones."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from ...core.data_types import Array

Triple: TypeAlias = tuple[int, int, int]


@dataclass(frozen=True, slots=True, eq=False)
class Mask:
    """Which lanes are active: at least one.

    Attributes:
        lanes: bool for each.
        full: whether all are.
    """

    lanes: Array
    full: bool

    def split(self, condition: Array) -> tuple[Mask | None, Mask | None]:
        """Return the lanes in which a condition holds, and the other lanes. None stands for no lanes."""
        if condition.size == 1:
            return (self, None) if condition[0] else (None, self)
        return masked(self.lanes & condition), masked(self.lanes & ~condition)

    @property
    def first(self) -> int:
        """The first active lane."""
        return int(np.argmax(self.lanes))


def masked(lanes: Array) -> Mask | None:
    """Return a mask of lanes, or None for no lanes."""
    count = np.count_nonzero(lanes)
    return Mask(lanes, count == lanes.size) if count else None


def joined(a: Mask | None, b: Mask | None) -> Mask | None:
    """Return the lanes of two masks."""
    if a is None or b is None or a is b:
        return a or b
    lanes: Array = a.lanes | b.lanes
    return Mask(lanes, bool(lanes.all()))


class Wave:
    """Some workgroups of a dispatch, invocation by invocation.

    Attributes:
        workgroups: the positions of the workgroups in the grid, `[count, 3]`.
        size: the invocations of a workgroup in x, y, z.
        grid: the workgroups of the dispatch in x, y, z.
        lanes: the number of invocations.
        workgroup: the number of each lane's workgroup among those of the wave.
        index: the local_invocation_index of each lane.
        ids: the number of each lane among all invocations of the dispatch. The lanes of a workgroup are consecutive.
        subgroup_size: the number of invocations of a workgroup that form a subgroup.
    """

    def __init__(self, workgroups: Sequence[Triple], size: Triple, grid: Triple, subgroup_size: int) -> None:
        self.workgroups: Array = np.asarray(workgroups, np.uint32).reshape(-1, 3)
        self.size, self.grid, self.subgroup_size = size, grid, subgroup_size
        self.per_workgroup = size[0] * size[1] * size[2]
        count = len(self.workgroups)
        self.lanes = count * self.per_workgroup
        self.workgroup: Array = np.repeat(np.arange(count), self.per_workgroup)
        self.index: Array = np.tile(np.arange(self.per_workgroup, dtype=np.uint32), count)
        x, y, z = (self.workgroups[:, i].astype(np.int64) for i in range(3))
        self.numbers: Array = (z * grid[1] + y) * grid[0] + x
        self.ids: Array = self.numbers[self.workgroup] * self.per_workgroup + self.index
        self.every = Mask(np.ones(self.lanes, np.bool_), True)

    @property
    def local(self) -> Array:
        """For each lane its local_invocation_id, `[3, lanes]`."""
        x, y, _ = self.size
        return np.stack([self.index % x, self.index // x % y, self.index // (x * y)]).astype(np.uint32)

    def builtin(self, name: str) -> Array | None:
        """Return a built-in value, or None for an unknown name."""
        match name:
            case "local_invocation_id":
                return self.local
            case "local_invocation_index":
                return self.index
            case "workgroup_id":
                return self.workgroups[self.workgroup].T if len(self.workgroups) > 1 else self.workgroups.T
            case "global_invocation_id":
                return self.workgroups[self.workgroup].T * np.array(self.size, np.uint32).reshape(3, 1) + self.local
            case "num_workgroups":
                return np.array(self.grid, np.uint32).reshape(3, 1)
            case "subgroup_size":
                return np.array([self.subgroup_size], np.uint32)
            case "subgroup_invocation_id":
                return self.index % np.uint32(self.subgroup_size)
            case "subgroup_id":
                return self.index // np.uint32(self.subgroup_size)
            case "num_subgroups":
                return np.array([-(-self.per_workgroup // self.subgroup_size)], np.uint32)
            case _:
                return None

    def invocation(self, id_: int) -> Triple:
        """Return the global_invocation_id of an invocation by its number."""
        group, index = divmod(int(id_), self.per_workgroup)
        (x, y, _), (gx, gy, _) = self.size, self.grid
        places = (group % gx, group // gx % gy, group // (gx * gy))
        inside = (index % x, index // x % y, index // (x * y))
        found: Any = tuple(p * s + i for p, s, i in zip(places, self.size, inside, strict=True))
        return found

    def lane_of(self, invocation: Triple) -> int | None:
        """Return the lane of an invocation by its global_invocation_id, or None if it is not in this wave."""
        place = [i // s for i, s in zip(invocation, self.size, strict=True)]
        inside = [i % s for i, s in zip(invocation, self.size, strict=True)]
        found = np.flatnonzero((self.workgroups == np.array(place, np.uint32)).all(axis=1))
        index = (inside[2] * self.size[1] + inside[1]) * self.size[0] + inside[0]
        return int(found[0]) * self.per_workgroup + index if found.size else None
