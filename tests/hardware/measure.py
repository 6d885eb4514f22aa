"""The first minutes on a GPU: conformance cases, models, tuning, and other runtimes beside them, in one record and one page.

python -m tests.hardware.measure                                  on the default adapter, in at most 8 minutes
python -m tests.hardware.measure --python VENV/bin/python         with the runtimes that another Python has, too
BENCH_MODELS=FOLDER python -m tests.hardware.measure              with the ONNX models of a folder, instead of the examples

Peers are onnxruntime on the CPU and through WebGPU, and PyTorch where `onnx2torch` is installed beside it. On a slow device,
models have fewer runs, then fewer peers, and then some are noted as not measured. When the time is over, the run ends, even if
the driver hangs. The record and the page go to the folder `benchmarks`.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import re
import subprocess
import sys
import tempfile
import time
import warnings
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

import webnn_wgpu as wn
from examples.models import MODELS
from tests.conformance import sources
from tests.golden import bench
from tests.golden.models import SIZES
from tests.hardware.time_limit import TimeLimit
from webnn_wgpu.cli.inputs import made_up
from webnn_wgpu.cli.suite import write_suite
from webnn_wgpu.frontends.onnx import settle
from webnn_wgpu.frontends.timing import watched
from webnn_wgpu.inspection import joined
from webnn_wgpu.testing import build_case
from webnn_wgpu.testing.suite import (
    NO_TIME,
    Conformance,
    Job,
    ModelFigures,
    PeerFigures,
    SuiteRecord,
    built_in,
    left_out,
    relative_difference,
    report,
    run_suite,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from webnn_wgpu.frontends.onnx import Model
    from webnn_wgpu.inspection import GraphProfile
    from webnn_wgpu.ir.graph import Array
    from webnn_wgpu.testing import Case

REPOSITORY = Path(__file__).resolve().parents[2]
PEERS = Path(__file__).with_name("peers.py")
ORACLE = "onnxruntime CPU"
"""The runtime with whose results others are compared."""

CONFORMANCE_SHARE, MODELS_SHARE, TUNING_SHARE = 0.25, 0.75, 0.9
"""The shares of the time at which the conformance cases end, the models, and the tuning.

