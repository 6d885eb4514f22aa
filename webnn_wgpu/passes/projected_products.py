"""Projection shortcuts of residual blocks: the last product of the block adds them up itself."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from ..costs import ProductSize, Target
from ..ir.graph import Array, Graph, Node
from ..ops._quads import fits_binding
from ..ops.conv2d import CONV2D
from ..ops.elementwise import ADD
from ..ops.projected_product import CHANNELS, PROJECTED_MATMUL
from .narrow_weights import byte_zero_point, holds_halves
from .rewriting import Rewriter, given, rewrite


@dataclass(frozen=True)
class _Convolution:
    """A 1 x 1 convolution by a constant, without padding, whose channels come last.

    Attributes:
        node: the node.
        weights: the filter, [input channels, output channels].
        bias: the bias, or None for 0.
    """

    node: Node
    weights: Array
    bias: Array | None

    @property
    def image(self) -> int:
        """The value that it reads."""
        return self.node.operands[0]

    @property
    def result(self) -> int:
        """The value that it computes."""
        return self.node.outputs[0]

    @property
    def strides(self) -> tuple[int, int]:
        """The distance of the pixels that it reads."""
        return tuple(self.node.attrs["strides"])


def project_in_products(graph: Graph, target: Target) -> Graph:
    """Compute the sum of two 1 x 1 convolutions as one product, where that takes less time than both.

    One of them reads every pixel: the last convolution of a residual block. The other one may have strides.
    """
    return rewrite(graph, partial(_project, target), at=(ADD.name,))


def _project(target: Target, r: Rewriter, node: Node) -> bool:
    found = [_convolution(r, value) for value in node.operands]
    shape = r.shape(node.outputs[0])
    if len(set(node.operands)) < len(found) or any(each is None or r.shape(each.result) != shape for each in found):
        return False
    last, projection = sorted((each for each in found if each), key=lambda each: each.strides)
    if last.strides != (1, 1) or not _pays(r, last, projection, target):
        return False
    weights = r.constant(np.concatenate([last.weights, projection.weights]), last.node.operands[1])
    operands, attrs = (last.image, projection.image, weights), {"strides": projection.strides}
    sources = (last.node, projection.node)
    biases: list[Any] = [each.bias for each in (last, projection) if each.bias is not None]
    if not biases:
        r.add(PROJECTED_MATMUL.name, operands, attrs, (*sources, node), node.outputs[0])
        return True
    value = r.add(PROJECTED_MATMUL.name, operands, attrs, sources)
    total = np.sum([bias.astype(np.float64) for bias in biases], axis=0).astype(biases[0].dtype)
    r.add(ADD.name, (value, r.constant(total, weights)), {}, (*sources, node), node.outputs[0])
    return True


def _convolution(r: Rewriter, value: int) -> _Convolution | None:
    """Return a value as a 1 x 1 convolution that only its addition reads."""
    node = r.made_for_one(value, CONV2D.name)
    if node is None or node.attrs["input_layout"] != "nhwc" or node.attrs["groups"] != 1 or any(node.attrs["padding"]):
        return None
    taps, bias = r.constants.get(node.operands[1]), given(node, 2)
    # Kernels read these as bytes or float16. Beside the weights of another convolution they might not.
    if taps is None or byte_zero_point(taps) is not None or holds_halves(taps):
        return None
    if bias is not None and bias not in r.constants:
        return None
    order: str = node.attrs["filter_layout"]
    height, width, depth, columns = (taps.shape[order.index(letter)] for letter in "hwio")
    if (height, width) != (1, 1) or depth % CHANNELS:
        return None
    weights = taps.transpose([order.index(letter) for letter in "hwio"]).reshape(depth, columns)
    return _Convolution(node, weights, None if bias is None else r.constants[bias])


def _pays(r: Rewriter, last: _Convolution, projection: _Convolution, target: Target) -> bool:
    """Return whether one product takes less time than both, and its tensors fit a binding."""
    output = r.type(last.result)
    *lines, columns = output.shape
    sizes = [ProductSize(math.prod(lines), columns, each.weights.shape[0]) for each in (last, projection)]
    fit = all(fits_binding(type_, target.caps) for type_ in (r.type(last.image), r.type(projection.image), output))
    return fit and target.costs.products.projects(*sizes)
