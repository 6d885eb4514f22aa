"""Lowering of gru, lstm and their cells: the product of all steps' inputs at once, then the steps in one of several ways.

The contribution of all inputs does not depend on the state, so it is one matrix product, kept in float32. The time steps
follow. `sequence` (`_recurrent_sequence.py`) and `steps` (`_recurrent_steps.py`) run on any device, `cooperative`
(`_recurrent_cooperative.py`) on GPUs whose workgroups run side by side. The other variants suit software adapters:
`persistent` (`_recurrent_persistent.py`), `subgroup_sequence` and `subgroup_steps` (`_recurrent_subgroup.py`). The results of
the operator are rounded once.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType

from ..core.data_types import DATA_TYPES
from ..core.errors import OperationError
from ..costs import Choice, RecurrentSize, Target
from ..kernels.element import QUAD
from ..kernels.spec import Binding, KernelCall
from ._def import Lowering
from ._product import FORCED
from ._product import TEMPLATES as PRODUCTS
from ._recurrent_cooperative import COOPERATIVE, cooperative_calls
from ._recurrent_cooperative import bindings_besides as bindings_of_cooperative
from ._recurrent_cooperative import obstacle as cooperative_obstacle
from ._recurrent_network import BoundOperand, Sizes, make_network, sizes_of
from ._recurrent_persistent import PERSISTENT, persistent_calls
from ._recurrent_persistent import bindings_besides as bindings_of_persistent
from ._recurrent_persistent import obstacle as persistent_obstacle
from ._recurrent_sequence import SEQUENCE, sequence_calls
from ._recurrent_sequence import bindings_besides as bindings_of_sequence
from ._recurrent_sequence import obstacle as sequence_obstacle
from ._recurrent_steps import STEPS, steps_calls
from ._recurrent_steps import bindings_besides as bindings_of_steps
from ._recurrent_subgroup import SUBGROUP, most_steps, row_blocks, subgroup_calls
from ._recurrent_subgroup import bindings_besides as bindings_of_subgroup
from ._recurrent_subgroup import obstacle as subgroup_obstacle
from ._strided_copy import STRIDED
from .concat import CONCATENATION

SUBGROUP_VARIANTS = ("subgroup_sequence", "subgroup_steps")
"""The variants that need subgroups."""
PACKED_VARIANTS = ("persistent", *SUBGROUP_VARIANTS)
"""The variants that need constant recurrent weights."""
VARIANTS = ("sequence", "steps", "cooperative", *PACKED_VARIANTS)
"""The kernel variants of the time steps."""
TEMPLATES = (SEQUENCE, STEPS, COOPERATIVE, PERSISTENT, SUBGROUP, *PRODUCTS, STRIDED, CONCATENATION)
"""All templates, those of the product before the steps included."""


def recurrent_calls(low: Lowering) -> list[KernelCall]:
    """Return the kernel calls of gru, lstm or one of their cells.

    Raises:
        OperationError: a variant is forced that the device cannot run.
    """
    sizes = sizes_of(low)
    choice = _choose(low, sizes)
    variant, reason = choice.variant, choice.reason
    calls: list[KernelCall] = []
    if variant == "persistent":
        persistent_calls(make_network(low, sizes, bindings_of_persistent(low), calls), reason, calls)
    elif variant in SUBGROUP_VARIANTS:
        network = make_network(low, sizes, bindings_of_subgroup(low), calls)
        subgroup_calls(network, most_steps(low, sizes) if variant == "subgroup_sequence" else 1, reason, calls)
    elif variant == "cooperative":
        network = make_network(low, sizes, bindings_of_cooperative(low), calls)
        network = replace(network, cell=replace(network.cell, held=True))
        weight = Binding(name="weight", access="read", element=low.input(2).data_type, quad=sizes.H % QUAD == 0)
        fixed = (BoundOperand(weight, low.value(2)), *network.vectors)
        cooperative_calls(network, _size(sizes, element_bytes=_element_bytes(low)), fixed, reason, calls)
    elif variant == "sequence":
        sequence_calls(make_network(low, sizes, bindings_of_sequence(low), calls), reason, calls)
    else:
        steps_calls(make_network(low, sizes, bindings_of_steps(low, sizes.S), calls), reason, calls)
    return calls


def _choose(low: Lowering, sizes: Sizes) -> Choice:
    """Return the variant to take: the forced one, the one measured to be the fastest, or the best by device and sizes."""
    op, forced = low.ops[low.node.op], low.forced_variant
    in_way = {variant: _obstacle(low, sizes, variant) for variant in ([forced] if forced else VARIANTS)}
    if forced is None:
        return low.measured([variant for variant in VARIANTS if not in_way[variant]]) or choose(
            low.target,
            sizes,
            in_way,
            element_bytes=_element_bytes(low),
            step_dispatches=1 if low.attrs.get("reset_after", True) else 2,
        )
    if in_way[forced]:
        raise OperationError(
            "the forced kernel variant cannot be had",
            operator=op.python_name,
            label=low.node.label,
            got=f"{forced}, steps={sizes.S}, hidden_size={sizes.H}: {in_way[forced]}",
            allowed="steps",
        )
    return Choice(forced, FORCED)


def _obstacle(low: Lowering, sizes: Sizes, variant: str) -> str:
    """Return the reason why the device cannot run a variant, or "" if it can."""
    if variant == "persistent":
        return persistent_obstacle(low, sizes)
    if variant in SUBGROUP_VARIANTS:
        return subgroup_obstacle(low, sizes)
    if variant == "cooperative":
        return cooperative_obstacle(low, sizes, _size(sizes, element_bytes=_element_bytes(low)))
    return sequence_obstacle(low, sizes) if variant == "sequence" else ""


def choose(
    target: Target,
    sizes: Sizes,
    in_way: Mapping[str, str] = MappingProxyType({}),
    *,
    element_bytes: int = 4,
    step_dispatches: int = 1,
) -> Choice:
    """Return the variant that is estimated to be the fastest.

    Args:
        target: the device.
        sizes: the network's sizes.
        in_way: why a variant cannot be had, by variant.
        element_bytes: the size of a recurrent weight, in bytes.
        step_dispatches: the dispatches of a step, if each step has its own.

    Example:
        >>> from webnn_wgpu.core.caps import Caps
        >>> choose(Target.of(Caps(adapter_type="DiscreteGPU")), Sizes(D=1, S=20, B=1, H=64, N=256)).variant
        'sequence'
    """
    costs = target.costs.recurrent
    size = _size(sizes, element_bytes=element_bytes, step_dispatches=step_dispatches)
    return costs.choose(size, several=sizes.D * row_blocks(sizes, costs) > 1, in_way=in_way)


def _size(sizes: Sizes, *, element_bytes: int, step_dispatches: int = 1) -> RecurrentSize:
    return RecurrentSize(
        steps=sizes.S,
        directions=sizes.D,
        rows=sizes.B,
        hidden=sizes.H,
        gates=sizes.gates,
        element_bytes=element_bytes,
        step_dispatches=step_dispatches,
    )


def _element_bytes(low: Lowering) -> int:
    return DATA_TYPES[low.input(2).data_type].size_bytes
