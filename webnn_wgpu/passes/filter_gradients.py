"""Gradients of convolutions' filters as products over pixels, whose operands stay where they are."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from ..core.caps import Caps
from ..costs import Target
from ..ir.graph import Graph, Node
from ..ops._quads import fits_binding
from ..ops._shapes import strides_of
from ..ops.conv2d import CONV2D
from ..ops.filter_gradient import FILTER_GRADIENT
from ..ops.interfaces.movement import joined
from ..ops.strided import SLICE, TRANSPOSE
from .rewriting import Rewriter, merged, rewrite
from .views import PERMUTATIONS, View, view_of


def recognize_filter_gradients(graph: Graph, target: Target) -> Graph:
    """Replace convolutions of transposed images by transposed images, as gradients of filters are stated, by one product.

    The convolution sums over images as over channels, so its kernels would read copies of both operands.
    """
    if not target.costs.convolutions.sums_over_pixels:
        return graph
    found = rewrite(graph, partial(_convolution, caps=target.caps), at=(CONV2D.name,))
    return graph if found is graph else rewrite(found, _part_of_taps, at=(SLICE.name,))


def _convolution(r: Rewriter, node: Node, *, caps: Caps) -> bool:
    attrs = node.attrs
    stated = attrs["groups"] == 1 and (attrs["input_layout"], attrs["filter_layout"]) == ("nchw", "oihw")
    if not stated or len(node.operands) > 2:
        return False
    x, gradient = (view_of(r, value, *PERMUTATIONS) for value in node.operands)
    # An image that is not transposed may have the same steps, if it has one channel.
    if gradient.value in r.constants or not any(move.op == TRANSPOSE.name for move in gradient.nodes):
        return False
    sources = [*x.nodes, *gradient.nodes, node]
    operands = [
        _channels_last(r, view, r.shape(value), sources) for view, value in zip((x, gradient), node.operands, strict=True)
    ]
    types = [r.type(value) for value in (*operands, node.outputs[0]) if value is not None]
    if None in operands or not all(fits_binding(type_, caps) for type_ in types):
        return False
    options = {
        "kernel": r.shape(node.outputs[0])[2:],
        "padding": attrs["padding"][::2],
        # Pixels of the gradient are the taps of this convolution.
        "strides": attrs["dilations"],
        "dilations": attrs["strides"],
    }
    found = r.add(FILTER_GRADIENT.name, operands[::-1], options, sources)
    r.add(TRANSPOSE.name, (found,), {"permutation": (3, 0, 1, 2)}, sources, node.outputs[0])
    return True


def _channels_last(r: Rewriter, view: View, shape: Sequence[int], sources: Sequence[Node]) -> int | None:
    """Return images [N, H, W, C] of which a value is a view with the shape [C, N, H, W], or None if it is another view."""
    c, n, h, w = shape
    if _is_transposed(view, (n, h, w, c), (3, 0, 1, 2)):
        return r.reshaped(view.value, (n, h, w, c), sources)
    if _is_transposed(view, (n, c, h, w), (1, 0, 2, 3)):
        images = r.reshaped(view.value, (n, c, h, w), sources)
        return r.add(TRANSPOSE.name, (images,), {"permutation": (0, 2, 3, 1)}, sources)
    return None


def _is_transposed(view: View, shape: Sequence[int], permutation: Sequence[int]) -> bool:
    """Return whether a view has the elements of its source in the order of a transpose of some shape."""
    strides = strides_of(shape)
    return view.offset == 0 and view.steps == joined(((shape[d], strides[d]),) for d in permutation)


def _part_of_taps(r: Rewriter, node: Node) -> bool:
    """Leave out taps without consumers: strides leave out pixels, so the convolution has more results than the filter."""
    moved = r.made_for_one(node.operands[0], TRANSPOSE.name)
    gradient = r.made_for_one(moved.operands[0], FILTER_GRADIENT.name) if moved else None
    if moved is None or gradient is None or any(node.attrs["starts"]) or set(node.attrs["strides"]) != {1}:
        return False
    result = r.shape(node.outputs[0])
    if result[:2] != r.shape(moved.outputs[0])[:2]:
        return False
    sources = (gradient, moved, node)
    found = r.add(FILTER_GRADIENT.name, gradient.operands, merged(gradient, kernel=result[2:]), sources)
    r.add(TRANSPOSE.name, (found,), moved.attrs, sources, node.outputs[0])
    return True
