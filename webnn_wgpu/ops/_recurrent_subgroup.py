"""gru, lstm and their cells on software adapters: constant weights in a texture, a subgroup for some hidden units of some rows.

`subgroup_sequence` makes as many steps per dispatch as loops may have iterations, a workgroup per direction and batch rows.
`subgroup_steps` makes one, a workgroup for some units of these. One kernel does both.
"""

from __future__ import annotations

from collections.abc import Hashable

from ..costs import RecurrentCosts
from ..kernels import select
from ..kernels.element import QUAD, padded_bytes
from ..kernels.packing import UnitTexture
from ..kernels.spec import Binding, KernelCall, KernelTemplate, Packed, Temp
from ._def import Lowering
from ._recurrent_network import BoundOperand, Field, Network, Sizes, initial_states, with_quads

SUBGROUP = KernelTemplate("recurrent.subgroup", ("cell", "lanes", "rows", "phases"))


def unit_texture(low: Lowering, sizes: Sizes) -> UnitTexture:
    """Return how the recurrent weights are packed."""
    return UnitTexture(low.caps.subgroup_size, sizes.gates, sizes.H, low.caps.limit("max-texture-dimension-2d"))


def obstacle(low: Lowering, sizes: Sizes) -> str:
    """Return why the kernel cannot be had, or nothing."""
    if not select.supports(low.caps, "subgroup"):
        return f"subgroup size {low.caps.subgroup_size}"
    if not low.is_constant(low.value(2)):
        return "recurrent weights that are no constant"
    packing = unit_texture(low, sizes)
    if sizes.D * packing.panels * packing.wraps > packing.width:
        return "recurrent weights that do not fit a texture"
    fits = padded_bytes(_states_bytes(low, sizes)) <= low.caps.limit("max-storage-buffer-binding-size")
    return "" if fits and sizes.rows_fit(low) else "tensors that do not fit a binding"


def bindings_besides(low: Lowering) -> int:
    """Return how many buffers the kernel binds besides its vectors: projection and states, initial states, outputs."""
    return 2 + len(initial_states(low)) + len(low.node.outputs)


def row_blocks(sizes: Sizes, costs: RecurrentCosts) -> int:
    """Return how many workgroups share the batch rows."""
    return -(-sizes.B // _rows(sizes, costs))


def _rows(sizes: Sizes, costs: RecurrentCosts) -> int:
    return 1 if sizes.B == 1 else costs.subgroup_rows


def subgroup_calls(network: Network, steps: int, reason: str, calls: list[KernelCall]) -> None:
    """Add the calls that make all steps, at most `steps` per dispatch."""
    sizes, low = network.sizes, network.low
    costs = low.target.costs.recurrent
    packing = unit_texture(low, sizes)
    weights = BoundOperand(Binding(name="recurrent_weight", access="texture"), Packed(low.value(2), packing))
    states = BoundOperand(Binding(name="states", access="write", quad=True), Temp("states", _states_bytes(low, sizes)))
    quad = sizes.H % QUAD == 0
    projection = with_quads(network.projection, quad)
    outputs = [with_quads(b, quad) for b in network.outputs]
    bound = (projection, weights, *network.vectors, *network.initial.values(), states, *outputs)
    blocks = row_blocks(sizes, costs)
    phases = _phases(network)
    # Where each dispatch makes one step, its phases are dispatches too: other workgroups' results are needed between them.
    together = [2 ** len(phases) - 1] if steps > 1 else [2**i for i in range(len(phases))]
    each = packing.panels if steps > 1 else 1
    tiles = sizes.D * blocks * -(-packing.panels // each)
    numbers = {
        "P": packing.units,
        "panels": packing.panels,
        "each": each,
        "blocks": blocks,
        "tiles": tiles,
        "wraps": packing.wraps,
        "wrap_units": packing.wrap_units,
    }
    for step in range(0, sizes.S, steps):
        for phase in together:
            own = numbers | {"step": step, "end_step": min(step + steps, sizes.S), "phases": phase}
            fields: list[Field] = [(name, "u32", number) for name, number in own.items()]
            params: dict[str, Hashable] = {"lanes": packing.lanes, "rows": _rows(sizes, costs), "phases": phases}
            calls.append(network.call(SUBGROUP, bound, fields, tiles, reason, params, features=("subgroup",)))


def most_steps(low: Lowering, sizes: Sizes) -> int:
    """Return how many steps a dispatch may make, so that no loop ends early."""
    packing = unit_texture(low, sizes)
    phases = 1 if low.attrs.get("reset_after", True) else 2
    costs = low.target.costs.recurrent
    rows = _rows(sizes, costs)
    loads = packing.units * rows // (packing.lanes * QUAD)
    # A loop's last test of its condition counts. The iterations of a panel are those over rows of the texture, over the state
    # elements that lanes load and pass to each other, and over the cells of a lane's units.
    panel = 3 + 2 * packing.wraps + loads * (2 + packing.lanes // rows) + QUAD * rows
    return max(1, costs.most_step_iterations // (1 + phases * (1 + packing.panels * panel)))


_Phase = tuple[str, tuple[tuple[str, str], ...]]
"""Which state of a unit its cell needs, and the gates that are summed: over which units, hidden state or r * h, and which."""


def _phases(network: Network) -> tuple[_Phase, ...]:
    """Return for which gates a step computes sums, one time after the other."""
    gates = network.cell.gates
    if network.is_lstm:
        return (("cell", (("hidden", gates),)),)
    if network.cell.reset_after:
        return (("hidden", (("hidden", gates),)),)
    # All of r * h must be there before any of it is multiplied.
    return (("hidden", (("hidden", "r"),)), ("hidden", (("hidden", "z"), ("reset", "n"))))


def _states_bytes(low: Lowering, sizes: Sizes) -> int:
    """Return the size of the `states` buffer, as the template describes it."""
    third = sizes.gates == 4 or not low.attrs.get("reset_after", True)
    return 4 * (3 if third else 2) * sizes.D * sizes.B * unit_texture(low, sizes).units
