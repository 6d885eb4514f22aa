"""The C structures of TFLite's runtime for delegates, for 64-bit processes, and typed access to them.

Pointers are plain addresses. A structure is read in place at its address, so it is valid only during a call of the runtime.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import Any

OK, ERROR = 0, 1
"""The values of TfLiteStatus."""
MEMORY_CONSTANT, MEMORY_DYNAMIC = 1, 4
"""The allocation types of constants in the file and of tensors that are allocated at run time."""
AFFINE, BLOCKWISE = 1, 2
"""The kinds of quantization."""
ALLOW_DYNAMIC_TENSORS = 1
"""The flag of delegates whose nodes may have tensors of sizes that only a run knows."""
CODE_DELEGATE = 51
"""The operator code of partitions."""

_INT, _SIZE, _PTR, _BOOL, _FLOAT = ctypes.c_int32, ctypes.c_size_t, ctypes.c_void_p, ctypes.c_bool, ctypes.c_float


class TfliteDelegateStruct(ctypes.Structure):
    """TfLiteDelegate."""

    _fields_ = (
        ("data", _PTR),
        ("prepare", _PTR),
        ("copy_from_buffer", _PTR),
        ("copy_to_buffer", _PTR),
        ("free_buffer", _PTR),
        ("flags", ctypes.c_int64),
        ("builder", _PTR),
    )


class TfliteContextStruct(ctypes.Structure):
    """TfLiteContext, as far as delegates read it."""

    _fields_ = (
        ("tensors_size", _SIZE),
        ("get_execution_plan", _PTR),
        ("tensors", _PTR),
        ("implementation", _PTR),
        ("resize_tensor", _PTR),
        ("report_error", _PTR),
        ("add_tensors", _PTR),
        ("get_node_and_registration", _PTR),
        ("replace_node_subsets", _PTR),
        ("recommended_num_threads", _INT),
        ("get_external_context", _PTR),
        ("set_external_context", _PTR),
        ("allow_float16", _BOOL),
        ("profiler", _PTR),
        ("allocate_persistent_buffer", _PTR),
        ("allocate_buffer_for_eval", _PTR),
        ("request_scratch_buffer", _PTR),
        ("get_scratch_buffer", _PTR),
        ("resize_tensor_explicit", _PTR),
        ("preview_delegate_partitioning", _PTR),
    )


class TfliteTensorStruct(ctypes.Structure):
    """TfLiteTensor."""

    _fields_ = (
        ("type", _INT),
        ("data", _PTR),
        ("dims", _PTR),
        ("scale", _FLOAT),
        ("zero_point", _INT),
        ("allocation_type", _INT),
        ("bytes", _SIZE),
        ("allocation", _PTR),
        ("name", _PTR),
        ("delegate", _PTR),
        ("buffer_handle", _INT),
        ("data_is_stale", _BOOL),
        ("is_variable", _BOOL),
        ("quantization_type", _INT),
        ("quantization_params", _PTR),
        ("sparsity", _PTR),
        ("dims_signature", _PTR),
    )


class TfliteAffineStruct(ctypes.Structure):
    """TfLiteAffineQuantization."""

    _fields_ = (("scale", _PTR), ("zero_point", _PTR), ("quantized_dimension", _INT))


class TfliteNodeStruct(ctypes.Structure):
    """TfLiteNode."""

    _fields_ = (
        ("inputs", _PTR),
        ("outputs", _PTR),
        ("intermediates", _PTR),
        ("temporaries", _PTR),
        ("user_data", _PTR),
        ("builtin_data", _PTR),
        ("custom_initial_data", _PTR),
        ("custom_initial_data_size", _INT),
        ("delegate", _PTR),
        ("might_have_side_effect", _BOOL),
    )


class TfliteRegistrationStruct(ctypes.Structure):
    """TfLiteRegistration."""

    _fields_ = (
        ("init", _PTR),
        ("free", _PTR),
        ("prepare", _PTR),
        ("invoke", _PTR),
        ("profiling_string", _PTR),
        ("builtin_code", _INT),
        ("custom_name", _PTR),
        ("version", _INT),
        ("registration_external", _PTR),
        ("async_kernel", _PTR),
        ("inplace_operator", ctypes.c_uint64),
    )


class TfliteDelegateParamsStruct(ctypes.Structure):
    """TfLiteDelegateParams."""

    _fields_ = (("delegate", _PTR), ("nodes_to_replace", _PTR), ("input_tensors", _PTR), ("output_tensors", _PTR))


Prepare = ctypes.CFUNCTYPE(_INT, _PTR, _PTR)
"""The type of a delegate's Prepare, and of a node's prepare and invoke."""
Init = ctypes.CFUNCTYPE(_PTR, _PTR, _PTR, _SIZE)
"""The type of a node's init."""
Free = ctypes.CFUNCTYPE(None, _PTR, _PTR)
"""The type of a node's free."""
_GetPlan = ctypes.CFUNCTYPE(_INT, _PTR, ctypes.POINTER(_PTR))
_GetNode = ctypes.CFUNCTYPE(_INT, _PTR, _INT, ctypes.POINTER(_PTR), ctypes.POINTER(_PTR))
_Preview = ctypes.CFUNCTYPE(_INT, _PTR, _PTR, ctypes.POINTER(_PTR), ctypes.POINTER(_INT))
_Replace = ctypes.CFUNCTYPE(_INT, _PTR, TfliteRegistrationStruct, _PTR, _PTR)
_Resize = ctypes.CFUNCTYPE(_INT, _PTR, _PTR, _PTR)
_Report = ctypes.CFUNCTYPE(None, _PTR, ctypes.c_char_p)


