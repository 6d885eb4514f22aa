// finite_or_zero: x, or 0 where x is NaN or infinite.
// uses: bits
fn finite_or_zero(x: f32) -> f32 {
    return select(0.0, x, abs_bits_f32(x) < 0x7f800000u);
}
