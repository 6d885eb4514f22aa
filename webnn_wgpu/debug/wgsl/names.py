"""The meanings of a module's names: types, constants, functions."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

import numpy as np

from ...core.errors import MLTypeError
from . import syntax
from .syntax import CallExpression, Expression, Field, Function, Module, Name, attribute
from .types import SCALARS, ArrayType, Numeric, PointerType, StructType, TextureType, Type, struct_type
from .values import Fault, Value, concrete, converted

Evaluate = Callable[[Expression], Value]
Meaning: TypeAlias = Function | Callable[[list[Value]], Value] | str

_LETTERS = {"i": "i32", "u": "u32", "f": "f32", "h": "f16"}
VECTORS = {f"vec{n}": (n,) for n in (2, 3, 4)}
MATRICES = {f"mat{c}x{r}": (c, r) for c in (2, 3, 4) for r in (2, 3, 4)}
SHAPES: dict[str, tuple[int, ...]] = {**VECTORS, **MATRICES}
SHORT = {f"{name}{letter}": Numeric(s, SHAPES[name]) for name in SHAPES for letter, s in _LETTERS.items()}


class Names:
    """The meaning of a module's names.

    Args:
        module: the module.
        overrides: values of `override` declarations by name or number.
    """

    def __init__(self, module: Module, overrides: Mapping[str, Any]) -> None:
        self.module = module
        self._overrides = dict(overrides)
        self._types: dict[Name, Type] = {}
        self._structs: dict[str, StructType] = {}
        self._values: dict[str, Value] = {}
        self.callees: dict[CallExpression, Meaning] = {}
        """The callee of each call that was evaluated."""

    def function(self, name: str) -> Function | None:
        """Return a function of the module."""
        found = self.module.declarations.get(name)
        return found if isinstance(found, Function) else None

    def constant(self, name: str, evaluate: Evaluate) -> Value | None:
        """Return the value of a `const` or `override` of the module, or None for other names."""
        if name in self._values:
            return self._values[name]
        found = self.module.declarations.get(name)
        if not isinstance(found, syntax.Global) or found.declaration.kind == "var":
            return None
        declaration, value = found.declaration, None
        if declaration.kind == "override":
            number = attribute(found, "id")
            key = name if number is None else str(evaluate(number.arguments[0]))
            value = self._overrides.get(key, self._overrides.get(name))
            value = np.array([value]) if isinstance(value, bool) else value
        if value is None:
            if declaration.value is None:
                raise Fault(f"the override {name} has no value; give it one in `constants`")
            value = evaluate(declaration.value)
        if declaration.type is not None:
            value = converted(value, self.type(declaration.type, evaluate))
        elif declaration.kind == "override":
            value = concrete(value)
        self._values[name] = value
        return value

    def known_type(self, name: Name, evaluate: Evaluate) -> Type | None:
        """Return the type of a name, or None if the name is no type."""
        declared = self.module.declarations.get(name.name)
        if isinstance(declared, syntax.Alias | syntax.Structure) or (
            declared is None and (name.name in SCALARS or name.name in SHORT or (name.name in _GENERATORS and name.arguments))
        ):
            return self.type(name, evaluate)
        return None

    def type(self, name: Name, evaluate: Evaluate) -> Type:
        """Return the type that a name means.

        Raises:
            MLTypeError: none.
        """
        if name not in self._types:
            self._types[name] = self._find(name, evaluate)
        return self._types[name]

    def _find(self, name: Name, evaluate: Evaluate) -> Type:
        declared = self.module.declarations.get(name.name)
        if isinstance(declared, syntax.Alias):
            return self.type(declared.type, evaluate)
        if isinstance(declared, syntax.Structure):
            return self._struct(declared, evaluate)
        if name.name in SCALARS and name.name != "f64":
            return Numeric(name.name)
        if name.name in SHORT:
            return SHORT[name.name]
        kind, arguments = name.name, name.arguments
        if kind.startswith("texture_"):
            return TextureType(str(name))
        if kind == "ptr":
            return PointerType(str(name))
        if kind in _GENERATORS and arguments and isinstance(arguments[0], Name):
            inner = self.type(arguments[0], evaluate)
            if kind == "array":
                return ArrayType(inner, self._count(arguments[1], evaluate) if len(arguments) > 1 else None)
            if isinstance(inner, Numeric) and not inner.shape:
                return Numeric(inner.scalar, atomic=True) if kind == "atomic" else Numeric(inner.scalar, SHAPES[kind])
        raise MLTypeError(
            "the interpreter knows no such type", operator="interpret", got=f"{name} at line {name.line}, column {name.column}"
        )

    def _count(self, expression: Expression, evaluate: Evaluate) -> int:
        return int(np.asarray(evaluate(expression)).reshape(-1)[0])

    def _struct(self, declared: syntax.Structure, evaluate: Evaluate) -> StructType:
        if declared.name not in self._structs:

            def said(member: Field, name: str) -> int | None:
                found = attribute(member, name)
                return self._count(found.arguments[0], evaluate) if found else None

            members = [(m.name, self.type(m.type, evaluate), said(m, "align"), said(m, "size")) for m in declared.members]
            self._structs[declared.name] = struct_type(declared.name, members)
        return self._structs[declared.name]


_GENERATORS = frozenset(("array", "atomic", *SHAPES))
