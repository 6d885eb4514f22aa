// div_u64x2: integer quotient of pairs (see pair.wgsl); 0 for a zero divisor. Exact.
// uses: pair, u64x2
fn div_u64x2(a: u64x2, b: u64x2) -> u64x2 {
    if (b.x == 0u && b.y == 0u) { return u64x2(0u, 0u); }
    if (a.y == 0u && b.y == 0u) { return u64x2(a.x / b.x, 0u); }
    // Long division, bit by bit: `rest` holds the dividend's bits that no quotient bit has used up yet. It never overflows,
    // being at most the leading bits of the dividend that were brought down.
    var quotient = u64x2(0u, 0u);
    var rest = u64x2(0u, 0u);
    for (var bit = 63i; bit >= 0i; bit--) {
        let word = select(a.x, a.y, bit >= 32i);
        rest = shift_left_pair(rest, 1u) | u64x2((word >> (u32(bit) & 31u)) & 1u, 0u);
        quotient = shift_left_pair(quotient, 1u);
        if (!less_u64x2(rest, b)) {
            rest = sub_pair(rest, b);
            quotient.x |= 1u;
        }
    }
    return quotient;
}
