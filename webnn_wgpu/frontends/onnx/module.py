"""A model for its programs: initializers, versions of operator sets, schemas, bodies of functions."""

from __future__ import annotations

import logging
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager
from functools import cache

import onnx
import onnx_ir

from webnn_wgpu import NotSupportedError, OutOfMemoryError, WebNNError
from webnn_wgpu.api.tuning import TuningSource

from ..common.calls import OnHost
from ..common.module import ModelModule
from ..common.stages import ValueNeeded
from ..description import Placed
from . import host
from .operators import OnnxInline, handler
from .tensors import OnnxTensor
from .types import FLOAT32, Array, DType, logical

log = logging.getLogger(__name__)


class OnnxModule(ModelModule[onnx_ir.Value, onnx_ir.Node]):
    """A model and the meaning of its nodes.

    Args:
        model: the model, its local functions inlined.
        fallback: the treatment of nodes for the host: "host" and "warn" run them there, "error" refuses them.
        name: the name of the model in messages.
        wide_float16: whether float16 values between nodes are stored as float32.
        tuning: the tuning of its graphs.
    """

    def __init__(
        self,
        model: onnx_ir.Model,
        fallback: str,
        name: str,
        wide_float16: bool = False,
        tuning: TuningSource = None,
    ) -> None:
        super().__init__(name, fallback, wide_float16, tuning)
        self.model = model
        self._initializers: dict[onnx_ir.Value, Array] = {}
        self._captures: dict[onnx_ir.Node, tuple[onnx_ir.Value, ...]] = {}

    # values -------------------------------------------------------------------------------------------------------

    def is_constant(self, value: onnx_ir.Value) -> bool:
        """Return whether a value is an initializer."""
        return value.const_value is not None

    def initializer(self, value: onnx_ir.Value) -> Array:
        """Return the elements of an initializer.

        Raises:
            NotSupportedError: its data type is not supported, or its bytes do not match its shape.
        """
        if value not in self._initializers:
            tensor = value.const_value
            assert tensor is not None
            if logical(tensor.dtype) is None:
                raise NotSupportedError(f"initializer '{value.name}' of '{self.name}' has type {tensor.dtype.name}")
            try:
                array = tensor.numpy()
            except Exception as error:  # onnx_ir raises errors of many types
                raise NotSupportedError(f"initializer '{value.name}' of '{self.name}' cannot be read: {error}") from error
            self._initializers[value] = array
        return self._initializers[value]

    def uses(self, node: onnx_ir.Node, inner: bool = True) -> Iterator[onnx_ir.Value]:
        """Yield the values that a node reads. With `inner`, also the outer values that its graphs read."""
        yield from (v for v in node.inputs if v is not None)
        if inner:
            yield from self.captures(node)

    def captures(self, node: onnx_ir.Node) -> tuple[onnx_ir.Value, ...]:
        """Return the outer values that the graphs in a node read."""
        if node not in self._captures:
            found: dict[onnx_ir.Value, None] = {}
            for attribute in node.attributes.values():
                graphs = (
                    [attribute.value]
                    if attribute.type == onnx_ir.AttributeType.GRAPH
                    else attribute.value
                    if attribute.type == onnx_ir.AttributeType.GRAPHS
                    else []
                )
                for graph in graphs:
                    found.update(dict.fromkeys(captured(graph)))
            self._captures[node] = tuple(found)
        return self._captures[node]

    # schemas ------------------------------------------------------------------------------------------------------

    def version(self, node: onnx_ir.Node) -> int:
        """Return the version of a node's operator set."""
        return version_of(self.model, node)

    def output_dtype(self, node: onnx_ir.Node, index: int, inputs: Sequence[DType | None], version: int) -> DType | None:
        """Return an output's data type, if it follows from the node's schema and the data types of its inputs."""
        schema = find_schema(node.op_type, version, node.domain)
        if schema is None or not schema.outputs:
            return None
        wanted = schema.outputs[min(index, len(schema.outputs) - 1)].type_str
        for i, dtype in enumerate(inputs):
            if dtype is not None and schema.inputs[min(i, len(schema.inputs) - 1)].type_str == wanted:
                return dtype
        allowed = next((c.allowed_type_strs for c in schema.type_constraints if c.type_param_str == wanted), [wanted])
        return dtype_of(allowed[0]) if len(allowed) == 1 else None

    def body(self, node: onnx_ir.Node, inputs: Sequence[OnnxTensor | None], version: int) -> OnnxInline | None:
        """Return the nodes of ONNX's definition of an operator, if there is one."""
        schema = find_schema(node.op_type, version, node.domain)
        if schema is None or not (schema.has_function or schema.has_context_dependent_function):
            return None
        proto = onnx.NodeProto(op_type=node.op_type, domain=node.domain)
        proto.input.extend("" if t is None else f"i{i}" for i, t in enumerate(inputs))
        proto.output.extend(o.name or "" for o in node.outputs)
        proto.attribute.extend(onnx_ir.to_proto(a) for a in node.attributes.values())
        function = function_body(schema, proto, inputs, version)
        if function is None:
            return None
        graph = onnx.GraphProto(name=node.op_type, node=function.node)
        graph.input.extend(onnx.ValueInfoProto(name=name) for name in function.input)
        # A body defines an optional output only if the node has it.
        made = {name for inner in function.node for name in inner.output} | set(function.input)
        graph.output.extend(onnx.ValueInfoProto(name=name) for name in function.output if name in made)
        inlined = onnx_ir.from_proto(graph)
        versions = {o.domain: o.version for o in function.opset_import}
        nodes = list(inlined)
        label = node.name or (node.outputs[0].name or "")
        for i, inner in enumerate(all_nodes(nodes)):
            inner.version = versions.get(inner.domain, version)
            inner.name = f"{label}/{inner.name or f'{inner.op_type}_{i}'}"
        aliases: dict[onnx_ir.Value, onnx_ir.Value] = {}
        for index, inner in enumerate(inlined.inputs):
            value = node.inputs[index] if index < len(node.inputs) else None
            if value is None:
                omit(inner)
            else:
                aliases[inner] = value
        produced = {value.name: value for value in inlined.outputs}
        outputs = [produced.get(name, onnx_ir.Value(name=name)) for name in function.output]
        return OnnxInline(nodes, outputs[: len(node.outputs)], aliases)

    def fits(self, node: onnx_ir.Node, inputs: Sequence[OnnxTensor | None], version: int) -> bool:
        """Return whether the shapes of a node's inputs fit its operator, as far as ONNX's shape inference tells."""
        schema = find_schema(node.op_type, version, node.domain)
        if schema is None or node.op_type in host.CONTROL:
            return True
        proto = host.alone(node, [tensor is not None for tensor in inputs])
        types = {f"i{i}": type_of(tensor) for i, tensor in enumerate(inputs) if tensor is not None}
        versions = [onnx.helper.make_opsetid(node.domain, version)]
        try:
            onnx.shape_inference.infer_node_outputs(schema, proto, types, opset_imports=versions)
        except onnx.shape_inference.InferenceError:
            return False
        except onnx.checker.ValidationError:
            pass  # data types of inputs that differ, which the host may take
        return True

    # places ---------------------------------------------------------------------------------------------------------------

    def placed(self, node: onnx_ir.Node, where: str, note: str = "") -> Placed:
        """Return the record of the place where a node runs."""
        op = f"{node.domain}.{node.op_type}" if node.domain else node.op_type
        return Placed(node.name or node.outputs[0].name or "", op, where, note)

    def host_obstacle(self, node: onnx_ir.Node) -> str:
        """Return the reason why the host cannot evaluate a node, or "" if it can."""
        if node.op_type in host.CONTROL:
            return ""
        version = self.version(node)
        return host.obstacle(node, version, lowered=handler(node.domain, node.op_type, version) is not None)

    # refusals -----------------------------------------------------------------------------------------------------

    def refusal(self, node: onnx_ir.Node, reason: str) -> NotSupportedError:
        """Return the error of a node that cannot run."""
        return refusal(self.name, self.model, node, reason)

    @contextmanager
    def at(self, node: onnx_ir.Node, activity: str) -> Generator[None]:
        """Add a node to errors other than refusals, which are faults of the package or of a library.

        Args:
            node: the node.
            activity: the current work on the node, such as "lowering".

        Raises:
            OutOfMemoryError: the host has no memory left.
        """
        try:
            yield
        except (WebNNError, OnHost, ValueNeeded):
            raise
        except MemoryError as error:
            what = f"{self.name}: {describe(self.model, node)}: the host has no memory left"
            raise OutOfMemoryError(what, operator=node.op_type, label=node.name or "") from error
        except Exception as error:
            error.add_note(f"{activity} {describe(self.model, node)} of {self.name}")
            raise


