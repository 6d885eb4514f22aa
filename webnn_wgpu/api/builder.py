"""`MLGraphBuilder`: describes a graph, then compiles it."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal, overload

from ..core.call_site import CallSite, call_site
from ..core.errors import InvalidStateError, MLTensorStateError, MLTypeError
from ..core.names import is_unicode
from ..ir.graph import Array, Graph, Node, Origin, Value
from ..ir.types import TensorType
from ..ops import operator
from ..passes import PASSES
from .aliases import check_aliases
from .arrays import descriptor_or_shape, failing
from .constants import constant_of
from .gradients import GradientMethods
from .graph import MLGraph
from .operand import MLOperand
from .operators import Operators
from .operators.wgsl import WgslOperators
from .own_gradients import OwnGradient, OwnGradientMethods
from .progress import Progress
from .promise import MLPromise
from .tensor import MLTensor
from .tuning import TuningSource, sources_of

if TYPE_CHECKING:
    from ..core.caps import Caps
    from ..ops import Signature
    from ..ops.wgsl_op import OwnKernel
    from ..passes import PassReport
    from ..plan import ExecutionPlan
    from .context import MLContext
    from .types import (
        ConstantDataType,
        ConstantDataTypeLike,
        DataTypeLike,
        MLConstantDescriptor,
        MLOperandDescriptor,
        Number,
        ShapeLike,
        TensorData,
    )

PROFILES = ("2026", "2024")

_INNER = 3
"""Calls from where a node is made up to the method of an operator."""


class MLGraphBuilder(GradientMethods, OwnGradientMethods, WgslOperators, Operators):
    """A graph under construction: methods add operators, and `build` compiles them.

    Each call checks its operands and infers the shapes and data types of its results. A builder builds once. With
    `profile="2024"` it may build any number of times with different outputs, and only `build` compares the names of inputs.

    Args:
        context: the context that the graph will run on.
        profile: "2026", or "2024" for the rules of the April 2024 text.

    Attributes:
        passes: the effect of each optimization pass on the graph that `plan` planned last.

    Raises:
        InvalidStateError: the context is lost.
        MLTypeError: not a context, or an unknown profile.

    Example:
        >>> builder = wn.MLGraphBuilder(context)
        >>> a = builder.input("a", {"dataType": "float32", "shape": [2]})
        >>> half = builder.constant("float32", 0.5)
        >>> graph = builder.build({"y": builder.mul(a, half)})
        >>> print(context.compute(graph, {"a": [2, 4]})["y"])
        [1. 2.]

    Spec: https://www.w3.org/TR/webnn/#api-mlgraphbuilder
    """

    def __init__(self, context: MLContext, profile: Literal["2026", "2024"] = "2026") -> None:
        from .context import MLContext

        fail = failing("MLGraphBuilder")
        if not isinstance(context, MLContext):  # pyright: ignore[reportUnnecessaryIsInstance] - callers need not be typed
            raise fail("context must be an MLContext", got=type(context).__name__)
        if profile not in PROFILES:
            raise fail("Invalid profile", got=repr(profile), allowed=", ".join(PROFILES))
        context._check_alive("MLGraphBuilder")
        self._context, self._profile = context, profile
        self._built = False
        self.passes: tuple[PassReport, ...] = ()
        self._values: dict[int, Value] = {}
        self._inputs: list[tuple[str, int]] = []
        self._constants: dict[int, Array] = {}
        self._constant_tensors: dict[int, MLTensor] = {}
        self._nodes: list[Node] = []
        self._own_gradients: dict[int, OwnGradient | None] = {}
        self._block, self._blocks = 0, 0
        self._place: CallSite | None = None

    # operands -----------------------------------------------------------------------------------------------------

    @overload
    def input(self, name: str, descriptor: MLOperandDescriptor) -> MLOperand: ...
    @overload
    def input(self, name: str, descriptor: ShapeLike, data_type: DataTypeLike) -> MLOperand: ...
    @overload
    def input(self, name: str, descriptor: ShapeLike, *, dtype: DataTypeLike) -> MLOperand: ...
    @overload
    def input(
        self, name: str, *, shape: ShapeLike, data_type: DataTypeLike | None = None, dtype: DataTypeLike | None = None
    ) -> MLOperand: ...
    def input(
        self,
        name: str,
        descriptor: MLOperandDescriptor | ShapeLike | None = None,
        data_type: DataTypeLike | None = None,
        *,
        shape: ShapeLike | None = None,
        dtype: DataTypeLike | None = None,
    ) -> MLOperand:
        """Declare an input of the graph.

        Args:
            name: the name of the input, not empty and unique within the builder.
            descriptor: a mapping with `dataType` and `shape`, or the shape with `data_type` as third argument.
            data_type: the data type if `descriptor` is a shape.
            shape: the shape, by name, instead of `descriptor`.
            dtype: another name of `data_type`.

        Returns:
            An operand with the declared data type and shape.

        Raises:
            InvalidStateError: the builder has built, or its context is lost.
            MLTypeError: an empty or repeated name, or a bad descriptor.

        Example:
            >>> b.input("photo", {"dataType": "float32", "shape": [1, 3, 8, 8]}).shape
            (1, 3, 8, 8)

        Spec: https://www.w3.org/TR/webnn/#dom-mlgraphbuilder-input
        """
        self._check_can_build("input")
        fail = failing("input")
        if not isinstance(name, str):  # pyright: ignore[reportUnnecessaryIsInstance] - callers need not be typed
            raise fail("name must be a string", got=repr(name))
        if not name:
            raise fail("name must not be empty", got=repr(name))
        if not is_unicode(name):
            raise fail("name must be a string of Unicode characters", got=repr(name))
        if self._profile == "2026" and any(name == other for other, _ in self._inputs):
            raise fail("name must be unique among the inputs of a builder", got=repr(name))
        required = self._profile == "2026"
        wanted, _ = descriptor_or_shape(descriptor, data_type, shape, dtype, fail, shape_required=required)
        operand = self._new_operand(wanted, name)
        self._inputs.append((name, operand.value))
        return operand

    @overload
    def constant(self, descriptor: MLConstantDescriptor, data: TensorData) -> MLOperand: ...
    @overload
    def constant(self, type: ConstantDataType, value: Number) -> MLOperand: ...
    @overload
    def constant(self, tensor: MLTensor, /) -> MLOperand: ...
    @overload
    def constant(self, value: Number, data_type: ConstantDataTypeLike = "float32") -> MLOperand: ...
    @overload
    def constant(
        self, value: TensorData, shape: ShapeLike | None = None, data_type: ConstantDataTypeLike | None = None
    ) -> MLOperand: ...
    @overload
    def constant(
        self, value: TensorData, shape: ShapeLike | None = None, *, dtype: ConstantDataTypeLike | None = None
    ) -> MLOperand: ...
    @overload
    def constant(
        self, start: Number, end: Number, step: Number, data_type: ConstantDataTypeLike = "float32", /
    ) -> MLOperand: ...
    def constant(self, *args: Any, **kwargs: Any) -> MLOperand:
        """Make a constant operand, in any of the specification's forms.

        Forms:
            constant(descriptor, data): a tensor. The builder copies `data` unless it is a read-only array.
            constant(data_type, value): a scalar. The value is rounded, and saturated, to the type.
            constant(value, data_type="float32"): the same scalar, in the argument order of the 2024 text.
            constant(tensor): an `MLTensor` of `MLContext.create_constant_tensor`.
            constant(array, shape=None, dtype=None): a numpy array, with its own type unless `dtype` names another, or a list
                of numbers. A list of integers alone is int64, any other list is float32.
            constant(start, end, step, data_type): the numbers start, start + step, ... below end.

        Constants may also be int4 or uint4, for `dequantize_linear`. Their data is an array of `ml_dtypes.int4` or
        `ml_dtypes.uint4`, or bytes (`bytes` or a uint8 array) of two elements each, the first in the low half.

        Returns:
            An operand with the constant's data type and shape.

        Raises:
            InvalidStateError: the builder has built, or its context is lost.
            MLTypeError: data of another type or size, or arguments that fit no form.

        Example:
            >>> b.constant("float32", 2).shape
            ()
            >>> b.constant({"dataType": "int32", "shape": [2]}, np.int32([1, 2])).data_type
            'int32'
            >>> b.constant(0, 3, 1, "float32").shape
            (3,)

        Spec: https://www.w3.org/TR/webnn/#dom-mlgraphbuilder-constant
        """
        if len(args) == 1 and isinstance(args[0], MLTensor) and not kwargs:
            return self._constant_tensor(args[0])
        self._check_can_build("constant")
        wanted, array = constant_of(args, kwargs, shape_required=self._profile == "2026")
        return self._add_constant(wanted, array)

    def _add_constant(self, wanted: TensorType, array: Array) -> MLOperand:
        operand = self._new_operand(wanted)
        self._constants[operand.value] = array
        return operand

    def _constant_tensor(self, tensor: MLTensor) -> MLOperand:
        if tensor._context is not self._context:
            raise MLTypeError("the tensor belongs to another context", operator="constant", got=repr(tensor))
        if tensor.destroyed:
            raise tensor._destruction("constant")
        if tensor._constant_data is None:
            raise MLTypeError(
                "only a tensor made by create_constant_tensor can be a constant", operator="constant", got=repr(tensor)
            )
        self._check_can_build("constant")
        operand = self._new_operand(tensor._type)
        self._constants[operand.value] = tensor._constant_data
        self._constant_tensors[operand.value] = tensor
        return operand

    def _new_operand(self, wanted: TensorType, name: str | None = None, origins: tuple[Origin, ...] = ()) -> MLOperand:
        value = len(self._values)
        self._values[value] = Value(value, wanted, origins)
        return MLOperand(self, value, wanted, name)

    # operators ----------------------------------------------------------------------------------------------------

    def _require_own(self, op: Signature, operands: Sequence[MLOperand | None], label: str) -> None:
        self._check_can_build(op.python_name, label)
        for operand in operands:
            if operand is not None and operand.builder is not self:
                raise MLTypeError(
                    "every operand must belong to this builder", operator=op.python_name, label=label, got=repr(operand)
                )

    def _operator(
        self, name: str, operands: Sequence[MLOperand | None], attrs: Mapping[str, Any], label: str
    ) -> list[MLOperand]:
        op = operator(name)
        self._require_own(op, operands, label)
        types, canonical = op.check([None if o is None else o.type for o in operands], attrs, label)
        number = len(self._nodes)
        origins = (Origin(number, label, self._place or call_site(_INNER)),)
        outputs = [self._new_operand(t, origins=origins) for t in types]
        self._nodes.append(
            Node(
                id=number,
                op=name,
                inputs=tuple(None if o is None else o.value for o in operands),
                outputs=tuple(o.value for o in outputs),
                attrs=MappingProxyType(canonical),
                label=label,
                origins=origins,
                block=self._block,
            )
        )
        return outputs

    def _caps(self) -> Caps:
        return self._context.caps

    def _compile_own(self, kernel: OwnKernel, inputs: Sequence[MLOperand]) -> None:
        with self._context._guarded("wgsl_op", label=kernel.label):
            self._context._backend.compile_kernel(kernel.spec([operand.type for operand in inputs]))

    def _check_can_build(self, operator: str, label: str = "") -> None:
        if self._built:
            raise InvalidStateError(
                "the builder has built its graph", operator=operator, label=label, hint="Create a new MLGraphBuilder"
            )
        self._context._check_alive(operator, label)

    # build --------------------------------------------------------------------------------------------------------

    def build(
        self,
        outputs: Mapping[str, MLOperand],
        *,
        aliases: Mapping[str, str] | None = None,
        progress: Progress | None = None,
        disabled_passes: Collection[str] = (),
        wide_float16: bool = False,
        tuning: TuningSource = None,
    ) -> MLGraph:
        """Compile the operators that `outputs` depend on.

        Args:
            outputs: name -> operand. An operand may have several names.
            aliases: name of an output -> name of the input of the same type whose memory the output shares. All operators
                read the elements that the input had before the run. `ext.cache_update` and element-wise operators write
                there directly if they are the last consumers of the input. Other outputs are copied there at the end.
                `dispatch` takes one tensor for both.
            progress: a function that the build calls as `progress(done, total, what)`. During compilation the numbers count
                kernels, and `what` names the next kernel. During the upload of weights they count bytes.
            disabled_passes: names of optimization passes to leave out (`webnn_wgpu.passes.PASSES` lists them).
            wide_float16: whether float16 values between operators are kept as float32. Inputs, outputs and weights stay
                float16. Only values that become whole numbers are rounded: those of `roundEven`, `floor`, `ceil`,
                `quantizeLinear` and casts to integers. Values take twice the memory. It has no effect on a graph with
                `aliases`.
            tuning: a result of `MLGraph.tune` on this device, or its file. It takes precedence over the measurements of the
                context, the user and the package. False uses no measurements at all, so the heuristics choose.

        Returns:
            The compiled graph. All its memory is allocated and all its kernels are compiled.

        Raises:
            InvalidStateError: the builder has built, or its context is lost.
            MLTypeError: no outputs, an empty name, an operand of another builder, an output that is an input or constant
                (put `identity` behind it), or an alias that cannot be kept.
            OperationError: the device cannot run a kernel variant that the environment forces.
            OutOfMemoryError: a tensor is larger than the device can hold.

        Example:
            >>> graph = b.build({"y": b.sigmoid(x)})
            >>> graph
            MLGraph(x: float32[2, 3] -> y: float32[2, 3])

        Spec: https://www.w3.org/TR/webnn/#dom-mlgraphbuilder-build
        """
        sources = sources_of(tuning, "build")
        graph = self._take_graph(outputs, aliases, disabled_passes, wide_float16)
        return self._context._compile(graph, progress, disabled_passes, "build", sources)

    def plan(
        self,
        outputs: Mapping[str, MLOperand],
        *,
        aliases: Mapping[str, str] | None = None,
        disabled_passes: Collection[str] = (),
        wide_float16: bool = False,
        tuning: TuningSource = None,
    ) -> ExecutionPlan | None:
        """Return the plan that `build` would execute for the same outputs, without allocations on the device.

        Like `build`, it ends the construction of the graph.

        Args:
            outputs: name -> operand, as for `build`.
            aliases: as for `build`.
            disabled_passes: names of optimization passes to leave out.
            wide_float16: as for `build`.
            tuning: as for `build`.

        Returns:
            The plan with its kernels, buffers and their sizes. None on the numpy reference. `passes` has the effect of each
            pass.

        Raises:
            InvalidStateError, MLTypeError, OperationError, OutOfMemoryError: as `build` does.

        Example:
            >>> print(b.plan({"y": b.matmul(x, b.transpose(y))}).summary())
            1 slot, 0.0 MiB (unshared 0.0 MiB), 2 dispatches, 1 pass
        """
        sources = sources_of(tuning, "plan")
        graph = self._take_graph(outputs, aliases, disabled_passes, wide_float16)
        with self._context._guarded("plan"):
            found, self.passes = self._context._backend.plan(graph, disabled_passes, sources)
        return found

    def build_async(
        self,
        outputs: Mapping[str, MLOperand],
        *,
        aliases: Mapping[str, str] | None = None,
        progress: Progress | None = None,
        disabled_passes: Collection[str] = (),
        wide_float16: bool = False,
        tuning: TuningSource = None,
    ) -> MLPromise[MLGraph]:
        """Compile in the background and return a promise of the graph.

        The builder counts as built at once, and refuses further calls.

        Args:
            outputs: name -> operand, as for `build`.
            aliases: as for `build`.
            progress: as for `build`. The compiling thread calls it.
            disabled_passes: names of optimization passes to leave out.
            wide_float16: as for `build`.
            tuning: as for `build`.

        Returns:
            A promise that settles with the compiled graph.

        Raises:
            InvalidStateError, MLTypeError, OperationError, OutOfMemoryError: as `build` does, from the promise.

        Example:
            >>> promise = b.build_async({"y": b.sigmoid(x)})
            >>> promise.result()
            MLGraph(x: float32[2, 3] -> y: float32[2, 3])

        Spec: https://www.w3.org/TR/webnn/#dom-mlgraphbuilder-build
        """

        def start() -> MLPromise[MLGraph]:
            sources = sources_of(tuning, "build")
            graph = self._take_graph(outputs, aliases, disabled_passes, wide_float16)
            return MLPromise[MLGraph].in_background(
                lambda: self._context._compile(graph, progress, disabled_passes, "build", sources)
            )

        return MLPromise[MLGraph].attempt(start)

    def _take_graph(
        self,
        outputs: Mapping[str, MLOperand],
        aliases: Mapping[str, str] | None,
        disabled_passes: Collection[str],
        wide_float16: bool,
    ) -> Graph:
        """Return the graph of the nodes that `outputs` depend on, and mark the builder as built."""
        self._check_can_build("build")
        fail = failing("build")
        if not isinstance(outputs, Mapping) or not outputs:  # pyright: ignore[reportUnnecessaryIsInstance] - callers need not be typed
            raise fail("outputs must be a mapping with at least one output", got=repr(outputs))
        ends = {value for _, value in self._inputs} | set(self._constants)
        for name, operand in outputs.items():
            if not isinstance(name, str) or not name:  # pyright: ignore[reportUnnecessaryIsInstance] - callers need not be typed
                raise fail("an output's name must be a string that is not empty", got=repr(name))
            if not is_unicode(name):
                raise fail("an output's name must be a string of Unicode characters", got=repr(name))
            if not isinstance(operand, MLOperand):  # pyright: ignore[reportUnnecessaryIsInstance] - callers need not be typed
                raise fail(f"output '{name}' must be an operand", got=type(operand).__name__)
            if operand.builder is not self:
                raise fail(f"output '{name}' must belong to this builder", got=repr(operand))
            if operand.value in ends:
                raise fail(
                    f"output '{name}' must be the result of an operator",
                    got=repr(operand),
                    hint="Put identity() behind an input or constant",
                )
        needed = {operand.value for operand in outputs.values()}
        nodes: list[Node] = []
        for node in reversed(self._nodes):
            if needed.intersection(node.outputs):
                needed.update(node.operands)
                nodes.append(node)
        inputs: dict[str, int] = {}
        for name, value in self._inputs:
            if value in needed:
                if name in inputs:
                    raise fail("two inputs that the outputs depend on share a name", got=repr(name))
                inputs[name] = value
        unknown = set(disabled_passes).difference(p.name for p in PASSES)
        if unknown:
            raise fail("disabled_passes must name passes", got=repr(min(unknown)), allowed=", ".join(p.name for p in PASSES))
        for value, tensor in self._constant_tensors.items():
            if value in needed and tensor.destroyed:
                raise MLTensorStateError("a constant tensor was destroyed", operator="build", got=repr(tensor))
        values = {name: operand.value for name, operand in outputs.items()}
        check_aliases(aliases or {}, values, inputs, lambda value: self._values[value].type, fail)
        self._built = self._profile == "2026"
        needed.update(o for node in nodes for o in node.outputs)
        return Graph(
            values={v: self._values[v] for v in sorted(needed)},
            inputs=inputs,
            constants={v: a for v, a in self._constants.items() if v in needed},
            nodes=tuple(reversed(nodes)),
            outputs=values,
            aliases=MappingProxyType(dict(aliases or {})),
            wide=wide_float16,
        )

    def __repr__(self) -> str:
        state = "built" if self._built else f"{len(self._nodes)} operators"
        return f"MLGraphBuilder({self._context.description}, {state})"

    if TYPE_CHECKING:
        # camelCase names, which `__getattr__` finds at run time.
        buildAsync = build_async
