// sqrt_f32: square root. At most 0.5001 ULP on all x; -0 -> -0, x < 0 -> NaN, inf -> inf.
// uses: bits
fn sqrt_f32(x: f32) -> f32 {
    let bits = bitcast<u32>(x);
    // +-0, +inf and NaN are their own square roots.
    let itself = (abs_bits_f32(x) == 0u) | (bits == 0x7f800000u) | is_nan_f32(x);
    // A subnormal is an integer multiple of 2^-149: twice that integer is x 2^150, a normal number.
    let subnormal = bits < 0x00800000u;
    let normal_bits = select(bits, bitcast<u32>(f32(bits << 1u)), subnormal);
    // m 2^(2 n) with m in [1/2, 2).
    let m_bits = (normal_bits & 0x00ffffffu) | 0x3f000000u;
    let n_bits = bitcast<i32>(normal_bits - m_bits) >> 1u;
    // WGSL promises the accuracy of 1 / inverseSqrt(). What the square of that root leaves of m corrects it, in exact products
    // of heads. The factor is just below a half, so that a correction of half a unit cannot be rounded up to one.
    let m = bitcast<f32>(m_bits);
    let root = sqrt(m);
    let head = head_f32(root);
    let again = positive_head_f32(root);
    let rest = ((m - head * head) - (again + again) * (root - head)) - (root - again) * (root - again);
    let corrected = fma(rest, 0.49999997 * inverseSqrt(m), root);
    let scaled = bitcast<u32>(bitcast<i32>(corrected) + n_bits - select(0i, 75i << 23u, subnormal));
    let result = select(scaled, 0x7fc00000u, bits > 0x80000000u);
    return bitcast<f32>(select(result, bits, itself));
}
