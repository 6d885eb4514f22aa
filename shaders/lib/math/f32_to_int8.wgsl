// f32_to_int8: truncates toward zero; saturates out of range; NaN gives 0. Exact.
// uses: bits
fn f32_to_int8(x: f32) -> i32 {
    return select(i32(clamp(x, -128.0, 127.0)), 0i, is_nan_f32(x));
}
