"""The passes, in order, each with its reason. Every pass preserves the results of the reference within stated bounds."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from typing import cast

from ..core.errors import MLTypeError
from ..costs import Target
from ..ir.graph import Graph, file_places
from . import casts, channels, convolution, gelu, normalization, numbers, quantized, rotary
from .added_products import merge_added_products
from .attention import recognize_attention
from .attention_gradients import decompose_attention_gradients
from .cleanup import drop_dead_nodes, drop_identities, merge_identical_nodes
from .filter_gradients import recognize_filter_gradients
from .fold import fold_constants
from .fuse import fuse_elementwise, fuse_epilogues, fuse_transposes
from .fused_normalizations import fuse_normalizations
from .fused_pools import fuse_pools
from .integer_products import multiply_integers
from .integers import keep_integers_as_floats
from .layout import keep_channels_last
from .moved_reshapes import move_reshapes
from .movement import merge_movement
from .narrow_weights import keep_weights_narrow
from .normalized_products import normalize_in_products
from .product_pairs import pair_products
from .products import merge_products
from .projected_products import project_in_products
from .residuals import add_to_gradients
from .results import merge_results
from .rules import Rule
from .scalars import repeat_scalars
from .stacked_gradients import stack_gradients
from .stacks import stack_recurrent_layers
from .sums import merge_sums
from .transposed_factors import read_transposed_factors
from .transposes import merge_transposes
from .widen import widen_float16


@dataclass(frozen=True, kw_only=True)
class Pass:
    """One pass.

    Attributes:
        name: the name of its function.
        run: the function.
        reason: the purpose of the pass, for reports.
        exact: whether every result stays the same to the bit, on devices too. Other passes round less often, or lead to sums in
            another order. Their results stay within the tolerances of the replaced operators.
        by_cost: whether it decides by the costs of the target, the second argument of `run` then.
        rules: the rules that it applies, if it consists of rules.
    """

    name: str
    run: Callable[[Graph], Graph] | Callable[[Graph, Target], Graph]
    reason: str
    exact: bool = True
    by_cost: bool = False
    rules: tuple[Rule, ...] = field(default=(), kw_only=True)

    def apply(self, graph: Graph, target: Target) -> Graph:
        """Return the graph after the pass for a target."""
        if self.by_cost:
            return cast("Callable[[Graph, Target], Graph]", self.run)(graph, target)
        return cast("Callable[[Graph], Graph]", self.run)(graph)


@dataclass(frozen=True)
class PassReport:
    """The effect of one pass.

    Attributes:
        name: the name of the pass.
        nodes_before, nodes_after: the number of nodes before and after the pass.
        reason: the reason of the pass.
        places: the lines of a graph file whose operators the pass removed or rewrote. Empty for other graphs.
    """

    name: str
    nodes_before: int
    nodes_after: int
    reason: str
    places: tuple[str, ...] = ()

    def __str__(self) -> str:
        return f"{self.name}: {self.nodes_before} -> {self.nodes_after} nodes"


PASSES = (
    Pass(name="drop_dead_nodes", run=drop_dead_nodes, reason="nodes without a path to an output are not computed"),
    Pass(
        name="recognize_matmul_nbits",
        run=quantized.recognize_matmul_nbits,
        reason="kernels read 4-bit and blocked weights as stored, so this runs before constant folding makes wide copies",
        exact=False,
        rules=(quantized.MATMUL_NBITS,),
    ),
    Pass(
        name="fold_constants",
        run=fold_constants,
        reason="nodes with constant operands alone are computed once, at build time",
        by_cost=True,
    ),
    Pass(
        name="merge_casts",
        run=casts.merge_casts,
        reason="a cast of a lossless cast reads the first operand directly",
        rules=casts.RULES,
    ),
    Pass(
        name="decompose_attention_gradients",
        run=decompose_attention_gradients,
        reason="software adapters compute products faster than kernels that compute the scores of attention again",
        exact=False,
        by_cost=True,
    ),
    Pass(
        name="drop_identities",
        run=drop_identities,
        reason="identity, and reshape to the same shape, return their input unchanged",
    ),
    Pass(
        name="merge_identical_nodes",
        run=merge_identical_nodes,
        reason="the same operator on the same operands is computed once",
    ),
    Pass(
        name="merge_quantization",
        run=quantized.merge_quantization,
        reason="values that are quantized and dequantized at once need no quantized copy in memory",
        rules=(quantized.ROUND_TRIP,),
    ),
    Pass(
        name="fold_padding",
        run=convolution.fold_padding,
        reason="convolutions and pools read zeros around their input without a padded copy",
        exact=False,
        rules=convolution.PADDING_RULES,
    ),
    Pass(
        name="fold_into_convolutions",
        run=convolution.fold_into_convolutions,
        reason="the build multiplies factors and addends of channels into weights and bias",
        exact=False,
        rules=convolution.RULES,
    ),
    Pass(
        name="decompose_batch_normalization",
        run=channels.decompose_batch_normalization,
        reason="kernels next to a batch normalization fuse its factor and addend, which need no kernel of their own",
        exact=False,
        rules=channels.RULES,
    ),
    Pass(
        name="keep_integers_as_floats",
        run=keep_integers_as_floats,
        reason="producers scale exact sums of products; this runs after factors changed weights, which would round the sums",
        exact=False,
    ),
    Pass(
        name="recognize_filter_gradients",
        run=recognize_filter_gradients,
        reason="the gradient of a filter reads images in place, so no kernel copies them with their channels first",
        exact=False,
        by_cost=True,
    ),
    Pass(
        name="keep_channels_last",
        run=keep_channels_last,
        reason="convolutions read four channels of a pixel at once, without transposes between them",
        exact=False,
        by_cost=True,
    ),
    Pass(
        name="recognize_normalization",
        run=normalization.recognize_normalization,
        reason="one kernel replaces eight",
        exact=False,
        rules=normalization.RULES,
    ),
    Pass(
        name="recognize_rotary_embedding",
        run=rotary.recognize_rotary_embedding,
        reason="one kernel turns pairs without copies of their halves, and tables hold each angle once",
        exact=False,
        rules=rotary.RULES,
    ),
    Pass(
        name="recognize_attention",
        run=recognize_attention,
        reason="attention needs no matrix of scores in memory, and no transposes around heads",
        exact=False,
        by_cost=True,
    ),
    Pass(
        name="recognize_gelu",
        run=gelu.recognize_gelu,
        reason="one formula replaces five, or the thirteen of its derivative, and loses no digits below zero",
        exact=False,
        rules=gelu.RULES,
    ),
    Pass(
        name="merge_products",
        run=merge_products,
        reason="one product computes queries, keys and values from the same rows: fewer kernels, each with more work",
        exact=False,
        by_cost=True,
    ),
    Pass(
        name="stack_gradients",
        run=stack_gradients,
        reason="one product computes the gradients of parameters that follow each other, such as those of queries and keys",
        by_cost=True,
    ),
    Pass(
        name="merge_added_products",
        run=merge_added_products,
        reason="products that are only added up run in one dispatch, which has enough work for all cores",
        exact=False,
        by_cost=True,
    ),
    Pass(
        name="read_transposed_factors",
        run=read_transposed_factors,
        reason="kernels of products read transposed factors as they are stored, so no transpose copies them",
        by_cost=True,
    ),
    Pass(
        name="move_reshapes",
        run=move_reshapes,
        reason="convolutions over one dimension compute the element-wise operators behind their reshape",
        by_cost=True,
    ),
    Pass(
        name="merge_movement",
        run=merge_movement,
        reason="one movement replaces consecutive ones, and dimensions of size 1 need none",
    ),
    Pass(
        name="project_in_products",
        run=project_in_products,
        reason="the last product of a residual block also computes its projection shortcut, which nothing stores then",
        exact=False,
        by_cost=True,
    ),
    Pass(
        name="normalize_in_products",
        run=normalize_in_products,
        reason="products normalize the rows of their left factor, so that no kernel writes normalized rows for them",
        exact=False,
        by_cost=True,
    ),
    Pass(
        name="multiply_integers",
        run=multiply_integers,
        reason="few rows of quantized numbers read weights of 8 bits as bytes, and multiply four at once",
        by_cost=True,
    ),
    Pass(
        name="keep_weights_narrow",
        run=keep_weights_narrow,
        reason="kernels read weights of 8 bits as bytes and those of float16 as such: a quarter and half of the memory",
    ),
    Pass(
        name="take_numbers_along",
        run=numbers.take_numbers_along,
        reason="uniforms hold constant numbers, because the device limits the buffers of a fused kernel",
        rules=numbers.RULES,
    ),
    Pass(
        name="widen_float16",
        run=widen_float16,
        reason="on request, float16 values between operators stay float32 and are not rounded",
        exact=False,
    ),
    Pass(
        name="stack_recurrent_layers",
        run=stack_recurrent_layers,
        reason="a dispatch makes a time step of every layer, each one a step behind the layer below",
        exact=False,
        by_cost=True,
    ),
    Pass(
        name="add_to_gradients",
        run=add_to_gradients,
        reason="the gradient of a normalization adds the gradient that passes by it, before it stores a result",
        exact=False,
    ),
    Pass(
        name="pair_products",
        run=pair_products,
        reason="one kernel computes two products of few rows, as squeeze and excitation has them, with the operators between",
        exact=False,
        by_cost=True,
    ),
    Pass(
        name="fuse_epilogues",
        run=fuse_epilogues,
        reason="matrix products, convolutions and pools apply bias, activation and residual before they store a result",
        by_cost=True,
    ),
    Pass(
        name="fuse_transposes",
        run=fuse_transposes,
        reason="convolutions of few channels read channels-first input without a transpose",
    ),
    Pass(
        name="fuse_elementwise",
        run=fuse_elementwise,
        reason="one kernel computes element-wise operators of one shape, and reads and writes memory once",
        by_cost=True,
    ),
    Pass(
        name="repeat_scalars",
        run=repeat_scalars,
        reason="operators on single elements run in the kernels that read their results, and need none of their own",
        by_cost=True,
    ),
    Pass(
        name="merge_results",
        run=merge_results,
        reason="one kernel has several results of the same tensors and reads these once, such as a parameter and its states",
        by_cost=True,
    ),
    Pass(
        name="merge_sums",
        run=merge_sums,
        reason="one kernel sums up the columns of several tensors, such as the gradients of biases",
        by_cost=True,
    ),
    Pass(
        name="merge_transposes",
        run=merge_transposes,
        reason="one kernel transposes several results of a producer, such as keys and values",
        by_cost=True,
    ),
    Pass(
        name="fuse_normalizations",
        run=fuse_normalizations,
        reason="the kernel that adds up the parts of a product's sums also normalizes the rows, and reads them only once",
        by_cost=True,
    ),
    Pass(
        name="fuse_pools",
        run=fuse_pools,
        reason="the last convolution of a network stores the means over its pixels, and no image",
        exact=False,
        by_cost=True,
    ),
)
"""Every pass in the order it runs."""


def run_passes(graph: Graph, target: Target, disabled: Collection[str] = ()) -> tuple[Graph, tuple[PassReport, ...]]:
    """Run every pass that is not disabled.

    Args:
        graph: the source graph.
        target: the device that the graph is compiled for.
        disabled: names of passes to leave out.

    Returns:
        The rewritten graph, and the effect of each pass.

    Raises:
        MLTypeError: `disabled` names no pass.
    """
    unknown = set(disabled) - {p.name for p in PASSES}
    if unknown:
        allowed = ", ".join(p.name for p in PASSES)
        raise MLTypeError("disabled_passes must name passes", operator="build", got=sorted(unknown)[0], allowed=allowed)
    reports: list[PassReport] = []
    has_places = any(file_places(node.origins) for node in graph.nodes)
    for each in PASSES:
        if each.name not in disabled:
            before = graph
            graph = each.apply(graph, target)
            places = rewritten_places(before, graph) if has_places else ()
            reports.append(PassReport(each.name, len(before.nodes), len(graph.nodes), each.reason, places))
    return graph, tuple(reports)


def rewritten_places(before: Graph, after: Graph) -> tuple[str, ...]:
    """Return the lines of a graph file whose operators a pass removed or rewrote. Other operands alone are no change."""
    kept = {node.id: node for node in after.nodes}
    changed = [n for n in before.nodes if (k := kept.get(n.id)) is None or k.op != n.op or k.attrs is not n.attrs]
    return file_places(origin for node in changed for origin in node.origins)
