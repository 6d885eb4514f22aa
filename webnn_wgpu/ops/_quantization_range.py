"""The kernel that finds the scale and the zero point of a whole tensor in one workgroup, for GPUs."""

from __future__ import annotations

from ..kernels.element import QUAD
from ..kernels.spec import Binding, KernelCall, KernelTemplate
from ._def import Lowering
from ._reduction import RowShape

FROM_TENSOR = KernelTemplate("quantization_range", ("rows", "loads"))

RESULTS = (
    Binding(name="scale", access="write", element="float32"),
    Binding(name="zero_point", access="write", element="uint8", quad=True),
)
"""The bindings of the results."""

STEPS = 255.0
"""Steps of the scale in the range."""

_MOST_LANES = 512
"""The maximum number of invocations of the workgroup that reads a whole tensor."""


def call_of_range(low: Lowering, count: int, loads: int) -> KernelCall:
    """Return the call that makes scale and zero point of all elements, by a workgroup as large as a core takes."""
    lanes = min(_MOST_LANES, low.caps.limit("max-compute-invocations-per-workgroup"))
    has_subgroups = low.caps.subgroup_size > 0 and "subgroup" in low.caps.features
    rows = RowShape(lanes=lanes, quads=count % QUAD == 0)
    bindings = [Binding(name="input", access="read", element="float32", quad=rows.quads), *RESULTS]
    spec = FROM_TENSOR.spec(
        bindings,
        [("rows", "u32"), ("rounds", "u32"), ("items", "u32"), ("steps", "f32")],
        features=("subgroup",) if has_subgroups and low.target.costs.rows.combines_by_subgroups else (),
        rows=rows,
        loads=loads,
    )
    return KernelCall(
        spec=spec,
        operands=(low.value(0), *low.node.outputs),
        uniforms=(1, 1, count // QUAD if rows.quads else count, STEPS),
        grid=(1, 1, 1),
        reason="one core reads the elements in less time than another dispatch takes",
    )
