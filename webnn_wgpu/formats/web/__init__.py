"""Folders of compiled graphs for browsers: `model.json`, kernels in WGSL, and bytes; see `docs/reference/web-folder.md`."""