def version_of(model: onnx_ir.Model, node: onnx_ir.Node) -> int:
    """Return the version of a node's operator set."""
    return node.version if node.version is not None else model.opset_imports.get(node.domain, 1)


def describe(model: onnx_ir.Model, node: onnx_ir.Node) -> str:
    """Return a node's name, operator and operator set, for messages."""
    name = node.name or (node.outputs[0].name if node.outputs else "") or "?"
    domain = node.domain or "ai.onnx"
    return f"node '{name}' ({node.op_type}, {domain} opset {version_of(model, node)})"


def refusal(name: str, model: onnx_ir.Model, node: onnx_ir.Node, reason: str) -> NotSupportedError:
    """Return the error of a node that cannot run. `name` is the name of the model in messages."""
    return NotSupportedError(f"{name}: {describe(model, node)}: {reason}", operator=node.op_type, label=node.name or "")


def captured(graph: onnx_ir.Graph) -> Iterator[onnx_ir.Value]:
    """Yield the outer values that a graph, or a graph in it, reads."""
    own: set[onnx_ir.Value] = set(graph.inputs)
    own.update(graph.initializers.values())
    for node in graph:
        for value in node.inputs:
            if value is not None and value not in own:
                yield value
        for attribute in node.attributes.values():
            if attribute.type == onnx_ir.AttributeType.GRAPH:
                yield from (v for v in captured(attribute.value) if v not in own)
        own.update(node.outputs)
    yield from (v for v in graph.outputs if v not in own)


