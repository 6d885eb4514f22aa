// acosh_f32: inverse hyperbolic cosine. At most 2 ULP on all x; x < 1 -> NaN, inf -> inf, NaN -> NaN.
// uses: bits, log, log1p, sqrt
fn acosh_f32(x: f32) -> f32 {
    // log(x + sqrt(x^2 - 1)), the 1 split off; beyond 4096 that is log(2 x) to the last bit.
    let t = clamp(x, 1.0, 4096.0) - 1.0;
    let small = log1p_finite_f32(t + sqrt_f32(t * (t + 2.0)));
    let split = log_split_f32(clamp(x, 1.0, 3.4028234663852886e38));
    let large = log_parts_f32(split.m - 1.0, split.e + 1.0);
    let bits = bitcast<u32>(x);
    let value = select(select(large, small, x < 4096.0), inf_f32(), bits == 0x7f800000u);
    // Negative numbers, and NaN, have bits beyond infinity's.
    return select(value, nan_f32(), (bits < 0x3f800000u) | (bits > 0x7f800000u));
}
