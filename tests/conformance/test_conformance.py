"""The shared conformance cases, on a device and on the reference, each in every way a graph can hold its constants.

Every device computes with every data type, so no case is left out; a device with WebGPU's default limits and no features runs
them all too.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest

import webnn_wgpu as wn
from tests.conftest import shared_folder
from tests.support import open_profile
from webnn_wgpu.testing import Case, build_case, load_cases

if TYPE_CHECKING:
    from collections.abc import Iterator


@dataclass(frozen=True)
class Mode:
    """A way to run every case."""

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
    Mode("reference", backend="reference"),
)


def _all_cases() -> list[Case]:
    folder = shared_folder()
    if folder is None:
        pytest.skip("no shared folder: neither WEBNN_WGPU_SHARED nor ../shared names a directory", allow_module_level=True)
    paths = sorted((folder / "conformance").glob("*.json"))
    assert paths, f"{folder} has no conformance cases"
    return [case for path in paths for case in load_cases(path)]


CASES = _all_cases()


def reference_context() -> wn.MLContext:
    """A context that runs every graph with numpy."""
    return wn.ml.create_context(device_type="cpu", backend="reference")


@pytest.fixture(scope="module")
def contexts(context: wn.MLContext) -> Iterator[dict[str, wn.MLContext]]:
    with reference_context() as reference, wn.ml.create_context(open_profile("default-limits").gpu) as plain:
        assert not plain.caps.features
        yield {"device": context, "default-limits": plain, "reference": reference}


@pytest.fixture(scope="module")
def limits(contexts: dict[str, wn.MLContext]) -> dict[str, Any]:
    return {backend: context.op_support_limits() for backend, context in contexts.items()}


@pytest.mark.parametrize("mode", MODES, ids=lambda mode: mode.name)
def test_limits_leave_no_case_out(mode: Mode, limits: dict[str, Any]) -> None:
    left_out = {
        f"{case.operator}: {case.name}": reason
        for case in CASES
        if (reason := case.unsupported(limits[mode.backend], constants_as_inputs=mode.constants_as_inputs))
    }
    assert left_out == {}


@pytest.mark.parametrize("mode", MODES, ids=lambda mode: mode.name)
@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.operator}: {case.name}")
def test_case(case: Case, mode: Mode, contexts: dict[str, wn.MLContext]) -> None:
    context = contexts[mode.backend]
    builder = wn.MLGraphBuilder(context)
    built = build_case(builder, case, constants_as_inputs=mode.constants_as_inputs)
    with builder.build(built.outputs, disabled_passes=mode.disabled_passes) as graph:
        mismatches = case.mismatches(context.compute(graph, built.feeds))
    assert not mismatches, f"{case.source}: " + "; ".join(f"{name}: {why}" for name, why in mismatches.items())