The rest is for work that has begun by then: a model that is compiled, a run. After `LAST_SHARE` nothing is waited for.
"""

LAST_SHARE = 0.95

VARIANTS = ("_fp16", "_qdq8", "_dyn8")
"""Ends of the names of models that are variants of others: they come last. The others come in the order of their size."""


def end_process(status: int) -> None:
    """End this process at once, from any thread."""
    sys.stdout.flush()
    os._exit(status)


def main(arguments: Sequence[str] | None = None, end: Callable[[int], object] = end_process) -> int:
    """Run the command line; return 1 where a conformance case or a model fails.

    Args:
        arguments: those of the command line.
        end: ends the process with this status when the time is over.
    """
    parser = argparse.ArgumentParser(
        prog="python -m tests.hardware.measure", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--minutes", type=float, default=8.0, help="the time of the whole run (default: 8)")
    parser.add_argument("--seconds", type=float, default=1.0, help="the time for the runs of a model, in each runtime")
    parser.add_argument("--only", nargs="*", default=[], metavar="NAME", help="measure these models alone")
    parser.add_argument("--python", action="append", default=[], metavar="PATH", help="another Python, for its runtimes")
    parser.add_argument("--output", type=Path, default=REPOSITORY / "benchmarks", metavar="FOLDER", help="for record and page")
    options = parser.parse_args(arguments)
    warnings.simplefilter("ignore", RuntimeWarning)
    begin = time.monotonic()
    jobs: list[Job] = []
    kept: list[SuiteRecord] = []

    def until(share: float) -> float:
        return begin + 60 * options.minutes * share

    def over() -> None:
        status = 1
        try:
            print("the time is over")
            if kept:
                status = _finished(left_out(kept[-1], jobs), options.output)
        finally:
            end(status)

    with TimeLimit(until(LAST_SHARE), over), tempfile.TemporaryDirectory() as folder:
        with wn.ml.create_context() as context:
            kept.append(SuiteRecord.begin(context))
            print(kept[-1].adapter)
            cases = conformance(context, sources.all_cases(), until(CONFORMANCE_SHARE))
            kept.append(replace(kept[-1], conformance=cases))
            peers = runtimes([sys.executable, *options.python])
            print(f"beside it: {', '.join(peers) or 'nothing'}")
            work = Workplace(context, Path(folder), peers, options.seconds, until(MODELS_SHARE))
            jobs += [*work.jobs(options.only), *built_in(context, options.only)]
            record = run_suite(
                kept[-1],
                jobs,
                seconds=options.seconds,
                until=until(MODELS_SHARE),
                tune_until=until(TUNING_SHARE),
                tell=print,
                keep=kept.append,
            )
    return _finished(record, options.output)


def _finished(record: SuiteRecord, folder: Path) -> int:
    """Print and write the record, and return the exit status."""
    write_suite(record)
    for path in written(record, folder):
        print(f"written: {path}")
    return int(bool(record.conformance and record.conformance.failed) or any(m.error for m in record.models))


def written(record: SuiteRecord, folder: Path) -> list[Path]:
    """Write record and page, named by adapter and day, and return the files."""
    folder.mkdir(parents=True, exist_ok=True)
    name = re.sub(r"[^a-z0-9]+", "-", f"{record.device['device']} {record.when[:10]}".lower()).strip("-")
    files = [folder / f"{name}.json", folder / f"{name}.html"]
    files[0].write_text(record.to_json() + "\n", encoding="utf-8")
    files[1].write_text(report(record), encoding="utf-8")
    return files


def conformance(context: wn.MLContext, cases: Sequence[Case], until: float) -> Conformance:
    """Run conformance cases in a fixed random order until the time is over, so that each operator has its share."""
    begin, passed, failed = time.monotonic(), 0, dict[str, str]()
    order = random.Random(0).sample(cases, len(cases))
    for case in order:
        if time.monotonic() > until:
            break
        try:
            builder = wn.MLGraphBuilder(context)
            built = build_case(builder, case)
            with builder.build(built.outputs, tuning=False) as graph:
                wrong = case.mismatches(context.compute(graph, built.feeds))
        except wn.WebNNError as error:
            wrong = {"error": str(error)}
        if wrong:
            failed[f"{case.operator}: {case.name}"] = "; ".join(f"{name}: {why}" for name, why in wrong.items())
        else:
            passed += 1
    return Conformance(
        passed=passed,
        failed=failed,
        not_run=len(order) - passed - len(failed),
        seconds=time.monotonic() - begin,
    )


@dataclass
class LoadedOnnx:
    """An ONNX model that is compiled.

    Attributes:
        model: the model.
        feeds: its inputs.
        latest: the results of the latest run.
    """

    model: Model
    feeds: Mapping[str, Array]
    latest: dict[str, Array]

    def run(self) -> Mapping[str, Array]:
        """Run it once, and keep the results in `latest`."""
        self.latest.update({name: np.asarray(array) for name, array in self.model.run(dict(self.feeds)).items()})
        return self.latest

    def graphs(self) -> Sequence[wn.MLGraph]:
        """Return its graphs."""
        return self.model.graphs

    def profile(self, runs: int) -> GraphProfile:
        """Return the times of the kernels of all its graphs."""
        with watched() as watch:
            self.model.run(dict(self.feeds))
        return joined([graph.profile(inputs, runs=runs) for graph, inputs in watch.inputs.items()])

    def tune(self, progress: Any) -> wn.Tuning:
        """Measure the variants of its kernels."""
        return self.model.tune(dict(self.feeds), save=False, progress=progress)

    def close(self) -> None:
        """Free it."""
        self.model.destroy()


@dataclass
class Workplace:
    """The models of a run, and the runtimes beside the package.

    Attributes:
        context: the context.
        folder: for files of models, inputs and outputs.
        peers: the Python of each runtime.
        seconds: the time for the runs of a model.
        until: the time by `time.monotonic` after which no other runtime is waited for.
    """

    context: wn.MLContext
    folder: Path
    peers: Mapping[str, str]
    seconds: float
    until: float

    def jobs(self, only: Sequence[str]) -> list[Job]:
        """Return the models, or those that are named: models of the benchmark where they are there, else the examples'."""
        names = sorted(bench.names(), key=lambda name: (name.endswith(VARIANTS), bench.path(name).stat().st_size))
        chosen = [name for name in names or MODELS if not only or name in only]
        if names:
            return [self._job(name, bench.path(name), bench.path(name).with_suffix(".npz"), {}) for name in chosen]
        return [self._example(name) for name in chosen]

    def _example(self, name: str) -> Job:
        model, sizes = self.folder / f"{name}.onnx", SIZES[name][-1]
        model.write_bytes(MODELS[name]().SerializeToString())
        rng = np.random.default_rng(0)
        with wn.load_onnx(str(model), self.context, fallback="host", override_dims=dict(sizes), tuning=False) as loaded:
            feeds: dict[str, Any] = {i.name: made_up(i, settle(i.shape, sizes), rng) for i in loaded.inputs}
        np.savez(model.with_suffix(".npz"), **feeds)
        return self._job(name, model, model.with_suffix(".npz"), sizes)

    def _job(self, name: str, model: Path, inputs: Path, sizes: Mapping[str, int]) -> Job:
        latest: dict[str, Array] = {}

        def load(tuning: wn.Tuning | None) -> LoadedOnnx:
            loaded = wn.load_onnx(
                str(model), self.context, fallback="host", override_dims=dict(sizes), tuning=False if tuning is None else tuning
            )
            return LoadedOnnx(loaded, dict(np.load(inputs)), latest)

        return Job(name, model.name, load, partial(self._beside, model, inputs, latest))

    def _beside(
        self, model: Path, inputs: Path, latest: Mapping[str, Array], figures: ModelFigures, turn: float
    ) -> ModelFigures:
        """Add the figures of other runtimes. Those after the first one begin only before the turn's end."""
        if figures.error:
            return figures
        found: dict[str, PeerFigures] = {}
        expected: Mapping[str, Array] | None = None
        difference = None
        for name in sorted(self.peers, key=lambda peer: peer != ORACLE):
            now = time.monotonic()
            if now >= (self.until if name == ORACLE else turn):
                found[name] = PeerFigures(note=NO_TIME)
                continue
            timeout = min(60 + 20 * self.seconds, self.until - now)
            command = (self.peers[name], name, model, inputs, self.folder, self.seconds, timeout)
            found[name], results = run_peer(*command)
            if name == ORACLE and results is not None:
                expected = results
                difference = relative_difference(latest, expected)
            elif results is not None and expected is not None:
                found[name] = replace(found[name], difference=relative_difference(results, expected))
        return replace(figures, peers=found, difference=difference)