class RuntimeCallError(Exception):
    """A function of the runtime that returned an error."""


def ints_at(address: int | None) -> tuple[int, ...]:
    """Return the elements of a TfLiteIntArray, none for a null pointer."""
    if not address:
        return ()
    size = _INT.from_address(address).value
    return tuple((_INT * max(size, 0)).from_address(address + 4))


def floats_at(address: int | None) -> tuple[float, ...]:
    """Return the elements of a TfLiteFloatArray, none for a null pointer."""
    if not address:
        return ()
    size = _INT.from_address(address).value
    return tuple((_FLOAT * max(size, 0)).from_address(address + 4))


def text_at(address: int | None) -> str:
    """Return a C string, "" for a null pointer."""
    return ctypes.string_at(address).decode("utf-8", "replace") if address else ""


def int_array(values: Sequence[int]) -> Any:
    """Return a TfLiteIntArray that Python owns."""
    return (_INT * (len(values) + 1))(len(values), *values)


class RuntimeContext:
    """The functions of a TfLiteContext.

    Args:
        address: its address, which the runtime passes to each callback.
    """

    def __init__(self, address: int) -> None:
        self.address = address
        self._struct: Any = TfliteContextStruct.from_address(address)

    def _require(self, status: int, function: str) -> None:
        if status != OK:
            raise RuntimeCallError(f"{function} of the runtime returned status {status}")

    @property
    def num_tensors(self) -> int:
        """The number of tensors of the subgraph."""
        return int(self._struct.tensors_size)

    def tensor(self, index: int) -> Any:
        """Return a tensor. The runtime may move its tensors between two callbacks."""
        return TfliteTensorStruct.from_address(self._struct.tensors + index * ctypes.sizeof(TfliteTensorStruct))

    def execution_plan(self) -> tuple[int, ...]:
        """Return the numbers of the nodes in the order of execution."""
        plan = _PTR()
        self._require(_GetPlan(self._struct.get_execution_plan)(self.address, ctypes.byref(plan)), "GetExecutionPlan")
        return ints_at(plan.value)

    def node(self, index: int) -> tuple[Any, Any]:
        """Return a node and its registration."""
        node, registration = _PTR(), _PTR()
        function = _GetNode(self._struct.get_node_and_registration)
        status = function(self.address, index, ctypes.byref(node), ctypes.byref(registration))
        self._require(status, "GetNodeAndRegistration")
        if node.value is None or registration.value is None:
            raise RuntimeCallError(f"the runtime has no node {index}")
        return TfliteNodeStruct.from_address(node.value), TfliteRegistrationStruct.from_address(registration.value)

    def preview(self, nodes: Sequence[int]) -> list[Any]:
        """Return the TfLiteDelegateParams of the partitions into which the runtime cuts nodes."""
        array, count = _PTR(), _INT()
        wanted = int_array(nodes)
        function = _Preview(self._struct.preview_delegate_partitioning)
        status = function(self.address, ctypes.addressof(wanted), ctypes.byref(array), ctypes.byref(count))
        self._require(status, "PreviewDelegatePartitioning")
        if array.value is None:
            return []
        size = ctypes.sizeof(TfliteDelegateParamsStruct)
        return [TfliteDelegateParamsStruct.from_address(array.value + i * size) for i in range(count.value)]

    def replace(self, nodes: Sequence[int], registration: TfliteRegistrationStruct, delegate: int) -> None:
        """Let a delegate run nodes. The runtime cuts them into partitions and calls `init` for each."""
        wanted = int_array(nodes)
        status = _Replace(self._struct.replace_node_subsets)(self.address, registration, ctypes.addressof(wanted), delegate)
        self._require(status, "ReplaceNodeSubsetsWithDelegateKernels")

    def resize(self, tensor: Any, shape: Sequence[int]) -> None:
        """Give a tensor a shape. The runtime allocates the memory of dynamic tensors at once."""
        values = int_array(shape)
        # The runtime frees the array with C's `free`.
        address = _allocate(ctypes.sizeof(values))
        ctypes.memmove(address, values, ctypes.sizeof(values))
        self._require(_Resize(self._struct.resize_tensor)(self.address, ctypes.addressof(tensor), address), "ResizeTensor")

    def report(self, message: str) -> None:
        """Give the runtime the text of an error."""
        # The function formats its argument as printf does.
        text = message.replace("%", "%%").encode("utf-8", "replace").replace(b"\0", b" ")
        _Report(self._struct.report_error)(self.address, text)


def _allocate(size_bytes: int) -> int:
    """Return the address of memory of C's `malloc`."""
    address: int | None = _MALLOC(size_bytes)
    if not address:
        raise MemoryError
    return address


def _malloc() -> Any:
    windows = getattr(ctypes, "windll", None)
    library = ctypes.CDLL("ucrtbase" if windows is not None else None)
    function = library.malloc
    function.restype, function.argtypes = _PTR, [_SIZE]
    return function


_MALLOC = _malloc()
