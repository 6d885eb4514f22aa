// sqrt_f32: square root. At most 0.5 ULP, the device's own rounding, on all x; -0 -> -0, x < 0 -> NaN, inf -> inf.
// uses: bits
fn sqrt_f32(x: f32) -> f32 {
    let bits = bitcast<u32>(x);
    // +-0, +inf and NaN are their own square roots; some devices compute x * inverseSqrt(x), NaN for 0 and inf.
    let itself = (abs_bits_f32(x) == 0u) | (bits == 0x7f800000u) | is_nan_f32(x);
    let root = select(sqrt(abs(x)), nan_f32(), bits > 0x80000000u);
    return bitcast<f32>(select(bitcast<u32>(root), bits, itself));
}
