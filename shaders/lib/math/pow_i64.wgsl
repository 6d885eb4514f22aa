// pow_i64: a to the power b, wrapping. Negative exponents give 1 for base 1, +-1 for base -1, else 0. Exact.
fn pow_i64(a: i64, b: i64) -> i64 {
    var result = 1li;
    var base = a;
    var exponent = b;
    if (b < 0li) {
        let odd = (b & 1li) == 1li;
        return select(select(0li, select(1li, -1li, odd), a == -1li), 1li, a == 1li);
    }
    while (exponent != 0li) {
        if ((exponent & 1li) == 1li) { result *= base; }
        base *= base;
        exponent >>= 1u;
    }
    return result;
}
