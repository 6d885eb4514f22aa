"""The command group, and what all commands share."""

from __future__ import annotations

import logging

import click

from webnn_wgpu import __version__

from .demo import demo
from .doctor import doctor
from .op import op


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="webnn-wgpu")
def app() -> None:
    """The W3C Web Neural Network API for Python, on any GPU through WebGPU."""
    # To stderr: stdout is for results.
    logging.basicConfig(format="%(levelname)s: %(message)s")


for command in (demo, doctor, op):
    app.add_command(command)
