"""The sources of kernels: rendered from their templates, or as an earlier process rendered them."""

from __future__ import annotations

import hashlib
from functools import cache
from itertools import count
from pathlib import Path

from ..core import cache as disk
from .spec import KernelSpec
from .templates import render, shader_root

_FOLDER, _MOST_BYTES = "kernels", 32 * 1024 * 1024
"""The cache folder of sources, and its maximum size: the sources of some hundred models."""

_TIDY_AFTER = 100
_written = count()


@cache
def templates_digest() -> str:
    """Return a digest that changes with each change of a template or of the code that renders templates."""
    digest = hashlib.sha256()
    for root, pattern in ((shader_root(), "*.wgsl*"), (Path(__file__).parent, "*.py")):
        for path in sorted(root.rglob(pattern)):
            digest.update(path.relative_to(root).as_posix().encode() + b"\0" + path.read_bytes() + b"\0")
    return digest.hexdigest()[:32]


def source_of(spec: KernelSpec) -> str:
    """Return the WGSL of a kernel, from the cache on disk if it is there."""
    if spec.source:
        return render(spec)
    name = f"{_FOLDER}/{disk.key_of(templates_digest(), spec)}.wgsl"
    source = disk.read(name)
    if source is None:
        source = render(spec)
        disk.write(name, source)
        if next(_written) % _TIDY_AFTER == 0:
            disk.prune(_FOLDER, _MOST_BYTES)
    return source
