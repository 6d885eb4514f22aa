// pow_u64x2: a pair to the power of a pair (see pair.wgsl), wrapping. Exact.
// uses: pair
fn pow_u64x2(a: u64x2, b: u64x2) -> u64x2 {
    var result = u64x2(1u, 0u);
    var base = a;
    var exponent = b;
    while ((exponent.x | exponent.y) != 0u) {
        if ((exponent.x & 1u) == 1u) { result = mul_pair(result, base); }
        base = mul_pair(base, base);
        exponent = u64x2((exponent.x >> 1u) | (exponent.y << 31u), exponent.y >> 1u);
    }
    return result;
}
