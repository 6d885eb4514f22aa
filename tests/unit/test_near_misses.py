"""Graphs that are almost what passes look for: what they compute must stay what it is."""

from __future__ import annotations

from dataclasses import replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from tests.support import Sketch
from tests.targets import DEFAULT_TARGET
from tests.unit.attention import B, D, H, S, angles, heads, rotary
from tests.unit.rewrites import normal, number
from webnn_wgpu.core.errors import MLTypeError
from webnn_wgpu.ir.graph import Graph, Node, Value, frozen_array
from webnn_wgpu.ir.types import TensorType
from webnn_wgpu.ir.verify import verify
from webnn_wgpu.ops import OPS
from webnn_wgpu.passes import PASSES
from webnn_wgpu.reference import interpret

if TYPE_CHECKING:
    from collections.abc import Callable

    from webnn_wgpu.ir.graph import Array

FUSING = ("fuse_epilogues", "fuse_transposes", "fuse_elementwise", "merge_results")
"""Passes whose nodes the reference does not compute."""


def normalized(s: Sketch, x: int) -> int:
    mean = s.apply("reduceMean", x, axes=[2], keep_dimensions=True)
    difference = s.apply("sub", x, mean)
    variance = s.apply("reduceMean", s.apply("pow", difference, number(s, 2)), axes=[2], keep_dimensions=True)
    scaled = s.apply("div", difference, s.apply("sqrt", s.apply("add", variance, number(s, 1e-5))))
    size = s.type(x).shape[2]
    return s.apply("add", s.apply("mul", scaled, s.constant(normal(size, seed=8))), s.constant(normal(size, seed=9)))


def transformer() -> tuple[Graph, dict[str, Array]]:
    """A layer: normalization, one product for queries, keys and values, which are turned, attention, and a gelu."""
    s, width = Sketch(), H * D
    x = s.input(normal(B, S, width))
    rows = s.apply("matmul", normalized(s, x), s.constant(normal(width, 3 * width)))
    q, k, v = s.apply_all("split", [s.apply("add", rows, s.constant(normal(3 * width)))], splits=3, axis=2)
    cos, sin = (s.constant(f(angles(1, 1, S, D))) for f in (np.cos, np.sin))
    query, key = (rotary(s, heads(s, each, S), cos, sin) for each in (q, k))
    scores = s.apply("matmul", query, s.apply("transpose", key, permutation=[0, 1, 3, 2]))
    scores = s.apply("add", s.apply("mul", scores, number(s, 0.5)), s.input(normal(B, 1, S, S)))
    out = s.apply("matmul", s.apply("softmax", scores, axis=3), heads(s, v, S))
    out = s.apply("reshape", s.apply("transpose", out, permutation=[0, 2, 1, 3]), new_shape=[B, S, width])
    x = s.apply("add", x, s.apply("matmul", out, s.constant(normal(width, width))))
    inner = s.apply("matmul", x, s.constant(normal(width, width, seed=3)))
    erf = s.apply("erf", s.apply("div", inner, number(s, 2**0.5)))
    gelu = s.apply("mul", s.apply("mul", inner, s.apply("add", erf, number(s, 1))), number(s, 0.5))
    return s.graph(s.apply("add", x, gelu)), s.feeds


