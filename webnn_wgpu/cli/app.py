"""The command group, and the parts that all commands share."""

from __future__ import annotations

import logging
import sys
from typing import Any

import click

from webnn_wgpu import __version__

from .bench import bench
from .convert import convert
from .demo import demo
from .diff import diff
from .doctor import doctor
from .examples import add_examples
from .export import export
from .info import check, info
from .interpret import interpret
from .kernel_lab import kernel_lab
from .kernels import kernels
from .op import op
from .ops import ops
from .profile import profile
from .run import run
from .tflite import benchmark_model, evaluate, inference_diff, label_image
from .tune import tune
from .validate import validate
from .view import view
from .weights import weights


class _Commands(click.Group):
    """The command group, whose help prints the whole first sentence of each command."""

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        rows = [(name, command.get_short_help_str(limit=1000)) for name, command in sorted(self.commands.items())]
        with formatter.section("Commands"):
            formatter.write_dl(rows)


@click.group(cls=_Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="webnn-wgpu")
def app() -> None:
    """The W3C Web Neural Network API for Python, on any GPU through WebGPU."""
    # To stderr: stdout is for results.
    logging.basicConfig(format="%(levelname)s: %(message)s")
    # Sentences may hold what the output's encoding has not. Only files can be set so, not what tests put in their place.
    reconfigure: Any = getattr(sys.stdout, "reconfigure", None)
    if reconfigure is not None:
        reconfigure(errors="backslashreplace")


MODELS = (
    run,
    info,
    check,
    bench,
    tune,
    diff,
    profile,
    kernels,
    kernel_lab,
    interpret,
    view,
    convert,
    export,
    validate,
    weights,
)
TFLITE = (benchmark_model, inference_diff, label_image, evaluate)
OTHERS = (demo, doctor, op, ops)

for command in (*MODELS, *TFLITE, *OTHERS):
    app.add_command(command)
add_examples(app)
