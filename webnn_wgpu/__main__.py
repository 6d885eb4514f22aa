"""`python -m webnn_wgpu` is `webnn-wgpu`."""

from __future__ import annotations

from .cli import main

if __name__ == "__main__":
    main()