def runtimes(pythons: Sequence[str]) -> dict[str, str]:
    """Return the first Python that has a runtime, by the name of the runtime."""
    found: dict[str, str] = {}
    for python in pythons:
        done = subprocess.run([python, str(PEERS)], capture_output=True, text=True, check=False)
        if done.returncode:
            raise SystemExit(f"{python} cannot run peers: {done.stderr.strip()[-500:]}")
        for name in json.loads(done.stdout):
            found.setdefault(name, python)
    return found


def run_peer(
    python: str, runtime: str, model: Path, inputs: Path, folder: Path, seconds: float, timeout: float
) -> tuple[PeerFigures, Mapping[str, Array] | None]:
    """Run a model in another runtime; return its figures and its results, None where it fails."""
    outputs = folder / "outputs.npz"
    command = [python, str(PEERS), runtime, str(model), str(inputs), str(outputs), str(seconds)]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=timeout)
    except subprocess.TimeoutExpired:
        return PeerFigures(note="took too long"), None
    if done.returncode:
        lines = done.stderr.strip().splitlines() or [f"ended with {done.returncode}"]
        return PeerFigures(note=lines[-1][:200]), None
    with np.load(outputs) as results:
        return PeerFigures(**json.loads(done.stdout.splitlines()[-1])), dict(results)


if __name__ == "__main__":
    sys.exit(main())
