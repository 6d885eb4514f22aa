"""The signatures of operator methods: parameters with their types and defaults, as Python source."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

from webnn_wgpu.core.data_types import ANY, PACKED_TYPES
from webnn_wgpu.core.names import snake_case
from webnn_wgpu.ops._attrs import REQUIRED, Attr

if TYPE_CHECKING:
    from collections.abc import Sequence

    from webnn_wgpu.ops import OpDef
    from webnn_wgpu.ops._def import Operand

_TYPES = {
    "uint": "int",
    "int": "int",
    "uints": "Sequence[int]",
    "bool": "bool",
    "float": "float",
    "floats": "Sequence[float]",
    "number": "float",
    "splits": "int | Sequence[int]",
    "activations": "Activations",
}

LABEL = "Name of the operator in errors, plans and debuggers."
OPTIONS = "The options that follow, as one dictionary."


@dataclass(frozen=True)
class Argument:
    """A parameter of a method.

    Attributes:
        name: its name.
        annotation: its type.
        default: its default; "" for none.
        text: its documentation.
        keyword: whether it is given by name only.
    """

    name: str
    annotation: str
    default: str = ""
    text: str = ""
    keyword: bool = False

    def __str__(self) -> str:
        return f"{self.name}: {self.annotation}{f' = {self.default}' if self.default else ''}"


class Signature:
    """The signature of an operator's method.

    Attributes:
        op: the operator.
        name: name of the method.
        documentation: what the operator's definition says of the method.
    """

    def __init__(self, op: OpDef) -> None:
        assert op.documentation is not None
        self.op, self.documentation = op, op.documentation
        self.name = op.python_name.removeprefix("ext.")

    @cached_property
    def declared(self) -> tuple[Argument, ...]:
        """Operands, arguments and options, in the order of their documentation."""
        method = self.documentation.method
        by_position = (*method.optional, *method.positional)
        found: dict[str, Argument] = {}
        for operand in self.op.operands:
            name = snake_case(operand.name)
            text = self._text(name).replace("{types}", types_text(operand))
            found[name] = Argument(name, *_operand(operand), text, keyword=not operand.required)
        for attr in self.op.attrs:
            optional = attr.default is not REQUIRED
            found[attr.name] = Argument(
                attr.name, *_attribute(attr), self._text(attr.name), keyword=optional and attr.name not in by_position
            )
        for extra in method.parameters:
            keyword = extra.name not in by_position
            found[extra.name] = Argument(extra.name, extra.annotation, extra.default, self._text(extra.name), keyword=keyword)
        if set(found) != set(self.documentation.arguments):
            raise ValueError(f"{self.op.name}: documented are {list(self.documentation.arguments)}, not {list(found)}")
        return tuple(found[name] for name in self.documentation.arguments)

    def _text(self, name: str) -> str:
        return self.documentation.arguments.get(name, "")

    @property
    def attributes(self) -> tuple[str, ...]:
        """Names of the attributes that reach the definition as they are given."""
        return tuple(attr.name for attr in self.op.attrs if attr.kind != "activations")

    @property
    def positional(self) -> list[Argument]:
        """Parameters that may be given by position."""
        return [a for a in self.declared if not a.keyword]

    @property
    def keywords(self) -> list[Argument]:
        """Parameters that are given by name only."""
        return [a for a in self.declared if a.keyword] + [Argument("label", "str", '""', LABEL, keyword=True)]

    @property
    def dictionary(self) -> str:
        """The specification's dictionary of the options; "" for extension operators."""
        if self.op.extension:
            return ""
        if self.documentation.method.dictionary:
            return self.documentation.method.dictionary
        return f"ML{self.op.name[0].upper()}{self.op.name[1:]}Options" if self.options else "MLOperatorOptions"

    @property
    def options(self) -> list[Argument]:
        """Members of the dictionary of options, except the label."""
        return [a for a in self.declared if a.default and a.name not in self.documentation.method.optional]

    @property
    def returns(self) -> str:
        """The type of the result."""
        result = "list[MLOperand]" if self.op.outputs != ("output",) else "MLOperand"
        return f"{result} | MLActivation" if self.documentation.method.activation else result

    @property
    def overloads(self) -> list[str]:
        """Parameters and results of the overloads, if there are several forms of a call."""
        first, *rest = self.positional
        options = Argument("options", self.dictionary, "{}")
        if self.documentation.method.activation:
            none = [replace(first, annotation=f"{self.dictionary} | None", default="None")]
            none += [replace(a, annotation="None", default="None") for a in rest]
            return [
                f"({_listed([first, *rest, options], self.keywords)}) -> MLOperand",
                f"({_listed(none, self.keywords)}) -> MLActivation",
            ]
        if self._dictionary_by_position:
            given = replace(options, default="")
            return [
                f"({_listed([first, *rest, options], self.keywords)}) -> {self.returns}",
                f"({_listed([first, given], self.keywords[-1:], positional_only=True)}) -> {self.returns}",
            ]
        return []

    @property
    def _dictionary_by_position(self) -> bool:
        # The specification has these options in its dictionary, which then stands where the first of them may stand.
        return bool(self.documentation.method.positional)

    @property
    def implementation(self) -> list[Argument]:
        """The parameters of the method itself."""
        first, *rest = self.positional
        if self.documentation.method.activation:
            first = replace(first, annotation=f"{first.annotation} | {self.dictionary} | None", default="None")
        elif self._dictionary_by_position:
            rest = [replace(rest[0], annotation=f"{rest[0].annotation} | {self.dictionary}"), *rest[1:]]
        options = [Argument("options", self.dictionary, "{}", OPTIONS)] if self.dictionary else []
        return [first, *rest, *options, *self.keywords]

    def __str__(self) -> str:
        positional = [a for a in self.implementation if not a.keyword]
        return f"({_listed(positional, self.keywords)}) -> {self.returns}"


def _listed(positional: Sequence[Argument], keywords: Sequence[Argument], *, positional_only: bool = False) -> str:
    parts = ["self", *map(str, positional)]
    return ", ".join([*parts, *(["/"] if positional_only else []), "*", *map(str, keywords)])


def _operand(operand: Operand) -> tuple[str, str]:
    if operand.variadic:
        return "Sequence[MLOperand]", ""
    return ("MLOperand", "") if operand.required else ("MLOperand | None", "None")


def _attribute(attr: Attr) -> tuple[str, str]:
    if attr.kind in ("enum", "data_type"):
        names = ", ".join(f'"{name}"' for name in attr.allowed)
        annotation = f"Literal[{names}]" if attr.allowed else "OperandDataType"
    else:
        annotation = _TYPES[attr.kind]
    if attr.default is REQUIRED:
        return annotation, ""
    return (f"{annotation} | None", "None") if attr.default is None else (annotation, repr(attr.default))


def types_text(operand: Operand) -> str:
    """Return the data types of an operand in words: "float32 or float16", or "The data type of `input`"."""
    if operand.same_as:
        return f"The data type of `{snake_case(operand.same_as)}`"
    if operand.data_types == ANY:
        return "Any data type"
    plain = [name for name in operand.data_types if name not in PACKED_TYPES]
    words = f"{', '.join(plain[:-1])} or {plain[-1]}" if len(plain) > 1 else plain[0]
    packed = [name for name in operand.data_types if name in PACKED_TYPES]
    return f"{words}, or a constant of {' or '.join(packed)}" if packed else words
