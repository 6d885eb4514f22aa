"""Element-wise formulas, the parts of element-wise kernels, fused kernels and epilogues."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property, lru_cache

from .element import ELEMENTS, PAIRS
from .notation import term
from .spec import UniformType
from .templates import library_functions
from .terms import OPAQUE_ZERO, ROUNDED, FunctionCall, Hidden, Rounded, Symbol, Term, Uniform

_KEPT = 4096
"""Formulas with given operands that are kept: a network repeats the few that it has in every layer."""


@dataclass(frozen=True)
class Formula:
    """The computation of one element-wise operator on given data types. `formula` parses it from WGSL's notation.

    Attributes:
        value: the result as a term over the names of operands and uniforms.
        operands: the names of the operands, in order.
        uniforms: the scalar options as (name, type, value). They are not part of the shader's text, so operators that differ
            only in them share a pipeline.
        lib: the files of `shaders/lib/math` that it needs.
    """

    value: Term
    operands: tuple[str, ...]
    uniforms: tuple[tuple[str, UniformType, int | float], ...] = ()
    lib: tuple[str, ...] = ()

    def applied(self, operands: Sequence[Term], prefix: str) -> Term:
        """Return the value for given operands, of a kernel in whose uniforms its own have names with a prefix."""
        own = [(name, Uniform(prefix + name)) for name, _, _ in self.uniforms]
        return _substituted(self.value, (*zip(self.operands, operands, strict=True), *own))


@lru_cache(_KEPT)
def _substituted(value: Term, terms: tuple[tuple[str, Term], ...]) -> Term:
    return value.substituted(dict(terms))


def formula(
    notation: str,
    operands: tuple[str, ...] = ("x",),
    uniforms: tuple[tuple[str, UniformType, int | float], ...] = (),
    *,
    type_: str = "",
    lib: tuple[str, ...] = (),
) -> Formula:
    """Return the formula that a text stands for.

    Args:
        notation: an expression of WGSL (`kernels/notation.py`) of the operands' and uniforms' names.
        operands: names of the operands, in order.
        uniforms: its scalar options as (name, type, value).
        type_: the WGSL type that `T` stands for.
        lib: files of `shaders/lib/math` that it needs besides those of the functions that it calls.

    Example:
        >>> formula("max_f32(x, low)", uniforms=(("low", "f32", 0.0),))
        Formula(value='max_f32(x, low)', operands=('x',), uniforms=(('low', 'f32', 0.0),), lib=('max',))
    """
    value, called = _parsed(notation, type_)
    return Formula(value, operands, uniforms, tuple(dict.fromkeys((*lib, *called))))


@cache
def _parsed(notation: str, type_: str) -> tuple[Term, tuple[str, ...]]:
    """Return the term of a text, and the library files of the functions that it calls."""
    value = term(notation, type_)
    return value, library_of(value)


def library_of(*values: Term) -> tuple[str, ...]:
    """Return the files of `shaders/lib/math` whose functions terms call, in the order in which they are called.

    >>> library_of(term("log_f32(t) + exp_f32(abs(x))"), term("exp_f32(x)"))
    ('log', 'exp')
    """
    files = library_functions()
    called = (each.function for value in values for each in value.walk() if isinstance(each, FunctionCall))
    return tuple(dict.fromkeys(files[function] for function in called if function in files))


@dataclass(frozen=True)
class LetStatement:
    """One statement of an expression: `let name: type = code;`."""

    name: str
    type: str
    code: Term


@dataclass(frozen=True, kw_only=True)
class Expression:
    """A function of some elements. Part of a kernel's key.

    Attributes:
        args: its arguments as (name, WGSL type).
        steps: its statements, in order.
        result: name of the step or argument that is its value.
        type: WGSL type of the value.
        lib: files of `shaders/lib/math` that it calls.
        features: WebGPU features that the WGSL types of its arguments and steps need. float16 needs none, computed in f32.
        others: further steps that are values, as (name, WGSL type), if it has several.
    """

    args: tuple[tuple[str, str], ...]
    steps: tuple[LetStatement, ...]
    result: str
    type: str
    lib: tuple[str, ...]
    features: tuple[str, ...] = ()
    others: tuple[tuple[str, str], ...] = ()

    @property
    def results(self) -> tuple[tuple[str, str], ...]:
        """All its values, as (name, WGSL type)."""
        return ((self.result, self.type), *self.others)

    def __hash__(self) -> int:
        return self._hash

    @cached_property
    def _hash(self) -> int:
        # Planning looks kernels up many times, so the trees are hashed once.
        return hash((self.args, self.steps, self.result, self.type, self.others))

    def __getstate__(self) -> dict[str, object]:
        # Another process hashes texts otherwise.
        return {name: value for name, value in vars(self).items() if name != "_hash"}


class ExpressionBuilder:
    """A collector of the formulas of a chain of operators, which makes one `Expression` with its uniforms.

    Fusion changes no number, but compilers may simplify across operators: x - x to 0, (x + y) - x to y, also if x is infinite
    or the sum was rounded. The builder therefore combines a float result with a zero by exclusive or before the next operator
    reads it. Compilers do not know that the uniform is zero. An operand that one operator reads twice is hidden in the same
    way.
    """

    def __init__(self, step: str = "y") -> None:
        """Create a builder of steps whose names begin with `y` or `h`. Two expressions of a kernel differ in them."""
        self._step = step
        self._opaque = 0
        self._args: list[tuple[str, str]] = []
        self._steps: list[LetStatement] = []
        self._lib: list[str] = []
        self._types: dict[str, str] = {}
        self._numbers: dict[str, Term] = {}
        self.uniforms: list[tuple[str, UniformType, int | float]] = []

    def argument(self, data_type: str) -> str:
        """Add an argument of a data type and return its name."""
        name = f"x{len(self._args)}"
        self._args.append((name, ELEMENTS[data_type].value))
        self._types[name] = data_type
        return name

    def number(self, data_type: str, value: int) -> str:
        """Add a whole number in the uniforms and return its name.

        Args:
            data_type: the element kind of the number: int32, int64 or a pair that stands in for int64.
            value: the number, of 32 bits.
        """
        name = f"number{len(self._numbers)}"
        low = Uniform(name)
        self.uniforms.append((name, "i32", value))
        kind = ELEMENTS[data_type].value
        if kind in PAIRS:
            high = f"{name}_high"
            self.uniforms.append((high, "i32", -1 if value < 0 else 0))
            self._numbers[name] = FunctionCall(kind, tuple(FunctionCall("u32", (Uniform(each),)) for each in (name, high)))
        else:
            self._numbers[name] = low if kind == "i32" else FunctionCall(kind, (low,))
        self._types[name] = data_type
        return name

    def apply(self, formula: Formula, operands: Sequence[str], data_type: str) -> str:
        """Add one operator whose result has `data_type` and return the result's name.

        The result is rounded to its data type before others read it, as if it had been stored: fusing changes no number.
        """
        name = f"{self._step}{len(self._steps)}"
        self.uniforms.extend((f"{name}_{field}", type_, value) for field, type_, value in formula.uniforms)
        given = [self._numbers.get(operand, Symbol(operand)) for operand in operands]
        for i, operand in enumerate(operands):
            if operand in operands[:i] and self._is_float(operand):
                given[i] = self._hidden(given[i])
        code = formula.applied(given, f"{name}_")
        code = Rounded(code, data_type) if data_type in ROUNDED else code
        self._steps.append(LetStatement(name, ELEMENTS[data_type].value, code))
        self._lib += [file for file in formula.lib if file not in self._lib]
        self._types[name] = data_type
        return name

    def finish(self, result: str, *others: str) -> Expression:
        """Return the expression that yields `result`, and `others`. To be called once, before `uniforms` is read."""
        read = {each.name for step in self._steps for each in step.code.walk() if isinstance(each, Symbol)}
        last = {result, *others} - (read if others else set())
        steps = [replace(s, code=self._last(s.code) if s.name in last else self._inner(s)) for s in self._steps]
        halves = any(_is_half(each) for step in steps for each in step.code.walk())
        elements = [ELEMENTS[data_type] for data_type in self._types.values()]
        if self._opaque:
            self.uniforms.append((OPAQUE_ZERO, "u32", 0))
        return Expression(
            args=tuple(self._args),
            steps=tuple(steps),
            result=result,
            type=ELEMENTS[self._types[result]].value,
            lib=tuple(sorted([*self._lib, "round_float16"] if halves else self._lib)),
            features=tuple(sorted({e.feature for e in elements if e.feature and e.value == e.word})),
            others=tuple((other, ELEMENTS[self._types[other]].value) for other in others),
        )

    def _inner(self, step: LetStatement) -> Term:
        """Return the code of a step that others read."""
        return self._hidden(step.code) if self._is_float(step.name) else step.code

    @staticmethod
    def _last(code: Term) -> Term:
        """Return the code of the step that is the result: storing rounds it to float16 anyhow."""
        return code.value if isinstance(code, Rounded) and _is_half(code) else code

    def _is_float(self, name: str) -> bool:
        return ELEMENTS[self._types[name]].value == "f32"

    def _hidden(self, value: Term) -> Hidden:
        self._opaque += 1
        return Hidden(value, self._opaque)


def _is_half(value: Term) -> bool:
    return isinstance(value, Rounded) and value.data_type == "float16"


def hide_last(steps: tuple[LetStatement, ...]) -> tuple[LetStatement, ...]:
    """Return the float steps of a finished expression in the form for one more step behind the last of them."""
    if not steps:
        return steps
    number = 1 + sum(isinstance(each, Hidden) for step in steps for each in step.code.walk())
    return (*steps[:-1], replace(steps[-1], code=Hidden(steps[-1].code, number)))
