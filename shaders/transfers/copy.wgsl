// copy: the items of one buffer become the last items of another.  (webnn_wgpu/runtime/transfers.py)
// Declared in front: Item, u32 or a vector of it, and LAST, the bits of the destination's last item that may change. The others
// belong to somebody else. One invocation reads the item and writes it back with them.
@group(0) @binding(0) var<storage, read> source: array<Item>;
@group(0) @binding(1) var<storage, read_write> destination: array<Item>;

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3<u32>, @builtin(num_workgroups) workgroups: vec3<u32>) {
    let count = arrayLength(&source);
    let end = arrayLength(&destination);
    for (var i = id.x; i < count; i += workgroups.x * 64u) {
        let at = end - count + i;
        if (at + 1u == end) {
            destination[at] = (destination[at] & ~LAST) | (source[i] & LAST);
        } else {
            destination[at] = source[i];
        }
    }
}
