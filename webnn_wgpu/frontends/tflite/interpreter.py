"""`Interpreter` and `SignatureRunner`: LiteRT's names for TFLite models on WebNN."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from enum import Enum
from pathlib import Path
from typing import Any

import numpy as np

from webnn_wgpu import MLContext, NotSupportedError, ml

from ..common.held import Array
from .contents import SignatureRecord
from .details import InterpreterValueError, operator_details, tensor_details
from .model import run_initializers
from .module import CustomLowering, TfliteModule
from .reading import read
from .state import Variables
from .subgraph_run import SubgraphRun


class OpResolverType(Enum):
    """Sets of kernels of LiteRT. All are accepted, and the device runs the model.

    Example:
        >>> from webnn_wgpu.tflite import Interpreter, OpResolverType
        >>> interpreter = Interpreter(colors, experimental_op_resolver_type=OpResolverType.BUILTIN_REF)
        >>> interpreter.num_subgraphs()
        1
    """

    AUTO = 0
    BUILTIN = 1
    BUILTIN_REF = 2
    BUILTIN_WITHOUT_DEFAULT_DELEGATES = 3


class Interpreter:
    """A TFLite model that is run tensor by tensor, with the methods of `ai_edge_litert.interpreter.Interpreter`.

    Args:
        model_path: the path of the model.
        model_content: the bytes of the model, instead of a path.
        experimental_delegates: accepted for LiteRT's programs. The model runs on WebNN in any case.
        num_threads: accepted for LiteRT's programs. At least 1, or -1.
        experimental_op_resolver_type: accepted for LiteRT's programs.
        experimental_preserve_all_tensors: whether `get_tensor` returns the values between the operators, those of the run.
        context: where the model runs. The default context by default.
        custom_operators: functions that lower custom operators, by name. See `webnn_wgpu.load`.
        options: further arguments of LiteRT's interpreter, which have no effect.

    Raises:
        ValueError: neither or both of path and content, no such file, no valid model, or a wrong number of threads.

    Example:
        >>> from webnn_wgpu.tflite import Interpreter
        >>> interpreter = Interpreter(colors)
        >>> interpreter.allocate_tensors()
        >>> picture = np.full((1, 8, 8, 3), (0, 0, 1), np.float32)
        >>> interpreter.set_tensor(interpreter.get_input_details()[0]["index"], picture)
        >>> interpreter.invoke()
        >>> int(interpreter.get_tensor(interpreter.get_output_details()[0]["index"]).argmax())
        2
    """

    def __init__(
        self,
        model_path: str | os.PathLike[str] | None = None,
        model_content: bytes | None = None,
        experimental_delegates: Sequence[Any] | None = None,
        num_threads: int | None = None,
        experimental_op_resolver_type: OpResolverType = OpResolverType.AUTO,
        experimental_preserve_all_tensors: bool = False,
        *,
        context: MLContext | None = None,
        custom_operators: Mapping[str, CustomLowering] | None = None,
        **options: Any,
    ) -> None:
        del experimental_delegates, experimental_op_resolver_type, options
        _check_threads(num_threads)
        if model_path is not None and model_content is not None:
            raise InterpreterValueError("Can't both provide `model_path` and `model_content`")
        source = model_path if model_path is not None else model_content
        if source is None:
            raise InterpreterValueError("`model_path` or `model_content` must be specified.")
        if model_path is not None and not Path(model_path).is_file():
            raise InterpreterValueError(f"Could not open '{os.fspath(model_path)}'.")
        try:
            self._file = read(source)
        except NotSupportedError as error:
            raise InterpreterValueError(str(error)) from error
        self._context = context
        self._module = TfliteModule(self._file, "host", custom_operators)
        self._variables: Variables | None = None
        self._preserve = experimental_preserve_all_tensors
        self._runs: dict[int, SubgraphRun] = {}
        self._initialized = False

    # running --------------------------------------------------------------------------------------------------------

    def _run(self, subgraph: int = 0) -> SubgraphRun:
        if subgraph not in self._runs:
            if not 0 <= subgraph < self.num_subgraphs():
                raise InterpreterValueError(f"subgraph_index {subgraph} is out of range of {self.num_subgraphs()}")
            context = self._context = self._context or ml.create_context()
            self._variables = self._variables or Variables(context)
            self._runs[subgraph] = SubgraphRun(self._module, context, self._variables, subgraph, self._preserve)
        return self._runs[subgraph]

    def _initialize(self, run: SubgraphRun) -> None:
        if not self._initialized and self._context is not None and self._variables is not None:
            self._initialized = True
            run_initializers(self._module, self._context, self._variables, run.nodes().nodes)

    def _allocate(self, run: SubgraphRun) -> None:
        run.allocate(lambda: self._initialize(run))

    def allocate_tensors(self) -> None:
        """Compile the model for the shapes of its inputs.

        Raises:
            RuntimeError: an operator that cannot run.
        """
        self._allocate(self._run())

    def invoke(self) -> None:
        """Run the model.

        Raises:
            RuntimeError: the tensors are not allocated, or the run fails.
        """
        self._run().invoke()

    def resize_tensor_input(self, input_index: int, tensor_size: Sequence[int], strict: bool = False) -> None:
        """Give an input another shape. `allocate_tensors` must be called again.

        Args:
            input_index: the number of the tensor.
            tensor_size: the new shape.
            strict: whether only sizes that the model leaves open may change.

        Raises:
            RuntimeError: no such tensor, a negative size, or one that must not change.
        """
        self._run().resize(input_index, tensor_size, strict)

    def set_tensor(self, tensor_index: int, value: Any) -> None:
        """Copy a value to an input.

        Args:
            tensor_index: the number of the tensor.
            value: the elements, in the shape and the data type of the input.

        Raises:
            ValueError: no such input, unallocated tensors, or a value of another type, rank or shape.
        """
        self._run().set(tensor_index, value)

    def get_tensor(self, tensor_index: int, subgraph_index: int = 0) -> Array:
        """Return a copy of a tensor: an input, an output of the last run, a constant or a variable.

        Args:
            tensor_index: the number of the tensor.
            subgraph_index: the number of the subgraph, 0 for the main one.

        Raises:
            ValueError: no such tensor, or one that is not kept.
        """
        return np.array(self._run(subgraph_index).get(tensor_index))[()]

    def tensor(self, tensor_index: int) -> Callable[[], Array]:
        """Return a function that returns a tensor's current array without a copy.

        Args:
            tensor_index: the number of the tensor.
        """
        return lambda: self._run().get(tensor_index)

    def reset_all_variables(self) -> None:
        """Give all variables the elements that they have before the first run."""
        if self._variables is not None:
            self._variables.reset()
            self._initialized = False
            for run in self._runs.values():
                if run.allocated:
                    self._initialize(run)

    # details --------------------------------------------------------------------------------------------------------

    def _details(self, subgraph: int, indices: Sequence[int]) -> list[dict[str, Any]]:
        run = self._run(subgraph)
        return [tensor_details(run.tensor(i), run.shape(i)) for i in indices]

    def get_input_details(self) -> list[dict[str, Any]]:
        """Return the descriptions of the inputs."""
        return self._details(0, self._file.subgraphs[0].inputs)

    def get_output_details(self) -> list[dict[str, Any]]:
        """Return the descriptions of the outputs."""
        return self._details(0, self._file.subgraphs[0].outputs)

    def get_tensor_details(self, subgraph_index: int = 0) -> list[dict[str, Any]]:
        """Return the descriptions of all tensors of a subgraph.

        Args:
            subgraph_index: the number of the subgraph, 0 for the main one.
        """
        run = self._run(subgraph_index)
        return self._details(subgraph_index, range(len(run.record.tensors)))

    def num_subgraphs(self) -> int:
        """Return the number of subgraphs."""
        return len(self._file.subgraphs)

    def _get_ops_details(self) -> list[dict[str, Any]]:
        """Return the descriptions of the operators of the main subgraph."""
        main = self._file.subgraphs[0]
        return [operator_details(main, record) for record in main.operators]

    # signatures -----------------------------------------------------------------------------------------------------

    def get_signature_list(self) -> dict[str, dict[str, list[str]]]:
        """Return the names of the inputs and outputs of each signature."""
        return {s.key: {"inputs": sorted(s.inputs), "outputs": sorted(s.outputs)} for s in self._file.signatures}

    def get_signature_runner(self, signature_key: str | None = None) -> SignatureRunner:
        """Return a callable for a signature. A model with one signature needs no key.

        Args:
            signature_key: the key of the signature. None for that of a model with one.

        Raises:
            ValueError: no such signature, or no key for a model with several.
        """
        found = self._file.signatures
        if signature_key is None:
            if len(found) != 1:
                raise InterpreterValueError(
                    f"SignatureDef signature_key is None and model has {len(found)} Signatures. "
                    "None is only allowed when the model has 1 SignatureDef"
                )
            return SignatureRunner(self, found[0])
        for entry in found:
            if entry.key == signature_key:
                return SignatureRunner(self, entry)
        raise InterpreterValueError(f'Invalid signature_key provided: "{signature_key}".')

    def run_signature(self, entry: SignatureRecord, values: Mapping[str, Any]) -> dict[str, Array]:
        """Run the subgraph of a signature on values by name, and return its outputs by name.

        Args:
            entry: the signature.
            values: the elements of each input by its name.
        """
        run = self._run(entry.subgraph)
        arrays = {entry.inputs[name]: np.asarray(value) for name, value in values.items()}
        for index, array in arrays.items():
            if array.shape != run.shape(index):
                run.resize(index, array.shape, strict=False)
        self._allocate(run)
        for index, array in arrays.items():
            run.set(index, array)
        run.invoke()
        return {name: np.array(run.get(index))[()] for name, index in entry.outputs.items()}

    def signature_details(self, entry: SignatureRecord, tensors: Mapping[str, int]) -> dict[str, dict[str, Any]]:
        """Return the descriptions of a signature's inputs or outputs by name.

        Args:
            entry: the signature.
            tensors: the number of each tensor by its name.
        """
        return {name: self._details(entry.subgraph, [index])[0] for name, index in tensors.items()}


class InterpreterWithCustomOps(Interpreter):
    """An interpreter with LiteRT's argument for registrations of custom operators.

    Args:
        custom_op_registerers: accepted for LiteRT's programs. `custom_operators` lowers operators instead.
        arguments: the arguments of `Interpreter`.

    Example:
        >>> from webnn_wgpu.tflite import InterpreterWithCustomOps
        >>> interpreter = InterpreterWithCustomOps(custom_op_registerers=[], model_path=colors)
        >>> interpreter.get_input_details()[0]["shape"]
        array([1, 8, 8, 3], dtype=int32)
    """

    def __init__(self, custom_op_registerers: Sequence[Any] | None = None, **arguments: Any) -> None:
        del custom_op_registerers
        super().__init__(**arguments)


class Delegate:
    """A delegate of a shared library, which is accepted for LiteRT's programs and never loaded.

    Args:
        library: the name or the path of the library.
        options: the options of the delegate.

    Raises:
        OSError: a path at which no file is.

    Example:
        >>> from webnn_wgpu.tflite import Delegate
        >>> Delegate("libdelegate.so", {"threads": "2"}).library
        'libdelegate.so'
    """

    def __init__(self, library: str, options: Mapping[Any, Any] | None = None) -> None:
        if os.sep in library and not Path(library).is_file():
            raise OSError(f"{library}: cannot open shared object file: No such file or directory")
        self.library, self.options = library, dict(options or {})


def load_delegate(library: str, options: Mapping[Any, Any] | None = None) -> Delegate:
    """Return the delegate of a shared library for `experimental_delegates`. The model runs on WebNN in any case.

    Args:
        library: the name or the path of the library.
        options: the options of the delegate.

    Raises:
        OSError: a path at which no file is.

    Example:
        >>> from webnn_wgpu.tflite import Interpreter, load_delegate
        >>> interpreter = Interpreter(colors, experimental_delegates=[load_delegate("libdelegate.so")])
    """
    return Delegate(library, options)


class SignatureRunner:
    """A signature of an interpreter's model, which is called with its inputs by keyword.

    Args:
        interpreter: the interpreter.
        entry: the signature.

    Example:
        >>> from webnn_wgpu.tflite import Interpreter
        >>> runner = Interpreter(colors).get_signature_runner()
        >>> picture = np.full((1, 8, 8, 3), (0, 0, 1), np.float32)
        >>> {name: scores.shape for name, scores in runner(image=picture).items()}
        {'scores': (1, 3)}
    """

    def __init__(self, interpreter: Interpreter, entry: SignatureRecord) -> None:
        self._interpreter, self._entry = interpreter, entry

    def __call__(self, **values: Any) -> dict[str, Array]:
        """Run the signature.

        Raises:
            ValueError: an unknown or missing input, or a value of another type.
        """
        inputs = self._entry.inputs
        for name in values:
            if name not in inputs:
                raise InterpreterValueError(f"Invalid Input name ({name}) for SignatureDef")
        if len(values) != len(inputs):
            raise InterpreterValueError(
                "Invalid number of inputs provided for running a SignatureDef, "
                f"expected {len(inputs)} vs provided {len(values)}"
            )
        return self._interpreter.run_signature(self._entry, values)

    def get_input_details(self) -> dict[str, dict[str, Any]]:
        """Return the descriptions of the inputs by name."""
        return self._interpreter.signature_details(self._entry, self._entry.inputs)

    def get_output_details(self) -> dict[str, dict[str, Any]]:
        """Return the descriptions of the outputs by name."""
        return self._interpreter.signature_details(self._entry, self._entry.outputs)


def _check_threads(count: object) -> None:
    if count is None:
        return
    if not isinstance(count, int):
        raise InterpreterValueError("type of num_threads should be int")
    if count < 1 and count != -1:
        raise InterpreterValueError("num_threads should >= 1")
