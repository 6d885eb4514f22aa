// bits: tests and values by bit pattern. Exact on every bit pattern.
// Shader compilers may assume that NaN and infinity do not occur (x != x becomes false), so all
// tests here look at the bits, and NaN is moved as an integer.
fn f32_of_bits(bits: u32) -> f32 {
    return bitcast<f32>(bits);
}

// A literal bitcast to infinity or NaN is a compile error in WGSL; a function's parameter is not a constant.
fn inf_f32() -> f32 {
    return f32_of_bits(0x7f800000u);
}

fn nan_f32() -> f32 {
    return f32_of_bits(0x7fc00000u);
}

// The bits of |x|. Their order as integers is the order of the magnitudes, with NaN above infinity.
fn abs_bits_f32(x: f32) -> u32 {
    return bitcast<u32>(x) & 0x7fffffffu;
}

fn is_nan_f32(x: f32) -> bool {
    return abs_bits_f32(x) > 0x7f800000u;
}

fn is_inf_f32(x: f32) -> bool {
    return abs_bits_f32(x) == 0x7f800000u;
}

// x where x is NaN, else result: the last step of functions whose arithmetic may lose a NaN.
fn keep_nan_f32(x: f32, result: f32) -> f32 {
    return bitcast<f32>(select(bitcast<u32>(result), bitcast<u32>(x), is_nan_f32(x)));
}

// magnitude with its sign flipped where x is negative (-0 included).
fn flip_sign_f32(magnitude: f32, x: f32) -> f32 {
    return bitcast<f32>(bitcast<u32>(magnitude) ^ (bitcast<u32>(x) & 0x80000000u));
}

// The leading 12 of 24 significant bits of x. x - head_f32(x) is exact, a product of two heads is
// exact, and no compiler can fold either, which it may do with the usual (x + c) - c splitting.
// An integer below 4096 is its own head, but not to a compiler: n a + head_f32(n) b stays two products.
fn head_f32(x: f32) -> f32 {
    return bitcast<f32>(bitcast<u32>(x) & 0xfffff000u);
}

// The head of a number that is not negative. Compilers factor x out of a sum of two products with x, which rounds otherwise, but
// do not know that this head and the other are the same.
fn positive_head_f32(x: f32) -> f32 {
    return bitcast<f32>(bitcast<u32>(x) & 0x7ffff000u);
}
