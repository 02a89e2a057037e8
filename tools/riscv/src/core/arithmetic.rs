//! Multiplication and division on values. Division by zero and overflow have results, and trap never (unprivileged
//! specification, section 13.2).
#![expect(
    clippy::manual_checked_ops,
    reason = "division by zero has a result here, as the specification's table has it"
)]

/// The upper half of the product of signed numbers.
pub(super) const fn mulh(a: u64, b: u64) -> u64 {
    ((a.cast_signed() as i128 * b.cast_signed() as i128) >> 64) as u64
}

/// The upper half of the product of a signed and an unsigned number.
pub(super) const fn mulhsu(a: u64, b: u64) -> u64 {
    ((a.cast_signed() as i128).wrapping_mul(b as i128) >> 64) as u64
}

/// The upper half of the product of unsigned numbers.
pub(super) const fn mulhu(a: u64, b: u64) -> u64 {
    ((a as u128 * b as u128) >> 64) as u64
}

pub(super) const fn div(a: u64, b: u64) -> u64 {
    if b == 0 { u64::MAX } else { a.cast_signed().wrapping_div(b.cast_signed()).cast_unsigned() }
}

pub(super) const fn divu(a: u64, b: u64) -> u64 {
    if b == 0 { u64::MAX } else { a / b }
}

pub(super) const fn rem(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { a.cast_signed().wrapping_rem(b.cast_signed()).cast_unsigned() }
}

pub(super) const fn remu(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { a % b }
}

/// The lower half of a value, as a signed number.
pub(super) const fn word(value: u64) -> u64 {
    (value as u32).cast_signed() as i64 as u64
}

pub(super) const fn divw(a: u64, b: u64) -> u64 {
    let (a, b) = (a as u32, b as u32);
    if b == 0 { u64::MAX } else { word(a.cast_signed().wrapping_div(b.cast_signed()).cast_unsigned() as u64) }
}

pub(super) const fn divuw(a: u64, b: u64) -> u64 {
    let (a, b) = (a as u32, b as u32);
    if b == 0 { u64::MAX } else { word((a / b) as u64) }
}

pub(super) const fn remw(a: u64, b: u64) -> u64 {
    let (a, b) = (a as u32, b as u32);
    if b == 0 {
        word(a as u64)
    } else {
        word(a.cast_signed().wrapping_rem(b.cast_signed()).cast_unsigned() as u64)
    }
}

pub(super) const fn remuw(a: u64, b: u64) -> u64 {
    let (a, b) = (a as u32, b as u32);
    word(if b == 0 { a } else { a % b } as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIN: u64 = i64::MIN.cast_unsigned();
    const MINUS_1: u64 = u64::MAX;

    #[test]
    fn division_by_zero_and_overflow_have_the_results_of_the_specification() {
        assert_eq!((div(7, 0), divu(7, 0), rem(7, 0), remu(7, 0)), (MINUS_1, MINUS_1, 7, 7));
        assert_eq!((div(MIN, MINUS_1), rem(MIN, MINUS_1)), (MIN, 0));
        let min = 0xffff_ffff_8000_0000;
        assert_eq!((divw(min, MINUS_1), remw(min, MINUS_1)), (min, 0));
        assert_eq!((divw(5, 1 << 32), divuw(5, 1 << 32)), (MINUS_1, MINUS_1));
        assert_eq!(
            (remw(0x8000_0005, 0), remuw(0x8000_0005, 0)),
            (0xffff_ffff_8000_0005, 0xffff_ffff_8000_0005)
        );
    }

    #[test]
    fn upper_halves_have_the_signs_of_their_factors() {
        assert_eq!(
            (mulh(MINUS_1, MINUS_1), mulhu(MINUS_1, MINUS_1), mulhsu(MINUS_1, MINUS_1)),
            (0, MINUS_1 - 1, MINUS_1)
        );
        assert_eq!(
            (mulh(MIN, MIN), mulhsu(MIN, MIN), mulhu(MIN, MIN)),
            (1 << 62, 0xc000_0000_0000_0000, 1 << 62)
        );
    }
}
