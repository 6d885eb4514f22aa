"""Kernels that the driver compiles ahead of their first run, on devices of their own where that pays."""

from __future__ import annotations

import gc
import logging
import threading
from collections import Counter
from concurrent.futures import Future, wait
from dataclasses import replace

import numpy as np
import pytest
import wgpu

import webnn_wgpu as wn
from tests.runtime.counting import count_objects
from tests.support import software_adapter
from webnn_wgpu.core import cache
from webnn_wgpu.costs import hardware, software
from webnn_wgpu.kernels.spec import KernelSpec
from webnn_wgpu.runtime import warming
from webnn_wgpu.runtime.device import Device
from webnn_wgpu.runtime.pipelines import PipelineCache
from webnn_wgpu.runtime.program_memory import ProgramMemory


@pytest.fixture
def many_cores(monkeypatch, tmp_path):
    monkeypatch.setattr(cache, "cache_folder", lambda: tmp_path)
    monkeypatch.delenv("WEBNN_WGPU_CACHE", raising=False)
    monkeypatch.setattr(warming, "processors", lambda: 3)
    monkeypatch.delenv("MESA_SHADER_CACHE_DISABLE", raising=False)
    monkeypatch.delenv("MESA_GLSL_CACHE_DISABLE", raising=False)


def graph(context, size):
    """A graph of five kernels; `context` must not know them yet."""
    builder = wn.MLGraphBuilder(context)
    x = builder.input("x", {"dataType": "float32", "shape": [size, 6]})
    weights = builder.constant(np.linspace(-1, 1, 36, dtype=np.float32).reshape(6, 6))
    outputs = {
        "product": builder.matmul(x, weights),
        "sum": builder.reduce_sum(x, axes=[1]),
        "likely": builder.softmax(x, 1),
        "first": builder.arg_max(x, 1),
        "running": builder.cumulative_sum(x, 0),
        "turned": builder.transpose(x),
    }
    return builder.build(outputs)


def results(context, size=5):
    x = np.random.default_rng(3).standard_normal((size, 6)).astype(np.float32)
    return context.compute(graph(context, size), {"x": x})


def fresh_context():
    """A context on a device that no other test has compiled anything for."""
    adapter = software_adapter()
    return wn.ml.create_context(adapter.request_device_sync(required_features=sorted(adapter.features & {"subgroup"})))


@pytest.mark.usefixtures("many_cores")
def test_lanes_compile_every_kernel_once_and_change_no_result(monkeypatch):
    compiled: Counter[str] = Counter()
    start = warming._Lanes.start

    def counted(self, spec, uses, length):
        compiled[str(spec)] += 1
        return start(self, spec, uses, length)

    monkeypatch.setattr(warming._Lanes, "start", counted)
    context = fresh_context()
    found = results(context)
    assert len(compiled) >= warming._FEWEST_KERNELS
    assert set(compiled.values()) == {1}
    before = compiled.total()
    results(context)
    assert compiled.total() == before
    monkeypatch.setenv("MESA_SHADER_CACHE_DISABLE", "true")
    expected = results(fresh_context())
    assert compiled.total() == before
    for name, array in expected.items():
        np.testing.assert_array_equal(found[name], array, err_msg=name)


