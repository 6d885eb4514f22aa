// i64x2_to_f32: the float32 nearest to a signed pair (see pair.wgsl), halves to even. Exact rounding.
// uses: i64x2, u64x2_to_f32
fn i64x2_to_f32(a: i64x2) -> f32 {
    let magnitude = u64x2_to_f32(abs_i64x2(a));
    return select(magnitude, -magnitude, is_negative_i64x2(a));
}
