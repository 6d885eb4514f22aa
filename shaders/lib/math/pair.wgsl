// pair: 64-bit integers as vec2<u32>(low, high), for devices without the types. Exact: everything wraps modulo 2^64.
// These functions depend on no sign; those whose names end in i64x2 and u64x2 read a pair as signed and as unsigned.
alias i64x2 = vec2<u32>;
alias u64x2 = vec2<u32>;

fn add_pair(a: vec2<u32>, b: vec2<u32>) -> vec2<u32> {
    let low = a.x + b.x;
    return vec2<u32>(low, a.y + b.y + select(0u, 1u, low < a.x));
}

fn sub_pair(a: vec2<u32>, b: vec2<u32>) -> vec2<u32> {
    return vec2<u32>(a.x - b.x, a.y - b.y - select(0u, 1u, a.x < b.x));
}

fn neg_pair(a: vec2<u32>) -> vec2<u32> {
    return sub_pair(vec2<u32>(0u, 0u), a);
}

fn equal_pair(a: vec2<u32>, b: vec2<u32>) -> bool {
    return (a.x == b.x) & (a.y == b.y);
}

fn mul_pair(a: vec2<u32>, b: vec2<u32>) -> vec2<u32> {
    // The high word of a.x b.x from products of 16 bits each, none of whose sums overflows.
    let a0 = a.x & 0xffffu;
    let a1 = a.x >> 16u;
    let b0 = b.x & 0xffffu;
    let b1 = b.x >> 16u;
    let middle = a1 * b0 + ((a0 * b0) >> 16u);
    let carry = a0 * b1 + (middle & 0xffffu);
    let high = a1 * b1 + (middle >> 16u) + (carry >> 16u);
    return vec2<u32>(a.x * b.x, high + a.x * b.y + a.y * b.x);
}

// a 2^count for count below 64.
fn shift_left_pair(a: vec2<u32>, count: u32) -> vec2<u32> {
    let s = count & 31u;
    // (x >> 1) >> (31 - s) is x >> (32 - s), defined for 0 too.
    let within = vec2<u32>(a.x << s, (a.y << s) | ((a.x >> 1u) >> (31u - s)));
    return select(within, vec2<u32>(0u, a.x << s), count >= 32u);
}
