// softsign_f32: x / (1 + |x|). At most 2 ULP on all x; +-inf -> +-1, NaN -> NaN.
// uses: bits
fn softsign_f32(x: f32) -> f32 {
    // Beyond 2^25 the quotient is +-1; the bound keeps infinity out of it.
    let c = clamp(x, -33554432.0, 33554432.0);
    return keep_nan_f32(x, c / (1.0 + abs(c)));
}
