"""The conformance cases in a browser: Dawn, Tint and the player are a third stack of drivers beside lavapipe and SwiftShader.

A run tests a share of the cases, which the commit picks, each for one of the records. `--profiles=all` tests all for all.
"""

from __future__ import annotations

import base64
import json
import zlib
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import webnn_wgpu as wn
from tests.conformance import sources
from tests.conftest import REPOSITORY
from tests.rotation import share_of_today
from webnn_wgpu.exporters import web
from webnn_wgpu.testing import build_case

if TYPE_CHECKING:
    from tests.browser.chromium import Chromium, Server
    from webnn_wgpu.testing import Case

SHARES = 48
"""One share, some 130 cases, takes about 15 s on one core, most of it in the browser."""

BATCH = 300
"""Cases of one call of the page."""

MOST_BYTES = 8 * 1024 * 1024
"""The size of a case's tensors up to which the page gets them: as text, those of larger ones exceed a string of JavaScript."""

RECORDS = ("webgpu", "software")


def tasks(config: pytest.Config) -> list[tuple[Case, str]]:
    """Return the cases of this run with their records."""
    cases = [case for case in sources.all_cases() if tensor_bytes(case) <= MOST_BYTES]
    if config.getoption("--profiles") == "all":
        return [(case, record) for case in cases for record in RECORDS]
    share = share_of_today(REPOSITORY, SHARES)[0]
    numbers = [(case, zlib.crc32(f"{case.operator}: {case.name}".encode())) for case in cases]
    return [(case, RECORDS[n // SHARES % len(RECORDS)]) for case, n in numbers if n % SHARES == share - 1]


def tensor_bytes(case: Case) -> int:
    return sum(tensor.byte_length for tensor in (*case.inputs.values(), *case.expected.values()))


def encoded(content: Any) -> str:
    data = content if isinstance(content, bytes) else b"".join(bytes(part) for part in content)
    return base64.b64encode(data).decode()


def case_files(case: Case, record: str, context: wn.MLContext) -> dict[str, Any]:
    """Return the folder of a case, and its inputs."""
    builder = wn.MLGraphBuilder(context)
    built = build_case(builder, case)
    with builder.build(built.outputs) as graph:
        folder = web.folder_files(graph, record=record)
        feeds = {name: encoded(np.ascontiguousarray(built.feeds[name]).tobytes()) for name in graph.inputs}
    return {"files": {file: encoded(content) for file, content in folder.items() if not file.endswith(".js")}, "feeds": feeds}


def outputs_of(case: Case, found: dict[str, str]) -> dict[str, Any]:
    arrays = {name: case.expected[name].array() for name in case.expected}
    return {
        name: np.frombuffer(base64.b64decode(found[name]), array.dtype).reshape(array.shape) for name, array in arrays.items()
    }


def test_cases_in_a_browser(browser: Chromium, server: Server, request: pytest.FixtureRequest) -> None:
    server.contents["/cases.html"] = b"<!doctype html><title>cases</title>"
    server.contents["/cases.js"] = Path(__file__).with_name("cases.mjs").read_bytes()
    server.contents["/webnn-wgpu-player.js"] = files(web.__name__).joinpath(web.PLAYER).read_bytes()
    browser.open(f"{server.address}/cases.html")
    wrong: list[str] = []
    chosen = tasks(request.config)
    # Without the cases of others there are fewer. Shares differ a little in size.
    assert len(chosen) > 0.7 * len(sources.all_cases()) / SHARES
    with wn.ml.create_context(backend="reference") as context:
        for start in range(0, len(chosen), BATCH):
            batch = chosen[start : start + BATCH]
            content = [case_files(case, record, context) for case, record in batch]
            server.contents["/cases.json"] = json.dumps(content).encode()
            found = browser.evaluate('import("/cases.js").then(({ runAll }) => runAll("/cases.json"))', timeout=600)
            assert found["errors"] == []
            for (case, record), result in zip(batch, found["results"], strict=True):
                said = result.get("error")
                if said is None:
                    mismatches = case.mismatches(outputs_of(case, result["outputs"]))
                    said = "; ".join(f"{name}: {why}" for name, why in mismatches.items())
                if said:
                    wrong.append(f"{case.operator}: {case.name} for {record}: {said}")
    assert not wrong, f"{len(wrong)} of {len(chosen)} are wrong:\n" + "\n".join(wrong)
