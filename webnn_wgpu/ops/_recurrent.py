"""Lowering of gru, lstm and their cells: the product of all steps' inputs at once, then the steps in one of several ways.

What the inputs of all steps contribute does not depend on the state, so it is one matrix product, kept in float32. The steps
follow: `sequence` and `steps` run on any device (`_recurrent_loops.py`), the others are for software adapters: `persistent`
(`_recurrent_persistent.py`), `subgroup_sequence` and `subgroup_steps` (`_recurrent_subgroup.py`). What leaves the operator is
rounded once.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from ..core.caps import Caps
from ..core.errors import OperationError
from ..kernels.select import Choice
from ..kernels.spec import KernelCall
from ._def import Lowering
from ._product import FORCED
from ._product import TEMPLATES as PRODUCTS
from ._quads import MOST_ITERATIONS
from ._recurrent_loops import SEQUENCE, STEPS, sequence_calls, sequence_fits, sequence_iterations, sequence_memory, steps_calls
from ._recurrent_loops import bindings_besides as bindings_of_loops
from ._recurrent_network import Sizes, make_network, sizes_of
from ._recurrent_persistent import PERSISTENT, persistent_calls
from ._recurrent_persistent import bindings_besides as bindings_of_persistent
from ._recurrent_persistent import obstacle as persistent_obstacle
from ._recurrent_subgroup import SUBGROUP, most_steps, row_blocks, subgroup_calls
from ._recurrent_subgroup import bindings_besides as bindings_of_subgroup
from ._recurrent_subgroup import obstacle as subgroup_obstacle
from .concat import CONCATENATION
from .strided import STRIDED

SUBGROUP_VARIANTS = ("subgroup_sequence", "subgroup_steps")
"""Those that need subgroups."""
PACKED_VARIANTS = ("persistent", *SUBGROUP_VARIANTS)
"""Those that need constant recurrent weights."""
VARIANTS = ("sequence", "steps", *PACKED_VARIANTS)
"""The ways through the steps."""
TEMPLATES = (SEQUENCE, STEPS, PERSISTENT, SUBGROUP, *PRODUCTS, STRIDED, CONCATENATION)
"""All templates, those of the product before the steps included."""

SEQUENCE_WEIGHTS = 2**17
"""Recurrent weights of a direction up to which hardware takes `sequence`: one workgroup reads them all in every step, at
some 100 GB/s, and beyond half a megabyte that takes longer than starting a dispatch. An estimate, not a measurement."""

SUBGROUP_WEIGHTS = 640_000
"""Recurrent weights of a direction up to which one workgroup makes all steps on a software adapter: it takes 10 ns for 32 of
them (lavapipe, measured), so that several workgroups can save no more than a dispatch costs that wakes several threads."""

SEVERAL_WORKGROUPS = 5
"""How many times as many weights it may be where there are several workgroups in any case, for directions or batch rows."""

PERSISTENT_STEPS = 16
"""Steps from which on a software adapter takes `persistent`: it loads the weights at an eighth of the speed of using them."""


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
    else:
        network = make_network(low, sizes, bindings_of_loops(low, variant, sizes.S), calls)
        (sequence_calls if variant == "sequence" else steps_calls)(network, reason, calls)
    return calls


def _choose(low: Lowering, sizes: Sizes) -> Choice:
    """Return the variant to take: the forced one, the one measured to be the fastest, or the best by device and sizes."""
    op, forced = low.ops[low.node.op], low.forced_variant
    in_way = {variant: _obstacle(low, sizes, variant) for variant in ([forced] if forced else VARIANTS)}
    if forced is None:
        return low.measured([variant for variant in VARIANTS if not in_way[variant]]) or choose(low.caps, sizes, in_way)
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
    """Return why a variant cannot be had, or nothing."""
    if variant == "persistent":
        return persistent_obstacle(low, sizes)
    if variant in SUBGROUP_VARIANTS:
        return subgroup_obstacle(low, sizes)
    return _sequence_obstacle(low, sizes) if variant == "sequence" else ""


def _sequence_obstacle(low: Lowering, sizes: Sizes) -> str:
    """Return why the `sequence` kernel cannot be had, or nothing."""
    memory, limit = sequence_memory(low, sizes), low.caps.limit("max-compute-workgroup-storage-size")
    if memory > limit:
        return f"the state does not fit workgroup memory: {memory} bytes of {limit}"
    if not sequence_fits(low, sizes):
        return "the parts of tensors that a step touches fit a binding, the tensors do not"
    iterations = sequence_iterations(low.caps, sizes)
    if low.caps.is_cpu and iterations > MOST_ITERATIONS:
        return f"{iterations} iterations of {MOST_ITERATIONS}"
    return ""


def choose(caps: Caps, sizes: Sizes, in_way: Mapping[str, str] = MappingProxyType({})) -> Choice:
    """Return the variant for a device.

    Args:
        caps: the device.
        sizes: the network's sizes.
        in_way: why a variant cannot be had, by variant.

    Example:
        >>> choose(Caps(adapter_type="DiscreteGPU"), Sizes(D=1, S=20, B=1, H=64, N=256)).variant
        'sequence'
    """
    weights = sizes.H * sizes.N
    no_subgroup, no_sequence = in_way.get("subgroup_sequence"), in_way.get("sequence")
    if caps.is_cpu and sizes.S >= PERSISTENT_STEPS and not in_way.get("persistent"):
        return Choice("persistent", f"software adapter, {sizes.S} steps: the weights are loaded once for all of them")
    if caps.is_cpu and not no_subgroup:
        several = sizes.D * row_blocks(sizes) > 1
        if sizes.S == 1 or weights > SUBGROUP_WEIGHTS * (SEVERAL_WORKGROUPS if several else 1):
            return Choice(
                "subgroup_steps", f"software adapter, {weights} recurrent weights: each step is spread over its cores"
            )
        return Choice("subgroup_sequence", f"software adapter, {weights} recurrent weights: threads are not woken in each step")
    if sizes.S == 1:
        return Choice("steps", "a single step")
    if no_sequence:
        return Choice("steps", no_sequence)
    if caps.is_cpu:
        # Measured on lavapipe for 16 to 256 units: `sequence` wins by a quarter for 16 units and one batch row, else `steps`,
        # which reads each weight once for several rows, by up to five times.
        return Choice("steps", f"software adapter, {no_subgroup}: each weight is read once for several batch rows")
    if weights > SEQUENCE_WEIGHTS:
        return Choice("steps", f"{weights} recurrent weights: a dispatch per step, over the whole device")
    return Choice("sequence", f"{weights} recurrent weights: all {sizes.S} steps in one dispatch")