@pytest.mark.usefixtures("many_cores")
def test_a_lane_begins_before_the_program_has_made_its_pipeline(monkeypatch):
    order: list[tuple[str, str]] = []
    start, compile_ = warming._Lanes.start, PipelineCache._compile

    def started(self, spec, uses, length):
        order.append(("lane", str(spec)))
        return start(self, spec, uses, length)

    def compiled(self, spec, source, **options):
        if self.device is context_device:
            order.append(("own", str(spec)))
        return compile_(self, spec, source, **options)

    context = fresh_context()
    context_device = Device.of(context.device)
    monkeypatch.setattr(warming._Lanes, "start", started)
    monkeypatch.setattr(PipelineCache, "_compile", compiled)
    results(context)
    assert len(order) >= 2 * warming._FEWEST_KERNELS
    lane, own = order[: len(order) // 2], order[len(order) // 2 :]
    assert {where for where, _ in lane} == {"lane"}
    assert {where for where, _ in own} == {"own"}
    assert {name for _, name in lane} == {name for _, name in own}


@pytest.mark.usefixtures("many_cores")
def test_without_a_second_device_kernels_are_compiled_at_home(monkeypatch, caplog):
    context = fresh_context()

    def refused(*_args, **_options):
        raise RuntimeError("no more devices")

    monkeypatch.setattr(wgpu.GPUAdapter, "request_device_sync", refused)
    with caplog.at_level(logging.INFO, "webnn_wgpu"):
        found = results(context)
    assert any("no more devices" in r.getMessage() for r in caplog.records)
    assert found["sum"].shape == (5,)


@pytest.mark.usefixtures("many_cores")
def test_lanes_go_when_a_graph_is_built(monkeypatch):
    opened: list[wgpu.GPUDevice] = []
    request = wgpu.GPUAdapter.request_device_sync

    def noted(self, **options):
        opened.append(request(self, **options))
        return opened[-1]

    context = fresh_context()
    monkeypatch.setattr(wgpu.GPUAdapter, "request_device_sync", noted)
    results(context)
    assert opened
    for lane in opened:
        with pytest.raises(wn.DeviceLostError):
            Device.of(lane)
    assert not Device.of(context.device).lost


@pytest.mark.usefixtures("many_cores")
def test_what_no_lane_has_begun_is_compiled_at_home_the_longest_first(monkeypatch):
    left: dict[KernelSpec, warming._Job] = {}
    lengths: list[int] = []
    dispatch = warming.WarmUp._dispatch_nothing

    def busy(self, spec, uses, length):
        left[spec] = warming._Job(spec, uses, length, Future())
        return left[spec]

    def noted(self, kernel, uses):
        lengths.append(left[kernel.spec].length)
        dispatch(self, kernel, uses)

    monkeypatch.setattr(warming._Lanes, "start", busy)
    monkeypatch.setattr(warming.WarmUp, "_dispatch_nothing", noted)
    found = results(fresh_context())
    assert len(left) >= warming._FEWEST_KERNELS
    assert len(lengths) == len(left)
    assert lengths == sorted(lengths, reverse=True)
    assert all(job.compiled.cancelled() for job in left.values())
    monkeypatch.setenv("MESA_SHADER_CACHE_DISABLE", "true")
    expected = results(fresh_context())
    for name, array in expected.items():
        np.testing.assert_array_equal(found[name], array, err_msg=name)


@pytest.mark.usefixtures("many_cores")
def test_pipelines_of_what_lanes_have_compiled_come_first_and_of_what_they_compile_last(monkeypatch):
    given: list[warming._Job] = []

    def one_done_and_one_begun(self, spec, uses, length):
        job = warming._Job(spec, uses, length, Future())
        if len(given) < 2:
            assert job.compiled.set_running_or_notify_cancel()
        if len(given) == 1:
            job.compiled.set_result(None)
        given.append(job)
        return job

    made: list[KernelSpec] = []
    order = warming.WarmUp.order

    def noted(self):
        for spec in order(self):
            made.append(spec)
            yield spec

    monkeypatch.setattr(warming._Lanes, "start", one_done_and_one_begun)
    monkeypatch.setattr(warming.WarmUp, "order", noted)
    results(fresh_context())
    begun, done, *waiting = given
    assert len(waiting) >= 2
    waiting.sort(key=lambda job: job.length, reverse=True)
    assert made == [job.spec for job in (done, *waiting, begun)]
    assert not begun.compiled.done()


@pytest.mark.usefixtures("many_cores")
@pytest.mark.parametrize(
    ("lanes", "few", "expected"),
    [
        ("done", True, ["pipelines", "lanes", "uploaded"]),
        ("busy", True, ["pipelines", "uploaded", "lanes"]),
        ("done", False, ["uploaded", "pipelines", "lanes"]),
        ("busy", False, ["uploaded", "pipelines", "lanes"]),
        ("none", True, ["pipelines", "uploaded"]),
        ("none", False, ["pipelines", "uploaded"]),
    ],
)
def test_weights_are_uploaded_while_kernels_are_compiled_but_few_when_lanes_have_given_memory_back(
    monkeypatch, lanes, few, expected
):
    order: list[str] = []
    begin, close = warming.WarmUp.order, warming._Lanes.close
    compile_on, upload = warming._compile_on, ProgramMemory.allocate
    begun, go_on = threading.Event(), threading.Event()

    def made(self):
        order.append("pipelines")
        if lanes == "busy":
            assert begun.wait(60)
        yield from begin(self)
        if lanes == "done":
            wait(job.compiled for job in self._jobs.values())
        assert self.lanes_are_busy == (lanes == "busy")

    def compiled(*arguments):
        begun.set()
        if lanes == "busy":
            assert go_on.wait(60)
        compile_on(*arguments)

    def closed(self):
        if "lanes" not in order:
            order.append("lanes")
        go_on.set()
        close(self)

    def uploaded(self, progress):
        order.append("uploaded")
        upload(self, progress)

    with monkeypatch.context() as patched:
        patched.setattr(warming.WarmUp, "order", made)
        patched.setattr(warming, "_compile_on", compiled)
        patched.setattr(warming._Lanes, "close", closed)
        patched.setattr(ProgramMemory, "allocate", uploaded)
        for kind in (hardware, software):
            soon = replace(kind._RUNTIME, soon_uploaded_bytes=1 << 20 if few else 0)
            patched.setattr(kind, "_RUNTIME", soon)
        if lanes == "none":
            patched.setenv("MESA_SHADER_CACHE_DISABLE", "true")
        found = results(fresh_context())
    assert order == expected
    monkeypatch.setenv("MESA_SHADER_CACHE_DISABLE", "true")
    for name, array in results(fresh_context()).items():
        np.testing.assert_array_equal(found[name], array, err_msg=name)


def test_a_lane_takes_the_longest_kernel_that_waits(monkeypatch, context):
    compiled = []
    begun, go_on = threading.Event(), threading.Event()

    def compile_(self, spec, uses):
        compiled.append(spec)
        begun.set()
        go_on.wait(60)

    monkeypatch.setattr(warming._Lanes, "_compile", compile_)
    monkeypatch.setattr(warming, "processors", lambda: 2)
    lanes = warming._Lanes(Device.of(context.device))
    lanes.start("first", (), 1)
    assert begun.wait(60)
    lengths = {"short": 2, "long": 5, "dropped": 4, "middle": 3}
    waiting = {name: lanes.start(name, (), length) for name, length in lengths.items()}
    assert waiting.pop("dropped").compiled.cancel()
    go_on.set()
    for job in waiting.values():
        job.compiled.result(60)
    lanes.close()
    assert compiled == ["first", "long", "middle", "short"]


def test_few_kernels_are_compiled_at_home(monkeypatch, many_cores):
    def refused(*_args):
        raise AssertionError("lanes for one kernel")

    monkeypatch.setattr(warming._Lanes, "__init__", refused)
    context = fresh_context()
    builder = wn.MLGraphBuilder(context)
    x = builder.input("x", {"dataType": "float32", "shape": [3]})
    assert context.compute(builder.build({"y": builder.relu(x)}), {"x": np.float32([-1, 0, 2])})["y"].tolist() == [0, 0, 2]


@pytest.mark.usefixtures("many_cores")
def test_what_the_driver_has_compiled_before_needs_no_lanes(monkeypatch, tmp_path):
    begun: list[str] = []
    start = warming._Lanes.start

    def noted(self, spec, uses, length):
        begun.append(str(spec))
        return start(self, spec, uses, length)

    monkeypatch.setattr(warming._Lanes, "start", noted)
    expected = results(fresh_context())
    assert begun
    assert len(list((tmp_path / "compiled").iterdir())) == 1
    begun.clear()
    found = results(fresh_context())  # as another process would, which knows no kernel either
    assert not begun
    for name, array in expected.items():
        np.testing.assert_array_equal(found[name], array, err_msg=name)
    results(fresh_context(), size=7)  # the same kernels for other sizes, which the driver may compile anew
    assert begun


@pytest.mark.usefixtures("many_cores")
def test_devices_of_lanes_are_freed_with_the_last_kernel(monkeypatch):
    """Not when garbage is next looked for: each holds megabytes of a software driver's."""
    opened: list[Device] = []
    open_ = warming._Lanes._open

    def noted(self):
        opened.append(open_(self))
        return opened[-1]

    monkeypatch.setattr(warming._Lanes, "_open", noted)
    context = fresh_context()
    gc.collect()
    before = count_objects()["Device"]
    results(context)
    assert opened
    assert count_objects()["Device"] == before
