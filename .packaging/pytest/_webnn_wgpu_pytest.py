"""pytest's plugin of webnn_wgpu: the fixture `check_kernel`, with which a test runs once on each WebGPU adapter.

pytest imports this module in every run of anybody who has the package installed. So it lies beside the package, imports the
package only when a test asks for the fixture, and opens adapters only then.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable

    from webnn_wgpu import MLContext

_FIXTURE = "adapter_context"


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Repeat tests that need an adapter for each that there is."""
    if _FIXTURE not in metafunc.fixturenames:
        return
    from webnn_wgpu.testing.kernels import contexts

    found = contexts()  # raises where there is none: a test that did not run has shown nothing
    names = [context.caps.device.strip() or "adapter" for context in found]
    ids = [name if names.count(name) == 1 else f"{name} {i}" for i, name in enumerate(names)]
    metafunc.parametrize(_FIXTURE, found, ids=ids, indirect=True, scope="session")


@pytest.fixture(scope="session")
def adapter_context(request: pytest.FixtureRequest) -> MLContext:
    """A context on one of the machine's adapters; tests that use it run on each."""
    return request.param


@pytest.fixture
def check_kernel(adapter_context: MLContext, request: pytest.FixtureRequest) -> Callable[..., Any]:
    """`webnn_wgpu.testing.check_kernel`, on one adapter, the test's name for a label; tests that use it run on each."""
    from webnn_wgpu.testing import check_kernel as check

    return partial(check, on=[adapter_context], label=request.node.name.partition("[")[0])
