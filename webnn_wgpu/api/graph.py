"""`MLGraph`: a compiled graph, ready to run."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from types import MappingProxyType, TracebackType
from typing import TYPE_CHECKING, Any

from ..core.errors import NotSupportedError
from ..ir.graph import Graph
from ..ir.types import TensorType
from ..passes import PassReport
from ..plan import ExecutionPlan
from .backend import Executable
from .options import camel_attribute
from .profile import GraphProfile, measure

if TYPE_CHECKING:
    from .context import MLContext


class MLGraph:
    """A graph that `MLGraphBuilder.build` compiled for one context.

    Attributes:
        inputs: input name -> data type and shape; inputs that no output depends on are not among them.
        outputs: output name -> data type and shape.
        aliases: output name -> the input whose memory it is.
        plan: kernels, buffers and dispatches, printable; None on the numpy reference.
        passes: what each optimisation pass did.
        source: the graph as it was built, before any pass.

    Example:
        >>> graph = b.build({"y": b.relu(x)})
        >>> print(graph.plan.summary())
        0 slots, 0.0 MiB (unshared 0.0 MiB), 1 dispatch, 1 pass
        >>> graph.destroy()

    Spec: https://www.w3.org/TR/webnn/#api-mlgraph
    """

    def __init__(
        self,
        context: MLContext,
        source: Graph,
        executable: Executable,
        plan: ExecutionPlan | None,
        passes: tuple[PassReport, ...],
        disabled_passes: Collection[str] = (),
    ) -> None:
        self._context, self._executable, self._destroyed = context, executable, False
        self._disabled_passes = tuple(disabled_passes)
        self.source, self.plan, self.passes = source, plan, passes
        self.aliases = source.aliases
        self.inputs: Mapping[str, TensorType] = MappingProxyType({n: source.type(v) for n, v in source.inputs.items()})
        self.outputs: Mapping[str, TensorType] = MappingProxyType({n: source.type(v) for n, v in source.outputs.items()})

    @property
    def destroyed(self) -> bool:
        """Whether the graph was destroyed."""
        return self._destroyed

    @property
    def operand_count(self) -> int:
        """Number of operands of the source graph: inputs, constants and results."""
        return len(self.source.values)

    @property
    def operation_count(self) -> int:
        """Number of operators of the source graph."""
        return len(self.source.nodes)

    def get_input_names(self) -> list[str]:
        """Return the names of the inputs."""
        return list(self.inputs)

    def get_output_names(self) -> list[str]:
        """Return the names of the outputs."""
        return list(self.outputs)

    def profile(self, inputs: Mapping[str, Any], *, runs: int = 1) -> GraphProfile:
        """Run the graph and return how long each kernel took on the device, by the device's own timestamps.

        Each kernel runs in a compute pass of its own for that, in a run beside the ordinary one whose wall time is told.

        Args:
            inputs: every input by name, as `MLContext.compute` takes them.
            runs: how often; times are medians.

        Returns:
            The times, with what each kernel computes and why it was chosen; `print` shows them as a table. A device that was
            made without the feature "timestamp-query" gives no times of kernels, only that of the run, and a note of it.

        Raises:
            MLTypeError: a missing or unknown name, a wrong data type or size; `runs` is not positive.
            InvalidStateError: the graph was destroyed or the context lost.
            OperationError: the device failed to run the graph.

        Example:
            >>> profile = b.build({"y": b.relu(x)}).profile({"x": np.ones((2, 3), np.float32)})
            >>> [kernel.labels for kernel in profile.slowest().kernels]
            [('relu_0',)]
        """
        return measure(self, inputs, runs)

    def save(self, path: Any, quantized: bool = False) -> None:
        """Raise NotSupportedError: pywebnn writes the graph to a `.webnn` file here, this package does not."""
        raise NotSupportedError("a graph cannot be saved", operator="save", got=repr(path), hint="Build it again instead")

    @staticmethod
    def load(path: Any, manifest_path: Any = None, weights_path: Any = None) -> MLGraph:
        """Raise NotSupportedError: pywebnn reads a graph from a `.webnn` file here, this package does not."""
        raise NotSupportedError("a saved graph cannot be loaded", operator="load", got=repr(path))

    def destroy(self) -> None:
        """Free everything the graph holds once queued work is done. Idempotent.

        Spec: https://www.w3.org/TR/webnn/#dom-mlgraph-destroy
        """
        with self._context._lock:
            self._destroyed = True
            self._executable.destroy()

    def __enter__(self) -> MLGraph:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.destroy()

    def __getattr__(self, name: str) -> Any:
        return camel_attribute(self, name)

    def __repr__(self) -> str:
        inputs = ", ".join(f"{n}: {t}" for n, t in self.inputs.items())
        outputs = ", ".join(f"{n}: {t}" for n, t in self.outputs.items())
        return f"MLGraph({inputs} -> {outputs})" + (" destroyed" if self._destroyed else "")
