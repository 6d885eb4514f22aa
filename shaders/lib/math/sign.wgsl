// sign_f32: 1, -1 or 0. Exact on all x; +-0 and NaN -> 0.
// uses: bits
fn sign_f32(x: f32) -> f32 {
    // 0 wraps to the largest integer, so one comparison leaves out both 0 and NaN.
    return select(0.0, flip_sign_f32(1.0, x), abs_bits_f32(x) - 1u < 0x7f800000u);
}
