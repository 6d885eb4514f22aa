from __future__ import annotations

import warnings
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import wgpu

import webnn_wgpu as wn
from tests.api.graphs import X, negation
from tests.support import open_profile
from webnn_wgpu.api import ml as ml_module
from webnn_wgpu.core.caps import DEFAULT_LIMITS
from webnn_wgpu.runtime import adapters as adapters_module
from webnn_wgpu.runtime import device as device_module


@pytest.fixture(autouse=True)
def unwarned(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every test sees the warnings of a process that has not warned yet."""
    monkeypatch.setattr(ml_module, "_warned", set[str]())


class FakeAdapter:
    """An adapter of another kind that gives the devices of a real one."""

    def __init__(self, kind: str) -> None:
        """`kind` is a type of adapter, with its backend behind a slash where that matters."""
        self._real: Any = adapters_module.adapters()[0]
        type_, _, backend = kind.partition("/")
        self.info: dict[str, Any] = {**self._real.info, "adapter_type": type_}
        self.info |= {"backend_type": backend} if backend else {}
        self.features, self.limits = self._real.features, self._real.limits
        self.kind = kind

    def request_device_sync(self, **kwargs: Any) -> wgpu.GPUDevice:
        chosen.append(self.kind)
        return self._real.request_device_sync(**kwargs)


chosen: list[str] = []


@pytest.fixture
def adapters(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Return a function that sets which adapters the machine has. Their devices are of the kind of the adapter."""
    chosen.clear()
    real = device_module.caps_of
    monkeypatch.setattr(device_module, "caps_of", lambda gpu: replace(real(gpu), adapter_type=chosen[-1].partition("/")[0]))

    def have(*kinds: str) -> None:
        found = [FakeAdapter(kind) for kind in kinds]
        monkeypatch.setattr(adapters_module, "adapters", lambda: found)

    return have


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, "DiscreteGPU"),
        ({"accelerated": True}, "DiscreteGPU"),
        ({"device_type": "gpu"}, "DiscreteGPU"),
        ({"power_preference": "high-performance"}, "DiscreteGPU"),
        ({"power_preference": "low-power"}, "IntegratedGPU"),
        ({"accelerated": False}, "CPU"),
        ({"device_type": "cpu"}, "CPU"),
        ({"device_type": "cpu", "accelerated": False, "power_preference": "high-performance"}, "CPU"),
    ],
)
def test_which_adapter_is_taken(adapters: Any, options: dict[str, Any], expected: str) -> None:
    adapters("CPU", "IntegratedGPU", "DiscreteGPU")
    with wn.ml.create_context(**options):
        assert chosen == [expected]


@pytest.mark.parametrize("kinds", [("DiscreteGPU/D3D12", "DiscreteGPU/Vulkan"), ("DiscreteGPU/Vulkan", "DiscreteGPU/D3D12")])
def test_vulkan_is_preferred_to_direct3d_on_one_gpu(adapters: Any, kinds: tuple[str, ...]) -> None:
    adapters(*kinds, "IntegratedGPU/Vulkan")
    with wn.ml.create_context():
        assert chosen == ["DiscreteGPU/Vulkan"]


def test_a_discrete_gpu_is_preferred_whatever_its_backend_is(adapters: Any) -> None:
    adapters("IntegratedGPU/Vulkan", "DiscreteGPU/D3D12")
    with wn.ml.create_context():
        assert chosen == ["DiscreteGPU/D3D12"]


def test_one_warning_for_a_software_adapter(adapters: Any) -> None:
    adapters("CPU")
    with pytest.warns(RuntimeWarning, match="no hardware adapter was found: graphs run on the software adapter") as caught:
        contexts = [wn.ml.create_context() for _ in range(2)]
    assert len(caught) == 1
    assert caught[0].filename == __file__
    for context in contexts:
        context.destroy()


def test_a_background_thread_warns_at_the_line_of_the_program(adapters: Any) -> None:
    adapters("CPU")
    with pytest.warns(RuntimeWarning, match="no hardware adapter was found") as caught:
        wn.ml.create_context_async().result().destroy()
    assert [warning.filename for warning in caught] == [__file__]


def test_no_warning_where_software_was_asked_for(adapters: Any) -> None:
    adapters("CPU")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        context = wn.ml.create_context(accelerated=False)
    assert not context.accelerated
    assert context.device_type == "cpu"
    context.destroy()


@pytest.mark.parametrize("options", [{}, {"accelerated": True}, {"device_type": "gpu"}, {"power_preference": "low-power"}])
def test_no_adapter_at_all(adapters: Any, options: dict[str, Any]) -> None:
    adapters()
    with pytest.raises(wn.NotSupportedError) as caught:
        wn.ml.create_context(**options)
    assert str(caught.value) == (
        "create_context: no WebGPU adapter was found. Install a Vulkan driver for your GPU, or the software driver:"
        " apt-get install mesa-vulkan-drivers libvulkan1"
    )
    assert caught.value.name == "NotSupportedError"


