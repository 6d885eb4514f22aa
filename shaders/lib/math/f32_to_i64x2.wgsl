// f32_to_i64x2: truncates toward zero to a signed pair (see pair.wgsl); saturates out of range; NaN gives 0. Exact.
// uses: bits, pair, f32_to_u64x2
fn f32_to_i64x2(x: f32) -> i64x2 {
    let negative = (bitcast<u32>(x) >> 31u) != 0u;
    let magnitude = truncated_magnitude_f32(x);
    let inside = select(select(magnitude, neg_pair(magnitude), negative), i64x2(0u, 0u), is_nan_f32(x));
    let highest = select(i64x2(0xffffffffu, 0x7fffffffu), i64x2(0u, 0x80000000u), negative);
    // 0x5f000000 is 2^63.
    return select(inside, highest, (abs_bits_f32(x) >= 0x5f000000u) & !is_nan_f32(x));
}
