// div_u64x2: integer quotient of pairs (see pair.wgsl); 0 for a zero divisor. Exact.
// uses: pair, u64x2
fn div_u64x2(a: u64x2, b: u64x2) -> u64x2 {
    if (b.x == 0u && b.y == 0u) { return u64x2(0u, 0u); }
    // Long division. The quotient's high word is 0 where the divisor has one itself, else a plain division.
    var quotient = u64x2(0u, 0u);
    var rest = u64x2(a.y, 0u);
    if (b.y == 0u) {
        quotient.y = a.y / b.x;
        rest.x = a.y % b.x;
        if (rest.x == 0u) { return u64x2(a.x / b.x, quotient.y); }
    }
    // Then bit by bit. `rest` never overflows, being at most the leading bits of the dividend that were brought down.
    for (var bit = 31i; bit >= 0i; bit--) {
        rest = shift_left_pair(rest, 1u) | u64x2((a.x >> u32(bit)) & 1u, 0u);
        if (!less_u64x2(rest, b)) {
            rest = sub_pair(rest, b);
            quotient.x |= 1u << u32(bit);
        }
    }
    return quotient;
}
