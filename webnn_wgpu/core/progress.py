"""The calls of a callback `progress(done, total, what)` while a graph or a model is made ready.

`done` and `total` are numbers of nodes with `READING` while the nodes of a model are read, numbers of kernels with the name of
the next one while kernels are compiled, bytes with `UPLOADING` while weights are uploaded, and numbers of operators with
`MEASURING` and the name of the next one while kernel variants are measured.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

Progress: TypeAlias = Callable[[int, int, str], None]
"""Called as `progress(done, total, what)`."""

READING = "reading nodes"
UPLOADING = "uploading weights"
MEASURING = "measuring "
