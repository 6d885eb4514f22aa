"""The requirements of ONNX's schemas for nodes: the required inputs, and the kinds of attributes.

A file may contain anything, so each node is checked before its inputs and attributes are used. Items absent from a schema, such
as attributes of another version of the operator, are accepted: some exporters write them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

import onnx
import onnx_ir

from .module import find_schema


@dataclass(frozen=True)
class SchemaSignature:
    """The requirements of one operator's schema.

    Attributes:
        inputs: the names of required inputs, by position.
        attributes: the names of the attributes, and their kinds as in `onnx_ir.AttributeType`.
        required: the names of required attributes.
    """

    inputs: Mapping[int, str]
    attributes: Mapping[str, str]
    required: tuple[str, ...]


@cache
def signature_of(op_type: str, version: int, domain: str) -> SchemaSignature | None:
    """Return the requirements of an operator, or None if the `onnx` package does not have it in this version."""
    schema = find_schema(op_type, version, domain)
    if schema is None or schema.deprecated:
        return None
    single = onnx.defs.OpSchema.FormalParameterOption.Single
    variadic = onnx.defs.OpSchema.FormalParameterOption.Variadic
    inputs = {i: given.name for i, given in enumerate(schema.inputs) if given.option == single}
    last = len(schema.inputs) - 1
    if schema.inputs and schema.inputs[last].option == variadic:
        inputs |= {i: schema.inputs[last].name for i in range(last, schema.min_input)}
    attributes = {name: attribute.type.name for name, attribute in schema.attributes.items()}
    required = tuple(name for name, attribute in schema.attributes.items() if attribute.required)
    return SchemaSignature(inputs, attributes, required)


def fault_of(node: onnx_ir.Node, version: int) -> str:
    """Return the fault of a node's inputs and attributes, or "" if there is none or if its operator has no schema.

    Args:
        node: the node.
        version: the version of its operator set.
    """
    for attribute in node.attributes.values():
        if fault := _fault_of_attribute(attribute):
            return fault
    signature = signature_of(node.op_type, version, node.domain)
    if signature is None:
        return ""
    for index, name in signature.inputs.items():
        if index >= len(node.inputs) or node.inputs[index] is None:
            return f"input {index} ('{name}') is missing"
    for name in signature.required:
        if name not in node.attributes:
            return f"attribute '{name}' is missing"
    for name, attribute in node.attributes.items():
        wanted = signature.attributes.get(name)
        # A float attribute may have an integer value.
        if wanted is not None and wanted != attribute.type.name and (wanted, attribute.type.name) != ("FLOAT", "INT"):
            return f"attribute '{name}' is of kind {attribute.type.name}, not {wanted}"
    return ""


def _fault_of_attribute(attribute: onnx_ir.Attr) -> str:
    """Return the fault that makes an attribute unreadable for all operators, or "" if there is none."""
    if attribute.is_ref():
        return f"attribute '{attribute.name}' stands for one of a function, but the node is in none"
    if attribute.type == onnx_ir.AttributeType.UNDEFINED or attribute.value is None:
        return f"attribute '{attribute.name}' has no value"
    texts: Any = {
        onnx_ir.AttributeType.STRING: (attribute.value,),
        onnx_ir.AttributeType.STRINGS: attribute.value,
    }.get(attribute.type, ())
    if not all(isinstance(text, str) for text in texts):
        return f"attribute '{attribute.name}' is no UTF-8: {attribute.value!r}"
    return ""
