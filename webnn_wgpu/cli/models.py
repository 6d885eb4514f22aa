"""The common parts of the commands for model files: options, contexts and reports of errors."""

from __future__ import annotations

import functools
import logging
import os
import sys
import warnings
from collections.abc import Callable, Generator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from webnn_wgpu import MLContext, MLTypeError, WebNNError, ml
from webnn_wgpu.frontends.images import NORMALIZATIONS, Preprocessing
from webnn_wgpu.frontends.kinds import is_tfjs

from .inputs import UNNAMED, GivenInputs, described_sizes, pairs, size_of, sizes_of

if TYPE_CHECKING:
    from webnn_wgpu import Model, TfjsModel, TfliteModel, WebNNModel
    from webnn_wgpu.api.progress import Progress
    from webnn_wgpu.frontends.stored import StoredModel

logger = logging.getLogger("webnn_wgpu")

DEVICES: dict[str, dict[str, Any]] = {
    "auto": {},
    "low-power": {"power_preference": "low-power"},
    "cpu": {"device_type": "cpu"},
    "reference": {"backend": "reference"},
}
"""The choices of --device, as options of `ML.create_context`."""

Command = Callable[..., Any]


class _Written(click.Path):
    """A file that is written in the end, or `-` where that is printed. An impossible path is refused before any measurement."""

    def __init__(self, printed: bool = False) -> None:
        super().__init__(dir_okay=False, path_type=Path)
        self.printed = printed

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        path = Path(value)
        super().convert(value, param, ctx)
        if str(value) == "-":
            if not self.printed:
                self.fail("this is not printed: name a file (./- is one)", param, ctx)
            return path
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            self.fail(f"{path} cannot be written: {error}", param, ctx)
        if not os.access(path if path.exists() else path.parent, os.W_OK):
            self.fail(f"{path} cannot be written: no permission", param, ctx)
        return path


written_file = _Written()
printed_file = _Written(printed=True)


class _ModelFile(click.Path):
    """A model file. A folder for browsers is refused with the commands that take one."""

    def __init__(self) -> None:
        super().__init__(exists=True, path_type=Path)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        path = Path(os.fsdecode(super().convert(value, param, ctx)))
        if path.is_dir():
            self.fail(f"{path} is a folder: its graph has kernels and no operators. {OF_FOLDERS} take folders", param, ctx)
        return path


OF_FOLDERS = "run, info, check, bench, profile, kernels and interpret"
"""The commands that take folders for browsers."""

model_argument = click.argument("model", type=_ModelFile())
model_or_folder = click.argument("model", type=click.Path(exists=True, path_type=Path))
device_option = click.option(
    "--device",
    type=click.Choice(list(DEVICES)),
    default="auto",
    show_default=True,
    help="Best adapter, the integrated GPU, the software adapter, or numpy.",
)
json_option = click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
language_option = click.option(
    "--as",
    "languages",
    multiple=True,
    metavar="LANGUAGE",
    help="Show kernels in this language, too: hlsl, msl, or with the hardware instrument amd:FAMILY, such as amd:navi21.",
)
fallback_option = click.option(
    "--fallback",
    type=click.Choice(["warn", "host", "error"]),
    default="warn",
    show_default=True,
    help="Whether nodes that the device cannot run may run on the host, with or without a warning.",
)
shape_options = (
    click.option(
        "-f",
        "--override-dim",
        "dims",
        multiple=True,
        metavar="NAME=SIZE",
        callback=pairs("SIZE", size_of),
        help="Size of a symbolic dimension. Others: MODEL.dims.json beside MODEL.onnx, else 1 for a batch, 128 for a sequence.",
    ),
    click.option(
        "--input-shape",
        "shapes",
        multiple=True,
        metavar="NAME=SIZES",
        callback=pairs("SIZES", sizes_of),
        help="Shape of an input, such as x=1,3,224,224.",
    ),
    click.option("--simplify", type=click.Choice(["onnxslim"]), help="Let a package simplify the ONNX model first."),
    click.option(
        "--weights",
        type=click.Path(exists=True, dir_okay=False, path_type=Path),
        help="Weights of a .webnn or .json file.  [default: searched beside it]",
    ),
    click.option(
        "--manifest",
        type=click.Path(exists=True, dir_okay=False, path_type=Path),
        help="Manifest of a .weights file.  [default: searched beside it]",
    ),
)


def _floats(_context: click.Context, parameter: click.Parameter, text: str | None) -> tuple[float, ...] | None:
    try:
        return None if text is None else tuple(float(part) for part in text.split(","))
    except ValueError:
        raise click.BadParameter(f"{text!r} is no list of numbers", param=parameter) from None


