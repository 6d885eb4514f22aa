// Parts of kernels, each behind a line with its name; `test_wgsl_language.py` puts what they use before them.

//// operators
    y[at] = (v * 3.0 - 1.5) / (abs(v) + 0.1) % 2.0;
    m[at] = (k * 2654435761u ^ (k >> 3u)) % 1000u | 1u << (k & 7u);

//// integers
    let s = bitcast<i32>(k);
    // Vulkan leaves remainders of negative numbers to drivers, and wgpu takes theirs.
    m[at] = u32((s / 7) * 100 + (s & 0x7fffffff) % 7) + u32(-s >> 2u) + u32(~s) + (k / 3u) % 5u;

//// comparisons
    m[at] = u32(v < 0.5) + 2u * u32(v == x[0]) + 4u * u32(!(v >= 1.0) && k != 3u || at > 12u);

//// short circuits
    m[at] = select(0u, 1u, at < 4u && x[at * 4u] > 0.0);

//// conversions
    m[at] = u32(abs(v) * 10.0) + u32(i32(v * 5.0)) + u32(bool(k & 1u));
    y[at] = f32(k) + f32(i32(k)) + f32(v > 0.0);

//// vectors
    let q = Quad(v, vec2(1.0, 2.0), f32(at));
    y[at] = q.wzyx.y + q.rgb.b * q[at % 4u] + dot(q, q.yxwz) + vec2<f32>(q.xw).y;

//// vector components
    var q = vec3<f32>(v);
    q.y = 2.0;
    q[at % 3u] += 5.0;
    q.z *= 2.0;
    q = q * 2.0 - q.zxy;
    y[at] = q.x + q.y * 10.0 + q.z * 100.0;

//// matrices
    let a = mat3x2<f32>(v, 2, 3, 4, 5, 6);
    let b = a * vec3(1.0, v, 2.0);
    let c = transpose(a) * mat2x2f(1, 2, 3, 4);
    y[at] = b.x + b.y * 3.0 + c[1][2] + (vec2(v, 1.0) * a).z + determinant(mat2x2f(v, 2, 3, 4));

//// structures
    var p = Pair(v, array(vec2(1.0), vec2(2.0, v)), k);
    p.inner[at % 2u].y += 3.0;
    p.count++;
    let c = p;
    p.first = 0.0;
    y[at] = c.first + c.inner[0].y + c.inner[1].y * 10.0;
    m[at] = p.count;

//// arrays
    var a = array<f32, 3>(v, 2, 3);
    a[at % 3u] = 8.0;
    let b = a;
    a[2] += 1.0;
    y[at] = second(a) + b[2] * 10.0 + a[at % 2u + 1u];
    m[at] = TABLE[at % 4u] + TABLE[LAST];

//// pointers
    var s = v;
    add_to(&s, 2.0);
    let p = &s;
    *p *= 2.0;
    add_to(p, 1.0);
    y[at] = s;
    m[at] = calls;

//// branches
    m[at] = u32(sign_of(v - 0.5) + 5);
    if (at > 9u) {
        m[at] += 100u;
        return;
    }
    y[at] = 1.0;

//// loops
    var sum = 0u;
    for (var j = 0u; j < 20u; j++) {
        if (j == k % 5u) { continue; }
        if (j > at) { break; }
        sum += j;
    }
    var c = at;
    while (c > 3u) {
        c -= 3u;
        sum += 1000u;
    }
    loop {
        let d = c;
        c++;
        if (d % 2u == 1u) { continue; }
        sum += 100000u;
        continuing {
            let e = d;
            break if e > 5u;
        }
    }
    m[at] = sum;

//// nested loops
    var sum = 0u;
    for (var a = 0u; a < 4u; a++) {
        for (var b = a; ; b += 2u) {
            if (b > at) { break; }
            if (b == 3u) { continue; }
            sum += a * b;
        }
        if (sum > 30u) { break; }
    }
    m[at] = sum;

//// switches
    switch k % 5u {
        case 0u, 1u: { m[at] = 10u; }
        case 2u {
            m[at] = 20u;
            if (at > 5u) { break; }
            m[at] = 21u;
        }
        default: { m[at] = 30u; }
        case 3u { m[at] = 40u; }
    }

//// switches in loops
    for (var j = 0u; j < 4u; j++) {
        switch j {
            case 1u: { continue; }
            case 3u: { break; }
            default: { m[at] += j; }
        }
        m[at] += 10u;
    }

//// shadowing
    let w = 1.0;
    {
        let w = v;
        y[at] = w;
    }
    y[at] += w;
    for (var w = 0u; w < 2u; w++) {
        let w = 5.0;
        y[at] += w;
    }

//// workgroup memory
    tile[i].a = v;
    tile[i].b.y = v * 2.0;
    tile[i].d[1] = vec3(v);
    if (i == 0u) { atomicStore(&total, 0u); }
    workgroupBarrier();
    atomicAdd(&total, k & 15u);
    workgroupBarrier();
    let o = tile[7u - i];
    y[at] = o.a + o.b.y + o.d[1].z;
    m[at] = atomicLoad(&total) + arrayLength(&m);

//// built-in values
    m[at] = id.x + 10u * id.y + 100u * local.x + 1000u * local.y + 10000u * group.x + 100000u * groups.y;

//// rounding
    y[at] = floor(v * 4.0) + ceil(v * 3.0) * 10.0 + round(v * 2.0 + 0.5) * 100.0 + trunc(v * 7.0) * 1000.0 + fract(v);

//// limits
    y[at] = min(v, 0.25) + max(v, 0.75) * 10.0 + clamp(v, -0.5, 0.5) * 100.0 + saturate(v) + step(0.0, v) + sign(v);

//// geometry
    let a = vec3(v, 1.0, 2.0);
    let b = vec3(1.0, v, -1.0);
    y[at] = cross(a, b).y + select(1.0, 2.0, v > 0.0) + a[i % 3u];

//// bits
    m[at] = countOneBits(k) + 100u * countLeadingZeros(k) + 10000u * countTrailingZeros(k | 256u) + reverseBits(k) / 1000u + extractBits(k, i, 5u) + insertBits(k, 5u, i, 3u) + firstLeadingBit(k | 1u) + u32(extractBits(bitcast<i32>(k), 3u, i));

//// packed words
    m[at] = pack4xU8(vec4(k, k >> 8u, 3u, 4u)) ^ pack2x16float(vec2(v, 2.0 * v)) ^ pack4x8snorm(vec4(v)) ^ pack2x16unorm(vec2(v));
    let s = unpack4xI8(k);
    y[at] = f32(s.x + s.w) + unpack2x16float(k & 0x3bff3bffu).y + unpack4x8unorm(k).z;

//// dot products of bytes
    m[at] = u32(dot4I8Packed(k, 0x01ff7f80u)) + dot4U8Packed(k, 0x01ff7f80u);

//// bitcasts
    m[at] = bitcast<u32>(v) ^ bitcast<vec2<u32>>(vec2(v, -v)).y;
    y[at] = bitcast<f32>((k & 0x7fffffu) | 0x3f800000u);

//// abstract numbers
    const a = 7 / 2;
    const b = 7.0 / 2;
    y[at] = a + b + v * (1 << 3) - 2e1;
    m[at] = k + (0xffu & 0xf0) + 3 * 2;

//// division by zero
    let zero = at - at;
    m[at] = k / zero + k % zero;
    y[at] = f32((i32(k) % i32(zero)));

//// shifts by too much
    m[at] = (k << (32u + i)) + (k >> (33u + i));
