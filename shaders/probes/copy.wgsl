// probe: memory  (webnn_wgpu/runtime/peak.py)
// A quad per invocation, neighbours next to each other: the pattern that reaches the most bytes per second.
@group(0) @binding(0) var<storage, read> source: array<vec4<f32>>;
@group(0) @binding(1) var<storage, read_write> result: array<vec4<f32>>;

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3<u32>, @builtin(num_workgroups) workgroups: vec3<u32>) {
    let i = id.x + id.y * workgroups.x * 64u;
    if (i < arrayLength(&source)) {
        result[i] = source[i];
    }
}
