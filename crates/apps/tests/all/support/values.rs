//! Values that tell where they come from.

/// A value of `len` bytes in which every part of two bytes names `number`.
pub(crate) fn value(number: u16, len: usize) -> Vec<u8> {
    number.to_le_bytes().into_iter().cycle().take(len).collect()
}

/// The number of a value, if all of it is of one.
pub(crate) fn number(value: &[u8]) -> Option<u16> {
    let number = u16::from_le_bytes(*value.first_chunk()?);
    (value == self::value(number, value.len())).then_some(number)
}
