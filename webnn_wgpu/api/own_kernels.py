"""`run_wgsl`, and the checks that it shares with `wgsl_op`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from threading import Lock
from typing import TYPE_CHECKING, Any, Literal, cast

import numpy as np

from ..core.caps import Caps
from ..kernels.own import (
    check_elements,
    constant_declarations,
    declared_bindings,
    declaring,
    for_naga,
    lacking,
    overridable,
    set_overrides,
    type_declarations,
    unused,
)
from ..kernels.spec import Grid
from ..runtime.own_kernels import RunArgument, is_gpu_buffer
from .arrays import Fail, as_array, failing, is_integer, tensor_type
from .tensor import MLTensor

if TYPE_CHECKING:
    from .backend import Pending
    from .context import MLContext
    from .types import Number

_lock = Lock()
_default: list[MLContext] = []
"""The context that `run_wgsl` opened itself, if any."""


def completed(source: Any, constants: Any, data_types: Sequence[str], fail: Fail) -> tuple[str, tuple[str, ...]]:
    """Return a kernel's WGSL with declarations of its constants and the data types that it uses, and all declarations."""
    if not isinstance(source, str):
        raise fail("source must be WGSL text", got=type(source).__name__)
    if constants is not None and not isinstance(constants, Mapping):
        raise fail("constants must be a mapping of name to number", got=type(constants).__name__)
    types = type_declarations(data_types)
    values = cast("Mapping[str, Any]", constants or {})
    numbers = constant_declarations(values, fail)
    overrides = overridable(source)
    if overrides and (unknown := unused(source, values)):
        # As in WebGPU. A misspelled name would leave an override its default, without an error of the compiler.
        rule = "constants of a source with overrides must have names that it uses"
        raise fail(rule, got=", ".join(unknown), allowed=f"its overrides {', '.join(overrides)}, and its undeclared names")
    text, others = set_overrides(for_naga(source), numbers)
    return declaring(text, [*lacking(text, types), *others]), (*types, *numbers)


def grid_of(workgroups: Any, caps: Caps, fail: Fail) -> Grid:
    """Return the number of workgroups in x, y and z."""
    counts: list[Any] = [workgroups] if is_integer(workgroups) else list(workgroups) if _is_list(workgroups) else []
    limit = caps.limit("max-compute-workgroups-per-dimension")
    if not 1 <= len(counts) <= 3 or not all(is_integer(n) and 0 < n <= limit for n in counts):
        raise fail("workgroups must be one to three positive integers", got=repr(workgroups), allowed=f"1..{limit} each")
    x, y, z = (*map(int, counts), 1, 1)[:3]
    return (x, y, z)


def _is_list(value: Any) -> bool:
    return isinstance(value, Sequence) and not isinstance(value, str)


def run_wgsl(
    source: str,
    *arguments: Any,
    workgroups: int | Sequence[int],
    constants: Mapping[str, Number | bool] | None = None,
    context: MLContext | None = None,
    label: str = "",
) -> Any:
    """Run one compute shader on arrays, tensors and buffers, and wait for it if it returns arrays.

    Args:
        source: WGSL with an entry point `main`. Binding i of group 0 is argument i: as `var<storage, read>` it is an input, as
            `var<storage, read_write>` an output, or both. If the source does not declare them, `T` is the data type of the
            first argument, and `T0`, `T1`, ... are those of each argument. Those of 8-bit types are u32.
        arguments: numpy arrays, `MLTensor`s of the context, or `wgpu.GPUBuffer`s with the usage STORAGE, which are bound whole.
            Arrays are copied to the device, and copied back into new arrays if the source writes them. The kernel accesses
            tensors and buffers directly.
        workgroups: the number of workgroups: (x, y, z), (x, y) or x.
        constants: numbers or bools by name, which the source uses as constants. An `override` of the name gets the value.
        context: the context of the run. The default is the context of the tensors, else the device of the buffers, else the
            best device.
        label: a name for messages and debuggers.

    Returns:
        The array that the source writes, or a list if it writes several arrays. None if it writes only tensors and buffers, in
        which case the call does not wait.

    Raises:
        MLTypeError: the source's buffers do not match the arguments, or an argument is invalid.
        OperationError: the shader does not compile, or the device failed to run it.
        InvalidStateError: a tensor or buffer was destroyed, or is mapped.

    Example:
        >>> source = '''
        ... @group(0) @binding(0) var<storage, read> x: array<f32>;
        ... @group(0) @binding(1) var<storage, read_write> y: array<f32>;
        ... @compute @workgroup_size(64) fn main(@builtin(global_invocation_id) id: vec3<u32>) {
        ...     if (id.x < arrayLength(&x)) { y[id.x] = x[id.x] * FACTOR; }
        ... }'''
        >>> wn.run_wgsl(source, np.float32([1, 2]), np.zeros(2, np.float32), workgroups=1, constants={"FACTOR": 1.5})
        array([1.5, 3. ], dtype=float32)
    """
    run = prepared_run("run_wgsl", source, arguments, workgroups, constants, context, label)
    with run.context._guarded("run_wgsl", label=label), run.context._lock:
        pending = run.context._backend.run_kernel(run.source, run.arguments, run.grid)
    return results_of(run, pending)


