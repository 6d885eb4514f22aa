"""gru, lstm and stacks of them in one dispatch, whose workgroups each hold weights and exchange the states after each step.

WebGPU does not promise that workgroups run side by side. Where one waits too long, it gives up, and another dispatch computes
all time steps in a single workgroup. So the results never depend on it, only the time.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..core.caps import Caps
from ..costs import RecurrentSize
from ..kernels.element import QUAD, padded_bytes
from ..kernels.spec import Binding, KernelCall, KernelTemplate, Temp
from ._def import Lowering
from ._recurrent_network import BoundOperand, Field, Network, Sizes, initial_states

COOPERATIVE = KernelTemplate("recurrent.cooperative", ("mode", "cell", "stack", "tile", "quad"))

_MOST_EXCHANGED_BYTES = 16 << 20
"""The maximum size of the words that workgroups exchange: they are cleared before each run."""

_PATIENCE = 1 << 15
"""How often an invocation asks for numbers that are not there, over all steps, besides `_STEP_PATIENCE` for each step.

By estimate asking takes a microsecond, so a dispatch whose workgroups do not run side by side ends after 30 ms.
"""

_STEP_PATIENCE = 64
"""How often an invocation may ask in each time step. Workgroups that run side by side should answer after a few times."""

_STACK_BUFFERS = 9
"""Buffers of the kernel for a stack: projection, weights, vectors, two states before and after, sequence, exchange."""


def obstacle(low: Lowering, sizes: Sizes, size: RecurrentSize) -> str:
    """Return why the kernel cannot be had for a single layer, or nothing."""
    if not low.attrs.get("reset_after", True):
        return "a reset before the product takes two exchanges per step"
    if low.target.costs.recurrent.cooperative_tile(size) is None:
        return "workgroups that do not run side by side, or too few of them for the weights"
    found = _limit_obstacle(low.caps, size, 1 + bindings_besides(low))
    return found or ("" if sizes.rows_fit(low) else "tensors that do not fit a binding")


def stack_obstacle(caps: Caps, size: RecurrentSize) -> str:
    """Return why the limits of a device do not allow the kernel for a stack of layers, or nothing."""
    return _limit_obstacle(caps, size, _STACK_BUFFERS)


def _limit_obstacle(caps: Caps, size: RecurrentSize, buffers: int) -> str:
    most = caps.limit("max-storage-buffers-per-shader-stage")
    if buffers > most:
        return f"{buffers} buffers of {most}"
    exchanged, limit = _exchanged_bytes(size), min(_MOST_EXCHANGED_BYTES, caps.limit("max-storage-buffer-binding-size"))
    return f"the states of all steps take {exchanged} bytes of {limit}" if exchanged > limit else ""


def _exchanged_bytes(size: RecurrentSize) -> int:
    """Return the bytes of the word that says whether workgroups waited in vain, the states after each step, and cell states."""
    return padded_bytes(4 * (1 + (size.steps + 1) * size.chains * size.rows * _stride(size.hidden)))


def _stride(hidden: int) -> int:
    """Return the exchanged words of a batch row."""
    return -(-hidden // QUAD) * QUAD


def bindings_besides(low: Lowering) -> int:
    """Return how many buffers the kernel binds besides its vectors: projection, weights, states before and after, exchange."""
    return 3 + len(initial_states(low)) + len(low.node.outputs)


def cooperative_calls(
    network: Network, size: RecurrentSize, fixed: Sequence[BoundOperand], reason: str, calls: list[KernelCall], *, row: int = 0
) -> None:
    """Add the calls that clear the exchanged words, make all steps, and make them again if workgroups waited in vain.

    Args:
        network: the network.
        size: its size.
        fixed: the bindings of its weights, of a stack those between layers too, and of its vectors.
        reason: the reason for the choice.
        calls: the list that receives the calls.
        row: the vectors of a layer of a stack, in hidden sizes.
    """
    sizes, tile = network.sizes, network.low.target.costs.recurrent.cooperative_tile(size)
    assert tile is not None
    exchange = Temp("exchange", _exchanged_bytes(size))
    words = exchange.size_bytes // 4
    exchanged = BoundOperand(Binding(name="exchange", access="write", element="atomic32"), exchange)
    bound = (network.projection, *fixed, *network.initial.values(), *network.outputs, exchanged)
    params = {"stack": size.layers > 1, "tile": tile, "quad": sizes.H % QUAD == 0}
    clear: list[Field] = [("words", "u32", words)]
    workgroups = -(-words // tile.invocations)
    calls.append(network.call(COOPERATIVE, [exchanged], clear, workgroups, reason, {"mode": "clear", **params}))
    blocks, panels = -(-sizes.B // tile.rows), -(-sizes.H // tile.units)
    numbers = {"chains": size.chains, "stride": _stride(sizes.H), "blocks": blocks, "panels": panels, "vectors": row}
    own = {
        "all": {"tiles": size.chains * blocks * panels, "patience": _PATIENCE + _STEP_PATIENCE * sizes.S},
        "alone": {"tiles": size.directions * blocks, "patience": 0},
    }
    reasons = {"all": reason, "alone": "computes all steps again if workgroups did not run side by side"}
    for mode, more in own.items():
        fields: list[Field] = [(name, "u32", number) for name, number in (numbers | more).items()]
        calls.append(network.call(COOPERATIVE, bound, fields, more["tiles"], reasons[mode], {"mode": mode, **params}))
