//! The few real functions that the core needs, by iteration over the four operations, so that the same input gives
//! the same bits on every platform (the standard library's come from the platform's C library).

/// The square root of `x`, correct to the last bit or two; NaN for negative `x`.
#[must_use]
pub fn sqrt(x: f64) -> f64 {
    if x < 0.0 || x.is_nan() {
        return f64::NAN;
    }
    if x == 0.0 || x.is_infinite() {
        return x;
    }
    // Halving the exponent in the bit pattern gives a start within a few per cent; Newton's method squares the error.
    let mut y = f64::from_bits((x.to_bits() >> 1) + (1_u64 << 61) - (1_u64 << 51));
    for _ in 0..5 {
        y = 0.5 * (y + x / y);
    }
    y
}

/// The real cube root of `x`.
#[must_use]
pub fn cbrt(x: f64) -> f64 {
    if x == 0.0 || !x.is_finite() {
        return x;
    }
    let magnitude = x.abs();
    // A third of the exponent in the bit pattern is within some per cent; four Newton steps reach the last bits.
    let mut y = f64::from_bits(magnitude.to_bits() / 3 + 0x2a9f_7893_782d_a1ce);
    for _ in 0..5 {
        y -= (y - magnitude / (y * y)) / 3.0;
    }
    if x < 0.0 { -y } else { y }
}

/// The natural logarithm of `x`; NaN for negative `x`, minus infinity at zero.
#[must_use]
pub fn ln(x: f64) -> f64 {
    if x.is_nan() || x < 0.0 {
        return f64::NAN;
    }
    if x == 0.0 {
        return f64::NEG_INFINITY;
    }
    if x.is_infinite() {
        return x;
    }
    // Subnormal numbers are lifted into the normal range first; their exponent field says nothing.
    let (x, lifted) = if x < f64::MIN_POSITIVE { (x * (1_u64 << 54) as f64, 54.0) } else { (x, 0.0) };
    let exponent = ((x.to_bits() >> 52) & 0x7ff) as f64 - 1023.0 - lifted;
    let mantissa = f64::from_bits((x.to_bits() & 0x000f_ffff_ffff_ffff) | 0x3ff0_0000_0000_0000);
    exponent * core::f64::consts::LN_2 + ln_of_mantissa(mantissa)
}

/// ln of m in [1, 2) by the series of 2 artanh((m - 1) / (m + 1)), whose argument stays below 1/3.
fn ln_of_mantissa(m: f64) -> f64 {
    let z = (m - 1.0) / (m + 1.0);
    let (mut term, mut sum) = (z, 0.0);
    for k in 0..20 {
        sum += term / f64::from(2 * k + 1);
        term *= z * z;
    }
    2.0 * sum
}

/// ln 2 in two parts: the first has so many trailing zeros that its small multiples are exact.
const LN_2_HIGH: f64 = 0.693_147_180_369_123_8;
const LN_2_LOW: f64 = 1.908_214_929_270_587_7e-10;

/// e to the power of `x`, correct to a few last bits; infinity and zero beyond the range.
#[must_use]
pub fn exp(x: f64) -> f64 {
    if x.is_nan() {
        return x;
    }
    if x > 709.7 {
        return f64::INFINITY;
    }
    if x < -708.0 {
        return 0.0;
    }
    // x = k ln 2 + r with |r| below 0.35, for which the series of 18 terms has all bits.
    let k = (x / core::f64::consts::LN_2 + if x < 0.0 { -0.5 } else { 0.5 }) as i64;
    let r = (x - k as f64 * LN_2_HIGH) - k as f64 * LN_2_LOW;
    let series = (1..18).rev().fold(1.0, |sum, n| 1.0 + r * sum / f64::from(n));
    // 2^k in two halves, each of which is a normal number.
    let half = |k: i64| f64::from_bits(((k + 1023) as u64) << 52);
    series * half(k / 2) * half(k - k / 2)
}

/// `x` to the power of `y`, for `x` not below zero: `exp(y ln x)`, so its relative error grows with `|y ln x|`.
#[must_use]
pub fn pow(x: f64, y: f64) -> f64 {
    if y == 0.0 { 1.0 } else { exp(y * ln(x)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exponentials_and_powers_have_their_known_values() {
        assert_eq!((exp(0.0), pow(1.0, 0.9), pow(0.0, 0.9), pow(7.0, 0.0)), (1.0, 1.0, 0.0, 1.0));
        assert!(close(exp(1.0), core::f64::consts::E));
        assert!(close(exp(-1.0), 1.0 / core::f64::consts::E));
        assert!(close(pow(2.0, 10.0), 1024.0) && close(pow(2.0, 0.5), core::f64::consts::SQRT_2));
        for i in -700..700 {
            let x = f64::from(i) + 0.37;
            assert!((ln(exp(x)) - x).abs() < 1e-12 * x.abs().max(1.0), "{x}");
        }
        assert_eq!((exp(1000.0), exp(-1000.0)), (f64::INFINITY, 0.0));
        assert!(exp(f64::NAN).is_nan());
    }

    fn close(a: f64, b: f64) -> bool {
        (a - b).abs() <= 4e-15 * b.abs().max(1e-300)
    }

    #[test]
    fn roots_invert_powers_over_the_whole_range() {
        for exponent in -300..300 {
            let x = 1.37 * power_of_ten(exponent);
            assert!(close(sqrt(x) * sqrt(x), x), "sqrt {x}");
            assert!(close(cbrt(x) * cbrt(x) * cbrt(x), x), "cbrt {x}");
        }
        assert!(close(cbrt(-27.0), -3.0));
        assert_eq!(sqrt(0.0), 0.0);
        assert!(sqrt(-1.0).is_nan());
    }

    #[test]
    fn logarithm_has_its_known_values() {
        assert_eq!(ln(1.0), 0.0);
        assert!(close(ln(2.0), core::f64::consts::LN_2));
        assert!(close(ln(10.0), core::f64::consts::LN_10));
        assert!(close(ln(0.1), -core::f64::consts::LN_10));
        assert_eq!(ln(0.0), f64::NEG_INFINITY);
    }

    fn power_of_ten(exponent: i32) -> f64 {
        let factor = if exponent < 0 { 0.1 } else { 10.0 };
        (0..exponent.abs()).fold(1.0, |power, _| power * factor)
    }
}
