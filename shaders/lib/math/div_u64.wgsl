// div_u64: integer quotient; 0 for a zero divisor. Exact.
fn div_u64(a: u64, b: u64) -> u64 {
    return select(a / select(b, 1lu, b == 0lu), 0lu, b == 0lu);
}
