"""Layer and RMS normalization as exporters write them: means, differences, squares, a root and a quotient."""

from __future__ import annotations

from ..ir.graph import Graph, Node
from .heads import HEADS_LAST
from .rewriting import Rewriter, given, merged, rewrite

_NORMALIZATIONS = ("layerNormalization", "x.rms_normalization")


def recognise_normalization(graph: Graph) -> Graph:
    """Replace normalizations along dimensions by the operator, and give it the scale and bias that follow."""
    return rewrite(rewrite(graph, _normalization, _scale, _bias), _by_row)


def _normalization(r: Rewriter, node: Node) -> bool:
    """Replace d / sqrt(mean(d * d) + epsilon), where d is x - mean(x), or x itself."""
    found = _quotient(r, node)
    if found is None:
        return False
    d, root, nodes = found
    plus = r.made_for_one(root.operands[0], "add")
    if plus is None or (sum_ := r.with_number(plus)) is None:
        return False
    variance, epsilon = sum_
    mean_square = r.made_for_one(variance, "reduceMean")
    square = mean_square and r.made_for_one(mean_square.operands[0], "pow", "mul")
    if mean_square is None or square is None or not mean_square.attrs["keep_dimensions"] or epsilon < 0:
        return False
    if square.operands[0] != d or (square.operands[1] != d if square.op == "mul" else r.number(square.operands[1]) != 2):
        return False
    if r.shape(square.outputs[0]) != r.shape(d) or r.shape(node.outputs[0]) != r.shape(d):
        return False
    axes = _axes(r, mean_square)
    sources = (square, mean_square, plus, root, *nodes, node)
    options = {"axes": axes, "epsilon": epsilon}
    difference = r.made(d, "sub")
    mean = difference and r.made_for_one(difference.operands[1], "reduceMean")
    if (
        difference is not None
        and mean is not None
        and mean.operands[0] == difference.operands[0]
        and mean.attrs["keep_dimensions"]
        and _axes(r, mean) == axes
        and r.inner(d, 2)
    ):
        r.add("layerNormalization", (mean.operands[0],), options, (mean, difference, *sources), node.outputs[0])
    else:
        r.add("x.rms_normalization", (d,), options, sources, node.outputs[0])
    return True


def _quotient(r: Rewriter, node: Node) -> tuple[int, Node, tuple[Node, ...]] | None:
    """Return d and the square root of d / sqrt(...), also where it is a product with the reciprocal."""
    if node.op == "div":
        root = r.made_for_one(node.operands[1], "sqrt")
        return (node.operands[0], root, ()) if root else None
    if node.op != "mul":
        return None
    for d, other in (node.operands, node.operands[::-1]):
        inverse = r.made_for_one(other, "reciprocal", "div")
        if inverse is None or (inverse.op == "div" and r.number(inverse.operands[0]) != 1):
            continue
        root = r.made_for_one(inverse.operands[-1], "sqrt")
        if root is not None:
            return d, root, (inverse,)
    return None


def _axes(r: Rewriter, reduction: Node) -> tuple[int, ...]:
    axes = reduction.attrs["axes"]
    return tuple(range(len(r.shape(reduction.operands[0])))) if axes is None else tuple(sorted(axes))


def _scale(r: Rewriter, node: Node) -> bool:
    """Give a normalization that has neither scale nor bias the product that follows as its scale."""
    if node.op != "mul":
        return False
    for value, scale in (node.operands, node.operands[::-1]):
        made = r.made_for_one(value, *_NORMALIZATIONS)
        if made is None or given(made, 1) is not None or given(made, 2) is not None:
            continue
        parameter = _parameter(r, made, scale, node)
        if parameter is not None:
            r.add(made.op, (made.operands[0], parameter), merged(made), (made, node), node.outputs[0])
            return True
    return False


def _bias(r: Rewriter, node: Node) -> bool:
    """Give a layer normalization without bias the sum that follows as its bias."""
    if node.op != "add":
        return False
    for value, bias in (node.operands, node.operands[::-1]):
        made = r.made_for_one(value, "layerNormalization")
        if made is None or given(made, 2) is not None:
            continue
        parameter = _parameter(r, made, bias, node)
        if parameter is not None:
            r.add(made.op, (made.operands[0], given(made, 1), parameter), merged(made), (made, node), node.outputs[0])
            return True
    return False


def _parameter(r: Rewriter, made: Node, value: int, node: Node) -> int | None:
    """Return a factor or addend as a scale or bias, if it has all the normalized dimensions and no other."""
    x = r.shape(made.operands[0])
    axes: tuple[int, ...] = made.attrs["axes"]
    shape = (1,) * (len(x) - len(r.shape(value))) + r.shape(value)
    fits = len(shape) == len(x) and all(s == (x[d] if d in axes else 1) for d, s in enumerate(shape))
    # A view of something that is computed would be made after the normalization that it replaces: constants alone are certain.
    if not fits or value not in r.constants or not axes or list(axes) != sorted(axes):
        return None
    return r.reshaped(value, [x[d] for d in axes], (node,))


def _by_row(r: Rewriter, node: Node) -> bool:
    """Normalize heads before the transpose that tells them apart: what reads rows of heads then does without that."""
    if node.op not in _NORMALIZATIONS or node.attrs["axes"] != (3,):
        return False
    apart = r.made_for_one(node.operands[0], "transpose")
    if apart is None or apart.attrs["permutation"] != HEADS_LAST:
        return False
    rows = r.add(node.op, (apart.operands[0], *node.inputs[1:]), node.attrs, (apart, node))
    r.add("transpose", (rows,), {"permutation": HEADS_LAST}, (apart, node), node.outputs[0])
    return True
