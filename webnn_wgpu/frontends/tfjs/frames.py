"""Control flow of TensorFlow's first version: frames of Enter, Merge, Switch, NextIteration and Exit become loops with graphs.

A Switch and a Merge outside of loops are a condition: both sides run, and a node selects the results of one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import NoReturn

from .call import text_of
from .operators.control import selection
from .raw import RawNode, Reference
from .tensors import TfjsGraph, TfjsNode, TfjsValue

FLOW = frozenset({"Enter", "RefEnter", "Exit", "RefExit", "Merge", "Switch", "NextIteration", "LoopCond"})
"""Operators that are nodes of control flow."""
ENTER, EXIT = ("Enter", "RefEnter"), ("Exit", "RefExit")

Frame = tuple[str, ...]
"""The names of the frames around a node, the outermost first."""


def structured(
    fail: Callable[[str], NoReturn],
    raw: Mapping[str, RawNode],
    made: Mapping[str, TfjsNode],
    values: dict[Reference, TfjsValue],
) -> list[TfjsNode]:
    """Return nodes without operators of control flow.

    Args:
        fail: raises the error of a broken file.
        raw: the nodes of the file.
        made: the nodes with their values.
        values: the values by node and number.
    """
    return _Structure(fail, raw, made, values).scope(())


@dataclass
class _Structure:
    """The frames of a graph."""

    fail: Callable[[str], NoReturn]
    raw: Mapping[str, RawNode]
    made: Mapping[str, TfjsNode]
    values: dict[Reference, TfjsValue]
    frames: dict[str, Frame] = field(default_factory=dict[str, Frame])
    sides: dict[str, dict[Reference, int]] = field(default_factory=dict[str, dict[Reference, int]])

    def __post_init__(self) -> None:
        order = self.order()
        for name in order:
            self.frames[name] = self.frame(self.raw[name])
        for name in order:
            self.sides[name] = self.side(self.raw[name])

    def sources(self, node: RawNode, loops: bool = False) -> list[str]:
        """Return the nodes before a node, without the ends of iterations unless `loops`."""
        found = [s for s, _ in node.inputs] + node.controls
        if node.op == "Merge" and not loops:
            found = [s for s in found if s not in self.raw or self.raw[s].op != "NextIteration"]
        return [s for s in found if s in self.raw]

    def order(self) -> list[str]:
        """Return the nodes, each behind those that it reads."""
        done: dict[str, bool] = {}
        order: list[str] = []
        for start in self.raw:
            stack = [(start, False)]
            while stack:
                name, left = stack.pop()
                if left:
                    done[name] = True
                    order.append(name)
                elif name not in done:
                    done[name] = False
                    stack.append((name, True))
                    for source in self.sources(self.raw[name]):
                        if done.get(source) is False:
                            self.fail(f"node '{name}' is part of a cycle")
                        if source not in done:
                            stack.append((source, False))
        return order

    def frame(self, node: RawNode) -> Frame:
        """Return the frames around a node."""
        around = max((self.after(self.raw[s]) for s in self.sources(node)), key=len, default=())
        if node.op in ENTER:
            name = text_of(node.attributes.get("frame_name", {}).get("s", ""))
            if len(around) >= 16:
                self.fail(f"node '{node.name}' lies in more than 16 loops")
            return (*around, name)
        return around

    def after(self, node: RawNode) -> Frame:
        """Return the frames around the nodes that read a node."""
        frame = self.frames[node.name]
        return frame[:-1] if node.op in EXIT else frame

    # conditions -----------------------------------------------------------------------------------------------------

    def is_loop(self, node: RawNode) -> bool:
        """Return whether a Merge begins iterations, or a Switch ends them."""
        if node.op == "Merge":
            return any(self.raw[s].op == "NextIteration" for s, _ in node.inputs if s in self.raw)
        source = self.raw.get(node.inputs[1][0]) if len(node.inputs) > 1 else None
        return source is not None and source.op == "LoopCond"

    def side(self, node: RawNode) -> dict[Reference, int]:
        """Return the conditions under which a node runs, with the side of each."""
        found: dict[Reference, int] = {}
        per_input: list[dict[Reference, int]] = []
        for source, index in (*node.inputs, *((c, 0) for c in node.controls)):
            sides = self.side_of(source, index)
            per_input.append(sides)
            found |= sides
        if node.op == "Merge":
            for condition in self.conditions(per_input[:2]):
                found.pop(condition, None)
        return found

    def side_of(self, source: str, index: int) -> dict[Reference, int]:
        """Return the conditions under which an output has a value."""
        sides = dict(self.sides.get(source, {}))
        node = self.raw.get(source)
        if node is not None and node.op == "Switch" and not self.is_loop(node) and len(node.inputs) > 1:
            sides[node.inputs[1]] = index
        return sides

    @staticmethod
    def conditions(sides: list[dict[Reference, int]]) -> list[Reference]:
        """Return the conditions whose sides differ between two values."""
        if len(sides) != 2:
            return []
        return [c for c, side in sides[0].items() if sides[1].get(c, side) != side]

    def selected(self, node: RawNode) -> TfjsNode:
        """Return the node that selects the input of a Merge that has a value."""
        sides = [self.side_of(s, i) for s, i in node.inputs]
        conditions = self.conditions(sides)
        if len(node.inputs) != 2 or not conditions:
            self.fail(f"node '{node.name}' merges values without a condition between them")
        condition = conditions[0]
        made = self.made[node.name]
        true, false = (0, 1) if sides[0][condition] else (1, 0)
        if len(made.outputs) != 1:
            self.fail(f"node '{node.name}' tells which of its inputs has a value")
        return selection(node.name, self.value(condition), made.inputs[true], made.inputs[false], made.outputs[0])

    def value(self, key: Reference) -> TfjsValue:
        return self.values.get(key) or self.fail(f"'{key[0]}' has no value")

    # loops ----------------------------------------------------------------------------------------------------------

    def scope(self, frame: Frame) -> list[TfjsNode]:
        """Return the nodes of a frame, with one node for each loop within it."""
        inner = dict.fromkeys(
            f[: len(frame) + 1] for f in self.frames.values() if f[: len(frame)] == frame and len(f) > len(frame)
        )
        found: list[TfjsNode] = []
        for name, around in self.frames.items():
            node = self.raw[name]
            if around != frame or name not in self.made or node.op in (*ENTER, *EXIT, "NextIteration", "LoopCond"):
                continue
            if node.op == "Merge":
                if not self.is_loop(node):
                    found.append(self.selected(node))
            elif node.op == "Switch":
                if not self.is_loop(node):
                    found += self.both(self.made[name])
            else:
                found.append(self.made[name])
        return [*found, *(node for loop in inner for node in self.loop(loop))]

    def both(self, node: TfjsNode) -> Iterable[TfjsNode]:
        """Return the nodes that give a value to both sides of a condition."""
        for output in node.outputs:
            yield TfjsNode(name=node.name, op="Identity", inputs=node.inputs[:1], outputs=(output,))

    def loop(self, frame: Frame) -> list[TfjsNode]:
        """Return the node of a loop, and those for values that do not change in it."""
        members = [self.raw[name] for name, around in self.frames.items() if around == frame]
        enters = {n.name: n for n in members if n.op in ENTER}
        merges = [n for n in members if n.op == "Merge" and self.is_loop(n)]
        ends = [n for n in members if n.op == "LoopCond"]
        if len(ends) != 1 or not ends[0].inputs:
            self.fail(f"loop '{frame[-1]}' has {len(ends)} conditions")
        switches: dict[str, list[RawNode]] = {}
        for node in members:
            if node.op == "Switch" and self.is_loop(node):
                switches.setdefault(node.inputs[0][0], []).append(node)
        leaving = {n.inputs[0][0]: n for n in members if n.op in EXIT and n.inputs}
        given: list[TfjsValue] = []
        results: list[TfjsValue] = []
        firsts: list[TfjsValue] = []
        starts: list[TfjsValue] = []
        nexts: list[TfjsValue] = []
        extra: list[TfjsNode] = []
        used: set[str] = set()
        for merge in merges:
            sources = [s for s, _ in merge.inputs]
            begin = next((s for s in sources if s in enters), None)
            again = next((s for s in sources if s in self.raw and self.raw[s].op == "NextIteration"), None)
            if begin is None or again is None or len(sources) != 2 or not enters[begin].inputs or not self.raw[again].inputs:
                self.fail(f"node '{merge.name}' does not begin iterations")
            used.add(begin)
            given.append(self.value(enters[begin].inputs[0]))
            nexts.append(self.value(self.raw[again].inputs[0]))
            firsts.append(self.value((merge.name, 0)))
            start = TfjsValue(merge.name)
            starts.append(start)
            result = TfjsValue(merge.name)
            # In the body, the value at the beginning of the iteration has the names that Merge and Switch give it.
            extra.append(TfjsNode(name=merge.name, op="Identity", inputs=(start,), outputs=(firsts[-1],)))
            for switch in switches.get(merge.name, ()):
                if (switch.name, 1) in self.values:
                    passed = self.values[switch.name, 1]
                    extra.append(TfjsNode(name=switch.name, op="Identity", inputs=(start,), outputs=(passed,)))
                if switch.name in leaving:
                    result = self.values.get((leaving[switch.name].name, 0), result)
            results.append(result)
        inside = self.scope(frame)
        condition = TfjsGraph(
            name=f"{frame[-1]}/cond",
            nodes=_needed(inside, [self.value(ends[0].inputs[0])]),
            inputs=firsts,
            outputs=[self.value(ends[0].inputs[0])],
        )
        body = TfjsGraph(name=f"{frame[-1]}/body", nodes=_needed([*extra, *inside], nexts), inputs=starts, outputs=nexts)
        fixed = [
            TfjsNode(name=n.name, op="Identity", inputs=(self.value(n.inputs[0]),), outputs=(self.values[n.name, 0],))
            for n in enters.values()
            if n.name not in used and n.inputs and (n.name, 0) in self.values
        ]
        loop = TfjsNode(
            name=frame[-1] or "loop",
            op="While",
            inputs=tuple(given),
            outputs=tuple(results),
            graphs={"cond": condition, "body": body},
        )
        return [*fixed, loop]


def _needed(nodes: Iterable[TfjsNode], wanted: Iterable[TfjsValue]) -> list[TfjsNode]:
    """Return the nodes that values depend on, each behind those that it reads."""
    makers = {output: node for node in nodes for output in node.outputs}
    order: dict[TfjsNode, None] = {}
    seen: set[TfjsNode] = set()
    stack = [(makers[v], False) for v in wanted if v in makers]
    while stack:
        node, left = stack.pop()
        if left:
            order[node] = None
        elif node not in seen:
            seen.add(node)
            stack.append((node, True))
            uses = [*node.inputs, *(v for g in node.graphs.values() for inner in g.nodes for v in inner.inputs)]
            stack += [(makers[v], False) for v in uses if v in makers and makers[v] not in seen]
    return list(order)
