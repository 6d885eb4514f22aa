"""The built-in functions in which the invocations of a subgroup work together."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ...core.data_types import Array
from .values import Fault, Value, concrete, describe
from .wave import Mask, Wave


class Subgroups:
    """The invocations of a wave by subgroup, with the active ones.

    A subgroup is a row: values `[..., lanes]` become `[..., subgroups, size]`.
    """

    def __init__(self, wave: Wave, mask: Mask) -> None:
        self._wave = wave
        self._active = self._rows(mask.lanes, False)

    def call(self, name: str, arguments: list[Value]) -> Value:
        """Return the result of a built-in function."""
        if name == "subgroupElect":
            return self._lanes(self._places() == self._first())
        value = self._value(arguments[0])
        if name == "subgroupBallot":
            return self._ballot(value)
        if name in ("subgroupAll", "subgroupAny"):
            found = np.where(self._active, value, name == "subgroupAll")
            return self._lanes(self._spread((np.all if name == "subgroupAll" else np.any)(found, axis=-1)))
        if name in _REDUCTIONS:
            return self._lanes(self._spread(self._scan(name, value, _REDUCTIONS[name])[-1]))
        if name in _SCANS:
            operation, inclusive = _SCANS[name]
            steps = self._scan(name, value, operation)
            return self._lanes(np.stack(steps[1:] if inclusive else steps[:-1], axis=-1))
        return self._lanes(np.take_along_axis(value, self._source(name, arguments, value), axis=-1))

    def _source(self, name: str, arguments: list[Value], value: Array) -> Array:
        """Return for each lane the place in its subgroup that it takes the value from."""
        places = self._places()
        if name == "subgroupBroadcastFirst":
            source = np.broadcast_to(self._first(), places.shape)
        elif name in _QUADS:
            source = places ^ _QUADS[name]
        else:
            operand = self._rows(np.broadcast_to(concrete(arguments[1]), self._wave.lanes).astype(np.int64), 0)
            source = {
                "subgroupShuffle": lambda: operand,
                "subgroupBroadcast": lambda: operand,
                "subgroupShuffleXor": lambda: places ^ operand,
                "subgroupShuffleUp": lambda: places - operand,
                "subgroupShuffleDown": lambda: places + operand,
                "quadBroadcast": lambda: places // 4 * 4 + operand,
            }[name]()
        source = np.clip(source, 0, self._active.shape[-1] - 1)
        return np.broadcast_to(source, value.shape) if value.ndim == source.ndim else source.reshape(1, *source.shape)

    def _value(self, value: Value) -> Array:
        given = concrete(value)
        if not isinstance(given, np.ndarray) or given.ndim > 2:
            raise Fault(f"it takes no {describe(value)}")
        return self._rows(np.broadcast_to(given, (*given.shape[:-1], self._wave.lanes)), given.dtype.type(0))

    def _rows(self, lanes: Array, fill: Any) -> Array:
        size, group = self._wave.subgroup_size, self._wave.per_workgroup
        by_group = lanes.reshape(*lanes.shape[:-1], -1, group)
        missing = -group % size
        if missing:
            pad = [(0, 0)] * (by_group.ndim - 1) + [(0, missing)]
            by_group = np.pad(by_group, pad, constant_values=fill)
        return by_group.reshape(*lanes.shape[:-1], -1, size)

    def _lanes(self, rows: Array) -> Array:
        group = self._wave.per_workgroup
        padded = -(-group // self._wave.subgroup_size) * self._wave.subgroup_size
        by_group = rows.reshape(*rows.shape[:-2], -1, padded)[..., :group]
        return by_group.reshape(*rows.shape[:-2], -1)

    def _places(self) -> Array:
        return np.broadcast_to(np.arange(self._active.shape[-1]), self._active.shape)

    def _first(self) -> Array:
        return np.argmax(self._active, axis=-1)[:, None]

    def _spread(self, of_rows: Array) -> Array:
        return np.broadcast_to(of_rows[..., None], (*of_rows.shape, self._active.shape[-1]))

    def _scan(self, name: str, value: Array, operation: Callable[[Array, Array], Array]) -> list[Array]:
        """Return the results of an operation over the first active lanes: over none of them, one, and so on."""
        steps: list[Array] = [np.full(value.shape[:-1], _identity(name, value.dtype), value.dtype)]
        for i in range(value.shape[-1]):
            steps.append(np.where(self._active[:, i], operation(steps[-1], value[..., i]), steps[-1]))
        return steps

    def _ballot(self, value: Array) -> Array:
        bits = (value & self._active).astype(np.uint64) << (np.arange(value.shape[-1], dtype=np.uint64) % np.uint64(32))
        words = [bits[:, 32 * i : 32 * (i + 1)].sum(axis=-1).astype(np.uint32) for i in range(4)]
        return np.stack([self._lanes(self._spread(word)) for word in words])


def _identity(name: str, dtype: np.dtype[Any]) -> Any:
    if name.endswith("Mul"):
        return 1
    if name.endswith("And"):
        return np.array(-1).astype(dtype)
    if name.endswith(("Min", "Max")):
        if dtype.kind == "f":
            return np.inf if name.endswith("Min") else -np.inf
        return np.iinfo(dtype).max if name.endswith("Min") else np.iinfo(dtype).min
    return 0


_REDUCTIONS: dict[str, Any] = {
    "subgroupAdd": np.add, "subgroupMul": np.multiply, "subgroupMin": np.fmin, "subgroupMax": np.fmax,
    "subgroupAnd": np.bitwise_and, "subgroupOr": np.bitwise_or, "subgroupXor": np.bitwise_xor,
}  # fmt: skip
_SCANS: dict[str, Any] = {
    "subgroupInclusiveAdd": (np.add, True), "subgroupExclusiveAdd": (np.add, False),
    "subgroupInclusiveMul": (np.multiply, True), "subgroupExclusiveMul": (np.multiply, False),
}  # fmt: skip
_QUADS = {"quadSwapX": 1, "quadSwapY": 2, "quadSwapDiagonal": 3}
SUBGROUP = frozenset(
    (
        "subgroupElect", "subgroupBallot", "subgroupAll", "subgroupAny", "subgroupBroadcast", "subgroupBroadcastFirst",
        "subgroupShuffle", "subgroupShuffleXor", "subgroupShuffleUp", "subgroupShuffleDown", "quadBroadcast",
        *_REDUCTIONS, *_SCANS, *_QUADS,
    )
)  # fmt: skip
