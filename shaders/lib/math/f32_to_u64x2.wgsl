// f32_to_u64x2: truncates toward zero to an unsigned pair (see pair.wgsl); saturates out of range; NaN gives 0. Exact.
// uses: bits, pair

// |x| truncated, for |x| below 2^64.
fn truncated_magnitude_f32(x: f32) -> u64x2 {
    let bits = abs_bits_f32(x);
    let exponent = bits >> 23u;
    let significand = (bits & 0x7fffffu) | 0x800000u;
    // x is its significand times 2^(exponent - 150); numbers below 1 lose all 24 bits of it.
    let small = u64x2(significand >> min(150u - min(exponent, 150u), 31u), 0u);
    let large = shift_left_pair(u64x2(significand, 0u), min(max(exponent, 150u) - 150u, 63u));
    return select(large, small, exponent < 150u);
}

fn f32_to_u64x2(x: f32) -> u64x2 {
    let bits = bitcast<u32>(x);
    // 0x5f800000 is 2^64.
    let inside = select(truncated_magnitude_f32(x), u64x2(0u, 0u), ((bits >> 31u) != 0u) | is_nan_f32(x));
    return select(inside, u64x2(0xffffffffu, 0xffffffffu), (bits >= 0x5f800000u) & (bits <= 0x7f800000u));
}
