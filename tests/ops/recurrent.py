"""Helpers of the tests of recurrent operators: random operands by name, comparison in every way the kernels can be chosen."""

from __future__ import annotations

import itertools
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from tests.support import op_graph, type_of
from webnn_wgpu.core.data_types import FLOATS
from webnn_wgpu.core.errors import OperationError
from webnn_wgpu.costs import Target
from webnn_wgpu.ir.verify import verify
from webnn_wgpu.kernels.select import supports
from webnn_wgpu.ops import OPS
from webnn_wgpu.ops._recurrent import PACKED_VARIANTS, SUBGROUP_VARIANTS, VARIANTS
from webnn_wgpu.plan import make_plan
from webnn_wgpu.reference import interpret
from webnn_wgpu.runtime.program import Program

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from webnn_wgpu.ir.graph import Array
    from webnn_wgpu.ir.types import TensorType
    from webnn_wgpu.runtime.device import Device

ADAPTERS = ("CPU", "DiscreteGPU")
"""Kernels share sums and have larger workgroups on hardware; a software adapter can run those too."""

WAYS = [
    (v, a)
    for v, a in itertools.product(VARIANTS, ADAPTERS)
    if a == ("DiscreteGPU" if v == "cooperative" else "CPU") or v in ("sequence", "steps")
]

SIDE_BY_SIDE = {"adapter_type": "DiscreteGPU", "vendor": "NVIDIA", "device": "NVIDIA H200", "backend": "Vulkan"}
"""The identity of a device whose workgroups run side by side. Where they do not, another dispatch computes the results."""

VECTORS = {"gru": ("bias", "recurrentBias"), "lstm": ("bias", "recurrentBias", "peepholeWeight")}
STATES = {
    "gru": ("initialHiddenState",),
    "lstm": ("initialHiddenState", "initialCellState"),
    "gruCell": ("hiddenState",),
    "lstmCell": ("hiddenState", "cellState"),
}
GATES = {"gru": 3, "lstm": 4}


@dataclass(frozen=True)
class Sizes:
    """Sizes of a network: steps, batch, inputs, hidden units, and whether there are two directions."""

    steps: int = 3
    batch: int = 3
    inputs: int = 5
    hidden: int = 8
    both: bool = False


def possible(name: str, sizes: Sizes, way: tuple[str, str], device: Device) -> Sizes:
    """Return sizes with as many of their hidden units as a device can compute in a way."""
    if way[0] != "persistent":
        return sizes
    most = min(
        device.target.costs.recurrent.most_kept_weights // GATES[name],
        device.caps.limit("max-compute-invocations-per-workgroup"),
    )
    return replace(sizes, hidden=min(sizes.hidden, most))


def limits_of(device: Device, invocations: int) -> dict[str, int]:
    """Return the limit to workgroups of some invocations. A device that has no such workgroups skips the test."""
    name = "max-compute-invocations-per-workgroup"
    if device.caps.limit(name) < invocations:
        pytest.skip(f"the device has no workgroups of {invocations} invocations")
    return {name: invocations}


def operands(
    name: str,
    sizes: Sizes,
    data_type: str = "float32",
    *,
    absent: Collection[str] = (),
    whole: bool = False,
    seed: int = 0,
) -> dict[str, Array | None]:
    """Return random operands by name, in the order of the operator's definition.

    Args:
        name: specification name.
        sizes: the network's sizes.
        data_type: data type of all.
        absent: names of optional operands that are not given.
        whole: whether all are -1, 0 or 1, so that activations of whole numbers leave sums exact.
        seed: of the random numbers.
    """
    rng = np.random.default_rng(seed)
    family = name.removesuffix("Cell")
    gates, hidden = GATES[family], sizes.hidden
    lead = () if name != family else (2 if sizes.both else 1,)
    shapes = {
        "input": (sizes.batch, sizes.inputs) if name != family else (sizes.steps, sizes.batch, sizes.inputs),
        "weight": (*lead, gates * hidden, sizes.inputs),
        "recurrentWeight": (*lead, gates * hidden, hidden),
        "bias": (*lead, gates * hidden),
        "recurrentBias": (*lead, gates * hidden),
        "peepholeWeight": (*lead, 3 * hidden),
    }

    def array(key: str) -> Array:
        shape = shapes.get(key, (*lead, sizes.batch, hidden))
        if whole:
            return rng.integers(-1, 1, shape, endpoint=True).astype(data_type)
        # Sums stay about as large as one input, however many units there are.
        scale = 1 / np.sqrt(shape[-1]) if "eight" in key and len(shape) > len(lead) + 1 else 1
        return (rng.standard_normal(shape) * scale).astype(data_type)

    return {o.name: None if o.name in absent else array(o.name) for o in OPS[name].operands}


def attributes(name: str, sizes: Sizes, **options: Any) -> dict[str, Any]:
    """Return the attributes of a call: the sizes, and `options`."""
    found: dict[str, Any] = {"hidden_size": sizes.hidden, **options}
    if not name.endswith("Cell"):
        found = {"steps": sizes.steps, "return_sequence": True, "direction": "both" if sizes.both else "forward"} | found
    return found


