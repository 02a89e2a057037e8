//! Amounts as people write them: `"64 MiB"`, `"250 ms"`.
//!
//! What must always hold: an amount without a unit that says what it counts is refused, never guessed at.

use wire::Nanos;

/// The units of sizes.
pub const BYTES: [(&str, u64); 5] =
    [("B", 1), ("KiB", 1 << 10), ("MiB", 1 << 20), ("GiB", 1 << 30), ("TiB", 1 << 40)];
const SPANS: [(&str, u64); 4] =
    [("us", 1_000), ("ms", 1_000_000), ("s", 1_000_000_000), ("min", 60_000_000_000)];

/// A number of bytes, if it is written as one.
pub(super) fn bytes(text: &str) -> Option<u64> {
    amount(text, &BYTES)?.try_into().ok()
}

/// A span of time, if it is written as one.
pub(super) fn span(text: &str) -> Option<Nanos> {
    amount(text, &SPANS)?.try_into().ok().map(Nanos)
}

/// Bytes as they would be written.
pub(super) fn bytes_text(bytes: u64) -> String {
    let unit = BYTES.into_iter().rev().find(|(_, scale)| bytes.is_multiple_of(*scale) && bytes >= *scale);
    let (unit, scale) = unit.unwrap_or(BYTES[0]);
    format!("{} {unit}", bytes / scale)
}

/// The same, for a limit: rounded down to the largest unit, so that it is no monster of a number.
pub(super) fn most_bytes_text(bytes: u64) -> String {
    let scale = BYTES.into_iter().rev().map(|(_, scale)| scale).find(|scale| bytes >= *scale).unwrap_or(1);
    bytes_text(bytes - bytes % scale)
}

/// A span of time as it would be written.
pub(super) fn span_text(span: Nanos) -> String {
    let unit = SPANS.into_iter().rev().find(|(_, scale)| span.0.is_multiple_of(*scale) && span.0 >= *scale);
    let (unit, scale) = unit.unwrap_or(SPANS[0]);
    format!("{} {unit}", span.0 / scale)
}

/// A number and a unit of these, in any case: how much that is, if it is written so.
pub fn amount(text: &str, units: &[(&str, u64)]) -> Option<u128> {
    let text = text.trim();
    let digits = text.len() - text.trim_start_matches(|c: char| c.is_ascii_digit()).len();
    let (number, unit) = text.split_at(digits);
    let (_, scale) = units.iter().find(|(name, _)| name.eq_ignore_ascii_case(unit.trim_start()))?;
    Some(u128::from(number.parse::<u64>().ok()?) * u128::from(*scale))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_are_read_with_their_unit() {
        assert_eq!(bytes("4 KiB"), Some(4096));
        assert_eq!(bytes("64MiB"), Some(64 << 20));
        assert_eq!(bytes("4096 B"), Some(4096));
        assert_eq!(span("1 s"), Some(Nanos::from_millis(1000)));
        assert_eq!(span("250ms"), Some(Nanos::from_millis(250)));
        assert_eq!(span("2 min"), Some(Nanos::from_millis(120_000)));
    }

    #[test]
    fn what_is_not_clear_is_not_an_amount() {
        for text in ["", "4096", "4 KB", "KiB", "1.5 MiB", "-1 B", "4 KiB 2", "99999999999 TiB"] {
            assert_eq!(bytes(text), None, "{text}");
        }
        for text in ["", "1", "1 m", "1 second", "0.5 s", "999999999999 min"] {
            assert_eq!(span(text), None, "{text}");
        }
    }

    #[test]
    fn amounts_are_written_as_they_are_read() {
        for text in ["0 B", "1000 B", "4 KiB", "64 MiB", "3 GiB"] {
            assert_eq!(bytes(text).map(bytes_text).as_deref(), Some(text));
        }
        assert_eq!(most_bytes_text((16 << 40) - 1), "15 TiB");
        for text in ["50 ms", "1 s", "10 min", "1500 ms"] {
            assert_eq!(span(text).map(span_text).as_deref(), Some(text));
        }
    }
}
