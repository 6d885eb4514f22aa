"""What a program may do to the objects that it shares with a context, each of which ended the process were it let through.

Run as `python -m tests.interop.abuses NAME`, which prints what was raised and, if the process lives, "alive".
"""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import wgpu

import webnn_wgpu as wn
from tests.support import open_profile

from .programs import TYPE, X, buffer, network

FLAGS: dict[str, Any] = {**TYPE, "readable": True, "writable": True, "exportableToGPU": True}

TOLD_AT_ONCE = not wgpu.__version__.startswith("0.31.")
"""Whether wgpu says at once that an encoder has an open pass; else whoever finishes the encoder is told."""

SET = "@group(0) @binding(0) var<storage, read_write> x: array<f32>; @compute @workgroup_size(1) fn main() { x[0] = 1.0; }"


class Workplace:
    """A device, a context on it, a graph, tensors for it, and an encoder."""

    def __init__(self, gpu: Any = None) -> None:
        self.gpu = gpu or open_profile("default-limits").gpu
        self.context = wn.ml.create_context(self.gpu)
        self.graph = network(self.context)
        self.own = buffer(self.gpu, X)
        self.x = self.context.wrap_buffer(self.own, [4, 8], "float32")
        self.y = self.context.create_tensor(FLAGS)
        self.encoder = self.gpu.create_command_encoder()
        usage = "TEXTURE_BINDING | RENDER_ATTACHMENT"
        self.texture = self.gpu.create_texture(size=(8, 4), format="rgba8unorm", usage=usage)

    def dispatch(self) -> None:
        self.context.dispatch(self.graph, {"x": self.x}, {"y": self.y})

    def encode(self, compute_pass: Any = None) -> None:
        encoder = self.encoder if compute_pass is None else None
        self.context.encode(self.graph, {"x": self.x}, {"y": self.y}, encoder, compute_pass=compute_pass)

    def submit(self) -> None:
        self.gpu.queue.submit([self.encoder.finish()])
        self.gpu.queue.read_buffer(self.own)


def wrapped_buffer_destroyed(w: Workplace) -> None:
    w.dispatch()
    w.own.destroy()
    for call in (w.dispatch, w.encode, lambda: w.context.read_tensor(w.x), lambda: w.context.write_tensor(w.x, X)):
        tried(call)
    tried(lambda: wn.run_wgsl(SET, w.own, workgroups=1))
    tried(lambda: w.context.tensor_to_texture(w.x, w.texture))
    w.context.destroy()


def buffer_destroyed_before_it_is_wrapped(w: Workplace) -> None:
    for usage in (w.own.usage, wgpu.BufferUsage.STORAGE):
        gone = w.gpu.create_buffer(size=w.own.size, usage=usage)
        gone.destroy()
        for _ in range(2):
            tried(lambda gone=gone: w.context.wrap_buffer(gone, [4, 8], "float32"))
        tried(lambda gone=gone: wn.run_wgsl(SET, gone, workgroups=1))


def buffer_mapped_from_the_start(w: Workplace) -> None:
    mapped = w.gpu.create_buffer(size=128, usage="STORAGE | COPY_SRC", mapped_at_creation=True)
    tried(lambda: w.context.wrap_buffer(mapped, [4, 8], "float32"))
    tried(lambda: wn.run_wgsl(SET, mapped, workgroups=1))
    mapped.unmap()
    w.x = w.context.wrap_buffer(mapped, [4, 8], "float32")
    w.dispatch()


def tensors_buffer_destroyed(w: Workplace) -> None:
    w.dispatch()
    w.y.buffer.destroy()
    for call in (w.dispatch, w.encode, lambda: w.context.read_tensor(w.y), lambda: w.context.export_to_gpu(w.y)):
        tried(call)
    w.y.destroy()
    w.submit()


def everything_destroyed_before_the_submit(w: Workplace) -> None:
    w.encode()
    w.context.tensor_to_texture(w.y, w.texture, encoder=w.encoder)
    w.context.tensor_from_texture(w.texture, encoder=w.encoder)
    for thing in (w.graph, w.x, w.y, w.context):
        thing.destroy()
    gc.collect()
    w.submit()


