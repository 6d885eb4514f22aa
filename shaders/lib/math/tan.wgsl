// tan_f32: tangent. At most 4 ULP on all finite x, however large; +-inf -> NaN, NaN -> NaN.
// uses: bits, trig
fn tan_f32(x: f32) -> f32 {
    let reduced = trig_reduce_f32(x);
    let z = reduced.r * reduced.r;
    // Cephes tanf: (tan(r) / r - 1) / r^2 on |r| <= pi/4.
    var p = 9.38540185543e-3;
    p = fma(p, z, 3.11992232697e-3);
    p = fma(p, z, 2.44301354525e-2);
    p = fma(p, z, 5.34112807005e-2);
    p = fma(p, z, 1.33387994085e-1);
    p = fma(p, z, 3.33331568548e-1);
    let t = fma(p * z, reduced.r, reduced.r);
    // tan(r + pi/2) = -1 / tan(r)
    let value = select(t, -1.0 / t, (reduced.quadrant & 1u) != 0u);
    return select(flip_sign_f32(value, x), nan_f32(), abs_bits_f32(x) >= 0x7f800000u);
}
