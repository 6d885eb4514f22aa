"""Tries every n-th invalid use on the adapter of this machine, then computes with the same builder; a program of its own.

python -m tests.checks.sample STEP SECONDS

Prints how many uses were tried. Ends with a traceback of all threads if it takes longer than SECONDS.
"""

from __future__ import annotations

import faulthandler
import itertools
import sys
import warnings

import numpy as np

import webnn_wgpu as wn
from tests.specification import operators

from .calls import PRESENT, Operand, Workplace
from .misuse import misuses
from .refusals import refusal_of


def main(step: str, seconds: str) -> None:
    faulthandler.enable()
    faulthandler.dump_traceback_later(float(seconds), exit=True)
    table = operators()
    # That there is no hardware here is nothing to be told again.
    with warnings.catch_warnings(action="ignore", category=RuntimeWarning):
        context = wn.ml.create_context()
    place = Workplace(context)
    uses = list(itertools.islice((m for op in PRESENT for m in misuses(table[op])), 0, None, int(step)))
    problems = [f"{m.op}: {m.what}: {problem}" for m in uses if (problem := refusal_of(place, m))]
    assert problems == [], problems
    x = Operand("float32[2, 3]")
    graph = place.builder.build({"y": place.builder.add(place.value(x), place.value(x))})
    (name,) = graph.inputs
    result = context.compute(graph, {name: np.arange(6, dtype=np.float32)})["y"]
    assert result.tolist() == [[0, 2, 4], [6, 8, 10]]
    print(len(uses))


if __name__ == "__main__":
    main(*sys.argv[1:])
