// exp_f32: e^x. At most 1.5 ULP on all x; overflow -> inf, underflow -> 0, NaN -> NaN.
// uses: bits

// Two factors of e^(hi + lo) for a small correction lo (|lo| <= 1), none of them subnormal. The result for NaN is
// unspecified.
fn exp_factors_f32(hi: f32, lo: f32) -> vec2<f32> {
    // Just beyond the largest result, so that the scaling saturates by itself, and far enough below the smallest one
    // that a factor of some thousands does not change its 0.
    let x = clamp(hi, -120.0, 88.8);
    let n = round((x + lo) * 1.4426950408889634);
    // Cody-Waite: ln 2 = 0.693359375 - 2.12194440e-4, the first part short enough that n times it is
    // exact. head_f32(n) is n: Mesa factors n out of the sum of two products with n, fma() or not.
    let r = fma(head_f32(n), 2.12194440e-4, fma(n, -0.693359375, x)) + lo;
    // Cephes expf: (e^r - 1 - r) / r^2 on [-ln2 / 2, ln2 / 2].
    var p = 1.9875691500e-4;
    p = fma(p, r, 1.3981999507e-3);
    p = fma(p, r, 8.3334519073e-3);
    p = fma(p, r, 4.1665795894e-2);
    p = fma(p, r, 1.6666665459e-1);
    p = fma(p, r, 5.0000001201e-1);
    let y = fma(p * r, r, r);
    // 2^n as two factors: 2^128 and the subnormal 2^-149 have no normal representation.
    let scale = i32(n);
    let first = scale >> 1u;
    let s = bitcast<f32>((first + 127) << 23u);
    // s y + s is s (y + 1), but compilers re-associate the sum with a constant 1 at the cost of half an ULP.
    return vec2<f32>(fma(y, s, s), bitcast<f32>((scale - first + 127) << 23u));
}

// e^(hi + lo), as above.
fn exp_parts_f32(hi: f32, lo: f32) -> f32 {
    let e = exp_factors_f32(hi, lo);
    return e.x * e.y;
}

fn exp_f32(x: f32) -> f32 {
    return keep_nan_f32(x, exp_parts_f32(x, 0.0));
}
