"""Names of nodes and kernels for people."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import count

from ..ir.graph import Node
from ..ops import OPS


def node_label(node: Node) -> str:
    """Return the name of a node for people: its label, else its operator and number (`conv2d_3`)."""
    if node.label:
        return node.label
    labels = [o.label for o in node.origins if o.label]
    return labels[-1] if labels else f"{OPS[node.op].python_name}_{node.id}"


def unique_names(labels: Sequence[str]) -> list[str]:
    """Return labels with a number behind those that there are several of, so that such a label alone names no single one.

    >>> unique_names(["dense", "dense", "dense#2", "relu"])
    ['dense#1', 'dense#3', 'dense#2', 'relu']
    """
    times = Counter(labels)
    numbers = {label: count(1) for label in times}

    def name(label: str) -> str:
        return label if times[label] == 1 else next(n for i in numbers[label] if (n := f"{label}#{i}") not in times)

    return [name(label) for label in labels]
