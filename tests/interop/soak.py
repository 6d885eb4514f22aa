"""Many runs of many small graphs from several threads, with everything created and destroyed on the way.

Run as `python -m tests.interop.soak --runs 100000`, which prints how memory and wgpu's objects went along.
"""

from __future__ import annotations

import argparse
import gc
import random
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

import webnn_wgpu as wn
from tests.runtime.counting import count_objects, resident_bytes
from tests.support import open_profile

from .programs import WEIGHTS, X, buffer, content, expected, network

LIFE = 40
"""Runs after which a thread's graphs and tensors are destroyed and made anew."""


def _activation(context: wn.MLContext) -> wn.MLGraph:
    builder = context.create_graph_builder()
    x = builder.input("x", [4, 8], "float32")
    return builder.build({"y": builder.tanh(builder.add(x, x))})


def _reduction(context: wn.MLContext) -> wn.MLGraph:
    builder = context.create_graph_builder()
    x = builder.input("x", [4, 8], "float32")
    total = builder.reduce_sum(builder.matmul(x, builder.constant(WEIGHTS)), axes=[1], keep_dimensions=True)
    return builder.build({"y": builder.mul(x, total)})


GRAPHS: tuple[tuple[Callable[[wn.MLContext], wn.MLGraph], Callable[[Any], Any]], ...] = (
    (network, expected),
    (_activation, lambda x: np.tanh(2 * x)),
    (_reduction, lambda x: x * (np.float64(x) @ WEIGHTS).sum(axis=1, keepdims=True)),
)


class Life:
    """The objects of one thread, from their making to their destruction."""

    def __init__(self, context: wn.MLContext, rng: random.Random) -> None:
        self.context, self.rng, self.gpu = context, rng, context.device
        make, self.wanted = rng.choice(GRAPHS)
        self.graph = make(context)
        self.source, self.target = buffer(self.gpu), buffer(self.gpu)
        self.x = context.wrap_buffer(self.source, [4, 8], "float32")
        self.y = rng.choice(
            (
                lambda: context.wrap_buffer(self.target, [4, 8], "float32"),
                lambda: context.create_host_tensor([4, 8], "float32"),
            )
        )()

    def run(self) -> None:
        """Run the graph once, in one of the ways there are, and check the result."""
        x = X * np.float32(self.rng.uniform(-1, 1))
        way = self.rng.randrange(5)
        if way == 0:
            got = self.context.compute(self.graph, {"x": x})["y"]
        else:
            self.context.write_tensor(self.x, x)
            ends: Any = ({"x": self.x}, {"y": self.y})
            if way == 1:
                self.context.dispatch(self.graph, *ends)
            elif way == 2:
                for _ in self.context.dispatch_steps(self.graph, *ends):
                    pass
            else:
                encoder = self.gpu.create_command_encoder()
                if way == 3:
                    self.context.encode(self.graph, *ends, encoder)
                else:
                    compute_pass = encoder.begin_compute_pass()
                    self.context.encode(self.graph, *ends, compute_pass=compute_pass)
                    compute_pass.end()
                self.gpu.queue.submit([encoder.finish()])
            got = self.context.read_tensor(self.y)
        np.testing.assert_allclose(got, self.wanted(x), rtol=1e-4, atol=1e-5)

    def end(self) -> None:
        """Destroy everything, or leave some of it to the garbage collector."""
        assert content(self.gpu, self.source).shape == (32,)
        for thing in (self.graph, self.x, self.y):
            if self.rng.random() < 0.7:
                thing.destroy()


def soak(runs: int, threads: int, report: Callable[[str], None] = print) -> Iterator[tuple[int, dict[str, int]]]:
    """Run and check; yield resident bytes and wgpu's live objects after each tenth of the runs."""
    context = wn.ml.create_context(open_profile("default-limits").gpu)
    failures: list[BaseException] = []
    began = time.monotonic()
    for tenth in range(10):

        def work(seed: int) -> None:
            rng = random.Random(seed)
            done = 0
            try:
                while done < runs // (10 * threads):
                    life = Life(context, rng)
                    for _ in range(min(LIFE, runs // (10 * threads) - done)):
                        life.run()
                        done += 1
                    life.end()
            except BaseException as error:
                failures.append(error)

        workers = [threading.Thread(target=work, args=(tenth * threads + i,)) for i in range(threads)]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
        if failures:
            raise failures[0]
        gc.collect()
        objects = {name: n for name, n in count_objects().items() if n}
        report(f"{(tenth + 1) * 10:3}%  {resident_bytes() / 1e6:7.1f} MB  {time.monotonic() - began:6.1f} s  {objects}")
        yield resident_bytes(), objects
    context.destroy()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=100_000)
    parser.add_argument("--threads", type=int, default=4)
    given = parser.parse_args()
    for _ in soak(given.runs, given.threads):
        pass
