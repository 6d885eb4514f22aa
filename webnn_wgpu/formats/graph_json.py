"""The JSON form of graph files."""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeVar, cast

from ..core.errors import quoted
from ..core.names import is_unicode
from .document import (
    LIST_OPERATORS,
    SHORT_TYPES,
    Constant,
    Document,
    DynamicDimension,
    Faults,
    FileError,
    Init,
    InlineBytes,
    Location,
    OperandReference,
    Output,
    ScalarFill,
    Statement,
    TensorDeclaration,
    WeightsKey,
    checked_object,
    checked_size,
    checked_version,
)
from .text import SPECIAL_NUMBERS, check_depth, dynamic_size

FORMAT = "webnn-graph-json"


def parse_json(text: str, file: str) -> Document:
    """Parse the JSON form of a graph.

    Args:
        text: the text.
        file: name of the file, for messages.

    Returns:
        The document.

    Raises:
        FileError: no JSON, or members that are missing or wrong. The message names the path in the JSON.
    """
    root = Location(file)

    def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        members = dict(pairs)
        if len(members) < len(pairs):
            names = [name for name, _ in pairs]
            twice = next(name for name in names if names.count(name) > 1)
            raise FileError(root, f"an object has the member {quoted(twice)} twice")
        for name in members:
            if not is_unicode(name):
                raise FileError(root, "a name must be a string of Unicode characters", got=quoted(name))
        return members

    check_depth(text, file)
    try:
        content = json.loads(text, object_pairs_hook=unique)
    except json.JSONDecodeError as error:
        where = Location(file, f"{error.lineno}:{error.colno}")
        raise FileError(where, f"no JSON: {error.msg}, line {error.lineno} column {error.colno}") from None
    except FileError:
        raise
    except ValueError:  # Python refuses integers of thousands of digits.
        raise FileError(root, "the JSON has a number with too many digits") from None
    members = checked_object(content, root)
    kind = members.get("format")
    if kind != FORMAT:
        hint = next((f"It is {what}." for what, is_kind in _OTHER_KINDS.items() if is_kind(members)), "")
        raise FileError(root.at("format"), "the file is no graph", got=quoted(kind), allowed=repr(FORMAT), hint=hint)
    version = _required(members, "version", root)
    if not isinstance(version, int) or isinstance(version, bool):
        raise FileError(root.at("version"), "the version must be an integer", got=quoted(version))
    faults = Faults()
    document = Document(
        location=root,
        name=str(members.get("name") or "graph"),
        version=checked_version(version, root.at("version")),
        quantized=bool(members.get("quantized")),
        inputs=_each(
            faults,
            checked_object(_required(members, "inputs", root), root.at("inputs")).items(),
            lambda item: _declaration(*item, root.at("inputs").at(item[0])),
        ),
        constants=_each(
            faults,
            checked_object(members.get("consts") or {}, root.at("consts")).items(),
            lambda item: _constant(*item, root.at("consts").at(item[0])),
        ),
        statements=_each(
            faults,
            enumerate(_list(_required(members, "nodes", root), root.at("nodes"))),
            lambda item: _statement(item[1], root.at("nodes").at(item[0])),
        ),
        outputs=_each(
            faults,
            checked_object(_required(members, "outputs", root), root.at("outputs")).items(),
            lambda item: _output(*item, root.at("outputs").at(item[0])),
        ),
    )
    faults.check()
    return document


_OTHER_KINDS: Mapping[str, Callable[[Mapping[str, Any]], bool]] = {
    "a manifest of weights": lambda members: "tensors" in members,
    "a description of a tensor": lambda members: "dataType" in members,
    "a file of measured kernel variants": lambda members: "choices" in members,
    "a file of sizes of dimensions": lambda members: (
        bool(members) and ("freeDimensionOverrides" in members or all(isinstance(size, int) for size in members.values()))
    ),
}
"""JSON files that may be beside a model and are no graphs."""

Item = TypeVar("Item")
Read = TypeVar("Read")


def _each(faults: Faults, items: Iterable[Item], read: Callable[[Item], Read]) -> tuple[Read, ...]:
    found: list[Read] = []
    for item in items:
        with faults.collected():
            found.append(read(item))
    return tuple(found)


def _output(name: str, operand: Any, location: Location) -> Output:
    return Output(name, OperandReference(_text(operand, location), location))


def _required(members: Mapping[str, Any], name: str, location: Location) -> Any:
    if name not in members:
        raise FileError(location, f"the member '{name}' is missing")
    return members[name]


