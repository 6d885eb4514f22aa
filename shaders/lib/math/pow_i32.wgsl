// pow_i32: a to the power b, wrapping. Negative exponents give 1 for base 1, +-1 for base -1, else 0. Exact.
fn pow_i32(a: i32, b: i32) -> i32 {
    var result = 1i;
    var base = a;
    var exponent = b;
    if (b < 0i) {
        let odd = (b & 1i) == 1i;
        return select(select(0i, select(1i, -1i, odd), a == -1i), 1i, a == 1i);
    }
    while (exponent != 0i) {
        if ((exponent & 1i) == 1i) { result *= base; }
        base *= base;
        exponent >>= 1u;
    }
    return result;
}
