"""Aliases, outputs with the memory of an input: the requirements of `MLGraphBuilder.build`."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from ..ir.types import TensorType
from .arrays import Fail


def check_aliases(
    aliases: Mapping[str, str],
    outputs: Mapping[str, int],
    inputs: Mapping[str, int],
    type_of: Callable[[int], TensorType],
    fail: Fail,
) -> None:
    """Check that every alias is possible.

    Args:
        aliases: names of inputs by names of outputs.
        outputs: values by name.
        inputs: the inputs that outputs depend on.
        type_of: returns the type of a value.
        fail: returns the error.

    Raises:
        MLTypeError: a name is unknown, the types of an output and its input differ, or an input or output is needed twice.
    """
    for output, source in aliases.items():
        for kind, name, known in (("output", output, outputs), ("input", source, inputs)):
            if name not in known:
                raise fail(f"aliases must name an {kind}", got=repr(name), allowed=", ".join(known))
        got, allowed = type_of(outputs[output]), type_of(inputs[source])
        if got != allowed:
            raise fail("an output that is an alias must have its input's type", got=f"'{output}' {got}", allowed=str(allowed))
        if list(aliases.values()).count(source) > 1:
            raise fail("an input must have one alias at most", got=f"'{source}'")
        if list(outputs.values()).count(outputs[output]) > 1:
            raise fail("an output that is an alias must have one name", got=f"'{output}'")
