"""Golden models of passes: the graphs that tests of passes draw, patterns and what only resembles them.

`patterns.json` holds them as data, so that tests and their helpers can change without any influence on golden plans.
`python -m tests.golden --collect` runs these tests and writes the file anew. Graphs that hypothesis draws stay in the file as
they were first drawn: a new operator changes all later draws, but none of the plans that these graphs are for.
"""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

import numpy as np
import pytest

from tests import support
from tests.golden.graphs import normal, packed
from tests.golden.rewritten import changes

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from webnn_wgpu.ir.graph import Graph

FILE = Path(__file__).with_name("patterns.json")

TESTS = Path(__file__).resolve().parents[1] / "unit"

MODULES = (
    "attention_patterns",
    "channels_last",
    "composites",
    "filter_gradients",
    "fused_normalizations",
    "fused_pools",
    "gradient_passes",
    "in_place",
    "integer_products",
    "integers",
    "merged_transposes",
    "moved_reshapes",
    "movement_patterns",
    "near_misses",
    "normalized_products",
    "passes",
    "planner",
    "plans_of_devices",
    "product_pairs",
    "products",
    "projected_products",
    "rewrites",
    "rotary_patterns",
    "stacks",
    "views",
    "widen",
)
"""The modules of `tests/unit` whose graphs are taken."""

MOST_NODES, MOST_BYTES, MOST_GRAPHS = 60, 4 << 20, 16
"""Larger graphs are left out, as are those behind the first of a test: they would cost much and show little more."""

MOST_CONSTANT_BYTES = 2048
"""Larger constants are large."""


@cache
def graphs() -> Mapping[str, Sequence[Mapping[str, Any]]]:
    """Return the graphs by module and test."""
    return json.loads(FILE.read_text(encoding="utf-8"))


class _Collector:
    """A plugin of pytest that takes every graph that a test draws."""

    def __init__(self) -> None:
        self.found: dict[str, list[str]] = {}
        self.random: set[str] = set()
        self._texts: set[str] = set()
        self._test = ""
        self._attrs: WeakKeyDictionary[support.Sketch, list[Mapping[str, Any]]] = WeakKeyDictionary()

    def pytest_runtest_setup(self, item: pytest.Item) -> None:
        module, _, test = item.nodeid.partition("::")
        self._test = f"{Path(module).stem}.{test.partition('[')[0]}".replace("test_", "")
        if item.get_closest_marker("hypothesis"):
            self.random.add(self._test)

    def called(self, sketch: support.Sketch, attrs: Mapping[str, Any]) -> None:
        """Keep the options of a call as the test gave them."""
        self._attrs.setdefault(sketch, []).append(attrs)

    def drawn(self, sketch: support.Sketch, graph: Graph) -> None:
        """Take a graph."""
        size = sum(array.nbytes for array in graph.constants.values())
        kept = self.found.setdefault(self._test, [])
        if not 0 < len(graph.nodes) <= MOST_NODES or size > MOST_BYTES or len(kept) == MOST_GRAPHS:
            return
        if not set(graph.outputs.values()) <= {value for node in graph.nodes for value in node.outputs}:
            return  # builders refuse it
        data = _data(graph, self._attrs[sketch])
        if any(isinstance(each, list) for node in data["nodes"] for each in node["attrs"].get("activations", ())):
            return  # canonical options, which random graphs are drawn with, are not what programs give
        if self._test.startswith("widen."):
            data["wide"] = True
        text = json.dumps(data)
        if text not in self._texts:
            self._texts.add(text)
            kept.append(text)


def _data(graph: Graph, attrs: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    values = [{"name": n, "type": graph.type(v).data_type, "shape": [*graph.type(v).shape]} for n, v in graph.inputs.items()]
    values += [_constant(array) for array in graph.constants.values()]
    results = (value for node in graph.nodes for value in node.outputs)
    places = {value: i for i, value in enumerate((*graph.inputs.values(), *graph.constants, *results))}
    nodes = [
        {"op": node.op, "inputs": [None if v is None else places[v] for v in node.inputs], "attrs": given, "label": node.label}
        for node, given in zip(graph.nodes, _plain(attrs), strict=True)
    ]
    outputs = {name: places[value] for name, value in graph.outputs.items()}
    return {"values": values, "nodes": nodes, "outputs": outputs}


def _constant(array: np.ndarray[Any, Any]) -> dict[str, Any]:
    """Return a constant as data; no pass looks at the numbers of a large one, which are replaced by others."""
    random = array.nbytes > MOST_CONSTANT_BYTES and array.dtype.kind == "f"
    return packed(normal(0, array.shape, array.dtype) if random else array)


def _plain(given: Any) -> Any:
    if isinstance(given, dict):
        return {name: _plain(each) for name, each in given.items()}
    if isinstance(given, list | tuple):
        return [_plain(each) for each in given]
    return given.item() if isinstance(given, np.generic) else given


def collect() -> str:
    """Run the tests and write the file. Return a sentence about what changed.

    Raises:
        RuntimeError: a test failed.
    """
    collector = _Collector()
    apply_all, graph = support.Sketch.apply_all, support.Sketch.graph

    def called(self: support.Sketch, name: str, inputs: Sequence[int | None], label: str = "", **attrs: Any) -> tuple[int, ...]:
        results = apply_all(self, name, inputs, label, **attrs)
        collector.called(self, attrs)
        return results

    def drawn(self: support.Sketch, *outputs: int, **named: int) -> Graph:
        found = graph(self, *outputs, **named)
        collector.drawn(self, found)
        return found

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(support.Sketch, "apply_all", called)
        patch.setattr(support.Sketch, "graph", drawn)
        paths = [str(TESTS / f"test_{name}.py") for name in MODULES]
        if pytest.main(["-q", "-n0", "-p", "no:cacheprovider", "--profiles=full", *paths], plugins=[collector]):
            raise RuntimeError("the golden graphs stay as they were, since a test failed")
    before, text = graphs(), text_of(collector.found, collector.random)
    FILE.write_text(text, encoding="utf-8")
    return changes("tests of passes", before, json.loads(text), FILE)


def text_of(found: Mapping[str, Sequence[str]], random: Collection[str]) -> str:
    """Return the text of the file.

    Args:
        found: the graphs that the tests drew, as JSON, by module and test.
        random: the tests whose graphs hypothesis draws.
    """
    models: list[str] = []
    for name, drawn in sorted(found.items()):
        kept = [json.dumps(graph) for graph in graphs()[name]] if name in random and name in graphs() else drawn
        if kept:
            lines = ",\n".join(kept)
            models.append(f"{json.dumps(name)}: [\n{lines}\n]")
    text = ",\n".join(models)
    return f"{{\n{text}\n}}\n"
