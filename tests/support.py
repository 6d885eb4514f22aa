"""Helpers of the operator tests: graphs of one operator, run on a device and compared with the reference."""

from __future__ import annotations

import os
import re
import warnings
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
import pytest
import wgpu

import webnn_wgpu as wn
from webnn_wgpu.accuracy.bounds import bounds
from webnn_wgpu.accuracy.distance import assert_within
from webnn_wgpu.core.caps import DEFAULT_LIMITS
from webnn_wgpu.core.data_types import FLOATS
from webnn_wgpu.core.errors import OperationError
from webnn_wgpu.ir.graph import Array, Graph, Node, Origin, Value, frozen_array
from webnn_wgpu.ir.types import TensorType
from webnn_wgpu.ir.verify import verify
from webnn_wgpu.kernels.select import SUBGROUP_SIZES
from webnn_wgpu.kernels.tuning import Tuning
from webnn_wgpu.ops import OPS
from webnn_wgpu.passes import run_passes
from webnn_wgpu.plan import make_plan
from webnn_wgpu.reference import interpret
from webnn_wgpu.runtime.adapters import adapters
from webnn_wgpu.runtime.device import Device, open_device
from webnn_wgpu.runtime.program import Program

PROFILES: dict[str, tuple[str, ...] | None] = {
    "full": None,
    "default-limits": (),
    "f16-only": ("shader-f16",),
    "subgroup-only": ("subgroup", "subgroup-barrier"),
    "hardware": None,
}
"""Device profiles by name: the features to request, with WebGPU's default limits; None asks for all the adapter has.

On the device of `hardware`, graphs are compiled as for a GPU.
"""

_profiles: dict[str, Device] = {}


def new_profile(name: str) -> Device:
    """Return a new device of a profile, which has compiled nothing yet; skip the test where the adapter lacks a feature."""
    features = PROFILES[name]
    if features is None:
        with _settings_of(name):
            return open_device()
    limits = {k: v for k, v in DEFAULT_LIMITS.items() if k != "max-bindings-per-bind-group"}
    adapter = adapters()[0]
    if missing := set(features) - adapter.features:
        pytest.skip(f"{adapter.info['device'].strip()} has no {', '.join(sorted(missing))}, which the profile {name} is about")
    gpu = adapter.request_device_sync(required_features=list(features), required_limits=limits)
    return Device.of(gpu, owned=True)


@contextmanager
def _settings_of(name: str) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        if name == "hardware":
            patch.setenv("WEBNN_WGPU_TARGET", "hardware")
        yield


def open_profile(name: str) -> Device:
    """Return the device of a profile, opened once."""
    if name not in _profiles:
        _profiles[name] = new_profile(name)
    return _profiles[name]


def profile_context(name: str, *, new: bool = False) -> wn.MLContext:
    """Return a new context on the device of a profile, or on a new device that ends with the context."""
    gpu = (new_profile if new else open_profile)(name).gpu
    with _settings_of(name):  # the package forgets a device with its last context
        return wn.ml.create_context(gpu)


def new_context() -> wn.MLContext:
    """Return a context on a device that is opened for it, on the default adapter, without a warning if that is software."""
    with warnings.catch_warnings(action="ignore", category=RuntimeWarning):
        return wn.ml.create_context()


def software_adapter() -> wgpu.GPUAdapter:
    """Return a software adapter; skip the test where there is none."""
    for adapter in adapters():
        if adapter.info["adapter_type"] == "CPU":
            return adapter
    pytest.skip("the test is about software adapters, and there is none here")


def lacks_variant(error: BaseException) -> bool:
    """Return whether a test failed because it forces a variant that is written for smaller subgroups than the adapter has."""
    if not isinstance(error, OperationError) or "the forced kernel variant cannot be had" not in str(error):
        return False
    lanes = open_profile("full").caps.subgroup_size
    return lanes not in SUBGROUP_SIZES and re.search(rf"subgroup size (?:is )?{lanes}\b", str(error)) is not None


def with_repository(repository: Path, **others: str) -> dict[str, str]:
    """Return the environment of a process that finds the repository besides what this one finds."""
    paths = [str(repository), *filter(None, [os.environ.get("PYTHONPATH")])]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(paths), **others}


