"""Folders of compiled graphs for browsers: `model.json`, kernels in WGSL, and bytes. See `docs/reference/web-folder.md`."""
