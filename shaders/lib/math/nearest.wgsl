// nearest: the texel of `texels` under the center of element x of `elements`, floor((x + 1/2) * texels / elements), exactly.
// Where a center lies between two texels, floats take sometimes the one and sometimes the other. The smaller count is below 2^17.
fn nearest_texel(x: u32, elements: u32, texels: u32) -> u32 {
    // Twice the position is odd * whole + odd * rest / elements. Of that quotient, floats give the floor or one less.
    let odd = 2u * x + 1u;
    let whole = texels / elements;
    let rest = texels % elements;
    let below = u32(max(f32(odd) * f32(rest) / f32(elements) - 0.5, 0.0));
    // The products may wrap around; their difference is less than 2 * elements.
    let quotient = below + select(0u, 1u, odd * rest - below * elements >= elements);
    return (odd * whole + quotient) / 2u;
}