def _list(value: Any, location: Location) -> list[Any]:
    if not isinstance(value, list):
        raise FileError(location, "a list is expected", got=quoted(value))
    return cast("list[Any]", value)


def _text(value: Any, location: Location) -> str:
    if not isinstance(value, str) or not is_unicode(value):
        raise FileError(location, "a string of Unicode characters is expected", got=quoted(value))
    return value


def _declaration(name: str, value: Any, location: Location) -> TensorDeclaration:
    members = checked_object(value, location)
    data_type = _required(members, "dataType", location)
    if data_type not in SHORT_TYPES.values():
        where = location.at("dataType")
        raise FileError(where, "no such data type", got=quoted(data_type), allowed=", ".join(SHORT_TYPES.values()))
    sizes = _list(_required(members, "shape", location), location.at("shape"))
    shape = tuple(_dimension(size, location.at("shape").at(i)) for i, size in enumerate(sizes))
    return TensorDeclaration(name=name, data_type=data_type, shape=shape, location=location)


def _dimension(value: Any, location: Location) -> int | DynamicDimension:
    if isinstance(value, dict):
        found = dynamic_size(cast("dict[str, Any]", value))
        if not isinstance(found, DynamicDimension):
            raise FileError(location, "a dynamic dimension has a name and a maxSize", got=quoted(found))
        checked_size(found.max_size, location)
        return found
    return checked_size(value, location)


def _constant(name: str, value: Any, location: Location) -> Constant:
    declaration = _declaration(name, value, location)
    if any(isinstance(size, DynamicDimension) for size in declaration.shape):
        raise FileError(location, f"the shape of constant {quoted(name)} must be static")
    members = checked_object(value, location)
    return Constant(
        declaration, _init(checked_object(_required(members, "init", location), location.at("init")), location.at("init"))
    )


def _init(members: dict[str, Any], location: Location) -> Init:
    match _required(members, "kind", location):
        case "weights":
            return WeightsKey(_text(_required(members, "ref", location), location.at("ref")))
        case "scalar":
            value = _required(members, "value", location)
            value = SPECIAL_NUMBERS.get(value, value) if isinstance(value, str) else value
            if isinstance(value, bool) or not isinstance(value, int | float):
                raise FileError(location.at("value"), "a number is expected", got=quoted(value))
            return ScalarFill(value)
        case "inlineBytes":
            return InlineBytes(_bytes(_required(members, "bytes", location), location.at("bytes")))
        case kind:
            raise FileError(
                location.at("kind"), "unknown content of a constant", got=quoted(kind), allowed="weights, scalar, inlineBytes"
            )


def _bytes(value: Any, location: Location) -> bytes:
    if isinstance(value, str):
        try:
            return base64.b64decode(value, validate=True)
        except binascii.Error:
            raise FileError(location, "the string is no base64", got=quoted(value)) from None
    for i, item in enumerate(_list(value, location)):
        if not isinstance(item, int) or isinstance(item, bool) or not 0 <= item <= 255:
            raise FileError(location.at(i), "an item is no byte", got=quoted(item), allowed="0..255")
    return bytes(value)


def _statement(value: Any, location: Location) -> Statement:
    node = checked_object(value, location)
    identity = _text(_required(node, "id", location), location.at("id"))
    outputs = node.get("outputs")
    results = [identity] if outputs is None else _list(outputs, location.at("outputs"))
    options = checked_object(node.get("options") or {}, location.at("options"))
    inputs = _list(node.get("inputs") or [], location.at("inputs"))
    operator = _text(_required(node, "op", location), location.at("op"))
    return Statement(
        operator=operator,
        arguments=tuple(
            OperandReference(_text(v, location.at("inputs").at(i)), location.at("inputs").at(i)) for i, v in enumerate(inputs)
        ),
        options={name: _value(v, location.at("options").at(name)) for name, v in options.items()},
        results=tuple(_text(v, location.at("outputs").at(i)) for i, v in enumerate(results)),
        bracketed=len(results) != 1 or operator in LIST_OPERATORS,
        location=location,
    )


def _value(value: Any, location: Location) -> Any:
    """Return an option's value with its dynamic dimensions recognized."""
    if isinstance(value, list):
        return [_value(v, location.at(i)) for i, v in enumerate(cast("list[Any]", value))]
    if isinstance(value, dict):
        return dynamic_size({k: _value(v, location.at(k)) for k, v in cast("dict[str, Any]", value).items()})
    return _text(value, location) if isinstance(value, str) else value
