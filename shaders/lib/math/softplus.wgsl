// softplus_f32: log(1 + e^x). At most 2.5 ULP on all x; -inf -> 0, inf -> inf, NaN -> NaN.
// uses: bits, exp, log1p
fn softplus_f32(x: f32) -> f32 {
    return keep_nan_f32(x, max(x, 0.0) + log1p_finite_f32(exp_parts_f32(-abs(x), 0.0)));
}
