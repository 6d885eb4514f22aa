// div_i64x2: integer quotient of pairs, truncated toward zero; 0 for a zero divisor; the lowest value divided by -1 is itself. Exact.
// uses: i64x2, div_u64x2
fn div_i64x2(a: i64x2, b: i64x2) -> i64x2 {
    let magnitude = div_u64x2(abs_i64x2(a), abs_i64x2(b));
    return select(magnitude, neg_pair(magnitude), is_negative_i64x2(a ^ b));
}
