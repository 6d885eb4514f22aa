"""Memory on the device that tensors share one after the other."""

from __future__ import annotations

from collections.abc import Callable

from webnn_wgpu import MLContext, MLTensor

from .values import Kind


class Held:
    """A tensor on the device, which returns to the pool when nothing refers to it any more.

    The pool refers to the tensor all the time. Otherwise the collector of garbage would finalize both.
    """

    __slots__ = ("_give", "tensor")

    def __init__(self, tensor: MLTensor, give: Callable[[MLTensor], None]) -> None:
        self.tensor, self._give = tensor, give

    def __del__(self) -> None:
        self._give(self.tensor)


class Pool:
    """Tensors of a context that are in use, and spare ones for later use.

    A queued run may still use a spare tensor. The device works in order, so later uses follow it.

    Args:
        context: the context.
        most_spare: the number of bytes that spare tensors take at most.
    """

    def __init__(self, context: MLContext, most_spare: int) -> None:
        self._context, self._most_spare = context, most_spare
        self._spare: dict[tuple[str, tuple[int, ...]], list[MLTensor]] = {}
        self._used: dict[int, MLTensor] = {}
        self.used_bytes = self.spare_bytes = 0

    def take(self, kind: Kind) -> Held:
        """Return a tensor for the elements of a kind, whose contents are undefined."""
        spare = self._spare.get((kind.stored, kind.shape))
        if spare:
            tensor = spare.pop()
            self.spare_bytes -= tensor.nbytes
        else:
            tensor = self._context.create_host_tensor(kind.shape, kind.stored)
        self.used_bytes += tensor.nbytes
        self._used[id(tensor)] = tensor
        return Held(tensor, self._give)

    def _give(self, tensor: MLTensor) -> None:
        self.used_bytes -= tensor.nbytes
        del self._used[id(tensor)]
        if tensor.destroyed:
            return
        if self.spare_bytes + tensor.nbytes > self._most_spare:
            tensor.destroy()
            return
        self._spare.setdefault((str(tensor.data_type), tuple(tensor.shape)), []).append(tensor)
        self.spare_bytes += tensor.nbytes

    def clear(self) -> None:
        """Free the spare tensors."""
        for tensors in self._spare.values():
            while tensors:
                tensors.pop().destroy()
        self._spare.clear()
        self.spare_bytes = 0
