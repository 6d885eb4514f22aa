// pow_u64: a to the power b, wrapping. Exact.
fn pow_u64(a: u64, b: u64) -> u64 {
    var result = 1lu;
    var base = a;
    var exponent = b;
    while (exponent != 0lu) {
        if ((exponent & 1lu) == 1lu) { result *= base; }
        base *= base;
        exponent >>= 1u;
    }
    return result;
}
