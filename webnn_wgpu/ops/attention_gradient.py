"""The gradient of attention: kernels that compute the weights again from queries and keys, and store no matrix of scores.

Source: T. Dao, FlashAttention-2, 2023.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..core.data_types import FLOATS
from ..ir.graph import Array, Attrs
from ..ir.types import TensorType
from ..kernels.element import QUAD
from ..kernels.spec import Binding, KernelCall, KernelTemplate, Temp, grid_1d
from . import _attention_documentation as _documentation
from ._attention_operands import (
    ATTRS,
    MASK_AND_LENGTH,
    HeadsTensor,
    QueryKeyValue,
    bind_scores,
    check_operands,
    number_of_scores,
    weights_of,
)
from ._def import Lowering, OpCall, OpDef, Operand
from ._product_kernel import ProductKernel
from ._rows import to_type, wide
from .gradients import attention as attention_gradients
from .interfaces.bounds import CONDITIONED
from .interfaces.cost import Cost
from .interfaces.family import Family
from .softmax import SOFTMAX_OPERATIONS

_TEMPLATE = KernelTemplate("attention_gradient", ("quads", "key_quads", "value_quads"))

_BLOCK = 32
"""Rows and keys of a block of scores."""

_ACROSS = 8
"""Invocations that share the columns of a gradient."""

_MOST_QUADS = 4
"""Quads of columns that an invocation sums up in registers. Wider heads have several panels."""

_MOST_BUFFERS = 8
"""Storage buffers of a kernel that WebGPU guarantees."""


def _infer(call: OpCall) -> tuple[TensorType, ...]:
    heads = check_operands(call, 1)
    allowed = heads.result(call.input(1).rank)
    call.require(
        call.input(0).shape == allowed, "gradient must have the shape of the result of attention", allowed=str(list(allowed))
    )
    return tuple(call.input(i) for i in (1, 2, 3))


def _reference(arrays: Sequence[Array | None], attrs: Attrs, out: tuple[TensorType, ...]) -> list[Array]:
    gradient = arrays[0]
    assert gradient is not None
    with np.errstate(all="ignore"):
        found = weights_of(arrays[1:], attrs)
        g = wide(HeadsTensor.of(gradient.shape, attrs["heads"]).split(gradient))
        p: Any = found.weights
        flow: Any = g @ found.value.swapaxes(-1, -2)
        of_scores: Any = attrs["scale"] * p * (flow - (p * flow).sum(axis=-1, keepdims=True))
        if attrs["softcap"]:
            of_scores = of_scores * (1 - np.square(found.capped / attrs["softcap"]))
        of_query = of_scores @ found.key
        of_heads = [of_scores.swapaxes(-1, -2) @ found.query, p.swapaxes(-1, -2) @ g]
    group = attrs["heads"] // attrs["kv_heads"]
    gradients = [of_query, *(a.reshape(a.shape[0], -1, group, *a.shape[2:]).sum(axis=2) for a in of_heads)]
    return [
        to_type(a if len(t.shape) == 4 else a.swapaxes(1, 2).reshape(t.shape), t) for a, t in zip(gradients, out, strict=True)
    ]


class _Lowering:
    """The calls of one node."""

    def __init__(self, low: Lowering) -> None:
        self.low = low
        self.heads = QueryKeyValue.of(low, 1)
        self.rows = self.heads.q.heads // self.heads.k.heads * self.heads.q.length
        self.stats = Temp("stats", self.heads.q.batch * self.heads.k.heads * self.rows * QUAD * 4)
        self.in_quads = self.heads.q.size % QUAD == 0 and self.heads.v.size % QUAD == 0

    def calls(self) -> list[KernelCall]:
        """Return the call for the queries, and one or two for keys and values."""
        of_query = self._kernel()
        of_query.bind(self._output("query", 0), self.low.node.outputs[0])
        of_query.bind(Binding(name="stats", access="write", quad=True), self.stats)
        quads = self._quads(self.heads.q.size)
        of_query.params |= {"quads": quads, "key_quads": 0, "value_quads": 0}
        found = [self._call(of_query, self.rows, self._panels((self.heads.q.size, quads)))]
        outputs = ("key", "value")
        # With mask and length, a kernel of both outputs has a buffer too many.
        both = len(of_query.bindings) < _MOST_BUFFERS
        for names in [outputs] if both else [(name,) for name in outputs]:
            found.append(self._of_keys(names))
        return found

    def _of_keys(self, names: Sequence[str]) -> KernelCall:
        kernel = self._kernel()
        kernel.bind(Binding(name="stats", access="read", quad=True), self.stats)
        sizes = {"key": self.heads.k.size, "value": self.heads.v.size}
        widths: list[tuple[int, int]] = []
        kernel.params["quads"] = 0
        for index, (name, size) in enumerate(sizes.items(), 1):
            given = name in names
            kernel.params[f"{name}_quads"] = quads = self._quads(size) if given else 0
            if given:
                widths.append((size, quads))
                kernel.bind(self._output(name, index), self.low.node.outputs[index])
        return self._call(kernel, self.heads.k.length, self._panels(*widths))

    def _kernel(self) -> ProductKernel:
        """Return a kernel with the operands."""
        kernel, low, heads = ProductKernel(), self.low, self.heads
        result = HeadsTensor.of(low.input(0).shape, low.attrs["heads"])
        layouts = {"gradient": ("o", result), "query": ("q", heads.q), "key": ("k", heads.k), "value": ("v", heads.v)}
        for index, (name, (letter, layout)) in enumerate(layouts.items()):
            element = low.input(index).data_type
            kernel.bind(Binding(name=name, access="read", element=element, quad=self.in_quads), low.value(index))
            places = (f"{letter}_batch", f"{letter}_head", f"{letter}_row")
            kernel.uniforms(**dict(zip(places, layout.strides, strict=True)))
        group = heads.q.heads // heads.k.heads
        kernel.uniforms(group=group, S=heads.q.length, T=heads.k.length, D=heads.q.size, V=heads.v.size)
        bind_scores(kernel, low, heads, quads=True, first=1)
        return kernel

    def _output(self, name: str, index: int) -> Binding:
        element = self.low.output(index).data_type
        return Binding(name=f"{name}_output", access="write", element=element, quad=self.in_quads)

    def _call(self, kernel: ProductKernel, length: int, panels: int) -> KernelCall:
        """Return the call of a kernel whose workgroups divide rows or keys."""
        heads = self.heads
        tiles = -(-length // _BLOCK)
        units = tiles * heads.k.heads * heads.q.batch
        kernel.uniforms(units=units, parts=1, tiles=tiles, part_keys=heads.k.length, panels=panels)
        kernel.uniforms(rows=self.rows, heads=heads.k.heads)
        return kernel.call(_TEMPLATE, grid_1d(units * panels, self.low.caps), f"blocks of {_BLOCK} rows and {_BLOCK} keys")

    def _quads(self, size: int) -> int:
        return min(_MOST_QUADS, -(-size // (QUAD * _ACROSS)))

    def _panels(self, *widths: tuple[int, int]) -> int:
        """Return how many workgroups share the columns of gradients, by their sizes and the quads of an invocation."""
        return max(-(-size // (QUAD * _ACROSS * quads)) for size, quads in widths)


def _lower(low: Lowering) -> list[KernelCall]:
    return _Lowering(low).calls()


def _operations(attrs: Attrs, types: Sequence[TensorType], output: TensorType) -> int:
    gradient, query, key = types[:3]
    products = 3 * query.num_elements + 2 * gradient.num_elements
    return 2 * key.shape[-2] * products + (SOFTMAX_OPERATIONS + 4) * number_of_scores(attrs, query, key)


ATTENTION_GRADIENT = OpDef(
    name="x.attention_gradient",
    operands=(
        Operand(name="gradient", data_types=FLOATS, min_rank=3, max_rank=4),
        Operand(name="query", same_as="gradient", min_rank=3, max_rank=4),
        Operand(name="key", same_as="gradient", min_rank=3, max_rank=4),
        Operand(name="value", same_as="gradient", min_rank=3, max_rank=4),
        *MASK_AND_LENGTH,
    ),
    infer=_infer,
    reference=_reference,
    lower=_lower,
    attrs=ATTRS,
    templates=(_TEMPLATE,),
    outputs=("queryGradient", "keyGradient", "valueGradient"),
    output_types=FLOATS,
    family=Family.ATTENTION,
    without=("elementwise", "epilogue", "movement", "layout", "precision"),
    cost=Cost(_operations),
    bounds=CONDITIONED,
    documentation=_documentation.ATTENTION_GRADIENT,
    gradient=attention_gradients.ATTENTION_GRADIENT,
)

OPS = (ATTENTION_GRADIENT,)
