"""`webnn-wgpu demo`: sentence similarities by all-MiniLM-L6-v2, every operator of it a WGSL compute shader."""

from __future__ import annotations

import json
import logging
import statistics
import time
import warnings
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn
from rich.table import Table
from rich.text import Text

from webnn_wgpu import MLContext, WebNNError, ml
from webnn_wgpu.core.errors import printable
from webnn_wgpu.frontends.sentence_encoder import FloatArray, SentenceEncoder

from .text import write_section

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Sequence

logger = logging.getLogger("webnn_wgpu")

DEFAULT_SENTENCES = (
    "A cat sleeps on the warm windowsill.",
    "A kitten is napping in the sun.",
    "The stock market fell sharply on Monday.",
    "Share prices dropped at the start of the week.",
    "She is learning to play the violin.",
)
LATER_RUNS = 5

DEVICES: dict[str, dict[str, Any]] = {
    "auto": {},
    "cpu": {"device_type": "cpu"},
    "reference": {"backend": "reference"},
}
"""The choices of --device, as options of `ML.create_context`."""


@dataclass(frozen=True)
class DemoResult:
    """What a demo run found.

    Attributes:
        adapter: Adapter, driver and backend.
        sentences: The sentences.
        embeddings: float32 [n, hidden_size].
        similarity: float32 [n, n].
        plans: One line for each graph; none on the numpy reference.
        dispatches: Dispatches of all graphs together; 0 on the numpy reference.
        first_run_ms: Milliseconds from tokens to embeddings with building the graphs.
        run_ms: The same with the graphs built, the median of some runs.
    """

    adapter: str
    sentences: tuple[str, ...]
    embeddings: FloatArray
    similarity: FloatArray
    plans: tuple[str, ...]
    dispatches: int
    first_run_ms: float
    run_ms: float

    def to_json(self) -> str:
        """Return everything but the plans as one JSON object."""
        record = {
            "adapter": self.adapter,
            "sentences": self.sentences,
            "embeddings": self.embeddings.tolist(),
            "similarity": self.similarity.tolist(),
            "dispatches": self.dispatches,
            "first_run_ms": round(self.first_run_ms, 3),
            "run_ms": round(self.run_ms, 3),
        }
        return json.dumps(record)


@click.command()
@click.argument("sentences", nargs=-1, metavar="[SENTENCE]...")
@click.option(
    "--model-dir",
    type=click.Path(path_type=Path),
    metavar="DIR",
    help="Folder with config.json, tokenizer.json and model.safetensors.  [default: the installed weights]",
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object, embeddings included.")
@click.option(
    "--device",
    type=click.Choice(list(DEVICES)),
    default="auto",
    show_default=True,
    help="Best adapter, the software adapter, or numpy.",
)
def demo(sentences: tuple[str, ...], model_dir: Path | None, as_json: bool, device: str) -> None:
    """Compute how similar sentences are, with all-MiniLM-L6-v2 on WebGPU.

    Without a SENTENCE some ready-made ones are compared.
    """
    try:
        folder = model_dir or SentenceEncoder.find_model_dir()
        with _open_context(device) as context, SentenceEncoder(folder, context) as encoder, _progress() as progress:
            result = run_demo(encoder, sentences or DEFAULT_SENTENCES, progress)
    except (WebNNError, OSError, ImportError, ValueError) as error:
        raise click.ClickException(str(error)) from error
    if as_json:
        click.echo(result.to_json())
    else:
        _write(result)


def run_demo(
    encoder: SentenceEncoder, sentences: Sequence[str], progress: Callable[[int, int, str], None] | None = None
) -> DemoResult:
    """Build the graphs that the sentences need, run them, and run them again for the time.

    Args:
        encoder: The encoder; graphs it has already are not built again.
        sentences: At least one.
        progress: Called while kernels are compiled, as `MLGraphBuilder.build` says.

    Returns:
        What was found.
    """
    shapes = [batch.shape for batch in encoder.batches(encoder.tokenize(sentences))]
    start = time.perf_counter()
    plans = [plan for plan in (encoder.graph_for(*shape, progress=progress).plan for shape in shapes) if plan]
    embeddings = encoder.encode(sentences)
    first_run = time.perf_counter() - start
    later_runs: list[float] = []
    for _ in range(LATER_RUNS):
        start = time.perf_counter()
        encoder.encode(sentences)
        later_runs.append(time.perf_counter() - start)
    return DemoResult(
        adapter=encoder.context.description,
        sentences=tuple(sentences),
        embeddings=embeddings,
        similarity=encoder.similarity(embeddings),
        plans=tuple(plan.summary() for plan in plans),
        dispatches=sum(len(plan.dispatches) for plan in plans),
        first_run_ms=first_run * 1e3,
        run_ms=statistics.median(later_runs) * 1e3,
    )


def _open_context(device: str) -> MLContext:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", RuntimeWarning)
        context = ml.create_context(**DEVICES[device])
    for warning in caught:
        # In one line and without the place in the code, which is none of the user's.
        logger.warning("%s", warning.message)
    return context


@contextmanager
def _progress() -> Generator[Callable[[int, int, str], None] | None]:
    """Show a bar on stderr while kernels are compiled, if that is a terminal."""
    console = Console(stderr=True)
    if not console.is_terminal:
        yield None
        return
    columns = (TextColumn("Compiling kernels"), BarColumn(), MofNCompleteColumn(), TextColumn("{task.description}"))
    with Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task("", total=None)

        def update(done: int, total: int, kernel: str) -> None:
            bar.update(task, completed=done, total=total, description=kernel)

        yield update


def _write(result: DemoResult) -> None:
    count = len(result.sentences)
    console = Console()
    if not console.is_terminal:
        # In a file or a pipe there is room for every column.
        console = Console(width=60 + 8 * count)
    table = Table(title="Cosine similarity", title_justify="left")
    table.add_column("", justify="right", no_wrap=True)
    table.add_column("Sentence", overflow="fold", min_width=20)
    for number in range(1, count + 1):
        table.add_column(str(number), justify="right", no_wrap=True)
    for number, (sentence, row) in enumerate(zip(result.sentences, result.similarity, strict=True), 1):
        table.add_row(str(number), Text(printable(sentence)), *(f"{value:.3f}" for value in row))
    console.print(table)
    rows = [("adapter", result.adapter), *(("plan", plan) for plan in result.plans)]
    rows.append(("first run", f"{result.first_run_ms:.1f} ms, building included"))
    rows.append(("later runs", f"{result.run_ms:.1f} ms, the median of {LATER_RUNS}"))
    write_section(console, "Run", rows)
