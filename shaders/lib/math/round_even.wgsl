// round_even_f32: nearest integer, halves to even. Exact on all x; +-0 and +-inf -> themselves, NaN -> NaN.
// uses: bits
fn round_even_f32(x: f32) -> f32 {
    // Beyond 2^23 every float32 is an integer; passing x itself keeps infinity and NaN.
    return bitcast<f32>(select(bitcast<u32>(round(x)), bitcast<u32>(x), abs_bits_f32(x) >= 0x4b000000u));
}
