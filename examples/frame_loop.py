"""A frame loop with one submit per frame: own passes and a graph in one command encoder, nothing created, nothing waited for.

The "scene" is a height field. Each frame moves it by a compute pass, lets a graph find how steep it is, and draws the answer
into a texture; a program with a window would present that.
"""

import numpy as np
import wgpu

import webnn_wgpu as wn

SIDE, FRAMES = 64, 30

MOVE = """
@group(0) @binding(0) var<storage, read_write> height: array<f32>;
@group(0) @binding(1) var<storage, read_write> frame: array<u32>;
@compute @workgroup_size(8, 8) fn main(@builtin(global_invocation_id) id: vec3<u32>) {
    let t = f32(frame[0]) * 0.2;
    height[id.y * 64u + id.x] = sin(f32(id.x) * 0.3 + t) + cos(f32(id.y) * 0.2 - t);
}
@compute @workgroup_size(1) fn tick() { frame[0] = frame[0] + 1u; }
"""

DRAW = """
@group(0) @binding(0) var<storage, read> steepness: array<f32>;
@vertex fn corner(@builtin(vertex_index) i: u32) -> @builtin(position) vec4<f32> {
    return vec4<f32>(f32(i & 1u) * 4.0 - 1.0, f32(i >> 1u) * 4.0 - 1.0, 0.0, 1.0);
}
@fragment fn shade(@builtin(position) at: vec4<f32>) -> @location(0) vec4<f32> {
    return vec4<f32>(vec3<f32>(steepness[u32(at.y) * 64u + u32(at.x)]), 1.0);
}
"""

device = wgpu.gpu.request_adapter_sync().request_device_sync(label="my device")
context = wn.ml.create_context(device)
builder = wn.MLGraphBuilder(context)
field = builder.input("height", [1, 1, SIDE, SIDE], "float32")
slopes = np.float32([[[[0, 0, 0], [-1, 0, 1], [0, 0, 0]]], [[[0, -1, 0], [0, 0, 0], [0, 1, 0]]]])
gradient = builder.conv2d(field, builder.constant(slopes), padding=[1, 1, 1, 1])
graph = builder.build({"steepness": builder.reduce_l2(gradient, axes=[1])})

usage = wgpu.BufferUsage.STORAGE | wgpu.BufferUsage.COPY_SRC
height, steepness = (device.create_buffer(size=SIDE * SIDE * 4, usage=usage) for _ in range(2))
counter = device.create_buffer(size=4, usage=usage)
inputs = {"height": context.wrap_buffer(height, [1, 1, SIDE, SIDE], "float32")}
outputs = {"steepness": context.wrap_buffer(steepness, [1, SIDE, SIDE], "float32")}

target = device.create_texture(
    size=(SIDE, SIDE), format="rgba8unorm", usage=wgpu.TextureUsage.RENDER_ATTACHMENT | wgpu.TextureUsage.COPY_SRC
)
view = target.create_view()

layout = device.create_bind_group_layout(
    entries=[{"binding": i, "visibility": wgpu.ShaderStage.COMPUTE, "buffer": {"type": "storage"}} for i in range(2)]
)
scene = device.create_bind_group(
    layout=layout, entries=[{"binding": i, "resource": {"buffer": b}} for i, b in enumerate((height, counter))]
)
module = device.create_shader_module(code=MOVE)
pipeline_layout = device.create_pipeline_layout(bind_group_layouts=[layout])
move, tick = (
    device.create_compute_pipeline(layout=pipeline_layout, compute={"module": module, "entry_point": name})
    for name in ("main", "tick")
)
shading = device.create_shader_module(code=DRAW)
draw = device.create_render_pipeline(
    layout="auto",
    vertex={"module": shading, "entry_point": "corner"},
    fragment={"module": shading, "entry_point": "shade", "targets": [{"format": "rgba8unorm"}]},
)
picture = device.create_bind_group(
    layout=draw.get_bind_group_layout(0), entries=[{"binding": 0, "resource": {"buffer": steepness}}]
)


def frame() -> None:
    encoder = device.create_command_encoder()
    own_pass = encoder.begin_compute_pass()
    own_pass.set_bind_group(0, scene)
    own_pass.set_pipeline(move)
    own_pass.dispatch_workgroups(SIDE // 8, SIDE // 8)
    own_pass.set_pipeline(tick)
    own_pass.dispatch_workgroups(1)
    own_pass.end()

    context.encode(graph, inputs, outputs, encoder)

    drawing = encoder.begin_render_pass(color_attachments=[{"view": view, "load_op": "clear", "store_op": "store"}])
    drawing.set_pipeline(draw)
    drawing.set_bind_group(0, picture)
    drawing.draw(3)
    drawing.end()
    device.queue.submit([encoder.finish()])


if __name__ == "__main__":
    for _ in range(FRAMES):
        frame()
    frames = np.frombuffer(device.queue.read_buffer(counter), np.uint32)[0]
    pixels = device.queue.read_texture({"texture": target}, {"bytes_per_row": SIDE * 4}, (SIDE, SIDE, 1))
    print(frames, "frames; mean brightness of the last:", np.asarray(pixels).reshape(-1, 4)[:, :3].mean().round(1))
