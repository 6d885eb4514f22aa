// softsign_f32: x / (1 + |x|). At most 1.5 ULP on all x; +-inf -> +-1, NaN -> NaN.
// uses: bits, quotient
fn softsign_f32(x: f32) -> f32 {
    // Beyond 2^25 the quotient is +-1; the bound keeps infinity out of it. The divisor is 1 where x is too small to be divided.
    let a = min(abs(x), 33554432.0);
    return keep_nan_f32(x, flip_sign_f32(quotient_f32(a, 1.0 + a), x));
}
