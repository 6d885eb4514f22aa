"""The pictures of tools: pages in a browser, terminal output by rich, plots by matplotlib.

Run as `python -m tests.viewer.pictures [NAME ...]`; without names all are made. Those with times in them want an idle machine.
"""

from __future__ import annotations

import argparse
import io
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import numpy as np
import onnx
from click.testing import CliRunner
from PIL import Image
from rich.console import Console
from rich.text import Text

import webnn_wgpu as wn
from examples import models
from tests.viewer.conftest import NAMES, Browser
from tests.viewer.graphs import transformer
from webnn_wgpu import debug
from webnn_wgpu.cli.app import app
from webnn_wgpu.demos.sentence_encoder import SentenceEncoder
from webnn_wgpu.inspection.profile import GraphProfile

FOLDER = Path(__file__).parents[2] / "docs" / "images"
SIZE = (1360, 820)
SENTENCES = ["A cat sleeps on the warm windowsill.", "A kitten is napping in the sun.", "She is learning to play the violin."]

TERMINAL = """<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}">
<style>
.{unique_id}-matrix {{ font-family: monospace; font-size: {char_height}px; line-height: {line_height}px; }}
{styles}
</style>
<defs>{lines}
<clipPath id="{unique_id}-clip-terminal"><rect width="{terminal_width}" height="{terminal_height}"/></clipPath></defs>
{chrome}<g transform="translate({terminal_x}, {terminal_y})" clip-path="url(#{unique_id}-clip-terminal)">
{backgrounds}<g class="{unique_id}-matrix">{matrix}</g>
</g>
</svg>
"""
"""rich's terminal, without the font that it would load."""


def browser() -> Browser:
    """The first browser there is."""
    program = next(filter(None, map(shutil.which, NAMES)))
    return Browser(program, Path(tempfile.mkdtemp()))


def screenshot(page: Path, target: Path, size: tuple[int, int] = SIZE, **address: str) -> None:
    """Write what a page looks like, in a palette: a third of the bytes."""
    browser().picture(page, target, urlencode(address), size)
    colors = {"colors": 255, "method": Image.Quantize.FASTOCTREE, "dither": Image.Dither.NONE}
    Image.open(target).convert("RGB").quantize(**colors).save(target, optimize=True)


def terminal(target: Path, *shown: Any, width: int) -> None:
    """Write what a terminal shows of some objects."""
    console = Console(record=True, width=width, file=io.StringIO(), force_terminal=True)
    for each in shown:
        console.print(each)
    target.write_text(console.export_svg(title=target.stem, code_format=TERMINAL, unique_id="terminal"), encoding="utf-8")


def encoder_profile() -> tuple[wn.MLGraph, GraphProfile]:
    """MiniLM's graph for three sentences, and what its kernels take."""
    encoder = SentenceEncoder(SentenceEncoder.find_model_dir(), wn.ml.create_context())
    (batch,) = encoder.batches(encoder.tokenize(SENTENCES))
    graph = encoder.graph_for(*batch.shape)
    return graph, graph.profile(batch.inputs, runs=9)


def encoder_view(target: Path, **address: str) -> None:
    """A view of MiniLM."""
    graph, profile = encoder_profile()
    page = debug.view(graph, target.with_suffix(".html"), profile=profile, title="all-MiniLM-L6-v2").path
    screenshot(page, target, **address)


def resnet50(target: Path) -> None:
    """A model of the onnx package's tests: ResNet-50, with weights that are made up."""
    path = Path(onnx.__file__).parent / "backend" / "test" / "data" / "light" / "light_resnet50.onnx"
    with wn.load(path) as model:
        model.run({value.name: np.zeros(value.shape, np.float32) for value in model.inputs})
        page = debug.view(model, target.with_suffix(".html"), title="ResNet-50").path
    screenshot(page, target, view="run", select="n11")


def large(target: Path) -> None:
    """A transformer of more than 2000 operators."""
    with transformer(wn.ml.create_context(), 58) as graph:
        page = debug.view(graph, target.with_suffix(".html"), title=f"A transformer of {graph.operation_count} operators").path
    screenshot(page, target, view="built", select="layer.7/softmax")


def difference(target: Path) -> None:
    """A report of `debug.diff`, as notebooks show it: a kernel that stores some rows where others belong."""
    graph, feeds = product()
    name = next(iter(graph.kernels))
    wgsl = graph.kernels[name].wgsl
    graph.override(
        name,
        wgsl.replace("fn store_quad(batch: u32, m: u32,", "fn store_quad(batch: u32, row: u32,").replace(
            "sums: vec4<f32>) {", "sums: vec4<f32>) {\n    let m = select(row, row ^ 1u, n >= 40u && row < 40u);"
        ),
    )
    html = debug.diff(graph, feeds)._repr_html_()
    page = target.with_suffix(".html")
    style = "body { font: 14px sans-serif; margin: 16px; } td, th { padding: 2px 10px; text-align: right; }"
    page.write_text(f"<!doctype html><meta charset='utf-8'><style>{style}</style>" + re.sub("<p>repro:.*?</p>", "", html))
    screenshot(page, target, (820, 372))


