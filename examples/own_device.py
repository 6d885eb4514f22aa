"""A graph on a wgpu device of one's own: its result stays on the device and goes straight into an own compute pass."""

import numpy as np
import wgpu

import webnn_wgpu as wn

# The device may be any: this one has WebGPU's default limits and no optional features.
device = wgpu.gpu.request_adapter_sync().request_device_sync(label="my device")
context = wn.ml.create_context(device)

builder = wn.MLGraphBuilder(context)
x = builder.input("x", {"dataType": "float32", "shape": [4, 4]})
graph = builder.build({"total": builder.reduce_sum(builder.relu(x), axes=[1])})

# Tensors live on the device. `dispatch` queues the graph and returns; nothing comes back to the host.
source = context.create_tensor([4, 4], "float32", writable=True)
total = context.create_tensor([4], "float32", readable=True)
context.write_tensor(source, np.arange(-8, 8, dtype=np.float32).reshape(4, 4))
context.dispatch(graph, {"x": source}, {"total": total})

# `tensor.buffer` is the wgpu.GPUBuffer under a tensor, with the usages STORAGE, COPY_SRC and COPY_DST.
shader = """
@group(0) @binding(0) var<storage, read_write> total: array<f32>;
@compute @workgroup_size(4)
fn main(@builtin(global_invocation_id) id: vec3<u32>) { total[id.x] = total[id.x] * 10.0; }
"""
pipeline = device.create_compute_pipeline(
    layout="auto", compute={"module": device.create_shader_module(code=shader), "entry_point": "main"}
)
group = device.create_bind_group(
    layout=pipeline.get_bind_group_layout(0), entries=[{"binding": 0, "resource": {"buffer": total.buffer}}]
)
encoder = device.create_command_encoder()
own_pass = encoder.begin_compute_pass()
own_pass.set_pipeline(pipeline)
own_pass.set_bind_group(0, group)
own_pass.dispatch_workgroups(1)
own_pass.end()
device.queue.submit([encoder.finish()])

# Reads wait for everything that was queued before.
print("total:", context.read_tensor(total))

# Destroying the context frees its graphs and tensors. The device is its owner's, and goes on.
context.destroy()
