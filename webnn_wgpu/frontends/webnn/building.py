"""`build`: a graph from a document."""

from __future__ import annotations

import base64
import logging
import re
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, cast

import numpy as np

from webnn_wgpu import MLContext, MLGraph, MLGraphBuilder, MLOperand, NotSupportedError, WebNNError
from webnn_wgpu.api.internals import name_constant, set_place
from webnn_wgpu.api.signatures import CallForm, camel, find, nearest, operator_names
from webnn_wgpu.formats.constants import from_bytes, holds
from webnn_wgpu.formats.document import (
    SHORT_TYPES,
    Constant,
    Document,
    DynamicDimension,
    Faults,
    FileError,
    Location,
    OperandReference,
    ScalarFill,
    Statement,
    TensorDeclaration,
    checked_size,
)
from webnn_wgpu.formats.reading import ConstantArrays
from webnn_wgpu.formats.text import SPECIAL_NUMBERS

from .dialects import EMPTY_IS_ABSENT, IGNORED, RENAMED, Refusal, rewritten

log = logging.getLogger(__name__)

GENERATED = re.compile("(operand|op)_[0-9]+")
"""Names that writers make up. They become no labels."""

HINTED = 20
"""Faults that get a hint with the most similar name, at most: each search compares all names."""

ARITHMETIC = frozenset({"add", "sub", "mul", "div", "max", "min", "pow"})


def build(document: Document, arrays: ConstantArrays, context: MLContext, sizes: Mapping[str, int], **options: Any) -> MLGraph:
    """Build the graph of a document.

    Args:
        document: the document.
        arrays: the arrays of its constants.
        context: where the graph will run.
        sizes: the size of each dynamic dimension.
        options: for `MLGraphBuilder.build`.

    Raises:
        FileError: names that nothing defines, unknown operators or options, and every call that the builder refuses. The
            message begins with the statement's place. `faults` are all faults that were found.
        NotSupportedError: a call that the device cannot run.
    """
    builder, outputs = assemble(document, arrays, context, sizes)
    return builder.build(outputs, **options)


def assemble(
    document: Document, arrays: ConstantArrays, context: MLContext, sizes: Mapping[str, int]
) -> tuple[MLGraphBuilder, dict[str, MLOperand]]:
    """Return a builder with the operators of a document, and the outputs: see `build`."""
    building = _Building(document, arrays, context, sizes)
    return building.builder, building.assembled()


class _Unknown(Exception):
    """An operand that a fault has left undefined, for which no further fault is reported."""


