// gelu_slope: the derivative of gelu, F(x) + x f(x) with the normal distribution F and its density f. NaN -> NaN.
// uses: bits, exp, gelu
fn gelu_slope(x: f32) -> f32 {
    // With a = |x| and t = 1 - F(a), the result is t - a f(a) below 0 and 1 less that above.
    let a = min(abs(x), 15.0);
    let t = normal_tail_f32(a);
    let below = (t.x - 0.3989422804 * a) * t.y * t.z;
    return keep_nan_f32(x, select(below, 1.0 - below, x > 0.0));
}
