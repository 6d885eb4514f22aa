// srgb: the transfer function of sRGB (IEC 61966-2-1), from light to numbers and back. What is negative is scaled by its linear part.
fn srgb_encoded(light: vec3<f32>) -> vec3<f32> {
    let high = 1.055 * pow(max(light, vec3<f32>(1e-6)), vec3<f32>(1.0 / 2.4)) - 0.055;
    return select(high, light * 12.92, light <= vec3<f32>(0.0031308));
}

fn srgb_light(number: vec3<f32>) -> vec3<f32> {
    let high = pow(max((number + 0.055) / 1.055, vec3<f32>(1e-6)), vec3<f32>(2.4));
    return select(high, number / 12.92, number <= vec3<f32>(0.04045));
}
