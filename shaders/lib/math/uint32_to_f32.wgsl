// uint32_to_f32: the float32 nearest to an unsigned integer, halves to even. Exact rounding.
// WGSL lets a conversion round either way. Both halves are exact, and so is the product, so that the sum alone rounds.
fn uint32_to_f32(x: u32) -> f32 {
    return f32(x >> 16u) * 65536.0 + f32(x & 0xffffu);
}
