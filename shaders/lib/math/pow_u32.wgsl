// pow_u32: a to the power b, wrapping. Exact.
fn pow_u32(a: u32, b: u32) -> u32 {
    var result = 1u;
    var base = a;
    var exponent = b;
    while (exponent != 0u) {
        if ((exponent & 1u) == 1u) { result *= base; }
        base *= base;
        exponent >>= 1u;
    }
    return result;
}