input_options = (
    click.option(
        "-i",
        "--input",
        "given",
        multiple=True,
        metavar="NAME=VALUE",
        callback=pairs("VALUE"),
        help="A .npy or .npz file, a picture, numbers such as 5,6,7, or a text. One number fills an input of fixed shape."
        " Inputs that get none are made up: masks are 1, token types 0, most others random. Without NAME= it is for the first"
        " input, and a .npz file for the inputs of its arrays' names.",
    ),
    click.option("--seed", default=0, show_default=True, type=click.IntRange(0), help="Of random inputs."),
    click.option(
        "--tokenizer",
        type=click.Path(dir_okay=False, path_type=Path),
        help="For text.  [default: tokenizer.json beside the model]",
    ),
    click.option(
        "--normalize",
        type=click.Choice(list(NORMALIZATIONS)),
        default="imagenet",
        show_default=True,
        help="Of pictures: ImageNet's mean and deviation, 0 to 1, -1 to 1, or 0 to 255.",
    ),
    click.option("--mean", callback=_floats, metavar="R,G,B", help="Of pixels from 0 to 1, instead."),
    click.option("--std", callback=_floats, metavar="R,G,B", help="Of pixels from 0 to 1, instead."),
    click.option(
        "--fit",
        type=click.Choice(["crop", "stretch", "pad"]),
        default="crop",
        show_default=True,
        help="Bring pictures to size by a center crop, out of proportion, or with gray borders.",
    ),
    click.option(
        "--layout", type=click.Choice(["auto", "nchw", "nhwc"]), default="auto", show_default=True, help="Of pictures."
    ),
    click.option("--bgr", is_flag=True, help="Pictures' channels are blue, green, red."),
)


def options(*groups: Any) -> Callable[[Command], Command]:
    """Apply options in the order they are written."""

    def apply(command: Command) -> Command:
        listed: list[Callable[[Command], Command]] = []
        for group in groups:
            listed.extend(group if isinstance(group, tuple) else (group,))  # pyright: ignore[reportUnknownArgumentType] - click's decorators have no type
        for option in reversed(listed):
            command = option(command)
        return command

    return apply


def values(model: Path, options: dict[str, Any]) -> GivenInputs:
    """Return the values of `input_options` and `shape_options`, and take them out of `options`."""
    from webnn_wgpu.frontends.dims import sidecar

    if not is_webnn(model) and not model.is_dir():
        # A missing package is reported before anything else is done.
        import_module(f"webnn_wgpu.frontends.{'tflite' if is_tflite(model) else 'tfjs' if is_tfjs(model) else 'onnx'}")

    beside = model.parent / "tokenizer.json"
    given = GivenInputs(
        given=options.pop("given"),
        dims=options.pop("dims"),
        beside=sidecar(model),
        shapes=options.pop("shapes"),
        preprocessing=Preprocessing(
            normalization=options.pop("normalize"),
            mean=options.pop("mean"),
            std=options.pop("std"),
            fit=options.pop("fit"),
            layout=options.pop("layout"),
            bgr=options.pop("bgr"),
        ),
        tokenizer=options.pop("tokenizer") or (beside if beside.is_file() else None),
        seed=options.pop("seed"),
        weights=options.pop("weights"),
        manifest=options.pop("manifest"),
    )
    click.get_current_context().obj = given  # for `failing_well`
    return given


def is_webnn(model: Path) -> bool:
    """Whether a file is a WebNN graph, by its suffix and, for `.json`, its content."""
    return model.suffix.lower() in (".webnn", ".json") and not is_tfjs(model)


def is_tflite(model: Path) -> bool:
    """Whether a file is a TFLite model by its suffix. All other files that are no WebNN graphs are taken for ONNX models."""
    return model.suffix.lower() == ".tflite"


def load_model(
    model: Path,
    context: MLContext,
    given: GivenInputs,
    *,
    fallback: Any = "warn",
    simplify: Any = None,
    progress: Progress | None = None,
    kv_cache: int | None = None,
) -> Model | TfliteModel | TfjsModel | WebNNModel:
    """Load a model or a WebNN graph with the sizes and files that options gave."""
    if kv_cache is not None and (is_tflite(model) or is_tfjs(model) or is_webnn(model)):
        raise click.BadParameter("only decoders in ONNX files have a KV cache", param_hint="--kv-cache")
    if is_tflite(model) or is_tfjs(model):
        check_tensorflow_options(model, given.weights, given.manifest, simplify)
        from webnn_wgpu.frontends.loading import load_file

        with _naming_the_option():
            return load_file(model, context, fallback=fallback, override_dims=given.dims, progress=progress)
    if is_webnn(model):
        from webnn_wgpu.frontends.loading import load_file

        return load_file(
            model,
            context,
            weights=given.weights,
            manifest=given.manifest,
            override_dims=given.sizes,
            simplify=simplify,
            progress=progress,
        )
    check_onnx_options(given.weights, given.manifest)
    from webnn_wgpu import load_onnx

    options: dict[str, Any] = {"fallback": fallback, "override_dims": given.dims, "simplify": simplify}
    with _naming_the_option():
        return load_onnx(model, context, kv_cache=kv_cache, progress=progress, **options)


