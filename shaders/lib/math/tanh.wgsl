// tanh_f32: hyperbolic tangent. At most 1.5 ULP on all x; +-inf -> +-1, NaN -> NaN.
// uses: bits, exp
fn tanh_f32(x: f32) -> f32 {
    let a = abs(x);
    let z = a * a;
    // Cephes tanhf: (tanh(a) / a - 1) / a^2 for a < 0.625.
    var p = -5.70498872745e-3;
    p = fma(p, z, 2.06390887954e-2);
    p = fma(p, z, -5.37397155531e-2);
    p = fma(p, z, 1.33314422036e-1);
    p = fma(p, z, -3.33332819422e-1);
    let small = fma(p * z, a, a);
    // Beyond 10 the quotient no longer changes the 1.
    let large = 1.0 - 2.0 / (exp_parts_f32(2.0 * min(a, 10.0), 0.0) + 1.0);
    return keep_nan_f32(x, flip_sign_f32(select(large, small, a < 0.625), x));
}