def exported_buffer_outlives_its_tensor(w: Workplace) -> None:
    rent = w.context.export_to_gpu(w.y)
    w.encoder.copy_buffer_to_buffer(rent.buffer, 0, w.own, 0, 128)
    w.y.destroy()
    w.context.destroy()
    w.submit()


def handed_out_buffer_outlives_its_tensor(w: Workplace) -> None:
    w.encoder.copy_buffer_to_buffer(w.y.buffer, 0, w.own, 0, 128)
    w.context.destroy()
    w.submit()


def encoder_finished(w: Workplace) -> None:
    w.encoder.finish()
    tried(w.encode)
    tried(lambda: w.context.tensor_from_texture(w.texture, encoder=w.encoder))
    w.dispatch()


def encoder_with_an_open_pass(w: Workplace) -> None:
    open_pass = w.encoder.begin_compute_pass()
    tried(w.encode, refused=TOLD_AT_ONCE)
    for call in (open_pass.end, w.submit):
        tried(call, refused=False)
    w.dispatch()


def pass_ended(w: Workplace) -> None:
    ended = w.encoder.begin_compute_pass()
    ended.end()
    tried(lambda: w.encode(ended))
    w.submit()


def pass_of_an_abandoned_encoder(w: Workplace) -> None:
    orphan = w.encoder.begin_compute_pass()
    tried(w.submit)
    for call in (lambda: w.encode(orphan), orphan.end):
        tried(call, refused=False)  # the encoder is lost to its owner anyway
    w.dispatch()


def device_destroyed_between_encode_and_submit(w: Workplace) -> None:
    w.encode()
    w.gpu.destroy()
    for call in (w.submit, w.encode, w.dispatch, lambda: w.context.compute(w.graph, {"x": X})):
        tried(call)
    tried(lambda: w.context.tensor_from_texture(w.texture))
    tried(lambda: wn.run_wgsl(SET, w.own, workgroups=1))
    w.context.destroy()


def device_destroyed_while_something_is_read(w: Workplace) -> None:
    promises = [w.context.read_tensor_async(w.y), w.context.compute_async(w.graph, {"x": X})]
    w.gpu.destroy()
    for promise in promises:
        tried(promise.result)


def texture_destroyed(w: Workplace) -> None:
    w.texture.destroy()
    tried(lambda: w.context.tensor_from_texture(w.texture))
    tried(lambda: w.context.tensor_to_texture(w.y, w.texture))
    tried(lambda: w.context.tensor_to_texture(w.y, w.texture, encoder=w.encoder))
    w.submit()


def kernels_that_are_none(w: Workplace) -> None:
    options: dict[str, Any] = {"output_shapes": [4], "output_types": "float32", "workgroups": 1}
    builder = w.context.create_graph_builder("2024")
    for source in ("", "fn main() {}", SET.replace("1.0", "wrong"), SET.replace("array<f32>", "array<f32, 4096>"), SET * 2):
        tried(lambda source=source: builder.build({"y": builder.wgsl_op(source, [], **options)}))
        tried(lambda source=source: wn.run_wgsl(source, np.zeros(4, np.float32), workgroups=1, context=w.context))
    w.dispatch()


ABUSES: dict[str, Callable[[Workplace], None]] = {
    f.__name__: f
    for f in (
        wrapped_buffer_destroyed,
        buffer_destroyed_before_it_is_wrapped,
        buffer_mapped_from_the_start,
        tensors_buffer_destroyed,
        everything_destroyed_before_the_submit,
        exported_buffer_outlives_its_tensor,
        handed_out_buffer_outlives_its_tensor,
        encoder_finished,
        encoder_with_an_open_pass,
        pass_ended,
        pass_of_an_abandoned_encoder,
        device_destroyed_between_encode_and_submit,
        device_destroyed_while_something_is_read,
        texture_destroyed,
        kernels_that_are_none,
    )
}


def tried(call: Callable[[], Any], *, refused: bool = True) -> None:
    """Make a call, which must be refused unless it is said that it need not be, and print how."""
    try:
        call()
    except Exception as error:
        print(f"{type(error).__name__}: {error}")
    else:
        if refused:
            raise SystemExit("nothing was raised")


if __name__ == "__main__":
    ABUSES[sys.argv[1]](Workplace())
    print("alive")
