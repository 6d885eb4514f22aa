// quantize_i32: round_even(x) + zero, limited to the type's range; NaN gives 0. Exact.
// uses: bits, quantize_u32
fn quantize_i32(x: f32, zero: i32) -> i32 {
    // Shifted by 2^31 the signed range is the unsigned one.
    let shifted = bitcast<i32>(quantize_u32(x, bitcast<u32>(zero) ^ 0x80000000u) ^ 0x80000000u);
    return select(shifted, 0i, is_nan_f32(x));
}
