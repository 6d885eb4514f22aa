// f32_to_int64: truncates toward zero; saturates out of range; NaN gives 0. Exact.
// uses: bits
fn f32_to_int64(x: f32) -> i64 {
    // The upper end itself is not representable as a float: values at or above it are set apart, and converted as 0.
    let high = x >= 9223372036854775808.0;
    let inside = i64(select(max(x, -9223372036854775808.0), 0.0, high | is_nan_f32(x)));
    return select(inside, 9223372036854775807li, high);
}