def check(
    device: Device,
    name: str,
    given: Mapping[str, Array | None],
    attrs: Mapping[str, Any],
    *,
    way: tuple[str, str] | None = None,
    constants: Collection[str] = (),
    forced: Mapping[str, str] | None = None,
    exact: bool = False,
    limits: Mapping[str, int] | None = None,
    without: Collection[str] = (),
) -> list[Array]:
    """Run one operator and compare it with its reference; return the device's outputs.

    Args:
        device: where to run.
        name: specification name.
        given: operands by name.
        attrs: attributes.
        way: variant to force, and adapter type to choose kernels for.
        constants: names of the operands that are constants.
        forced: variants to take, besides.
        exact: whether the outputs must be equal; else each may be off by some roundings of the largest of its output.
        limits: limits of the device to choose kernels for, where they are not the device's own.
        without: features of the device that kernels must do without.
    """
    names = [o.name for o in OPS[name].operands]
    inputs = [given[n] for n in names]
    if way is not None and way[0] in PACKED_VARIANTS:
        constants = {*constants, "recurrentWeight"}
    graph = op_graph(name, inputs, attrs, {names.index(n) for n in constants})
    feeds = {key: inputs[int(key)] for key in graph.inputs}
    caps, variants = replace(device.caps, features=device.caps.features - set(without)), dict(forced or {})
    if limits:
        caps = replace(caps, limits=tuple((dict(caps.limits) | dict(limits)).items()))
    if way is not None:
        identity = SIDE_BY_SIDE if way[0] == "cooperative" else {"adapter_type": way[1]}
        caps, variants[name] = replace(caps, **identity), way[0]
    if way is not None and way[0] == "cooperative" and not attrs.get("reset_after", True):
        with pytest.raises(OperationError, match="a reset before the product takes two exchanges per step"):
            make_plan(verify(graph), Target.of(caps), variants)
        return []
    plan = make_plan(verify(graph), Target.of(caps), variants)
    if way is not None:
        used = {d.spec.template for d in plan.dispatches if "recurrent" in d.spec.template}
        assert used == {f"recurrent.{way[0].partition('_')[0]}"}
    program = Program(device, plan)
    try:
        actual = program.start(feeds, list(graph.outputs)).result()
    finally:
        program.destroy()
    for key, wanted in interpret(graph, feeds).items():
        found = actual[key]
        assert (found.dtype, found.shape) == (wanted.dtype, wanted.shape)
        assert np.array_equal(np.isfinite(found), np.isfinite(wanted))
        difference = np.abs(np.where(np.isfinite(wanted), found.astype(np.float64) - wanted.astype(np.float64), 0))
        # A unit in the last place of float16 where the sum lies between two numbers of it.
        rounding = 2.0**-10 * np.abs(wanted.astype(np.float64)) + 2.0**-24 if wanted.dtype == np.float16 else 0
        largest = np.max(np.abs(wanted[np.isfinite(wanted)].astype(np.float64)), initial=1)
        assert np.all(difference <= (0 if exact else rounding + 2.0**-19 * largest)), f"output {key}: {difference.max()}"
    return list(actual.values())


def variants_of(device: Device) -> list[str]:
    """Return the variants that a device can run where the recurrent weights are constant."""
    lacking: set[str] = set() if supports(device.caps, "subgroup") else set(SUBGROUP_VARIANTS)
    # It binds all operands, and the exchanged words.
    if device.caps.limit("max-storage-buffers-per-shader-stage") < 10:
        lacking.add("cooperative")
    return [v for v in VARIANTS if v not in lacking]


def check_activation(device: Device, name: str, activation: str, defaults: Sequence[str]) -> None:
    """Check an activation in each place that it can have, each with another variant."""
    options = {
        "clamp": {"min_value": -0.25, "max_value": 0.5},
        "leakyRelu": {"alpha": 0.1},
        "linear": {"alpha": 0.5, "beta": 0.1},
    }
    ways = [v for v in ("persistent", "subgroup_sequence", "steps") if v in variants_of(device)]
    for place in range(len(defaults)):
        activations: list[Any] = list(defaults)
        activations[place] = (activation, options.get(activation, {}))
        way = (ways[place % len(ways)], "CPU")
        data_type = FLOATS[place % 2]
        attrs = attributes(name, Sizes(), activations=activations)
        check(device, name, operands(name, Sizes(), data_type), attrs, way=way)


def typed_like(given: Mapping[str, Array | None]) -> list[TensorType | None]:
    """Return the types of operands."""
    return [None if a is None else type_of(a) for a in given.values()]


def dispatches(name: str, given: Mapping[str, Array | None], attrs: Mapping[str, Any], caps: Any, **forced: str) -> list[str]:
    """Return the kernels that a device's plan runs for one operator with constant weights."""
    names = [o.name for o in OPS[name].operands]
    inputs: Sequence[Array | None] = [given[n] for n in names]
    plan = make_plan(op_graph(name, inputs, attrs, {1, 2}), Target.of(caps), forced)
    return [d.spec.template for d in plan.dispatches]