def type_of(array: Array) -> TensorType:
    """Return the type of an array."""
    return TensorType(str(array.dtype), array.shape)


def op_graph(
    name: str, inputs: Sequence[Array | None], attrs: Mapping[str, Any] | None = None, constants: Collection[int] = ()
) -> Graph:
    """Return the graph of one operator; inputs are named by position, those in `constants` are constants."""
    if name not in OPS:
        raise KeyError(f"no operator is called {name!r}: webnn_wgpu/ops/__init__.py lists the modules of operators")
    op = OPS[name]
    types, canonical = op.check([None if a is None else type_of(a) for a in inputs], attrs or {}, "test")
    given = {i: a for i, a in enumerate(inputs) if a is not None}
    values = {i: Value(i, type_of(a)) for i, a in given.items()}
    first = len(inputs)
    values |= {first + i: Value(first + i, t) for i, t in enumerate(types)}
    outputs = tuple(range(first, first + len(types)))
    node = Node(
        id=0,
        op=name,
        inputs=tuple(None if a is None else i for i, a in enumerate(inputs)),
        outputs=outputs,
        attrs=MappingProxyType(canonical),
        label="test",
        origins=(Origin(0, "test"),),
    )
    return verify(
        Graph(
            values=values,
            inputs={str(i): i for i in given if i not in constants},
            constants={i: frozen_array(a) for i, a in given.items() if i in constants},
            nodes=(node,),
            outputs={str(i): o for i, o in enumerate(outputs)},
        )
    )


class Sketch:
    """A graph while it is drawn, operator by operator. Operands and results are value ids; inputs are named by position."""

    def __init__(self) -> None:
        self.values: dict[int, Value] = {}
        self.inputs: dict[str, int] = {}
        self.constants: dict[int, Array] = {}
        self.nodes: list[Node] = []
        self.feeds: dict[str, Array] = {}

    def input(self, array: Array) -> int:
        """Add a graph input that will be fed `array`."""
        name = str(len(self.feeds))
        self.feeds[name] = array
        self.inputs[name] = value = self._value(type_of(array))
        return value

    def constant(self, array: Array) -> int:
        """Add a constant."""
        value = self._value(type_of(array))
        self.constants[value] = frozen_array(array)
        return value

    def apply_all(self, name: str, inputs: Sequence[int | None], label: str = "", **attrs: Any) -> tuple[int, ...]:
        """Add an operator and return its results."""
        op = OPS[name]
        inputs = [*inputs, *(None for _ in op.operands[len(inputs) :])]
        types, canonical = op.check([None if i is None else self.values[i].type for i in inputs], attrs, label)
        origins = (Origin(len(self.nodes), label),)
        outputs = tuple(self._value(t, origins) for t in types)
        node = Node(
            id=len(self.nodes),
            op=name,
            inputs=tuple(inputs),
            outputs=outputs,
            attrs=MappingProxyType(canonical),
            label=label,
            origins=origins,
        )
        self.nodes.append(node)
        return outputs

    def apply(self, name: str, *inputs: int | None, label: str = "", **attrs: Any) -> int:
        """Add an operator and return its first result."""
        return self.apply_all(name, inputs, label, **attrs)[0]

    def graph(self, *outputs: int, **named: int) -> Graph:
        """Return the graph with the given outputs, named by position or by keyword."""
        names = {str(i): value for i, value in enumerate(outputs)} | named
        return verify(
            Graph(
                values=dict(self.values),
                inputs=dict(self.inputs),
                constants=dict(self.constants),
                nodes=tuple(self.nodes),
                outputs=names,
            )
        )

    def type(self, value: int) -> TensorType:
        """Return the type of a value."""
        return self.values[value].type

    def _value(self, type_: TensorType, origins: tuple[Origin, ...] = ()) -> int:
        value = len(self.values)
        self.values[value] = Value(value, type_, origins)
        return value


