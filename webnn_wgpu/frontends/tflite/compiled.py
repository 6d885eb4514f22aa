"""`CompiledModel`: LiteRT's name for a model that runs on buffers of its inputs and outputs."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np

from webnn_wgpu import NotSupportedError

from ..common.held import Array
from .accelerators import CpuOptions, Environment, HardwareAccelerator, Options
from .contents import SignatureRecord, TfliteFile
from .details import InterpreterRuntimeError, InterpreterValueError
from .model import entry_of, run_initializers
from .module import CustomLowering, TfliteModule
from .reading import read
from .state import Variables
from .subgraph_run import SubgraphRun
from .tensor_buffer import TensorBuffer

PLACEHOLDER = "<placeholder signature>"
"""The name of the signature of a model without signatures."""


class CompiledModel:
    """A TFLite model on WebNN with the methods of `ai_edge_litert.compiled_model.CompiledModel`.

    `from_file` and `from_buffer` make one. The signatures share the model's variables.

    Args:
        file: the parsed file.
        environment: the contexts.
        accelerators: the kinds of devices that may run the model.
        custom_operators: functions that lower custom operators, by name. See `webnn_wgpu.load`.

    Example:
        >>> from webnn_wgpu.tflite import CompiledModel
        >>> with CompiledModel.from_file(colors) as compiled:
        ...     inputs, outputs = compiled.create_input_buffers(0), compiled.create_output_buffers(0)
        ...     inputs[0].write(np.full((1, 8, 8, 3), (0, 0, 1), np.float32))
        ...     compiled.run_by_index(0, inputs, outputs)
        ...     int(outputs[0].read(3, np.float32).argmax())
        2
    """

    def __init__(
        self,
        file: TfliteFile,
        environment: Environment,
        accelerators: HardwareAccelerator,
        custom_operators: Mapping[str, CustomLowering] | None = None,
    ) -> None:
        self._environment = environment
        self._context = environment.context(accelerators)
        self._module = TfliteModule(file, "host", custom_operators)
        self._variables = Variables(self._context)
        self._entries = _entries_of(file)
        self._runs: dict[int, SubgraphRun] = {}
        self._initialized = False

    @classmethod
    def from_file(
        cls,
        model_path: str | os.PathLike[str],
        hardware_accel: HardwareAccelerator | None = None,
        environment: Environment | None = None,
        options: Options | None = None,
        **more: Any,
    ) -> CompiledModel:
        """Return the model of a file.

        Args:
            model_path: the path.
            hardware_accel: the kinds of devices, `HardwareAccelerator.CPU` by default. Not together with `options`.
            environment: the contexts that models share. A new one by default.
            options: the options of the model.
            more: `custom_operators`, see the class.

        Raises:
            ValueError: both `hardware_accel` and `options`.
            RuntimeError: no such file, or no valid model.
        """
        if not Path(model_path).is_file():
            raise InterpreterRuntimeError(f"Failed to load model from file '{os.fspath(model_path)}'")
        return cls._of(model_path, hardware_accel, environment, options, more)

    @classmethod
    def from_buffer(
        cls,
        model_data: bytes,
        hardware_accel: HardwareAccelerator | None = None,
        environment: Environment | None = None,
        options: Options | None = None,
        **more: Any,
    ) -> CompiledModel:
        """Return the model of a file's bytes. The other arguments and the errors are those of `from_file`.

        Args:
            model_data: the bytes of the file.
            hardware_accel: the kinds of devices, `HardwareAccelerator.CPU` by default. Not together with `options`.
            environment: the contexts that models share. A new one by default.
            options: the options of the model.
            more: `custom_operators`, see the class.
        """
        return cls._of(model_data, hardware_accel, environment, options, more)

    @classmethod
    def _of(
        cls,
        source: str | os.PathLike[str] | bytes,
        hardware_accel: HardwareAccelerator | None,
        environment: Environment | None,
        options: Options | None,
        more: Mapping[str, Any],
    ) -> CompiledModel:
        if options is not None and hardware_accel is not None:
            raise InterpreterValueError("Pass either options or hardware_accel, not both.")
        if options is None:
            options = Options(
                hardware_accelerators=HardwareAccelerator.CPU if hardware_accel is None else hardware_accel,
                cpu_options=CpuOptions(num_threads=1),
            )
        try:
            file = read(source)
        except NotSupportedError as error:
            raise InterpreterRuntimeError(f"Failed to load model: {error}") from error
        return cls(file, environment or Environment(), options.hardware_accelerators, **more)

    @property
    def environment(self) -> Environment:
        """The environment of the model."""
        return self._environment

    # signatures -----------------------------------------------------------------------------------------------------

    def get_signature_list(self) -> dict[str, dict[str, list[str]]]:
        """Return the names of the inputs and outputs of each signature."""
        return {e.key: {"inputs": list(e.inputs), "outputs": list(e.outputs)} for e in self._entries}

    def get_num_signatures(self) -> int:
        """Return the number of signatures, 1 for a model without any."""
        return len(self._entries)

    def get_signature_by_index(self, index: int) -> dict[str, Any]:
        """Return the key of a signature and the names of its inputs and outputs.

        Args:
            index: the number of the signature.

        Raises:
            RuntimeError: no such signature.
        """
        entry = self._entry(index)
        return {"key": entry.key, "inputs": list(entry.inputs), "outputs": list(entry.outputs)}

    def get_signature_index(self, key: str) -> int:
        """Return the number of a signature, -1 if there is none with the key.

        Args:
            key: the key of the signature.
        """
        return next((i for i, e in enumerate(self._entries) if e.key == key), -1)

    def get_input_tensor_details(self, signature_key: str) -> dict[str, Any]:
        """Return name, number, data type and current shape of each input of a signature.

        Args:
            signature_key: the key of the signature.

        Raises:
            RuntimeError: no such signature.
        """
        entry = self._entry_of(signature_key)
        return {name: self._details(entry, index) for name, index in entry.inputs.items()}

    def get_output_tensor_details(self, signature_key: str) -> dict[str, Any]:
        """Return name, number, data type and current shape of each output of a signature.

        Args:
            signature_key: the key of the signature.

        Raises:
            RuntimeError: no such signature.
        """
        entry = self._entry_of(signature_key)
        self._allocated(entry)
        return {name: self._details(entry, index) for name, index in entry.outputs.items()}

    def is_fully_accelerated(self) -> bool:
        """Return whether the device runs all nodes of the signatures that were used, or of the first."""
        if not self._runs:
            self._allocated(self._entries[0])
        places = [p.where for run in self._runs.values() for p in run.nodes().placements()]
        return "host" not in places

    # buffers --------------------------------------------------------------------------------------------------------

    def create_input_buffers(self, signature_index: int) -> list[TensorBuffer]:
        """Return a buffer for each input of a signature, in the order of its names.

        Args:
            signature_index: the number of the signature.
        """
        entry = self._entry(signature_index)
        return [self._buffer(entry, index) for index in entry.inputs.values()]

    def create_output_buffers(self, signature_index: int) -> list[TensorBuffer]:
        """Return a buffer for each output of a signature, in the order of its names.

        Args:
            signature_index: the number of the signature.
        """
        entry = self._entry(signature_index)
        self._allocated(entry)
        return [self._buffer(entry, index) for index in entry.outputs.values()]

    def create_input_buffer_by_name(self, signature_key: str, input_name: str) -> TensorBuffer:
        """Return a buffer for an input.

        Args:
            signature_key: the key of the signature.
            input_name: the name of the input in the signature.

        Raises:
            RuntimeError: no such signature or input.
        """
        entry = self._entry_of(signature_key)
        return self._buffer(entry, _number(entry.inputs, input_name, "Input"))

    def create_output_buffer_by_name(self, signature_key: str, output_name: str) -> TensorBuffer:
        """Return a buffer for an output.

        Args:
            signature_key: the key of the signature.
            output_name: the name of the output in the signature.

        Raises:
            RuntimeError: no such signature or output.
        """
        entry = self._entry_of(signature_key)
        self._allocated(entry)
        return self._buffer(entry, _number(entry.outputs, output_name, "Output"))

    def get_input_buffer_requirements(self, input_index: int, signature_index: int = 0) -> dict[str, Any]:
        """Return the bytes of an input, and the kinds of memory: 1, that of the host.

        Args:
            input_index: the position of the input in the signature.
            signature_index: the number of the signature.
        """
        return _requirements(self._buffer_at(self.create_input_buffers(signature_index), input_index))

    def get_output_buffer_requirements(self, output_index: int, signature_index: int = 0) -> dict[str, Any]:
        """Return the bytes of an output, and the kinds of memory: 1, that of the host.

        Args:
            output_index: the position of the output in the signature.
            signature_index: the number of the signature.
        """
        return _requirements(self._buffer_at(self.create_output_buffers(signature_index), output_index))

    def _buffer_at(self, buffers: Sequence[TensorBuffer], index: int) -> TensorBuffer:
        if not 0 <= index < len(buffers):
            raise InterpreterRuntimeError(f"the index {index} is out of range of {len(buffers)} tensors")
        return buffers[index]

    def _buffer(self, entry: SignatureRecord, index: int) -> TensorBuffer:
        run = self._run(entry)
        dtype = run.tensor(index).dtype
        if dtype is None:
            raise InterpreterRuntimeError(f"tensor {index} has the type {run.tensor(index).type_name}")
        return TensorBuffer(np.zeros(run.shape(index), dtype))

    # running --------------------------------------------------------------------------------------------------------

    def resize_input_tensor(self, input_index: int, dims: Sequence[int], signature_index: int = 0, strict: bool = True) -> None:
        """Give an input of a signature another shape.

        Args:
            input_index: the position of the input in the signature.
            dims: the new sizes.
            signature_index: the number of the signature.
            strict: whether only sizes that the model leaves open may change.

        Raises:
            RuntimeError: no such input, or a size that must not change.
        """
        entry = self._entry(signature_index)
        numbers = list(entry.inputs.values())
        if not 0 <= input_index < len(numbers):
            raise InterpreterRuntimeError(f"the input index {input_index} is out of range of {len(numbers)} inputs")
        self._resize(entry, numbers[input_index], dims, strict)

    def resize_input_tensor_by_name(
        self, signature_key: str, input_name: str, dims: Sequence[int], strict: bool = True
    ) -> None:
        """Give an input another shape, by the names of signature and input.

        Args:
            signature_key: the key of the signature.
            input_name: the name of the input in the signature.
            dims: the new sizes.
            strict: whether only sizes that the model leaves open may change.

        Raises:
            ValueError: no such signature or input.
            RuntimeError: a size that must not change.
        """
        index = self.get_signature_index(signature_key)
        if index < 0:
            raise InterpreterValueError(f"Unknown signature: {signature_key}")
        entry = self._entries[index]
        if input_name not in entry.inputs:
            raise InterpreterValueError(f"Unknown input '{input_name}' for signature '{signature_key}'")
        self._resize(entry, entry.inputs[input_name], dims, strict)

    def _resize(self, entry: SignatureRecord, index: int, dims: Sequence[int], strict: bool) -> None:
        run = self._run(entry)
        shape = run.shape(index)
        if strict and (record := run.tensor(index)).signature is None and tuple(dims) != shape:
            raise InterpreterRuntimeError(f"tensor {record.index} has the fixed shape {list(shape)}; got {list(dims)}")
        run.resize(index, dims, strict)

    def run_by_index(
        self, signature_index: int, input_buffers: Sequence[TensorBuffer], output_buffers: Sequence[TensorBuffer]
    ) -> None:
        """Run a signature on buffers in the order of its inputs and outputs.

        Args:
            signature_index: the number of the signature.
            input_buffers: the elements of the inputs. A buffer of another shape resizes an input that leaves its sizes open.
            output_buffers: the memory of the outputs, at least as many bytes as the outputs have.

        Raises:
            RuntimeError: no such signature, a wrong number of buffers, a buffer that does not fit, or a run that fails.
        """
        entry = self._entry(signature_index)
        for kind, names, given in (("input", entry.inputs, input_buffers), ("output", entry.outputs, output_buffers)):
            if len(given) != len(names):
                raise InterpreterRuntimeError(f"the signature has {len(names)} {kind}s; got {len(given)} buffers")
        self._start(
            entry, dict(zip(entry.inputs, input_buffers, strict=True)), dict(zip(entry.outputs, output_buffers, strict=True))
        )

    def run_by_name(
        self, signature_key: str, input_map: Mapping[str, TensorBuffer], output_map: Mapping[str, TensorBuffer]
    ) -> None:
        """Run a signature on buffers by the names of its inputs and outputs.

        Args:
            signature_key: the key of the signature.
            input_map: the elements of each input by its name, as for `run_by_index`.
            output_map: the memory of each output by its name, as for `run_by_index`.

        Raises:
            RuntimeError: no such signature, a missing or unknown name, a buffer that does not fit, or a run that fails.
        """
        entry = self._entry_of(signature_key)
        for kind, names, given in (("input", entry.inputs, input_map), ("output", entry.outputs, output_map)):
            if missing := [name for name in names if name not in given]:
                raise InterpreterRuntimeError(f"The given map is missing some {kind} TensorBuffers: {', '.join(missing)}")
            for name in given:
                _number(names, name, kind.capitalize())
        self._start(entry, input_map, output_map)

    def _start(self, entry: SignatureRecord, inputs: Mapping[str, TensorBuffer], outputs: Mapping[str, TensorBuffer]) -> None:
        run = self._run(entry)
        for name, index in entry.inputs.items():
            if inputs[name].array.shape != run.shape(index):
                self._resize(entry, index, inputs[name].array.shape, strict=True)
        self._allocated(entry)
        try:
            for name, index in entry.inputs.items():
                run.set(index, inputs[name].array)
        except InterpreterValueError as error:
            raise InterpreterRuntimeError(str(error)) from error
        run.invoke()
        for name, index in entry.outputs.items():
            result: Array = np.ascontiguousarray(run.get(index))
            if result.dtype != outputs[name].array.dtype:
                raise InterpreterRuntimeError(
                    f"output '{name}' is {result.dtype.name}; got a buffer of {outputs[name].array.dtype.name}"
                )
            outputs[name].write(result)

    def close(self) -> None:
        """Free the graphs and the variables."""
        for run in self._runs.values():
            run.destroy()
        self._runs.clear()
        self._variables.reset()

    def __enter__(self) -> CompiledModel:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    # entries --------------------------------------------------------------------------------------------------------

    def _entry(self, index: int) -> SignatureRecord:
        if not 0 <= index < len(self._entries):
            raise InterpreterRuntimeError(f"the signature index {index} is out of range of {len(self._entries)} signatures")
        return self._entries[index]

    def _entry_of(self, key: str) -> SignatureRecord:
        index = self.get_signature_index(key)
        if index < 0:
            raise InterpreterRuntimeError(f"Signature not found: {key}")
        return self._entries[index]

    def _run(self, entry: SignatureRecord) -> SubgraphRun:
        if entry.subgraph not in self._runs:
            self._runs[entry.subgraph] = SubgraphRun(self._module, self._context, self._variables, entry.subgraph, False)
        return self._runs[entry.subgraph]

    def _allocated(self, entry: SignatureRecord) -> None:
        """Compile a signature for the current shapes of its inputs."""
        run = self._run(entry)

        def initialize() -> None:
            if not self._initialized:
                self._initialized = True
                run_initializers(self._module, self._context, self._variables, run.nodes().nodes)

        run.allocate(initialize)

    def _details(self, entry: SignatureRecord, index: int) -> dict[str, Any]:
        run = self._run(entry)
        record = run.tensor(index)
        name = record.type_name if record.dtype is None else record.dtype.name
        return {"name": record.name, "index": index, "dtype": name, "shape": list(run.shape(index))}


def _entries_of(file: TfliteFile) -> tuple[SignatureRecord, ...]:
    """Return the signatures of a file, or one of the main subgraph."""
    if file.signatures:
        return tuple(file.signatures)
    main = entry_of(file, None)
    return (SignatureRecord(key=PLACEHOLDER, subgraph=main.subgraph, inputs=main.inputs, outputs=main.outputs),)


def _number(names: Mapping[str, int], name: str, kind: str) -> int:
    if name not in names:
        raise InterpreterRuntimeError(f"{kind} tensor not found: {name}")
    return names[name]


def _requirements(buffer: TensorBuffer) -> dict[str, Any]:
    return {"buffer_size": buffer.array.nbytes, "supported_types": [1]}
