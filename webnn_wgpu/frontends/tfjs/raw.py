"""Nodes as GraphDef has them, and the references between them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

Reference = tuple[str, int]
"""The name of a node, and the number of an output."""

OUTPUTS: Mapping[str, tuple[str, ...]] = {
    "FusedBatchNorm": ("y", "batch_mean", "batch_variance"),
    "FusedBatchNormV2": ("y", "batch_mean", "batch_variance"),
    "FusedBatchNormV3": ("y", "batch_mean", "batch_variance", "reserve_space_1", "reserve_space_2", "reserve_space_3"),
    "ListDiff": ("out", "idx"),
    "MaxPoolWithArgmax": ("output", "argmax"),
    "Merge": ("output", "value_index"),
    "NonMaxSuppressionV4": ("selected_indices", "valid_outputs"),
    "NonMaxSuppressionV5": ("selected_indices", "selected_scores", "valid_outputs"),
    "SparseFillEmptyRows": ("output_indices", "output_values", "empty_row_indicator", "reverse_index_map"),
    "SparseReshape": ("output_indices", "output_shape"),
    "Switch": ("output_false", "output_true"),
    "TensorArrayConcatV3": ("value", "lengths"),
    "TensorArrayV3": ("handle", "flow"),
    "TensorListConcat": ("tensor", "lengths"),
    "TensorListConcatV2": ("tensor", "lengths"),
    "TensorListPopBack": ("output_handle", "tensor"),
    "TopKV2": ("values", "indices"),
    "Unique": ("y", "idx"),
    "UniqueV2": ("y", "idx"),
}
"""The names of outputs, of operators with several that are not a list. Functions refer to outputs by name."""


@dataclass
class RawNode:
    """A node of a file.

    Attributes:
        name: its name.
        op: its operator.
        texts: its inputs as the file has them.
        attributes: its attributes.
        inputs: its inputs.
        controls: the nodes that must run before it.
    """

    name: str
    op: str
    texts: list[str]
    attributes: dict[str, Any]
    inputs: list[Reference] = field(default_factory=list[Reference])
    controls: list[str] = field(default_factory=list[str])


def reference(text: str, nodes: Mapping[str, RawNode]) -> Reference:
    """Return the node and the number of the output that a text means: "a", "a:1" or "a:indices:0".

    Example:
        >>> reference("a:1", {}), reference("k:indices:0", {"k": RawNode("k", "TopKV2", [], {})})
        (('a', 1), ('k', 1))
    """
    parts = text.split(":")
    number = int(parts[-1]) if len(parts) > 1 and parts[-1].isdecimal() else 0
    if len(parts) < 3:
        return parts[0], number
    node = nodes.get(parts[0])
    names = OUTPUTS.get(node.op, ()) if node is not None else ()
    return parts[0], (names.index(parts[1]) if parts[1] in names else 0) + number
