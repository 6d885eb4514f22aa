"""`MLGraph`: a compiled graph, ready to run."""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping
from importlib import import_module
from types import MappingProxyType, TracebackType
from typing import TYPE_CHECKING, Any, Literal

from ..core.call_site import warn
from ..core.caps import Caps
from ..core.errors import NotSupportedError, OperationError
from ..costs import Target
from ..display.graph_pictures import MOST_DRAWN, graph_html, graph_svg
from ..inspection.kernels import Kernel, Kernels, Override, Watched, kernels_of
from ..inspection.profile import GraphProfile
from ..ir.graph import Graph
from ..ir.types import TensorType
from ..kernels.source_map import map_of_source
from ..kernels.tuning import Sources, Tuning
from ..passes import PassReport, run_passes
from ..plan import ExecutionPlan, make_plan
from ..runtime.peak import Peak
from .backend import Executable
from .measuring import profile_graph
from .options import camel_attribute
from .progress import Progress

if TYPE_CHECKING:
    from .context import MLContext
    from .types import TensorData


class MLGraph:
    """A graph that `MLGraphBuilder.build` compiled for one context.

    Attributes:
        inputs: input name -> data type and shape, for the inputs that an output depends on.
        outputs: output name -> data type and shape.
        aliases: output name -> name of the input whose memory the output shares.
        plan: the execution plan: kernels, buffers and dispatches. `print` shows it. None on the numpy reference.
        passes: the effect of each optimization pass.
        source: the source graph, before any pass.

    Example:
        >>> graph = b.build({"y": b.relu(x)})
        >>> print(graph.plan.summary())
        0 slots, 0.0 MiB (unshared 0.0 MiB), 1 dispatch, 1 pass
        >>> graph.destroy()

    Spec: https://www.w3.org/TR/webnn/#api-mlgraph
    """

    def __init__(
        self,
        context: MLContext,
        source: Graph,
        executable: Executable,
        plan: ExecutionPlan | None,
        passes: tuple[PassReport, ...],
        disabled_passes: Collection[str] = (),
        tuning: Sources = (),
    ) -> None:
        self._context, self._installed, self._destroyed = context, executable, False
        self._tuning = tuning
        self._disabled_passes = tuple(disabled_passes)
        self.source, self.plan, self.passes = source, plan, passes
        self._overrides: dict[str, Override] = {}
        self._watched: dict[str, Watched] = {}
        self._kernels: Kernels | None = None
        self.aliases = source.aliases
        self.inputs: Mapping[str, TensorType] = MappingProxyType({n: source.type(v) for n, v in source.inputs.items()})
        self.outputs: Mapping[str, TensorType] = MappingProxyType({n: source.type(v) for n, v in source.outputs.items()})

    @property
    def destroyed(self) -> bool:
        """Whether the graph was destroyed."""
        return self._destroyed

    @property
    def operand_count(self) -> int:
        """Number of operands of the source graph: inputs, constants and results."""
        return len(self.source.values)

    @property
    def operation_count(self) -> int:
        """Number of operators of the source graph."""
        return len(self.source.nodes)

    def get_input_names(self) -> list[str]:
        """Return the names of the inputs."""
        return list(self.inputs)

    def get_output_names(self) -> list[str]:
        """Return the names of the outputs."""
        return list(self.outputs)

    # pywebnn's ------------------------------------------------------------------------------------------------------

    def debug_operand(self, index: int) -> str:
        """Return a line that describes an operand. The method is pywebnn's.

        Args:
            index: the number of the operand. Inputs count first, then constants, then results.

        Example:
            >>> graph = b.build({"y": b.relu(x)})
            >>> graph.debug_operand(0), graph.debug_operand(99)
            ('Operand[0]: name=x, kind=Input, type=float32, shape=[2, 3]', 'Operand[99]: not found')
        """
        source = self.source
        names = {value: name for name, value in (*source.outputs.items(), *source.inputs.items())}
        results = [value for node in source.nodes for value in node.outputs]
        operands = [*source.inputs.values(), *source.constants, *results]
        if not 0 <= index < len(operands):
            return f"Operand[{index}]: not found"
        value = operands[index]
        ends = set(source.outputs.values())
        kind = "Constant" if value in source.constants else "Output" if value in ends else "Intermediate"
        kind = "Input" if value in source.inputs.values() else kind
        type_ = source.type(value)
        return f"Operand[{index}]: name={names.get(value, '')}, kind={kind}, type={type_.data_type}, shape={list(type_.shape)}"

    def count_empty_shapes(self) -> int:
        """Return the number of operands of rank 0."""
        return sum(not value.type.shape for value in self.source.values.values())

    def count_scalar_constants(self) -> int:
        """Return the number of constants of rank 0."""
        return sum(not self.source.type(value).shape for value in self.source.constants)

    def count_unknown_shapes(self) -> int:
        """Return 0: shapes are always known."""
        return 0

    def count_unknown_shapes_excluding_scalar_ops(self) -> int:
        """Return 0: shapes are always known."""
        return 0

    def debug_unknown_shapes(self) -> list[str]:
        """Return an empty list: shapes are always known."""
        return []

    def debug_unknown_shapes_structured(self) -> list[dict[str, Any]]:
        """Return an empty list: shapes are always known."""
        return []

    @property
    def optimized(self) -> Graph:
        """The graph after all passes, which the plan carries out.

        Example:
            >>> graph = b.build({"y": b.relu(b.add(x, y))})
            >>> [node.op for node in graph.source.nodes], [node.op for node in graph.optimized.nodes]
            (['add', 'relu'], ['fused'])
        """
        return (
            run_passes(self.source, self._context._backend.target, self._disabled_passes)[0]
            if self.plan is None
            else self.plan.graph
        )

    def plan_for(self, caps: Caps) -> ExecutionPlan:
        """Return the plan of the graph for other devices, without making anything on a device.

        Args:
            caps: the capabilities of these devices. Measured kernel variants are not used.

        Raises:
            NotSupportedError: the graph was loaded from a folder for browsers, so its operators are unknown.
            OperationError: such a device lacks a feature that a kernel needs.
            OutOfMemoryError: a tensor is larger than such a device can hold or bind.

        Example:
            >>> from webnn_wgpu.core.caps import Caps
            >>> print(b.build({"y": b.softmax(x, 1)}).plan_for(Caps()).summary())
            0 slots, 0.0 MiB (unshared 0.0 MiB), 1 dispatch, 1 pass
        """
        self._check_operators("plan_for")
        target = Target.of(caps)
        with self._context._guarded("plan_for"):
            return make_plan(run_passes(self.source, target, self._disabled_passes)[0], target)

    def _check_operators(self, operator: str) -> None:
        """Raise NotSupportedError for a graph whose operators are unknown."""
        if not self.source.nodes:
            raise NotSupportedError(
                "the operators of the graph must be known",
                operator=operator,
                got="a graph from a folder for browsers, which has kernels alone",
                hint="Use the model that the folder was written from",
            )

    @property
    def kernels(self) -> Kernels:
        """The kernels of a run, by name and in order, with their sources. Empty on the numpy reference.

        Plan and profiles use the same names. The property runs nothing.

        Example:
            >>> graph = b.build({"y": b.relu(b.add(x, y, label="sum"))})
            >>> for name, kernel in graph.kernels.items():
            ...     print(name, kernel.labels, kernel.template, kernel.workgroup_size)
            sum ('sum', 'relu_1') ops/elementwise.wgsl.j2 (64, 1, 1)
            >>> print(graph.kernels["sum"].wgsl.splitlines()[0])
            // op: elementwise  (webnn_wgpu/ops/elementwise.py)
        """
        with self._context._lock:
            if self._kernels is None:
                self._kernels = kernels_of(self.plan, self.source, self._overrides)
            return self._kernels

    @property
    def _executable(self) -> Executable:
        """The compiled program, after changed files of watched overrides have been installed."""
        if self._watched:
            self._reload()
        return self._installed

    def override(self, kernel: str, wgsl: str | os.PathLike[str], *, watch: bool = False) -> Kernel:
        """Replace the source of one kernel in later runs, with the same bindings, uniforms and workgroups.

        Args:
            kernel: the kernel's name, or the label of an operator that one kernel computes.
            wgsl: the path of a file, or WGSL itself, with the entry point `main`. Start from `graph.kernels[name].wgsl`.
                The constants and type names of an application's own kernel (`wgsl_op`) stay defined.
            watch: whether each run first installs the file if it has changed. If the new source does not compile, a warning
                names file, line and column, and the last valid source stays installed.

        Returns:
            The overridden kernel. `kernels` and `profile` mark it as overridden.

        Raises:
            MLTypeError: the name matches no kernel or several, or `watch` is set for a source that is no file.
            OSError: the file cannot be read.
            OperationError: the source does not compile, or has other bindings. The message names file, line and column, and
                the previous source stays installed.
            InvalidStateError: the graph was destroyed, the context lost, or a run in steps has not finished.

        Example:
            >>> graph = b.build({"y": b.neg(x)})
            >>> graph.override("neg_0", graph.kernels["neg_0"].wgsl.replace("-(x0)", "x0 + x0")).overridden
            True
            >>> context.compute(graph, {"x": np.ones((2, 3), np.float32)})["y"][0]
            array([2., 2., 2.], dtype=float32)
            >>> graph.restore()
            >>> context.compute(graph, {"x": np.ones((2, 3), np.float32)})["y"][0]
            array([-1., -1., -1.], dtype=float32)
        """
        self._context._check_graph(self, "override")
        with self._context._lock:
            found = self.kernels.one(kernel, "override")
            name = found.name
            watched = Watched.of(wgsl) if watch else None
            self._install(name, Override.of(wgsl, found.spec))
            self._watched.pop(name, None)
            if watched is not None:
                self._watched[name] = watched
            return self.kernels[name]

    def _install(self, name: str, override: Override) -> None:
        with self._context._guarded("override"):
            self._installed.override(name, map_of_source(override.wgsl, override.file))
        self._overrides[name], self._kernels = override, None

    def _reload(self) -> None:
        """Install the files that were saved since they were installed."""
        with self._context._lock:
            for name, watched in self._watched.items():
                now = watched.again()
                if now == watched:
                    continue
                try:
                    self._install(name, Override.of(now.file, self.kernels[name].spec))
                except OSError:
                    continue
                except OperationError as error:
                    warn(str(error))
                self._watched[name] = now

    def restore(self, kernel: str | None = None) -> None:
        """Undo `override` for one kernel, for the kernels of one operator, or for all kernels.

        Args:
            kernel: the kernel's name, or the label of an operator. None restores all kernels.

        Raises:
            MLTypeError: the name matches no kernel.
            InvalidStateError: the graph was destroyed or the context lost.

        Example:
            >>> graph = b.build({"y": b.neg(x)})
            >>> _ = graph.override("neg_0", graph.kernels["neg_0"].wgsl)
            >>> graph.restore("neg_0")
            >>> graph.kernels["neg_0"].overridden
            False
        """
        self._context._check_graph(self, "restore")
        with self._context._lock:
            names = list(self._overrides) if kernel is None else [k.name for k in self.kernels.find(kernel, "restore")]
            with self._context._guarded("restore"):
                self._installed.restore(names)
            for name in names:
                self._overrides.pop(name, None)
                self._watched.pop(name, None)
            self._kernels = None

    def _take_overrides(self, other: MLGraph) -> None:
        """Install the overrides of a graph with the same operators on another context.

        Raises:
            OperationError: this device has another kernel, which the source does not fit.
        """
        for name, override in other._overrides.items():
            kernel, wanted = self.kernels.get(name), other.kernels[name].spec
            if kernel is None or kernel.spec != wanted:
                raise OperationError(
                    "a kernel that is overridden is another one on this device",
                    label=name,
                    got="none" if kernel is None else str(kernel.spec),
                    allowed=str(wanted),
                    hint="rebuild(graph, overrides=False) leaves the sources out",
                )
            self._install(name, override)

    def profile(self, inputs: Mapping[str, TensorData], *, runs: int = 1, peak: Peak | None = None) -> GraphProfile:
        """Run the graph and return the time of each kernel on the device, by the device's own timestamps.

        The timestamps come from separate runs with one compute pass for each kernel. The wall time is that of ordinary runs.

        Args:
            inputs: an array for each input, by name, as for `MLContext.compute`.
            runs: the number of runs. Times are medians.
            peak: the peak rates of the device, for comparison. None takes those of `measured_peak`.

        Returns:
            The times of the kernels, with their operators, the reasons for their choice, their bytes and operations per
            second, and their limits. `print` shows them as a table. A device without the feature "timestamp-query" gives only
            the time of the whole run, with a note.

        Raises:
            MLTypeError: a missing or unknown name, a wrong data type or size, or `runs` is not positive.
            InvalidStateError: the graph was destroyed or the context lost.
            OperationError: the device failed to run the graph.

        Example:
            >>> profile = b.build({"y": b.relu(x)}).profile({"x": np.ones((2, 3), np.float32)})
            >>> [kernel.labels for kernel in profile.slowest().kernels]
            [('relu_0',)]
        """
        return profile_graph(self, inputs, runs, peak)

    def tune(self, *, save: bool = True, progress: Progress | None = None) -> Tuning:
        """Measure the kernel variants of the graph's operators, and keep the fastest ones.

        The variants and tiles of an operator take turns on the device with the operator's shapes and data types. The tuner
        compares their median times. It excludes a variant whose results differ from those of the default variant, with a
        warning. Later builds use the fastest variants, with `measured` as the reason. This graph keeps its kernels. Tuning
        compiles every variant, so it takes seconds for a small model and minutes for a large one.

        Args:
            save: whether to add the measurements to the user's cache, which later contexts read. Otherwise pass them to
                `build` as `tuning`, or write them to a file with `Tuning.save`.
            progress: a function that tuning calls as `progress(done, total, what)`, with numbers of operators and the name
                of the next operator.

        Returns:
            The measurements. `print` shows them.

        Raises:
            NotSupportedError: the context runs graphs in numpy.
            InvalidStateError: the graph was destroyed or the context lost.

        Example:
            >>> tuning = b.build({"y": b.softmax(x, 1)}).tune(save=False)
            >>> [name for name in tuning.choices]
            ['softmax: float32[2, 3]; axis=1']
            >>> b2 = wn.MLGraphBuilder(context)
            >>> again = b2.build({"y": b2.softmax(b2.input("x", {"dataType": "float32", "shape": [2, 3]}), 1)}, tuning=tuning)
            >>> again.plan.dispatches[0].reason.startswith("measured: ")
            True
        """
        from .tuning import tune_graphs

        self._check_operators("tune")
        return tune_graphs([self], save, progress)

    def save(
        self,
        path: str | os.PathLike[str],
        quantized: bool | None = None,
        *,
        weights: Literal["auto", "weights", "safetensors", "inline"] | None = None,
        extensions: Literal["standard", "keep", "error"] | None = None,
        operand_options: Literal["names", "indices"] | None = None,
        opset: int | None = None,
        external_data: bool | None = None,
        minimum: Literal["iOS16", "iOS17", "iOS18"] | None = None,
    ) -> None:
        """Write the source graph to a file. The suffix of the path selects the format.

        `.webnn` is a text and `.json` its JSON form. `.onnx` is an ONNX model, and `.mlpackage` a Core ML model. `.mjs` and
        `.js` are JavaScript modules for browsers with WebNN. `.html` is a page that shows the graph, `.py` a program that
        builds it, and `.dot` a drawing for Graphviz. The same graph gives the same bytes.

        Args:
            path: the file to write.
            quantized: for `.webnn` and `.json`, whether the file declares the graph as quantized.
            weights: for `.webnn`, `.json`, `.mjs`, `.js` and `.py`, the files of constants. "auto", the default, writes
                constants above 1 KiB to separate files. "weights" writes all constants except those of equal elements to
                `NAME.weights` and `NAME.manifest.json`, and "safetensors" writes the same ones to `NAME.safetensors`.
                "inline" writes all constants to the file itself.
            extensions: for `.webnn` and `.json`, the form of extension operators. "standard", the default, composes them of
                WebNN's operators. "keep" writes them as `x.NAME`. "error" refuses them.
            operand_options: for `.webnn` and `.json`, "indices" writes operands in options as numbers, for pywebnn 0.5.
            opset: for `.onnx`, the version of the operator set. None takes the lower sufficient one of 18 and 21.
            external_data: for `.onnx`, whether constants above 1 KiB are written to `NAME.onnx.data`. None writes them
                there if the model would exceed 1 GiB.
            minimum: for `.mlpackage`, the oldest system that runs it. None is "iOS17".

        Raises:
            MLTypeError: an option has an invalid value.
            NotSupportedError: an unknown suffix, an option that the format does not have, an operator that the format cannot
                express, or an extra of this package is not installed.

        Example:
            >>> from pathlib import Path
            >>> b.build({"y": b.relu(x)}).save("relu.webnn")
            >>> Path("relu.webnn").exists()
            True
        """
        # The layers above are called by name: they use the public interface, this class included.
        import_module("webnn_wgpu.exporters.saving").save(
            self,
            path,
            quantized=quantized,
            weights=weights,
            extensions=extensions,
            operand_options=operand_options,
            opset=opset,
            external_data=external_data,
            minimum=minimum,
        )

    @staticmethod
    def load(
        path: str | os.PathLike[str],
        manifest_path: str | os.PathLike[str] | None = None,
        weights_path: str | os.PathLike[str] | None = None,
        *,
        context: MLContext | None = None,
        override_dims: Mapping[str, int] | None = None,
    ) -> MLGraph:
        """Load a graph from a `.webnn` text or its JSON form, as webnn-graph, rustnn, pywebnn and torch2webnn write them.

        Args:
            path: path of the file.
            manifest_path: the manifest of a blob of weights. None searches for it beside the file.
            weights_path: the file of weights. None searches for it beside the file.
            context: the context that the graph will run on. None is the default context.
            override_dims: sizes of the file's dynamic dimensions, by name.

        Returns:
            The compiled graph.

        Raises:
            FileNotFoundError: the file does not exist.
            MLTypeError: the file is invalid, or a dynamic dimension has no size. The message begins with file, line and
                column. The exception is an OSError too.
            NotSupportedError: an operator that the device cannot run, or the extra `webnn` is not installed.

        Example:
            >>> b.build({"y": b.relu(x)}).save("relu.webnn")
            >>> wn.MLGraph.load("relu.webnn", context=context)
            MLGraph(x: float32[2, 3] -> y: float32[2, 3])
        """
        loading = import_module("webnn_wgpu.frontends.loading")
        return loading.load_graph(path, manifest_path, weights_path, context=context, override_dims=override_dims)

    def destroy(self) -> None:
        """Free the memory of the graph after the end of queued work. Further calls have no effect.

        Spec: https://www.w3.org/TR/webnn/#dom-mlgraph-destroy
        """
        with self._context._lock:
            self._destroyed = True
            self._watched.clear()
            self._installed.destroy()

    def __enter__(self) -> MLGraph:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.destroy()

    def _repr_html_(self) -> str:
        facts = {
            "operators": str(self.operation_count),
            "kernels": "" if self.plan is None else str(len(self.plan.dispatches)),
            "memory": "" if self.plan is None else self.plan.summary(),
            "device": self._context.description,
        }
        return graph_html(self.source, facts, destroyed=self.destroyed)

    def _repr_svg_(self) -> str | None:
        return graph_svg(self.source) if self.operation_count <= MOST_DRAWN else None

    if TYPE_CHECKING:
        # camelCase names, which `__getattr__` finds at run time.
        operandCount = operand_count
        operationCount = operation_count
        getInputNames = get_input_names
        getOutputNames = get_output_names
        debugOperand = debug_operand
        countEmptyShapes = count_empty_shapes
        countScalarConstants = count_scalar_constants
        countUnknownShapes = count_unknown_shapes
        countUnknownShapesExcludingScalarOps = count_unknown_shapes_excluding_scalar_ops
        debugUnknownShapes = debug_unknown_shapes
        debugUnknownShapesStructured = debug_unknown_shapes_structured
        planFor = plan_for
    else:

        def __getattr__(self, name: str) -> Any:
            return camel_attribute(self, name)

    def __repr__(self) -> str:
        inputs = ", ".join(f"{n}: {t}" for n, t in self.inputs.items())
        outputs = ", ".join(f"{n}: {t}" for n, t in self.outputs.items())
        return f"MLGraph({inputs} -> {outputs})" + (" destroyed" if self._destroyed else "")
