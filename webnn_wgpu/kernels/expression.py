"""Element-wise formulas as WGSL: what single element-wise kernels, fused chains and epilogues are made of."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from .element import ELEMENTS
from .spec import UniformType


@dataclass(frozen=True)
class Formula:
    """The WGSL of one element-wise operator on given data types.

    Attributes:
        code: an expression; `{0}`, `{1}` stand for the operands, `{name}` for the uniforms.
        lib: files of `shaders/lib/math` that it calls.
        uniforms: its scalar options as (name, type, value): they are not part of the shader's text, so that operators that
            differ only in them share a pipeline.
    """

    code: str
    lib: tuple[str, ...] = ()
    uniforms: tuple[tuple[str, UniformType, int | float], ...] = ()


@dataclass(frozen=True)
class Step:
    """One statement of an expression: `let name: type = code;`."""

    name: str
    type: str
    code: str


@dataclass(frozen=True)
class Expression:
    """A function of some elements. Part of a kernel's key.

    Attributes:
        args: its arguments as (name, WGSL type).
        steps: its statements, in order.
        result: name of the step or argument that is its value.
        type: WGSL type of the value.
        lib: files of `shaders/lib/math` that it calls.
        features: WebGPU features that the data types of its arguments and steps need.
    """

    args: tuple[tuple[str, str], ...]
    steps: tuple[Step, ...]
    result: str
    type: str
    lib: tuple[str, ...]
    features: tuple[str, ...] = ()

    def with_halves(self, *, declared: bool) -> Expression:
        """Return the same function without the type f16: rounding goes through the bits.

        Args:
            declared: whether the kernel has the library file `half` already.
        """
        steps = tuple(replace(s, code=s.code.replace(_F16_ROUNDING, "half_rounded((")) for s in self.steps)
        lib = self.lib if declared or steps == self.steps else (*self.lib, "half")
        return replace(self, steps=steps, lib=lib, features=tuple(f for f in self.features if f != ELEMENTS["float16"].feature))


OPAQUE_ZERO = "opaque_zero"
"""Uniform that is always 0, which compilers do not know."""


class ExpressionBuilder:
    """Collects the formulas of a chain of operators into one `Expression` and its uniforms.

    Fusing changes no number. Compilers may simplify across operators, though: x - x to 0, (x + y) - x to y, also where x is
    infinite or the sum was rounded. So a float result goes through an exclusive or with a zero that compilers cannot know
    before the next operator reads it, and so does an operand that one operator reads twice.
    """

    def __init__(self) -> None:
        self._opaque = 0
        self._args: list[tuple[str, str]] = []
        self._steps: list[Step] = []
        self._lib: list[str] = []
        self._types: dict[str, str] = {}
        self.uniforms: list[tuple[str, UniformType, int | float]] = []

    def argument(self, data_type: str) -> str:
        """Add an argument of a data type and return its name."""
        name = f"x{len(self._args)}"
        self._args.append((name, ELEMENTS[data_type].value))
        self._types[name] = data_type
        return name

    def apply(self, formula: Formula, operands: Sequence[str], data_type: str) -> str:
        """Add one operator whose result has `data_type` and return the result's name.

        The result is rounded to its data type at once, as if it had been stored: fusing changes no number.
        """
        name = f"y{len(self._steps)}"
        fields = {field: f"params.{name}_{field}" for field, _, _ in formula.uniforms}
        self.uniforms.extend((f"{name}_{field}", type_, value) for field, type_, value in formula.uniforms)
        given = [self._hidden(o) if o in operands[:i] and self._is_float(o) else o for i, o in enumerate(operands)]
        code = formula.code.format(*given, **fields)
        self._steps.append(Step(name, ELEMENTS[data_type].value, _ROUND.get(data_type, "{}").format(code)))
        self._lib += [file for file in formula.lib if file not in self._lib]
        self._types[name] = data_type
        return name

    def finish(self, result: str) -> Expression:
        """Return the expression that yields `result`. To be called once, before `uniforms` is read."""
        steps = [
            replace(s, code=self._hidden(s.code)) if s.name != result and self._is_float(s.name) else s for s in self._steps
        ]
        if self._opaque:
            self.uniforms.append((OPAQUE_ZERO, "u32", 0))
        return Expression(
            tuple(self._args),
            tuple(steps),
            result,
            ELEMENTS[self._types[result]].value,
            tuple(sorted(self._lib)),
            tuple(sorted({ELEMENTS[data_type].feature for data_type in self._types.values()} - {""})),
        )

    def _is_float(self, name: str) -> bool:
        return ELEMENTS[self._types[name]].value == "f32"

    def _hidden(self, code: str) -> str:
        self._opaque += 1
        return _hidden(code, self._opaque)


def hide_last(steps: tuple[Step, ...]) -> tuple[Step, ...]:
    """Return the float steps of a finished expression as they are where one more step reads the last of them."""
    if not steps:
        return steps
    number = 1 + sum(step.code.count(OPAQUE_ZERO) for step in steps)
    return (*steps[:-1], replace(steps[-1], code=_hidden(steps[-1].code, number)))


def _hidden(code: str, number: int) -> str:
    # Every use shifts the zero otherwise: the same zero twice would cancel out again.
    return f"bitcast<f32>(bitcast<u32>({code}) ^ (params.{OPAQUE_ZERO} << {number % 32}u))"


_F16_ROUNDING = "f32(f16("
_ROUND = {"float16": _F16_ROUNDING + "{}))", "int8": "extractBits({}, 0u, 8u)", "uint8": "({} & 0xffu)"}
