"""The numbers of operators in the README, as the definitions have them."""

from __future__ import annotations

import re

from webnn_wgpu.ops import OPS


def counted(text: str) -> str:
    """Return the text of the README with the present numbers of operators."""
    public = [op for op in OPS.values() if not op.internal]
    extensions = sum(op.extension for op in public)
    text = re.sub(r"\ball \d+ operators of WebNN", f"all {len(public) - extensions} operators of WebNN", text)
    return re.sub(r"\b\d+ extension operators", f"{extensions} extension operators", text)
