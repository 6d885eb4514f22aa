"""Runs a fuzzer in a worker until the time is over, and keeps its findings.

A fuzzer is a module with `one(seed, corpus, context)`, which runs a mutant and returns its verdict, and `corpus_of(folder)`,
which returns the models to mutate. Whatever is not a clear error (another exception, a crash, more than ten seconds, more than
three gigabytes) is a finding and kept with its seed.
"""

from __future__ import annotations

import argparse
import multiprocessing
import random
import resource
import signal
import time
import traceback
import warnings
from importlib import import_module
from pathlib import Path

MEMORY = 3 << 30
SECONDS = 10


class TooLong(Exception):
    """A model took longer than it may."""


def mutate_bytes(rng: random.Random, data: bytes) -> bytes:
    """Return the bytes with a few of them changed, cut out, repeated or cut off."""
    out = bytearray(data)
    for _ in range(rng.choice((1, 1, 2, 4, 8))):
        if not out:
            break
        at = rng.randrange(len(out))
        match rng.randrange(6):
            case 0:
                out[at] ^= 1 << rng.randrange(8)
            case 1:
                out[at] = rng.choice((0, 1, 0x7F, 0x80, 0xFF))
            case 2:
                del out[at : at + rng.choice((1, 2, 8, 64))]
            case 3:
                out[at:at] = out[at : at + rng.choice((1, 4, 32))]
            case 4:
                del out[at:]
            case _:
                out[at:at] = bytes(rng.randrange(256) for _ in range(rng.choice((1, 4))))
    return bytes(out)


def work(fuzzer: str, first: int, step: int, until: float, log: Path, findings: Path, models: Path | None) -> None:
    """Run mutants until the time is over, counting in a file which one is being run."""
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY + (2 << 30), MEMORY + (2 << 30)))
    warnings.simplefilter("ignore")
    import webnn_wgpu as wn

    module = import_module(fuzzer)

    def too_long(*_: object) -> None:
        raise TooLong

    signal.signal(signal.SIGALRM, too_long)
    corpus = module.corpus_of(models)
    context = wn.ml.create_context()
    counts: dict[str, int] = {}
    seed = first
    while time.time() < until:
        log.write_text(f"{seed} {sum(counts.values())} {counts}")
        signal.alarm(SECONDS)
        try:
            verdict = module.one(seed, corpus, context)
        except (Exception, TooLong):
            verdict = "FINDING"
            (findings / f"{seed}.txt").write_text(traceback.format_exc())
        finally:
            signal.alarm(0)
        counts[verdict] = counts.get(verdict, 0) + 1
        seed += step
    log.write_text(f"{seed} {sum(counts.values())} {counts}")


def main(fuzzer: str, description: str) -> int:
    """Run workers one after another until the time is over; a worker that dies is a finding, too."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--findings", type=Path, default=Path("fuzz-findings"))
    parser.add_argument("--models", type=Path, help="a folder of models to mutate")
    options = parser.parse_args()
    options.findings.mkdir(parents=True, exist_ok=True)
    until, seed, executions, deaths = time.time() + options.seconds, options.seed, 0, 0
    while time.time() < until:
        log = options.findings / "log"
        log.write_text(f"{seed} 0")
        arguments = (fuzzer, seed, 1, until, log, options.findings, options.models)
        worker = multiprocessing.get_context("spawn").Process(target=work, args=arguments)
        worker.start()
        worker.join()
        at, count, *rest = log.read_text().split(" ", 2)
        executions, seed = executions + int(count), int(at) + 1
        print(f"worker ended with {worker.exitcode} at seed {at} after {count} executions {' '.join(rest)}", flush=True)
        if worker.exitcode:
            deaths += 1
            (options.findings / f"{at}.txt").write_text(f"the worker died: exit code {worker.exitcode}")
    found = len(list(options.findings.glob("*.txt")))
    print(f"{executions} executions, {found} findings, {deaths} of them deaths; kept in {options.findings}")
    return 1 if found else 0
