"""Element-wise formulas as WGSL: what single element-wise kernels, fused chains and epilogues are made of."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

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
    """A function of some elements: arguments (name, WGSL type), steps, and the name of the result. Part of a kernel's key."""

    args: tuple[tuple[str, str], ...]
    steps: tuple[Step, ...]
    result: str
    type: str
    lib: tuple[str, ...]


class ExpressionBuilder:
    """Collects the formulas of a chain of operators into one `Expression` and its uniforms."""

    def __init__(self) -> None:
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
        self.uniforms += [(f"{name}_{field}", type_, value) for field, type_, value in formula.uniforms]
        code = formula.code.format(*operands, **fields)
        self._steps.append(Step(name, ELEMENTS[data_type].value, _ROUND.get(data_type, "{}").format(code)))
        self._lib += [file for file in formula.lib if file not in self._lib]
        self._types[name] = data_type
        return name

    def finish(self, result: str) -> Expression:
        """Return the expression that yields `result`."""
        data_type = self._types[result]
        return Expression(
            tuple(self._args), tuple(self._steps), result, ELEMENTS[data_type].value, tuple(sorted(self._lib))
        )


_ROUND = {"float16": "f32(f16({}))", "int8": "extractBits({}, 0u, 8u)", "uint8": "({} & 0xffu)"}
