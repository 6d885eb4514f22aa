"""`wgsl_op`: an application's own kernel as an operator."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast, overload

from ...ops import operator
from ...ops.wgsl_op import OwnKernel
from ..arrays import failing, tensor_type
from ..own_kernels import completed, grid_of
from ._base import OperatorMethods, require_operands

if TYPE_CHECKING:
    from ...core.caps import Caps
    from ..operand import MLOperand
    from ..types import DataTypeLike, Number, ShapeLike


class WgslOperators(OperatorMethods):
    """wgsl_op."""

    @abstractmethod
    def _caps(self) -> Caps:
        """Return the caps of the device."""

    @abstractmethod
    def _compile_own(self, kernel: OwnKernel, inputs: Sequence[MLOperand]) -> None:
        """Compile a kernel immediately, so that its errors are raised at the call that supplies it."""

    @overload
    def wgsl_op(
        self,
        source: str,
        inputs: Sequence[MLOperand],
        *,
        output_shapes: ShapeLike,
        output_types: DataTypeLike,
        workgroups: int | Sequence[int],
        constants: Mapping[str, Number | bool] | None = None,
        reference: Callable[..., Any] | None = None,
        label: str = "",
    ) -> MLOperand: ...
    @overload
    def wgsl_op(
        self,
        source: str,
        inputs: Sequence[MLOperand],
        *,
        output_shapes: Sequence[ShapeLike],
        output_types: list[DataTypeLike] | tuple[DataTypeLike, ...],
        workgroups: int | Sequence[int],
        constants: Mapping[str, Number | bool] | None = None,
        reference: Callable[..., Any] | None = None,
        label: str = "",
    ) -> list[MLOperand]: ...
    def wgsl_op(
        self,
        source: str,
        inputs: Sequence[MLOperand],
        *,
        output_shapes: ShapeLike | Sequence[ShapeLike],
        output_types: DataTypeLike | list[DataTypeLike] | tuple[DataTypeLike, ...],
        workgroups: int | Sequence[int],
        constants: Mapping[str, Number | bool] | None = None,
        reference: Callable[..., Any] | None = None,
        label: str = "",
    ) -> MLOperand | list[MLOperand]:
        """Run the application's own compute shader as an operator of the graph. It is not in the specification.

        The call compiles the shader. The graph plans, dispatches and records it like every other kernel. Elements are packed in
        row-major order, four 8-bit elements to a word. Each binding is the range of the tensor's bytes, rounded up to whole
        words. The contents of an output before the run are undefined, so the kernel must write all of it.

        Args:
            source: WGSL with an entry point `main`. Bindings 0, 1, 2, ... of group 0 are the inputs as `var<storage, read>`,
                then the outputs as `var<storage, read_write>`. If the source does not declare them, `T` is the data type of the
                first input, and `T0`, `T1`, ... are those of each input. Those of 8-bit types are u32.
            inputs: operands of any data types and shapes.
            output_shapes: the output's shape, or a list of the outputs' shapes.
            output_types: the output's data type, or a list of the outputs'. A buffer of floats must have this type. A buffer of
                `i32` or `u32` holds the bits of any type without a conversion: an int64 takes two words.
            workgroups: the number of workgroups: (x, y, z), (x, y) or x.
            constants: numbers or bools by name, which the source uses as constants, also as sizes of arrays and workgroups. An
                `override` of the name gets the value.
            reference: returns the results in numpy, as `reference(*arrays)`, for contexts without a device and for
                `debug.diff`. Results in float64 and int64 become the output's data type.
            label: the operator's name in messages, plans and debuggers.

        Returns:
            An operand, or a list of operands if `output_shapes` is a list of shapes.

        Raises:
            MLTypeError: the source declares other buffers, or an argument is invalid.
            OperationError: the shader does not compile. The message has the line of the source.

        Example:
            >>> source = '''
            ... @group(0) @binding(0) var<storage, read> x: array<f32>;
            ... @group(0) @binding(1) var<storage, read_write> y: array<f32>;
            ... @compute @workgroup_size(SIZE) fn main(@builtin(global_invocation_id) id: vec3<u32>) {
            ...     if (id.x < arrayLength(&x)) { y[id.x] = x[id.x] * x[id.x]; }
            ... }'''
            >>> b.wgsl_op(source, [x], output_shapes=x.shape, output_types="float32", workgroups=1, constants={"SIZE": 64})
            MLOperand(float32[2, 3])
        """
        fail = failing("wgsl_op", label)
        if isinstance(inputs, str) or not isinstance(inputs, Sequence):  # pyright: ignore[reportUnnecessaryIsInstance] - callers need not be typed
            raise fail("inputs must be a list of operands", got=type(inputs).__name__)
        single = not isinstance(output_types, list | tuple)
        if single and isinstance(output_shapes, Sequence) and any(isinstance(size, Sequence) for size in output_shapes):
            raise fail(
                "output_shapes must be one shape where output_types is one data type",
                got=f"output_shapes={output_shapes}, output_types={output_types!r}",
                allowed="one shape and one data type, or a list of each",
            )
        shapes: list[Any] = [output_shapes] if single else list(cast("Sequence[ShapeLike]", output_shapes))
        types: list[Any] = [output_types] if single else list(output_types)
        if len(shapes) != len(types) or not types:
            raise fail("every output must have a shape and a data type", got=f"{len(shapes)} shapes, {len(types)} types")
        buffers, limit = len(inputs) + len(types), self._caps().limit("max-storage-buffers-per-shader-stage")
        if buffers > limit:
            raise fail(
                "inputs and outputs must not be more than a kernel can bind",
                got=f"{len(inputs)} inputs, {len(types)} outputs",
                allowed=f"max-storage-buffers-per-shader-stage {limit}",
            )
        op = operator("wgslOp")
        require_operands(op, inputs, label)
        text, given = completed(source, constants, [operand.data_type for operand in inputs], fail)
        kernel = OwnKernel(
            label=label,
            source=text,
            given=given,
            outputs=tuple(tensor_type(t, s, fail) for t, s in zip(types, shapes, strict=True)),
            workgroups=grid_of(workgroups, self._caps(), fail),
            reference=reference,
        )
        attrs = {"kernel": kernel}
        self._require_own(op, inputs, label)
        # The order is check, compile, add, so that a failed call does not change the graph.
        op.check([operand.type for operand in inputs], attrs, label)
        self._compile_own(kernel, inputs)
        outputs = self._outputs("wgslOp", inputs, attrs, label)
        return outputs[0] if single else outputs

    if TYPE_CHECKING:
        # camelCase names, which `__getattr__` finds at run time.
        wgslOp = wgsl_op
