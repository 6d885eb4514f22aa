// gelu_slope: the derivative of gelu, F(x) + x f(x) with the normal distribution F and its density f. NaN -> NaN.
// uses: bits, exp, gelu
fn gelu_slope(x: f32) -> f32 {
    // At 15 both f and F - 1 are below the smallest number.
    let c = clamp(x, -15.0, 15.0);
    // e^(-a^2 / 2), as gelu_f32 computes it: once for both.
    let a = abs(c);
    let head = head_f32(a);
    let gauss = exp_parts_f32(-0.5 * head * head, -0.5 * (a - head) * (a + head));
    // gelu(x) / x has all the digits that 1 + erf has lost in the negative tail.
    let cumulated = select(gelu_f32(c) / c, 0.5, a < 1e-30);
    return keep_nan_f32(x, cumulated + 0.3989422804 * c * gauss);
}