class _Building:
    """One walk over a document."""

    def __init__(self, document: Document, arrays: ConstantArrays, context: MLContext, sizes: Mapping[str, int]) -> None:
        self.document, self.arrays, self.sizes = document, arrays, sizes
        self.builder = MLGraphBuilder(context)
        self.operands: dict[str, MLOperand] = {}
        self.constants = {c.declaration.name: c for c in document.constants}
        self.made: dict[MLOperand, Constant] = {}
        self.declared = [*sorted(d.name for d in document.inputs), *sorted(self.constants)]
        self.results: list[str] = []
        self.faults = Faults()
        self.unknown: set[str] = set()

    def assembled(self) -> dict[str, MLOperand]:
        document = self.document
        self.check_names()
        used = used_names(document)
        for declaration in document.inputs:
            if declaration.name in used:
                with self.going_on(declaration.name):
                    shape = [self.size(d, declaration.location) for d in declaration.shape]
                    self.operands[declaration.name] = self.input(declaration, shape)
        for statement in document.statements:
            set_place(self.builder, str(statement.location))
            with self.going_on(*statement.results):
                self.statement(statement)
        outputs: dict[str, MLOperand] = {}
        for output in document.outputs:
            set_place(self.builder, str(output.operand.location))
            with self.going_on():
                outputs[output.name] = self.output(output.operand)
        self.faults.check()
        return outputs

    @contextmanager
    def going_on(self, *names: str) -> Generator[None]:
        """Collect a fault of the body, which leaves operands undefined."""
        try:
            with self.faults.collected():
                yield
                self.unknown.difference_update(names)
                return
        except _Unknown:
            pass
        self.unknown.update(names)

    def output(self, reference: OperandReference) -> MLOperand:
        """Return the operand of an output. Inputs and constants are copied, as WebNN does not allow them as outputs."""
        operand = self.operand(reference)
        return operand if reference.name in self.results else self.builder.identity(operand)

    def check_names(self) -> None:
        with self.faults.collected():
            if not self.document.outputs:
                raise FileError(self.document.location, "the graph has no outputs")
        seen: dict[str, Location] = {}
        for declaration in (*self.document.inputs, *(c.declaration for c in self.document.constants)):
            with self.faults.collected():
                if declaration.name in seen:
                    raise FileError(declaration.location, f"the name '{declaration.name}' is declared twice")
            seen[declaration.name] = declaration.location

    def size(self, dimension: int | DynamicDimension, location: Location) -> int:
        if isinstance(dimension, int):
            return dimension
        size = self.sizes.get(dimension.name)
        if size is None:
            raise FileError(location, f"the size of dimension '{dimension.name}' is open", hint="override_dims sets it.")
        if not 1 <= size <= dimension.max_size:
            raise FileError(
                location,
                f"the size of dimension '{dimension.name}' is out of range",
                got=str(size),
                allowed=f"1..{dimension.max_size}",
            )
        return size

    def input(self, declaration: TensorDeclaration, shape: list[int]) -> MLOperand:
        descriptor: Any = {"dataType": declaration.data_type, "shape": shape}
        try:
            return self.builder.input(declaration.public_name, descriptor)
        except WebNNError as error:
            raise _at(declaration.location, error) from error

    def constant(self, constant: Constant, data_type: str = "") -> MLOperand:
        declaration, array = constant.declaration, self.arrays.array(constant)
        if data_type:
            declaration, array = replace(declaration, data_type=data_type), array.astype(data_type)
        operand = self.declared_constant(declaration, array)
        self.made[operand] = constant
        return operand

    def declared_constant(self, declaration: TensorDeclaration, array: Any) -> MLOperand:
        descriptor: Any = {"dataType": declaration.data_type, "shape": list(declaration.shape)}
        try:
            operand = self.builder.constant(descriptor, array)
        except WebNNError as error:
            raise _at(declaration.location, error) from error
        name_constant(operand, declaration.name)
        return operand

    def operand(self, reference: OperandReference) -> MLOperand:
        """Return the operand of a name. A constant is made when it is first used."""
        name = reference.name
        if name in self.unknown:
            raise _Unknown
        if name not in self.operands:
            if name not in self.constants:
                hint = ""
                if self.faults.count < HINTED:
                    hint = nearest(name, (*self.operands, *self.constants))
                raise FileError(reference.location, f"no operand '{name}' is defined here", hint=hint)
            with self.going_on(name):
                self.operands[name] = self.constant(self.constants[name])
            if name in self.unknown:
                raise _Unknown
        return self.operands[name]

    def statement(self, statement: Statement) -> None:
        if not statement.results:
            raise FileError(statement.location, "the results of the statement have no names")
        if not statement.operator:
            self.store(statement, [self.operand(statement.arguments[0])])
        elif statement.operator in ("shape", "constant"):
            self.store(statement, [self.folded(statement)])
        else:
            self.store(statement, self.called(statement))

    def store(self, statement: Statement, results: list[MLOperand]) -> None:
        names = statement.results
        if len(names) != len(results):
            raise FileError(
                statement.location,
                f"{statement.operator} has {len(results)} results",
                got=f"{len(names)} names: {', '.join(names)}",
            )
        self.operands.update(zip(names, results, strict=True))
        self.results += names

    def folded(self, statement: Statement) -> MLOperand:
        """Return the constant of `shape(x)`, or of `constant(dataType=, shape=, data=)`."""
        if statement.operator == "shape":
            if len(statement.arguments) != 1 or not self.is_operand(statement.arguments[0]):
                raise FileError(statement.location, "shape takes one operand", got=f"{len(statement.arguments)} arguments")
            sizes = np.array(self.operand(_reference(statement.arguments[0], statement)).shape, np.int64)
            return self.builder.constant({"dataType": "int64", "shape": [sizes.size]}, sizes)
        options, location = statement.options, statement.location
        try:
            data = base64.b64decode(options["data"], validate=True)
            sizes = tuple(checked_size(size, location) for size in options["shape"])
            data_type = self.data_type(options["dataType"], statement)
        except (KeyError, ValueError, TypeError) as error:
            if isinstance(error, FileError):
                raise
            raise FileError(location, "constant needs dataType, shape and base64 data") from None
        declaration = TensorDeclaration(name=statement.results[0], data_type=data_type, shape=sizes, location=location)
        return self.declared_constant(declaration, from_bytes(declaration, sizes, data))

    def called(self, statement: Statement) -> list[MLOperand]:
        form = find(statement.operator)
        if form is None:
            hint = nearest(statement.operator, operator_names())
            if statement.operator[:1].isupper():
                hint += " Names like this are ONNX's: load the ONNX model itself."
            raise FileError(statement.location, f"unknown operator '{statement.operator}'", hint=hint.strip())
        operands, options = self.split(statement, form)
        self.check_given(statement, form, {n.partition("[")[0] for n in operands}, form.operands)
        try:
            options = rewritten(form.name, operands, options)
        except Refusal as refusal:
            raise FileError(
                statement.location, f"{form.name}: {refusal.rule}", got=refusal.got, allowed=refusal.allowed
            ) from None
        self.check(statement, form, operands, options)
        return self.call(statement, form, operands, options)

    def split(self, statement: Statement, form: CallForm) -> tuple[dict[str, MLOperand], dict[str, Any]]:
        """Return operands and options of a call by their Python names."""
        positional, literals = self.by_position(statement)
        if form.variadic:
            names = tuple(f"{form.operands[0]}[{i}]" for i in range(len(positional)))
        else:
            names = form.operands
        if len(positional) > len(names):
            raise FileError(
                statement.location, f"{form.name} has too many operands", got=str(len(positional)), allowed=", ".join(names)
            )
        operands = dict(zip(names, positional, strict=False))
        options: dict[str, Any] = {}
        for written, value in statement.options.items():
            if written == "metadata" or written in IGNORED.get(form.name, ()):
                continue
            name = RENAMED.get(form.name, {}).get(written) or form.option(written) or written
            if name in form.operands:
                self.add_operand(statement, operands, name, value)
            elif not _is_absent(form, name, value):
                options[name] = self.value(statement, form, name, value)
        free = [a for a in form.arguments if a not in options]
        if len(literals) > len(free):
            raise FileError(statement.location, f"{form.name} takes no further argument", got=repr(literals[len(free)]))
        for name, value in zip(free, literals, strict=False):
            options[name] = self.value(statement, form, name, value)
        return operands, options

    def by_position(self, statement: Statement) -> tuple[list[MLOperand], list[Any]]:
        operands: list[MLOperand] = []
        literals: list[Any] = []
        for value in statement.arguments:
            items = cast("list[Any]", value) if isinstance(value, list) else [value]
            if items and all(self.is_operand(item) for item in items):
                operands += [self.operand(_reference(item, statement)) for item in items]
            else:
                literals.append(value)
        return operands, literals

    def is_operand(self, value: Any) -> bool:
        return isinstance(value, OperandReference) or (
            isinstance(value, str) and (value in self.operands or value in self.constants or value in self.unknown)
        )

    def add_operand(self, statement: Statement, operands: dict[str, MLOperand], name: str, value: Any) -> None:
        if value is None or value == "":
            return
        if isinstance(value, int) and not isinstance(value, bool):
            value = self.numbered(statement, value)
        if not isinstance(value, str | OperandReference):
            raise FileError(statement.location, f"{camel(name)} must be an operand", got=repr(value)[:60])
        operand = self.operand(_reference(value, statement))
        if operands.setdefault(name, operand) is not operand:
            raise FileError(statement.location, f"{camel(name)} is given twice, as different operands")

    def numbered(self, statement: Statement, number: int) -> str:
        """Return the name of the operand with a number: inputs and constants sorted by name, then results in order."""
        name = f"operand_{number}"
        if name in self.operands or name in self.constants:
            return name
        count = len(self.declared) + len(self.results)
        if not 0 <= number < count:
            raise FileError(
                statement.location, "there is no operand of this number", got=str(number), allowed=f"0..{count - 1}"
            )
        return self.declared[number] if number < len(self.declared) else self.results[number - len(self.declared)]

    def value(self, statement: Statement, form: CallForm, name: str, value: Any) -> Any:
        if name in ("data_type", "output_data_type"):
            return self.data_type(value, statement)
        if isinstance(value, list):
            return [self.value(statement, form, name, v) for v in cast("list[Any]", value)]
        if isinstance(value, DynamicDimension):
            return self.size(value, statement.location)
        if isinstance(value, OperandReference):
            return value.name
        if isinstance(value, str) and value in SPECIAL_NUMBERS and name in form.annotations and form.is_number(name):
            return SPECIAL_NUMBERS[value]
        return value

    def data_type(self, value: Any, statement: Statement) -> str:
        text = value.name if isinstance(value, OperandReference) else value
        plain = text.lower() if isinstance(text, str) else ""
        found = SHORT_TYPES.get(plain, plain)
        if found not in SHORT_TYPES.values():
            raise FileError(statement.location, "no such data type", got=repr(text), allowed=", ".join(SHORT_TYPES.values()))
        return found

    def check(
        self, statement: Statement, form: CallForm, operands: Mapping[str, MLOperand], options: Mapping[str, Any]
    ) -> None:
        known = {*form.annotations, "label"}
        for name in options:
            if name not in known:
                names = tuple(camel(n) for n in (*form.operands, *form.annotations))
                raise FileError(
                    statement.location,
                    f"{form.name} has no option '{name}'",
                    allowed=", ".join(names) or "none",
                    hint=nearest(name, names),
                )
        self.check_given(statement, form, {n.partition("[")[0] for n in operands} | set(options), form.required)

    def check_given(self, statement: Statement, form: CallForm, given: set[str], names: tuple[str, ...]) -> None:
        """Refuse a call without an operand or argument that is required."""
        missing = [camel(n) for n in form.required if n in names and n not in given]
        if form.name == "cast" and "dataType" in missing:
            missing = ["the type ('to')"]
        if missing:
            hint = "Files that pywebnn 0.5 saved are known to lack it." if self.document.version == 2 else ""
            raise FileError(statement.location, f"{form.name} lacks {', '.join(missing)}", hint=hint)

    def call(
        self, statement: Statement, form: CallForm, operands: dict[str, MLOperand], options: dict[str, Any]
    ) -> list[MLOperand]:
        if form.name in ARITHMETIC:
            operands = self.same_type(statement, operands)
        label = options.pop("label", "") or statement.results[0]
        options["label"] = "" if isinstance(label, str) and GENERATED.fullmatch(label) else label
        arguments: dict[str, Any] = {form.operands[0]: list(operands.values())} if form.variadic else dict(operands)
        owner: Any = self.builder.ext if form.name.startswith("x.") else self.builder
        try:
            result = getattr(owner, form.method)(**arguments, **options)
        except WebNNError as error:
            raise _at(statement.location, error) from error
        return cast("list[MLOperand]", result) if isinstance(result, list) else [result]

    def same_type(self, statement: Statement, operands: dict[str, MLOperand]) -> dict[str, MLOperand]:
        """Give a scalar constant the other operand's type if this holds its number exactly, as torch2webnn expects."""
        if len(operands) != 2:
            return operands
        names = list(operands)
        for own, other in (names, names[::-1]):
            wanted = operands[other].data_type
            constant = self.made.get(operands[own])
            if operands[own].data_type == wanted or constant is None or constant.declaration.shape:
                continue
            if not isinstance(constant.init, ScalarFill) or not holds(wanted, constant.init.value):
                continue
            log.warning("%s: the constant '%s' is read as %s", statement.location, constant.declaration.name, wanted)
            return operands | {own: self.constant(constant, wanted)}
        return operands


