// round_bfloat16: nearest bfloat16, halves to even; beyond the largest infinity; NaN stays as it is. Exact.
// uses: bits
fn round_bfloat16(x: f32) -> f32 {
    let bits = bitcast<u32>(x);
    // bfloat16 is the high half of float32. A carry raises the exponent as it should, up to infinity's.
    let rounded = (bits + 0x7fffu + ((bits >> 16u) & 1u)) & 0xffff0000u;
    return keep_nan_f32(x, bitcast<f32>(rounded));
}
