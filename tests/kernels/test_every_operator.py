"""Every operator on small devices: tensors larger than a binding, more workgroups than a dimension of a grid has room for."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from tests.interop import exact
from tests.kernels.large import limited, run_limited
from tests.kernels.operators import Call, calls
from tests.support import new_profile, op_graph
from tests.targets import DEFAULT_TARGET
from webnn_wgpu.accuracy.distance import assert_within
from webnn_wgpu.core.errors import OutOfMemoryError
from webnn_wgpu.costs import Target
from webnn_wgpu.ops import OPS
from webnn_wgpu.ops._def import Lowering
from webnn_wgpu.plan import make_plan
from webnn_wgpu.reference import interpret

if TYPE_CHECKING:
    from collections.abc import Iterator

    from webnn_wgpu.core.caps import Caps
    from webnn_wgpu.ir.graph import Array, Graph
    from webnn_wgpu.runtime.device import Device

CALLS = calls()

REFUSED = {
    "argMax-one-row": "input float32[1300], 5216 bytes",
    "argMin-one-row": "input float32[1300], 5216 bytes",
}
"""The calls that a device refuses, and which tensor it names."""

PROFILES = ("full", "default-limits")


def graph_of(call: Call) -> tuple[Graph, dict[str, Array]]:
    """Return the graph of a call, and what to feed it."""
    arrays = call.arrays()
    graph = op_graph(call.name, arrays, call.attrs, call.constants)
    return graph, {str(i): a for i, a in enumerate(arrays) if a is not None and i not in call.constants}


def check(device: Device, call: Call, caps: Caps) -> Any:
    """Run a call for lowered limits, compare it with the reference, and return the plan."""
    graph, feeds = graph_of(call)
    plan, actual = run_limited(device, graph, feeds, caps)
    for output, wanted in interpret(graph, feeds).items():
        if wanted.dtype.kind != "f":
            assert_within(actual[output], wanted, "ULP", 0)
        else:
            # Sums of some hundred products of numbers around 1, rounded once.
            close = 1e-2 if wanted.dtype == np.float16 else 1e-4
            np.testing.assert_allclose(actual[output], wanted, rtol=close, atol=close * 10, err_msg=output)
    return plan


@pytest.fixture(scope="module", params=PROFILES)
def own_device(request: pytest.FixtureRequest) -> Iterator[Device]:
    """A device that forgets the many kernels of these tests when they are done."""
    device = new_profile(request.param)
    yield device
    device.close()


def can_be_divided(call: Call) -> bool:
    """Return whether all kernels of a call state how they can be divided."""
    graph, lower = graph_of(call)[0], OPS[call.name].lower
    assert lower is not None
    lowered = lower(Lowering(node=graph.nodes[0], graph=graph, target=DEFAULT_TARGET, ops=OPS))
    return all(kernel.work is not None for kernel in lowered)


def test_every_operator_that_can_be_divided_has_a_call() -> None:
    called = {call.name for call in CALLS} | {"wgslOp"}
    missing = [name for name, found in exact.calls().items() if name not in called and all(map(can_be_divided, found))]
    assert not missing, (
        f"no tensor of {', '.join(missing)} is larger than a binding, although `work` divides the kernels: add a call to "
        "tests/kernels/operators.py"
    )


@pytest.mark.repeats
@pytest.mark.parametrize("call", CALLS, ids=str)
def test_tensors_larger_than_a_binding(own_device: Device, call: Call) -> None:
    device = own_device
    caps = limited(device.caps, call.limit)
    if str(call) in REFUSED:
        with pytest.raises(OutOfMemoryError) as raised:
            make_plan(graph_of(call)[0], Target.of(caps))
        error = raised.value
        assert (error.operator, error.label) == (OPS[call.name].python_name, "test")
        assert error.got == REFUSED[str(call)]
        assert error.allowed == f"max-storage-buffer-binding-size {call.limit} bytes"
        return
    plan = check(device, call, caps)
    # A packed constant may be cut into blocks of columns, or lie in a texture, which has no such limit.
    bindings = [b for d in plan.dispatches for b in d.spec.bindings]
    assert any(b.window or b.is_texture for b in bindings) or len(plan.dispatches) > 1, "nothing is tested"


@pytest.mark.repeats
@pytest.mark.parametrize("name", sorted({call.name for call in CALLS}))
def test_more_workgroups_than_a_grid_dimension_holds(own_device: Device, name: str) -> None:
    device = own_device
    limit = 2
    caps = limited(
        device.caps, device.caps.limit("max-storage-buffer-binding-size"), max_compute_workgroups_per_dimension=limit
    )
    folded = 0
    for call in (call for call in CALLS if call.name == name):
        plan = check(device, call, caps)
        assert all(x <= limit and z == 1 for d in plan.dispatches for x, _, z in [d.grid])
        folded += sum(d.grid[1] > 1 for d in plan.dispatches)
    assert folded or OPS[name].view, "no grid is folded: nothing is tested"
