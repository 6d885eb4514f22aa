"""Aliases, outputs with the memory of an input: the requirements of `MLGraphBuilder.build`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ..ir.graph import Node
from ..ops import OPS
from .arrays import Fail

_UPDATES = {op.name: op.python_name for op in OPS.values() if op.movement and op.movement.updates}
"""The operators with results that can share the first operand's memory, and their methods."""


def check_aliases(
    aliases: Mapping[str, str],
    outputs: Mapping[str, int],
    inputs: Mapping[str, int],
    nodes: Sequence[Node],
    fail: Fail,
) -> None:
    """Check that every alias is possible.

    Args:
        aliases: names of inputs by names of outputs.
        outputs: values by name.
        inputs: the inputs that outputs depend on.
        nodes: the nodes that outputs depend on.
        fail: returns the error.

    Raises:
        MLTypeError: a name is unknown, an output is not the input's update, or an input or output is needed twice.
    """
    for output, source in aliases.items():
        for kind, name, known in (("output", output, outputs), ("input", source, inputs)):
            if name not in known:
                raise fail(f"aliases must name an {kind}", got=repr(name), allowed=", ".join(known))
        maker = next((n for n in nodes if outputs[output] in n.outputs), None)
        # The number of reads: the update must not read the input also as its new rows or position.
        reads = sum(n.operands.count(inputs[source]) for n in nodes)
        if maker is None or maker.op not in _UPDATES or maker.inputs[0] != inputs[source]:
            methods = " or ".join(_UPDATES.values())
            raise fail(
                f"an output that is an alias must be the result of {methods}",
                got=f"'{output}'",
                allowed=f"{methods} of '{source}'",
            )
        if reads > 1:
            raise fail("an input that is updated in place must have no other reader", got=f"'{source}'")
        if list(outputs.values()).count(outputs[output]) > 1:
            raise fail("an output that is an alias must stand under one name", got=f"'{output}'")
