"""How calls may be written: `with_options` and the camelCase names of attributes."""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np
import pytest

from webnn_wgpu.api.options import camel_attribute, with_options
from webnn_wgpu.core.errors import MLTypeError


class Machine:
    """A class with methods as the API's classes have them."""

    speed = 3

    @with_options(form="new_shape")
    def turn(
        self, input: Any, new_shape: Any, axis: int = 1, *, keep_dimensions: bool = False, scale: Any = None, label: str = ""
    ) -> tuple[Any, ...]:
        """Return the arguments."""
        return input, new_shape, axis, keep_dimensions, scale, label

    def not_(self) -> str:
        return "not"

    def is_nan(self) -> str:
        return "nan"

    def __getattr__(self, name: str) -> Any:
        return camel_attribute(self, name)


DEFAULTS = ("x", [1], 1, False, None, "")


@pytest.fixture
def machine() -> Any:
    return Machine()


@pytest.mark.parametrize(
    ("args", "kwargs", "changed"),
    [
        (("x", [1]), {}, {}),
        (("x",), {"new_shape": [1]}, {}),
        ((), {"newShape": [1], "input": "x"}, {}),
        (("x",), {"form": [1]}, {}),
        (("x", [1], 2), {}, {2: 2}),
        (("x", [1]), {"keep_dimensions": True}, {3: True}),
        (("x", [1]), {"keepDimensions": True}, {3: True}),
        (("x", [1], {"keepDimensions": True, "axis": 2}), {}, {2: 2, 3: True}),
        (("x", [1], 2, {"keep_dimensions": True}), {}, {2: 2, 3: True}),
        (("x", [1]), {"options": {"keepDimensions": True}}, {3: True}),
        (("x", [1]), {"options": {"keepDimensions": True}, "label": "l"}, {3: True, 5: "l"}),
        (("x", [1], {"scale": (1, 2)}), {"scale": [1, 2]}, {4: (1, 2)}),
        (("x", [1], {"keep_dimensions": None}), {"keepDimensions": True}, {3: True}),
        (("x", [1], {"keep_dimensions": True}), {"keepDimensions": None}, {3: True}),
        (("x", [1], {}), {}, {}),
        (("x", [1]), {"options": None, "axis": None, "label": None, "keep_dimensions": None}, {}),
    ],
)
def test_accepted(machine: Any, args: tuple[Any, ...], kwargs: dict[str, Any], changed: dict[int, Any]) -> None:
    assert machine.turn(*args, **kwargs) == tuple(changed.get(i, v) for i, v in enumerate(DEFAULTS))


USAGE = "turn(input, new_shape, axis=, *, keep_dimensions=, scale=, label=)"


@pytest.mark.parametrize(
    ("args", "kwargs", "message"),
    [
        (
            ("x", [1], {"keepDim": True}),
            {"label": "l"},
            "turn('l'): unknown option 'keepDim'; allowed: axis, keep_dimensions, scale, label. Did you mean keep_dimensions?",
        ),
        # Arguments that are not options belong in their places, not in the mapping.
        (("x", {"newShape": [1]}), {}, "turn: unknown option 'newShape'; allowed: axis, keep_dimensions, scale, label"),
        (("x", [1], {3: 4}), {}, "turn: unknown option '3'; allowed: axis, keep_dimensions, scale, label"),
        (
            ("x", [1]),
            {"bias": 0},
            "turn: unknown option 'bias'; allowed: input, new_shape, axis, keep_dimensions, scale, label",
        ),
        (("x", [1], {"axis": 2}), {"axis": 1}, "turn: axis is given twice; got 1 and 2"),
        (
            ("x", [1]),
            {"keepDimensions": True, "keep_dimensions": False},
            "turn: keep_dimensions is given twice; got True and False",
        ),
        (("x", [1], 2), {"axis": 2}, f"turn: multiple values for argument 'axis'; allowed: {USAGE}"),
        (("x",), {}, f"turn: missing a required argument: 'new_shape'; allowed: {USAGE}"),
        (("x", [1], 2, 3), {"label": "l"}, f"turn('l'): too many positional arguments; allowed: {USAGE}"),
        (("x", [1]), {"options": 5}, "turn: options must be a mapping; got 5 (int)"),
        (("x", [1]), {"label": 5}, "turn: label must be a string of Unicode characters; got 5"),
    ],
)
def test_refused(machine: Any, args: tuple[Any, ...], kwargs: dict[str, Any], message: str) -> None:
    with pytest.raises(MLTypeError) as raised:
        machine.turn(*args, **kwargs)
    assert str(raised.value) == message


def test_equal_arrays_may_be_given_twice(machine: Any) -> None:
    assert machine.turn("x", [1], {"scale": np.array([1, 2])}, scale=np.array([1, 2]))[0] == "x"
    with pytest.raises(MLTypeError, match="scale is given twice"):
        machine.turn("x", [1], {"scale": np.array([1, 2])}, scale=np.array([1, 3]))


def test_errors_of_the_method_itself_pass_through() -> None:
    class Broken:
        @with_options()
        def run(self, input: int) -> int:
            raise TypeError("inside")

    with pytest.raises(TypeError, match=r"^inside$") as raised:
        Broken().run(1)
    assert not isinstance(raised.value, MLTypeError)


def test_the_method_keeps_its_face() -> None:
    assert list(inspect.signature(Machine.turn).parameters)[:3] == ["self", "input", "new_shape"]
    assert Machine.turn.__doc__ == "Return the arguments."
    assert Machine.turn.__name__ == "turn"


def test_camel_case_attributes(machine: Any) -> None:
    assert machine.isNaN() == "nan"
    assert getattr(machine, "not")() == "not"
    assert not hasattr(machine, "_notThere")
    assert not hasattr(machine, "speedy")
    with pytest.raises(AttributeError, match=r"^'Machine' object has no attribute 'isNan2'\. Did you mean is_nan\?$"):
        _ = machine.isNan2
