// sigmoid_f32: 1 / (1 + e^-x). At most 3 ULP on all x; -inf -> 0, inf -> 1, NaN -> NaN.
// uses: bits, exp
fn sigmoid_f32(x: f32) -> f32 {
    // e^-|x| cannot overflow.
    let e = exp_parts_f32(-abs(x), 0.0);
    return keep_nan_f32(x, select(1.0, e, x < 0.0) / (1.0 + e));
}
