// f32_to_int32: truncates toward zero; saturates out of range; NaN gives 0. Exact.
// uses: bits
fn f32_to_int32(x: f32) -> i32 {
    // The upper end itself is not representable as a float: values at or above it are set apart, and converted as 0.
    let high = x >= 2147483648.0;
    let inside = i32(select(max(x, -2147483648.0), 0.0, high | is_nan_f32(x)));
    return select(inside, 0x7fffffff, high);
}
