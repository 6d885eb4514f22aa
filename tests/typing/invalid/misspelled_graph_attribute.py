"""A graph has no other attributes than the documented ones."""

import webnn_wgpu as wn


def program(graph: wn.MLGraph) -> None:
    print(graph.outptus)
    # refused by pyright: Cannot access attribute "outptus" for class "MLGraph"
    # refused by mypy: "MLGraph" has no attribute "outptus"; maybe "outputs"?
