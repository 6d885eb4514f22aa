"""Options with onnxruntime's names. The docstrings mark the options that are stored and ignored."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum, IntEnum

from webnn_wgpu import MLTypeError, NotSupportedError

DISABLE_HOST = "session.disable_cpu_ep_fallback"
"""The configuration entry of onnxruntime that refuses models with nodes that would run on the host."""


class GraphOptimizationLevel(IntEnum):
    """The optimization level of a graph. Ignored: the passes preserve all results.

    Example:
        >>> from webnn_wgpu.onnx import GraphOptimizationLevel, SessionOptions
        >>> SessionOptions(graph_optimization_level=GraphOptimizationLevel.ORT_DISABLE_ALL).graph_optimization_level.name
        'ORT_DISABLE_ALL'
    """

    ORT_DISABLE_ALL = 0
    ORT_ENABLE_BASIC = 1
    ORT_ENABLE_EXTENDED = 2
    ORT_ENABLE_LAYOUT = 3
    ORT_ENABLE_ALL = 99


class ExecutionMode(Enum):
    """The mode of execution of independent nodes. Ignored.

    Example:
        >>> from webnn_wgpu.onnx import ExecutionMode, SessionOptions
        >>> SessionOptions(execution_mode=ExecutionMode.ORT_PARALLEL).execution_mode.name
        'ORT_PARALLEL'
    """

    ORT_SEQUENTIAL = 0
    ORT_PARALLEL = 1


class ExecutionOrder(Enum):
    """The order of nodes. Ignored.

    Example:
        >>> from webnn_wgpu.onnx import ExecutionOrder, SessionOptions
        >>> SessionOptions(execution_order=ExecutionOrder.PRIORITY_BASED).execution_order.name
        'PRIORITY_BASED'
    """

    DEFAULT = 0
    PRIORITY_BASED = 1
    MEMORY_EFFICIENT = 2


@dataclass(kw_only=True)
class RunOptions:
    """Options of one run. Ignored."""

    log_severity_level: int = 2
    log_verbosity_level: int = 0
    logid: str = ""
    only_execute_path_to_fetches: bool = False
    terminate: bool = False
    entries: dict[str, str] = field(default_factory=dict[str, str])

    def add_run_config_entry(self, key: str, value: str) -> None:
        """Store an entry.

        Args:
            key: its key.
            value: its value.
        """
        self.entries[key] = value

    def get_run_config_entry(self, key: str) -> str:
        """Return an entry, or "" if there is none.

        Args:
            key: its key.
        """
        return self.entries.get(key, "")


@dataclass(kw_only=True)
class SessionOptions:
    """Options of a session.

    `add_free_dimension_override_by_name` fixes the sizes of symbolic dimensions. The configuration entry
    `session.disable_cpu_ep_fallback` = "1" refuses models that need the host. The attributes are ignored: threads, memory
    arenas and optimization levels of onnxruntime have no equivalent on a WebGPU device.

    Example:
        >>> from webnn_wgpu.onnx import SessionOptions
        >>> options = SessionOptions()
        >>> options.add_free_dimension_override_by_name("N", 2)
        >>> options.dims
        {'N': 2}
    """

    graph_optimization_level: GraphOptimizationLevel = GraphOptimizationLevel.ORT_ENABLE_ALL
    execution_mode: ExecutionMode = ExecutionMode.ORT_SEQUENTIAL
    execution_order: ExecutionOrder = ExecutionOrder.DEFAULT
    intra_op_num_threads: int = 0
    inter_op_num_threads: int = 0
    enable_cpu_mem_arena: bool = True
    enable_mem_pattern: bool = True
    enable_mem_reuse: bool = True
    enable_profiling: bool = False
    log_severity_level: int = 2
    log_verbosity_level: int = 0
    logid: str = ""
    optimized_model_filepath: str = ""
    profile_file_prefix: str = "onnxruntime_profile_"
    use_deterministic_compute: bool = False
    dims: dict[str, int] = field(default_factory=dict[str, int])
    entries: dict[str, str] = field(default_factory=dict[str, str])

    def add_free_dimension_override_by_name(self, name: str, size: int) -> None:
        """Set the size of a symbolic dimension.

        Args:
            name: the name of the dimension.
            size: its size, from 0 up.

        Raises:
            MLTypeError: the size is negative.
        """
        if size < 0:
            raise MLTypeError(
                "a dimension has a size",
                operator="add_free_dimension_override_by_name",
                got=f"{name} = {size}",
                allowed="from 0 up",
            )
        self.dims[name] = int(size)

    def add_free_dimension_override_by_denotation(self, denotation: str, size: int) -> None:
        """Raise NotSupportedError: dimensions are identified by their names.

        Args:
            denotation: the denotation.
            size: the size.
        """
        raise NotSupportedError(
            "dimensions cannot be told by denotations",
            operator="add_free_dimension_override_by_denotation",
            got=repr(denotation),
            hint="Use add_free_dimension_override_by_name",
        )

    def add_session_config_entry(self, key: str, value: str) -> None:
        """Store an entry.

        Args:
            key: its key.
            value: its value.
        """
        self.entries[key] = value

    def get_session_config_entry(self, key: str) -> str:
        """Return an entry, or "" if there is none.

        Args:
            key: its key.
        """
        return self.entries.get(key, "")

    def register_custom_ops_library(self, path: str) -> None:
        """Raise NotSupportedError: such libraries contain kernels for onnxruntime's own devices.

        Args:
            path: the library.
        """
        raise NotSupportedError(
            "libraries of custom operators cannot be used", operator="register_custom_ops_library", got=repr(path)
        )
