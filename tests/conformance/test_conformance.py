"""The shared conformance cases, on a device and on the reference, each in every way a graph can hold its constants.

A case is left out only where `op_support_limits()` says that the device lacks one of its data types. Mesa's software
driver has all of them, so there nothing may be left out.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest

import webnn_wgpu as wn
from tests.conftest import shared_folder
from webnn_wgpu.core.data_types import DATA_TYPES
from webnn_wgpu.testing import Case, build_case, load_cases

if TYPE_CHECKING:
    from collections.abc import Iterator

# Operators that no builder has yet; the cases that use one are not run. The list can only shrink: see the first test.
MISSING = frozenset(
    {
        "average_pool2d",
        "conv2d",
        "conv_transpose2d",
        "cumulative_sum",
        "gru",
        "gru_cell",
        "l2_pool2d",
        "lstm",
        "lstm_cell",
        "max_pool2d",
        "resample2d",
    }
)

# Data types that a device may lack; all others every device must take.
OPTIONAL_TYPES = frozenset({"float16", "int64", "uint64"})


@dataclass(frozen=True)
class Mode:
    """A way to run every case."""

    name: str
    backend: str = "device"
    disabled_passes: tuple[str, ...] = ()
    constants_as_inputs: bool = False


MODES = (
    Mode("as written"),
    Mode("unfolded", disabled_passes=("fold_constants",)),
    Mode("constants as inputs", constants_as_inputs=True),
    Mode("reference", backend="reference"),
)


def _all_cases() -> list[Case]:
    folder = shared_folder()
    if folder is None:
        pytest.skip("no shared folder: neither WEBNN_WGPU_SHARED nor ../shared names a directory", allow_module_level=True)
    paths = sorted((folder / "conformance").glob("*.json"))
    assert paths, f"{folder} has no conformance cases"
    return [case for path in paths if path.stem not in MISSING for case in load_cases(path)]


CASES = _all_cases()


def reference_context() -> wn.MLContext:
    """A context that runs every graph with numpy."""
    return wn.ml.create_context(device_type="cpu", backend="reference")


@pytest.fixture(scope="module")
def contexts(context: wn.MLContext) -> Iterator[dict[str, wn.MLContext]]:
    with reference_context() as reference:
        yield {"device": context, "reference": reference}


@pytest.fixture(scope="module")
def limits(contexts: dict[str, wn.MLContext]) -> dict[str, Any]:
    return {backend: context.op_support_limits() for backend, context in contexts.items()}


def test_missing_operators_are_missing(context: wn.MLContext) -> None:
    builder = wn.MLGraphBuilder(context)
    assert [name for name in sorted(MISSING) if hasattr(builder, name)] == []


@pytest.mark.parametrize("mode", MODES, ids=lambda mode: mode.name)
def test_only_lacking_data_types_leave_cases_out(mode: Mode, contexts: dict[str, wn.MLContext], limits: dict[str, Any]) -> None:
    taken = set(limits[mode.backend]["input"]["dataTypes"])
    lacking = set(DATA_TYPES) - taken
    complete = mode.backend == "reference" or "llvmpipe" in contexts["device"].caps.device
    assert lacking <= (set() if complete else OPTIONAL_TYPES)
    left_out = {
        f"{case.operator}: {case.name}": reason
        for case in CASES
        if (reason := case.unsupported(limits[mode.backend], constants_as_inputs=mode.constants_as_inputs))
        and not lacking & {tensor.data_type for tensor in (*case.inputs.values(), *case.expected.values())}
    }
    assert left_out == {}


@pytest.mark.parametrize("mode", MODES, ids=lambda mode: mode.name)
@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.operator}: {case.name}")
def test_case(case: Case, mode: Mode, contexts: dict[str, wn.MLContext], limits: dict[str, Any]) -> None:
    reason = case.unsupported(limits[mode.backend], constants_as_inputs=mode.constants_as_inputs)
    if reason is not None:
        pytest.skip(f"the context cannot run it: {reason}")
    context = contexts[mode.backend]
    builder = wn.MLGraphBuilder(context)
    built = build_case(builder, case, constants_as_inputs=mode.constants_as_inputs)
    with builder.build(built.outputs, disabled_passes=mode.disabled_passes) as graph:
        mismatches = case.mismatches(context.compute(graph, built.feeds))
    assert not mismatches, f"{case.source}: " + "; ".join(f"{name}: {why}" for name, why in mismatches.items())
