// div_i64: integer quotient truncated toward zero; 0 for a zero divisor; the lowest value divided by -1 is itself. Exact.
fn div_i64(a: i64, b: i64) -> i64 {
    // Divisors 0 and -1 are replaced before the division: WGSL leaves neither overflow nor division by zero to us.
    let by_minus_one = b == -1li;
    let quotient = a / select(b, 1li, (b == 0li) | by_minus_one);
    return select(select(quotient, -a, by_minus_one), 0li, b == 0li);
}
