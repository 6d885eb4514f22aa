"""`StageLowering`: the walk that turns nodes of any format into a WebNN graph, as far as they can be.

A node may ask for the elements of a value. If the program was given them, the stage holds for these elements alone (a guard).
Otherwise the node waits for a later stage, before which the value is read back.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Generic, TypeVar

import numpy as np

from webnn_wgpu import MLOperand, NotSupportedError
from webnn_wgpu.api.internals import name_constant
from webnn_wgpu.api.progress import READING, Progress

from .calls import OnHost
from .held import Array, encode, held_shape, held_type
from .module import ModelModule
from .stages import Feed, Inline, Lowered, LoweredTensor, NodeT, ValueNeeded, ValueT, resolve

MOST_COMPARED = 4096
"""The maximum number of bytes of constants that are compared by their elements."""

ModuleT = TypeVar("ModuleT", bound=ModelModule[Any, Any])
TensorT = TypeVar("TensorT", bound=LoweredTensor[Any])
LoweredT = TypeVar("LoweredT", bound=Lowered[Any, Any])


class StageLowering(ABC, Generic[ModuleT, ValueT, NodeT, TensorT, LoweredT]):
    """Lowers the nodes of one stage.

    Args:
        module: the model that the nodes belong to.
        result: the stage, which receives the results.
        feeds: the values that are given at run time.
        missing: values that nodes read but that are not given. Such nodes are left for later stages.
        known: values that are known besides.
    """

    def __init__(
        self,
        module: ModuleT,
        result: LoweredT,
        feeds: Mapping[ValueT, Feed],
        missing: Iterable[ValueT],
        known: Mapping[ValueT, TensorT],
    ) -> None:
        self.module, self.result = module, result
        self.builder = result.builder
        self._feeds = dict(feeds)
        self._missing = set(missing)
        self._tensors: dict[ValueT, TensorT] = {v: self._fed(v, feed) for v, feed in self._feeds.items()}
        self._tensors.update(known)
        self._constants: dict[Hashable, tuple[Array, MLOperand]] = {}
        self._leaves: set[MLOperand] = set()

    @abstractmethod
    def _fed(self, value: ValueT, feed: Feed) -> TensorT:
        """Return the tensor of a value that is given at run time. If it has no elements, they are known."""

    @abstractmethod
    def _lower(self, node: NodeT) -> Inline[ValueT, NodeT] | None:
        """Lower a node: set its outputs' tensors, or return the nodes that replace it.

        Raises:
            ValueNeeded: it needs elements that are not known.
            OnHost: the device cannot run it.
        """

    @abstractmethod
    def _known(self, value: ValueT, array: Array) -> TensorT:
        """Return the tensor of a value with known elements."""

    # the walk -------------------------------------------------------------------------------------------------------

    def run(self, nodes: Iterable[NodeT], wanted: Sequence[ValueT], progress: Progress | None = None) -> LoweredT:
        """Lower nodes, in the order of execution.

        Args:
            nodes: the nodes that are left of the program.
            wanted: the program's outputs.
            progress: called as `progress(done, total, READING)` with numbers of nodes.

        Raises:
            NotSupportedError: a node that neither device nor host can run, or, with `fallback="error"`, not the device.
            ValueNeeded: a node needs elements that the program will be given, but they are not known yet.
        """
        work = deque(nodes)
        needed: dict[ValueT, None] = {}
        done = 0
        while work:
            if progress is not None:
                progress(done, done + len(work), READING)
            done += 1
            node = work.popleft()
            if self._waits(node):
                self._postpone(node)
                continue
            try:
                with self.module.at(node, "lowering"):
                    result = self._lower(node)
            except ValueNeeded as wait:
                if any(v in self._feeds and self._feeds[v].array is None for v in wait.values):
                    raise
                self.module.refuse_host(node, "it needs the elements of a value that the device computes")
                needed.update(dict.fromkeys(wait.values))
                self._postpone(node)
            except OnHost as reason:
                self._leave_to_host(node, str(reason))
            else:
                if result is not None:
                    self._replace(node, result)
                    work.extendleft(reversed(result.nodes))
        self._collect([*wanted, *needed])
        return self.result

    def _waits(self, node: NodeT) -> bool:
        """Return whether a node reads a value that only a later stage has."""
        return any(self._absent(v) for v in self.module.uses(node))

    def _absent(self, value: ValueT) -> bool:
        value = self.resolve(value)
        return value not in self._tensors and not self.module.is_constant(value)

    def _replace(self, node: NodeT, inline: Inline[ValueT, NodeT]) -> None:
        self.result.aliases.update(inline.aliases)
        self.result.aliases.update({a: b for a, b in zip(node.outputs, inline.outputs, strict=False) if a is not b})
        self._tensors.update({v: self._known(v, array) for v, array in inline.known.items()})

    def _postpone(self, node: NodeT) -> None:
        self._missing.update(node.outputs)
        self.result.rest.append(node)

    def _leave_to_host(self, node: NodeT, reason: str) -> None:
        self.module.refuse_host(node, reason)
        self._missing.update(node.outputs)
        self.result.host.append(node)
        self._place(node, "host", reason)

    def _place(self, node: NodeT, where: str, note: str = "") -> None:
        self.result.placed.append(self.module.placed(node, where, note))

    # the results ----------------------------------------------------------------------------------------------------

    def _collect(self, ends: list[ValueT]) -> None:
        """Make outputs of the values that the program returns, the host reads and later stages use."""
        for node in (*self.result.host, *self.result.rest):
            ends.extend(self.module.uses(node))
        for end in dict.fromkeys(self.resolve(v) for v in ends):
            self._end(end, self._tensors.get(end))

    def _end(self, end: ValueT, tensor: TensorT | None) -> None:
        """Add a value to the stage's results. A value without a tensor is a constant, or later stages compute it."""
        if tensor is None:
            if not self.module.is_constant(end) and end not in self._missing:
                raise NotSupportedError(f"{self.module.name}: no operator computes '{end.name}'")
        elif tensor.array is not None:
            self.result.known[end] = tensor.array
        elif tensor.feed is None:
            operand = self.hold(tensor)
            if operand in self._leaves:
                operand = self.builder.identity(operand)
            name = end.name or f"value_{len(self.result.outputs)}"
            while name in self.result.outputs:
                name += "'"
            self.result.outputs[name] = (end, replace(tensor, operand=operand))
        elif tensor.feed is not end:
            self.result.aliases[end] = tensor.feed

    # operands -------------------------------------------------------------------------------------------------------

    def resolve(self, value: ValueT) -> ValueT:
        """Follow the aliases of a value."""
        return resolve(value, self.result.aliases)

    def hold(self, tensor: TensorT) -> MLOperand:
        """Return the operand of a tensor.

        Raises:
            OnHost: the tensor has no elements.
        """
        if tensor.operand is None:
            if not tensor.size:
                raise OnHost("an input has no elements")
            if tensor.array is not None:
                tensor.operand = self.constant(encode(tensor.array), tensor.name)
            else:
                assert tensor.feed is not None
                name, tensor.operand = self.input(tensor.feed.name or f"input_{len(self.result.inputs)}", tensor)
                self.result.inputs[name] = tensor.feed
        return tensor.operand

    def input(self, name: str, tensor: TensorT) -> tuple[str, MLOperand]:
        """Return an input of the graph for a tensor, and its name, which differs if another input has the one given."""
        while self.result.is_input(name):
            name += "'"
        operand = self.builder.input(name, held_shape(tensor.shape, tensor.dtype), held_type(tensor.dtype))
        self._leaves.add(operand)
        return name, operand

    def constant(self, array: Array, name: str = "") -> MLOperand:
        """Return a constant operand, one for each array, and for small arrays of equal elements without a name.

        Args:
            array: the elements.
            name: the name of an initializer.

        Raises:
            OnHost: the array has no elements.
        """
        shared = not name and array.nbytes <= MOST_COMPARED
        key = (array.dtype, array.shape, array.tobytes()) if shared else id(array)
        if key not in self._constants:
            if not array.size:
                raise OnHost("an input has no elements")
            fixed = np.ascontiguousarray(array).reshape(array.shape)
            fixed.flags.writeable = False
            operand = self.builder.constant(fixed)
            name_constant(operand, name)
            self._leaves.add(operand)
            self._constants[key] = (array, operand)
        return self._constants[key][1]
