"""Products of the same rows with several matrices as one product: the conditions, and the nodes."""

from __future__ import annotations

import math
from collections.abc import Sequence

from ..core.caps import DEFAULT_LIMITS
from ..ir.graph import Node
from ..ops import OPS
from ..ops.elementwise import ADD
from ..ops.matmul import MATMUL
from ..ops.strided import SPLIT
from ..ops.views import RESHAPE
from .rewriting import Rewriter


def readable(r: Rewriter, value: int) -> bool:
    """Return whether all consumers can read a value in place. Consumers that a product can fuse need the value alone."""
    return _stays(r, value) and all(OPS[reader.op].elementwise is None for reader in r.readers(value))


def _stays(r: Rewriter, value: int) -> bool:
    """Return whether a value and its views have no other allocation: neither an output nor a part of a concatenation."""
    readers = r.readers(value)
    if not r.inner(value, len(readers)) or any(_joins(reader) for reader in readers):
        return False
    return all(_stays(r, view) for reader in readers if OPS[reader.op].view for view in reader.outputs)


def _joins(node: Node) -> bool:
    movement = OPS[node.op].movement
    return movement is not None and movement.parts is not None


def bindable(r: Rewriter, a: int, columns: int) -> bool:
    """Return whether each of the results of rows, with that many columns, ends at an offset that every device permits."""
    rows = math.prod(r.shape(a)[:-1])
    return rows * columns * r.type(a).numpy.itemsize % DEFAULT_LIMITS["min-storage-buffer-offset-alignment"] == 0


def add_joined(r: Rewriter, rows: int, weights: int, bias: int | None, sources: Sequence[Node], results: Sequence[int]) -> None:
    """Add the product of rows with several matrices, plus a vector for each, and make its parts the results."""
    count, K, _ = r.shape(weights)
    a = r.reshaped(rows, (1, math.prod(r.shape(rows)[:-1]), K), sources)
    value = r.add(MATMUL.name, (a, weights), {}, sources)
    if bias is not None:
        value = r.add(ADD.name, (value, bias), {}, sources)
    parts = r.add_all(SPLIT.name, (value,), {"axis": 0, "splits": (1,) * count}, sources)
    for part, result in zip(parts, results, strict=True):
        r.add(RESHAPE.name, (part,), {"new_shape": r.shape(result)}, sources, result)
