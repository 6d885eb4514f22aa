// quotient_f32: x / y for magnitudes from 2^-50 to 2^50, or x = 0, neither negative. At most 0.5001 ULP on all such x and y.
// uses: bits
fn quotient_f32(x: f32, y: f32) -> f32 {
    // WGSL promises 2.5 ULP of a division, and drivers multiply by the reciprocal. What that quotient leaves of x corrects it.
    // fma() may be rounded twice, so it is found from exact products of heads.
    let inverse = 1.0 / y;
    let quotient = x * inverse;
    let a = head_f32(quotient);
    let b = head_f32(y);
    let a_again = positive_head_f32(quotient);
    let b_again = positive_head_f32(y);
    // No two products have a common factor, as far as a compiler knows.
    let rest = ((x - a * b) - a_again * (y - b)) - (quotient - a) * b_again - (quotient - a_again) * (y - b_again);
    // Without its last bit the inverse is another factor than that of the quotient. A cleared sign bit is not enough: for y = 1 + x,
    // Mesa 25 factored the inverse out.
    return fma(rest, bitcast<f32>(bitcast<u32>(inverse) & 0xfffffffeu), quotient);
}
