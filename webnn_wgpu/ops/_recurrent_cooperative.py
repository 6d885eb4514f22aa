"""gru, lstm and stacks of them in one dispatch, whose workgroups each hold weights and exchange the states after each step.

Layers whose weights do not fit the registers together have a dispatch each, and a matrix product between them.

WebGPU does not promise that workgroups run side by side. Where one waits too long, it gives up, and another dispatch computes
all time steps in a single workgroup. So the results never depend on it, only the time.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import replace

from ..core.caps import Caps
from ..costs import CooperativeTile, RecurrentSize
from ..kernels.element import QUAD, padded_bytes
from ..kernels.packing import Columns
from ..kernels.spec import Binding, KernelCall, KernelTemplate, Operand, Packed, Temp, value_of
from ._def import Lowering
from ._factors import Factor
from ._product import product_calls
from ._recurrent_network import BoundOperand, Field, Network, Sizes, initial_states

COOPERATIVE = KernelTemplate("recurrent.cooperative", ("mode", "cell", "stack", "turn", "tile", "quad"), optional=("turn",))

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
    tile = network.low.target.costs.recurrent.cooperative_tile(size)
    assert tile is not None
    exchanged = _exchanged(size)
    bound = (network.projection, *fixed, *network.initial.values(), *network.outputs, exchanged)
    calls += [
        _clear(network, size, tile, exchanged, reason),
        _all(network, size, tile, bound, row, reason),
        _alone(network, size, tile, bound, row),
    ]


def turn_calls(
    network: Network, size: RecurrentSize, fixed: Sequence[BoundOperand], reason: str, calls: list[KernelCall], *, row: int
) -> None:
    """Add the calls of a stack whose layers take turns: a dispatch makes all steps of one, a product the input of the next.

    Only the last call computes everything again, if workgroups waited in vain in any of the dispatches.

    Args:
        network: the network, whose weights are constants.
        size: its size.
        fixed: the bindings of the weights of all layers, and of the vectors.
        reason: the reason for the choice.
        calls: the list that receives the calls.
        row: the vectors of a layer, in hidden sizes.
    """
    costs, sizes, exchanged = network.low.target.costs.recurrent, network.sizes, _exchanged(size)
    tile, whole = costs.cooperative_tile(replace(size, layers=1)), costs.cooperative_tile(size, kept=False)
    assert tile is not None
    assert whole is not None
    *states, last = network.outputs if len(network.outputs) > len(network.states) else (*network.outputs, None)
    initial, weights = network.initial.values(), fixed[0]
    calls.append(_clear(network, size, tile, exchanged, reason))
    projection = network.projection
    for layer in range(size.layers):
        sequence = last
        if layer < size.layers - 1:
            sequence = BoundOperand(
                Binding(name="sequence", access="write"), Temp(f"sequence {layer}", 4 * sizes.S * sizes.B * sizes.H)
            )
        bound = (projection, *fixed, *initial, *states, *([sequence] if sequence else []), exchanged)
        calls.append(_all(network, size, tile, bound, row, reason, turn=layer))
        if layer < size.layers - 1:
            assert sequence is not None
            projection = _projection(network, sequence.operand, weights, 2 * layer + 1, calls)
    bound = (network.projection, *fixed, *initial, *network.outputs, exchanged)
    calls.append(_alone(network, size, whole, bound, row))


def _projection(
    network: Network, sequence: Operand, weights: BoundOperand, matrix: int, calls: list[KernelCall]
) -> BoundOperand:
    """Add the product of a layer's states with a matrix of the weights, and return it: the next layer's input."""
    low, sizes = network.low, network.sizes
    rows = sizes.S * sizes.B
    projection = Temp(f"projection {matrix}", 4 * rows * sizes.N)
    columns = Columns(matrix * sizes.N, (matrix + 1) * sizes.N, rows=sizes.H, transposed=True)
    factor = Factor(Packed(value_of(weights.operand), columns), weights.binding.element, (sizes.H, sizes.N))
    calls += product_calls(low, Factor(sequence, "float32", (rows, sizes.H)), factor, into=projection)
    return BoundOperand(network.projection.binding, projection)


def _exchanged(size: RecurrentSize) -> BoundOperand:
    binding = Binding(name="exchange", access="write", element="atomic32")
    return BoundOperand(binding, Temp("exchange", _exchanged_bytes(size)))


def _clear(network: Network, size: RecurrentSize, tile: CooperativeTile, exchanged: BoundOperand, reason: str) -> KernelCall:
    """Return the call that clears the exchanged words."""
    words = _exchanged_bytes(size) // 4
    params = _params("clear", network, size, tile)
    return network.call(COOPERATIVE, [exchanged], [("words", "u32", words)], -(-words // tile.invocations), reason, params)


def _all(
    network: Network,
    size: RecurrentSize,
    tile: CooperativeTile,
    bound: Sequence[BoundOperand],
    row: int,
    reason: str,
    turn: int | None = None,
) -> KernelCall:
    """Return the call that makes all steps side by side: of all chains, or of the layer whose turn it is."""
    blocks, panels = _tiles(network, tile)
    tiles = (size.chains if turn is None else 1) * blocks * panels
    numbers = {"tiles": tiles, "patience": _PATIENCE + _STEP_PATIENCE * network.sizes.S}
    params = _params("all", network, size, tile)
    if turn is not None:
        numbers["turn"] = turn
        params["turn"] = True
    return network.call(COOPERATIVE, bound, _fields(network, size, tile, row, numbers), tiles, reason, params)


def _alone(network: Network, size: RecurrentSize, tile: CooperativeTile, bound: Sequence[BoundOperand], row: int) -> KernelCall:
    """Return the call that makes all steps again if workgroups waited in vain."""
    blocks, _ = _tiles(network, tile)
    tiles = size.directions * blocks
    fields = _fields(network, size, tile, row, {"tiles": tiles, "patience": 0})
    reason = "computes all steps again if workgroups did not run side by side"
    return network.call(COOPERATIVE, bound, fields, tiles, reason, _params("alone", network, size, tile))


def _tiles(network: Network, tile: CooperativeTile) -> tuple[int, int]:
    """Return the blocks of batch rows, and the panels of hidden units."""
    return -(-network.sizes.B // tile.rows), -(-network.sizes.H // tile.units)


def _fields(network: Network, size: RecurrentSize, tile: CooperativeTile, row: int, own: Mapping[str, int]) -> list[Field]:
    blocks, panels = _tiles(network, tile)
    numbers = {"chains": size.chains, "stride": _stride(network.sizes.H), "blocks": blocks, "panels": panels, "vectors": row}
    return [(name, "u32", number) for name, number in {**numbers, **own}.items()]


def _params(mode: str, network: Network, size: RecurrentSize, tile: CooperativeTile) -> dict[str, Hashable]:
    return {"mode": mode, "stack": size.layers > 1, "tile": tile, "quad": network.sizes.H % QUAD == 0}
