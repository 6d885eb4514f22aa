"""Programs that try to end the process: each runs in a process of its own and must come to its end."""

from __future__ import annotations

import subprocess
import sys
import textwrap
from typing import TYPE_CHECKING

import pytest

from tests.support import with_repository

if TYPE_CHECKING:
    from pathlib import Path

    from tests.programs import Programs

PRELUDE = """
import gc, threading, time
import numpy as np
import webnn_wgpu as wn
from tests.runtime.graphs import ROWS, network, outputs, source
from webnn_wgpu.runtime.adapters import adapters
def open_context():
    return wn.ml.create_context(adapters()[0].request_device_sync())
def tries(call):
    try:
        return call()
    except (wn.WebNNError, AssertionError):
        return None
def together(*works):
    threads = [threading.Thread(target=w) for w in works]
    [t.start() for t in threads]
    [t.join() for t in threads]
"""

PROGRAMS = {
    "tensors destroyed by one thread and used by another": """
        c = open_context(); g = network(c)
        for i in range(30):
            x, y = source(c), outputs(c)
            together(lambda: [tries(lambda: c.dispatch(g, {"x": x}, y)) for _ in range(5)],
                     lambda: [t.destroy() for t in (*y.values(), x)],
                     lambda: [tries(lambda: c.read_tensor(y["columns"])) for _ in range(3)])
    """,
    "a graph destroyed while others run it": """
        c = open_context()
        for i in range(15):
            g = network(c)
            together(*[lambda: [tries(lambda: c.compute(g, {"x": ROWS})) for _ in range(5)]] * 3, g.destroy)
    """,
    "a context destroyed while promises are pending": """
        for i in range(10):
            c = open_context(); g = network(c); x = source(c); y = outputs(c)
            c.dispatch(g, {"x": x}, y)
            p = [c.compute_async(g, {"x": ROWS}), c.read_tensor_async(y["columns"])]
            together(c.destroy, *[lambda q=q: tries(q.result) for q in p])
    """,
    "a device destroyed by its owner while promises are pending": """
        for i in range(10):
            c = open_context(); g = network(c); x = source(c); y = outputs(c)
            p = [c.compute_async(g, {"x": ROWS}), c.read_tensor_async(y["columns"])]
            c.device.destroy()
            [tries(q.result) for q in p]
            tries(lambda: c.compute(g, {"x": ROWS})); tries(lambda: c.dispatch(g, {"x": x}, y)); tries(lambda: network(c))
            g.destroy(); c.destroy()
    """,
    "two contexts on one device from two threads": """
        gpu = adapters()[0].request_device_sync()
        a, b = wn.ml.create_context(gpu), wn.ml.create_context(gpu)
        f, g = network(a), network(b)
        together(*[lambda c=c, h=h: [c.compute(h, {"x": ROWS}) for _ in range(30)] for c, h in ((a, f), (b, g)) for _ in "12"])
        a.destroy(); b.compute(g, {"x": ROWS})
    """,
    "builds in the background while graphs run": """
        c = open_context(); g = network(c)
        def build(i):
            b = wn.MLGraphBuilder(c); x = b.input("x", {"dataType": "float32", "shape": [3]})
            return b.build_async({"y": b.linear(b.tanh(x), alpha=float(i))})
        promises = [build(i) for i in range(8)]
        for _ in range(20): c.compute(g, {"x": ROWS})
        assert all(c.compute(p.result(), {"x": [1, 2, 3]})["y"].shape == (3,) for p in promises)
    """,
    "everything dropped in the middle": """
        for i in range(10):
            c = open_context(); g = network(c); x = source(c); y = outputs(c)
            c.compute_async(g, {"x": ROWS}); c.dispatch(g, {"x": x}, y); c.read_tensor_async(y["columns"])
            del c, g, x, y
        gc.collect()
    """,
    "the program ends with work under way": """
        c = open_context(); g = network(c)
        p = c.compute_async(g, {"x": ROWS}); q = wn.ml.create_context_async(accelerated=False)
    """,
    "buffers destroyed through wgpu": """
        c = open_context(); g = network(c); x = source(c); y = outputs(c)
        c.dispatch(g, {"x": x}, y)
        for t in (x, *y.values()): t.buffer.destroy(); t.buffer.destroy()
        for call in (lambda: c.dispatch(g, {"x": x}, y), lambda: c.read_tensor(y["columns"]), lambda: c.write_tensor(x, ROWS)):
            try: call()
            except wn.InvalidStateError: pass
            else: raise SystemExit("not noticed")
        c.compute(g, {"x": ROWS})
    """,
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_the_process_survives(name: str, programs: Programs) -> None:
    done = programs.run(["-c", PRELUDE + textwrap.dedent(PROGRAMS[name]) + "\nprint('survived')"])
    assert done.returncode == 0, done.stderr[-3000:]
    assert done.stdout.strip() == "survived"


def test_no_thread_polls_a_device_when_the_interpreter_ends(repository: Path) -> None:
    program = """
    import atexit, threading
    def left():  # registered first, hence called last
        print([type(t).__name__ for t in threading.enumerate() if t is not threading.main_thread()])
    atexit.register(left)
    import numpy as np, webnn_wgpu as wn
    context = wn.ml.create_context()
    builder = wn.MLGraphBuilder(context)
    graph = builder.build({"y": builder.relu(builder.input("x", [2], "float32"))})
    context.compute(graph, {"x": np.float32([1, -1])})
    print([type(t).__name__ for t in threading.enumerate() if t is not threading.main_thread()])
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program)],
        cwd=repository,
        env=with_repository(repository),
        capture_output=True,
        text=True,
        timeout=240,
        check=True,
    )
    assert done.stdout.splitlines() == ["['PollThread']", "[]"]
