"""Buffers in, buffers out: a graph between two buffers of one's own, and not a byte over the host.

`own_work` fills the first buffer with a compute pass of the program's own; the graph reads it there and writes its result into
the second, which could go straight on to another pass, or into a vertex shader.
"""

import numpy as np
import wgpu

import webnn_wgpu as wn

SIDE = 16

WAVES = """
@group(0) @binding(0) var<storage, read_write> image: array<f32>;
@compute @workgroup_size(16, 16) fn main(@builtin(global_invocation_id) id: vec3<u32>) {
    image[id.y * 16u + id.x] = sin(f32(id.x)) * cos(f32(id.y));
}
"""

# The graph: a blur of 3x3 points that keeps the size.
device = wgpu.gpu.request_adapter_sync().request_device_sync(label="my device")
context = wn.ml.create_context(device)
builder = wn.MLGraphBuilder(context)
image = builder.input("image", [1, 1, SIDE, SIDE], "float32")
kernel = builder.constant(np.full((1, 1, 3, 3), 1 / 9, np.float32))
graph = builder.build({"blurred": builder.conv2d(image, kernel, padding=[1, 1, 1, 1])})

# The program's own buffers, as tensors. Wrap once, and use the tensors as often as you like.
usage = wgpu.BufferUsage.STORAGE | wgpu.BufferUsage.COPY_SRC
source, target = (device.create_buffer(size=SIDE * SIDE * 4, usage=usage) for _ in range(2))
x = context.wrap_buffer(source, [1, 1, SIDE, SIDE], "float32")
y = context.wrap_buffer(target, [1, 1, SIDE, SIDE], "float32")

pipeline = device.create_compute_pipeline(
    layout="auto", compute={"module": device.create_shader_module(code=WAVES), "entry_point": "main"}
)
group = device.create_bind_group(
    layout=pipeline.get_bind_group_layout(0), entries=[{"binding": 0, "resource": {"buffer": source}}]
)


def own_work() -> wgpu.GPUCommandBuffer:
    encoder = device.create_command_encoder()
    compute_pass = encoder.begin_compute_pass()
    compute_pass.set_pipeline(pipeline)
    compute_pass.set_bind_group(0, group)
    compute_pass.dispatch_workgroups(1)
    compute_pass.end()
    return encoder.finish()


def run() -> None:
    device.queue.submit([own_work()])
    context.dispatch(graph, {"image": x}, {"blurred": y})


if __name__ == "__main__":
    for _ in range(3):
        run()
    # For the eyes alone: this is the first copy to the host.
    result = np.frombuffer(device.queue.read_buffer(target), np.float32).reshape(SIDE, SIDE)
    print("the blurred waves lie between", result.min().round(2), "and", result.max().round(2))
