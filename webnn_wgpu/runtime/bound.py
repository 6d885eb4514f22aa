"""The recorders of a program over sets of a caller's tensors, kept from run to run."""

from __future__ import annotations

import weakref
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping
from typing import TypeAlias

from .buffer import Buffer
from .recorder import Recorder

Ends: TypeAlias = Mapping[tuple[str, str], Buffer]
"""The buffers of a graph's ends: ("input" or "output", name) -> buffer."""

_BOUND_SETS = 16
"""Sets of tensors whose bind groups are kept: more than a decoder that swaps two caches needs."""


class BoundSets:
    """Recorders by the tensors they are bound to: those used last, as long as their tensors live."""

    def __init__(self) -> None:
        self._sets: OrderedDict[tuple[int, ...], _Bound] = OrderedDict()

    def get(self, ends: Ends, bind: Callable[[Ends], Recorder]) -> Recorder:
        """Return the recorder over some buffers. `bind` creates it if there is none yet."""
        key = tuple(map(id, ends.values()))
        found = self._sets.get(key)
        if found is None:
            found = self._sets[key] = _Bound(bind(ends), ends.values(), self._sets, key)
            if len(self._sets) > _BOUND_SETS:
                self._sets.popitem(last=False)
        else:
            self._sets.move_to_end(key)
        return found.recorder

    def __len__(self) -> int:
        return len(self._sets)

    def clear(self) -> None:
        """Forget them all."""
        self._sets.clear()


class _Bound:
    """The dispatches of a program over one set of tensors, kept while all these tensors exist."""

    def __init__(
        self, recorder: Recorder, buffers: Iterable[Buffer], table: OrderedDict[tuple[int, ...], _Bound], key: tuple[int, ...]
    ) -> None:
        self.recorder = recorder
        weak = weakref.ref(table)

        def forget(_gone: object) -> None:
            found = weak()
            if found is not None:
                found.pop(key, None)

        self._buffers = [weakref.ref(buffer, forget) for buffer in buffers]
