"""Options in onnxruntime's spelling. What has no meaning here is kept and passed over; the docstrings say which it is."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum, IntEnum

from webnn_wgpu import MLTypeError, NotSupportedError

DISABLE_HOST = "session.disable_cpu_ep_fallback"
"""The configuration entry of onnxruntime that refuses models with nodes that would run on the host."""


class GraphOptimizationLevel(IntEnum):
    """How much a graph is rewritten. Passed over: the rewrites here keep every result."""

    ORT_DISABLE_ALL = 0
    ORT_ENABLE_BASIC = 1
    ORT_ENABLE_EXTENDED = 2
    ORT_ENABLE_LAYOUT = 3
    ORT_ENABLE_ALL = 99


class ExecutionMode(Enum):
    """Whether independent nodes run at once. Passed over."""

    ORT_SEQUENTIAL = 0
    ORT_PARALLEL = 1


class ExecutionOrder(Enum):
    """The order of nodes. Passed over."""

    DEFAULT = 0
    PRIORITY_BASED = 1
    MEMORY_EFFICIENT = 2


@dataclass(kw_only=True)
class RunOptions:
    """Options of one run. Passed over."""

    log_severity_level: int = 2
    log_verbosity_level: int = 0
    logid: str = ""
    only_execute_path_to_fetches: bool = False
    terminate: bool = False
    entries: dict[str, str] = field(default_factory=dict[str, str])

    def add_run_config_entry(self, key: str, value: str) -> None:
        """Keep an entry."""
        self.entries[key] = value

    def get_run_config_entry(self, key: str) -> str:
        """Return an entry; "" if there is none."""
        return self.entries.get(key, "")


@dataclass(kw_only=True)
class SessionOptions:
    """Options of a session.

    `add_free_dimension_override_by_name` pins symbolic dimensions, and the configuration entry
    `session.disable_cpu_ep_fallback` = "1" refuses models that would need the host. The attributes are passed over: threads,
    memory arenas and optimisation levels of onnxruntime have nothing that corresponds to them on a WebGPU device.

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
        """Give a symbolic dimension a size.

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
        """Raise NotSupportedError: dimensions are told by their names."""
        raise NotSupportedError(
            "dimensions cannot be told by denotations",
            operator="add_free_dimension_override_by_denotation",
            got=repr(denotation),
            hint="Use add_free_dimension_override_by_name",
        )

    def add_session_config_entry(self, key: str, value: str) -> None:
        """Keep an entry."""
        self.entries[key] = value

    def get_session_config_entry(self, key: str) -> str:
        """Return an entry; "" if there is none."""
        return self.entries.get(key, "")

    def register_custom_ops_library(self, path: str) -> None:
        """Raise NotSupportedError: such libraries hold kernels for onnxruntime's own devices."""
        raise NotSupportedError(
            "libraries of custom operators cannot be used", operator="register_custom_ops_library", got=repr(path)
        )
