// probe: float32 arithmetic  (webnn_wgpu/runtime/peak.py)
// Sixteen sums per invocation that do not wait for each other, in quads: enough to hide the latency of a multiply-add on
// hardware, and as many as stay in a processor's vector registers on software adapters, if the factors take but two of those. They
// come from memory, so that nothing is known of them beforehand; with factors of one half every sum tends to 1.
@group(0) @binding(0) var<storage, read> factors: array<vec4<f32>>;
@group(0) @binding(1) var<storage, read_write> result: array<vec4<f32>>;

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
    let a = vec4<f32>(factors[0].x);
    let b = vec4<f32>(factors[1].x);
    var s0 = vec4<f32>(f32(id.x));
    var s1 = s0 + a;
    var s2 = s1 + a;
    var s3 = s2 + a;
    for (var i = 0u; i < 256u; i++) {
        s0 = fma(s0, a, b);
        s1 = fma(s1, a, b);
        s2 = fma(s2, a, b);
        s3 = fma(s3, a, b);
        s0 = fma(s0, a, b);
        s1 = fma(s1, a, b);
        s2 = fma(s2, a, b);
        s3 = fma(s3, a, b);
        s0 = fma(s0, a, b);
        s1 = fma(s1, a, b);
        s2 = fma(s2, a, b);
        s3 = fma(s3, a, b);
        s0 = fma(s0, a, b);
        s1 = fma(s1, a, b);
        s2 = fma(s2, a, b);
        s3 = fma(s3, a, b);
    }
    let sum = s0 + s1 + s2 + s3;
    // Never so, but a compiler cannot know: nothing is written, and nothing can be left out.
    if (sum.x == -1.0) {
        result[0] = sum;
    }
}
