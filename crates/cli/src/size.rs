//! Sizes as people write and read them: `4096`, `4KiB`, `64MiB`.

use std::fmt;
use std::str::FromStr;

use rackmem::rack_file::{BYTES, amount};
use serde::{Serialize, Serializer};

/// What does beside the units of rack files.
const SHORT: [(&str, u64); 5] = [("", 1), ("k", 1 << 10), ("m", 1 << 20), ("g", 1 << 30), ("t", 1 << 40)];

/// A number of bytes.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Debug)]
pub struct Bytes(pub u64);

impl FromStr for Bytes {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let text = text.trim();
        // Decimal units are refused rather than guessed at: 64 MB is not what a block size or a cache can be.
        let bytes = amount(text, &[BYTES, SHORT].concat()).ok_or_else(|| {
            format!("`{text}` is not a size: write bytes or a binary unit, such as 4096, 4KiB or 64MiB")
        })?;
        bytes.try_into().map(Self).map_err(|_| format!("`{text}` is more than 64 bits of bytes"))
    }
}

impl fmt::Display for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (unit, scale) = BYTES.into_iter().rev().find(|(_, scale)| self.0 >= *scale).unwrap_or(BYTES[0]);
        if self.0.is_multiple_of(scale) {
            write!(f, "{} {unit}", self.0 / scale)
        } else {
            let value = self.0 as f64 / scale as f64;
            write!(f, "{value:.1} {unit}")
        }
    }
}

impl Serialize for Bytes {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_u64(self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_read_with_and_without_binary_units() {
        for (text, bytes) in [
            ("4096", 4096),
            ("4KiB", 4096),
            ("4k", 4096),
            ("64MiB", 64 << 20),
            (" 1 GiB ", 1 << 30),
            ("0", 0),
            ("7B", 7),
        ] {
            assert_eq!(text.parse(), Ok(Bytes(bytes)), "{text}");
        }
    }

    #[test]
    fn whatever_else_is_refused_with_an_example_of_what_would_do() {
        for text in ["", "KiB", "4KB", "-1", "1.5MiB", "4 KiB 2", "many", "99999999999999999999"] {
            let error = text.parse::<Bytes>().unwrap_err();
            assert!(error.contains("64MiB"), "{text}: {error}");
        }
        assert!("99999999999TiB".parse::<Bytes>().unwrap_err().contains("64 bits"));
    }

    #[test]
    fn sizes_are_shown_in_the_largest_unit_that_they_fill() {
        for (bytes, text) in
            [(0, "0 B"), (1000, "1000 B"), (4096, "4 KiB"), (100_000_000, "95.4 MiB"), (64 << 20, "64 MiB")]
        {
            assert_eq!(Bytes(bytes).to_string(), text);
        }
    }
}
