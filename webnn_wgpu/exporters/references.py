"""`with_references`: a document whose statements both forms of graph files can have."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, cast

from webnn_wgpu.api.signatures import CallForm, camel, find
from webnn_wgpu.formats.document import Document, OperandReference, Output, Statement, TensorDeclaration


def with_references(document: Document) -> Document:
    """Return a document with the same meaning in the form that the writers expect.

    Operands are references, all other arguments are options, another name of an operand is the result of `identity`, and inputs
    have their public names.
    """
    return _Normalization(document).document()


class _Normalization:
    """One walk over a document."""

    def __init__(self, source: Document) -> None:
        self.source = source
        declared = [d.name for d in source.inputs], [c.declaration.name for c in source.constants]
        self.known = {*declared[0], *declared[1]}
        self.numbered = [*sorted(declared[0]), *sorted(declared[1])]
        taken = self.known.union(*(s.results for s in source.statements))
        self.public = {d.name: d.binding for d in source.inputs if d.binding and d.binding not in taken}

    def document(self) -> Document:
        source = self.source
        return replace(
            source,
            inputs=tuple(map(self.input, source.inputs)),
            statements=tuple(map(self.statement, source.statements)),
            outputs=tuple(Output(o.name, self.reference(o.operand)) for o in source.outputs),
        )

    def input(self, declaration: TensorDeclaration) -> TensorDeclaration:
        return replace(declaration, name=self.public.get(declaration.name, declaration.name), binding="")

    def reference(self, value: OperandReference) -> OperandReference:
        # A statement may assign the name of an input anew.
        return replace(value, name=self.public.get(value.name, value.name))

    def statement(self, statement: Statement) -> Statement:
        form = find(statement.operator) if statement.operator else None
        operands: list[OperandReference] = []
        literals: list[Any] = []
        for value in statement.arguments:
            items = cast("list[Any]", value) if isinstance(value, list) else [value]
            if items and all(self.is_operand(item) for item in items):
                operands += [self.as_operand(item, statement) for item in items]
            else:
                literals.append(self.plain(value))
        options = {name: self.option(form, name, value, statement) for name, value in statement.options.items()}
        if form is not None:
            given = {form.option(name) for name in options}
            free = [camel(name) for name in form.arguments if name not in given]
            options |= dict(zip(free, literals, strict=False))
        for name in statement.results:
            self.public.pop(name, None)
        self.known.update(statement.results)
        self.numbered += statement.results
        return replace(statement, operator=statement.operator or "identity", arguments=tuple(operands), options=options)

    def is_operand(self, value: Any) -> bool:
        return isinstance(value, OperandReference) or (isinstance(value, str) and value in self.known)

    def as_operand(self, value: Any, statement: Statement) -> OperandReference:
        if isinstance(value, int):
            name = f"operand_{value}"
            value = name if name in self.known or value >= len(self.numbered) else self.numbered[value]
        return self.reference(value if isinstance(value, OperandReference) else OperandReference(value, statement.location))

    def option(self, form: CallForm | None, name: str, value: Any, statement: Statement) -> Any:
        is_operand = form is not None and form.option(name) in form.operands
        if is_operand and isinstance(value, str | int | OperandReference) and value != "":
            return self.as_operand(value, statement)
        return self.plain(value)

    def plain(self, value: Any) -> Any:
        """Return a value in which identifiers that name no operand are strings."""
        if isinstance(value, OperandReference):
            return value.name
        return [self.plain(v) for v in cast("list[Any]", value)] if isinstance(value, list) else value
