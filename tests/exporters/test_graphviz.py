"""Graphs in Graphviz' language."""

from __future__ import annotations

import shutil
import subprocess

import numpy as np
import pytest
from lark import Lark

import webnn_wgpu as wn
from tests.runtime.graphs import network
from webnn_wgpu.exporters.graphviz import to_dot

DOT = Lark(
    r"""
    start: "digraph" ID "{" (statement ";")* "}"
    statement: ID "=" value | ID attributes | ID "->" ID attributes
    attributes: "[" (ID "=" value ("," ID "=" value)*)? "]"
    value: ID | QUOTED
    QUOTED: /"(\\.|[^"\\])*"/
    ID: /[A-Za-z_#][\w#]*/
    %ignore /\s+/
    """,
    parser="lalr",
)
"""The part of the language that is written. A quote within a label would end it, and a lone backslash at its end would not."""

HOSTILE = ['a "quoted" one', "back\\slash\\", "two\nlines", "\\N and \\G", "{record|<port>}", "ä → ü", '"];x->y;["']


def test_inputs_constants_operators_and_outputs(context: wn.MLContext) -> None:
    lines = to_dot(network(context)).splitlines()
    assert lines[0] == "digraph webnn {"
    assert '  input_0 [shape=oval,style=filled,fillcolor="#d0e6ff",label="x\\nfloat32[4, 16]"];' in lines
    assert '  op_0 [shape=box,style=rounded,label="matmul"];' in lines
    assert '  op_0 -> op_1 [label="float32[4, 32]"];' in lines
    assert sum("shape=diamond" in line for line in lines) == 2
    assert sum("shape=doublecircle" in line for line in lines) == 2


def test_groups_of_the_optimized_graph_are_one_box(context: wn.MLContext) -> None:
    assert 'label="matmul + add + gelu"' in to_dot(network(context), optimized=True)


@pytest.mark.parametrize("label", HOSTILE)
def test_labels_are_escaped(context: wn.MLContext, label: str) -> None:
    builder = wn.MLGraphBuilder(context)
    x = builder.input(label, {"dataType": "float32", "shape": [2]})
    dot = to_dot(builder.build({label: builder.relu(x, label=label)}))
    DOT.parse(dot)
    if (program := shutil.which("dot")) is None:
        return
    drawn = subprocess.run([program, "-Tplain"], input=dot, capture_output=True, text=True, encoding="utf-8", check=True).stdout
    nodes = [line for line in drawn.splitlines() if line.startswith("node ")]
    assert len(nodes) == 3
    for part in label.replace("\\", "\\\\").replace('"', '\\"').split("\n"):
        assert sum(part in node for node in nodes) == 3


def test_an_output_that_is_a_constant(context: wn.MLContext) -> None:
    builder = wn.MLGraphBuilder(context)
    x = builder.input("x", {"dataType": "float32", "shape": [2]})
    ones = builder.identity(builder.constant(np.ones(2, np.float32)))
    dot = to_dot(builder.build({"y": builder.relu(x), "z": ones}), optimized=True)
    DOT.parse(dot)
    assert dot.count("shape=diamond") == 1
