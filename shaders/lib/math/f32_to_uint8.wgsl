// f32_to_uint8: truncates toward zero; saturates out of range; NaN gives 0. Exact.
// uses: bits
fn f32_to_uint8(x: f32) -> u32 {
    return select(u32(clamp(x, 0.0, 255.0)), 0u, is_nan_f32(x));
}
