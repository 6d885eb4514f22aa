"""What a callback `progress(done, total, what)` is told while a graph or a model is made ready.

It is called with numbers of nodes and `READING` while a model's nodes are read, with numbers of kernels and the name of the
next one while kernels are compiled, and with bytes and `UPLOADING` while weights are uploaded. While kernel variants
are measured it is told numbers of operators, and `MEASURING` with the name of the next one behind it.
"""

from __future__ import annotations

from ..runtime.program import UPLOADING, Progress

READING = "reading nodes"
MEASURING = "measuring "

__all__ = ["MEASURING", "READING", "UPLOADING", "Progress"]