@contextmanager
def _naming_the_option() -> Generator[None]:
    """Raise the error of a size for an unknown dimension as one of the option."""
    from webnn_wgpu.frontends.common.opening import UNKNOWN_DIMENSION

    try:
        yield
    except MLTypeError as error:
        if error.rule != UNKNOWN_DIMENSION:
            raise
        message = f"no symbolic dimension is called {error.got}; there are {error.allowed}"
        if error.allowed == "none":
            message += f". {UNNAMED}"
        raise click.BadParameter(message, param_hint="-f") from error


def load_model_or_folder(
    model: Path,
    context: MLContext,
    given: GivenInputs,
    *,
    fallback: Any = "warn",
    simplify: Any = None,
    progress: Progress | None = None,
) -> Model | TfliteModel | TfjsModel | WebNNModel | StoredModel:
    """Load a model as `load_model` does, or a folder for browsers."""
    if not model.is_dir():
        return load_model(model, context, given, fallback=fallback, simplify=simplify, progress=progress)
    check_folder_options(given.weights, given.manifest, simplify)
    from webnn_wgpu.frontends.stored import load_stored

    return load_stored(model, context, progress)


def check_onnx_options(weights: Path | None, manifest: Path | None, kind: str = "ONNX") -> None:
    """Refuse options that models with their weights do not have."""
    if weights is not None or manifest is not None:
        raise click.BadParameter(f"the weights of {kind} models are in the model", param_hint="--weights, --manifest")


def check_tensorflow_options(model: Path, weights: Path | None, manifest: Path | None, simplify: Any) -> None:
    """Refuse options that TFLite and TensorFlow.js models do not have."""
    check_onnx_options(weights, manifest, "TFLite" if is_tflite(model) else "TensorFlow.js")
    if simplify is not None:
        raise click.BadParameter("only ONNX models can be simplified", param_hint="--simplify")


def check_folder_options(weights: Path | None, manifest: Path | None, simplify: Any) -> None:
    """Refuse options that folders for browsers do not have."""
    if weights is not None or manifest is not None or simplify is not None:
        hint = "--weights, --manifest, --simplify"
        raise click.BadParameter("a folder has a compiled graph with its weights", param_hint=hint)


def failing_well(command: Command) -> Command:
    """Report errors in one line, without the place in the code."""

    @functools.wraps(command)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        try:
            return command(*args, **kwargs)
        except ModuleNotFoundError as error:
            package = (error.name or "").partition(".")[0].replace("_", "-")
            if package == "lark":
                raise click.ClickException("graph files need the package 'lark': pip install 'webnn-wgpu[webnn]'") from error
            if package in ("tflite", "flatbuffers"):
                hint = "pip install 'webnn-wgpu[tflite]'"
                raise click.ClickException(f"TFLite models need the package '{package}': {hint}") from error
            if package not in ("onnx", "onnx-ir"):
                raise
            raise click.ClickException(f"models need the package '{package}': pip install 'webnn-wgpu[onnx]'") from error
        except (WebNNError, OSError, MemoryError) as error:
            given: Any = click.get_current_context().obj
            sizes = given.assumed if isinstance(given, GivenInputs) else {}
            # The size of a dimension often is the cause, and the command line alone names the default.
            note = f"\nSizes: {described_sizes(sizes)}" if sizes and isinstance(error, WebNNError) else ""
            raise click.ClickException(f"{error}{note}") from error

    return wrapped


def no_kernel(name: str) -> str:
    """Return the message about a name that no kernel and no operator has."""
    return f"{name!r} is the name of no kernel and the label of no operator; `webnn-wgpu kernels MODEL` lists them"


def silence_mesa() -> None:
    """Set the environment variable without which Mesa's drivers print errors that do no harm."""
    if sys.platform == "linux":
        # Its value in a login session.
        os.environ.setdefault("XDG_RUNTIME_DIR", f"/run/user/{os.getuid()}")


def open_context(device: str) -> MLContext:
    """Return a context for a choice of --device. Its warnings go to the log."""
    return context_with(**DEVICES[device])


def context_with(**given: Any) -> MLContext:
    """Return a context for options of `create_context`. Its warnings go to the log."""
    silence_mesa()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", RuntimeWarning)
        context = ml.create_context(**given)
    for warning in caught:
        # In one line and without the place in the code, which is none of the user's.
        logger.warning("%s", warning.message)
    return context