@dataclass(frozen=True, kw_only=True)
class PreparedRun:
    """A checked run of `run_wgsl`: its name in messages, its context, and the source with its constants."""

    operator: str
    label: str
    context: MLContext
    source: str
    arguments: Sequence[RunArgument]
    grid: Grid


def prepared_run(
    operator: str,
    source: str,
    arguments: Sequence[Any],
    workgroups: Any,
    constants: Mapping[str, Any] | None,
    context: MLContext | None,
    label: str,
) -> PreparedRun:
    """Check the arguments of `run_wgsl`."""
    fail = failing(operator, label)
    context = context or _context_of(arguments)
    text, _ = completed(source, constants, data_types_of(arguments), fail)
    declared = declared_bindings(text, fail)
    if len(declared) != len(arguments):
        raise fail(
            "the shader must declare a storage buffer for every argument",
            got=", ".join(d.name for d in declared) or "none",
            allowed=f"{len(arguments)} buffers",
        )
    accesses: dict[str, Literal["read", "write"]] = {"read": "read", "read_write": "write"}
    given: list[RunArgument] = []
    for i, (argument, found) in enumerate(zip(arguments, declared, strict=True)):
        if isinstance(argument, MLTensor):
            context._check_tensor(argument, operator)
            value: Any = argument._storage
        elif is_gpu_buffer(argument):
            value = argument
        else:
            value = np.ascontiguousarray(as_array(argument, fail, f"argument {i}"))
            check_elements(found.name, found.type, value.dtype, fail)
            tensor_type(value.dtype.name, value.shape, _about(found.name, fail))
        given.append(RunArgument(value, found.name, accesses[found.access]))
    grid = grid_of(workgroups, context.caps, fail)
    return PreparedRun(operator=operator, label=label, context=context, source=text, arguments=given, grid=grid)


def _about(name: str, fail: Fail) -> Fail:
    """Return a function that creates errors about the array of a buffer."""

    def named(rule: str, *, got: str, **parts: Any) -> Exception:
        return fail(rule, got=f"{name}: {got}", **parts)

    return named


def data_types_of(arguments: Iterable[Any]) -> list[str]:
    """Return the data types of arrays and tensors, and "" for buffers and objects that are not yet arrays."""
    return [str(getattr(a, "data_type", getattr(a, "dtype", ""))) for a in arguments]


def results_of(run: PreparedRun, pending: Pending | None) -> Any:
    """Wait for a run and return the result of `run_wgsl`."""
    if pending is None:
        return None
    with run.context._guarded(run.operator, label=run.label):
        results = list(pending.result().values())
    return results[0] if len(results) == 1 else results


def _context_of(arguments: Sequence[Any]) -> MLContext:
    """Return the default context of a kernel's arguments."""
    from .ml import ml

    for argument in arguments:
        if isinstance(argument, MLTensor):
            return argument._context
        if is_gpu_buffer(argument):
            return ml.create_context(argument._device)
    with _lock:
        if not _default or _default[0].lost.done():
            _default[:] = [ml.create_context()]
        return _default[0]
