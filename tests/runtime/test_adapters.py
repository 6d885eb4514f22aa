"""Where the program allows that, wgpu loads no OpenGL, whose adapters no kernel can run on."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = """
import wgpu
from wgpu.backends.wgpu_native import extras

def look():
    print(*sorted({{str(adapter.info["backend_type"]) for adapter in wgpu.gpu.enumerate_adapters_sync()}}))

{before}
import webnn_wgpu as wn
{allow}
wn.ml.create_context()
look()
print("libEGL" in {loaded})
"""

MAPS = Path("/proc/self/maps")


def run(before: str = "", allow: str = "wn.optimize_process()") -> list[str]:
    loaded = f"open('{MAPS}').read()" if MAPS.exists() else "''"
    program = PROGRAM.format(before=before, allow=allow, loaded=loaded)
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", program], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def test_contexts_do_not_load_opengl() -> None:
    backends, loaded = run()
    assert "OpenGL" not in backends
    # Some drivers of Vulkan load the library themselves.
    *_, alone = run("extras.set_instance_extras(backends=['Vulkan', 'Metal', 'DX12'])", "")
    assert loaded == alone


@pytest.mark.parametrize("allow", ["", "wn.optimize_process(without_opengl=False)"])
def test_without_leave_the_process_has_all_adapters(allow: str) -> None:
    before, *_ = run("look()", allow)
    after, _ = run("", allow)
    assert after == before


@pytest.mark.parametrize("backends", [["All"], ["Vulkan", "Metal", "DX12"]])
def test_what_a_process_has_found_before_it_finds_afterwards(backends: list[str]) -> None:
    before, after, _ = run(f"extras.set_instance_extras(backends={backends}); look()")
    assert after == before
