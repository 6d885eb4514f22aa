"""The devices that folders for browsers are made for: capabilities by name, or from a file."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from webnn_wgpu.core.caps import Caps
from webnn_wgpu.core.errors import MLTypeError

RECORDS: Mapping[str, Caps] = {
    "webgpu": Caps(),
    "webgpu-f16": Caps(features=frozenset({"shader-f16"})),
    "software": Caps(adapter_type="CPU"),
}
"""Names of capabilities, all with WebGPU's default limits.

"webgpu" is every browser's GPU, "webgpu-f16" is one with the feature shader-f16, and "software" is an adapter that runs shaders
on the CPU, such as SwiftShader.
"""

HERE = "here"
"""The name of the capabilities of the graph's own device, as a browser shows them."""


def record_of(record: str | os.PathLike[str] | Caps) -> Caps:
    """Return capabilities by their name, or from a file that `Caps.to_json` wrote.

    Raises:
        FileNotFoundError: neither a name nor a file.
        MLTypeError: the file has no capabilities.

    Example:
        >>> from webnn_wgpu.exporters.web.records import record_of
        >>> sorted(record_of("webgpu-f16").features)
        ['shader-f16']
    """
    if isinstance(record, Caps):
        return record
    if isinstance(record, str) and record in RECORDS:
        return RECORDS[record]
    path = Path(record)
    if not path.exists():
        names = ", ".join((*RECORDS, HERE))
        raise FileNotFoundError(f"{path} is no record of capabilities: neither a file nor one of {names}")
    try:
        return Caps.from_json(path.read_text(encoding="utf-8"))
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise MLTypeError(f"the file has no record of capabilities: {error}", operator="export", got=str(path)) from None
