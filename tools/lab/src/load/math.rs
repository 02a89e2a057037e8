//! Logarithm and exponential from the four basic operations only.
//!
//! Every machine rounds those alike, but not what its mathematics library computes.
//!
//! What must always hold: the same argument gives the same bits on every machine.

use std::f64::consts::LN_2;

/// The natural logarithm of a positive, normal number, to about 1e-15.
pub(crate) fn ln(x: f64) -> f64 {
    debug_assert!(x.is_normal() && x > 0.0);
    let bits = x.to_bits();
    let mut exponent = ((bits >> 52) & 0x7ff) as i32 - 1023;
    let mut mantissa = f64::from_bits((bits & ((1 << 52) - 1)) | (1023 << 52));
    if mantissa > std::f64::consts::SQRT_2 {
        mantissa /= 2.0;
        exponent += 1;
    }
    // ln m = 2 artanh((m - 1) / (m + 1)), with an argument of at most 0.172.
    let z = (mantissa - 1.0) / (mantissa + 1.0);
    let square = z * z;
    let mut sum = 0.0;
    for odd in (0..12).rev() {
        sum = sum * square + 1.0 / f64::from(2 * odd + 1);
    }
    f64::from(exponent) * LN_2 + 2.0 * z * sum
}

/// e to the power of `x`, for results that are normal numbers, to about 1e-15.
pub(crate) fn exp(x: f64) -> f64 {
    debug_assert!(x.abs() < 700.0);
    let doublings = (x / LN_2).round_ties_even();
    let rest = x - doublings * LN_2;
    let mut sum = 1.0;
    for term in (1..16).rev() {
        sum = 1.0 + sum * rest / f64::from(term);
    }
    sum * f64::from_bits(((1023 + doublings as i64) as u64) << 52)
}

/// `x` to the power of `y`, for positive `x`.
pub(crate) fn pow(x: f64, y: f64) -> f64 {
    exp(y * ln(x))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn near(a: f64, b: f64) -> bool {
        (a - b).abs() <= 1e-13 * b.abs().max(1.0)
    }

    #[test]
    fn they_agree_with_the_librarys() {
        for step in 1..2000 {
            let x = f64::from(step) * 0.37;
            assert!(near(ln(x), x.ln()), "ln {x}");
            assert!(near(ln(1.0 / x), -x.ln()), "ln 1/{x}");
            let y = f64::from(step - 1000) * 0.02;
            assert!((exp(y) / y.exp() - 1.0).abs() < 1e-13, "exp {y}");
        }
        assert!((pow(64e6, -0.99) / 64e6_f64.powf(-0.99) - 1.0).abs() < 1e-13);
    }

    #[test]
    fn the_bits_are_fixed() {
        assert_eq!(ln(10.0).to_bits(), 0x4002_6bb1_bbb5_5515);
        assert_eq!(exp(1.0).to_bits(), 0x4005_bf0a_8b14_576a);
    }
}
