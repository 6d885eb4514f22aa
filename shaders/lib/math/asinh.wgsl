// asinh_f32: inverse hyperbolic sine. At most 2 ULP on all x; +-inf -> +-inf, NaN -> NaN.
// uses: bits, log, log1p, sqrt
fn asinh_f32(x: f32) -> f32 {
    let a = abs(x);
    // Cephes asinhf: (asinh(a) / a - 1) / a^2 for a < 1/2.
    let s = min(a, 0.5);
    let z = s * s;
    var p = 2.0122003309e-2;
    p = fma(p, z, -4.2699340972e-2);
    p = fma(p, z, 7.4847586088e-2);
    p = fma(p, z, -1.6666288134e-1);
    let small = fma(p * z, a, a);
    // log(a + sqrt(a^2 + 1)), the 1 split off; beyond 4096 that is log(2 a) to the last bit.
    let m = min(a, 4096.0);
    let middle = log1p_finite_f32(m + m * m / (1.0 + sqrt_f32(fma(m, m, 1.0))));
    let split = log_split_f32(min(a, 3.4028234663852886e38));
    let large = log_parts_f32(split.m - 1.0, split.e + 1.0);
    let finite = select(select(large, middle, a < 4096.0), small, a < 0.5);
    return keep_nan_f32(x, flip_sign_f32(select(finite, inf_f32(), is_inf_f32(x)), x));
}
