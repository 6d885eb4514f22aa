// gelu_f32: x (1 + erf(x / sqrt(2))) / 2. At most 8 ULP on all x; -inf -> -0, inf -> inf, NaN -> NaN.
// uses: bits, exp

// Three factors of t = erfc(a / sqrt(2)) / 2, for a from 0 to 15, where a t underflows to 0. The last two are those of
// e^(-a^2 / 2), which may be subnormal where a t is not. Devices may take subnormal numbers for 0.
fn normal_tail_f32(a: f32) -> vec3<f32> {
    // erfcx(a / sqrt(2)) / 2 = e^(a^2 / 2) erfc(a / sqrt(2)) / 2 as a quotient of polynomials on [0, 14.5],
    // fitted by weighted least squares (Lawson); relative error of the rounded coefficients 4.0e-8.
    var p = 0.0041161608;
    p = fma(p, a, 0.040632315);
    p = fma(p, a, 0.183232576);
    p = fma(p, a, 0.438291728);
    p = fma(p, a, 0.5);
    var q = 0.0103175649;
    q = fma(q, a, 0.101856552);
    q = fma(q, a, 0.469463825);
    q = fma(q, a, 1.20249295);
    q = fma(q, a, 1.6744684);
    q = fma(q, a, 1.0);
    // a^2 / 2 in two parts, the first exact: its rounding error would be the exponential's.
    let head = head_f32(a);
    return vec3<f32>(p / q, exp_factors_f32(-0.5 * head * head, -0.5 * (a - head) * (a + head)));
}

fn gelu_f32(x: f32) -> f32 {
    // With a = |x|, the result is -a t below 0 and x (1 - t) above: no cancellation in the negative tail, where 1 + erf has none
    // of its bits left.
    let a = min(abs(x), 15.0);
    let t = normal_tail_f32(a);
    let scaled = t.x * t.y;
    let tail = a * scaled * t.z;
    // The sign is that of x, set by its bits: drivers do not keep the sign of a 0 that arithmetic makes.
    return keep_nan_f32(x, flip_sign_f32(select(tail, x * (1.0 - scaled * t.z), x > 0.0), x));
}
