"""Helpers of the tests of matrix products: random factors, error bounds, chains of operators, conformance cases."""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np

from tests.support import random_array, run_graph, type_of
from webnn_wgpu.costs.products import ProductCosts
from webnn_wgpu.costs.tiles import block_tile
from webnn_wgpu.ir.graph import Graph, Node, Value, frozen_array
from webnn_wgpu.ir.verify import verify
from webnn_wgpu.ops import OPS
from webnn_wgpu.passes import run_passes

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import pytest

    from webnn_wgpu.ir.graph import Array
    from webnn_wgpu.runtime.device import Device


def whole_numbers(rng: np.random.Generator, data_type: str, *shape: int) -> Array:
    """Return whole numbers from -8 to 8: float32 holds every sum of their products exactly, whatever the order."""
    return rng.integers(-8, 8, shape, endpoint=True).astype(data_type)


def assert_signed(actual: Array, a: Array, b: Array, a_transpose: bool = False, b_transpose: bool = False) -> None:
    """Compare with a b where terms cancel: each element may be off by K roundings of the sum of its terms' sizes."""
    left, right = (x.swapaxes(-1, -2) if t else x for x, t in ((a, a_transpose), (b, b_transpose)))
    wide_a, wide_b = left.astype(np.float64), right.astype(np.float64)
    wanted = wide_a @ wide_b
    bound = left.shape[-1] * 2.0**-23 * (np.abs(wide_a) @ np.abs(wide_b))
    if actual.dtype == np.float16:
        bound += 2.0**-11 * np.abs(wanted) + 2.0**-25
    assert actual.shape == wanted.shape
    assert np.all(np.abs(actual - wanted) <= bound)


def in_tiles(monkeypatch: pytest.MonkeyPatch, sides: Sequence[float], parts: int = 1) -> None:
    """Have all products of the tiled kernel computed in one tile, and their sums in some parts."""
    tile = block_tile(sides)
    monkeypatch.setattr(ProductCosts, "tile_and_parts", lambda *_, **__: (tile, parts))


class Chain:
    """A graph while it is built, operator by operator; every input is a graph input unless it is given as a constant."""

    def __init__(self) -> None:
        self.values: dict[int, Value] = {}
        self.feeds: dict[str, Array] = {}
        self._inputs: dict[str, int] = {}
        self._constants: dict[int, Array] = {}
        self._nodes: list[Node] = []

    def input(self, array: Array) -> int:
        """Add a graph input."""
        name = str(len(self.feeds))
        self.feeds[name] = array
        self._inputs[name] = value = self._value(type_of(array))
        return value

    def constant(self, array: Array) -> int:
        """Add a constant."""
        value = self._value(type_of(array))
        self._constants[value] = frozen_array(array)
        return value

    def apply(self, name: str, inputs: Sequence[int | None], **attrs: Any) -> int:
        """Add an operator and return its result."""
        types, canonical = OPS[name].check([None if i is None else self.values[i].type for i in inputs], attrs)
        output = self._value(types[0])
        self._nodes.append(
            Node(id=len(self._nodes), op=name, inputs=tuple(inputs), outputs=(output,), attrs=MappingProxyType(canonical))
        )
        return output

    def graph(self, output: int) -> Graph:
        """Return the graph with one output, "0"."""
        return verify(
            Graph(
                values=self.values,
                inputs=self._inputs,
                constants=self._constants,
                nodes=tuple(self._nodes),
                outputs={"0": output},
            )
        )

    def _value(self, type_: Any) -> int:
        value = len(self.values)
        self.values[value] = Value(value, type_)
        return value


class Ending:
    """Operators behind an anchor: each method is one kind of epilogue and returns the last result.

    Attributes:
        chain: the graph.
        result: the result of the anchor.
        vector: the shape of a vector along its channels, which are dimension `axis` from the end.
        rng: the source of the operands.
    """

    def __init__(self, chain: Chain, result: int, axis: int, rng: np.random.Generator) -> None:
        self.chain, self.result, self.rng = chain, result, rng
        self.data_type, self.shape = chain.values[result].type.data_type, chain.values[result].type.shape
        self.vector = (self.shape[axis], *(1,) * (-1 - axis))

    def random(self, *shape: int) -> Any:
        return random_array(self.rng, self.data_type, shape)

    def nothing(self) -> int:
        return self.chain.apply("tanh", [self.result])

    def uniforms(self) -> int:
        return self.chain.apply("leakyRelu", [self.result], alpha=0.25)

    def channels(self) -> int:
        biased = self.chain.apply("add", [self.result, self.chain.constant(self.random(*self.vector))])
        scaled = self.chain.apply("mul", [self.chain.input(self.random(1, *self.vector[-3:])), biased])
        return self.chain.apply("gelu", [scaled])

    def one_and_all(self) -> int:
        scaled = self.chain.apply("mul", [self.chain.input(self.random(1, 1)), self.result])
        return self.chain.apply("sub", [self.chain.input(self.random(*self.shape)), scaled])

    def bytes(self) -> int:
        picked = self.chain.input((self.random(*self.shape) > 0).astype(np.uint8))
        return self.chain.apply("where", [picked, self.result, self.chain.constant(self.random(*self.vector))])

    def cast(self) -> int:
        other = "float32" if self.data_type == "float16" else "float16"
        return self.chain.apply("cast", [self.result], data_type=other)

    def quantized(self) -> int:
        scale = self.chain.constant(np.full((1,) * len(self.shape), 0.01, self.data_type))
        zero = self.chain.constant(np.full((1,) * len(self.shape), 100, np.uint8))
        bytes_ = self.chain.apply("quantizeLinear", [self.result, scale, zero])
        return self.chain.apply("dequantizeLinear", [bytes_, scale, zero])


CHANNELS = {"nchw": -3, "nhwc": -1}
"""The dimension of the channels in a layout, counted from the end."""

ENDINGS = ("nothing", "uniforms", "channels", "one_and_all", "bytes", "cast", "quantized")
"""The methods of `Ending`."""


def check_fused(device: Device, chain: Chain, output: int, forced: Mapping[str, str]) -> None:
    """Check that a chain is one kernel and that no bit of its result differs from its operators run one by one."""
    graph = chain.graph(output)
    fused, _ = run_passes(graph, device.target)
    assert len(fused.nodes) == 1
    whole = run_graph(device, graph, chain.feeds, forced=forced)
    apart = run_graph(device, graph, chain.feeds, forced=forced, disabled_passes=("fuse_epilogues", "fuse_elementwise"))
    np.testing.assert_array_equal(whole["0"], apart["0"])
