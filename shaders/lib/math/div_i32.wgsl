// div_i32: integer quotient truncated toward zero; 0 for a zero divisor; the lowest value divided by -1 is itself. Exact.
fn div_i32(a: i32, b: i32) -> i32 {
    // Divisors 0 and -1 are replaced before the division: WGSL leaves neither overflow nor division by zero to us.
    let by_minus_one = b == -1i;
    let quotient = a / select(b, 1i, (b == 0i) | by_minus_one);
    return select(select(quotient, -a, by_minus_one), 0i, b == 0i);
}
