"""What every test may use: a context on this machine's adapter, hypothesis without chance."""

from __future__ import annotations

import gc
import os
import tempfile
import warnings
from pathlib import Path
from typing import TYPE_CHECKING

import hypothesis
import pytest

from tests import optional
from tests.programs import Programs
from tests.rotation import SHARES, profile_of, runs, share_of
from tests.spoiling import spoiled_runs
from tests.support import PROFILES, lacks_variant, open_profile
from webnn_wgpu.core import cache

if TYPE_CHECKING:
    from collections.abc import Iterator

    import webnn_wgpu as wn
    from webnn_wgpu.runtime.device import Device

REPOSITORY = Path(__file__).resolve().parents[1]

# Before anything loads Mesa, which warns on every start when it has no such directory.
os.environ.setdefault("XDG_RUNTIME_DIR", tempfile.gettempdir())

# Derandomized: a test that fails fails again, on any machine. No deadline: the first run of a kernel compiles it.
hypothesis.settings.register_profile(
    "webnn_wgpu",
    derandomize=True,
    max_examples=40,
    deadline=None,
    database=None,
    suppress_health_check=[hypothesis.HealthCheck.too_slow],
)
hypothesis.settings.load_profile("webnn_wgpu")


@pytest.fixture(scope="session", autouse=True)
def _caches_of_its_own(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Caches that begin empty: what a user of this machine has tuned or compiled must not decide what tests see."""
    folder = tmp_path_factory.mktemp("caches")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cache, "cache_folder", lambda: folder)
        yield


@pytest.fixture(scope="module", autouse=True)
def _spoiled_workgroup_memory(request: pytest.FixtureRequest) -> Iterator[None]:
    """Kernels find in workgroup memory what others left there, wherever it is tested what they compute."""
    if request.path.parent.name in ("conformance", "kernels", "ops", "random_graphs"):
        with spoiled_runs():
            yield
    else:
        yield


@pytest.fixture(scope="session")
def repository() -> Path:
    return REPOSITORY


@pytest.fixture(scope="session")
def programs() -> Iterator[Programs]:
    found = Programs()
    yield found
    found.close()


class Everywhere:
    """What doctests of the package need too: a conftest's own fixtures and hooks reach only the folder it lies in."""

    def pytest_itemcollected(self, item: pytest.Item) -> None:
        """Give doctests their names. An automatic fixture would take a part of the time of every test."""
        if isinstance(item, pytest.DoctestItem):
            item.fixturenames.append("_doctest_names")

    @pytest.fixture(scope="session")
    @classmethod
    def context(cls) -> Iterator[wn.MLContext]:
        """A context on the default adapter. Where there is none `create_context` raises, and the tests fail, not skip."""
        import webnn_wgpu as wn

        # That there is no hardware here is what the tests are made for.
        with warnings.catch_warnings(action="ignore", category=RuntimeWarning):
            context = wn.ml.create_context()
        with context:
            yield context

    @pytest.fixture
    def _doctest_names(self, request: pytest.FixtureRequest) -> None:
        """The names that examples may use, and a folder of their own, so that they can write files."""
        request.getfixturevalue("monkeypatch").chdir(request.getfixturevalue("tmp_path"))
        import numpy as np

        import webnn_wgpu as wn

        context = request.getfixturevalue("context")
        b = wn.MLGraphBuilder(context)

        def floats(name: str, *shape: int) -> wn.MLOperand:
            return b.input(name, {"dataType": "float32", "shape": shape})

        if "onnx" in request.node.name or "ImportedModel" in request.node.name:
            from examples.models import gpt, mlp

            request.getfixturevalue("doctest_namespace")["mlp"] = mlp()
            if "State" in request.node.name:
                request.getfixturevalue("doctest_namespace")["gpt"] = wn.load_onnx(gpt(), context, kv_cache=32)
        if "tflite" in request.node.name:
            from examples.models import tflite_classifier

            request.getfixturevalue("doctest_namespace")["colors"] = tflite_classifier()
        operands = {"x": floats("x", 2, 3), "y": floats("y", 2, 3), "image": floats("image", 1, 2, 4, 4)}
        request.getfixturevalue("doctest_namespace").update(np=np, wn=wn, context=context, b=b, **operands)


def pytest_configure(config: pytest.Config) -> None:
    config.pluginmanager.register(Everywhere(), "webnn_wgpu-everywhere")


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Iterator[None]:
    """Keep the collected tests from the garbage collector: they stay to the end, and tests call it hundreds of times."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()
        gc.collect()
        gc.freeze()
        # With the default of 700 new objects the collector takes a fiftieth of the time of all tests.
        gc.set_threshold(5000)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call() -> Iterator[None]:
    """Skip a test of a variant that the adapter's subgroups are too large for. A test of several variants leaves it out."""
    try:
        return (yield)
    except Exception as error:
        if not lacks_variant(error):
            raise
        pytest.skip(f"the variant needs subgroups of few invocations, as software adapters have them: {error}")


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    if line := optional.absent():
        terminalreporter.write_line(line, yellow=True)


# tests without a device -----------------------------------------------------------------------------------------------


DEVICE_FIXTURES = {"context", "device", "profile_device"}
"""A test that uses one of these needs a device; others that do are marked. A parameter of such a name is a recorded device."""


@pytest.hookimpl(tryfirst=True)
def pytest_itemcollected(item: pytest.Item) -> None:
    parameters = set(item.callspec.params) if hasattr(item, "callspec") else set[str]()
    fixtures = set(getattr(item, "fixturenames", ())) - (parameters - {"profile_device"})
    if isinstance(item, pytest.DoctestItem) or DEVICE_FIXTURES & fixtures:
        item.add_marker("device")


@pytest.fixture(scope="session", autouse=True)
def _no_device(request: pytest.FixtureRequest) -> Iterator[None]:
    """With --no-device a test that opens a device nevertheless fails, where there is one too."""
    if not request.config.getoption("--no-device"):
        yield
        return
    import wgpu

    def refuse() -> None:
        pytest.fail("the test opens a device: mark it with pytest.mark.device")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(wgpu.gpu, "enumerate_adapters_sync", refuse)
        yield


# device profiles ------------------------------------------------------------------------------------------------------


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--no-device", action="store_true", help="run the tests that need no WebGPU device, and no other")
    group = parser.getgroup("device profiles")
    group.addoption(
        "--profiles",
        choices=("all", "rotate", "full"),
        default="all",
        help="run tests that are repeated for device profiles, modes and sizes for all of them (default), for the full profile "
        f"alone, or for the full one and of the others a share of 1 in {SHARES} that the commit picks",
    )
    group.addoption(
        "--profile-share",
        type=int,
        choices=range(1, SHARES + 1),
        help="the share that --profiles=rotate runs, instead of the commit's",
    )


def pytest_report_header(config: pytest.Config) -> str:
    return f"device profiles: {share_of(config)[1]}"


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    no_device = config.getoption("--no-device")

    def is_kept(item: pytest.Item) -> bool:
        if no_device and item.get_closest_marker("device"):
            return False
        profile = profile_of(item.callspec.params.values()) if hasattr(item, "callspec") else None
        repeats = item.get_closest_marker("repeats") is not None
        return runs(config, item.nodeid, profile, repeats=repeats)

    kept: list[pytest.Item] = []
    left_out: list[pytest.Item] = []
    for item in items:
        (kept if is_kept(item) else left_out).append(item)
    config.hook.pytest_deselected(items=left_out)
    items[:] = kept


@pytest.fixture(scope="session")
def device() -> Device:
    """The device of the default adapter, with everything it offers."""
    return open_profile("full")


@pytest.fixture(scope="session", params=list(PROFILES))
def profile_device(request: pytest.FixtureRequest) -> Device:
    """The default adapter under each device profile in turn."""
    return open_profile(request.param)
