"""gru, lstm and their cells on software adapters: every invocation keeps the recurrent weights of one hidden unit.

One dispatch computes all time steps. A workgroup per direction and batch row has as many invocations as there are hidden units.
"""

from __future__ import annotations

from dataclasses import replace

from ..kernels import select
from ..kernels.packing import PersistentTexture
from ..kernels.spec import Binding, KernelCall, KernelTemplate, Packed
from ._def import Lowering
from ._recurrent_network import BoundOperand, Network, Sizes, initial_states

PERSISTENT = KernelTemplate("recurrent.persistent", ("cell", "lanes", "hidden"))

_LANES = 8
"""Hidden units whose weights lie side by side where there are no subgroups."""


def obstacle(low: Lowering, sizes: Sizes) -> str:
    """Return why the kernel cannot be had, or nothing."""
    costs, most_iterations = low.target.costs.recurrent, low.target.costs.launches.most_iterations
    if not costs.keeps_without_subgroups and not select.supports(low.caps, "subgroup"):
        return f"subgroup size {low.caps.subgroup_size}"
    if not low.is_constant(low.value(2)):
        return "recurrent weights that are no constant"
    if sizes.N > costs.most_kept_weights:
        return f"{sizes.N} recurrent weights of a unit, of {costs.most_kept_weights}"
    packing = _packing(low, sizes)
    invocations = packing.rows * packing.lanes
    if invocations > low.caps.limit("max-compute-invocations-per-workgroup"):
        return f"a workgroup of {invocations} invocations"
    if max(packing.width, sizes.D * packing.rows) > low.caps.limit("max-texture-dimension-2d"):
        return "recurrent weights that do not fit a texture"
    if sizes.S >= most_iterations:
        return f"{sizes.S} steps of {most_iterations}"
    return "" if sizes.rows_fit(low) else "tensors that do not fit a binding"


def bindings_besides(low: Lowering) -> int:
    """Return how many buffers the kernel binds besides its vectors: projection, initial states, outputs."""
    return 1 + len(initial_states(low)) + len(low.node.outputs)


def persistent_calls(network: Network, reason: str, calls: list[KernelCall]) -> None:
    """Add the call that makes all steps."""
    sizes, low = network.sizes, network.low
    packing = _packing(low, sizes)
    weights = BoundOperand(Binding(name="recurrent_weight", access="sampled"), Packed(low.value(2), packing))
    bound = (network.projection, weights, *network.vectors, *network.initial.values(), *network.outputs)
    held = replace(network, cell=replace(network.cell, held=True))
    params = {"lanes": packing.lanes, "hidden": sizes.H}
    features = ("subgroup",) if select.supports(low.caps, "subgroup") else ()
    calls.append(held.call(PERSISTENT, bound, (), sizes.D * sizes.B, reason, params, features=features))


def _packing(low: Lowering, sizes: Sizes) -> PersistentTexture:
    lanes = low.caps.subgroup_size if select.supports(low.caps, "subgroup") else _LANES
    return PersistentTexture(lanes, sizes.gates, sizes.H)
