"""`python -m webnn_wgpu.debug.translation` installs naga for this Python environment."""

from __future__ import annotations

import sys

from .naga import install_naga

if __name__ == "__main__":
    sys.exit(install_naga())
