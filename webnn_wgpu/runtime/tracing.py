"""The run of one kernel with its `dbg` statements, which write their arguments to a buffer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import wgpu

from ..core.data_types import Array
from ..core.errors import OperationError
from ..kernels.dbg import DbgStatement, dbg_statements
from ..kernels.source_map import SourceMap
from ..kernels.spec import KernelSpec
from ..kernels.tracing import COUNT_BYTES, RECORD_WORDS, ValueType, traced, value_types, with_value, with_values
from .buffer import Buffer
from .device import Device
from .messages import compiler_message, wgpu_message
from .pipelines import PipelineCache
from .readback import StagingPool

_WORD_BYTES = 4


@dataclass(frozen=True)
class Records:
    """The records that a traced kernel has written.

    Attributes:
        statements: the `dbg` statements of its source.
        types: the types of their values.
        words: the records, [records, RECORD_WORDS].
        total: the number of values. It exceeds the number of records if the buffer was too small.
    """

    statements: Sequence[DbgStatement]
    types: Sequence[ValueType]
    words: Array
    total: int


class Tracer:
    """A kernel that is compiled with its `dbg` statements, and the buffer that they write to, for one run.

    Args:
        device: the device of the run.
        spec: the kernel, whose bindings the traced kernel has.
        source: the source of the kernel, with the statements.
        condition: a WGSL condition that selects the traced invocations.
        limit: the maximum number of values that the buffer holds.

    Raises:
        OperationError: the source does not compile, a value's type cannot be shown, or the device allows no further buffer.
    """

    def __init__(self, device: Device, spec: KernelSpec, source: SourceMap, condition: str, limit: int) -> None:
        self._device, self._spec, self._source, self._limit = device, spec, source, limit
        self._check_buffers()
        self._statements = dbg_statements(source.text)
        self._compile(with_values(source.text, self._statements))
        self._types = [self._type_of(i) for i in range(len(self._statements))]
        code = traced(source.text, self._statements, self._types, condition, limit)
        module = self._compile(code, condition)
        gpu = device.gpu
        layout = gpu.create_bind_group_layout(
            entries=[{"binding": 0, "visibility": wgpu.ShaderStage.COMPUTE, "buffer": {"type": "storage"}}]
        )
        with device.translated("tracing a kernel"):
            self._pipeline = gpu.create_compute_pipeline(
                label=f"traced {spec}",
                layout=gpu.create_pipeline_layout(bind_group_layouts=[PipelineCache.of(device).layout(spec), layout]),
                compute={"module": module, "entry_point": "main"},
            )
            self._buffer = device.create_buffer(COUNT_BYTES + limit * RECORD_WORDS * _WORD_BYTES, "trace")
            self._group = gpu.create_bind_group(
                layout=layout, entries=[{"binding": 0, "resource": {"buffer": self._buffer.gpu}}]
            )

    def _check_buffers(self) -> None:
        bound = sum(not b.is_texture for b in self._spec.bindings)
        limit = self._device.caps.limit("max-storage-buffers-per-shader-stage")
        if bound >= limit:
            raise OperationError(
                "a traced kernel needs one more storage buffer than the device allows",
                got=f"{bound} buffers of {self._spec}",
                allowed=f"max-storage-buffers-per-shader-stage {limit}",
            )

    def _compile(self, code: str, condition: str = "") -> wgpu.GPUShaderModule:
        """Compile a source, whose only fault can be the condition if there is one."""
        try:
            return self._device.gpu.create_shader_module(label=f"traced {self._spec}", code=code)
        except wgpu.GPUError as error:
            if condition:
                raise OperationError(
                    f"'where' does not compile: {condition}",
                    got=wgpu_message(error).partition("; ")[0],
                    allowed="a WGSL condition on workgroup, invocation and global",
                    hint="A function of a TracedValue selects values",
                ) from error
            said = compiler_message(str(error), self._source)
            misused = [s.value for s in self._statements if not s.has_one_value]
            hint = f'A dbg statement has the form dbg(value, "name"); and not dbg({misused[0]});' if misused else ""
            raise OperationError(f"the source does not compile: {said}", hint=hint) from error

    def _type_of(self, number: int) -> ValueType:
        """Return the type of a statement's value: the first that the compiler takes."""
        source = self._source.text
        for type_ in value_types(source):
            try:
                self._device.gpu.create_shader_module(code=with_value(source, self._statements, number, type_))
            except wgpu.GPUError:
                continue
            return type_
        statement = self._statements[number]
        line = source.count("\n", 0, statement.value_start) + 1
        place = self._source.place(line, statement.value_start - source.rfind("\n", 0, statement.value_start))
        raise OperationError(
            f"{place}: dbg shows scalars and vectors alone",
            got=statement.value,
            allowed=", ".join(dict.fromkeys(type_.scalar for type_ in value_types(source))),
        )

    @property
    def buffer(self) -> Buffer:
        """The buffer that is written."""
        return self._buffer

    def record(self, encoder: wgpu.GPUCommandEncoder, group: wgpu.GPUBindGroup, grid: tuple[int, int, int]) -> None:
        """Record the run into a compute pass of its own."""
        compute = encoder.begin_compute_pass()
        compute.set_pipeline(self._pipeline)
        compute.set_bind_group(0, group)
        compute.set_bind_group(1, self._group)
        compute.dispatch_workgroups(*grid)
        compute.end()

    def records(self) -> Records:
        """Wait for the run, free the buffer and return the records."""
        words = np.empty(self._buffer.size_bytes // _WORD_BYTES, np.uint32)
        StagingPool.of(self._device).read(self._buffer, words).result()
        self._buffer.destroy()
        total = int(words[0])
        kept = min(total, self._limit)
        return Records(self._statements, self._types, words[1 : 1 + kept * RECORD_WORDS].reshape(kept, RECORD_WORDS), total)
