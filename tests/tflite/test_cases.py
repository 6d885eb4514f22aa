"""Cases of each operator: results agree with those of TFLite's kernels.

A share of the cases runs; `--profiles=all` runs all.
"""

from __future__ import annotations

import zlib

import numpy as np
import pytest

import webnn_wgpu as wn
from tests.optional import REPOSITORY
from tests.rotation import SHARES, share_of_today
from tests.tflite.cases import EXPLAINED, TfliteCase, cases
from webnn_wgpu.frontends.tflite import load_model


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "case" not in metafunc.fixturenames:
        return
    found = cases()
    if metafunc.config.getoption("--profiles") != "all":
        share = metafunc.config.getoption("--profile-share") or share_of_today(REPOSITORY)[0]
        found = [c for c in found if zlib.crc32(c.name.encode()) % SHARES == share - 1]
    metafunc.parametrize("case", found, ids=str)


def disagreement(case: TfliteCase, context: wn.MLContext) -> str:
    with load_model(case.model(), lambda: context, fallback="host") as model:
        feeds = dict(zip([i.name for i in model.inputs], case.feeds(), strict=True))
        for run in range(case.runs):
            for index, result in enumerate(model.run(feeds).values()):
                difference = case.disagreement(run, index, np.asarray(result))
                if difference:
                    return f"run {run}, output {index}: {difference}"
    return ""


def test_a_case_agrees_with_one_of_tflites_implementations(case: TfliteCase, context: wn.MLContext) -> None:
    difference = disagreement(case, context)
    if case.name in EXPLAINED:
        assert difference, f"{case.name} agrees: {EXPLAINED[case.name]!r} explains nothing"
    else:
        assert not difference