def all_nodes(nodes: Sequence[onnx_ir.Node]) -> Iterator[onnx_ir.Node]:
    """Yield nodes and the nodes of the graphs in them."""
    for node in nodes:
        yield node
        for attribute in node.attributes.values():
            if attribute.type == onnx_ir.AttributeType.GRAPH:
                yield from all_nodes(list(attribute.value))


def omit(value: onnx_ir.Value) -> None:
    """Remove a value from the inputs of its consumers."""
    for user, index in list(value.uses()):
        user.replace_input_with(index, None)


@cache
def find_schema(op_type: str, version: int, domain: str) -> onnx.defs.OpSchema | None:
    """Return an operator's schema, or None if the `onnx` package does not know it."""
    try:
        return onnx.defs.get_schema(op_type, version, domain)
    except onnx.defs.SchemaError:
        return None


def dtype_of(type_string: str) -> DType | None:
    """Return the data type of a type string such as "tensor(float)"."""
    name = type_string.removeprefix("tensor(").removesuffix(")").upper()
    return logical(onnx_ir.DataType[name]) if name in onnx_ir.DataType.__members__ else None


def type_of(tensor: OnnxTensor) -> onnx.TypeProto:
    """Return ONNX's description of a tensor's type and shape."""
    return onnx.helper.make_tensor_type_proto(onnx.helper.np_dtype_to_tensor_dtype(tensor.dtype or FLOAT32), tensor.shape)


def function_body(
    schema: onnx.defs.OpSchema, node: onnx.NodeProto, inputs: Sequence[OnnxTensor | None], version: int
) -> onnx.FunctionProto | None:
    """Return the body of an operator for a node, its attributes filled in."""
    function = onnx.FunctionProto()
    if schema.has_function:
        versions = [v for v in schema.function_opset_versions if v <= version]
        body = schema.get_function_with_opset_version(max(versions)) if versions else None
        if body is None:
            return None
        function.CopyFrom(body) if isinstance(body, onnx.FunctionProto) else function.ParseFromString(body)
    else:
        versions = [v for v in schema.context_dependent_function_opset_versions if v <= version]
        if not versions:
            return None
        types = [b"" if t is None else type_of(t).SerializeToString() for t in inputs]
        try:
            bytes_ = schema.get_context_dependent_function_with_opset_version(max(versions), node.SerializeToString(), types)
        except Exception as error:  # the `onnx` package raises several types of errors for invalid nodes
            raise OnHost(f"onnx has no body for it: {error}") from error
        if not bytes_:
            return None
        function.ParseFromString(bytes_)
    given = {a.name: a for a in node.attribute}
    for name, attribute in schema.attributes.items():
        if name not in given and attribute.default_value.name:
            given[name] = attribute.default_value
    for inner in function.node:
        fill_in(inner, given)
    return function


def fill_in(node: onnx.NodeProto, given: dict[str, onnx.AttributeProto]) -> None:
    """Replace a body's references to attributes of its caller."""
    for i in reversed(range(len(node.attribute))):
        attribute = node.attribute[i]
        if attribute.ref_attr_name:
            value = given.get(attribute.ref_attr_name)
            if value is None:
                del node.attribute[i]
                continue
            name = attribute.name
            attribute.CopyFrom(value)
            attribute.name = name
        for inner in attribute.g.node:
            fill_in(inner, given)
