"""`python -m webnn_wgpu` is `webnn-wgpu`."""

from .cli import main

main()