@pytest.mark.parametrize("options", [{"accelerated": False}, {"device_type": "cpu"}])
def test_the_reference_is_the_last_resort_of_who_wants_the_cpu(adapters: Any, options: dict[str, Any]) -> None:
    adapters()
    with pytest.warns(RuntimeWarning, match="graphs run in the numpy reference, which is slow") as caught:
        contexts = [wn.ml.create_context(**options) for _ in range(2)]
    assert len(caught) == 1
    assert contexts[0].device is None
    assert contexts[0].description == "numpy reference"
    assert contexts[0].compute(negation(contexts[0]), {"x": X})["y"].tolist() == [-1, 2, -3]


def test_an_adapter_that_gives_no_device(adapters: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    adapters("DiscreteGPU")

    def fail(self: FakeAdapter, **_: Any) -> None:
        raise RuntimeError("Request device failed")

    monkeypatch.setattr(FakeAdapter, "request_device_sync", fail)
    with pytest.raises(wn.NotSupportedError, match="create_context: the adapter gives no device: Request device failed"):
        wn.ml.create_context()


WRONG = {
    "unknown": (
        {"speed": "high"},
        "create_context: unknown option 'speed'; "
        "allowed: power_preference, accelerated, device_type, gpu_device, backend, tuning",
    ),
    "power": (
        {"power_preference": "fast"},
        "create_context: Invalid power_preference; got 'fast'; allowed: default, high-performance, low-power",
    ),
    "device type": ({"device_type": "npu"}, "create_context: Invalid device_type; got 'npu'; allowed: auto, cpu, gpu"),
    "backend": ({"backend": "cuda"}, "create_context: Invalid backend; got 'cuda'; allowed: auto, reference"),
    "contradiction": (
        {"accelerated": False, "device_type": "gpu"},
        "create_context: accelerated and device_type contradict each other; got accelerated=False, device_type='gpu'",
    ),
    "other contradiction": (
        {"accelerated": True, "device_type": "cpu"},
        "create_context: accelerated and device_type contradict each other; got accelerated=True, device_type='cpu'",
    ),
    "twice": (
        {"power_preference": "default", "powerPreference": "low-power"},
        "create_context: option power_preference is given twice; got 'default' and 'low-power'",
    ),
    "no device": (
        {"gpu_device": 7},
        "create_context: a context is made from a wgpu.GPUDevice or from options; got int",
    ),
}


@pytest.mark.parametrize("case", WRONG)
def test_wrong_options(case: str) -> None:
    options, message = WRONG[case]
    with pytest.raises(TypeError) as caught:
        wn.ml.create_context(**options)
    assert str(caught.value) == message
    with pytest.raises(TypeError) as caught:
        wn.ml.create_context_async(**options).result()
    assert str(caught.value) == message


def test_an_adapter_is_no_device() -> None:
    with pytest.raises(TypeError, match=r"got GPUAdapter. adapter.request_device_sync\(\) returns a device"):
        wn.ml.create_context(open_profile("full").gpu.adapter)
    with pytest.raises(TypeError, match=r"got GPU. gpu.request_adapter_sync\(\).request_device_sync\(\) returns a device"):
        wn.ml.create_context(wgpu.gpu)


def test_own_device_in_every_spelling() -> None:
    gpu = open_profile("full").gpu
    for context in (
        wn.ml.create_context(gpu),
        wn.ml.create_context(gpu_device=gpu),
        wn.ML().createContext(gpu),
        wn.ml.create_context({"gpuDevice": gpu}),
        wn.ml.create_context_async(gpu).result(),
    ):
        assert context.device is gpu
        context.destroy()
    with pytest.raises(TypeError, match="a device of your own leaves nothing to choose; got gpu_device and device_type"):
        wn.ml.create_context(gpu, device_type="gpu")


def test_a_mapping_of_options() -> None:
    with wn.ml.create_context({"powerPreference": "low-power", "backend": "reference", "accelerated": None}) as context:
        assert context.power_preference == "low-power"


def test_own_device_that_is_destroyed() -> None:
    gpu = adapters_module.adapters()[0].request_device_sync()
    gpu.destroy()
    with pytest.raises(wn.DeviceLostError, match=r"create_context: the wgpu\.GPUDevice was destroyed"):
        wn.ml.create_context(gpu)


def test_default_limits_and_no_features_give_the_same_results(context: wn.MLContext) -> None:
    gpu = open_profile("default-limits").gpu
    assert {f for f in gpu.features if f in device_module.WANTED_FEATURES} == set()
    assert all(gpu.limits[name] <= DEFAULT_LIMITS[name] for name in ("max-buffer-size", "max-storage-buffer-binding-size"))
    rng = np.random.default_rng(1)
    x, w = (rng.standard_normal(shape).astype(np.float32) for shape in ((5, 16), (16, 7)))
    results: list[Any] = []
    for each in (context, wn.ml.create_context(gpu)):
        builder = wn.MLGraphBuilder(each)
        product = builder.matmul(builder.input("x", {"dataType": "float32", "shape": [5, 16]}), builder.constant(w))
        graph = builder.build({"y": builder.softmax(product, 1)})
        results.append(each.compute(graph, {"x": x})["y"])
    np.testing.assert_allclose(results[0], results[1], rtol=1e-5)
