// fmod_f32: x - n y, n being x / y truncated. Exact on all x and y, however far apart; x inf, y 0 or NaN -> NaN.
// uses: bits
fn fmod_f32(x: f32, y: f32) -> f32 {
    let a = abs_bits_f32(x);
    let b = abs_bits_f32(y);
    // Long division of the significands, eight bits of the quotient at a time. Subnormals have the exponent of the smallest
    // normal numbers and no leading 1.
    let exponent = max(b >> 23u, 1u);
    let divisor = max((b & 0x7fffffu) | select(0u, 0x800000u, b >= 0x800000u), 1u);
    var rest = ((a & 0x7fffffu) | select(0u, 0x800000u, a >= 0x800000u)) % divisor;
    var shift = max(max(a >> 23u, 1u), exponent) - exponent;
    while (shift > 0u) {
        let step = min(shift, 8u);
        rest = (rest << step) % divisor;
        shift -= step;
    }
    // rest 2^(exponent - 150), its leading 1 brought to bit 23 as far as the exponent allows.
    let lead = min(countLeadingZeros(rest) - 8u, exponent - 1u);
    let magnitude = select(((exponent - lead - 1u) << 23u) + (rest << lead), 0u, rest == 0u);
    let sign = bitcast<u32>(x) & 0x80000000u;
    let bits = select(magnitude | sign, bitcast<u32>(x), a < b);
    return bitcast<f32>(select(bits, 0x7fc00000u, (a >= 0x7f800000u) | (b == 0u) | (b > 0x7f800000u)));
}
