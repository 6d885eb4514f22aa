"""Many random graphs in one go: `python -m tests.random_graphs.campaign --graphs 10000 --seed 1`.

Graph i of a seed is the same on every machine: `--first i --graphs 1` runs it alone, on the profile it had.
"""

from __future__ import annotations

import argparse
import faulthandler
import gc
import statistics
import sys
import time
import warnings
from collections import Counter
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import TYPE_CHECKING

from tests.random_graphs.check import MismatchError, Tally, check_graph
from tests.random_graphs.graphs import DRAWERS, seeded_graph
from tests.random_graphs.shrink import shrink
from tests.random_graphs.source import Seeded
from tests.runtime.counting import count_objects, resident_bytes
from tests.spoiling import spoil_workgroup_memory
from tests.support import PROFILES, open_profile
from webnn_wgpu.core.errors import OutOfMemoryError
from webnn_wgpu.costs import Target
from webnn_wgpu.ir.text import to_text
from webnn_wgpu.plan.forced import forceable
from webnn_wgpu.runtime.buffer import Buffer
from webnn_wgpu.runtime.pipelines import PipelineCache
from webnn_wgpu.runtime.program import Program

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from webnn_wgpu.ir.graph import Array, Graph
    from webnn_wgpu.runtime.device import Device

KERNELS = 2000
"""Compiled kernels after which all are forgotten: on a software driver one takes up about a megabyte."""

FUSED_ONE_IN = 4
"""How many graphs there are to one in which passes may fuse: each of those has shaders that no other graph has."""

FORCED_ONE_IN = 6
"""How many graphs there are to one in which an operator has to take a variant that may not be what would be chosen."""

HANG_SECONDS = 300
REPLAYED = 60
"""Graphs that are run again at the end, when all their kernels are compiled, to see whether runs take up memory."""

LIMIT_BYTES = 5_000_000


@dataclass(frozen=True)
class Failure:
    """A graph that failed, and the smallest found that fails too."""

    index: int
    profile: str
    message: str
    smallest: str

    def __str__(self) -> str:
        return f"graph {self.index} on {self.profile}: {self.message}\n{self.smallest}"


@dataclass
class Report:
    """What a campaign found.

    Attributes:
        seed: of its graphs.
        sizes: operators of each graph that ran on a device.
        profiles: graphs by profile.
        tally: what was compared.
        failures: the graphs that failed.
        refused: graphs that need more than a device can bind.
        seconds: how long it took.
        left: objects that were not freed: kind -> how many.
        resident: size of the process whenever the compiled kernels were freed, in bytes.
        grown: bytes by which the process grew while graphs were run again.
    """

    seed: int
    sizes: list[int] = field(default_factory=list[int])
    profiles: Counter[str] = field(default_factory=Counter[str])
    tally: Tally = field(default_factory=Tally)
    failures: list[Failure] = field(default_factory=list[Failure])
    refused: int = 0
    seconds: float = 0.0
    left: dict[str, int] = field(default_factory=dict[str, int])
    resident: list[int] = field(default_factory=list[int])
    grown: int = 0

    def __str__(self) -> str:
        count = max(1, len(self.sizes))
        nodes = self.tally.nodes
        least = min(DRAWERS, key=lambda name: nodes[name])
        each = ", ".join(f"{name} {nodes[name]}" for name in sorted(DRAWERS))
        unjudged = ", ".join(f"{name} {n}" for name, n in self.tally.unjudged.most_common() if n) or "none"
        return "\n".join(
            (
                f"seed {self.seed}: {len(self.sizes)} graphs, {count / max(self.seconds, 1e-9):.2f} a second",
                f"profiles: {', '.join(f'{name} {n}' for name, n in self.profiles.items())}",
                f"operators of a graph: median {statistics.median(self.sizes or [0])}, most {max(self.sizes or [0])}",
                f"operators: {nodes.total()}, each at least {nodes[least]} times ({least})",
                f"  {each}",
                f"beyond any promise of accuracy, hence not compared: {unjudged}",
                f"failures: {len(self.failures)}; refused: {self.refused}",
                f"objects left: {self.left or 'none'}; grown while {REPLAYED} graphs ran again: {self.grown} bytes",
                f"process whenever kernels were freed, MiB: {', '.join(str(n >> 20) for n in self.resident) or '-'}",
            )
        )

    @property
    def clean(self) -> bool:
        """Whether there was neither a failure nor a leak."""
        return not self.failures and not self.left and self.grown < LIMIT_BYTES


@dataclass(frozen=True)
class Pretence:
    """What devices are taken for, so that other kernels are chosen than those for software adapters with much memory.

    Attributes:
        hardware: whether for hardware.
        binding_bytes: how much they can bind; 0 for what they really can. Graphs that need more are refused.
    """

    hardware: bool = False
    binding_bytes: int = 0

    def target(self, device: Device) -> Target:
        """Return the target to plan for."""
        target = Target.of(device.caps, "hardware") if self.hardware else device.target
        if not self.binding_bytes:
            return target
        limits = (*device.caps.limits, ("max-storage-buffer-binding-size", self.binding_bytes))
        return replace(target, caps=replace(device.caps, limits=limits))


