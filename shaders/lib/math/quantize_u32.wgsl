// quantize_u32: round_even(x) + zero, limited to the type's range; NaN gives 0. Exact.
// uses: bits, f32_to_uint32, round_even
fn quantize_u32(x: f32, zero: u32) -> u32 {
    // A magnitude of 2^32 and more reaches the end of the range from any zero point, as 2^32 - 1 does.
    let step = f32_to_uint32(abs(round_even_f32(x)));
    let up = select(zero + step, 0xffffffffu, step > 0xffffffffu - zero);
    let down = select(zero - step, 0u, step > zero);
    return select(select(up, down, x < 0.0), 0u, is_nan_f32(x));
}
