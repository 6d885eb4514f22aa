// sin_f32: sine. At most 3 ULP on all finite x, however large; +-inf -> NaN, NaN -> NaN.
// uses: bits, trig
fn sin_f32(x: f32) -> f32 {
    return flip_sign_f32(sin_shifted_f32(x, 0u), x);
}
