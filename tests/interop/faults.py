"""Everything that can fail below the package fails once, at each call in turn, and what a program then sees is checked.

A program of everything that a context does is run again and again on a device of its own; each time another call of wgpu's
fails. Run as `python -m tests.interop.faults`, which prints how often what was injected; `--every 5` takes each fifth call.
"""

from __future__ import annotations

import argparse
import logging
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import numpy as np
import wgpu
from wgpu.backends import wgpu_native
from wgpu.backends.wgpu_native import _api

import webnn_wgpu as wn
from tests.runtime import native
from tests.support import new_context, new_profile

from .abuses import SET
from .programs import X, buffer, expected, network

MEMORY = ("GPUDevice.create_buffer", "GPUDevice.create_buffer_with_data", "GPUDevice.create_texture")
TRUSTED = "wgpuDeviceCreateShaderModuleTrusted"
PIPELINES = (
    "GPUDevice.create_shader_module",
    *([f"libf.{TRUSTED}"] if hasattr(native.libf, TRUSTED) else []),
    "GPUDevice.create_compute_pipeline",
    "GPUDevice.create_render_pipeline",
)
BINDING = ("GPUDevice.create_bind_group_layout", "GPUDevice.create_pipeline_layout", "GPUDevice.create_bind_group")
SUBMIT = ("libf.wgpuQueueSubmit",)
RUN = ("lib.wgpuDeviceCreateCommandEncoder", "lib.wgpuCommandEncoderBeginComputePass", "lib.wgpuCommandEncoderFinish")
MAP = ("libf.wgpuBufferMapAsync",)
WORK = ("GPUDevice.create_command_encoder", "GPUCommandEncoder.finish", "libf.wgpuQueueWriteBuffer", *MAP)


def out_of_memory(_gpu: Any, *_: Any) -> None:
    raise wgpu.GPUOutOfMemoryError("Not enough memory left.")


def refused(_gpu: Any, *_: Any) -> None:
    raise wgpu.GPUInternalError("The driver says no.")


def device_lost(gpu: Any, *_: Any) -> None:
    """Let the device go as a driver does: without a word to wgpu, whose calls find it gone."""
    native.libf.wgpuDeviceDestroy(gpu._internal)


def not_mapped(_gpu: Any, *arguments: Any) -> bool:
    """Tell who wants a buffer mapped that it could not be, instead of mapping it."""
    told = arguments[-1]
    told.callback(
        native.lib.WGPUMapAsyncStatus_Error, wgpu_native.ffi.new("WGPUStringView *")[0], told.userdata1, told.userdata2
    )
    return True


KINDS: dict[str, tuple[Callable[..., Any], tuple[str, ...], type[wn.WebNNError]]] = {
    "no memory": (out_of_memory, MEMORY + PIPELINES, wn.OutOfMemoryError),
    "no pipeline": (refused, PIPELINES, wn.OperationError),
    "no binding": (refused, BINDING, wn.OperationError),
    "no submit": (refused, SUBMIT, wn.OperationError),
    "no mapping": (not_mapped, MAP, wn.OperationError),
    "device lost": (device_lost, MEMORY + PIPELINES + BINDING + WORK + RUN, wn.DeviceLostError),
    "over-long kernel": (device_lost, ("GPUDevice._poll_wait",), wn.DeviceLostError),
}
"""What is injected, at which of wgpu's methods or of the C functions beneath, and what becomes of it."""


@contextmanager
def failing(gpu: Any, kind: str, at: int) -> Iterator[Counter[str]]:
    """Have call number `at` of the functions of a kind fail on a device; the counter tells which calls there were."""
    act, names, _ = KINDS[kind]
    calls: Counter[str] = Counter()
    others = dict.fromkeys(("wgpuQueueSubmit", "wgpuQueueWriteBuffer"), gpu.queue._internal)
    others |= dict.fromkeys(("wgpuDeviceCreateCommandEncoder", TRUSTED), gpu._internal)

    def wrap(function: str, original: Any) -> Any:
        def call(self: Any, *args: Any, **kwargs: Any) -> Any:
            ours = others.get(function, self) == self if function.startswith("wgpu") else getattr(self, "_device", self) is gpu
            if ours:
                calls[function] += 1
                if calls.total() == at:
                    instead = act(gpu, self, *args)
                    if instead is not None:
                        return instead
            return original(self, *args, **kwargs)

        return call

    with ExitStack() as restoring:
        for name in names:
            place, _, function = name.partition(".")
            owner = getattr(native if place.startswith("lib") else _api, place)
            original = getattr(owner, function)
            restoring.callback(setattr, owner, function, original)
            setattr(owner, function, wrap(function, original))
        yield calls


