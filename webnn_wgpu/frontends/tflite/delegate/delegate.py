"""`WebnnDelegate`: a delegate for the interpreters of `ai-edge-litert`, `tensorflow` and `tflite-runtime`."""

from __future__ import annotations

import ctypes
import logging
import sys
import warnings
from collections import deque
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

from webnn_wgpu import MLContext, MLTypeError, NotSupportedError, WebNNError, ml
from webnn_wgpu.api.process import have_own_symbols

from ...common.model import count_of
from ..module import CustomLowering
from .callbacks import DelegateCallbacks, registered
from .kernel import PartitionKernel
from .layouts import RuntimeCallError, RuntimeContext, ints_at
from .partitions import Candidate, DelegationReport, chosen
from .snapshot import RuntimeModule, snapshot
from .support import SupportWalk

if TYPE_CHECKING:
    from webnn_wgpu.typing import MLPowerPreference

log = logging.getLogger(__name__)

DEVICES = ("default", "gpu", "cpu")
"""The names of `device_preference` by number."""
POWERS = ("default", "high-performance", "low-power")
"""The names of `power_preference` by number."""
KEPT_REPORTS = 64
"""The maximum number of reports that a delegate keeps."""

DevicePreference = Literal["default", "gpu", "cpu", 0, 1, 2]
PowerPreference = Literal["default", "high-performance", "low-power", 0, 1, 2]


