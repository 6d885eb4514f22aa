// f32_to_uint64: truncates toward zero; saturates out of range; NaN gives 0. Exact.
// uses: bits
fn f32_to_uint64(x: f32) -> u64 {
    // The upper end itself is not representable as a float: values at or above it are set apart, and converted as 0.
    let high = x >= 18446744073709551616.0;
    let inside = u64(select(max(x, 0.0), 0.0, high | is_nan_f32(x)));
    return select(inside, 18446744073709551615lu, high);
}
