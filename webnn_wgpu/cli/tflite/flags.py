"""The common flags of TFLite's tools, and the interpreter that they ask for."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ..models import context_with

if TYPE_CHECKING:
    from webnn_wgpu import MLContext

RUNTIMES = ("ai_edge_litert.interpreter", "tflite_runtime.interpreter", "tensorflow.lite.python.interpreter")
"""The modules of TFLite's own interpreters, in the order of the search."""

DEVICES = ("default", "gpu", "cpu")
POWERS = ("default", "high-performance", "low-power")

Decorator = Callable[[Callable[..., Any]], Callable[..., Any]]


def switch(*names: str, default: bool = False, text: str = "") -> Decorator:
    """Return an option that is written `--name` or `--name=true`, as TFLite writes flags."""
    return click.option(*names, type=bool, is_flag=False, flag_value=True, default=default, show_default=True, help=text)


def model_file(*names: str) -> Decorator:
    """Return the option that names the model."""
    path = click.Path(exists=True, dir_okay=False, path_type=Path)
    return click.option(*names, "model_path", type=path, required=True, help="The .tflite file.")


def ignored(*names: str) -> tuple[Decorator, ...]:
    """Return options of TFLite's tools that have no effect."""
    return tuple(click.option(f"--{name}", name, expose_value=False, hidden=True) for name in names)


WEBNN = (
    switch("--use_webnn", text="Run the model on WebNN, not on the kernels of TFLite."),
    click.option("--webnn_device_preference", type=click.IntRange(0, 2), default=0, help="0 default, 1 GPU, 2 CPU."),
    click.option(
        "--webnn_power_preference",
        type=click.IntRange(0, 2),
        default=0,
        help="0 default, 1 high performance, 2 low power.",
    ),
    click.option(
        "--max_delegated_partitions",
        type=click.IntRange(0),
        default=0,
        help="The most partitions on WebNN; the kernels of TFLite run the others.",
    ),
    click.option(
        "--min_nodes_per_partition",
        type=click.IntRange(0),
        default=0,
        help="The least nodes of a partition on WebNN; the kernels of TFLite run the others.",
    ),
    *ignored("use_gpu", "use_xnnpack", "use_nnapi", "external_delegate_path", "external_delegate_options"),
)
"""The flags of the delegate."""


def flags(*decorators: Decorator) -> Decorator:
    """Return a decorator that adds options in this order."""

    def add(command: Callable[..., Any]) -> Callable[..., Any]:
        for decorator in reversed(decorators):
            command = decorator(command)
        return command

    return add


def webnn_context(webnn: dict[str, Any]) -> MLContext:
    """Return the context for the flags of the delegate."""
    device, power = DEVICES[int(webnn["webnn_device_preference"])], POWERS[int(webnn["webnn_power_preference"])]
    return context_with(device_type=None if device == "default" else device, power_preference=power)


def interpreter_of(path: Path, webnn: dict[str, Any], num_threads: int = -1) -> Any:
    """Return an interpreter with allocated tensors.

    Without `use_webnn`, TFLite's own kernels run the model. With it, WebNN runs the whole model, or its partitions if a flag
    limits these.

    Args:
        path: the model.
        webnn: the values of the flags `WEBNN`.
        num_threads: the threads of TFLite's kernels, -1 for their default.
    """
    from webnn_wgpu.tflite import Interpreter, WebnnDelegate

    limits = {name: webnn[name] for name in ("max_delegated_partitions", "min_nodes_per_partition")}
    if webnn["use_webnn"] and not any(limits.values()):
        found: Any = Interpreter(path, context=webnn_context(webnn))
    else:
        options: dict[str, Any] = {} if num_threads < 1 else {"num_threads": num_threads}
        if webnn["use_webnn"]:
            options["experimental_delegates"] = [WebnnDelegate(context=webnn_context(webnn), **limits)]
        found = own_runtime().Interpreter(str(path), **options)
    found.allocate_tensors()
    return found


def own_runtime() -> Any:
    """Return the module of TFLite's interpreter.

    Raises:
        ClickException: no package has one.
    """
    for name in RUNTIMES:
        try:
            return import_module(name)
        except ModuleNotFoundError:
            continue
    raise click.ClickException(
        "the kernels of TFLite need the package ai-edge-litert, tflite-runtime or tensorflow: pip install ai-edge-litert, "
        "or add --use_webnn"
    )