def assert_same(actual: Mapping[str, Array], expected: Mapping[str, Array]) -> None:
    """Compare outputs by name: types, and every element bit by bit but for the payload and sign of NaN."""
    assert list(actual) == list(expected)
    for name, wanted in expected.items():
        found = actual[name]
        assert (found.dtype, found.shape) == (wanted.dtype, wanted.shape), name
        floats = wanted.dtype.kind == "f"
        same = (found == wanted) & (np.signbit(found) == np.signbit(wanted)) if floats else found == wanted
        if floats:
            same |= np.isnan(found) & np.isnan(wanted)
        where = tuple(int(i[0]) for i in np.nonzero(np.atleast_1d(~same))) if not np.all(same) else ()
        detail = f"{np.atleast_1d(found)[where]!r} is not {np.atleast_1d(wanted)[where]!r}" if not np.all(same) else ""
        assert np.all(same), f"output {name} at {where}: {detail}"


def run_graph(
    device: Device,
    graph: Graph,
    feeds: Mapping[str, Array],
    *,
    forced: Mapping[str, str] | None = None,
    tuning: Tuning | None = None,
    disabled_passes: Collection[str] = (),
) -> dict[str, Array]:
    """Compile a graph for a device, run it once and free it."""
    optimized, _ = run_passes(graph, device.target, disabled_passes)
    program = Program(device, make_plan(verify(optimized), device.target, forced, tuning))
    try:
        return program.start(feeds, list(graph.outputs)).result()
    finally:
        program.destroy()


def check_op(
    device: Device,
    name: str,
    inputs: Sequence[Array | None],
    attrs: Mapping[str, Any] | None = None,
    *,
    constants: Collection[int] = (),
    forced: Mapping[str, str] | None = None,
    tuning: Tuning | None = None,
    tolerance: float | None = None,
    atol: float | None = None,
) -> list[Array]:
    """Run one operator on a device and compare it with its reference.

    Args:
        device: where to run.
        name: specification name.
        inputs: arrays, None for absent optional operands.
        attrs: arguments and options.
        constants: positions of the inputs that are constants (folding is off, so the kernel runs).
        forced: kernel variants to take.
        tuning: kernel variants that were measured to be the fastest.
        tolerance: allowed ULP; default the operator's own, 0 for integers and for bounds without one: see `check_bounded`.
        atol: allowed absolute difference, instead of ULP.

    Returns:
        The outputs of the device.
    """
    graph = op_graph(name, inputs, attrs, constants)
    feeds = {n: a for n, a in ((str(i), a) for i, a in enumerate(inputs) if a is not None) if n in graph.inputs}
    expected = interpret(graph, feeds)
    actual = run_graph(device, graph, feeds, forced=forced, tuning=tuning, disabled_passes=("fold_constants",))
    if tolerance is None:
        tolerance = OPS[name].tolerance or 0
    for output, wanted in expected.items():
        if atol is not None:
            assert_within(actual[output], wanted, "ATOL", atol)
        else:
            exact = str(wanted.dtype) not in FLOATS
            assert_within(actual[output], wanted, "ULP", 0 if exact else tolerance)
    return list(actual.values())


def check_bounded(
    device: Device,
    name: str,
    inputs: Sequence[Array | None],
    attrs: Mapping[str, Any] | None = None,
    *,
    forced: Mapping[str, str] | None = None,
) -> list[Array]:
    """Run one operator on a device, and compare it with its reference within the bounds that it states for these operands."""
    graph = op_graph(name, inputs, attrs)
    feeds = {str(i): x for i, x in enumerate(inputs) if x is not None}
    expected = list(interpret(graph, feeds).values())
    found = list(run_graph(device, graph, feeds, forced=forced).values())
    allowed = bounds(graph, graph.nodes[0], inputs, expected)
    assert allowed is not None
    for actual, wanted, most in zip(found, expected, allowed, strict=True):
        np.testing.assert_array_equal(np.isnan(actual), np.isnan(wanted))
        with np.errstate(invalid="ignore"):  # of equal infinities
            off = np.abs(actual.astype(np.float64) - wanted.astype(np.float64))
        assert not (off > most).any(), f"off by up to {np.nanmax(off / most):.3g} times the bound"
    return found


def random_array(rng: np.random.Generator, data_type: str, shape: Sequence[int], scale: float = 4.0) -> Array:
    """Return random elements: normal numbers for floats, the whole range for integers."""
    dtype = np.dtype(data_type)
    if dtype.kind == "f":
        return np.asarray(rng.standard_normal(tuple(shape)) * scale, dtype)
    limits = np.iinfo(dtype)
    return np.asarray(rng.integers(limits.min, limits.max, tuple(shape), dtype, endpoint=True))
