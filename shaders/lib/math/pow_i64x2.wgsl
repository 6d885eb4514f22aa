// pow_i64x2: a pair to the power of a pair, wrapping. Negative exponents give 1 for base 1, +-1 for base -1, else 0. Exact.
// uses: i64x2, pow_u64x2
fn pow_i64x2(a: i64x2, b: i64x2) -> i64x2 {
    let one = i64x2(1u, 0u);
    let minus_one = i64x2(0xffffffffu, 0xffffffffu);
    if (is_negative_i64x2(b)) {
        let unit = select(one, minus_one, ((b.x & 1u) == 1u) & equal_pair(a, minus_one));
        return select(i64x2(0u, 0u), unit, equal_pair(a, one) | equal_pair(a, minus_one));
    }
    // Modulo 2^64 signs take care of themselves.
    return pow_u64x2(a, b);
}
