"""`Recovery`, the part of `MLContext` that continues after a device loss."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any

from ..core.errors import DeviceLostError, InvalidStateError, MLTypeError
from .backend import DeviceBackend
from .context_state import ContextState
from .graph import MLGraph

if TYPE_CHECKING:
    from .context import MLContext


class Recovery(ContextState):
    """A fresh context for one that is lost, and its graphs again."""

    def recover(self, device: Any = None) -> MLContext:
        """Return a new context that replaces this lost one.

        Args:
            device: a `wgpu.GPUDevice`. It is required if this context was created for a caller's device. Otherwise the call
                opens a device by the options of this context. The new context keeps the `tuning` in both cases. For the changes
                to your own device see `ML.create_context`.

        Raises:
            InvalidStateError: neither this context nor its device is lost.
            MLTypeError: a device of the caller's was not given anew.
            DeviceLostError: the device is gone too.
            NotSupportedError: no device can be had.

        Example:
            >>> old = wn.ml.create_context(backend="reference")
            >>> builder = old.create_graph_builder()
            >>> graph = builder.build({"y": builder.neg(builder.input("x", [2], "float32"))})
            >>> old.destroy()  # or the driver gives up
            >>> new = old.recover()
            >>> print(new.compute(new.rebuild(graph), {"x": [1, 2]})["y"])
            [-1. -2.]
        """
        from .ml import ml

        if not self._loss.event.is_set() and isinstance(self._backend, DeviceBackend):
            # The program may have noticed the loss by a call of its own.
            with contextlib.suppress(DeviceLostError), self._guarded("recover"), self._lock:
                self._backend.device.check()
        if not self._loss.event.is_set():
            raise InvalidStateError("the context is not lost", operator="recover", got=repr(self))
        if device is not None:
            return ml.create_context(device, tuning=self._options.get("tuning"))
        if self._needs_device:
            raise MLTypeError(
                "the context was made for a device of your own, which must be given anew",
                operator="recover",
                allowed="recover(device)",
            )
        return ml.create_context(self._options)

    def rebuild(self, graph: MLGraph, *, overrides: bool = True) -> MLGraph:
        """Compile a graph of another context, lost or not, for this one. Results are the same on the same kind of device.

        Args:
            graph: a graph, which may be destroyed. A graph keeps its operators and weights in host memory.
            overrides: whether the overrides of `MLGraph.override` are installed again.

        Returns:
            The graph for this context.

        Raises:
            MLTypeError: `graph` is not a graph.
            InvalidStateError: this context is lost.
            NotSupportedError: the graph is from a folder for browsers. Load the folder again instead.
            OperationError: as in `MLGraphBuilder.build`. Or an overridden kernel differs on this device.
            OutOfMemoryError: as in `MLGraphBuilder.build`.

        Example:
            >>> graph = b.build({"y": b.neg(x)})
            >>> with wn.ml.create_context(backend="reference") as exact:
            ...     print(exact.rebuild(graph))
            MLGraph(x: float32[2, 3] -> y: float32[2, 3])
        """
        self._check_alive("rebuild")
        if not isinstance(graph, MLGraph):  # pyright: ignore[reportUnnecessaryIsInstance] - callers need not be typed
            raise MLTypeError("graph must be an MLGraph", operator="rebuild", got=type(graph).__name__)
        graph._check_operators("rebuild")
        made = self._compile(graph.source, None, graph._disabled_passes, "rebuild", graph._tuning)
        if overrides:
            with self._guarded("rebuild"), self._lock:
                try:
                    made._take_overrides(graph)
                except BaseException:
                    made.destroy()
                    raise
        return made