def used_names(document: Document) -> set[str]:
    """Return the names that statements and outputs use."""
    found = {output.operand.name for output in document.outputs}

    def collect(value: Any) -> None:
        if isinstance(value, OperandReference):
            found.add(value.name)
        elif isinstance(value, str):
            found.add(value)
        elif isinstance(value, int) and not isinstance(value, bool):
            found.update(numbers.get(value, ()))
        elif isinstance(value, list | tuple):
            for item in cast("list[Any]", value):
                collect(item)

    inputs = sorted(d.name for d in document.inputs)
    numbers = {i: (name,) for i, name in enumerate(inputs)}
    for statement in document.statements:
        collect(statement.arguments)
        for value in statement.options.values():
            collect(value)
    return found


def _reference(value: Any, statement: Statement) -> OperandReference:
    return value if isinstance(value, OperandReference) else OperandReference(value, statement.location)


def _is_absent(form: CallForm, name: str, value: Any) -> bool:
    if value is None or (value == [] and name in EMPTY_IS_ABSENT):
        return True
    return value == "" and name in form.annotations and form.is_choice(name)


def _at(location: Location, error: Exception) -> Exception:
    """Return an error of the builder with the place of the statement."""
    if isinstance(error, NotSupportedError):
        return NotSupportedError(str(error), operator=str(location))
    return FileError(location, str(error))
