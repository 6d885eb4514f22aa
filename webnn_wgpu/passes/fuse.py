"""Fusing element-wise operators: with each other, and behind operators that can apply them before storing their result."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple

from ..core.data_types import FLOATS
from ..costs import Target
from ..ir.graph import Graph, Node, Value
from ..ops import OPS
from ..ops.fused import FUSED, members_of, whole_number
from ..ops.interfaces.family import Family
from ..ops.interfaces.layout import to_last
from ..ops.strided import TRANSPOSE

MAX_INPUTS = 6
"""Most tensors a fused kernel binds to read: with the output they must fit the 8 storage buffers that WebGPU guarantees."""

_FEWEST_RESULTS = 2
"""Results that a kernel stores instead of the value that they are computed from. A single one is the value of a group."""

_AT_ONCE = 4
"""The number of channels of a pixel that convolutions read at once, if channels come last in a multiple of it."""


def fuse_epilogues(graph: Graph, target: Target) -> Graph:
    """Fuse element-wise operators into the producer whose result they alone read, if it can apply an epilogue."""
    return _fuse(graph, target, lambda node: _takes_epilogue(graph, target, node), fits_epilogue)


def fuse_elementwise(graph: Graph, target: Target) -> Graph:
    """Fuse chains of element-wise operators of one shape into one kernel."""
    return _fuse(graph, target, lambda node: OPS[node.op].elementwise is not None, _fits_chain)


def fuse_transposes(graph: Graph) -> Graph:
    """Fuse the transpose of an image to channels last into the convolution that alone reads it, if no quads of channels do."""
    times_read = Counter(value for node in graph.nodes for value in node.operands)
    times_read.update(graph.outputs.values())
    transposes = {node.outputs[0]: node for node in graph.nodes if node.op == TRANSPOSE.name}
    kept: dict[int, Node] = {}
    for node in graph.nodes:
        transpose = next((transposes[value] for value in node.operands if value in transposes), None)
        kept[node.id] = node
        if transpose and times_read[transpose.outputs[0]] == 1 and _reads_planes(graph, node, transpose):
            del kept[transpose.id]
            body = node.attrs.get("body")
            fused = body if isinstance(body, Graph) else graph.with_nodes((node,))
            kept[node.id] = fused_node(graph, [transpose, *fused.nodes], fused.values)
    return graph if len(kept) == len(graph.nodes) else graph.with_nodes(tuple(kept.values()))


def _reads_planes(graph: Graph, node: Node, transpose: Node) -> bool:
    """Return whether a node is a convolution of a transposed image that reads channels one by one."""
    anchor = members_of(node, OPS).anchor
    if anchor is None or OPS[anchor.op].family is not Family.CONVOLUTION or anchor.operands[0] != transpose.outputs[0]:
        return False
    shape = graph.type(transpose.outputs[0]).shape
    few = anchor.attrs["groups"] == 1 and shape[-1] % _AT_ONCE > 0 and anchor.attrs["input_layout"] == "nhwc"
    layout: str = anchor.attrs["filter_layout"]
    taps = [n for letter, n in zip(layout, graph.type(anchor.operands[1]).shape, strict=True) if letter in "hw"]
    return few and taps != [1, 1] and tuple(transpose.attrs["permutation"]) == to_last(len(shape))


def _takes_epilogue(graph: Graph, target: Target, node: Node) -> bool:
    """Return whether element-wise operators may be fused behind a node: its results are floats, and an epilogue pays."""
    epilogue = OPS[node.op].epilogue
    return epilogue is not None and epilogue.pays(target.costs) and graph.type(node.outputs[0]).data_type in FLOATS


def _fuse(
    graph: Graph, target: Target, starts: Callable[[Node], bool], fits: Callable[[Graph, Sequence[Node], Node], bool]
) -> Graph:
    """Grow a group from every starting node along results that have a single reader.

    Then it takes in the chains that lead to its other operands alone, such as the derivative that a gradient is multiplied by.
    If the readers of its result are operators of that alone, the kernel stores their results instead, such as an activation and
    its derivative.
    """
    most = target.costs.passes.most_fused_steps
    readers: dict[int, set[int]] = {}
    for i, node in enumerate(graph.nodes):
        for value in node.operands:
            readers.setdefault(value, set()).add(i)
    outputs = set(graph.outputs.values())
    makers = {output: node for node in graph.nodes for output in node.outputs}
    group_of: dict[int, _Group] = {}
    position = {node.id: i for i, node in enumerate(graph.nodes)}
    for node in graph.nodes:
        if node.id in group_of or not starts(node):
            continue
        group = [node]
        while len(group) < most:
            last = group[-1].outputs[0]
            if last in outputs:
                break
            followers = _followers(graph, readers, outputs, last, most - len(group))
            if not followers or any(f.id in group_of for f in followers) or not _all_fit(graph, group, followers, fits):
                break
            if _is_anchor(node) and graph.type(followers[-1].outputs[0]).data_type not in FLOATS:
                break
            group += followers
        first = group[:1] if _is_anchor(node) else []
        for value in reads_of(group):
            chain = _chain_to(graph, target, makers, readers, outputs, value)
            if not chain or (first and value in node.operands) or any(member.id in group_of for member in chain):
                continue
            rest = sorted([*group[len(first) :], *chain], key=lambda member: position[member.id])
            longer = [*first, *rest]
            if len(longer) <= most and _all_fit(graph, longer[:1], longer[1:], fits):
                group = longer
        found = _Group(group, _results(graph, readers, outputs, group, most))
        if len(found.members) > 1 and not any(member.id in group_of for member in found.results):
            group_of.update({member.id: found for member in found.members})
    if not group_of:
        return graph
    kept: list[Node] = []
    for node in graph.nodes:
        group = group_of.get(node.id)
        if group is None:
            kept.append(node)
        elif node is group.nodes[-1]:
            # The group runs where its last member stood: by then everything it reads has been made.
            members = sorted(group.nodes, key=lambda member: (not _is_anchor(member), position[member.id]))
            kept.append(fused_node(graph, [*members, *group.results], results=group.results))
    return graph.with_nodes(tuple(kept))


class _Group(NamedTuple):
    """Nodes that one kernel computes.

    Attributes:
        nodes: nodes that lead to one value, the last of them at the end.
        results: operators of that value alone, whose results the kernel stores. Without any, it stores the value.
    """

    nodes: list[Node]
    results: list[Node]

    @property
    def members(self) -> list[Node]:
        """All nodes."""
        return [*self.nodes, *self.results]


def _results(
    graph: Graph, readers: Mapping[int, set[int]], outputs: Collection[int], group: Sequence[Node], most: int
) -> list[Node]:
    """Return the readers of a group's value if they are several element-wise operators of it alone, with results of its type.

    The kernel then stores them, and nothing stores the value.
    """
    epilogue, value = OPS[group[0].op].epilogue, group[-1].outputs[0]
    found = [graph.nodes[at] for at in sorted(readers.get(value, ()))]
    if epilogue is None or not epilogue.several or len(found) < _FEWEST_RESULTS or value in outputs:
        return []
    kind, fits = graph.type(value), len(group) + len(found) <= most
    alone = all(OPS[f.op].elementwise and f.operands == (value,) and graph.type(f.outputs[0]) == kind for f in found)
    return found if alone and fits and len(reads_of(group)) + len(found) <= MAX_INPUTS + 1 else []


def _followers(graph: Graph, readers: Mapping[int, set[int]], outputs: Collection[int], value: int, most: int) -> list[Node]:
    """Return the element-wise nodes from a value to the next value that all of it leads to: its only consumer, in most cases.

    If the value has several consumers, as x has in x * sigmoid(x), they are those whose results lead to one value with a single
    consumer.
    """
    found: list[Node] = []
    waiting = set(readers.get(value, ()))
    while waiting and len(found) < most:
        # In the order of the graph, so that the group already has every producer of the node's operands that belongs to it.
        at = min(waiting)
        waiting.remove(at)
        node = graph.nodes[at]
        if OPS[node.op].elementwise is None:
            return []
        found.append(node)
        result = node.outputs[0]
        if not waiting:
            return found
        if result in outputs:
            return []
        waiting |= readers.get(result, set())
    return []


def _is_anchor(node: Node) -> bool:
    return OPS[node.op].elementwise is None


def _chain_to(
    graph: Graph,
    target: Target,
    makers: Mapping[int, Node],
    readers: Mapping[int, set[int]],
    outputs: Collection[int],
    value: int,
) -> list[Node]:
    """Return the element-wise nodes of one shape that lead to a value alone, if the value has one reader.

    There are none if one of them could be fused behind the operator whose result it reads, or if a group cannot hold them.
    """
    found: list[Node] = []
    waiting = [value]
    while waiting:
        if len(found) >= target.costs.passes.most_fused_steps:
            return []
        last = waiting.pop()
        node = makers.get(last)
        alone = len(readers.get(last, ())) == 1 and last not in outputs
        if node is None or not alone:
            continue
        if _takes_epilogue(graph, target, node):
            return []
        if OPS[node.op].elementwise is None or graph.type(last).shape != graph.type(value).shape:
            continue
        if node not in found:
            found.append(node)
            waiting += node.operands
    return found


def _all_fit(
    graph: Graph, group: Sequence[Node], followers: Sequence[Node], fits: Callable[[Graph, Sequence[Node], Node], bool]
) -> bool:
    """Return whether nodes may join a group in turn."""
    return all(fits(graph, [*group, *followers[:i]], follower) for i, follower in enumerate(followers))


def reads_of(group: Sequence[Node]) -> list[int]:
    """Return the values that a group of nodes reads and does not compute."""
    made = {o for node in group for o in node.outputs}
    return list(dict.fromkeys(v for node in group for v in node.operands if v not in made))


def _fits_chain(graph: Graph, group: Sequence[Node], follower: Node) -> bool:
    # A result that the follower would broadcast must not be computed again for every element it is repeated over.
    same_shape = graph.type(follower.outputs[0]).shape == graph.type(group[-1].outputs[0]).shape
    bound = [value for value in reads_of([*group, follower]) if whole_number(graph, value) is None]
    return same_shape and len(bound) <= MAX_INPUTS


def fits_epilogue(graph: Graph, group: Sequence[Node], follower: Node) -> bool:
    """Return whether an element-wise operator may follow a group whose first operator has an epilogue."""
    output = graph.type(follower.outputs[0])
    if output.shape != graph.type(group[0].outputs[0]).shape:
        return False
    epilogue = OPS[group[0].op].epilogue
    assert epilogue is not None
    axis = epilogue.axis(group[0].attrs)
    vectors = [output.shape[axis:][:1] + (1,) * (-1 - axis)]
    if epilogue.vectors(graph, group[0]):
        vectors.append((*output.shape[:-2], 1, output.shape[-1]))
    extra = [v for v in reads_of([*group, follower]) if v not in group[0].operands]
    if len(extra) + len(group[0].operands) > MAX_INPUTS:
        return False
    made = {node.outputs[0] for node in group}
    for value in follower.operands:
        if value in made:
            continue
        shape = graph.type(value).shape
        while shape and shape[0] == 1 and shape not in (*vectors, output.shape):
            shape = shape[1:]
        if value in group[0].operands or shape not in ((), *vectors, output.shape):
            return False
    return True


def fused_node(
    graph: Graph, group: Sequence[Node], inner: Mapping[int, Value] = MappingProxyType({}), results: Sequence[Node] = ()
) -> Node:
    """Return the fused node of a group.

    Args:
        graph: the graph.
        group: the nodes in order.
        inner: the values of an earlier group, which the graph no longer has.
        results: the nodes whose results the node has, if it is not the last alone.
    """
    results = results or group[-1:]
    outputs = tuple(node.outputs[0] for node in results)
    body = body_of(graph, group, outputs, inner)
    return Node(
        id=results[0].id,
        op=FUSED.name,
        inputs=tuple(body.inputs.values()),
        outputs=outputs,
        attrs=MappingProxyType({"body": body}),
        label=next((node.label for node in group if node.label and node not in results[1:]), ""),
        origins=tuple(origin for node in group for origin in node.origins),
    )


def fuse_consumers(
    graph: Graph, join: Callable[[Node, Sequence[Node], Collection[int], bool], tuple[Node, Node] | None]
) -> Graph:
    """Replace nodes and a consumer of their result by one node each.

    Args:
        graph: the graph.
        join: returns the consumer and the node in place of both, or None. Given are the node, the consumers of its result, the
            values that exist before the node, and whether these consumers alone read the result.
    """
    consumers: dict[int, list[Node]] = {}
    for node in graph.nodes:
        for value in set(node.operands):
            consumers.setdefault(value, []).append(node)
    known = {*graph.inputs.values(), *graph.constants}
    outputs = set(graph.outputs.values())
    kept: list[Node] = []
    fused: set[int] = set()
    for node in graph.nodes:
        if node.id in fused:
            continue
        result = node.outputs[0]
        found = join(node, consumers.get(result, ()), known, result not in outputs)
        if found:
            fused.add(found[0].id)
        kept.append(found[1] if found else node)
        known.update(kept[-1].outputs)
    return graph if not fused else graph.with_nodes(tuple(kept))


def body_of(
    graph: Graph, group: Sequence[Node], outputs: Sequence[int], inner: Mapping[int, Value] = MappingProxyType({})
) -> Graph:
    """Return the body of a node that computes a group. Its inputs are the values that the group reads, by position.

    Args:
        graph: the graph.
        group: the nodes in order.
        outputs: the values that the node stores.
        inner: the values of an earlier group, which the graph no longer has.
    """
    numbers = dict.fromkeys(v for node in group for v in (*node.operands, *node.outputs))
    return Graph(
        values={v: inner[v] if v in inner else graph.values[v] for v in numbers},
        inputs={str(i): v for i, v in enumerate(reads_of(group))},
        constants={},
        nodes=tuple(group),
        outputs={str(i): value for i, value in enumerate(outputs)},
    )
