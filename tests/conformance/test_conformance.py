"""The conformance cases, on a device and on the reference, each in every way in which a graph can hold its constants.

Every device computes with every data type, so no case is left out; a device with WebGPU's default limits and no features runs
them all too.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import pytest

import webnn_wgpu as wn
from tests.conformance import sources
from tests.rotation import part_of, profile_of, runs
from tests.support import profile_context
from webnn_wgpu.testing import build_case

if TYPE_CHECKING:
    from collections.abc import Iterator

    from _pytest.mark.structures import ParameterSet

    from webnn_wgpu.testing import Case


@dataclass(frozen=True)
class Mode:
    """A way to run a case."""

    name: str
    backend: str = "device"
    disabled_passes: tuple[str, ...] = ()
    constants_as_inputs: bool = False

    @property
    def profile(self) -> str:
        """The device profile, or "reference"."""
        return {"device": "full"}.get(self.backend, self.backend)


MODES = (
    Mode("as written"),
    Mode("unfolded", disabled_passes=("fold_constants",)),
    Mode("constants as inputs", constants_as_inputs=True),
    Mode("default limits", backend="default-limits"),
    Mode("default limits, unfolded", backend="default-limits", disabled_passes=("fold_constants",)),
    Mode("hardware", backend="hardware"),
    Mode("hardware, unfolded", backend="hardware", disabled_passes=("fold_constants",)),
)
"""The ways to run a case on a device."""

REFERENCE = Mode("reference", backend="reference")


CASES = sources.all_cases()


def _ways() -> Iterator[ParameterSet]:
    """Yield every case in every mode that makes a graph of its own of it: without constants some are the same."""
    for case in CASES:
        constants = any(tensor.constant for tensor in case.inputs.values())
        for mode in MODES:
            if constants or not (mode.disabled_passes or mode.constants_as_inputs):
                marks = [pytest.mark.repeats] if mode.disabled_passes or mode.constants_as_inputs else []
                yield pytest.param(case, mode, id=f"{case.operator}: {case.name}-{mode.name}", marks=marks)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Give tests the cases and modes of this run alone: pytest takes longer to create all than to run its share.

    The reference, which takes no part in a run on a device, has a sixth of the cases, which the commit picks.
    """
    if metafunc.function is test_case_on_the_reference:
        cases = part_of(metafunc.config, CASES, 6)
        metafunc.parametrize("case", cases, ids=[f"{case.operator}: {case.name}" for case in cases])
    if metafunc.function is not test_case:
        return
    ways = [] if metafunc.config.getoption("--no-device") else list(_ways())
    # As pytest spells names, which decide the share. Names that occur twice would get numbers.
    names = [str(way.id).encode("unicode_escape").decode("ascii") for way in ways]
    assert len(set(names)) == len(names)

    def is_kept(way: ParameterSet, name: str) -> bool:
        test = f"{metafunc.definition.nodeid}[{name}]"
        return runs(metafunc.config, test, profile_of(way.values), repeats=bool(way.marks))

    metafunc.parametrize(("case", "mode"), [way for way, name in zip(ways, names, strict=True) if is_kept(way, name)])


@pytest.fixture(scope="module")
def contexts(context: wn.MLContext) -> Iterator[dict[str, wn.MLContext]]:
    with (
        profile_context("default-limits") as plain,
        profile_context("hardware") as hardware,
    ):
        assert not plain.caps.features
        yield {"device": context, "default-limits": plain, "hardware": hardware}


@pytest.fixture(scope="module")
def reference() -> Iterator[wn.MLContext]:
    """A context that runs every graph with numpy."""
    with wn.ml.create_context(device_type="cpu", backend="reference") as context:
        yield context


def left_out(context: wn.MLContext, mode: Mode) -> dict[str, str]:
    """Return the cases that a context cannot run, and why."""
    limits = context.op_support_limits()
    return {
        f"{case.operator}: {case.name}": reason
        for case in CASES
        if (reason := case.unsupported(limits, constants_as_inputs=mode.constants_as_inputs))
    }


@pytest.mark.parametrize("mode", MODES, ids=lambda mode: mode.name)
def test_limits_leave_no_case_out(mode: Mode, contexts: dict[str, wn.MLContext]) -> None:
    assert left_out(contexts[mode.backend], mode) == {}


def test_limits_of_the_reference_leave_no_case_out(reference: wn.MLContext) -> None:
    assert left_out(reference, REFERENCE) == {}


def check(case: Case, mode: Mode, context: wn.MLContext) -> None:
    """Run a case and compare its results with what it expects."""
    builder = wn.MLGraphBuilder(context)
    built = build_case(builder, case, constants_as_inputs=mode.constants_as_inputs)
    with builder.build(built.outputs, disabled_passes=mode.disabled_passes) as graph:
        mismatches = case.mismatches(context.compute(graph, built.feeds))
    assert not mismatches, f"{case.source}: " + "; ".join(f"{name}: {why}" for name, why in mismatches.items())


def test_case(case: Case, mode: Mode, contexts: dict[str, wn.MLContext]) -> None:
    check(case, mode, contexts[mode.backend])


def test_case_on_the_reference(case: Case, reference: wn.MLContext) -> None:
    check(case, REFERENCE, reference)