def convolutions() -> tuple[Graph, dict[str, Array]]:
    """A quantized convolution, scaled, normalized and padded for another, between movements that cancel out."""
    s = Sketch()
    x = s.apply("transpose", s.input(normal(1, 6, 5, 4)), permutation=[0, 3, 1, 2])
    scale, zero = s.apply_all("x.quantization_parameters", [x])
    steps = s.apply("cast", s.apply("quantizeLinear", x, scale, zero), data_type="float32")
    steps = s.apply("sub", steps, s.apply("cast", zero, data_type="float32"))
    weights = np.random.default_rng(4).integers(-9, 9, (4, 4, 3, 3)).astype(np.float32)
    sums = s.apply("cast", s.apply("conv2d", steps, s.constant(weights), padding=[1, 1, 1, 1]), data_type="int32")
    y = s.apply("mul", s.apply("cast", sums, data_type="float32"), s.apply("mul", scale, number(s, 0.1)))
    mean, factor, bias = (s.constant(normal(4, seed=i)) for i in range(3))
    y = s.apply("relu", s.apply("batchNormalization", y, mean, s.constant(np.abs(normal(4)) + 1), factor, bias))
    y = s.apply("pad", y, beginning_padding=[0, 0, 1, 1], ending_padding=[0, 0, 1, 1])
    y = s.apply("conv2d", y, s.constant(normal(8, 4, 3, 3)))
    y = s.apply("batchNormalization", s.apply("add", y, s.constant(normal(8, 1, 1))), *(s.constant(np.float32([2] * 8)),) * 2)
    parts = s.apply_all("split", [y], splits=2, axis=1)
    y = s.apply("concat", *parts, axis=1)
    cut = s.apply("slice", s.apply("concat", x, y, axis=1), starts=[0, 4, 0, 0], sizes=[1, 8, 6, 5])
    y = s.apply("transpose", s.apply("reshape", cut, new_shape=[1, 2, 4, 30]), permutation=[0, 2, 1, 3])
    return s.graph(s.apply("reshape", s.apply("transpose", y, permutation=[0, 2, 1, 3]), new_shape=[8, 30])), s.feeds


def shuffled(choices: np.random.Generator, node: Node) -> dict[str, Any]:
    """Return a node's options with one list of numbers in another order, or one number another."""
    lists = [name for name, value in node.attrs.items() if isinstance(value, tuple) and len(value) > 1]
    attrs = dict(node.attrs)
    if lists:
        name = str(choices.choice(lists))
        attrs[name] = tuple(attrs[name][i] for i in choices.permutation(len(attrs[name])))
    elif "axis" in attrs:
        attrs["axis"] = int(choices.integers(0, 4))
    return attrs


def changed(graph: Graph, choices: np.random.Generator) -> Graph | None:
    """Return a graph one of whose nodes reads something else, or has other options; None if that cannot be."""
    at, values, constants = int(choices.integers(len(graph.nodes))), dict(graph.values), dict(graph.constants)
    readable, nodes = [*graph.inputs.values(), *constants], list[Node]()
    for i, original in enumerate(graph.nodes):
        node = original
        if i == at:
            inputs = list(node.inputs)
            place = inputs.index(int(choices.choice(node.operands)))
            type_ = values[node.inputs[place] or 0].type
            match choices.integers(4):
                case 0:
                    inputs[place] = int(choices.choice([v for v in readable if values[v].type.data_type == type_.data_type]))
                case 1:
                    shape = [(), (1,), type_.shape[-1:], type_.shape][choices.integers(4)]
                    array: Array = np.asarray(choices.integers(0, 3, shape)).astype(type_.numpy)
                    inputs[place] = new = max(values) + 1
                    values[new] = Value(new, TensorType(type_.data_type, shape), ())
                    constants[new] = frozen_array(array)
                case 2:
                    inputs[0], inputs[-1] = inputs[-1], inputs[0]
                case _:
                    node = replace(node, attrs=MappingProxyType(shuffled(choices, node)))
            node = replace(node, inputs=tuple(inputs))
        try:
            types, attrs = OPS[node.op].check([None if v is None else values[v].type for v in node.inputs], node.attrs, "")
        except MLTypeError:
            return None
        values |= {o: replace(values[o], type=t) for o, t in zip(node.outputs, types, strict=True)}
        nodes.append(replace(node, attrs=MappingProxyType(attrs)))
        readable += node.outputs
    return verify(Graph(values=values, inputs=graph.inputs, constants=constants, nodes=tuple(nodes), outputs=graph.outputs))


@pytest.mark.parametrize("kind", [transformer, convolutions])
def test_what_is_almost_a_pattern_computes_what_it_did(kind: Callable[[], tuple[Graph, dict[str, Array]]]) -> None:
    (whole, feeds), choices, found = kind(), np.random.default_rng(12), 0
    while found < 150:
        graph = changed(whole, choices)
        if graph is None:
            continue
        found += 1
        (wanted,) = interpret(graph, feeds).values()
        after = graph
        for each in PASSES:
            if each.name not in FUSING:
                after = verify(each.apply(after, DEFAULT_TARGET))
        (result,) = interpret(after, feeds).values()
        if np.all(np.isfinite(wanted)):
            np.testing.assert_allclose(result, wanted, rtol=0, atol=1e-3 * max(float(np.max(np.abs(wanted))), 1e-6))
