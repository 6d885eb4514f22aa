"""`webnn-wgpu demo`: sentence similarities by all-MiniLM-L6-v2, every operator of it a WGSL compute shader."""

from __future__ import annotations

import json
import statistics
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import click
from rich.table import Table
from rich.text import Text

from webnn_wgpu import WebNNError
from webnn_wgpu.core.errors import printable
from webnn_wgpu.demos.sentence_encoder import FloatArray, SentenceEncoder

from .models import device_option, open_context
from .progress import progress_bar
from .text import result_console, write_section

if TYPE_CHECKING:
    from collections.abc import Sequence

    from webnn_wgpu.api.progress import Progress

DEFAULT_SENTENCES = (
    "A cat sleeps on the warm windowsill.",
    "A kitten is napping in the sun.",
    "The stock market fell sharply on Monday.",
    "Share prices dropped at the start of the week.",
    "She is learning to play the violin.",
)
LATER_RUNS = 5


@dataclass(frozen=True, kw_only=True)
class DemoResult:
    """The results of a demo run.

    Attributes:
        adapter: Adapter, driver and backend.
        sentences: The sentences.
        embeddings: float32 [n, hidden_size].
        similarity: float32 [n, n].
        plans: One line for each graph, none on the numpy reference.
        dispatches: Dispatches of all graphs together, 0 on the numpy reference.
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
@device_option
def demo(sentences: tuple[str, ...], model_dir: Path | None, as_json: bool, device: str) -> None:
    """Compute how similar sentences are, with all-MiniLM-L6-v2 on WebGPU.

    Without a SENTENCE some ready-made ones are compared.
    """
    try:
        folder = model_dir or SentenceEncoder.find_model_dir()
        with open_context(device) as context, SentenceEncoder(folder, context) as encoder, progress_bar() as progress:
            result = run_demo(encoder, sentences or DEFAULT_SENTENCES, progress)
    except (WebNNError, OSError, ImportError, ValueError) as error:
        raise click.ClickException(str(error)) from error
    if as_json:
        click.echo(result.to_json())
    else:
        _write(result)


def run_demo(encoder: SentenceEncoder, sentences: Sequence[str], progress: Progress | None = None) -> DemoResult:
    """Build the graphs that the sentences need, run them, and run them again for the time.

    Args:
        encoder: The encoder. Graphs that it has already are not built again.
        sentences: At least one.
        progress: Called as `MLGraphBuilder.build` says.

    Returns:
        The results.
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


def _write(result: DemoResult) -> None:
    count = len(result.sentences)
    console = result_console()
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
