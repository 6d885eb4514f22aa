// quantize_narrow: round_even(x) + zero, limited to low..high, for types of at most 8 bits; NaN gives 0. Exact.
// uses: bits, round_even
fn quantize_narrow(x: f32, zero: i32, low: i32, high: i32) -> i32 {
    // No zero point brings what lies beyond 1024 back into an 8-bit range.
    let sum = i32(clamp(round_even_f32(x), -1024.0, 1024.0)) + zero;
    return select(clamp(sum, low, high), 0i, is_nan_f32(x));
}
