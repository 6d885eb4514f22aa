"""Built-in functions that do more than compute with numbers: barriers, atomics, subgroups, textures."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...core.data_types import Array
from .expressions import Expressions, Texture
from .memory import Clock
from .places import MemoryPlace, Pointer
from .subgroups import SUBGROUP, Subgroups
from .syntax import CallExpression
from .types import Numeric, struct_type
from .values import Composite, Fault, Value, concrete, converted, describe, poison, zero

BARRIERS = {"workgroupBarrier": ("workgroup",), "storageBarrier": ("storage",), "textureBarrier": ()}


class Intrinsics(Expressions):
    """Expressions that combine several invocations.

    Attributes:
        clocks: the clock of each address space, which barriers advance.
    """

    clocks: dict[str, Clock]

    def intrinsic(self, node: CallExpression) -> Value:
        """Call a built-in function that does more than compute with numbers."""
        name = node.callee.name
        if name in BARRIERS or name == "subgroupBarrier":
            return self._barrier(node, name)
        if name in SUBGROUP:
            return Subgroups(self.wave, self.mask).call(name, [self.evaluate(a) for a in node.arguments])
        if name.startswith("atomic"):
            return self._atomic(node, name)
        if name == "arrayLength":
            return np.array([self._memory(node).memory.count], np.uint32)
        if name == "workgroupUniformLoad":
            place = self._memory(node)
            self._barrier(node, "workgroupBarrier")
            value = self.load(place, node)
            self._barrier(node, "workgroupBarrier")
            return value
        if name in ("textureLoad", "textureDimensions"):
            return self._texture(node, name)
        return super().intrinsic(node)

    def _memory(self, node: CallExpression) -> MemoryPlace:
        pointer = self.evaluate(node.arguments[0]) if node.arguments else None
        if not isinstance(pointer, Pointer) or not isinstance(pointer.place, MemoryPlace):
            raise Fault(f"{node.callee} wants a pointer to memory that invocations share")
        return pointer.place

    def _barrier(self, node: CallExpression, name: str) -> None:
        """Let all active invocations meet, and report a barrier that others of their workgroup do not reach."""
        wave, lanes = self.wave, self.mask.lanes
        size = wave.subgroup_size if name == "subgroupBarrier" else wave.per_workgroup
        if not self.mask.full and wave.per_workgroup % size == 0:
            here = lanes.reshape(-1, size)
            split = here.any(axis=1) & ~here.all(axis=1)
            if split.any():
                wide = np.repeat(split, size)
                missing = wave.ids[wide & ~lanes]
                message = (
                    f"{size - np.count_nonzero(here[split][0])} of {size} invocations of a "
                    f"{'subgroup' if size < wave.per_workgroup else 'workgroup'} do not reach this {name}, "
                    f"{self._by_id(missing[0])} among them"
                )
                occurrences = int(np.count_nonzero(split))
                self.tell("barrier", node, name, message, wave.ids[wide & lanes], missing.tolist(), count=occurrences)
        spaces = tuple(self.clocks) if name == "subgroupBarrier" else BARRIERS[name]
        for space in spaces:
            self.clocks[space].barrier(wave.ids[lanes], subgroup=name == "subgroupBarrier")

    def _atomic(self, node: CallExpression, name: str) -> Value:
        place = self._memory(node)
        type_ = place.type
        if not isinstance(type_, Numeric) or not type_.atomic:
            raise Fault(f"{name} of {type_}")
        scalar = Numeric(type_.scalar)
        operands = [converted(self.evaluate(a), scalar) for a in node.arguments[1:]]
        plain = MemoryPlace(place.memory, scalar, place.offsets, place.outside)
        if name != "atomicStore":
            self.watch(plain, node, writing=False, atomic=True)
        if name != "atomicLoad":
            if not place.memory.writable:
                raise Fault(f"{place.memory.name} is read-only")
            self.watch(plain, node, writing=True, atomic=True)
        if name not in _ATOMICS:
            raise Fault(f"no built-in function is called {name}")
        found, exchanged = self._one_by_one(place, scalar, name, operands)
        if name == "atomicCompareExchangeWeak":
            members = [("old_value", scalar, None, None), ("exchanged", Numeric("bool"), None, None)]
            return Composite(
                struct_type("__atomic_compare_exchange_result", members), {"old_value": found, "exchanged": exchanged}
            )
        return found

    def _one_by_one(self, place: MemoryPlace, scalar: Numeric, name: str, operands: list[Array]) -> tuple[Array, Array]:
        """Let the active invocations do an atomic operation one after the other.

        Returns:
            The old value of each invocation, and whether it was equal to the first operand.
        """
        lanes = np.flatnonzero(self.mask.lanes if place.outside is None else self.mask.lanes & ~place.outside)
        memory, offsets = place.memory, np.broadcast_to(place.offsets, self.wave.lanes)
        found: Array = np.zeros(self.wave.lanes, scalar.dtype)
        if name == "atomicLoad":
            found[lanes] = memory.load(scalar, offsets[lanes])
            return found, found == 0
        given = [np.broadcast_to(operand, self.wave.lanes) for operand in operands]
        apart = len(np.unique(offsets[lanes])) == lanes.size
        for turn in [lanes] if apart else lanes.reshape(-1, 1):
            found[turn] = memory.load(scalar, offsets[turn])
            memory.store(scalar, offsets[turn], _ATOMICS[name](found[turn], *(g[turn] for g in given)))
        return found, found == given[0]

    def _texture(self, node: CallExpression, name: str) -> Value:
        texture, *rest = (self.evaluate(a) for a in node.arguments)
        if not isinstance(texture, Texture):
            raise Fault(f"{name} wants a texture, and {describe(texture)} is given")
        height, width = texture.texels.shape[:2]
        if name == "textureDimensions":
            return np.array([[width], [height]], np.uint32)
        place = concrete(rest[0])
        if not isinstance(place, np.ndarray) or place.shape[:-1] != (2,):
            raise Fault(f"the coordinates are {describe(place)}")
        x, y = place.astype(np.int64)
        outside = (x < 0) | (x >= width) | (y < 0) | (y >= height)
        bad = np.flatnonzero(outside & self.mask.lanes)
        if bad.size:
            at = tuple(int(c[min(int(bad[0]), c.size - 1)]) for c in (x, y))
            message = f"{self._invocation(bad[0])} reads the texel {at} of {texture.name}; it has {width} x {height}"
            self.tell("out of bounds", node, texture.name, message, self.wave.ids[bad], read=True)
        found = texture.texels[np.clip(y, 0, height - 1), np.clip(x, 0, width - 1)]
        texel = Numeric("i32" if found.dtype == np.int8 else "f32", (4,))
        beyond = poison(texel) if (node.line, node.column) in self.poisoned else zero(texel)
        return np.where(outside, beyond, np.moveaxis(found, -1, 0).astype(beyond.dtype))


def _second(_: Any, new: Any) -> Any:
    return new


_ATOMICS: dict[str, Any] = {
    "atomicLoad": _second, "atomicStore": _second, "atomicExchange": _second, "atomicAdd": np.add, "atomicSub": np.subtract,
    "atomicMax": np.maximum, "atomicMin": np.minimum, "atomicAnd": np.bitwise_and, "atomicOr": np.bitwise_or,
    "atomicXor": np.bitwise_xor, "atomicCompareExchangeWeak": lambda old, compared, new: np.where(old == compared, new, old),
}  # fmt: skip
