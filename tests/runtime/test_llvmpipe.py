"""llvmpipe gets threads to spare where the program allows that, loads it here and nobody has said how many it is to have."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from webnn_wgpu.runtime.device import Device
from webnn_wgpu.runtime.llvmpipe import SPARE_THREADS, THREADS, processors

PROGRAM = f"""
import os, pathlib, time

def named():
    names = [path.read_text() for path in pathlib.Path("/proc/self/task").glob("*/comm")]
    return sum(name.startswith("llvmpipe-") for name in names)

def count():
    # A thread takes its name once it runs, which a busy machine delays: the count must stay the same for half a second.
    last, since = named(), time.monotonic()
    while time.monotonic() - since < 0.5:
        time.sleep(0.02)
        if (now := named()) != last:
            last, since = now, time.monotonic()
    return last

def open_another():
    import wgpu
    adapters = wgpu.gpu.enumerate_adapters_sync()
    return next(a for a in adapters if a.info["backend_type"] == "Vulkan").request_device_sync()

{{before}}
import webnn_wgpu as wn
{{allow}}
wn.ml.create_context()
wn.ml.create_context()
print(count(), os.environ.get("{THREADS}"))
"""


def found(before: str = "", allow: str = "wn.optimize_process()", **variables: str) -> list[str]:
    """Return how many threads llvmpipe has for drawing, as many as for computing, and what is left of the variable."""
    environment = {name: value for name, value in os.environ.items() if name != THREADS} | variables
    program = [sys.executable, "-W", "ignore", "-c", PROGRAM.format(before=before, allow=allow)]
    return subprocess.run(program, capture_output=True, text=True, check=True, env=environment).stdout.split()


@pytest.fixture(autouse=True)
def _llvmpipe(device: Device) -> None:
    if not sys.platform.startswith("linux") or not device.caps.device.startswith("llvmpipe"):
        pytest.skip(f"{device.caps.device} is not llvmpipe on Linux, whose threads these tests count")


@pytest.mark.skipif(processors() == 1, reason="on a single processor llvmpipe has no threads of its own")
def test_two_more_than_processors() -> None:
    assert found() == [str(processors() + SPARE_THREADS), "None"]


@pytest.mark.skipif(processors() == 1, reason="on a single processor llvmpipe has no threads of its own")
def test_without_leave_as_many_as_processors() -> None:
    assert found(allow="wn.optimize_process(driver_threads=False)") == [str(processors()), "None"]


def test_what_the_user_has_set_stays() -> None:
    assert found(**{THREADS: "3"}) == ["3", "3"]


@pytest.mark.skipif(processors() == 1, reason="there is one anyway")
def test_a_process_on_one_processor_gets_none() -> None:
    assert found("os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})") == ["0", "None"]


def test_what_is_loaded_before_stays_as_it_is() -> None:
    before, after, left = found("device = open_another(); print(count())")
    assert (after, left) == (before, "None")
