"""The calls of a callback `progress(done, total, what)` during the load or build of a graph or model.

`done` and `total` are numbers of nodes with `READING` while the frontend reads the nodes of a model. They are numbers of
kernels with the name of the next one while kernels are compiled, and bytes with `UPLOADING` while weights are uploaded. They
are numbers of operators with `MEASURING` and the name of the next one while kernel variants are measured.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

Progress: TypeAlias = Callable[[int, int, str], None]
"""A function that is called as `progress(done, total, what)`."""

READING = "reading nodes"
UPLOADING = "uploading weights"
MEASURING = "measuring "