class Everything:
    """A program of all that a context does on a caller's device, step by step."""

    def __init__(self, context: wn.MLContext) -> None:
        self.context = context
        self.own, self.encoder = buffer(context.device, X), context.device.create_command_encoder()
        self.small = [buffer(context.device, size=8) for _ in range(2)]
        usage = "TEXTURE_BINDING | RENDER_ATTACHMENT"
        self.texture = context.device.create_texture(size=(8, 4), format="rgba8unorm", usage=usage)

    def run(self) -> None:
        """Do everything and check the results."""
        context, texture = self.context, self.texture
        x = context.wrap_buffer(self.own, [4, 8], "float32")
        y = context.create_tensor([4, 8], "float32", readable=True, writable=True)
        graph = network(context)
        ends: Any = ({"x": x}, {"y": y})
        for _ in range(3):  # from the second on, runs encode the next
            close(context.compute(graph, {"x": X})["y"])
            context.dispatch(graph, *ends)
            close(context.read_tensor(y))
        context.write_tensor(y, np.zeros(32, np.float32))
        for _ in context.dispatch_steps(graph, *ends):
            pass
        close(context.read_tensor(y))
        context.encode(graph, *ends, self.encoder)
        wn.run_wgsl(SET, y, workgroups=1, label="set")
        assert context.read_tensor(y).flat[0] == 1
        context.tensor_to_texture(y, texture)
        assert context.read_tensor(context.tensor_from_texture(texture)).shape == (1, 3, 4, 8)
        name = next(iter(graph.kernels))
        graph.override(name, graph.kernels[name].wgsl + "\n")
        close(context.compute(graph, {"x": X})["y"])
        self._run_exact()
        for thing in (graph, x, y):
            thing.destroy()

    def _run_exact(self) -> None:
        """Do what copies tensors of odd sizes, and writes a part of a word."""
        context = self.context
        builder = wn.MLGraphBuilder(context)
        graph = builder.build({"y": builder.neg(builder.input("x", [5], "int8"))})
        x, y = (context.wrap_buffer(own, [5], "int8") for own in self.small)
        context.write_tensor(x, np.arange(5, dtype=np.int8))
        context.dispatch(graph, {"x": x}, {"y": y})
        assert context.read_tensor(y).tolist() == [0, -1, -2, -3, -4]
        wn.run_wgsl(INVERT, y, workgroups=1, label="invert")
        assert context.read_tensor(y).tolist() == [-1, 0, 1, 2, 3]
        for thing in (graph, x, y):
            thing.destroy()


INVERT = """
@group(0) @binding(0) var<storage, read_write> x: array<u32>;
@compute @workgroup_size(2) fn main(@builtin(local_invocation_index) i: u32) { x[i] = ~x[i]; }
"""


def close(found: Any) -> None:
    np.testing.assert_allclose(found, expected(), rtol=1e-5)


def inject(kind: str, at: int, bystander: wn.MLContext) -> tuple[bool, str]:
    """Let one call fail; return whether there was such a call, and what was raised."""
    error_kind = KINDS[kind][2]
    gpu = new_profile("default-limits").gpu
    context = wn.ml.create_context(gpu)
    everything = Everything(context)
    raised: wn.WebNNError | None = None
    with failing(gpu, kind, at) as calls:
        try:
            everything.run()
        except wn.WebNNError as error:
            raised = error
    if calls.total() < at:
        assert raised is None
        return False, ""
    assert raised is not None, f"{kind} at call {at}: nothing was raised"
    # Where memory is filled or read the specification has another word for the same.
    unspecific = error_kind is wn.OperationError and type(raised) is wn.UnknownError
    assert isinstance(raised, error_kind) or unspecific, f"{kind} at call {at}: {raised!r}"
    assert raised.operator, f"{kind} at call {at}: {raised!r}"
    if raised.operator == "build" and calls.keys() <= {name.partition(".")[2] for name in PIPELINES}:
        assert raised.label in ("matmul_0", "softmax_1", "neg_0"), repr(raised)
    # What is not concerned goes on, and so does everything where the device is still there.
    close(bystander.compute(network(bystander), {"x": X})["y"])
    if error_kind is wn.DeviceLostError:
        assert context.lost.done(), f"{kind} at call {at}"
        assert context.lost.result().message.startswith("the device is lost")
        for call in (lambda: context.create_tensor([1], "float32"), lambda: network(context)):
            try:
                call()
            except wn.InvalidStateError:
                continue
            raise AssertionError(f"{kind} at call {at}: the context still works")
        with context.recover(new_profile("default-limits").gpu) as fresh:
            Everything(fresh).run()
    else:
        assert not context.lost.done()
        Everything(context).run()
        context.destroy()
    return True, f"{raised.operator} {type(raised).__name__}"


def campaign(every: int, report: Callable[[str], None] = print) -> Counter[str]:
    """Let each `every`th call fail, for each kind of failure; return how many of each kind were injected."""
    logging.getLogger("wgpu").setLevel(logging.CRITICAL)
    counts: Counter[str] = Counter()
    with new_context() as bystander:
        close(bystander.compute(network(bystander), {"x": X})["y"])
        for kind in KINDS:
            seen: Counter[str] = Counter()
            at = 1
            while True:
                there, what = inject(kind, at, bystander)
                if not there:
                    break
                seen[what] += 1
                at += every
            counts[kind] = seen.total()
            report(f"{kind}: {seen.total()} ({', '.join(f'{n} {what}' for what, n in sorted(seen.items()))})")
    return counts


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--every", type=int, default=1)
    campaign(parser.parse_args().every)
    print("alive")
