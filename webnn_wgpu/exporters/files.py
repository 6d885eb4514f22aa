"""Writing of the files of an export."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from webnn_wgpu.core.files import replace_file


def replace_files(files: Mapping[Path, bytes | Sequence[bytes]]) -> list[Path]:
    """Write files, each of which is whole or not there, and return their paths."""
    for file, content in files.items():
        replace_file(file, content, 0o644)
    return list(files)
