"""Recurrent networks on the backend. Steps are unrolled in the graph, which the planner compiles once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from keras.src import tree

from . import core
from .creation import zeros_like
from .elementwise import where
from .movement import reshape, stack, swapaxes
from .tensor import Tensor


def rnn(
    step_function: Callable[[Any, Any], tuple[Any, Any]],
    inputs: Any,
    initial_states: Any,
    go_backwards: bool = False,
    mask: Any = None,
    constants: Any = None,
    unroll: bool = False,
    input_length: Any = None,
    time_major: bool = False,
    zero_output_for_mask: bool = False,
    return_all_outputs: bool = True,
) -> tuple[Any, Any, Any]:
    """Run a cell over the elements of a sequence.

    A masked element leaves the states as they are. Its output is the one before it, or 0 with `zero_output_for_mask`.
    """
    given = tree.map_structure(core.convert_to_tensor, inputs)
    if not time_major:
        given = tree.map_structure(lambda x: swapaxes(x, 0, 1), given)
    seen = None
    if mask is not None:
        seen = core.convert_to_tensor(mask, "bool")
        seen = seen if time_major or seen.ndim < 2 else swapaxes(seen, 0, 1)
    steps = tree.flatten(given)[0].shape[0]
    states: Any = tuple(initial_states) if isinstance(initial_states, (list, tuple)) else initial_states
    extra = tuple(constants or ())
    outputs: list[Any] = []
    before: Any = None
    for number in range(steps - 1, -1, -1) if go_backwards else range(steps):
        element = tree.map_structure(lambda x, number=number: x[number], given)
        output, new_states = step_function(element, (*states, *extra) if extra else states)
        if seen is not None:
            shown = seen[number]
            held = zeros_like(output) if before is None or zero_output_for_mask else before
            output = where(_like(shown, output), output, held)
            new_states = tree.map_structure(
                lambda new, old, shown=shown: where(_like(shown, new), new, old), new_states, _as(states, new_states)
            )
        states, before = new_states, output
        if return_all_outputs:
            outputs.append(output)
        else:
            outputs[:] = [output]
    together = tree.map_structure(lambda *each: stack(each), *outputs)
    if not time_major:
        together = tree.map_structure(lambda x: swapaxes(x, 0, 1), together)
    return before, together, states


def _as(states: Any, pattern: Any) -> Any:
    """Return states in the containers of others."""
    return tree.pack_sequence_as(pattern, tree.flatten(states))


def _like(mask: Tensor, x: Any) -> Tensor:
    """Return a mask with as many dimensions as a tensor."""
    return reshape(mask, [*mask.shape, *[1] * (x.ndim - mask.ndim)]) if mask.ndim <= x.ndim else mask


def lstm(*args: Any, **kwargs: Any) -> Any:
    """Let the layer take its own steps: Keras expects this error of a backend without a fused layer."""
    raise NotImplementedError


gru = bidirectional_lstm = bidirectional_gru = lstm


def cudnn_ok(*args: Any, **kwargs: Any) -> bool:
    """Return that there is no library of fused cells."""
    return False


def unstack(x: Any, axis: int = 0) -> Sequence[Tensor]:
    """Return the elements of a dimension."""
    return core.unstack(x, axis=axis)
