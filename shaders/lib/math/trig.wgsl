// trig: argument reduction and kernels of sin, cos and tan. At most 1.5 ULP on all |r| <= pi/4.
// uses: bits

// |x| = (quadrant + 4 k) pi/2 + r with |r| <= pi/4.
struct TrigReduced { r: f32, quadrant: u32 }

// The 64-bit product a b as (low, high), for a < 2^24.
fn multiply_24x32(a: u32, b: u32) -> vec2u {
    let a0 = a & 0xffffu;
    let a1 = a >> 16u;
    let b0 = b & 0xffffu;
    let b1 = b >> 16u;
    let middle = a1 * b0 + ((a0 * b0) >> 16u);
    let carry = a0 * b1 + (middle & 0xffffu);
    return vec2u(a * b, a1 * b1 + (middle >> 16u) + (carry >> 16u));
}

// Payne-Hanek: |x| times as many bits of 2/pi as decide the quadrant and 62 bits of the fraction.
fn trig_reduce_large(x_bits: u32) -> TrigReduced {
    // 2/pi after 32 zero bits; float32 needs no more than these 7 words of it.
    var two_over_pi = array<u32, 8>(
        0u, 0xa2f9836eu, 0x4e441529u, 0xfc2757d1u, 0xf534ddc0u, 0xdb629599u, 0x3c439041u, 0xfe5163abu);
    let mantissa = (x_bits & 0x007fffffu) | 0x00800000u;
    // |x| = mantissa 2^(exponent - 150). Bits of 2/pi above the window only add multiples of 4 quadrants.
    let start = (x_bits >> 23u) - 120u;
    let word = start >> 5u;
    let shift = start & 31u;
    let b0 = two_over_pi[word];
    let b1 = two_over_pi[word + 1u];
    let b2 = two_over_pi[word + 2u];
    let b3 = two_over_pi[word + 3u];
    // (b >> 1) >> (31 - shift) is b >> (32 - shift), defined for shift 0 too.
    let w0 = (b0 << shift) | ((b1 >> 1u) >> (31u - shift));
    let w1 = (b1 << shift) | ((b2 >> 1u) >> (31u - shift));
    let w2 = (b2 << shift) | ((b3 >> 1u) >> (31u - shift));
    let p1 = multiply_24x32(mantissa, w1);
    let low = p1.x + multiply_24x32(mantissa, w2).y;
    let high = mantissa * w0 + p1.y + select(0u, 1u, low < p1.x);
    // 2 bits of quadrant, 62 of fraction; to the nearest quadrant the fraction is in [-1/2, 1/2).
    let quadrant = (high + 0x20000000u) >> 30u;
    let fraction = high - (quadrant << 30u);
    let negative = fraction >= 0x80000000u;
    let magnitude = f32(select(fraction, ~fraction, negative)) * 9.313225746154785e-10
        + f32(select(low, ~low, negative)) * 2.168404344971009e-19;
    let r = magnitude * 1.5707963267948966;
    return TrigReduced(select(r, -r, negative), quadrant & 3u);
}

fn trig_reduce_f32(x: f32) -> TrigReduced {
    let x_bits = bitcast<u32>(x) & 0x7fffffffu;
    if x_bits > 0x43480000u {  // 200
        return trig_reduce_large(x_bits);
    }
    // Cody-Waite: pi/2 in parts of 16, 16 and 24 bits; n <= 128 makes the first two products exact.
    // head_f32(n) is n, as in exp_parts_f32.
    let a = bitcast<f32>(x_bits);
    let n = round(a * 0.6366197723675814);
    let r = fma(n, -6.077100507e-11, fma(head_f32(n), -2.606306225061e-05, fma(n, -1.570770263671875, a)));
    return TrigReduced(r, u32(n) & 3u);
}

// Cephes sinf and cosf on |r| <= pi/4.
fn sin_kernel_f32(r: f32) -> f32 {
    let z = r * r;
    var p = -1.9515295891e-4;
    p = fma(p, z, 8.3321608736e-3);
    p = fma(p, z, -1.6666654611e-1);
    return fma(p * z, r, r);
}

fn cos_kernel_f32(r: f32) -> f32 {
    let z = r * r;
    var p = 2.443315711809948e-5;
    p = fma(p, z, -1.388731625493765e-3);
    p = fma(p, z, 4.166664568298827e-2);
    return fma(p * z, z, fma(-0.5, z, 1.0));
}

// sin(|x| + quarters pi/2), or NaN where x is infinite or NaN.
fn sin_shifted_f32(x: f32, quarters: u32) -> f32 {
    let reduced = trig_reduce_f32(x);
    let quadrant = reduced.quadrant + quarters;
    let value = select(sin_kernel_f32(reduced.r), cos_kernel_f32(reduced.r), (quadrant & 1u) != 0u);
    let with_sign = bitcast<f32>(bitcast<u32>(value) ^ ((quadrant & 2u) << 30u));
    return select(with_sign, nan_f32(), abs_bits_f32(x) >= 0x7f800000u);
}
