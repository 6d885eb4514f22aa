"""Gradients of parameters that follow each other in memory and had the same rows, such as those of queries, keys and values.

The gradient of each is a product of the transposed rows with the gradient of a result. Where all of these are known together,
they become the matrices of one tensor, which their producers write, and one product has the gradients of all parameters.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any

from ..core.caps import DEFAULT_LIMITS
from ..costs import Target
from ..ir.graph import Graph, Node, Value
from ..ir.types import TensorType
from ..ops import OPS
from ..ops._quads import fits_binding
from ..ops.concat import CONCAT
from ..ops.gemm import GEMM
from ..ops.matmul import MATMUL
from ..ops.strided import SPLIT, TRANSPOSE
from ..ops.views import RESHAPE

_ALIGNMENT = DEFAULT_LIMITS["min-storage-buffer-offset-alignment"]
"""The multiple of bytes at which every device can bind a part of a buffer."""


@dataclass(frozen=True)
class _Gradient:
    """The gradient of a parameter.

    Attributes:
        product: the node of the product.
        root: the gradient of a result, of which the right factor is a view.
        nodes: the product, its view, which is an operand of the concatenation, and the nodes between the root and the product.
    """

    product: Node
    root: int
    nodes: tuple[Node, ...]


class _Stacker:
    """A graph while its gradients are stacked."""

    def __init__(self, graph: Graph, target: Target) -> None:
        self.graph, self.target = graph, target
        self.makers = {output: node for node in graph.nodes for output in node.outputs}
        self.times_read = Counter(value for node in graph.nodes for value in node.operands)
        self.times_read.update(graph.outputs.values())
        self.position = {node.id: i for i, node in enumerate(graph.nodes)}
        self.values: dict[int, Value] = dict(graph.values)
        self.next_node = max(node.id for node in graph.nodes) + 1
        self.next_value = max(graph.values) + 1
        self.renamed: dict[int, int] = {}
        self.behind: defaultdict[int, list[Node]] = defaultdict(list)
        """New nodes behind the nodes with some numbers."""
        self.gone: set[int] = set()

    def run(self) -> Graph:
        """Return the graph."""
        for node in self.graph.nodes:
            if node.op == CONCAT.name and len(self.graph.type(node.outputs[0]).shape) == 1:
                self._concat(node)
        if not self.gone:
            return self.graph
        nodes: list[Node] = []
        for node in self.graph.nodes:
            if node.id not in self.gone:
                outputs = tuple(self.renamed.get(output, output) for output in node.outputs)
                nodes.append(node if outputs == node.outputs else replace(node, outputs=outputs))
            nodes += self.behind[node.id]
        return self.graph.with_nodes(tuple(nodes), values=self.values)

    def _concat(self, node: Node) -> None:
        found = [self._gradient(value) for value in node.operands]
        operands: list[int] = []
        first = 0
        while first < len(found):
            run = self._run(found, first)
            operands.append(self._stack(run) if len(run) > 1 else node.operands[first])
            first += max(1, len(run))
        if len(operands) < len(node.operands):
            self.gone.add(node.id)
            self.behind[node.id].append(replace(node, inputs=tuple(operands)))

    def _gradient(self, value: int) -> _Gradient | None:
        """Return the gradient that an operand of a concatenation is a view of."""
        view = self.makers.get(value)
        if view is None or view.op != RESHAPE.name or self.times_read[value] > 1:
            return None
        product = self.makers.get(view.operands[0])
        if product is None or product.op != GEMM.name or self.times_read[view.operands[0]] > 1 or len(product.operands) > 2:
            return None
        turned = product.attrs["a_transpose"], product.attrs["b_transpose"]
        root, between = self._right(product), list[Node]()
        while (maker := self.makers.get(root)) is not None and maker.op == RESHAPE.name and self.times_read[root] == 1:
            between.append(maker)
            root = maker.operands[0]
        return (
            _Gradient(product, root, (*between, product, view))
            if turned == (True, False) and product.attrs["alpha"] == 1
            else None
        )

    @staticmethod
    def _right(product: Node) -> int:
        """Return the right factor of a product."""
        _, right, *_ = product.operands
        return right

    def _run(self, found: Sequence[_Gradient | None], first: int) -> list[_Gradient]:
        """Return the gradients from a number on that one product can compute."""
        run: list[_Gradient] = []
        for each in found[first:]:
            if each is None or not self._joins(run, each):
                break
            run.append(each)
        return run if self._pays(run) else []

    def _joins(self, run: Sequence[_Gradient], each: _Gradient) -> bool:
        graph, types = self.graph, [self.graph.type(value) for value in (each.root, each.product.operands[1])]
        if each.root not in self.makers or each.root in graph.outputs.values() or types[0].data_type != "float32":
            return False
        same = not run or (
            run[0].product.operands[0] == each.product.operands[0]
            and types == [graph.type(value) for value in (run[0].root, run[0].product.operands[1])]
        )
        # Consumers find each matrix where every device can bind it.
        return same and each.root not in [g.root for g in run] and types[0].size_bytes % _ALIGNMENT == 0

    def _pays(self, run: Sequence[_Gradient]) -> bool:
        """Return whether all gradients are made before another node reads one, and fit a binding together."""
        if len(run) < 2:
            return False
        roots = {gradient.root for gradient in run}
        last = max(self.position[self.makers[root].id] for root in roots)
        early = any(roots.intersection(node.operands) for node in self.graph.nodes[: last + 1])
        whole = TensorType("float32", (len(run) * self.graph.type(run[0].root).num_elements,))
        return not early and fits_binding(whole, self.target.caps)

    def _stack(self, run: Sequence[_Gradient]) -> int:
        """Add the product of the rows with the stacked gradients, and return it with one dimension."""
        type_, count = self.graph.type(run[0].root), len(run)
        rows, right = run[0].product.operands
        M, K = self.graph.type(rows).shape
        N = self.graph.type(right).shape[1]
        makers = [self.makers[gradient.root] for gradient in run]
        replaced = [node for gradient in run for node in gradient.nodes]
        origins = dict.fromkeys(origin for node in replaced for origin in node.origins)
        source = replace(run[0].product, origins=tuple(origins))
        behind = self.behind[max(makers, key=lambda node: self.position[node.id]).id]
        matrices: list[int] = []
        for gradient in run:
            self.renamed[gradient.root] = new = self._value(gradient.root, type_.shape)
            matrices += self._add(behind, RESHAPE.name, (new,), {"new_shape": (1, M, N)}, source)
        (stack,) = self._add(behind, CONCAT.name, matrices, {"axis": 0}, source)
        parts = self._add(behind, SPLIT.name, (stack,), {"axis": 0, "splits": (1,) * count}, source)
        for gradient, part in zip(run, parts, strict=True):
            shape = {"new_shape": type_.shape}
            self._add(behind, RESHAPE.name, (part,), shape, source, (gradient.root,))
        place = self.behind[min((gradient.product for gradient in run), key=lambda node: self.position[node.id]).id]
        (one,) = self._add(place, RESHAPE.name, (rows,), {"new_shape": (1, M, K)}, source)
        (turned,) = self._add(place, TRANSPOSE.name, (one,), {"permutation": (0, 2, 1)}, source)
        (product,) = self._add(place, MATMUL.name, (turned, stack), {}, source)
        self.gone.update(node.id for node in replaced)
        (whole,) = self._add(place, RESHAPE.name, (product,), {"new_shape": (count * K * N,)}, source)
        return whole

    def _value(self, like: int, shape: Sequence[int]) -> int:
        number, old = self.next_value, self.values[like]
        self.next_value += 1
        self.values[number] = Value(number, TensorType(old.type.data_type, tuple(shape)), old.origins)
        return number

    def _add(
        self,
        nodes: list[Node],
        op: str,
        inputs: Sequence[int],
        attrs: Mapping[str, Any],
        source: Node,
        outputs: tuple[int, ...] = (),
    ) -> tuple[int, ...]:
        """Add a node to a list and return its results: `outputs`, or new values."""
        padded = (*inputs, *(None for _ in OPS[op].operands[len(inputs) :]))
        types, canonical = OPS[op].check([None if i is None else self.values[i].type for i in padded], attrs, source.label)
        outputs = outputs or tuple(self._value(source.outputs[0], type_.shape) for type_ in types)
        nodes.append(
            Node(
                id=self.next_node,
                op=op,
                inputs=padded,
                outputs=outputs,
                attrs=MappingProxyType(canonical),
                label=source.label,
                origins=source.origins,
            )
        )
        self.next_node += 1
        return outputs


def stack_gradients(graph: Graph, target: Target) -> Graph:
    """Compute gradients of parameters that follow each other by one product, if they have the same rows."""
    return _Stacker(graph, target).run() if any(node.op == CONCAT.name for node in graph.nodes) else graph
