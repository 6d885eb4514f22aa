"""Two products of few rows in one kernel, which passes make of a product and of another one of its result.

Blocks of squeeze and excitation have such products: they scale the channels of an image by numbers between 0 and 1, which they
compute from the means of the channels. (Hu et al., Squeeze-and-Excitation Networks, 2018.) So have the heads of networks.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import cast

from ..costs import ProductSize
from ..costs.product_pairs import pair_tile
from ..ir.graph import Attrs, Graph, Node
from ..ir.types import TensorType
from ..kernels.element import QUAD
from ..kernels.expression import ExpressionBuilder
from ..kernels.packing import Permuted
from ..kernels.spec import Binding, KernelCall, KernelTemplate, Packed, grid_1d
from ..kernels.terms import OPAQUE_ZERO
from ..kernels.tiles import tile_uniforms
from ._attrs import Attr
from ._chain import apply_chain
from ._convolution_options import sizes_of
from ._def import Lowering, OpCall, OpDef, Operand
from ._product import declare_subgroups
from ._product_kernel import Addend, ProductKernel, finish
from .conv2d import CONV2D
from .gemm import GEMM
from .interfaces.epilogue import TakesEpilogue
from .interfaces.family import Family
from .matmul import MATMUL

PRODUCTS = (CONV2D.name, GEMM.name, MATMUL.name)
"""The operators that may be products of few rows with a matrix."""

_TEMPLATE = KernelTemplate("product_pair", ("tile", "hidden", "between", "subgroups", "c_read", "expression", "extra_reads"))


@dataclass(frozen=True, kw_only=True)
class RowProduct:
    """The product of the rows of an operand with one matrix, as a convolution of single pixels is.

    Attributes:
        rows: the value whose last dimension is multiplied, or the channels of whose only pixel are.
        weights: the matrix, in the form of the operator.
        dims: the dimensions of the matrix in this form.
        order: those of the rows and of the columns of the matrix among them.
        bias: the vector that is added to each row of the result, or None.
        size: the sizes.
    """

    rows: int
    weights: int
    dims: tuple[int, ...]
    order: tuple[int, int]
    bias: int | None
    size: ProductSize

    def matrix(self, *, transposed: bool) -> Permuted:
        """Return the packing of the weights as a matrix of K rows, or of N rows if `transposed`."""
        own = self.order[::-1] if transposed else self.order
        ones = tuple(d for d in range(len(self.dims)) if d not in own)
        return Permuted(self.dims, (*ones, *own))


def row_product(graph: Graph, node: Node) -> RowProduct | None:
    """Return a node as a product of rows with one matrix, or None if it is something else."""
    types, attrs = [graph.type(value) for value in node.operands], node.attrs
    rows, dims = types[0].num_elements // types[0].shape[-1], types[1].shape
    bias: int | None = None
    order: tuple[int, int]
    if node.op == MATMUL.name and math.prod(dims[:-2]) == 1:
        order = (len(dims) - 2, len(dims) - 1)
    elif node.op == GEMM.name and (attrs["alpha"], attrs["beta"], attrs["a_transpose"]) == (1, 1, False):
        order = (1, 0) if attrs["b_transpose"] else (0, 1)
        bias = node.inputs[2] if len(node.inputs) > 2 else None
    elif node.op == CONV2D.name and attrs["groups"] == 1 and not any(attrs["padding"]):
        image, taps = (sizes_of(t.shape, attrs[f"{n}_layout"]) for t, n in zip(types, ("input", "filter"), strict=False))
        if {image["h"], image["w"], taps["h"], taps["w"]} != {1}:
            return None
        rows, order = image["n"], (attrs["filter_layout"].index("i"), attrs["filter_layout"].index("o"))
        bias = node.inputs[2] if len(node.inputs) > 2 else None
    else:
        return None
    K, N = (dims[place] for place in order)
    size = ProductSize(rows, N, K)
    if bias is not None and graph.type(bias).shape not in ((size.N,), (1, size.N)):
        return None
    return RowProduct(rows=node.operands[0], weights=node.operands[1], dims=dims, order=order, bias=bias, size=size)


def between(node: Node) -> tuple[Node, ...]:
    """Return the element-wise operators between two products, which the node computes. Other nodes have none."""
    return cast("Graph", node.attrs["body"]).nodes[1:-1] if node.op == PRODUCT_PAIR.name else ()


@dataclass(frozen=True, kw_only=True)
class HiddenForm:
    """The template parameter that says how the kernel finishes hidden numbers, besides the expression.

    Attributes:
        bias: whether a bias is added to them first.
        reads: where the elements of the expression's further operands are, in the words of `shaders/lib/product.wgsl.j2`.
        half: whether the results of the first product are rounded to float16 before the expression.
        half_operand: whether the left factor of the second one is.
        lib: the files of `shaders/lib/math` that it takes.
    """

    bias: bool
    reads: tuple[str, ...]
    half: bool
    half_operand: bool
    lib: tuple[str, ...]


def _infer(call: OpCall) -> tuple[TensorType, ...]:
    body: Graph = call.attrs["body"]
    return tuple(body.type(value) for value in body.outputs.values())


def _lower(low: Lowering) -> list[KernelCall]:
    body: Graph = low.attrs["body"]
    outer = {inner: low.value(int(name)) for name, inner in body.inputs.items()}
    hidden, last = row_product(body, body.nodes[0]), row_product(body, body.nodes[-1])
    assert hidden
    assert last
    size = last.size
    tile = pair_tile(hidden.size.K, hidden.size.N, size.N)
    kernel = ProductKernel()
    declare_subgroups(kernel, low.caps)
    for name, value, packing in (
        ("a", hidden.rows, None),
        ("weights", hidden.weights, hidden.matrix(transposed=True)),
        ("b", last.weights, last.matrix(transposed=False)),
    ):
        element, quad = body.type(value).data_type, name != "b" or size.N % QUAD == 0
        operand = Packed(outer[value], packing) if packing else outer[value]
        kernel.bind(Binding(name=name, access="read", element=element, quad=quad), operand)
    tiles = tile_uniforms(size, 1, tile.columns.columns)
    kernel.uniforms(M=size.M, N=size.N, K=size.K, steps=hidden.size.K, **tiles)

    builder = ExpressionBuilder("h")
    result = body.nodes[0].outputs[0]
    names, read = apply_chain(builder, low, body, between(low.node), result)
    expression = builder.finish(names[body.nodes[-1].operands[0]]) if between(low.node) else None
    if hidden.bias is not None:
        kernel.bind(_vector(body, "hidden_c", hidden.bias), outer[hidden.bias])
    for i, value in enumerate(read):
        kernel.bind(_vector(body, f"hidden_extra{i}", value), outer[value])
    halves = [body.type(value).data_type == "float16" for value in (result, last.rows)]
    lib = expression.lib if expression else ()
    kernel.params["tile"] = tile
    kernel.params["between"] = expression
    kernel.params["hidden"] = HiddenForm(
        bias=hidden.bias is not None,
        reads=tuple(_read(body.type(value).shape, hidden.size) for value in read),
        half=halves[0],
        half_operand=halves[1],
        lib=("round_float16", *lib) if any(halves) else lib,
    )
    kernel.features += expression.features if expression else ()
    kernel.fields += [field for field in builder.uniforms if field[0] != OPAQUE_ZERO]
    addend = None
    if last.bias is not None:
        type_ = body.type(last.bias)
        addend = Addend(outer[last.bias], type_.data_type, type_.shape, 1)
    finish(kernel, low, size.N % QUAD == 0, lambda shape: _read(shape, size), addend, row=size.N)
    # `finish` may have declared it, too.
    if expression and OPAQUE_ZERO not in {name for name, *_ in kernel.fields}:
        kernel.uniform(OPAQUE_ZERO, 0)
    reason = f"{hidden.size.N} hidden numbers in each workgroup"
    return [kernel.call(_TEMPLATE, grid_1d(tiles["tiles"], low.caps), reason)]


def _vector(body: Graph, name: str, value: int) -> Binding:
    return Binding(name=name, access="read", element=body.type(value).data_type)


def _read(shape: Sequence[int], size: ProductSize) -> str:
    """Return how the kernel addresses an operand of a shape for an element of a product."""
    count = math.prod(shape)
    return "one" if count == 1 else "columns" if count == size.N else "full"


def _axis(attrs: Attrs) -> int:
    """Return the dimension of the channels, counted from the end: that of the second product."""
    last = cast("Graph", attrs["body"]).nodes[-1]
    stated = next(op.epilogue for op in (CONV2D, GEMM, MATMUL) if op.name == last.op)
    assert stated is not None
    return stated.axis(last.attrs)


PRODUCT_PAIR = OpDef(
    name="productPair",
    operands=(Operand(name="inputs", variadic=True),),
    infer=_infer,
    reference=None,
    lower=_lower,
    attrs=(Attr("body", "made"),),
    templates=(_TEMPLATE,),
    family=Family.PRODUCT,
    # The operators in its body have the interfaces that are left out, but for gradients.
    without=("elementwise", "movement", "layout", "precision", "cost", "bounds", "gradient"),
    epilogue=TakesEpilogue(axis=_axis, several=True),
    internal=True,
)
"""A body of a product of few rows, element-wise operators of its result, and a product of their result.

The weights are constants, and the sums of the first product have whole quads.
"""

OPS = (PRODUCT_PAIR,)
