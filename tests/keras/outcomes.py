"""A pytest plugin for Keras's own tests: the markers of Keras's conftest, the backend, and a file of outcomes.

`KERAS_OUTCOMES` names the JSON file. With `KERAS_OWN_BACKEND=webnn`, the plugin loads `webnn_wgpu.keras` before any test.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

if os.environ.get("KERAS_OWN_BACKEND") == "webnn":
    import webnn_wgpu as wn
    import webnn_wgpu.keras

    if os.environ.get("KERAS_OWN_DEVICE") != "webgpu":
        webnn_wgpu.keras.use(wn.ml.create_context(backend="reference"))

_OFTEN = 100
"""Tests between two writes, so that a file that takes too long has outcomes too."""

_outcomes: dict[str, str] = {}


def skip_if_backend(name: str, reason: str) -> pytest.MarkDecorator:
    """Skip a test on a backend. Some tests import the function from Keras's conftest."""
    from keras.src import backend

    return pytest.mark.skipif(backend.backend() == name, reason=reason)


sys.modules["conftest"] = sys.modules[__name__]


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "requires_trainable_backend: the backend has gradients")
    config.addinivalue_line("markers", "multi_device: the test takes several devices")


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(collector: pytest.Collector) -> Iterator[None]:
    """Let the tests of trainers find the trainer: they import it by the name of a backend that they know."""
    if collector.name != "trainer_test.py" or os.environ.get("KERAS_OWN_BACKEND") != "webnn":
        return (yield)
    from keras.src.backend import config

    from webnn_wgpu.keras import webnn
    from webnn_wgpu.keras.webnn import trainer

    known = "keras.src.backend.openvino"
    sys.modules |= {known: webnn, f"{known}.trainer": trainer}
    config._BACKEND = "openvino"
    try:
        return (yield)
    finally:
        config._BACKEND = "webnn"
        del sys.modules[known], sys.modules[f"{known}.trainer"]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    from keras.src import backend

    for item in items:
        if "multi_device" in item.keywords:
            item.add_marker(pytest.mark.skip(reason="one device"))
        if "requires_trainable_backend" in item.keywords and backend.backend() == "numpy":
            item.add_marker(pytest.mark.skip(reason="the backend has no gradients"))


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    name = report.nodeid.split("::", 1)[1]
    if report.when == "call" or report.outcome != "passed":
        _outcomes[name] = report.outcome if _outcomes.get(name) != "failed" else "failed"

    if len(_outcomes) % _OFTEN == 0:
        _write()


def pytest_sessionfinish() -> None:
    _write()


def _write() -> None:
    Path(os.environ["KERAS_OUTCOMES"]).write_text(json.dumps(_outcomes, indent=0, sort_keys=True))