class WebnnDelegate(DelegateCallbacks):
    """A delegate that runs the nodes of a TFLite interpreter on WebNN.

    An interpreter takes it in `experimental_delegates`. When the interpreter is made, the delegate asks for each node whether
    the device can run it, and compiles a graph for each partition of such nodes. All other nodes run on TFLite's own kernels.
    If there is no device, or a partition cannot be compiled, its nodes stay on the CPU, and the delegate issues one
    RuntimeWarning. One delegate serves any number of interpreters.

    Args:
        device_preference: the kind of device: "default", "gpu" or "cpu", or their numbers 0, 1 and 2.
        power_preference: the choice between adapters: "default", "high-performance" or "low-power", or 0, 1 and 2.
        max_delegated_partitions: the greatest number of partitions of a subgraph. Those with most nodes run on the device.
            0 for no limit.
        min_nodes_per_partition: the least number of nodes of a partition on the device. 0 for no limit.
        context: where the partitions run. A new context of the preferences by default.
        custom_operators: functions that lower custom operators, by name. See `webnn_wgpu.load`.

    Attributes:
        reports: the partitions and the reasons of the subgraphs that the delegate saw last, at most 64.

    Raises:
        MLTypeError: an unknown preference or a negative number.
        NotSupportedError: the process is not a 64-bit, little-endian one.

    Example:
        >>> from webnn_wgpu.tflite import WebnnDelegate
        >>> delegate = WebnnDelegate(power_preference="low-power", max_delegated_partitions=1)
        >>> delegate.reports
        ()
    """

    def __init__(
        self,
        device_preference: DevicePreference = "default",
        power_preference: PowerPreference = "default",
        max_delegated_partitions: int = 0,
        min_nodes_per_partition: int = 0,
        *,
        context: MLContext | None = None,
        custom_operators: Mapping[str, CustomLowering] | None = None,
    ) -> None:
        if ctypes.sizeof(ctypes.c_void_p) != 8 or sys.byteorder != "little":
            raise NotSupportedError("delegates need a 64-bit, little-endian process", operator="WebnnDelegate")
        self._device = _preference(device_preference, DEVICES, "device_preference")
        self._power: MLPowerPreference = _preference(power_preference, POWERS, "power_preference")
        self._most = count_of(max_delegated_partitions, "max_delegated_partitions", 0, "WebnnDelegate")
        self._least = count_of(min_nodes_per_partition, "min_nodes_per_partition", 0, "WebnnDelegate")
        self._context = context
        self._custom_operators = dict(custom_operators or {})
        self._ready: dict[tuple[int, tuple[int, ...]], PartitionKernel] = {}
        self._reports: deque[DelegationReport] = deque(maxlen=KEPT_REPORTS)
        self._warned = False
        self._address = registered(self)

    @property
    def reports(self) -> tuple[DelegationReport, ...]:
        """The reports on the subgraphs that the delegate saw last, the latest at the end."""
        return tuple(self._reports)

    def _get_native_delegate_pointer(self) -> int:
        """Return the address of the TfLiteDelegate structure. Interpreters call this method."""
        return self._address

    # the runtime's calls --------------------------------------------------------------------------------------------

    def take_nodes(self, runtime: RuntimeContext) -> list[int]:
        """Return the nodes of a subgraph that the delegate runs, and compile their partitions.

        The first failure issues a warning, and the affected nodes stay on the CPU.

        Args:
            runtime: the context of the subgraph.
        """
        failures: list[str] = []
        nodes: list[int] = []
        try:
            nodes = self._choose(runtime, self._opened(), failures)
        except Exception as error:
            failures.append(f"the model runs on the CPU, because WebNN is not available: {error}")
        for failure in failures:
            self._warn(failure)
        return nodes

    def _opened(self) -> MLContext:
        if self._context is None:
            device: Any = None if self._device == "default" else self._device
            self._context = ml.create_context(device_type=device, power_preference=self._power)
        llvmpipe = self._context.caps.device.startswith("llvmpipe")
        if llvmpipe and "tensorflow" in sys.modules and not have_own_symbols():
            # Both contain LLVM, and the driver calls TensorFlow's functions: the first kernel ends the process.
            raise NotSupportedError("import tensorflow before the first context: llvmpipe else calls TensorFlow's LLVM")
        return self._context

    def _module(self, runtime: RuntimeContext, context: MLContext) -> RuntimeModule:
        return RuntimeModule(snapshot(runtime), self._custom_operators, wide_float16=not context.accelerated)

    def _choose(self, runtime: RuntimeContext, context: MLContext, failures: list[str]) -> list[int]:
        module = self._module(runtime, context)
        graph = module.graph(0)
        reasons = SupportWalk(module, context, graph).reasons()
        ready: dict[tuple[int, ...], PartitionKernel] = {}

        def preview(nodes: Sequence[int]) -> list[Candidate[PartitionKernel]]:
            found: list[Candidate[PartitionKernel]] = []
            for params in runtime.preview(nodes):
                part = ints_at(params.nodes_to_replace)
                kernel = ready.get(part) or PartitionKernel(
                    module,
                    context,
                    graph,
                    nodes=part,
                    inputs=ints_at(params.input_tensors),
                    outputs=ints_at(params.output_tensors),
                )
                found.append(Candidate(nodes=part, item=kernel))
            # Partitions without a node of the delegate are those of the runtime's kernels.
            wanted = set(nodes)
            return [c for c in found if wanted.issuperset(c.nodes)]

        def accepts(candidate: Candidate[PartitionKernel]) -> str:
            if candidate.nodes in ready:
                return ""
            try:
                candidate.item.compile(runtime)
            except WebNNError as error:
                candidate.item.destroy()
                failures.append(f"nodes {list(candidate.nodes)} run on the CPU: {error}")
                return f"its partition cannot be compiled: {error}"
            ready[candidate.nodes] = candidate.item
            return ""

        supported = [n.record.index for n in graph.nodes if n.record.index not in reasons]
        kept, others = chosen(supported, preview, accepts, most=self._most, least=self._least)
        partitions = tuple(c.nodes for c in kept)
        for nodes, kernel in ready.items():
            if nodes in partitions:
                self._ready[runtime.address, nodes] = kernel
            else:
                kernel.destroy()
        self._report(
            DelegationReport(
                operators={n.record.index: n.record.name for n in graph.nodes},
                partitions=partitions,
                reasons=dict(sorted((others | reasons).items())),
            )
        )
        return sorted(n for nodes in partitions for n in nodes)

    def take_partition(
        self, runtime: RuntimeContext, nodes: tuple[int, ...], inputs: tuple[int, ...], outputs: tuple[int, ...]
    ) -> PartitionKernel:
        """Return the kernel of a partition that the runtime has made: the compiled one, or a new one for other nodes.

        Args:
            runtime: the context of the subgraph.
            nodes: the numbers of the nodes.
            inputs: the numbers of the partition's inputs.
            outputs: the numbers of its outputs.

        Raises:
            RuntimeCallError: the runtime made a partition that the delegate has no context for.
        """
        found = self._ready.pop((runtime.address, nodes), None)
        if found is not None:
            return found
        if self._context is None:
            raise RuntimeCallError("the runtime made a partition before the delegate opened a context")
        module = self._module(runtime, self._context)
        return PartitionKernel(module, self._context, module.graph(0), nodes=nodes, inputs=inputs, outputs=outputs)

    # messages -------------------------------------------------------------------------------------------------------

    def _report(self, report: DelegationReport) -> None:
        self._reports.append(report)
        log.info("%s", report.summary)
        for node, reason in report.reasons.items():
            log.debug("node %d (%s) runs on the CPU: %s", node, report.operators[node], reason)

    def _warn(self, message: str) -> None:
        """Issue the warning of the delegate, or log it if there was one."""
        text = f"WebnnDelegate: {message}"
        if self._warned:
            log.warning("%s", text)
            return
        self._warned = True
        try:
            # Behind the callbacks and the interpreter's constructor is the program's line.
            warnings.warn(text, RuntimeWarning, stacklevel=7)
        except RuntimeWarning:
            # A filter that makes errors of warnings. No exception may cross the C boundary.
            log.warning("%s", text)


def _preference(value: object, names: Sequence[str], option: str) -> Any:
    """Return a preference by its name or its number.

    Raises:
        MLTypeError: an unknown preference.
    """
    if isinstance(value, str) and value in names:
        return value
    if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < len(names):
        return names[value]
    allowed = ", ".join(f"{name} ({number})" for number, name in enumerate(names))
    raise MLTypeError(f"{option} must be a preference", operator="WebnnDelegate", got=repr(value), allowed=allowed)