def product() -> tuple[wn.MLGraph, dict[str, Any]]:
    """A matrix product and a softmax, and what they are given."""
    rng = np.random.default_rng(0)
    builder = wn.MLGraphBuilder(wn.ml.create_context())
    x = builder.input("x", [64, 48], "float32")
    weights = builder.constant(rng.standard_normal((48, 64)).astype(np.float32))
    graph = builder.build({"y": builder.softmax(builder.matmul(x, weights, label="scores"), 1, label="share")})
    return graph, {"x": rng.standard_normal((64, 48)).astype(np.float32)}


def interpreted(target: Path) -> None:
    """What the interpreter finds in the tutorial's hasty kernel."""
    tutorial: dict[str, Any] = {}
    with redirect_stdout(io.StringIO()):
        program = FOLDER.parent / "kernel_tutorial.py"
        exec(compile(program.read_text(encoding="utf-8"), program, "exec"), tutorial)
    terminal(target, Text(">>> print(found)", style="bold"), Text(str(tutorial["found"])), width=140)


def lab(target: Path) -> None:
    """Three savings of a file in `webnn-wgpu kernel-lab`: the same, one with a mistake, one that does not compile."""
    with CliRunner().isolated_filesystem():
        onnx.save(models.mobilenet_v2(), "mobilenet.onnx")
        call = ["kernel-lab", "mobilenet.onnx", "globalaveragepool_54", "--file", "mean.wgsl", "--once"]
        said = [CliRunner().invoke(app, call).stdout]
        wgsl = Path("mean.wgsl").read_text(encoding="utf-8")
        for changed in ("t / (params.length - 1.0)", "t / params.count"):
            Path("mean.wgsl").write_text(wgsl.replace("t / params.length", changed), encoding="utf-8")
            said.append(CliRunner().invoke(app, call).stdout)
    shown: list[Any] = [Text(f"$ webnn-wgpu {' '.join(call[:-1])}", style="bold"), said[0].splitlines()[0]]
    shown.append("mean.wgsl is tried whenever it is saved. Ctrl-C ends.")
    for clock, text in zip(("10:31:07", "10:31:52", "10:32:20"), said, strict=True):
        lines = [line for line in text.splitlines() if not line.startswith("written")]
        shown += ["", Text(clock, style="cyan"), Text("\n".join(lines), style="red" if "compile" in text else "")]
    terminal(target, *shown, width=118)


def table(target: Path) -> None:
    """The slowest kernels of MiniLM."""
    _, profile = encoder_profile()
    terminal(target, profile.slowest(10), width=150)


def filtered(target: Path) -> None:
    """What `examples/pygfx_filter.py` draws."""
    subprocess.run([sys.executable, FOLDER.parent / "pygfx_filter.py", target], check=True)


def plotted(what: Any, height: int) -> Callable[[Path], None]:
    """A plot of MiniLM's profile."""

    def make(target: Path) -> None:
        page = target.with_suffix(".html")
        svg = encoder_profile()[1].plot(what).replace("<svg ", '<svg style="width: 1000px; height: auto" ', 1)
        page.write_text(f"<!doctype html><meta charset='utf-8'><body style='margin: 0'>{svg}", encoding="utf-8")
        screenshot(page, target, (1000, height))

    return make


PICTURES: dict[str, Callable[[Path], None]] = {
    "view-run.png": lambda target: encoder_view(target, view="run", color="time", select="encoder.layer.0.attention.mix"),
    "view-memory.png": lambda target: encoder_view(target, view="memory", tab="kernels"),
    "view-resnet50.png": resnet50,
    "view-transformer.png": large,
    "profile-roofline.png": plotted("roofline", 515),
    "profile-timeline.png": plotted("timeline", 356),
    "profile-table.svg": table,
    "diff.png": difference,
    "interpret.svg": interpreted,
    "kernel-lab.svg": lab,
    "pygfx-filter.png": filtered,
}

if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", choices=[*PICTURES, []], metavar="NAME", help=", ".join(PICTURES))
    with tempfile.TemporaryDirectory() as scratch:
        for name in parser.parse_args().names or PICTURES:
            PICTURES[name](Path(scratch) / name)
            shutil.copy(Path(scratch) / name, FOLDER / name)
            print(name, (FOLDER / name).stat().st_size)
