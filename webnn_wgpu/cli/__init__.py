"""The command `webnn-wgpu`. Its libraries, click and rich, come with the extra `cli`."""

from __future__ import annotations

import sys

from webnn_wgpu import optimize_process

_LIBRARIES = ("click", "rich")


def main() -> None:
    """Run the command line. This is the entry point of `webnn-wgpu` and of `python -m webnn_wgpu`.

    Exits with 0 on success, 1 when something is missing or fails, 2 when the arguments make no sense or the libraries of
    the extra `cli` are not installed.
    """
    optimize_process()  # it is a process of its own
    try:
        from .app import app
    except ModuleNotFoundError as error:
        missing = (error.name or "").partition(".")[0]
        if missing not in _LIBRARIES:
            raise
        print(f"webnn-wgpu needs the library {missing}: pip install 'webnn-wgpu[cli]'", file=sys.stderr)
        sys.exit(2)
    app(prog_name="webnn-wgpu")
