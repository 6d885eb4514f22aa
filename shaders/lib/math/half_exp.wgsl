// half_exp_f32: e^x / 2. At most 1.5 ULP on all x; overflow -> inf, underflow -> 0, NaN -> NaN.
// uses: bits, exp
fn half_exp_f32(x: f32) -> f32 {
    // Large results are not halved but computed from x - ln 2, so that they overflow no earlier. From 1 on the difference with
    // the first part of ln 2 is exact; the parts are those of exp_parts_f32.
    let large = x >= 1.0;
    let value = exp_parts_f32(select(x, min(x, 100.0) - 0.693359375, large), select(0.0, 2.12194440e-4, large));
    return keep_nan_f32(x, value * select(0.5, 1.0, large));
}
