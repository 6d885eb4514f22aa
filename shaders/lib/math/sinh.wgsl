// sinh_f32: hyperbolic sine. At most 2 ULP on all x; overflow -> +-inf, NaN -> NaN.
// uses: bits, half_exp
fn sinh_f32(x: f32) -> f32 {
    let a = abs(x);
    // Cephes sinhf: (sinh(a) / a - 1) / a^2 for a <= 1.
    let z = min(a, 1.0) * min(a, 1.0);
    var p = 2.03721912945e-4;
    p = fma(p, z, 8.33028376239e-3);
    p = fma(p, z, 1.66667160211e-1);
    let small = fma(p * z, a, a);
    // (e^a - e^-a) / 2; the second term no longer counts where the first is large.
    let half = half_exp_f32(max(a, 1.0));
    let large = half - 0.25 / min(half, 1e30);
    return keep_nan_f32(x, flip_sign_f32(select(large, small, a <= 1.0), x));
}