def run_campaign(
    seed: int,
    first: int,
    count: int,
    profiles: Sequence[str] = tuple(PROFILES),
    pretence: Pretence = Pretence(),
    show: int = 0,
) -> Report:
    """Run graphs of a seed, each on one of the profiles in turn.

    Args:
        seed: of the graphs.
        first: number of the first graph.
        count: how many.
        profiles: names of the profiles.
        pretence: what the devices are taken for.
        show: after how many graphs to print where it is; 0 prints nothing.
    """
    report, start = Report(seed), time.perf_counter()
    for profile in profiles:
        device = open_profile(profile)
        device.check()  # with a buffer that stays, and
        spoil_workgroup_memory(device)  # by a kernel that stays: they are none of the graphs'
    _forget_kernels(profiles)
    before = _objects()
    for index in range(first, first + count):
        faulthandler.dump_traceback_later(HANG_SECONDS, exit=True)
        profile = profiles[index % len(profiles)]
        nodes = report.tally.nodes.total()
        failure = _run(seed, index, profile, pretence, report)
        report.sizes.append(report.tally.nodes.total() - nodes)
        report.profiles[profile] += 1
        if failure is not None:
            report.failures.append(failure)
            print(failure, flush=True)
        done = index + 1 - first
        if _forget_kernels(profiles, KERNELS):
            report.resident.append(resident_bytes())
        if show and done % show == 0:
            print(f"{done} graphs, {done / (time.perf_counter() - start):.2f} a second", flush=True)
    faulthandler.cancel_dump_traceback_later()
    report.seconds = time.perf_counter() - start
    _forget_kernels(profiles)
    after = _objects()
    report.left = {name: n - before.get(name, 0) for name, n in after.items() if n > before.get(name, 0)}
    report.grown = _growth(seed, range(max(first, first + count - REPLAYED), first + count), profiles, pretence)
    return report


def case(seed: int, index: int) -> tuple[Graph, dict[str, Array], dict[str, str]]:
    """Return a graph of a seed, what to feed it, and the kernel variants to force."""
    graph, feeds = seeded_graph(f"{seed}:{index}", fused=index // len(PROFILES) % FUSED_ONE_IN == 0)
    source = Seeded(f"{seed}:{index}:forced")
    names = [node.op for node in graph.nodes if node.op in forceable()]
    if not names or not source.chance(FORCED_ONE_IN):
        return graph, feeds, {}
    name = source.choice(names)
    return graph, feeds, {name: source.choice(forceable()[name])}


def _run(seed: int, index: int, profile: str, pretence: Pretence, report: Report) -> Failure | None:
    device = open_profile(profile)
    graph: Graph | None = None
    feeds: dict[str, Array] = {}
    forced: dict[str, str] = {}
    try:
        graph, feeds, forced = case(seed, index)
        check_graph(device, graph, feeds, report.tally, forced, pretence.target(device))
    # Whatever it is, the campaign goes on and reports it.
    except Exception as error:
        if pretence.binding_bytes and isinstance(error, OutOfMemoryError):
            report.refused += 1
            return None
        message = f"{type(error).__name__}: {error} (forced: {forced})"
        text = smallest(device, graph, feeds, forced, pretence, type(error)) if graph else "not drawn"
        return Failure(index, profile, message, text)
    return None


def smallest(
    device: Device,
    graph: Graph,
    feeds: Mapping[str, Array],
    forced: Mapping[str, str] | None = None,
    pretence: Pretence = Pretence(),
    error: type[Exception] = MismatchError,
) -> str:
    """Return the text of the smallest graph found that fails with the same exception, and how that fails."""
    message = ""

    def fails(candidate: Graph, given: Mapping[str, Array]) -> bool:
        nonlocal message
        try:
            check_graph(device, candidate, given, forced=forced, target=pretence.target(device))
        except error as found:
            message = str(found)
            return True
        return False

    smaller, given = shrink(graph, feeds, fails)
    fed = "\n".join(f"  {name} = {array.reshape(-1)[:64].tolist()}" for name, array in given.items())
    return f"{to_text(smaller, '  ')}\n{fed}\n  {message}"


def _objects() -> dict[str, int]:
    """Count native objects, and the runtime's own."""
    gc.collect()
    alive = Counter(type(o).__name__ for o in gc.get_objects() if isinstance(o, Program | Buffer))
    return count_objects() | {f"python {name}": n for name, n in alive.items()}


def _forget_kernels(profiles: Sequence[str], limit: int = 0) -> bool:
    """Free the compiled kernels of all devices if there are more than so many; return whether it was done."""
    devices = [open_profile(name) for name in profiles]
    if sum(len(PipelineCache.of(device)) for device in devices) <= limit:
        return False
    for device in devices:
        device.shared.pop("pipelines")
    gc.collect()
    return True


def _growth(seed: int, indices: range, profiles: Sequence[str], pretence: Pretence) -> int:
    def replay() -> int:
        for index in indices:
            _run(seed, index, profiles[index % len(profiles)], pretence, Report(seed))
        gc.collect()
        return resident_bytes()

    # What leaks does so every time; an allocator may take more memory once.
    readings = [replay() for _ in range(4)][1:]
    return min(after - before for before, after in pairwise(readings))


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a campaign and print its report; return 1 if anything failed."""
    parser = argparse.ArgumentParser(description="Runs random graphs on the device and compares them with the reference.")
    parser.add_argument("--graphs", type=int, default=10_000, help="how many")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--first", type=int, default=0, help="number of the first graph")
    parser.add_argument("--profile", choices=("all", *PROFILES), default="all")
    parser.add_argument("--hardware", action="store_true", help="choose kernels as for hardware")
    parser.add_argument("--binding-bytes", type=int, default=0, help="bind no more of a tensor, as if the device could not")
    options = parser.parse_args(arguments)
    faulthandler.enable()
    warnings.simplefilter("ignore", RuntimeWarning)
    profiles = tuple(PROFILES) if options.profile == "all" else (options.profile,)
    pretence = Pretence(options.hardware, options.binding_bytes)
    report = run_campaign(options.seed, options.first, options.graphs, profiles, pretence, show=100)
    print(report)
    return 0 if report.clean else 1


if __name__ == "__main__":
    sys.exit(main())
